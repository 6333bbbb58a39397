/* The allocator against brute force, on intervals of one size, on problems without room to spare
 * and on recorded ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "passes/plan/alloc.h"
#include "passes/plan/alloc_exact.h"
#include "random_program.h"
#include "tests/support.h"

static bool meets(const AllocItem *a, const AllocItem *b) {
    return a->lower < b->upper && b->lower < a->upper;
}

static void assert_apart(const AllocItem *item, int n, const int64_t *offset, int64_t height) {
    for (int i = 0; i < n; i++) {
        assert_true(offset[i] >= 0 && offset[i] + item[i].size <= height);
        for (int k = 0; k < i; k++) {
            assert_true(!meets(&item[i], &item[k]) || offset[i] + item[i].size <= offset[k] ||
                        offset[k] + item[k].size <= offset[i]);
        }
    }
}

/* The least height over all orders of placing each block at its lowest free place. */
static int64_t best_height(const AllocItem *item, int n, int64_t *offset, unsigned placed,
                           int64_t best) {
    int64_t height = 0;
    for (int i = 0; i < n; i++) {
        int64_t top = (placed >> i & 1) ? offset[i] + item[i].size : 0;
        height = top > height ? top : height;
    }
    if (height >= best || placed == (1u << n) - 1) {
        return height < best ? height : best;
    }
    for (int i = 0; i < n; i++) {
        if (placed >> i & 1) {
            continue;
        }
        int64_t at = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (int k = 0; k < n; k++) {
                if ((placed >> k & 1) && meets(&item[i], &item[k]) &&
                    at < offset[k] + item[k].size && offset[k] < at + item[i].size) {
                    at = offset[k] + item[k].size;
                    moved = true;
                }
            }
        }
        offset[i] = at;
        best = best_height(item, n, offset, placed | 1u << i, best);
    }
    return best;
}

static uint64_t setting(const char *name, uint64_t other) {
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 0) : other;
}

/* Problems without a byte to spare: the same number of bytes lives at every time. Here what ends
 * leaves room in several places, and what starts wants other pieces of it, so that the bound is
 * seldom reached. About `live_most` blocks live at once. */
static void fill_apart(uint64_t *random, AllocItem *item, int n, int64_t bytes, int64_t live_most) {
    enum { MOST_LIVE = 256 };
    int live[MOST_LIVE], nlive = 0, count = 0;
    int64_t now = 0, room = bytes, least = bytes / (2 * live_most) + 1;
    while (count < n) {
        while (room > 0 && count < n) {
            int64_t size =
                least + (int64_t)(random_next(random) % (uint64_t)(2 * bytes / live_most));
            size = size > room || room - size < least / 2 ? room : size;
            item[count] = (AllocItem){now, INT64_MAX, size};
            live[nlive++] = count++;
            room -= size;
        }
        now++;
        for (int ends = 1 + (int)(random_next(random) % 3); ends > 0 && nlive > 1; ends--) {
            int at = (int)(random_next(random) % (uint64_t)nlive);
            item[live[at]].upper = now;
            room += item[live[at]].size;
            live[at] = live[--nlive];
        }
    }
    for (int i = 0; i < n; i++) {
        item[i].upper = item[i].upper < now ? item[i].upper : now;
    }
}

/* A rectangle of time and bytes, cut in two at random again and again: it fits into its height, but
 * few placements do. */
static void fill_cut(uint64_t *random, AllocItem *item, int n, int64_t bytes, int64_t times) {
    item[0] = (AllocItem){0, times, bytes};
    for (int count = 1; count < n;) {
        int at = 0;
        for (int tries = 0; tries < 3; tries++) { /* large ones rather than small ones */
            int other = (int)(random_next(random) % (uint64_t)count);
            int64_t area = (item[at].upper - item[at].lower) * item[at].size;
            at = (item[other].upper - item[other].lower) * item[other].size > area || tries == 0
                     ? other
                     : at;
        }
        AllocItem *whole = &item[at];
        int64_t life = whole->upper - whole->lower;
        if (random_next(random) % 2 == 0 && life > 1) {
            int64_t time = whole->lower + 1 + (int64_t)(random_next(random) % (uint64_t)(life - 1));
            item[count] = (AllocItem){time, whole->upper, whole->size};
            whole->upper = time;
            count++;
        } else if (whole->size > 1) {
            int64_t size = 1 + (int64_t)(random_next(random) % (uint64_t)(whole->size - 1));
            item[count++] = (AllocItem){whole->lower, whole->upper, size};
            whole->size -= size;
        }
    }
}

