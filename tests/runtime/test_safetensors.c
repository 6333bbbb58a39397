/* test_safetensors: the weights format: round trips, every refusal, and damaged files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/load.h"
#include "tests/memory_file.h"
#include "tests/small_weights.h"

typedef struct {
    Regions regions;
    unsigned char seen[TENSORS];
    char text[2048];
    unsigned char file[8192];
    MemoryFile mem;
} World;

static World *world_new(void) {
    World *w = calloc(1, sizeof *w);
    assert_non_null(w);
    regions_fill(&w->regions, 0);
    w->mem = (MemoryFile){.data = w->file, .room = w->file, .most = sizeof w->file};
    for (int i = 0; i < PARAMS; i++) {
        w->regions.params[i] = (unsigned char)(i + 1);
    }
    for (int i = 0; i < STATE; i++) {
        w->regions.state[i] = (unsigned char)(200 - i);
    }
    memcpy(w->regions.state + 16, (unsigned char[]){1, 0, 1}, 3); /* bn.seen */
    return w;
}

static int world_load(World *w, unsigned what) {
    md_text message = md_text_make(w->text, sizeof w->text);
    return md_load_noted(table, TENSORS, &w->regions.memory, what, NULL, w->seen, NULL, memory_read,
                         &w->mem, &message);
}

static int world_save(World *w, unsigned what) {
    w->mem.size = 0;
    return md_save_tensors(table, TENSORS, &w->regions.memory, what, NULL, NULL, memory_write,
                           &w->mem);
}

/* A file from a header and a number of data bytes. */
static void world_file(World *w, const char *header, size_t data) {
    size_t n = strlen(header);
    memset(w->file, 0, sizeof w->file);
    w->file[0] = (unsigned char)(n & 255);
    w->file[1] = (unsigned char)(n >> 8);
    memcpy(w->file + 8, header, n);
    memset(w->file + 8 + n, 7, data);
    w->mem.size = 8 + n + data;
}

static void test_round_trip(void **state) {
    (void)state;
    World *w = world_new();
    unsigned char params[PARAMS], before[STATE];
    memcpy(params, w->regions.params, PARAMS);
    memcpy(before, w->regions.state, STATE);
    w->regions.state[18] = 7; /* a bool that is neither 0 nor 1 is loaded as 1 */
    assert_int_equal(world_save(w, MD_SAVE_ALL), MD_OK);
    memset(w->regions.params, 0, PARAMS);
    memset(w->regions.state, 0, STATE);
    assert_int_equal(world_load(w, MD_SAVE_ALL), MD_OK);
    for (int i = 0; i < TENSORS; i++) {
        const md_tensor *t = &table[i];
        assert_memory_equal((t->region == MD_PARAMS ? w->regions.params : w->regions.state) +
                                t->offset,
                            (t->region == MD_PARAMS ? params : before) + t->offset, t->bytes);
    }
    /* Between the tensors nothing is written. */
    assert_int_equal(w->regions.params[24], 0);
    assert_int_equal(w->regions.params[67], 0);
    free(w);
}

static void test_layout(void **state) {
    (void)state;
    World *w = world_new();
    assert_int_equal(world_save(w, MD_SAVE_PARAMS), MD_OK);
    size_t header = (size_t)w->file[0] | (size_t)w->file[1] << 8;
    assert_int_equal(header % 8, 0);
    assert_int_equal(w->mem.size, 8 + header + 24 + 8 + 8 + 3 + 3);
    w->file[8 + header - 1] = 0; /* a space or the brace: enough to search the text */
    const char *text = (const char *)w->file + 8;
    assert_non_null(strstr(text, "\"__metadata__\":{\"format\":\"pt\""));
    assert_non_null(
        strstr(text, "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}"));
    assert_null(strstr(text, "mdlc."));
    /* Narrow elements come last, so that wide ones stay aligned. */
    assert_non_null(
        strstr(text, "\"fc.mask\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[40,43]}"));
    assert_non_null(
        strstr(text, "\"bn.seen\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[43,46]}"));
    free(w);
}

static void test_weights_of_a_checkpoint(void **state) {
    (void)state;
    World *w = world_new();
    assert_int_equal(world_save(w, MD_SAVE_ALL), MD_OK);
    memset(w->regions.params, 0, PARAMS);
    memset(w->regions.state, 0, STATE);
    assert_int_equal(world_load(w, MD_SAVE_PARAMS), MD_OK);
    assert_int_equal(w->regions.params[0], 1);
    assert_int_equal(w->regions.state[0], 200);
    assert_int_equal(w->regions.state[64], 0); /* the slot stays */
    free(w);
}

