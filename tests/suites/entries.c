/* entries: a program that calls the entries of entries.mdl and looks at the stored bytes: what
 * second parameter sets begin as, which entry changes which, and what files carry of them. Built by
 * entries.sh against entries.h; prints what went wrong. */
#include "entries.h"
#include "tests/memory_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 8, FILE_BYTES = 1 << 16, MOST = 64 };

static int wrong;

static void expect(int truth, const char *what) {
    if (!truth) {
        printf("wrong: %s\n", what);
        wrong = 1;
    }
}

static _Alignas(ENTRIES_ALIGN) unsigned char params[ENTRIES_PARAMS_BYTES],
    state[ENTRIES_STATE_BYTES], io[ENTRIES_IO_BYTES], arena[ENTRIES_ARENA_BYTES];

/* All floats of the tensors whose name begins so, one behind the other. */
typedef struct {
    int n;
    float at[256];
} floats;

static floats read_set(const char *prefix, const char *part) {
    floats set = {0};
    size_t count;
    const md_tensor *t = entries_tensors(&count);
    for (size_t i = 0; i < count; i++) {
        const char *name = t[i].name;
        if (strncmp(name, prefix, strlen(prefix)) == 0 && strstr(name, part) != NULL &&
            (prefix[0] != 0 || strncmp(name, "mdlc.", 5) != 0) && t[i].dtype == MD_F32) {
            memcpy(&set.at[set.n], (t[i].region == MD_PARAMS ? params : state) + t[i].offset,
                   t[i].bytes);
            set.n += (int)(t[i].bytes / sizeof(float));
        }
    }
    return set;
}

static int same(floats a, floats b) {
    return a.n == b.n && a.n > 0 && memcmp(a.at, b.at, sizeof(float) * (size_t)a.n) == 0;
}

/* Is `got` what lerp(from, to, t) gives, to rounding? */
static int between(floats got, floats from, floats to, float t) {
    for (int i = 0; i < got.n; i++) {
        float want = from.at[i] + t * (to.at[i] - from.at[i]);
        if (fabsf(got.at[i] - want) > 1e-6f * (1 + fabsf(want))) {
            return 0;
        }
    }
    return got.n == from.n && got.n > 0;
}

static float obs[ROWS * 4], reward[ROWS];
static int32_t act[ROWS];

static void learn(entries *m) {
    entries_learn_in in = {.obs = obs, .act = act, .reward = reward};
    entries_learn_out out;
    expect(entries_learn(m, &in, &out) == 0, "learn");
    expect(isfinite(out.loss), "the loss of learn");
}

static void check_files(entries *m) {
    static unsigned char room[2][FILE_BYTES];
    MemoryFile weights = {.data = room[0], .room = room[0], .most = FILE_BYTES};
    MemoryFile all = {.data = room[1], .room = room[1], .most = FILE_BYTES};
    floats avg = read_set("mdlc.avg.", ""), q = read_set("", "");
    expect(entries_save(m, ENTRIES_SAVE_PARAMS, memory_write, &weights) == 0, "saving weights");
    expect(entries_save(m, ENTRIES_SAVE_ALL, memory_write, &all) == 0, "saving everything");
    expect(entries_init(m, 99) == 0, "init with another seed");
    expect(!same(read_set("", ""), q), "another seed draws other weights");
    expect(entries_load(m, memory_read, &weights) == 0, "loading weights");
    expect(same(read_set("", ""), q), "weights come back");
    expect(same(read_set("mdlc.avg.", ""), q) && same(read_set("mdlc.target.", ""), q),
           "second sets begin as loaded weights");
    expect(entries_load(m, memory_read, &all) == 0, "loading everything");
    expect(same(read_set("mdlc.avg.", ""), avg), "a checkpoint has second sets of its own");
}

/* ---- rings ---------------------------------------------------------------------------------- */

enum { CAPACITY = 5 };

/* The ring as it should be: row i was the i-th push, most[i % CAPACITY]. */
typedef struct {
    long pushed;
    float x[CAPACITY][2];
    int32_t k[CAPACITY];
    unsigned char flag[CAPACITY];
} mirror;