/* Small problems of several shapes; half of them with sizes that share no divisor. */
static int random_problem(uint64_t *random, AllocItem *item, int most) {
    int n = most - (int)(random_next(random) % 4);
    uint64_t span = 3 + random_next(random) % 8, sizes = 2 + random_next(random) % 8;
    for (int i = 0; i < n; i++) {
        int64_t lower = (int64_t)(random_next(random) % span);
        int64_t life = 1 + (int64_t)(random_next(random) % (span / 3 + 2));
        item[i] = (AllocItem){lower, lower + life, (int64_t)(random_next(random) % sizes)};
    }
    return n;
}

static void test_small(void **state) {
    (void)state;
    uint64_t seed = setting("SEED", 1), random = seed;
    int optimal = 0, above = 0, cases = (int)setting("COUNT", 2000);
    double worst = 1;
    for (int round = 0; round < cases; round++) {
        Arena arena = {0};
        enum { MOST = 8 };
        AllocItem item[MOST];
        int n = random_problem(&random, item, MOST);
        int64_t offset[MOST], scratch[MOST];
        int64_t height = alloc_place(&arena, item, n, 100000, offset);
        int64_t bound = alloc_lower_bound(&arena, item, n);
        assert_apart(item, n, offset, height);
        int64_t best = best_height(item, n, scratch, 0, INT64_MAX);
        assert_true(height >= best && best >= bound);
        optimal += height == best;
        above += best > bound;
        double ratio = best > 0 ? (double)height / (double)best : 1;
        worst = ratio > worst ? ratio : worst;
        arena_free(&arena);
    }
    print_message("SEED=%llu: %d of %d optimal, worst ratio %.4f; %d above the bound\n",
                  (unsigned long long)seed, optimal, cases, worst, above);
    assert_true(optimal >= cases - cases / 100 && worst <= 1.1);
}

/* What the search says of a capacity is true, whatever the order of the candidates. */
static void test_fit(void **state) {
    (void)state;
    uint64_t random = setting("SEED", 1) + 77;
    for (int round = 0; round < 500; round++) {
        Arena arena = {0};
        enum { MOST = 6 };
        AllocItem item[MOST];
        int n = random_problem(&random, item, MOST);
        int64_t offset[MOST], scratch[MOST], steps = 1000000;
        for (int i = 0; i < n; i++) {
            item[i].size++;
        }
        int64_t best = best_height(item, n, scratch, 0, INT64_MAX);
        int rule = round % 12;
        assert_int_equal(alloc_fit(&arena, item, n, best, rule, &steps, offset), FIT_FOUND);
        assert_apart(item, n, offset, best);
        assert_int_equal(alloc_fit(&arena, item, n, best - 1, rule, &steps, offset), FIT_NONE);
        steps = 0;
        assert_int_equal(alloc_fit(&arena, item, n, best, rule, &steps, offset), FIT_LIMIT);
        arena_free(&arena);
    }
}

static void test_same_size(void **state) {
    (void)state;
    /* Intervals of one size are coloured optimally by their start. */
    uint64_t random = 7;
    Arena arena = {0};
    enum { N = 300 };
    AllocItem item[N];
    int64_t offset[N];
    for (int i = 0; i < N; i++) {
        int64_t lower = (int64_t)(random_next(&random) % 1000);
        item[i] = (AllocItem){lower, lower + 1 + (int64_t)(random_next(&random) % 90), 64};
    }
    int64_t height = alloc_place(&arena, item, N, 0, offset);
    assert_apart(item, N, offset, height);
    assert_int_equal(height, alloc_lower_bound(&arena, item, N));
    assert_int_equal(alloc_place(&arena, item, 0, 10, offset), 0);
    arena_free(&arena);
}

/* Larger than what is searched to the end: what is found holds, more steps never make it worse, and
 * it stays near the bound. */
