/* The plan checker against plans that were changed at random.
 *
 * A plan of a random Program or of a sample gets one change; the run on real bytes (poison) says
 * whether it does harm. What does harm the checker must refuse, and what does none it must accept.
 * Changes keep to what a planner with a fault could give: what it records beside the offsets
 * (lifetimes, totals) agrees with them, so that nothing is refused for its records alone.
 *
 * SEED, COUNT (changes of random Programs), FIRST (the first of them), SAMPLES (changes of each
 * entry of a sample), DUMP (findings with their Programs) and SECONDS (goes on for so long, with
 * random Programs alone) come from the environment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compiled.h"
#include "passes/check.h"
#include "plan_change.h"
#include "random_program.h"
#include "tests/support.h"

static uint64_t setting(const char *name, uint64_t other) {
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 0) : other;
}

/* ---- verdicts ------------------------------------------------------------------------------- */

static void random_changes(ChangeCount *count, uint64_t seed) {
    Arena arena = {0};
    count->random = seed;
    Program *p = random_program(&arena, seed, 3 + (int)(seed % 16));
    compiled_plan(p);
    NotedPlan *plan = plan_note(&arena, p, p->entry.at[0]);
    const char *harm = poison_run(plan_poison(plan), seed), *fault = check_program(&arena, p);
    if (harm != NULL || fault != NULL) {
        count->findings++;
        printf("program %llu: %s; the checker: %s\n", (unsigned long long)seed,
               harm != NULL ? harm : "-", fault != NULL ? fault : "-");
    }
    char *what = str_printf(&arena, "program %llu", (unsigned long long)seed);
    for (int tries = 0; tries < 40; tries++) {
        if (plan_try_change(count, plan, what,
                            (int)((seed + (uint64_t)tries) % PLAN_CHANGES_ONCE))) {
            break;
        }
        plan_restore(plan);
    }
    arena_free(&arena);
}

/* Programs of which a changed plan lets a result lie over an operand of another root: right for the
 * pairs of its kernel and for no others; and one that lays a carry over a stack. */
static const uint64_t found[] = {
    1818395730180419, 1816395724177652, 1816395724178009, 1816395724196569, 1816395724200080,
    1816395724213394, 1839395793182485, 1839395793187112, 1839395793303470, 1839395793303765,
};

static void sample_changes(ChangeCount *count, const char *path, int most) {
    Dumped m;
    Program *p = compiled_program(&m, path, 2, false);
    assert_non_null(p);
    compiled_plan(p);
    for (int i = 0; i < p->entry.count; i++) {
        ProgramEntry *e = p->entry.at[i];
        if (e->entry->kind != ENTRY_TRAIN && e->entry->kind != ENTRY_EVAL &&
            e->entry->kind != ENTRY_CALL) {
            continue;
        }
        Arena arena = {0};
        count->random = setting("SEED", 1) * 64 + (uint64_t)i;
        NotedPlan *plan = plan_note(&arena, p, e);
        const char *harm = poison_run(plan_poison(plan), 1);
        if (harm != NULL) {
            fail_msg("%s, %s: %s", path, e->entry->name, harm);
        }
        char *what = str_printf(&arena, "%s, %s", path, e->entry->name);
        for (int made = 0, tries = 0; made < most && tries < 40 * most; tries++) {
            made += plan_try_change(count, plan, what,
                                    (int)(random_next(&count->random) % PLAN_CHANGE_STRIDE));
            plan_restore(plan);
        }
        arena_free(&arena);
    }
    dumped_done(&m);
}

static void test_random_programs(void **state) {
    (void)state;
    uint64_t seed = setting("SEED", 1), most = setting("COUNT", 2000);
    int64_t seconds = (int64_t)setting("SECONDS", 0);
    time_t start = time(NULL);
    ChangeCount count = {0};
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        random_changes(&count, found[i]);
    }
    assert_int_equal(count.findings, 0);
    for (uint64_t i = setting("FIRST", 0); seconds > 0 ? time(NULL) - start < seconds : i < most;
         i++) {
        random_changes(&count, seed * 1000003 + i);
    }
    plan_print_counts(&count, "random programs");
    printf("SEED=%llu: executions %lld, findings %lld\n", (unsigned long long)seed,
           (long long)count.executions, (long long)count.findings);
    int harmful = 0, made = 0;
    for (int i = 0; i < PLAN_CHANGES_ONCE; i++) {
        harmful += count.harmful[i];
        made += count.made[i];
    }
    assert_int_equal(count.findings, 0);
    if (seconds == 0 && most >= 2000) {
        assert_true(harmful >= 500 && made - harmful >= 500);
        for (int i = 0; i < PLAN_CHANGES_ONCE; i++) {
            assert_true(count.harmful[i] > 0);
        }
    }
}

static void test_samples(void **state) {
    (void)state;
    if (setting("SECONDS", 0) > 0) {
        skip_because("SECONDS are for random programs");
    }
    static const char *const paths[] = {
        "samples/chars.mdl",    "samples/diabetes.mdl", "samples/digits.mdl",
        "samples/residual.mdl", "tests/suites/ode.mdl", "tests/unit/programs/ode_plans.mdl"};
    ChangeCount count = {0};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        sample_changes(&count, paths[i], (int)setting("SAMPLES", 10));
    }
    plan_print_counts(&count, "samples");
    assert_int_equal(count.findings, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
