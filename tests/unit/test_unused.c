/* Which lines of the runtime fall away where nobody uses what they define. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "emit/unused.h"

enum { LINES = 40 };

/* What is left of the lines of `text` where `used`, names with blanks between them, are used. */
static const char *left(Arena *arena, const char *text, const char *used) {
    const char *lines[LINES];
    size_t count = 0;
    for (const char *at = text; *at != 0 && count < LINES; at += *at == '\n') {
        size_t n = strcspn(at, "\n");
        lines[count++] = str_ndup(arena, at, n);
        at += n;
    }
    const Embed file = {.name = "test", .lines = lines, .count = count};
    PartList parts = {0};
    unused_parts(arena, &file, 0, count, &parts);
    for (int i = 0; i < parts.count; i++) {
        const char *name = str_ndup(arena, parts.at[i].name, parts.at[i].length);
        const char *found = strstr(used, name);
        parts.at[i].used = found != NULL && (found[strlen(name)] == ' ' || !found[strlen(name)]);
    }
    const bool *skip = unused_lines(arena, &file, 0, count, &parts);
    Text out = {.arena = arena};
    text_add(&out, "");
    for (size_t i = 0; i < count; i++) {
        if (!skip[i]) {
            text_printf(&out, "%s\n", lines[i]);
        }
    }
    return out.len > 0 ? out.at : "";
}

static void test_macros(void **state) {
    (void)state;
    Arena arena = {0};
    static const char text[] = "/* Two of them. */\n"
                               "#define MD_A 1\n"
                               "#define MD_B(x) \\\n"
                               "    ((x) + 1)\n"
                               "typedef int md_t;\n"
                               "#undef MD_A\n";
    assert_string_equal(left(&arena, text, "MD_A"),
                        "/* Two of them. */\n#define MD_A 1\ntypedef int md_t;\n#undef MD_A\n");
    assert_string_equal(left(&arena, text, "MD_B"), "/* Two of them. */\n#define MD_B(x) \\\n"
                                                    "    ((x) + 1)\ntypedef int md_t;\n");
    arena_free(&arena);
}

static void test_lists(void **state) {
    (void)state;
    Arena arena = {0};
    static const char text[] = "#define MD_A 1\n"
                               "enum {\n"
                               "    MD_B = 1, /* one */\n"
                               "    MD_C = 2\n"
                               "};\n"
                               "typedef int md_t;\n";
    assert_string_equal(left(&arena, text, "MD_C"),
                        "enum {\n    MD_C = 2\n};\ntypedef int md_t;\n");
    /* An empty list is no C. */
    assert_string_equal(left(&arena, text, "MD_A"), "#define MD_A 1\ntypedef int md_t;\n");
    arena_free(&arena);
}

static void test_conditions(void **state) {
    (void)state;
    Arena arena = {0};
    static const char text[] = "#if X\n"
                               "#define MD_A 1\n"
                               "#if Y\n"
                               "#define MD_B 1\n"
                               "#else\n"
                               "#define MD_B 2\n"
                               "#endif\n"
                               "#elif Z\n"
                               "/* Here A is another one. */\n"
                               "#define MD_A 2\n"
                               "#else\n"
                               "#define MD_C 1\n"
                               "#endif\n";
    assert_string_equal(left(&arena, text, ""), "");
    assert_string_equal(left(&arena, text, "MD_A"),
                        "#if X\n#define MD_A 1\n#elif Z\n/* Here A is another one. */\n"
                        "#define MD_A 2\n#endif\n");
    assert_string_equal(left(&arena, text, "MD_B"),
                        "#if X\n#if Y\n#define MD_B 1\n#else\n#define MD_B 2\n#endif\n#endif\n");
    /* A branch in front of one that says something stays, since it decides about it. */
    const char *last = left(&arena, text, "MD_C");
    assert_non_null(strstr(last, "#if X\n#elif Z\n"));
    assert_non_null(strstr(last, "#else\n#define MD_C 1\n#endif\n"));
    assert_null(strstr(last, "#if Y"));
    arena_free(&arena);
}

static void test_enumerators(void **state) {
    (void)state;
    Arena arena = {0};
    static const char text[] = "enum {\n"
                               "    MD_ONE = 1, /* the first,\n"
                               "                   in two lines */\n"
                               "    MD_TWO = MD_TUNED(2, 3),\n"
                               "    MD_BOTH = MD_ONE | MD_TWO\n"
                               "};\n";
    assert_string_equal(left(&arena, text, "MD_TWO"), "enum {\n    MD_TWO = MD_TUNED(2, 3),\n};\n");
    /* Numbers that are counted depend on those in front, and two in a line are one text. */
    static const char *const whole[] = {"enum {\n    MD_ONE = 1,\n    MD_TWO\n};\n",
                                        "enum {\n    MD_ONE = 1, MD_TWO = 2,\n    MD_SIX = 6\n};\n",
                                        "typedef enum md_e {\n    MD_ONE = 1,\n} md_e;\n",
                                        "enum { MD_ONE = 1, MD_TWO = 2 };\n"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        assert_string_equal(left(&arena, whole[i], ""), whole[i]);
    }
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_macros),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_enumerators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