static void test_hard(void **state) {
    (void)state;
    uint64_t random = setting("SEED", 1) + 5;
    static const struct {
        int n;
        int64_t steps;
    } size[] = {{60, 300000}, {200, 400000}, {2100, 30000000}};
    enum { MOST = 2100 };
    for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
        Arena arena = {0};
        AllocItem *item = ARENA_ARRAY(&arena, AllocItem, MOST);
        int64_t *offset = ARENA_ARRAY(&arena, int64_t, MOST);
        int n = size[k].n;
        for (int i = 0; i < n; i++) {
            int64_t lower = (int64_t)(random_next(&random) % 40);
            int64_t life = 1 + (int64_t)(random_next(&random) % 20);
            item[i] = (AllocItem){lower, lower + life, 1 + (int64_t)(random_next(&random) % 1000)};
        }
        int64_t bound = alloc_lower_bound(&arena, item, n);
        int64_t first = alloc_place(&arena, item, n, 0, offset);
        assert_apart(item, n, offset, first);
        int64_t height = alloc_place(&arena, item, n, size[k].steps, offset);
        assert_apart(item, n, offset, height);
        print_message("%d blocks: bound %lld, at once %lld, searched %lld\n", n, (long long)bound,
                      (long long)first, (long long)height);
        assert_true(bound <= height && height <= first && height <= bound + bound / 10);
        arena_free(&arena);
    }
}

/* Thousands of blocks: lives of all lengths, those of values that wait for their adjoints, and all
 * at once, which are too many to be held against each other. */
static void test_large(void **state) {
    (void)state;
    enum { MOST = 28000, KINDS = 3 };
    uint64_t seed = setting("SEED", 1), random = seed + 9;
    static const char *const name[KINDS] = {"lives of all lengths", "there and back",
                                            "all at once"};
    for (int kind = 0; kind < KINDS; kind++) {
        Arena arena = {0};
        AllocItem *item = ARENA_ARRAY(&arena, AllocItem, MOST);
        int64_t *offset = ARENA_ARRAY(&arena, int64_t, MOST);
        const int n = kind == 2 ? 9000 : MOST, times = kind == 2 ? 3 : 9000;
        for (int i = 0; i < n; i++) {
            const int64_t size = 1 + (int64_t)(random_next(&random) % 4096);
            int64_t lower = (int64_t)(random_next(&random) % (uint64_t)times), life = 1;
            while (kind == 0 && life < 4096 && random_next(&random) % 8 < 5) {
                life *= 2;
            }
            if (kind == 1 && i % 4 == 0) {
                lower = i / 8;
                life = 9000 - 2 * lower;
            }
            item[i] = (AllocItem){lower, lower + life, size << random_next(&random) % 6};
        }
        const clock_t start = clock();
        const int64_t height = alloc_place(&arena, item, n, ALLOC_STEPS, offset);
        const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        const int64_t bound = alloc_lower_bound(&arena, item, n);
        assert_apart(item, n, offset, height);
        print_message("SEED=%llu: %-20s %d blocks, bound %lld, height %lld, ratio %.4f, %.1f s\n",
                      (unsigned long long)seed, name[kind], n, (long long)bound, (long long)height,
                      (double)height / (double)bound, seconds);
        assert_true(height >= bound && height <= bound + bound / 50);
        arena_free(&arena);
    }
}

/* What the searches reach in so many steps, over all problems of a kind. A change that finds lower
 * placements lowers the numbers; one that makes them higher has to say what is worth it. */
static void test_tight(void **state) {
    (void)state;
    enum { MOST = 200, BYTES = 1000 };
    static const struct {
        const char *what;
        void (*fill)(uint64_t *random, AllocItem *item, int n, int64_t bytes, int64_t parts);
        int problems, n;
        int64_t parts, steps, heights; /* summed: at most */
    } set[] = {
        {"greedy alone", fill_apart, 60, 40, 9, 0, 72710},
        {"few steps", fill_apart, 60, 40, 9, 10000, 66962},
        {"more steps", fill_apart, 60, 40, 9, 50000, 63615},
        {"few blocks at once", fill_apart, 60, 30, 5, 50000, 61050},
        {"long searches", fill_apart, 20, 40, 9, 800000, 20556},
        {"many blocks, orders", fill_apart, 6, 200, 40, 2000000, 6921},
        {"cuts of short lives", fill_cut, 60, 50, 30, 20000, 60441},
        {"cuts of many lengths", fill_cut, 60, 50, 100, 20000, 60533},
    };
    int worse = 0;
    for (size_t k = 0; k < sizeof set / sizeof *set; k++) {
        int64_t heights = 0;
        for (int round = 0; round < set[k].problems; round++) {
            Arena arena = {0};
            AllocItem item[MOST];
            int64_t offset[MOST];
            uint64_t random = 0x9e3779b97f4a7c15u * (uint64_t)(round + 1);
            set[k].fill(&random, item, set[k].n, BYTES, set[k].parts);
            assert_int_equal(alloc_lower_bound(&arena, item, set[k].n), BYTES);
            int64_t height = alloc_place(&arena, item, set[k].n, set[k].steps, offset);
            assert_apart(item, set[k].n, offset, height);
            heights += height;
            arena_free(&arena);
        }
        print_message("%-20s heights %lld, at most %lld\n", set[k].what, (long long)heights,
                      (long long)set[k].heights);
        worse += heights > set[k].heights;
    }
    assert_int_equal(worse, 0);
}

