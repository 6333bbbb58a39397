/* Steps that run again. Plans that let steps run again are harmed in random ways, and what computes
 * something else, or is no repetition any more, must be refused by the checker; and what a plan
 * says of itself is the same however often, and after whatever else, it is evaluated. */
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
#include "passes/plan/apply.h"
#include "passes/plan/offsets.h"
#include "passes/plan/order.h"
#include "passes/plan/plan.h"
#include "plan_change.h"
#include "random_program.h"
#include "step_text.h"

typedef enum {
    HARM_OPERAND,   /* it reads another Buf of the same type */
    HARM_LATER,     /* it runs later */
    HARM_EARLIER,   /* it runs earlier, may be before the first time */
    HARM_READER,    /* a reader takes another Buf of the same type */
    HARM_EQUAL,     /* its result is said to equal another Buf */
    HARM_STEP,      /* it is said to be another step */
    HARM_GONE,      /* it is left out */
    HARM_PLACE,     /* its result lies in the bytes of what is alive */
    HARM_FIRST,     /* the first call is said to be a repetition too */
    HARM_PARAMETER, /* its result lies in a parameter or a state */
    HARMS
} Harm;

/* Where it is not refused it must do no harm; those that say something wrong are refused always. */
static const struct {
    const char *name;
    bool always;
} harms[HARMS] = {
    {"another operand", true}, {"later", false},       {"earlier", false},
    {"another reader", true},  {"another Buf", true},  {"another step", true},
    {"left out", false},       {"other bytes", false}, {"the first call too", true},
    {"a parameter", false},
};

typedef struct {
    uint64_t random;
    Program *p;
    ProgramEntry *e;
    int at; /* of the step that runs again, in the entry's list */
} Case;

static int64_t pick(Case *c, int64_t n) {
    return n > 0 ? (int64_t)(random_next(&c->random) % (uint64_t)n) : 0;
}

/* A Buf of the entry's list with the type of `of` that is neither it nor its equal; NULL: none. */
static Buf *other_buf(Case *c, const Buf *of) {
    const Buf *first = of->again != NULL ? of->again : of;
    int n = c->e->buf.count, from = (int)pick(c, n);
    for (int k = 0; k < n; k++) {
        Buf *buf = c->e->buf.at[(from + k) % n];
        if (buf->kind == BUF_TEMP && buf->loop == NULL && buf->first < buf->last && buf != first &&
            buf->again != first && buf != of && type_equal(*buf->type, *of->type)) {
            return buf;
        }
    }
    return NULL;
}

static bool replace(Step *step, const Access *access, Buf *by) {
    Buf *old = access->buf;
    for (int i = 0; i < step->access.count; i++) {
        if (step->access.at[i].buf == by) {
            return false;
        }
    }
    for (int i = 0; i < step->access.count; i++) {
        Buf **buf = &step->access.at[i].buf;
        *buf = *buf == old ? by : *buf;
    }
    for (int i = 0; i < step->call.buf.count; i++) {
        step->call.buf.at[i] = step->call.buf.at[i] == old ? by : step->call.buf.at[i];
    }
    for (int i = 0; i < step->inplace.count; i++) {
        InplacePair *pair = &step->inplace.at[i];
        pair->in = pair->in == old ? by : pair->in;
    }
    return true;
}

static bool replace_read(Case *c, Step *step, bool again) {
    for (int i = 0; step->kind == STEP_KERNEL && i < step->access.count; i++) {
        const Access *access = &step->access.at[i];
        Buf *by = access->mode == ACCESS_READ && access->buf->kind == BUF_TEMP &&
                          (!again || access->buf->again != NULL)
                      ? other_buf(c, access->buf)
                      : NULL;
        if (by != NULL) {
            return replace(step, access, by);
        }
    }
    return false;
}

static Access *result_of(Step *step) {
    for (int i = 0; i < step->access.count; i++) {
        Access *access = &step->access.at[i];
        if ((access->mode & ACCESS_WRITE) && access->buf->kind == BUF_TEMP) {
            return access;
        }
    }
    return NULL;
}

