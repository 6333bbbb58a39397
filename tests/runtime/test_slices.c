/* test_slices: rows of the tensor table that are several tensors of a file, and transposed ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/load.h"
#include "tests/memory_file.h"

/* A slice of h.{}.w is larger than the buffer that turns it over, and no whole number of it; the
 * second number of g counts from 7. */
static const md_tensor table[] = {
    {"h.{}.w", MD_F32, MD_PARAMS, MD_PARAM, 1, 3, {3, 41, 30}, 0, 14760, 0, 1, 1, 0, 0},
    {"g.{}.x{7}.b", MD_F64, MD_PARAMS, MD_PARAM, 1, 3, {2, 3, 5}, 14784, 240, 0, 2, 0, 0, 0},
    {"h.7.w", MD_F32, MD_PARAMS, MD_PARAM, 1, 1, {2}, 15040, 8, 0, 0, 0, 0, 0},
    {"t", MD_U8, MD_PARAMS, MD_PARAM, 1, 2, {3, 2}, 15104, 6, 0, 0, 1, 0, 0},
    {"mdlc.copy.w", MD_F32, MD_STATE, MD_SLOT, 0, 3, {3, 41, 30}, 0, 14760, 1, 0, 0, 0, 0},
    {"mdlc.step", MD_I64, MD_STATE, MD_SLOT, 0, 0, {0}, 14784, 8, 0, 0, 0, 0, 0},
};
enum { ROWS = 6, SLICES = 3 + 6 + 1 + 1 + 1 + 1, PARAMS = 15168, STATE = 14848, FILE_MOST = 65536 };

typedef struct {
    _Alignas(64) unsigned char params[PARAMS];
    _Alignas(64) unsigned char state[STATE];
    md_memory memory;
    unsigned char seen[SLICES], file[FILE_MOST];
    char text[2048];
    MemoryFile mem;
} World;

static World *world_new(void) {
    World *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->memory.params = w->params;
    w->memory.state = w->state;
    w->mem = (MemoryFile){.data = w->file, .room = w->file, .most = sizeof w->file};
    uint32_t random = 5;
    for (int i = 0; i < ROWS; i++) {
        char *at = md_slice_data(&table[i], 0, &w->memory);
        for (size_t k = 0; k < table[i].bytes; k++) {
            random = random * 1664525u + 1013904223u;
            at[k] = (char)(random >> 24);
        }
    }
    return w;
}

static int load(World *w, unsigned what, const char *only) {
    md_text message = md_text_make(w->text, sizeof w->text);
    return md_load_noted(table, ROWS, &w->memory, what, only, w->seen, NULL, memory_read, &w->mem,
                         &message);
}

/* The data of a tensor of the file; its shape as written must be `shape`. */
static const unsigned char *data_of(World *w, const char *name, const char *shape) {
    char want[128];
    size_t header = (size_t)w->file[0] | (size_t)w->file[1] << 8;
    unsigned begin = 0;
    w->file[8 + header - 1] = 0; /* a space or the brace: enough to search the text */
    snprintf(want, sizeof want, "\"%s\":{\"dtype\":", name);
    const char *at = strstr((const char *)w->file + 8, want);
    if (at == NULL) {
        fail_msg("no tensor %s", name);
        return NULL;
    }
    at = strstr(at, "\"shape\":") + 8;
    assert_int_equal(strncmp(at, shape, strlen(shape)), 0);
    assert_int_equal(sscanf(strstr(at, "\"data_offsets\":["), "\"data_offsets\":[%u", &begin), 1);
    return w->file + 8 + header + begin;
}

static void test_files(void **state) {
    (void)state;
    World *w = world_new();
    assert_int_equal(md_slice_total(table, ROWS), SLICES);
    assert_int_equal(
        md_save_tensors(table, ROWS, &w->memory, MD_SAVE_PARAMS, NULL, NULL, memory_write, &w->mem),
        MD_OK);
    for (size_t layer = 0; layer < 3; layer++) {
        char name[16];
        snprintf(name, sizeof name, "h.%zu.w", layer);
        const unsigned char *file = data_of(w, name, "[30,41]");
        const unsigned char *memory = w->params + layer * 41 * 30 * 4;
        for (size_t r = 0; r < 41; r++) {
            for (size_t c = 0; c < 30; c++) {
                assert_memory_equal(file + (c * 41 + r) * 4, memory + (r * 30 + c) * 4, 4);
            }
        }
    }
    assert_memory_equal(data_of(w, "g.0.x7.b", "[5]"), w->params + 14784, 40);
    assert_memory_equal(data_of(w, "g.1.x9.b", "[5]"), w->params + 14784 + 5 * 40, 40);
    assert_memory_equal(data_of(w, "g.1.x7.b", "[5]"), w->params + 14784 + 3 * 40, 40);
    assert_memory_equal(data_of(w, "h.7.w", "[2]"), w->params + 15040, 8);
    const unsigned char *t = data_of(w, "t", "[2,3]");
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(t[i], w->params[15104 + i % 3 * 2 + i / 3]);
    }
    free(w);
}