/* Integers with a range are looked at before anything is taken. */
static void test_ranges(void **state) {
    (void)state;
    World *w = world_new();
    w->regions.params[64 + 2] = 250;
    assert_int_equal(world_save(w, MD_SAVE_ALL), MD_OK);
    memset(w->regions.params, 0, PARAMS);
    assert_int_equal(world_load(w, MD_SAVE_ALL), MD_ERR_RANGE);
    assert_string_equal(w->text, "tensor 'fc.mask': element 2 is outside of 0..250");
    for (int i = 0; i < PARAMS; i++) {
        assert_int_equal(w->regions.params[i], 0);
    }
    static const struct {
        md_dtype type;
        size_t width;
        unsigned char bytes[16];
        int64_t lo, hi, bad;
    } row[] = {
        {MD_I8, 1, {1, 2, 0x80}, 1, 3, 2},
        {MD_I8, 1, {1, 0xff, 0x80}, -1, 3, 2},
        {MD_U8, 1, {1, 2, 0x80}, 1, 0x81, -1},
        {MD_I32, 4, {8, 0, 0, 0, 9, 0, 0, 0}, 1, 9, 1},
        {MD_I64, 8, {5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80}, 0, INT64_MAX, 1},
        {MD_U64, 8, {5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80}, 0, INT64_MAX, 1},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const md_tensor t = {.dtype = row[i].type, .lo = row[i].lo, .hi = row[i].hi};
        int64_t bad = -1;
        for (int64_t k = row[i].width == 1 ? 2 : 1; k >= 0; k--) {
            const unsigned char *from = row[i].bytes + (size_t)k * row[i].width;
            md_load l = {.t = &t, .walk = MD_LOAD_VALUES};
            l.head.type = md_dtype_get(t.dtype);
            md_load_element(&l, (size_t)k, from, NULL);
            bad = l.code == MD_OK ? bad : k;
        }
        assert_int_equal(bad, row[i].bad);
    }
    free(w);
}

/* Of slots a file has all or none. */
static void test_slots(void **state) {
    (void)state;
    World *w = world_new();
    assert_int_equal(world_save(w, MD_SAVE_PARAMS), MD_OK);
    assert_int_equal(world_load(w, MD_SAVE_ALL), MD_OK);
    assert_int_equal(w->seen[0], 1);
    assert_int_equal(w->seen[5], 0);
    md_text message = md_text_make(w->text, sizeof w->text);
    w->mem.size = 0;
    assert_int_equal(md_save_tensors(table, TENSORS - 1, &w->regions.memory, MD_SAVE_ALL, NULL,
                                     NULL, memory_write, &w->mem),
                     MD_OK);
    assert_int_equal(md_load_noted(table, TENSORS, &w->regions.memory, MD_SAVE_ALL, NULL, w->seen,
                                   NULL, memory_read, &w->mem, &message),
                     MD_ERR_NAME);
    assert_string_equal(w->text, "tensor 'mdlc.fit.seed' is missing");
    free(w);
}

static void test_write_fails(void **state) {
    (void)state;
    World *w = world_new();
    assert_int_equal(world_save(w, MD_SAVE_ALL), MD_OK);
    size_t size = w->mem.size;
    for (size_t full = 1; full < size; full += 5) {
        w->mem.most = full;
        assert_int_equal(world_save(w, MD_SAVE_ALL), MD_ERR_WRITE);
    }
    free(w);
}

#define W "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}"
#define B "\"fc.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}"
#define M "\"fc.mask\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[32,35]}"

typedef struct {
    const char *header;
    size_t data;
    int code;
    const char *text; /* part of the message */
} Case;

