/* test_help: shares of a product that are begun unit by unit (runtime/team.h). A worker that stops
 * in its first block until all others are done finds its share done by others, with the same bits;
 * every unit is begun once; what the team's account is told of uneven workers. Workers are threads
 * of POSIX, so that ThreadSanitizer, which knows nothing of GNU's OpenMP, can watch them too
 * (suites/threads.sh). */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/half.h"
#include "runtime/tile_half.h"
#include "runtime/tile_kernel.h"
#include "runtime/tile_plan.h"
#include "tests/support.h"

enum { M = 900, N = 400, K = 60, WORKERS = 3 };

typedef struct {
    md_tile plan;
    pthread_mutex_t lock;
    pthread_t stopped; /* who waits for the others in its first block, */
    int stops, waited; /* if somebody does, and whether it has begun to */
    int64_t left;      /* elements that nobody has finished */
    int64_t own;       /* of them, by who was stopped */
    int half;
} Product;

/* Elements that are finished; gives those that are left. *stops: the caller is who stops. */
static int64_t finish(Product *p, int64_t count, int *stops) {
    pthread_mutex_lock(&p->lock);
    *stops = p->stops && pthread_equal(pthread_self(), p->stopped);
    p->left -= count;
    p->own += *stops ? count : 0;
    const int64_t left = p->left;
    pthread_mutex_unlock(&p->lock);
    return left;
}

static void epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0, int64_t cols,
                     float *strip, int64_t ld) {
    Product *p = (Product *)ctx;
    int stops;
    (void)batch, (void)m0, (void)n0, (void)strip, (void)ld;
    int64_t left = finish(p, rows * cols, &stops);
    if (!stops || p->waited) {
        return;
    }
    p->waited = 1;
    const time_t begin = time(NULL);
    while (left > 0 && time(NULL) - begin < 60) { /* a minute: nobody helped */
        const struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        left = finish(p, 0, &stops);
    }
}

static void part(const md_tile_call *call, int of) {
    const Product *p = (const Product *)call->ctx;
    if (p->half) {
        md_tile_share_f32(&p->plan, call, of, epilogue, md_tile_block_half, 4, 4, NULL);
    } else {
        md_tile_part_f32(&p->plan, call, of, epilogue);
    }
}

typedef struct {
    const md_tile_call *call;
    int of;
} Worker;

static void *work_of(void *at) {
    const Worker *w = (const Worker *)at;
    part(w->call, w->of);
    return NULL;
}

/* A B for dense operands that are the same in each call, by so many workers. */
static float *product(Product *p, int parts, int units, md_help *help) {
    float *a = (float *)malloc(sizeof *a * M * K), *b = (float *)malloc(sizeof *b * K * N);
    float *c = (float *)calloc((size_t)M * N, sizeof *c);
    const size_t bytes = md_tile_workspace(&p->plan, parts);
    void *memory = malloc(bytes + 64);
    assert_true(a != NULL && b != NULL && c != NULL && memory != NULL);
    for (int i = 0; i < M * K; i++) {
        a[i] = (float)(i % 977 * 7919 % 61 - 30) / 7;
    }
    for (int i = 0; i < K * N; i++) {
        b[i] = (float)(i % 971 * 1047 % 53 - 26) / 9;
    }
    char *work = (char *)memory + (64 - (uintptr_t)memory % 64) % 64;
    md_tile_call call = {a, b, c, p, work, 1, 1, parts, 0, NULL};
    md_tile_grid(&p->plan, &call);
    assert_int_equal(call.parts, parts);
    call.help = units > 0 ? md_help_open(help, parts, units) : NULL;
    p->left = M * N;
    p->own = 0;
    p->waited = 0;
    pthread_t thread[WORKERS];
    Worker worker[WORKERS];
    for (int i = 0; i < parts; i++) {
        worker[i] = (Worker){&call, i};
        pthread_mutex_lock(&p->lock);
        assert_int_equal(pthread_create(&thread[i], NULL, work_of, &worker[i]), 0);
        if (i == 0) {
            p->stopped = thread[i];
        }
        pthread_mutex_unlock(&p->lock);
        while (p->stops && i == 0 && finish(p, 0, &(int){0}) == M * N) {
            sched_yield(); /* the others come when it has finished a block */
        }
    }
    for (int i = 0; i < parts; i++) {
        pthread_join(thread[i], NULL);
    }
    assert_int_equal(p->left, 0);
    free(a);
    free(b);
    free(memory);
    return c;
}