static void remember(mirror *r, const float *x, int32_t k, int flag) {
    long at = r->pushed++ % CAPACITY;
    memcpy(r->x[at], x, sizeof r->x[at]);
    r->k[at] = k;
    r->flag[at] = (unsigned char)flag;
}

static void check_held(entries *m, const mirror *r) {
    entries_held_out out;
    expect(entries_held(m, &out) == 0, "held");
    expect(out.n == (r->pushed < CAPACITY ? r->pushed : CAPACITY), "the count of a ring");
    expect(memcmp(out.x, r->x, sizeof r->x) == 0 && memcmp(out.k, r->k, sizeof r->k) == 0 &&
               memcmp(out.flag, r->flag, sizeof r->flag) == 0,
           "the rows of a ring");
}

/* A sample has rows that are there, and many samples have all of them. */
static void check_samples(entries *m, const mirror *r) {
    int seen[CAPACITY] = {0}, all = 1;
    for (int round = 0; round < 50; round++) {
        entries_some_out out;
        expect(entries_some(m, &out) == 0, "some");
        for (int i = 0; i < 4; i++) {
            int at = 0;
            while (at < CAPACITY && (memcmp(r->x[at], out.x + 2 * i, sizeof r->x[at]) != 0 ||
                                     r->k[at] != out.k[i])) {
                at++;
            }
            expect(at < CAPACITY, "a sampled row is in the ring");
            seen[at < CAPACITY ? at : 0]++;
        }
    }
    for (int i = 0; i < CAPACITY; i++) {
        all = all && seen[i] > 15 && seen[i] < 75; /* 40 expected, 5.7 standard deviation */
    }
    expect(all, "all rows are drawn, about equally often");
}

