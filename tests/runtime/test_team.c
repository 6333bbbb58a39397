/* test_team: which loops on several threads make the caller go on alone, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/team.h"

static const double us = 1e-6, ms = 1e-3;

/* A loop whose first and last part take so long, and that is over after `wall`; 1: threads rest. */
static int loop(md_pace *pace, int parts, double first, double last, double wall) {
    pace->weight = 1;
    pace->first = first;
    pace->last = last;
    const double until = pace->until;
    md_team_weigh(pace, parts, pace->fork + wall);
    return pace->until != until;
}

/* Loops that save time never end in a rest, however uneven their parts are. */
static void test_paying(void **state) {
    (void)state;
    md_pace pace = {0};
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(loop(&pace, 2, 10 * us, 11 * us, 14 * us), 0);
        assert_int_equal(loop(&pace, 2, 1 * ms, 3 * ms, 3 * ms + 5 * us), 0);
        assert_int_equal(loop(&pace, 16, 20 * us, 25 * us, 60 * us), 0);
        assert_int_equal(loop(&pace, 2, 20 * ms, 24 * ms, 24 * ms), 0); /* stopped, and it pays */
    }
    assert_true(pace.debt == 0);
}

/* Whoever is stopped, the caller, the last thread or one between them: one slice is enough. */
static void test_stopped(void **state) {
    (void)state;
    const double stopped[][2] = {{4 * ms, 10 * us}, {10 * us, 4 * ms}, {10 * us, 10 * us}};
    for (size_t i = 0; i < sizeof stopped / sizeof *stopped; i++) {
        md_pace pace = {0};
        assert_int_equal(loop(&pace, 4, stopped[i][0], stopped[i][1], 4 * ms), 1);
        assert_true(pace.rest > 60 * ms && pace.rest < 65 * ms);
        assert_true(pace.until == pace.fork + pace.rest);
    }
}

/* Small losses add up: a loop that gains nothing goes to one thread too. */
static void test_overhead(void **state) {
    (void)state;
    md_pace pace = {0};
    int loops = 1;
    while (!loop(&pace, 2, 3 * us, 3 * us, 8 * us)) {
        loops++;
    }
    assert_in_range(loops, 400, 600);
}

/* Each try that loses again doubles the rest, up to the longest. */
static void test_again(void **state) {
    (void)state;
    md_pace pace = {0};
    double before = 0;
    for (int i = 0; i < 12; i++) {
        assert_int_equal(loop(&pace, 2, 10 * us, 10 * us, 4 * ms), 1);
        assert_true(pace.rest >= 2 * before || pace.rest == MD_TEAM_LONG);
        before = pace.rest;
        pace.fork = pace.until;
    }
    assert_true(before == MD_TEAM_LONG);
    /* The machine is idle again: a wait now and then costs a short rest, not the longest. */
    for (int i = 0; i < 100; i++) {
        for (int k = 0; k < 1000; k++) {
            assert_int_equal(loop(&pace, 2, 10 * us, 10 * us, 12 * us), 0);
        }
        assert_int_equal(loop(&pace, 2, 10 * us, 10 * us, 4 * ms), 1);
        assert_true(pace.rest < 10 * ms);
        pace.fork = pace.until;
    }
}

/* Of short loops one of a few is measured, which speaks for all, but waits are no habit; behind a
 * gap all are. */
static void test_sampled(void **state) {
    (void)state;
    md_pace pace = {.weight = MD_TEAM_EACH, .first = 10 * us, .last = 10 * us};
    md_team_weigh(&pace, 2, 15 * us);
    assert_true(fabs(pace.saved - 5 * us * MD_TEAM_EACH) < 1e-9);
    md_team_weigh(&pace, 2, pace.fork + 500 * us);
    assert_true(fabs(pace.debt - 480 * us) < 1e-9);
    pace = (md_pace){.fork = 1, .until = 2};
    assert_int_equal(md_team_pays(&pace, 1.9), 0);
    int measured = 0;
    for (int i = 0; i < MD_TEAM_WATCH + 10 * MD_TEAM_EACH; i++) {
        assert_int_equal(md_team_pays(&pace, 2 + 10 * us * i), 1);
        assert_true(pace.weight == (i < MD_TEAM_WATCH ? 1 : pace.weight));
        measured += pace.weight > 0;
    }
    assert_int_equal(measured, MD_TEAM_WATCH + 10);
    assert_int_equal(md_team(&pace, 1), 1);
    assert_int_equal(md_team(NULL, 1), 1);
}

/* So many calls of an entry, each so long on threads and alone; gives how many were made alone. */
static int calls(md_calls *c, int count, double together, double alone) {
    md_pace pace = {0};
    int by_one = 0;
    for (int i = 0; i < count; i++) {
        md_calls_begin(&pace, c, 1 + 7 * i);
        assert_true(!pace.alone || md_team(&pace, 64) == 1);
        by_one += pace.alone;
        const double took = pace.alone ? alone : together;
        md_calls_end(&pace, c, 1 + 7 * i + took * (1 + 0.5 * (i % 3)));
        assert_int_equal(pace.alone, 0);
    }
    return by_one;
}

/* Calls are made the faster way, whichever it is at the time, and the other is rarely tried. */
static void test_calls(void **state) {
    (void)state;
    md_calls c = {0};
    const int trials = calls(&c, 20000, 500 * us, 900 * us);
    assert_true(trials > 0 && trials <= 20 * MD_CALLS_TIMED);
    assert_int_equal(c.alone, 0);
    assert_int_equal(c.every, MD_CALLS_MOST);
    assert_true(calls(&c, 4000, 960 * us, 700 * us) > 1000);
    assert_int_equal(c.alone, 1);
    assert_true(calls(&c, 20000, 960 * us, 700 * us) > 19000);
    calls(&c, 4000, 500 * us, 700 * us);
    assert_int_equal(c.alone, 0);
    /* what is no faster for sure is not taken, and long calls are not tried, or no longer */
    c = (md_calls){0};
    calls(&c, 20000, 500 * us, 490 * us);
    assert_int_equal(c.alone, 0);
    c = (md_calls){0};
    assert_int_equal(calls(&c, 20000, 5.1 * ms, 1 * ms), 0);
    c = (md_calls){0};
    calls(&c, 100, 3 * ms, 2 * ms);
    assert_int_equal(c.alone, 1);
    calls(&c, MD_CALLS_MOST, 9 * ms, 6 * ms);
    assert_int_equal(c.alone, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paying),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_overhead),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_sampled),
        cmocka_unit_test(test_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