static void check(int half) {
    const md_tile_shape s = {.b1 = 1,
                             .b2 = 1,
                             .m1 = 1,
                             .m2 = M,
                             .n = N,
                             .ko = 1,
                             .k0 = 1,
                             .k1 = 1,
                             .k2 = K,
                             .a_m2 = K,
                             .a_k2 = 1,
                             .b_k2 = N,
                             .b_n = 1,
                             .c_m2 = N,
                             .c_n = 1,
                             .flags = half ? MD_TILE_HALF | MD_TILE_WIDE_A | MD_TILE_WIDE_B : 0};
    Product p = {.plan = md_tile_plan(md_tile_normal(s), 4), .half = half};
    pthread_mutex_init(&p.lock, NULL);
    md_help help;
    float *one = product(&p, 1, 0, NULL);
    for (int units = 1; units < 30; units += 7) {
        float *all = product(&p, WORKERS, units, &help);
        assert_memory_equal(one, all, sizeof *one * M * N);
        free(all);
    }
    p.stops = 1; /* worker 0, in the first unit of many */
    float *stopped = product(&p, WORKERS, 60, &help);
    assert_memory_equal(one, stopped, sizeof *one * M * N);
    printf("  who was stopped did %d of %d elements, in %d of %d units\n", (int)p.own, M * N,
           help.did[0], WORKERS * 60);
    assert_int_equal(help.did[0], 1);
    assert_true(p.own > 0 && p.own < M * N / WORKERS / 2);
    free(stopped);
    free(one);
    pthread_mutex_destroy(&p.lock);
}

static void test_f32(void **state) {
    (void)state;
#if !defined(MD_OPENMP) && !defined(__SANITIZE_THREAD__) /* which shall see what is wrong then */
    skip_because("the C compiler has no OpenMP, whose atomics count");
#endif
    check(0);
}

static void test_half(void **state) {
    (void)state;
#if !defined(MD_OPENMP) && !defined(__SANITIZE_THREAD__)
    skip_because("the C compiler has no OpenMP, whose atomics count");
#endif
    check(1);
}

/* In any order of workers each unit is begun once, own ones in order, others from the end. */
static void test_units(void **state) {
    (void)state;
    uint64_t seed = 7;
    for (int round = 0; round < 2000; round++) {
        md_help help;
        const int parts = 1 + round % 7, units = 1 + round % 23;
        char seen[7 * 23] = {0};
        int of[7], done = 0, ended = 0, front[7] = {0}, back[7];
        assert_ptr_equal(md_help_open(&help, parts, units), &help);
        for (int i = 0; i < parts; i++) {
            of[i] = i;
            back[i] = units;
        }
        while (ended < parts) {
            seed = seed * UINT64_C(6364136223846793005) + 1;
            const int w = (int)((seed >> 33) % (uint64_t)parts), was = of[w];
            const int unit = was < 0 ? -2 : md_help_next(&help, w, &of[w]);
            if (unit == -1) {
                of[w] = -1;
                ended++;
            }
            if (unit < 0) {
                continue;
            }
            assert_int_equal(unit, of[w] == w ? front[w]++ : --back[of[w]]);
            assert_int_equal(seen[of[w] * units + unit]++, 0);
            done++;
        }
        assert_int_equal(done, parts * units);
    }
    md_help help;
    assert_null(md_help_open(&help, MD_HELP_TEAM + 1, 5));
    md_help_open(&help, 2, 1e9);
    assert_int_equal(help.units, MD_HELP_UNITS);
}

/* What the team's account is told: what the shares would have taken those who did most of them. */
static void test_account(void **state) {
    (void)state;
    md_help help;
    md_help_open(&help, 2, 10);
    help.did[0] = 15;
    help.did[1] = 5;
    md_pace pace = {.weight = 1, .first = 30e-6, .last = 30e-6};
    md_help_close(&help, &pace);
    assert_true(fabs(pace.first - 20e-6) < 1e-12 && fabs(pace.last - 60e-6) < 1e-12);
    help.did[0] = 20;
    help.did[1] = 0; /* it came when all was begun: nothing was gained and nothing lost */
    pace = (md_pace){.weight = 1, .first = 400e-6, .last = 1e-7};
    md_help_close(&help, &pace);
    assert_true(fabs(pace.first - 200e-6) < 1e-12 && fabs(pace.last - 200e-6) < 1e-12);
    md_team_weigh(&pace, 2, 400e-6);
    assert_true(pace.debt < 1e-12);
    md_help_close(NULL, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f32),
        cmocka_unit_test(test_half),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_account),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
