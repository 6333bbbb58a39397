/* Weights: what is refused changes no byte; what is taken changes the bytes of its tensors alone,
 * tiles its data, and comes back the same when it is saved and loaded again. */
#define _GNU_SOURCE
#include "runtime/load.h"
#include "tests/fuzz/readers.h"
#include "tests/memory_file.h"
#include "tests/small_weights.h"

enum { INTERVALS = 256, SAVED = 4096 };

static unsigned char saved[2][SAVED];
static size_t saved_size[2];

static void save(const Regions *r, unsigned what, int which) {
    MemoryFile m = {.room = saved[which], .most = SAVED};
    if (md_save_tensors(table, TENSORS, &r->memory, what, NULL, NULL, memory_write, &m) != MD_OK) {
        finding("not saved");
    }
    saved_size[which] = m.size;
}

static int load(Regions *r, unsigned what, unsigned char *seen, const uint8_t *data, size_t size) {
    MemoryFile m = {.data = data, .size = size};
    md_text message = reader_message();
    int code = md_load_noted(table, TENSORS, &r->memory, what, NULL, seen, NULL, memory_read, &m,
                             &message);
    if ((code == MD_OK) != (message.used == 0)) {
        finding("code %d", code);
    }
    return code;
}

static int by_begin(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (x[0] > y[0]) - (x[0] < y[0]);
}

/* Walks the header once more, for its intervals alone. */
static void tiles(const uint8_t *data, size_t size) {
    static uint64_t interval[INTERVALS][2];
    static md_load l;
    uint64_t at = 0;
    size_t n = 0;
    MemoryFile m = {.data = data, .size = size};
    l = (md_load){.header = reader_word(data, 8, 0)};
    md_json_start(&l.json, memory_read, &m, 8, 8 + l.header);
    md_json_expect(&l.json, '{', "an object");
    while (md_load_head(&l)) {
        if (l.head.type != NULL && l.head.end > l.head.begin) {
            if (n == INTERVALS) {
                return;
            }
            interval[n][0] = l.head.begin;
            interval[n++][1] = l.head.end;
        }
    }
    qsort(interval, n, sizeof interval[0], by_begin);
    for (size_t i = 0; i < n; i++) {
        if (interval[i][0] != at) {
            finding("tensors overlap or leave a gap at %llu", (unsigned long long)at);
        }
        at = interval[i][1];
    }
    if (8 + l.header + at != size) {
        finding("the file does not end with its data");
    }
}

static void check(const uint8_t *data, size_t size, unsigned what) {
    static Regions a, b, other;
    unsigned char seen[TENSORS], again[TENSORS];
    regions_fill(&a, 0x11);
    int code = load(&a, what, seen, data, size);
    regions_fill(&other, 0x22);
    int second = load(&other, what, again, data, size);
    regions_fill(&b, 0x11);
    if (code != second) {
        finding("code %d, then %d", code, second);
    }
    if (code != MD_OK) {
        if (memcmp(a.params, b.params, PARAMS) != 0 || memcmp(a.state, b.state, STATE) != 0) {
            finding("refused, but something was written");
        }
        return;
    }
    tiles(data, size);
    for (size_t i = 0; i < TENSORS; i++) {
        const md_tensor *t = &table[i];
        char *x = md_slice_data(t, 0, &a.memory), *before = md_slice_data(t, 0, &b.memory);
        int wanted = (what >> (unsigned)t->kind & 1u) != 0 && seen[i];
        if (memcmp(x, wanted ? md_slice_data(t, 0, &other.memory) : before, t->bytes) != 0) {
            finding("tensor '%s'", t->name);
        }
        memcpy(x, before, t->bytes);
    }
    if (memcmp(a.params, b.params, PARAMS) != 0 || memcmp(a.state, b.state, STATE) != 0) {
        finding("written between the tensors");
    }
    load(&a, what, seen, data, size);
    save(&a, what, 0);
    if (load(&b, what, seen, saved[0], saved_size[0]) != MD_OK) {
        finding("saved, but not loaded again");
    }
    save(&b, what, 1);
    if (saved_size[0] != saved_size[1] || memcmp(saved[0], saved[1], saved_size[0]) != 0) {
        finding("load and save change bytes");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check(data, size, MD_SAVE_PARAMS);
    check(data, size, MD_SAVE_ALL);
    return 0;
}