static void test_refusals(void **state) {
    (void)state;
    static const Case cases[] = {
        /* good ones: any order of tensors and keys, escapes, metadata, padding */
        {"{" W "," B "," M "}", 35, MD_OK, ""},
        {"{" M "," B "," W "}   ", 35, MD_OK, ""},
        {" \n{ \"__metadata__\" : {\"a\":\"b\", \"c\":\"d\"} , " W "," B "," M "}", 35, MD_OK, ""},
        {"{\"fc.weigh\\u0074\":{\"data_offsets\":[0,24],\"shape\":[2,3],"
         "\"dtype\":\"F32\"}," B "," M "}",
         35, MD_OK, ""},
        {"{" W "," B "," M
         ",\"bn.num_batches_tracked\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[35,43]}}",
         43, MD_OK, ""},
        {"{" W "," B "," M
         ",\"mdlc.other\":{\"dtype\":\"F8\",\"shape\":[2],\"data_offsets\":[35,37]}}",
         37, MD_OK, ""},
        /* names */
        {"{" W "," B "}", 32, MD_ERR_NAME, "tensor 'fc.mask' is missing"},
        {"{" W "," B "," M ",\"zz\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[35,36]}}", 36,
         MD_ERR_NAME, "unknown tensor 'zz'"},
        {"{" W "," W "," B "," M "}", 35, MD_ERR_FORMAT, "'fc.weight' stands twice"},
        {"{\"__metadata__\":{\"a\":\"b\"},\"__metadata__\":{}," W "," B "," M "}", 35, MD_OK, ""},
        {"{}", 0, MD_ERR_NAME, "tensor 'fc.bias' is missing"},
        /* types and shapes */
        {"{" W "," M ",\"fc.bias\":{\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[24,48]}}", 48,
         MD_ERR_SHAPE, "'fc.bias' is F64[3] in the file and F32[2] in the model"},
        {"{" W "," M ",\"fc.bias\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[24,32]}}", 32,
         MD_ERR_SHAPE, "'fc.bias' is I32[2] in the file and F32[2] in the model"},
        {"{" W "," M ",\"fc.bias\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[24,32]}}",
         35, MD_ERR_SHAPE, "'fc.bias' is F32[1, 2] in the file and F32[2] in the model"},
        {"{" W "," M ",\"fc.bias\":{\"dtype\":\"X9\",\"shape\":[2],\"data_offsets\":[24,32]}}", 35,
         MD_ERR_SHAPE, "unknown type"},
        /* offsets */
        {"{" W "," B ",\"fc.mask\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[31,34]}}", 34,
         MD_ERR_FORMAT, "overlap or leave gaps"},
        {"{" W "," B ",\"fc.mask\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[33,36]}}", 36,
         MD_ERR_FORMAT, "overlap or leave gaps"},
        {"{" W "," B ",\"fc.mask\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[32,36]}}", 36,
         MD_ERR_FORMAT, "offsets that do not fit"},
        {"{" W "," B ",\"fc.mask\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[35,32]}}", 35,
         MD_ERR_FORMAT, "offsets that do not fit"},
        {"{" W "," B "," M "}", 34, MD_ERR_READ, "cut short"},
        {"{" W "," B "," M "}", 36, MD_ERR_FORMAT, "goes on behind its data"},
        {"{" W "," B ",\"fc.mask\":{\"dtype\":\"U8\",\"shape\":[9223372036854775807,3],\"data_"
         "offsets\":[32,35]}}",
         35, MD_ERR_SHAPE, "in the model"},
        /* JSON */
        {"", 0, MD_ERR_FORMAT, "must be a JSON object"},
        {"[]", 0, MD_ERR_FORMAT, "must be a JSON object"},
        {"{\"__metadata__\":{\"a\":1}," W "," B "," M "}", 35, MD_ERR_FORMAT,
         "a string was expected"},
        {"{\"__metadata__\":{\"a\":\"b\"\"c\"}," W "," B "," M "}", 35, MD_ERR_FORMAT,
         "',' was expected"},
        {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24],\"x\":1}}", 24,
         MD_ERR_FORMAT, "a tensor has dtype, shape"},
        {"{" W "," B "," M "}x", 35, MD_ERR_FORMAT, "behind the header's end"},
        {"{" W "," B "," M ",}", 35, MD_ERR_FORMAT, "a string was expected"},
        {"{" W " " B "}", 35, MD_ERR_FORMAT, "',' was expected"},
        {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,3]}}", 24, MD_ERR_FORMAT,
         "needs dtype, shape"},
        {"{\"fc.weight\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,"
         "24]}}",
         24, MD_ERR_FORMAT, "a key stands twice"},
        {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,3.0],\"data_offsets\":[0,24]}}", 24,
         MD_ERR_FORMAT, "whole numbers"},
        {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,-3],\"data_offsets\":[0,24]}}", 24,
         MD_ERR_FORMAT, "whole number"},
        {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[02,3],\"data_offsets\":[0,24]}}", 24,
         MD_ERR_FORMAT, "whole number"},
        {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,99999999999999999999],\"data_offsets\":[0,"
         "24]}}",
         24, MD_ERR_FORMAT, "too large"},
        {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,6],\"data_offsets\":"
         "[0,24]}}",
         24, MD_ERR_FORMAT, "too long"},
        {"{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[24]}}", 24,
         MD_ERR_FORMAT, "two data_offsets"},
        {"{\"a\\u0000\":{}}", 0, MD_ERR_FORMAT, "a NUL"},
        {"{\"a\\ud800\":{}}", 0, MD_ERR_FORMAT, "surrogate"},
        {"{\"a\\x\":{}}", 0, MD_ERR_FORMAT, "unknown escape"},
        {"{\"a\n\":{}}", 0, MD_ERR_FORMAT, "control character"},
        {"{\"abc", 0, MD_ERR_FORMAT, "does not end"},
        {"{\"__metadata__\":[]}", 0, MD_ERR_FORMAT, "an object was expected"},
    };
    World *w = world_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char params[PARAMS], before[STATE];
        world_file(w, cases[i].header, cases[i].data);
        memset(w->regions.params, 1, PARAMS);
        memset(w->regions.state, 2, STATE);
        memcpy(params, w->regions.params, PARAMS);
        memcpy(before, w->regions.state, STATE);
        int code = world_load(w, MD_SAVE_PARAMS);
        if (code != cases[i].code || strstr(w->text, cases[i].text) == NULL) {
            fail_msg("case %zu: code %d, '%s'", i, code, w->text);
        }
        if (code == MD_OK) {
            assert_int_equal(w->regions.params[0], 7);
            assert_int_equal(w->regions.params[66], 7);
            assert_int_equal(w->regions.params[67], 1);
        } else {
            assert_memory_equal(w->regions.params, params, PARAMS);
        }
        assert_memory_equal(w->regions.state, before, STATE); /* statistics are optional */
    }
    free(w);
}