/* Weights and checkpoints, the latter with a checksum over data that are turned over. */
static void test_round_trip(void **state) {
    (void)state;
    World *w = world_new(), *v = world_new();
    for (int whole = 0; whole < 2; whole++) {
        unsigned what = whole ? MD_SAVE_ALL : MD_SAVE_PARAMS;
        memcpy(w->state, v->state, STATE);
        w->mem.size = 0;
        assert_int_equal(
            md_save_tensors(table, ROWS, &w->memory, what, NULL, NULL, memory_write, &w->mem),
            MD_OK);
        memset(w->params, 0, PARAMS);
        memset(w->state, 0, STATE);
        assert_int_equal(load(w, what, NULL), MD_OK);
        for (int i = 0; i < ROWS; i++) {
            const md_tensor *t = &table[i], *from = t;
            if (!md_kind_in(t, what)) {
                from = t->copy_of > 0 ? &table[t->copy_of - 1] : NULL;
            }
            if (from != NULL) {
                assert_memory_equal(md_slice_data(t, 0, &w->memory),
                                    md_slice_data(from, 0, &v->memory), t->bytes);
            }
        }
        assert_int_equal(w->seen[0] + w->seen[SLICES - 1], 1 + whole);
    }
    w->file[w->mem.size - 1] ^= 1;
    assert_int_equal(load(w, MD_SAVE_ALL, NULL), MD_ERR_FORMAT);
    assert_non_null(strstr(w->text, "checksum"));
    free(w);
    free(v);
}

/* Writes the file anew with one name replaced by one as long. */
static void rename_in_file(World *w, const char *from, const char *to) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\"", from);
    size_t n = strlen(quoted);
    w->mem.size = 0;
    assert_int_equal(
        md_save_tensors(table, ROWS, &w->memory, MD_SAVE_PARAMS, NULL, NULL, memory_write, &w->mem),
        MD_OK);
    for (size_t i = 8; i + n <= w->mem.size; i++) {
        if (memcmp(w->file + i, quoted, n) == 0) {
            memcpy(w->file + i + 1, to, n - 2);
            return;
        }
    }
    fail_msg("no %s in the file", from);
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *from, *to;
        int code;
        const char *text;
    } row[] = {
        {"h.2.w", "h.3.w", MD_ERR_NAME, "unknown tensor 'h.3.w'; tensor 'h.2.w' is missing"},
        {"h.2.w", "h.1.w", MD_ERR_FORMAT, "tensor 'h.1.w' stands twice; tensor 'h.2.w' is missing"},
        {"h.2.w", "h.w.2", MD_ERR_NAME, "unknown tensor 'h.w.2'; tensor 'h.2.w' is missing"},
        {"g.0.x8.b", "g.00.x.b", MD_ERR_NAME, "unknown tensor 'g.00.x.b'"},
        {"g.1.x8.b", "g.1.x6.b", MD_ERR_NAME, "unknown tensor 'g.1.x6.b'"},
        {"g.1.x8.b", "g.01.x8b", MD_ERR_NAME, "tensor 'g.1.x8.b' is missing"},
        {"h.1.w", "h.{.w", MD_ERR_NAME, "unknown tensor 'h.{.w'; tensor 'h.1.w' is missing"},
        {"h.7.w", "h.0.w", MD_ERR_FORMAT, "tensor 'h.0.w' stands twice"},
    };
    World *w = world_new();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        rename_in_file(w, row[i].from, row[i].to);
        int code = load(w, MD_SAVE_PARAMS, NULL);
        if (code != row[i].code || strstr(w->text, row[i].text) == NULL) {
            fail_msg("%s for %s: code %d, '%s'", row[i].to, row[i].from, code, w->text);
        }
    }
    /* A transposed slice has the shape of the file in messages. */
    md_tensor other[ROWS];
    memcpy(other, table, sizeof table);
    other[0].transposed = 0;
    md_text message = md_text_make(w->text, sizeof w->text);
    w->mem.size = 0;
    assert_int_equal(
        md_save_tensors(other, ROWS, &w->memory, MD_SAVE_PARAMS, NULL, NULL, memory_write, &w->mem),
        MD_OK);
    assert_int_equal(md_load_noted(table, ROWS, &w->memory, MD_SAVE_PARAMS, NULL, w->seen, NULL,
                                   memory_read, &w->mem, &message),
                     MD_ERR_SHAPE);
    assert_non_null(
        strstr(w->text, "'h.0.w' is F32[41, 30] in the file and F32[30, 41] in the model"));
    free(w);
}

