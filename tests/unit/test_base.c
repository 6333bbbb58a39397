/* Arenas, strings, texts, types and the printing of messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "compiler/diag.h"
#include "compiler/type.h"

static void test_arena(void **state) {
    (void)state;
    Arena arena = {.chunk_bytes = 256};
    char *first = arena_alloc(&arena, 3);
    for (int size = 1; size < 3000; size += 37) {
        unsigned char *block = arena_alloc(&arena, (size_t)size);
        assert_int_equal((uintptr_t)block % _Alignof(max_align_t), 0);
        for (int i = 0; i < size; i++)
            assert_int_equal(block[i], 0);
        memset(block, 0xaa, (size_t)size);
    }
    memcpy(first, "ab", 3);
    char *grown = arena_grow(&arena, first, 3, 5000);
    assert_string_equal(grown, "ab");
    for (int i = 3; i < 5000; i++)
        assert_int_equal(grown[i], 0);
    arena_free(&arena);
    assert_int_equal(arena.used_bytes, 0);
    char *last = arena_alloc(&arena, 8);
    assert_ptr_equal(arena_grow(&arena, last, 8, 200), last); /* where it stands */
    arena_free(&arena);
}

static void test_vec_and_text(void **state) {
    (void)state;
    Arena arena = {0};
    VEC(int) vec = {0};
    for (int i = 0; i < 1000; i++)
        VEC_PUSH(&arena, &vec, i * i);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(vec.at[i], i * i);
    Text text = {.arena = &arena};
    for (int i = 0; i < 300; i++)
        text_printf(&text, "%d,", i % 10);
    text_add(&text, "end");
    assert_int_equal(text.len, 603);
    assert_string_equal(text.at + 598, "9,end");
    assert_string_equal(str_printf(&arena, "%s-%d", "a", 7), "a-7");
    assert_string_equal(str_ndup(&arena, "abcdef", 3), "abc");
    arena_free(&arena);
}

static void test_strings(void **state) {
    (void)state;
    assert_int_equal(str_distance("model", "model", 3), 0);
    assert_int_equal(str_distance("modle", "model", 3), 1);
    assert_int_equal(str_distance("mdel", "model", 3), 1);
    assert_int_equal(str_distance("kitten", "sitting", 9), 3);
    assert_int_equal(str_distance("kitten", "sitting", 1), 2); /* cut off */
    assert_int_equal(str_distance("", "abc", 9), 3);
    assert_true(str_eq(NULL, NULL));
    assert_false(str_eq("a", NULL));
    assert_true(hash_str(HASH_START, "ab") != hash_str(HASH_START, "ba"));
    assert_true(hash_bytes(HASH_START, "a", 1) == 0xaf63dc4c8601ec8cu);
}

static void test_types(void **state) {
    (void)state;
    const int64_t dim[] = {2, 3, 4};
    Type t = type_make(TY_BF16, 3, dim);
    assert_int_equal(type_count(t), 24);
    assert_int_equal(type_bytes(t), 48);
    assert_true(type_same_shape(t, type_make(TY_F32, 3, dim)));
    assert_false(type_equal(t, type_make(TY_F32, 3, dim)));
    assert_false(type_same_shape(t, type_make(TY_F32, 2, dim)));
    assert_int_equal(type_count(type_scalar(TY_I64)), 1);
    for (int i = TY_BOOL; i <= TY_F64; i++) {
        Elem elem;
        assert_true(elem_from_name(elem_name((Elem)i), &elem));
        assert_int_equal(elem, i);
        assert_true(elem_bytes(elem) > 0);
        assert_false(elem_is_float(elem) && elem_is_int(elem));
    }
    Elem none;
    assert_false(elem_from_name("tuple", &none));
    assert_true(elem_is_int(TY_U32) && !elem_is_signed(TY_U32) && elem_is_signed(TY_I8));
}

static void test_messages(void **state) {
    (void)state;
    char *text;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    Arena arena = {0};
    Diag diag;
    diag_open(&diag, &arena, out);
    static const char source[] = "dim A = 1;\n\tdim \xc3\xa4 = 2;\nlast";
    uint32_t s = diag_add_source(&diag, "x.mdl", source, sizeof source - 1);
    diag_error(&diag, (Loc){s, 12, 9, 0}, 214, "no '%s'", "name");
    diag_note(&diag, (Loc){s, 4, 1, 0}, "A is here");
    diag_note(&diag, LOC_NONE, "no place");
    diag_hint(&diag, "do this");
    diag_warn(&diag, (Loc){s, 25, 100, 0}, 7, "at the end");
    diag_error(&diag, LOC_NONE, 701, "no file");
    fflush(out);
    assert_string_equal(text, "x.mdl:2:2: error: no 'name' [E0214]\n"
                              "    2 | \tdim \xc3\xa4 = 2;\n"
                              "      | \t^^^^^^^^\n"
                              "x.mdl:1:5: note: A is here\n"
                              "note: no place\n"
                              "hint: do this\n"
                              "x.mdl:3:2: warning: at the end [W0007]\n"
                              "    3 | last\n"
                              "      |  ^^^\n"
                              "mdlc: error: no file [E0701]\n");
    size_t before = n;
    diag.limit = 3;
    diag_error(&diag, (Loc){s, 0, 3, 0}, 1, "third");
    diag_error(&diag, (Loc){s, 0, 3, 0}, 1, "fourth");
    diag_note(&diag, LOC_NONE, "muted");
    diag_warn(&diag, (Loc){s, 0, 3, 0}, 1, "muted");
    diag_error(&diag, (Loc){s, 0, 3, 0}, 1, "fifth");
    diag_close(&diag);
    fclose(out);
    assert_string_equal(text + before, "x.mdl:1:1: error: third [E0001]\n"
                                       "    1 | dim A = 1;\n"
                                       "      | ^^^\n"
                                       "mdlc: 2 more errors\n");
    assert_int_equal(diag.errors, 5);
    free(text);
    arena_free(&arena);
}

static void test_warnings_as_errors(void **state) {
    (void)state;
    char *text;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    Arena arena = {0};
    Diag diag;
    diag_open(&diag, &arena, out);
    diag.warnings_are_errors = true;
    diag_warn(&diag, LOC_NONE, 9, "odd");
    fclose(out);
    assert_string_equal(text, "mdlc: error: odd [W0009]\n");
    assert_int_equal(diag.errors, 1);
    free(text);
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena),    cmocka_unit_test(test_vec_and_text),
        cmocka_unit_test(test_strings),  cmocka_unit_test(test_types),
        cmocka_unit_test(test_messages), cmocka_unit_test(test_warnings_as_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