static bool move(Case *c, int to) {
    StepList *list = &c->e->step;
    Step *step = list->at[c->at];
    if (to == c->at || to < 0 || to >= list->count) {
        return false;
    }
    for (int k = c->at; k != to; k += to > k ? 1 : -1) {
        list->at[k] = list->at[to > k ? k + 1 : k - 1];
    }
    list->at[to] = step;
    if (pick(c, 2)) { /* as if it had been lowered there */
        step->lowered = to > 0 ? list->at[to - 1]->lowered : 0;
    }
    program_number(c->e);
    for (int i = 0; i < c->e->buf.count; i++) { /* lifetimes are not what is wrong */
        Buf *buf = c->e->buf.at[i];
        buf->first = buf->first < buf->last ? 0 : buf->first;
        buf->last = buf->last > 0 ? c->e->nstep : 0;
    }
    return true;
}

/* False: there is nothing to do it to. */
static bool do_harm(Case *c, Harm harm) {
    StepList *list = &c->e->step;
    Step *step = list->at[c->at], *reader = list->at[pick(c, list->count)];
    Buf *made = result_of(step)->buf, *other = other_buf(c, made);
    switch (harm) {
    case HARM_OPERAND: return replace_read(c, step, false);
    case HARM_LATER: return move(c, c->at + 1 + (int)pick(c, list->count - c->at - 1));
    case HARM_EARLIER: return move(c, (int)pick(c, c->at));
    case HARM_READER: return reader->again == NULL && replace_read(c, reader, true);
    case HARM_EQUAL:
        made->again = other != NULL && other->again == NULL ? other : made->again;
        return made->again == other;
    case HARM_STEP:
        if (reader->again != NULL || reader->kind != STEP_KERNEL || reader == step->again) {
            return false;
        }
        step->again = reader;
        return true;
    case HARM_GONE:
        for (int k = c->at; k + 1 < list->count; k++) {
            list->at[k] = list->at[k + 1];
        }
        list->count--;
        program_number(c->e);
        for (int i = 0; i < c->e->buf.count; i++) {
            Buf *buf = c->e->buf.at[i];
            buf->first = buf->first < buf->last ? 0 : buf->first;
        }
        return true;
    case HARM_PLACE:
        if (other == NULL || other->offset == made->offset || buf_root(other)->kind != BUF_TEMP) {
            return false;
        }
        made->storage = made;
        made->offset = other->offset;
        return true;
    case HARM_FIRST: ((Step *)(uintptr_t)step->again)->again = step; return true;
    case HARM_PARAMETER:
        made->storage = c->p->slot.at[0];
        made->offset = made->storage->offset;
        return made->bytes <= made->storage->bytes;
    case HARMS: break;
    }
    return false;
}

/* Any step that runs again; false: none does. */
static bool pick_again(Case *c) {
    int n = c->e->step.count, from = (int)pick(c, n);
    for (int k = 0; k < n; k++) {
        c->at = (from + k) % n;
        if (c->e->step.at[c->at]->again != NULL) {
            return true;
        }
    }
    return false;
}

/* A planned program of which some step runs again; false: none does. */
static bool open_case(Arena *arena, Case *c, uint64_t seed, uint64_t *meant) {
    int size = 6 + (int)(seed % 30);
    Program *p = random_program(arena, seed, size);
    *meant = program_run_private(arena, p);
    pass_plan(p, true, -1);
    int64_t budget = p->total_bytes - p->arena_bytes * (int64_t)(1 + seed % 4) / 10;
    *c = (Case){.random = seed * 77, .p = random_program(arena, seed, size)};
    pass_plan(c->p, true, budget);
    c->e = c->p->entry.at[0];
    return pick_again(c);
}

static void test_harm(void **state) {
    (void)state;
    int made[HARMS] = {0}, refused[HARMS] = {0};
    for (uint64_t seed = 1; seed <= 400; seed++) { /* to plan takes longer than all that is done */
        Arena arena = {0};
        Case c;
        uint64_t meant;
        bool again = open_case(&arena, &c, seed, &meant);
        NotedPlan *plan = again ? plan_note(&arena, c.p, c.e) : NULL;
        const char *fault = again ? check_program(&arena, c.p) : NULL;
        if (fault != NULL) {
            fail_msg("seed %llu, as planned: %s", (unsigned long long)seed, fault);
        }
        for (int harm = 0; again && harm < HARMS; harm++) {
            if (pick_again(&c) && do_harm(&c, (Harm)harm)) {
                fault = check_program(&arena, c.p);
                bool wrong = fault == NULL && program_run_planned(&arena, c.p) != meant;
                if (wrong || (fault == NULL && harms[harm].always)) {
                    program_dump(c.p, stderr);
                    fail_msg("seed %llu, %s: passes%s", (unsigned long long)seed, harms[harm].name,
                             wrong ? " and is wrong" : "");
                }
                made[harm]++;
                refused[harm] += fault != NULL;
            }
            plan_restore(plan);
        }
        arena_free(&arena);
    }
    for (int harm = 0; harm < HARMS; harm++) {
        print_message("%s: %d made, %d refused\n", harms[harm].name, made[harm], refused[harm]);
        assert_true(refused[harm] >= 10);
    }
}