/* One iteration alone; the copy follows for it alone too. */
static void test_only(void **state) {
    (void)state;
    World *w = world_new(), *v = world_new();
    rename_in_file(w, "g.0.x8.b", "an.other");
    memset(w->params, 0, PARAMS);
    memset(w->state, 0, STATE);
    assert_int_equal(load(w, MD_SAVE_PARAMS, "h.1,g.1.x9"), MD_OK);
    size_t slice = 41 * 30 * 4;
    for (size_t i = 0; i < PARAMS; i++) {
        int wanted = (i >= slice && i < 2 * slice) || (i >= 14784 + 200 && i < 14784 + 240);
        if (w->params[i] != (wanted ? v->params[i] : 0)) {
            fail_msg("byte %zu", i);
        }
    }
    assert_memory_equal(w->state + slice, v->params + slice, slice);
    assert_int_equal(w->state[0] | w->state[2 * slice], 0);
    assert_int_equal(load(w, MD_SAVE_PARAMS, "g.0"), MD_ERR_NAME);
    assert_string_equal(w->text, "tensor 'g.0.x8.b' is missing");
    assert_true(md_slice_any("h.2", &table[0]) && !md_slice_any("h.3", &table[0]));
    free(w);
    free(v);
}

/* Second sets: those of the file where it has them, as far as their originals are asked for; else
 * the loaded weights. */
static void test_copies(void **state) {
    (void)state;
    World *w = world_new(), *v = world_new();
    size_t slice = 41 * 30 * 4;
    assert_int_equal(
        md_save_tensors(table, ROWS, &w->memory, MD_SAVE_ALL, NULL, NULL, memory_write, &w->mem),
        MD_OK);
    assert_int_not_equal(memcmp(v->state, v->params, 3 * slice), 0);
    memset(w->params, 0, PARAMS);
    memset(w->state, 0, STATE);
    assert_int_equal(load(w, MD_SAVE_PARAMS, NULL), MD_OK);
    assert_memory_equal(w->params, v->params, 3 * slice);
    assert_memory_equal(w->state, v->state, 3 * slice);
    assert_int_equal(w->state[14784], 0); /* no counter */
    memset(w->state, 0, STATE);
    assert_int_equal(load(w, MD_SAVE_PARAMS, "h.1"), MD_OK);
    assert_memory_equal(w->state + slice, v->state + slice, slice);
    assert_int_equal(w->state[0] | w->state[2 * slice], 0);
    memset(w->state, 0, STATE);
    assert_int_equal(load(w, MD_SAVE_PARAMS, "g.0"), MD_OK);
    assert_int_equal(w->state[0] | w->state[slice] | w->state[2 * slice], 0);
    free(w);
    free(v);
}

/* Floats of the other width, split and transposed ones too, come back as they were; a number beyond
 * the narrower type is refused before anything changes, and so is any with MD_LOAD_EXACT. */