/* A reader that ends early is told apart from a file that is none, in the header too. */
static void test_cut_short(void **state) {
    (void)state;
    World *w = world_new();
    world_file(w, "{" W "," B "," M "}", 35);
    const size_t whole = w->mem.size;
    for (size_t size = 0; size < whole; size++) {
        w->mem.size = size;
        if (world_load(w, MD_SAVE_PARAMS) != MD_ERR_READ) {
            fail_msg("%zu bytes of %zu: '%s'", size, whole, w->text);
        }
    }
    free(w);
}

/* All faults stand in one message. */
static void test_all_at_once(void **state) {
    (void)state;
    World *w = world_new();
    world_file(w,
               "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
               "\"fc.bias\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
               12);
    assert_int_equal(world_load(w, MD_SAVE_PARAMS), MD_ERR_NAME);
    assert_string_equal(
        w->text, "unknown tensor 'a'; tensor 'fc.bias' is F32[1] in the file and F32[2] in the "
                 "model; tensor 'fc.weight' is missing; tensor 'fc.mask' is missing");
    free(w);
}

/* Ten of many faults are told, then how many more there are, however long the names. */
static void test_too_many(void **state) {
    (void)state;
    World *w = world_new();
    char header[8000];
    size_t used = 0;
    header[used++] = '{';
    for (int i = 0; i < 25; i++) {
        memset(header + used, 'x', 250);
        used += (size_t)sprintf(header + used, "%s\"%02d", i > 0 ? "," : "", i);
        header[used] = 'x';
        used += 200;
        used += (size_t)sprintf(header + used,
                                "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}", i,
                                i + 1);
    }
    header[used++] = '}';
    header[used] = 0;
    world_file(w, header, 25);
    assert_int_equal(world_load(w, MD_SAVE_PARAMS), MD_ERR_NAME);
    assert_string_equal(w->text + strlen(w->text) - 13, "; and 18 more");
    assert_non_null(strstr(w->text, "unknown tensor '00x"));
    free(w);
}

/* Damaged files never crash and change nothing unless they are accepted; the seed is fixed. */
static void test_damage(void **state) {
    (void)state;
    World *w = world_new();
    unsigned char good[8192];
    uint32_t random = 1;
    assert_int_equal(world_save(w, MD_SAVE_ALL), MD_OK);
    size_t size = w->mem.size;
    memcpy(good, w->file, sizeof good);
    for (int round = 0; round < 20000; round++) {
        unsigned char params[PARAMS];
        memcpy(w->file, good, sizeof good);
        w->mem.size = size;
        for (int k = 0; k < 1 + round % 3; k++) {
            random = random * 1664525u + 1013904223u;
            size_t at = (random >> 8) % size;
            random = random * 1664525u + 1013904223u;
            w->file[at] = round % 2 == 0
                              ? (unsigned char)(random >> 16)
                              : (unsigned char)"{}[]\",:0123456789 \\u"[(random >> 16) % 20];
        }
        if (round % 7 == 0) {
            w->mem.size = (random >> 4) % size;
        }
        memset(w->regions.params, 9, PARAMS);
        memcpy(params, w->regions.params, PARAMS);
        if (world_load(w, MD_SAVE_ALL) != MD_OK) {
            assert_memory_equal(w->regions.params, params, PARAMS);
            assert_true(w->text[0] != 0);
        }
    }
    free(w);
}