/* y is made of a carry as it is before its loop; behind the loop it cannot be made again. */
static void test_carry(void **state) {
    (void)state;
    Arena arena = {0};
    Program *p = random_program(&arena, 5, 0);
    ProgramEntry *e = p->entry.at[0];
    e->step.count = e->buf.count = e->entry->out.count = 0;
    Type row = type_make(TY_I64, 1, (int64_t[]){16});
    Buf *c = buf_new(p, e, BUF_TEMP, row, "c"), *next = buf_new(p, e, BUF_TEMP, row, "next");
    Buf *y = buf_new(p, e, BUF_TEMP, row, "y"), *z = buf_new(p, e, BUF_TEMP, row, "z");
    Step *step[5];
    for (int i = 0; i < 5; i++) {
        step[i] = step_new(p, i == 2 ? STEP_LOOP : STEP_KERNEL, LOC_NONE);
        if (i < 4) {
            VEC_PUSH(&arena, &e->step, step[i]);
        }
    }
    VEC_PUSH(&arena, &step[2]->body, step[4]);
    step[2]->trip = 3;
    next->loop = step[2];
    next->final = c;
    step_access(p, step[0], c, ACCESS_WRITE);
    step_access(p, step[1], c, ACCESS_READ);
    step_access(p, step[1], y, ACCESS_WRITE);
    step_access(p, step[4], c, ACCESS_READ);
    step_access(p, step[4], next, ACCESS_WRITE);
    VEC_PUSH(&arena, &step[4]->inplace, ((InplacePair){c, next}));
    step_access(p, step[3], c, ACCESS_READ);
    step_access(p, step[3], y, ACCESS_READ);
    step_access(p, step[3], z, ACCESS_WRITE);
    entry_text(p, e);
    pass_plan(p, true, -1);
    assert_null(check_program(&arena, p));
    ProblemShared shared = problem_shared(p, e, &arena);
    PlanEval eval = plan_eval_new(problem_open(&shared, NULL, &e->step, -1));
    Plan plan = {.call = {0}};
    for (int i = 0; i < 4; i++) {
        VEC_PUSH(&arena, &plan.call, i);
    }
    plan_eval(&eval, &plan, INT64_MAX);
    assert_true(plan_repeatable(&eval, 1, 2));
    assert_false(plan_repeatable(&eval, 1, 3));
    VEC_PUSH(&arena, &plan.call, 3);
    plan.call.at[3] = 1;
    plan_eval(&eval, &plan, INT64_MAX);
    plan_apply(p, &plan, &eval);
    e->step.at[3]->lowered = 2; /* as if it had been lowered there */
    program_number(e);
    AllocMemo memo = {.arena = &arena};
    plan_offsets(p, e, &memo);
    plan_regions(p, true);
    const char *fault = check_program(&arena, p);
    assert_non_null(fault);
    assert_non_null(strstr(fault, "reads another value of c than step 1 did"));
    arena_free(&arena);
}

/* ---- evaluations ---------------------------------------------------------------------------- */

static void assert_same_cost(const PlanCost *a, const PlanCost *b) {
    assert_int_equal(a->peak, b->peak);
    assert_int_equal(a->at, b->at);
    assert_int_equal(a->over, b->over);
    assert_int_equal(a->cost, b->cost);
}

/* A plan has the same cost again, whatever was evaluated in between; what runs again and is not
 * read costs its time. */
