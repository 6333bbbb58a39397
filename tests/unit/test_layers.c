/* Steps that run again, on layer graphs of five nets: beside the least work that any choice of
 * repetitions comes to. The graphs and what is known of them stand in tests/data/layers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "passes/plan/repeat.h"
#include "tests/support.h"

enum { TOUCHES = 100000000 /* of a search: less than a second */, LINE = 4096 };

typedef struct {
    Problem problem;
    PlanEval eval;
    Plan once;
    double cost; /* of all steps, once */
} Net;

static const char *folder(void) {
    const char *set = getenv("LAYERS");
    return set != NULL ? set : "tests/data/layers";
}

static void read_step(Net *net, const char *line) {
    Problem *s = &net->problem;
    char name[64];
    double cost;
    long long bytes;
    int at = 0, i = s->n++;
    assert_int_equal(sscanf(line, "%63s %lf %lld%n", name, &cost, &bytes, &at), 3);
    Item *item = &s->item[i];
    Use use = {.size = bytes, .local = true, .next = -1, .touches = 1};
    item->cost = (int64_t)cost;
    item->pure = true;
    net->cost += cost;
    VEC_PUSH(s->arena, &use.write, i);
    VEC_PUSH(s->arena, &s->use, use);
    char *end;
    for (const char *p = line + at;; p = end) {
        long of = strtol(p, &end, 10);
        if (end == p) {
            break;
        }
        assert_true(of >= 0 && of < i);
        VEC_PUSH(s->arena, &item->reads, (int)of);
        VEC_PUSH(s->arena, &item->touch, (int)of);
        VEC_PUSH(s->arena, &item->makes, false);
        VEC_PUSH(s->arena, &s->use.at[of].read, i);
        s->use.at[of].touches++;
    }
    VEC_PUSH(s->arena, &item->touch, i);
    VEC_PUSH(s->arena, &item->makes, true);
    VEC_PUSH(s->arena, &net->once.call, i);
}

static Net *read_net(Arena *arena, const char *name) {
    FILE *in = fopen(str_printf(arena, "%s/%s.txt", folder(), name), "r");
    char line[LINE];
    int count = 0;
    assert_non_null(in);
    while (fgets(line, sizeof line, in) != NULL) {
        count++;
    }
    Net *net = ARENA_NEW(arena, Net);
    net->problem.arena = arena;
    net->problem.item = ARENA_ARRAY(arena, Item, count + 1);
    rewind(in);
    while (fgets(line, sizeof line, in) != NULL) {
        read_step(net, line);
    }
    fclose(in);
    net->eval = plan_eval_new(&net->problem);
    return net;
}

/* What lives at once and what is made again, counted without the planner: every call finds what it
 * reads, and a value lives from its call to the last that reads it. */
static int64_t peak_by_hand(const Net *net, const Plan *plan, double *again) {
    const Problem *s = &net->problem;
    const int calls = plan->call.count;
    int *made = ARENA_ARRAY(s->arena, int, s->n), *last = ARENA_ARRAY(s->arena, int, calls);
    bool *ran = ARENA_ARRAY(s->arena, bool, s->n);
    *again = 0;
    for (int p = 0; p < calls; p++) {
        int i = plan->call.at[p];
        for (int k = 0; k < s->item[i].reads.count; k++) {
            int of = s->item[i].reads.at[k];
            assert_true(ran[of]);
            last[made[of]] = p;
        }
        *again += ran[i] ? (double)s->item[i].cost : 0;
        ran[i] = true;
        made[i] = p;
        last[p] = p;
    }
    for (int i = 0; i < s->n; i++) {
        assert_true(ran[i]);
    }
    int64_t most = 0;
    for (int p = 0; p < calls; p++) {
        int64_t live = 0;
        for (int q = 0; q <= p; q++) {
            live += last[q] >= p ? s->use.at[plan->call.at[q]].size : 0;
        }
        most = live > most ? live : most;
    }
    return most;
}

/* The work of what fits so many tenths of the peak, in per cent of all; below 0: nothing found. */
static double repeated(const Net *net, int tenths, double *seconds) {
    Arena *arena = net->problem.arena;
    PlanEval eval = net->eval;
    Front front = {.arena = arena};
    double again;
    int64_t limit = peak_by_hand(net, &net->once, &again) / 10 * tenths;
    clock_t start = clock();
    plan_curve(&eval, &net->once, 1, &front, TOUCHES);
    *seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    int found = front_find(&front, limit);
    if (found < 0) {
        return -1;
    }
    assert_true(peak_by_hand(net, &front.at.at[found].plan, &again) <= limit);
    return 100 * again / net->cost;
}

/* What a curve keeps: each plan needs and costs what it says, fewer bytes cost more, and of two
 * limits the larger one never gets what costs more, whoever asked before. */