static void check_rings(entries *m) {
    static unsigned char room[FILE_BYTES];
    MemoryFile file = {.data = room, .room = room, .most = FILE_BYTES};
    mirror r = {.k = {1, 1, 1, 1, 1}};
    check_held(m, &r);
    entries_from_rows_out trained;
    for (int i = 0; i < 12; i++) {
        entries_some_out out;
        int enough = r.pushed >= 4;
        expect(entries_some(m, &out) == (enough ? ENTRIES_OK : ENTRIES_ERR_STATE),
               "a sample wants its rows");
        expect(entries_from_rows(m, &trained) == (enough ? ENTRIES_OK : ENTRIES_ERR_STATE),
               "a train wants its rows");
        entries_put_in in = {.x = (float[2]){(float)i, 0.5f}, .k = 1 + i % 8, .flag = i % 2};
        expect(entries_put(m, &in) == 0, "put");
        remember(&r, in.x, in.k, in.flag);
        check_held(m, &r);
        if (i % 3 == 0) {
            float x[3][2] = {{10.f * (float)i, 1}, {20.f * (float)i, 2}, {30.f * (float)i, 3}};
            int32_t k[3] = {2, 3, 4};
            entries_put3_in three = {.x = x[0], .k = k};
            expect(entries_put3(m, &three) == 0, "put3");
            for (int n = 0; n < 3; n++) {
                remember(&r, x[n], k[n], n != 1);
            }
            check_held(m, &r);
        }
    }
    entries_put_in wrong_k = {.x = (float[2]){0, 0}, .k = 9};
    expect(entries_put(m, &wrong_k) == ENTRIES_ERR_RANGE, "a row outside its range");
    check_held(m, &r);
    entries_put_in wrong_flag = {.x = (float[2]){0, 0}, .k = 1, .flag = 2};
    expect(entries_put(m, &wrong_flag) == ENTRIES_ERR_RANGE, "a bool that is neither 0 nor 1");
    check_held(m, &r);
    check_samples(m, &r);

    entries_swap_in swap = {.x = (float[2]){-1, -2}};
    entries_swap_out swapped;
    float first[2] = {r.x[0][0], r.x[0][1]};
    for (int i = 0; i < CAPACITY; i++) {
        expect(entries_swap(m, &swap, &swapped) == 0, "swap");
        expect(swapped.n == CAPACITY && (i > 0 || memcmp(swapped.first, first, sizeof first) == 0),
               "a call reads what was there before its push");
        remember(&r, swap.x, 1, 0);
        first[0] = r.x[0][0];
    }
    check_held(m, &r);

    expect(entries_save(m, ENTRIES_SAVE_ALL, memory_write, &file) == 0, "saving without rings");
    size_t without = file.size;
    mirror later = r;
    entries_put_in in = {.x = (float[2]){7, 7}, .k = 7};
    expect(entries_put(m, &in) == 0, "put");
    remember(&later, in.x, in.k, 0);
    expect(entries_load(m, memory_read, &file) == 0, "loading without rings");
    check_held(m, &later);
    file.size = 0;
    expect(entries_save(m, ENTRIES_SAVE_ALL | ENTRIES_SAVE_RINGS, memory_write, &file) == 0 &&
               file.size > without,
           "saving with rings");
    expect(entries_init(m, 3) == 0, "init");
    check_held(m, &(mirror){.k = {1, 1, 1, 1, 1}});
    expect(entries_load(m, memory_read, &file) == 0, "loading with rings");
    check_held(m, &later);
    expect(entries_save(m, ENTRIES_SAVE_PARAMS | ENTRIES_SAVE_RINGS, memory_write, &file) ==
               ENTRIES_ERR_ARGUMENT,
           "weights with rings are no checkpoint");

    /* A checkpoint whose sum is right, but whose numbers would lead out of memory. */
    static const struct {
        const char *name;
        int64_t value;
    } wrong[] = {
        {"mdlc.rows.count", -5}, {"mdlc.rows.k", 0}, {"mdlc.rows.k", 9}, {"mdlc.learn.step", -1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        size_t count, at = 0;
        const md_tensor *t = entries_tensors(&count);
        while (at + 1 < count && strcmp(t[at].name, wrong[i].name) != 0) {
            at++;
        }
        unsigned char *place = state + t[at].offset, kept[8];
        size_t width = t[at].dtype == MD_I64 ? 8 : 4;
        memcpy(kept, place, width);
        memcpy(place, &wrong[i].value, width);
        file.size = 0;
        expect(entries_save(m, ENTRIES_SAVE_ALL | ENTRIES_SAVE_RINGS, memory_write, &file) == 0,
               "saving what is wrong");
        memcpy(place, kept, width);
        expect(entries_load(m, memory_read, &file) == ENTRIES_ERR_RANGE, wrong[i].name);
        check_held(m, &later);
    }
}

/* Is the row in the ring? */
static int ring_has(entries *m, const float *row) {
    entries_held_out held;
    int found = 0;
    expect(entries_held(m, &held) == 0, "what the ring holds");
    for (int i = 0; i < CAPACITY; i++) {
        found = found || memcmp(held.x + i * 2, row, sizeof(float) * 2) == 0;
    }
    return found;
}

/* 32 is halved five times to 1, 33 is more than that. */
static void check_limits(entries *m) {
    static const float rows[3][2] = {{32, 3}, {3, 33}, {0.5f, 1}};
    static const float ends[3][2] = {{1, 0.09375f}, {0.09375f, 1.03125f}, {0.5f, 1}};
    entries_halve_out out = {.n = 0};
    for (int i = 0; i < 3; i++) {
        entries_halve_in in = {.x = rows[i]};
        int fits = i != 1;
        expect(!ring_has(m, ends[i]), "the row is not there before");
        expect(entries_halve(m, &in, &out) == (fits ? ENTRIES_OK : ENTRIES_ERR_LIMIT),
               "a loop that meets its maximum ends the call");
        expect(!fits || (out.n == (i > 0) + 1 && memcmp(out.y, ends[i], sizeof ends[i]) == 0),
               "a loop ends by itself");
        expect(ring_has(m, ends[i]) == fits, "what a loop gives is pushed, and nothing else");
    }
    entries_shrink_in in = {.obs = obs, .x = 33};
    entries_shrink_out loss;
    floats before = read_set("", "");
    expect(entries_shrink(m, &in, &loss) == ENTRIES_ERR_LIMIT, "in a train too");
    expect(same(read_set("", ""), before), "which updates nothing");
    in.x = 32;
    expect(entries_shrink(m, &in, &loss) == ENTRIES_OK, "and goes on behind it");
    expect(!same(read_set("", ""), before), "with an update");
}

int main(void) {
    static entries m;
    entries_memory memory = {.params = params,
                             .state = state,
                             .io = io,
                             .arena = arena,
                             .params_bytes = sizeof params,
                             .state_bytes = sizeof state,
                             .io_bytes = sizeof io,
                             .arena_bytes = sizeof arena};
    expect(entries_bind(&m, &memory) == 0 && entries_init(&m, 1) == 0, "bind and init");
    for (int i = 0; i < ROWS * 4; i++) {
        obs[i] = (float)(i * 7 % 11) / 11 - 0.4f;
    }
    for (int i = 0; i < ROWS; i++) {
        act[i] = i % 2;
        reward[i] = (float)i / ROWS;
    }
    floats start = read_set("", "");
    expect(same(read_set("mdlc.target.", ""), start) && same(read_set("mdlc.avg.", ""), start),
           "second sets begin as the model");

    learn(&m);
    floats q = read_set("", "weight"), before = read_set("mdlc.avg.", "weight");
    expect(same(read_set("mdlc.target.", ""), start), "no gradient reaches the target");
    expect(between(before, read_set("mdlc.target.", "weight"), q, 0.1f), "ema after one update");
    expect(same(read_set("mdlc.avg.", "running"), read_set("norm.running", "")),
           "statistics of an average follow the model's");
    learn(&m);
    expect(between(read_set("mdlc.avg.", "weight"), before, read_set("", "weight"), 0.1f),
           "ema after two updates");

    entries_soft_in soft = {.tau = entries_soft_DEFAULT_tau};
    floats half = read_set("mdlc.target.", "");
    expect(entries_soft(&m, &soft) == 0, "soft");
    expect(between(read_set("mdlc.target.", ""), half, read_set("", ""), 0.5f), "lerp of all");
    expect(entries_sync(&m) == 0 && same(read_set("mdlc.target.", ""), read_set("", "")), "sync");

    floats other = read_set("mdlc.target.l2.", "");
    expect(entries_part(&m) == 0, "part");
    floats twice = read_set("l1.", ""), got = read_set("mdlc.target.l1.", "");
    for (int i = 0; i < twice.n; i++) {
        twice.at[i] *= 2;
    }
    expect(same(got, twice), "a part is assigned");
    expect(same(read_set("mdlc.target.l2.", ""), other), "what is beside the part is not");

    entries_follow_in follow = {.obs = obs};
    entries_follow_out follow_out;
    floats target = read_set("mdlc.target.", "weight"), l1 = read_set("l1.", "");
    q = read_set("", "weight");
    expect(entries_follow(&m, &follow, &follow_out) == 0, "follow");
    expect(between(read_set("mdlc.target.", "weight"), target, q, 0.25f), "lerp in a train");
    expect(same(read_set("l1.", ""), l1), "a train moves its part alone");

    entries_both_in in = {.obs = obs};
    entries_both_out out;
    expect(entries_both(&m, &in, &out) == 0, "both");
    expect(memcmp(out.a, out.b, sizeof(float) * ROWS * 2) != 0, "the sets give other results");
    check_files(&m);
    expect(entries_publish(&m) == 0 && same(read_set("", ""), read_set("mdlc.avg.", "")),
           "the average becomes the model");
    expect(entries_both(&m, &in, &out) == 0 && memcmp(out.a, out.c, sizeof(float) * ROWS * 2) == 0,
           "equal sets give equal results");
    check_rings(&m);
    check_limits(&m);
    return wrong;
}