/* Of blocks that nothing tells apart one alone is tried at a place: without that the same wrong
 * turns are taken once for each of a pair, and again for each pair under it. */
static void test_pairs(void **state) {
    (void)state;
    enum { KINDS = 12, BYTES = 1000, CASES = 40, STEPS = 100000 };
    int64_t used = 0;
    for (int round = 0; round < CASES; round++) {
        Arena arena = {0};
        AllocItem item[2 * KINDS];
        int64_t offset[2 * KINDS], left = STEPS;
        uint64_t random = 0x9e3779b97f4a7c15u * (uint64_t)(round + 1);
        fill_apart(&random, item, KINDS, BYTES, 4);
        memcpy(&item[KINDS], item, KINDS * sizeof *item);
        assert_int_equal(alloc_fit(&arena, item, 2 * KINDS, 2 * BYTES, round % 4, &left, offset),
                         FIT_FOUND);
        assert_apart(item, 2 * KINDS, offset, 2 * BYTES);
        used += STEPS - left;
        arena_free(&arena);
    }
    print_message("pairs: %lld steps\n", (long long)used);
    assert_true(used <= 60000);
}

static int read_problem(Arena *arena, const char *path, AllocItem **item) {
    FILE *in = fopen(path, "r");
    if (in == NULL) {
        return -1;
    }
    VEC(AllocItem) all = {0};
    char line[256];
    assert_non_null(fgets(line, sizeof line, in));
    while (fgets(line, sizeof line, in) != NULL) {
        char *at = line;
        int64_t value[4];
        for (int i = 0; i < 4; i++) {
            value[i] = strtoll(at, &at, 10);
            at++;
        }
        VEC_PUSH(arena, &all, ((AllocItem){value[1], value[2], value[3]}));
    }
    fclose(in);
    *item = all.at;
    return all.count;
}

static void test_recorded(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t height; /* at most */
    } problem[] = {
        {"A.1048576.csv", 1048576}, {"B.1048576.csv", 1048576}, {"C.1048576.csv", 1039360},
        {"D.1048576.csv", 1032000}, {"E.1048576.csv", 1048576}, {"somas_resnet50.csv", 1515472556},
    };
    const char *folder = getenv("MDLC_DATA");
    int found = 0, worse = 0;
    for (size_t i = 0; i < sizeof problem / sizeof *problem; i++) {
        Arena arena = {0};
        AllocItem *item;
        char *path = str_printf(&arena, "%s/alloc/%s", folder != NULL ? folder : "../shared/data",
                                problem[i].name);
        int n = read_problem(&arena, path, &item);
        if (n > 0) {
            found++;
            int64_t *offset = ARENA_ARRAY(&arena, int64_t, n);
            clock_t start = clock();
            int64_t height =
                alloc_place(&arena, item, n, (int64_t)setting("STEPS", ALLOC_STEPS), offset);
            double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
            int64_t bound = alloc_lower_bound(&arena, item, n);
            assert_apart(item, n, offset, height);
            print_message("%-20s %4d blocks, bound %10lld, height %10lld, ratio %.4f, %.2f s\n",
                          problem[i].name, n, (long long)bound, (long long)height,
                          (double)height / (double)bound, seconds);
            worse += height > problem[i].height;
        }
        arena_free(&arena);
    }
    if (found == 0) {
        skip_because("no recorded allocation problems in ../shared/data/alloc (MDLC_DATA)");
    }
    assert_int_equal(worse, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),     cmocka_unit_test(test_fit),
        cmocka_unit_test(test_same_size), cmocka_unit_test(test_hard),
        cmocka_unit_test(test_large),     cmocka_unit_test(test_tight),
        cmocka_unit_test(test_pairs),     cmocka_unit_test(test_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