static void test_curve(void **state) {
    (void)state;
    enum { LIMITS = 100, FEW = 2000000 };
    Arena arena = {0};
    Net *net = read_net(&arena, "unet");
    Front front = {.arena = &arena};
    double again;
    const int64_t whole = peak_by_hand(net, &net->once, &again);
    plan_curve(&net->eval, &net->once, 1, &front, FEW);
    assert_true(front.at.count > 10);
    for (int i = 0; i < front.at.count; i++) {
        const FrontPlan *one = &front.at.at[i];
        assert_int_equal(peak_by_hand(net, &one->plan, &again), one->peak);
        assert_true(again == (double)one->cost);
        assert_true(i == 0 || (one->peak > one[-1].peak && one->cost < one[-1].cost));
    }
    const int64_t least = front_choose(&front, &net->eval, 1)->height;
    int64_t before = INT64_MAX;
    for (int k = 0; k <= LIMITS; k++) {
        const int64_t limit = k == LIMITS ? whole : least + (whole - least) / LIMITS * k;
        const FrontPlan *one = front_choose(&front, &net->eval, limit);
        assert_true(one->height <= limit && one->cost <= before);
        before = one->cost;
    }
    assert_true(front_choose(&front, &net->eval, least - 1)->height == least);
    assert_true(before == 0);
    arena_free(&arena);
}

/* Within 0.02 points of the least work, in a second. A line: net, tenths of its peak, a lower bound
 * of the work in per cent, the points above it that are accepted, where the bound is not reached by
 * any plan that is known. */
static void test_optima(void **state) {
    (void)state;
    Arena arena = {0};
    FILE *in = fopen(str_printf(&arena, "%s/optima.txt", folder()), "r");
    char line[LINE], name[64];
    int worse = 0, lines = 0;
    assert_non_null(in);
    while (fgets(line, sizeof line, in) != NULL) {
        int tenths;
        double bound, above, seconds;
        if (line[0] == '#') {
            continue;
        }
        assert_int_equal(sscanf(line, "%63s %d %lf %lf", name, &tenths, &bound, &above), 4);
        const Net *net = read_net(&arena, name);
        double found = repeated(net, tenths, &seconds);
        print_message("%-9s at 0.%d of its peak: %8.4f %% more, at least %8.4f, %.2f s\n", name,
                      tenths, found, bound, seconds);
        assert_true(found < 0 || found > bound - 1e-4); /* else it is no bound */
        worse += found < 0 || found > bound + above || (seconds > 1 && getenv("LONG") != NULL);
        lines++;
    }
    fclose(in);
    arena_free(&arena);
    assert_true(lines > 0);
    assert_int_equal(worse, 0);
}

/* What is done whatever the budget: clearly less for hardly any work, or nothing at all. */
static void test_little(void **state) {
    (void)state;
    static const char *const names[] = {"vgg16", "vgg19", "fcn8", "unet", "resnet50"};
    int fewer = 0, count = sizeof names / sizeof *names;
    for (int i = 0; i < count; i++) {
        Arena arena = {0};
        Net *net = read_net(&arena, names[i]);
        Plan less = {.call = {0}};
        double none, again;
        bool saved = plan_repeat_little(&net->eval, &net->once, (int64_t)net->cost, &less);
        int64_t before = peak_by_hand(net, &net->once, &none);
        int64_t after = peak_by_hand(net, &less, &again);
        print_message("%-9s %lld of %lld bytes less for %.4f %% more\n", names[i],
                      (long long)(before - after), (long long)before, 100 * again / net->cost);
        assert_true(none == 0 && again <= net->cost / 200);
        assert_true(saved ? after <= before - before / 50 : again == 0 && after == before);
        assert_false(plan_repeat_little(&net->eval, &net->once, 0, &less)); /* no time at all */
        assert_int_equal(less.call.count, net->once.call.count);
        fewer += saved;
        arena_free(&arena);
    }
    assert_in_range(fewer, 1, count);
}

/* `layers` steps of one size and cost, and as many derivatives, each of which reads the one behind
 * it and the value that its step has read. */
static Net *chain_net(Arena *arena, int layers) {
    Net *net = ARENA_NEW(arena, Net);
    net->problem.arena = arena;
    net->problem.item = ARENA_ARRAY(arena, Item, 2 * layers + 1);
    for (int i = 0; i < 2 * layers; i++) {
        const int of = i < layers ? i - 1 : 2 * layers - 2 - i;
        char *line = str_printf(arena, i == 0 ? "step 1000 64" : "step 1000 64 %d", i - 1);
        read_step(net, i >= layers && of >= 0 ? str_printf(arena, "%s %d", line, of) : line);
    }
    net->eval = plan_eval_new(&net->problem);
    return net;
}

/* In lists of thousands of steps values go by the dozen: half of the peak, which half of the
 * forward steps once more are enough for, and three tenths. */
static void test_long(void **state) {
    (void)state;
    static const struct {
        int tenths;
        double most; /* per cent of all work */
    } asked[] = {{5, 30}, {3, 50}};
    Arena arena = {0};
    Front front = {.arena = &arena};
    double none, again;
    Net *net = chain_net(&arena, getenv("LONG") != NULL ? 5000 : 1500);
    const int64_t whole = peak_by_hand(net, &net->once, &none);
    clock_t start = clock();
    plan_curve(&net->eval, &net->once, 1, &front, 4000000);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        const int found = front_find(&front, whole / 10 * asked[i].tenths);
        assert_true(found >= 0);
        const FrontPlan *one = &front.at.at[found];
        assert_int_equal(peak_by_hand(net, &one->plan, &again), one->peak);
        print_message("%d steps at 0.%d of their peak: %.2f %% more, %.2f s\n", net->problem.n,
                      asked[i].tenths, 100 * again / net->cost, seconds);
        assert_true(again <= net->cost * asked[i].most / 100);
    }
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_optima), cmocka_unit_test(test_little),
                                       cmocka_unit_test(test_long), cmocka_unit_test(test_curve)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