/* A part of a file into a part of the model: what is beside it may be anything. */
static void test_part(void **state) {
    (void)state;
    World *w = world_new();
    md_text message = md_text_make(w->text, sizeof w->text);
    assert_int_equal(world_save(w, MD_SAVE_PARAMS), MD_OK);
    regions_fill(&w->regions, 0);
    assert_int_equal(md_load_noted(table, TENSORS, &w->regions.memory, MD_SAVE_PARAMS, "fc.bias,bn",
                                   w->seen, NULL, memory_read, &w->mem, &message),
                     MD_OK);
    for (size_t i = 0; i < TENSORS; i++) {
        int wanted = strcmp(table[i].name, "fc.bias") == 0 || strncmp(table[i].name, "bn.", 3) == 0;
        const char *at = md_slice_data(&table[i], 0, &w->regions.memory);
        assert_int_equal(w->seen[i], wanted);
        assert_true(table[i].dtype == MD_BOOL || (at[0] != 0) == wanted);
    }
    /* A path is no beginning of a word; what is wanted must be there. */
    world_file(w, "{\"other\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4);
    assert_int_equal(md_load_noted(table, TENSORS, &w->regions.memory, MD_SAVE_PARAMS, "f,fc.bia",
                                   w->seen, NULL, memory_read, &w->mem, &message),
                     MD_OK);
    assert_int_equal(md_load_noted(table, TENSORS, &w->regions.memory, MD_SAVE_PARAMS, "fc.bias",
                                   w->seen, NULL, memory_read, &w->mem, &message),
                     MD_ERR_NAME);
    assert_non_null(strstr(message.at, "'fc.bias' is missing"));
    free(w);
}

/* Nothing is stored behind the last place of a list, whatever stands there in the file. */
static void test_lists(void **state) {
    (void)state;
    static const char *const texts[] = {"[1,2,]", "[1,2,x]", "[1,2,01]", "[1,2,3]", "[1,2,-3]"};
    World *w = world_new();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        uint64_t out[3] = {9, 9, 9};
        md_json json;
        w->mem.size = strlen(texts[i]);
        memcpy(w->file, texts[i], w->mem.size);
        md_json_start(&json, memory_read, &w->mem, 0, w->mem.size);
        assert_int_equal(md_json_integers(&json, out, 2), 2);
        assert_non_null(json.why);
        assert_int_equal(out[2], 9);
    }
    free(w);
}

/* What the file has, over what is there: nothing must be in it, but all of it must be known. */
static void test_some(void **state) {
    (void)state;
    World *w = world_new();
    md_text message = md_text_make(w->text, sizeof w->text);
    unsigned what = MD_SAVE_PARAMS | MD_LOAD_SOME;
    w->mem.size = 0;
    assert_int_equal(md_save_tensors(table, TENSORS, &w->regions.memory, MD_SAVE_PARAMS, "fc.bias",
                                     NULL, memory_write, &w->mem),
                     MD_OK);
    regions_fill(&w->regions, 0);
    assert_int_equal(md_load_noted(table, TENSORS, &w->regions.memory, what, NULL, w->seen, NULL,
                                   memory_read, &w->mem, &message),
                     MD_OK);
    for (size_t i = 0; i < TENSORS; i++) {
        int wanted = strcmp(table[i].name, "fc.bias") == 0;
        const char *at = md_slice_data(&table[i], 0, &w->regions.memory);
        assert_int_equal(w->seen[i], wanted);
        assert_true(table[i].dtype == MD_BOOL || (at[0] != 0) == wanted);
    }
    world_file(w, "{\"other\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4);
    assert_int_equal(md_load_noted(table, TENSORS, &w->regions.memory, what, NULL, w->seen, NULL,
                                   memory_read, &w->mem, &message),
                     MD_ERR_NAME);
    assert_non_null(strstr(message.at, "unknown tensor 'other'"));
    free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_layout),
        cmocka_unit_test(test_write_fails), cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_slots),       cmocka_unit_test(test_weights_of_a_checkpoint),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_all_at_once), cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_damage),      cmocka_unit_test(test_part),
        cmocka_unit_test(test_lists),       cmocka_unit_test(test_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