static void test_evaluations(void **state) {
    (void)state;
    int changed = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        Arena arena = {0};
        Program *p = random_program(&arena, seed, 6 + (int)(seed % 30));
        ProgramEntry *e = p->entry.at[0];
        const char *name;
        uint64_t random = seed;
        program_number(e);
        ProblemShared shared = problem_shared(p, e, &arena);
        Problem *s = problem_open(&shared, NULL, &e->step, -1);
        PlanEval eval = plan_eval_new(s);
        Plan plan = order_find(s, &eval, INT64_MAX, &arena, &name);
        const PlanCost first = plan_eval(&eval, &plan, 0);
        for (int k = 0; k < 20; k++) {
            int item = (int)(random_next(&random) % (uint64_t)s->n);
            int place = 1 + (int)(random_next(&random) % (uint64_t)plan.call.count);
            if (!plan_repeatable(&eval, item, place)) {
                continue;
            }
            Plan other = {.call = {0}};
            for (int i = 0; i < plan.call.count + 1; i++) {
                VEC_PUSH(&arena, &other.call,
                         i == place ? item : plan.call.at[i > place ? i - 1 : i]);
            }
            const PlanCost cost = plan_eval(&eval, &other, 0), again = plan_eval(&eval, &other, 0);
            assert_same_cost(&cost, &again);
            assert_int_equal(cost.cost, first.cost + s->item[item].cost);
            const PlanCost back = plan_eval(&eval, &plan, 0);
            assert_same_cost(&back, &first);
            changed++;
        }
        arena_free(&arena);
    }
    assert_true(changed >= 300);
}

/* ---- plans of models ------------------------------------------------------------------------ */

typedef struct List {
    Problem *problem;
    PlanEval eval;
    Plan plan;
    struct List **body; /* by item; NULL: no loop */
} List;

static List *open_list(ProblemShared *shared, Step *loop, StepList *steps, int *count) {
    List *list = ARENA_NEW(shared->arena, List);
    list->body = ARENA_ARRAY(shared->arena, List *, steps->count + 1);
    for (int i = 0; i < steps->count; i++) {
        Step *step = steps->at[i];
        *count += 1;
        list->body[i] =
            step->kind == STEP_LOOP ? open_list(shared, step, &step->body, count) : NULL;
        VEC_PUSH(shared->arena, &list->plan.call, i);
    }
    list->problem = problem_open(shared, loop, steps, -1);
    list->eval = plan_eval_new(list->problem);
    return list;
}

static int64_t eval_list(List *list) {
    for (int i = 0; i < list->problem->n; i++) {
        list->problem->item[i].inner = list->body[i] != NULL ? eval_list(list->body[i]) : 0;
    }
    return plan_eval(&list->eval, &list->plan, INT64_MAX).peak;
}

/* The plans of real models foretell what they need to the byte; that of GPT-2 is evaluated as a
 * whole with two calls exchanged: a figure for docs/status.md, not a demand. */
static void test_models(void **state) {
    (void)state;
    static const char *const paths[] = {
        "samples/chars.mdl",         "samples/digits.mdl",
        "samples/residual.mdl",      "samples/gan.mdl",
        "tests/suites/resnet20.mdl", "tests/suites/feedback.mdl",
        "tests/bench/gru.mdl",       "tests/unit/programs/08_gpt2.mdl"};
    enum { PATHS = sizeof paths / sizeof *paths, EVALUATIONS = 20000 };
    for (int k = 0; k < PATHS; k++) {
        Dumped m;
        Program *p = compiled_program(&m, paths[k], 2, false);
        if (p == NULL) {
            fail_msg("%s does not compile", paths[k]);
        }
        compiled_plan(p);
        for (int i = 0; i < p->entry.count; i++) {
            const ProgramEntry *e = p->entry.at[i];
            assert_int_equal(e->planned_bytes, e->lower_bound_bytes);
            assert_int_equal(e->planned_height, e->arena_bytes);
        }
        ProgramEntry *e = p->entry.at[0];
        for (int i = 0; i < p->entry.count && k == PATHS - 1; i++) {
            e = p->entry.at[i]->nstep > e->nstep ? p->entry.at[i] : e;
        }
        Arena arena = {0};
        ProblemShared shared = problem_shared(p, e, &arena);
        int steps = 0;
        List *list = open_list(&shared, NULL, &e->step, &steps);
        assert_int_equal(eval_list(list), e->lower_bound_bytes);
        clock_t begin = clock();
        for (int i = 0; i < EVALUATIONS && k == PATHS - 1; i++) {
            int n = list->plan.call.count, at = i % (n - 1), *call = list->plan.call.at;
            int first = call[at];
            call[at] = call[at + 1];
            call[at + 1] = first;
            eval_list(list);
        }
        double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
        if (k == PATHS - 1) {
            print_message("%s, %s, %d steps: %.0f evaluations a second\n", paths[k], e->entry->name,
                          steps, EVALUATIONS / seconds);
        }
        arena_free(&arena);
        dumped_done(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_harm), cmocka_unit_test(test_carry),
                                       cmocka_unit_test(test_evaluations),
                                       cmocka_unit_test(test_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
