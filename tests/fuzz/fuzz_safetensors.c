/* Weights: what is refused changes no byte; what is taken changes the bytes of its tensors alone,
 * tiles its data, and comes back the same when it is saved and loaded again. */
#define _GNU_SOURCE
#include "tests/fuzz/readers.h"

enum { PARAMS = 192, STATE = 128, INTERVALS = 256, SAVED = 4096 };

static const md_tensor table[] = {
    {"fc.weight", MD_F32, MD_PARAMS, MD_PARAM, 1, 2, {2, 3}, 0, 24, 0},
    {"fc.mask", MD_BOOL, MD_PARAMS, MD_PARAM, 0, 1, {3}, 64, 3, 0},
    {"fc.bias", MD_F32, MD_PARAMS, MD_PARAM, 1, 1, {2}, 128, 8, 0},
    {"bn.running_mean", MD_F32, MD_STATE, MD_LAYER_STATE, 0, 1, {2}, 0, 8, 0},
    {"mdlc.fit.step", MD_I64, MD_STATE, MD_SLOT, 0, 0, {0}, 64, 8, 0},
};
enum { TENSORS = sizeof table / sizeof *table };

typedef struct {
    const uint8_t *data;
    size_t size;
} Mem;

static int mem_read(void *user, uint64_t offset, void *to, size_t bytes) {
    const Mem *m = user;
    if (offset > m->size || bytes > m->size - offset) {
        return 1;
    }
    memcpy(to, m->data + offset, bytes);
    return 0;
}

typedef struct {
    _Alignas(64) uint8_t params[PARAMS];
    _Alignas(64) uint8_t state[STATE];
    md_memory memory;
} Regions;

static void regions_fill(Regions *r, int value) {
    memset(r->params, value, PARAMS);
    memset(r->state, value, STATE);
    r->memory.params = r->params;
    r->memory.state = r->state;
}

static uint8_t saved[2][SAVED];
static size_t saved_size[2];

static int mem_write(void *user, const void *data, size_t bytes) {
    int which = *(const int *)user;
    if (saved_size[which] + bytes > SAVED) {
        return 1;
    }
    memcpy(saved[which] + saved_size[which], data, bytes);
    saved_size[which] += bytes;
    return 0;
}

static void save(const Regions *r, unsigned what, int which) {
    saved_size[which] = 0;
    if (md_save_tensors(table, TENSORS, &r->memory, what, mem_write, &which) != MD_OK) {
        finding("not saved");
    }
}

static int load(Regions *r, unsigned what, unsigned char *seen, const uint8_t *data, size_t size) {
    Mem m = {data, size};
    md_text message = reader_message();
    int code = md_load_tensors(table, TENSORS, &r->memory, what, seen, mem_read, &m, &message);
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
    uint64_t members = 0, at = 0;
    int metadata = 0;
    size_t n = 0;
    Mem m = {data, size};
    l = (md_load){.read = mem_read, .user = &m, .header = reader_word(data, 8, 0)};
    md_load_rewind(&l);
    while (md_load_head(&l, &members, &metadata)) {
        if (l.head.end > l.head.begin) {
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
        const char *x = md_tensor_data(t, &a.memory), *y = md_tensor_data(t, &other.memory);
        int wanted = (what >> (unsigned)t->kind & 1u) != 0 && seen[i];
        if (wanted ? memcmp(x, y, t->bytes) != 0 : (unsigned char)x[0] != 0x11) {
            finding("tensor '%s'", t->name);
        }
        memset(md_tensor_data(t, &a.memory), 0x11, wanted ? t->bytes : 0);
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