static void test_floats(void **state) {
    (void)state;
    static md_tensor other[ROWS];
    static unsigned char params[2 * PARAMS], region[2 * STATE], before[2][PARAMS];
    md_memory wide = {params, region, NULL, NULL, sizeof params, sizeof region, 0, 0};
    World *w = world_new();
    md_text message = md_text_make(w->text, sizeof w->text);
    size_t at[2] = {0, 0};
    memcpy(other, table, sizeof table);
    for (int i = 0; i < ROWS; i++) {
        md_tensor *t = &other[i];
        if (md_is_float(t->dtype)) {
            char *data = md_slice_data(&table[i], 0, &w->memory);
            for (size_t k = 0; k < t->bytes / md_dtype_get(t->dtype)->bytes; k++) {
                float f = (float)(k * k % 1009) / 7 - (float)i;
                double d = f;
                memcpy(data + k * (t->dtype == MD_F64 ? 8 : 4),
                       t->dtype == MD_F64 ? (void *)&d : (void *)&f, t->dtype == MD_F64 ? 8 : 4);
            }
            t->bytes = t->dtype == MD_F64 ? t->bytes / 2 : t->bytes * 2;
            t->dtype = t->dtype == MD_F64 ? MD_F32 : MD_F64;
        }
        t->offset = at[t->region];
        at[t->region] += (t->bytes + 63) / 64 * 64;
    }
    memcpy(before[0], w->params, PARAMS);
    memcpy(before[1], w->state, STATE);
    assert_int_equal(
        md_save_tensors(table, ROWS, &w->memory, MD_SAVE_ALL, NULL, NULL, memory_write, &w->mem),
        MD_OK);
    assert_int_equal(md_load_noted(other, ROWS, &wide, MD_SAVE_PARAMS | MD_LOAD_EXACT, NULL,
                                   w->seen, NULL, memory_read, &w->mem, &message),
                     MD_ERR_SHAPE);
    assert_non_null(
        strstr(w->text, "'h.0.w' is F32[30, 41] in the file and F64[30, 41] in the model"));
    assert_non_null(strstr(w->text, "(a run goes on in its own precision"));
    message = md_text_make(w->text, sizeof w->text);
    assert_int_equal(md_load_noted(other, ROWS, &wide, MD_SAVE_PARAMS, NULL, w->seen, NULL,
                                   memory_read, &w->mem, &message),
                     MD_OK);
    double value;
    memcpy(&value, params + (41 * 30 + 30) * 8, sizeof value); /* h.1.w[1, 0] */
    float want;
    memcpy(&want, w->params + (41 * 30 + 30) * 4, sizeof want);
    assert_true(value == (double)want && value != 0);
    static unsigned char file[4 * FILE_MOST];
    w->mem = (MemoryFile){.data = file, .room = file, .most = sizeof file};
    assert_int_equal(
        md_save_tensors(other, ROWS, &wide, MD_SAVE_ALL, NULL, NULL, memory_write, &w->mem), MD_OK);
    memset(w->params, 0, PARAMS);
    assert_int_equal(load(w, MD_SAVE_PARAMS, NULL), MD_OK);
    assert_memory_equal(w->params, before[0], PARAMS);
    assert_memory_equal(w->state, before[1], 14760);
    /* and of a part of the copy */
    memset(w->state, 0, STATE);
    assert_int_equal(load(w, MD_SAVE_PARAMS, "h.2"), MD_OK);
    assert_memory_equal(w->state + 2 * 14760 / 3, before[1] + 2 * 14760 / 3, 14760 / 3);
    assert_int_equal(w->state[14760 / 3 - 1], 0);
    value = 1e39;
    memcpy(params + (41 * 30 + 31) * 8, &value, sizeof value);
    w->mem.size = 0;
    assert_int_equal(
        md_save_tensors(other, ROWS, &wide, MD_SAVE_PARAMS, NULL, NULL, memory_write, &w->mem),
        MD_OK);
    assert_int_equal(load(w, MD_SAVE_PARAMS, NULL), MD_ERR_RANGE);
    assert_string_equal(w->text, "tensor 'h.1.w': element 42 is beyond what F32 holds");
    assert_memory_equal(w->params, before[0], PARAMS);
    free(w);
}

/* And of 16 bits. */
static void test_halves(void **state) {
    (void)state;
    static const struct {
        const char *dtype;
        uint16_t bits[3];
    } row[] = {{"F16", {0x3c00, 0xc100, 0x7c00}}, {"BF16", {0x3f80, 0xc020, 0x7f80}}};
    static const md_tensor one[] = {
        {"x", MD_F64, MD_PARAMS, MD_PARAM, 1, 1, {3}, 0, 24, 0, 0, 0, 0, 0},
        {"mdlc.x.m", MD_F32, MD_STATE, MD_SLOT, 0, 1, {3}, 0, 12, 0, 0, 0, 0, 0},
    };
    World *w = world_new();
    for (size_t i = 0; i < 2; i++) {
        for (int slot = 0; slot < 2; slot++) {
            double value[3];
            md_text message = md_text_make(w->text, sizeof w->text);
            int n = snprintf((char *)w->file + 8, 300,
                             "{\"%s\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,6]}}",
                             one[slot].name, row[i].dtype);
            memset(w->file, 0, 8);
            w->file[0] = (unsigned char)n;
            memcpy(w->file + 8 + n, row[i].bits, 6);
            w->mem.size = 8 + (size_t)n + 6;
            int code = md_load_noted(slot ? one + 1 : one, 1, &w->memory, MD_SAVE_ALL, NULL,
                                     w->seen, NULL, memory_read, &w->mem, &message);
            assert_int_equal(code, slot ? MD_ERR_SHAPE : MD_OK);
            memcpy(value, w->params, sizeof value);
            assert_true(value[0] == 1 && value[1] == -2.5 && isinf(value[2]));
        }
    }
    free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),    cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_only),
        cmocka_unit_test(test_copies),   cmocka_unit_test(test_floats),
        cmocka_unit_test(test_halves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
