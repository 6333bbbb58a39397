/* plan: finds the plan of each list of an entry, loops from inside out, applies them and lays them
 * out. Where a budget asks for less, steps of the entry's list run again. */
#include "passes/plan/plan.h"

#include "compiler/times.h"
#include "passes/grad.h"
#include "passes/plan/apply.h"
#include "passes/plan/offsets.h"
#include "passes/plan/order.h"
#include "passes/plan/phases.h"
#include "passes/plan/repeat.h"

#include <string.h>

static const int64_t NO_LIMIT = INT64_MAX;

/* ---- the check of a call -------------------------------------------------------------------- */

static Buf *value_of_result(const ProgramEntry *e, Buf *result) {
    for (int i = 0; i < e->buf.count; i++) {
        if (e->buf.at[i]->final == result) {
            return e->buf.at[i];
        }
    }
    return result;
}

/* `after`: the last step that writes what the check reads. */
static void check_reads(Program *p, const ProgramEntry *e, Step *check, Buf *value, int *after) {
    step_access(p, check, value, ACCESS_READ);
    for (int k = 0; k < e->step.count; k++) {
        const Access *access = step_find(e->step.at[k], value);
        if (access != NULL && (access->mode & ACCESS_WRITE) != 0 && k > *after) {
            *after = k;
        }
    }
}

static void add_check(Program *p, ProgramEntry *e) {
    Step *check = NULL;
    int after = -1;
    for (int i = 0; i < e->buf.count; i++) {
        Buf *buf = e->buf.at[i];
        if (buf->kind != BUF_RESULT || !elem_is_float(buf->type->elem)) {
            continue;
        }
        const EntryOut *out = &e->entry->out.at[buf->out];
        if (e->entry->kind != ENTRY_TRAIN) {
            continue;
        }
        if (!out_is_awaited(out->role)) {
            continue;
        }
        if (check == NULL) {
            check = step_new(p, STEP_CHECK, out->loc);
        }
        check_reads(p, e, check, value_of_result(e, buf), &after);
    }
    for (int i = 0; i < e->limit.count; i++) {
        check = check == NULL ? step_new(p, STEP_CHECK, e->limit.at[i]->loc) : check;
        check_reads(p, e, check, e->limit.at[i], &after);
    }
    if (check == NULL) {
        return;
    }
    VEC_PUSH(p->arena, &e->step, check);
    for (int k = e->step.count - 1; k > after + 1; k--) {
        e->step.at[k] = e->step.at[k - 1];
    }
    e->step.at[after + 1] = check;
}

/* Notes where each step stands, and makes the Access list of every loop the union of its body's,
 * carries included: the body makes their next values, so who reads one behind the loop comes behind
 * the loop. */
static void complete_loops(Program *p, const StepList *list) {
    for (int i = 0; i < list->count; i++) {
        list->at[i]->lowered = i;
        if (list->at[i]->kind == STEP_LOOP) {
            complete_loops(p, &list->at[i]->body);
            step_access_body(p, list->at[i]);
        }
    }
}

/* Before anything is planned: the list holds the check, loops say what they touch. */
static void prepare(Program *p, ProgramEntry *e) {
    for (int i = 0; i < e->buf.count; i++) {
        const Buf *buf = e->buf.at[i];
        if (buf->final != NULL && buf->loop != NULL) {
            step_access(p, buf->loop, buf->final, ACCESS_READ | ACCESS_WRITE);
        }
    }
    add_check(p, e);
    complete_loops(p, &e->step);
    program_number(e);
    /* Rows and sums are turned into values without an instance, in scratch of their own. */
    bool instance = e->entry->kind != ENTRY_LOAD && e->entry->kind != ENTRY_EVAL_END;
    e->band_bytes = instance ? p->band_bytes : 0;
}

/* ---- lists ---------------------------------------------------------------------------------- */

static Plan find_plan(Program *p, ProblemShared *shared, Step *loop, StepList *list, PlanEval *eval,
                      const char **name);

/* Plans the body of a loop; gives what it needs beside what lives through the loop. */
static int64_t plan_body(Program *p, ProblemShared *shared, Step *loop) {
    PlanEval eval;
    const char *name = NULL;
    Plan plan = find_plan(p, shared, loop, &loop->body, &eval, &name);
    int64_t peak = plan_eval(&eval, &plan, NO_LIMIT).peak;
    plan_apply(p, &plan, &eval);
    if (loop->rest != NULL) {
        step_set_rest(p, loop, align_up(peak, MD_ALIGN)); /* about; offsets say it exactly */
    }
    return peak;
}

enum {
    ALL_SLICES = -1,
    SMALL_SLICE = 16,  /* times a next value must be smaller than what a body needs */
    WORTH_COPIES = 64, /* one in so many bytes is worth copies */
};

static Plan order_of(Program *p, ProblemShared *shared, Step *loop, StepList *list, int64_t above,
                     const int64_t *inner, PlanEval *eval, const char **name) {
    Problem *s = problem_open(shared, loop, list, above);
    for (int i = 0; i < s->n; i++) {
        s->item[i].inner = inner[i];
    }
    *eval = plan_eval_new(s);
    if (loop == NULL) {
        problem_look_inside(s);
        shared->top = s;
    }
    return order_find(s, eval, NO_LIMIT, p->arena, name);
}

/* Does the list make slices of small parameters or states? */
static bool slices_matter(const Problem *s, int64_t small) {
    bool any = false;
    for (int u = 0; u < s->use.count && !any; u++) {
        const Use *use = &s->use.at[u];
        any = !use->local && use->write.count > 0 && use->buf->final != NULL &&
              use->buf->bytes <= small;
    }
    return any;
}

/* The next values of parameters that a body makes slice by slice are made in their bytes, so what
 * reads the old slice comes first. Where one is small, and what waits for its readers is large,
 * it has bytes of its own, to be copied at the end. */
static Plan find_plan(Program *p, ProblemShared *shared, Step *loop, StepList *list, PlanEval *eval,
                      const char **name) {
    int64_t *inner = ARENA_ARRAY(shared->arena, int64_t, list->count + 1);
    for (int i = 0; i < list->count; i++) {
        inner[i] = list->at[i]->kind == STEP_LOOP ? plan_body(p, shared, list->at[i]) : 0;
    }
    Plan plan = order_of(p, shared, loop, list, ALL_SLICES, inner, eval, name);
    const int64_t peak = plan_eval(eval, &plan, NO_LIMIT).peak;
    if (loop != NULL && slices_matter(eval->s, peak / SMALL_SLICE)) {
        PlanEval other;
        const char *other_name = NULL;
        Plan free = order_of(p, shared, loop, list, peak / SMALL_SLICE, inner, &other, &other_name);
        int64_t lower = plan_eval(&other, &free, NO_LIMIT).peak;
        if (peak - lower > problem_lost(other.s, other.place) + peak / WORTH_COPIES) {
            *eval = other;
            return free;
        }
    }
    return plan;
}

enum {
    LEAST = 1,  /* byte: as little as can be */
    LEVELS = 4, /* parts of what the usual order needs for which others are found */
    CURVE_TOUCHES = 8000000,
    CHOICE_TOUCHES = 500000 /* where this is one of many choices of what loops keep */
};

static bool same_calls(const Plan *a, const Plan *b) {
    const size_t bytes = sizeof *a->call.at * (size_t)a->call.count;
    return a->call.count == b->call.count &&
           (bytes == 0 || memcmp(a->call.at, b->call.at, bytes) == 0); /* no calls: null */
}

static int64_t curve_touches(const Entry *entry) {
    const GradPlan *keep = entry->keep;
    bool usual = keep == NULL || (keep->save == GRAD_SAVE_CALLS && keep->nagain == 0 &&
                                  keep->segment <= 1 && keep->parts <= 1);
    return usual ? CURVE_TOUCHES : CHOICE_TOUCHES;
}

/* Fills the front with plans of which steps run again, of orders for several limits that are the
 * same whatever was asked for. Gives the names of the orders. */
static const char **fill_front(Program *p, PlanEval *eval, const Plan *usual, Front *front,
                               int64_t touches) {
    const Problem *s = eval->s;
    const char **name = ARENA_ARRAY(front->arena, const char *, LEVELS + 1);
    Plan order[LEVELS + 1];
    const int64_t whole = plan_eval(eval, usual, NO_LIMIT).peak;
    int n = 0;
    for (int k = LEVELS; k >= 0; k--) {
        const int64_t limit = k == LEVELS ? NO_LIMIT : k == 0 ? LEAST : whole / LEVELS * k;
        order[n] = order_find(s, eval, limit, p->arena, &name[n]);
        bool known = false;
        for (int i = 0; i < n && !known; i++) {
            known = same_calls(&order[i], &order[n]);
        }
        n += !known;
    }
    plan_curve(eval, order, n, front, touches);
    return name;
}

/* What is known of an entry whose list is planned and not changed yet. */
struct EntryPlan {
    Arena scratch;
    Program *p;
    ProgramEntry *e;
    ProblemShared shared;
    PlanEval eval;
    Plan once, usual, plan; /* each step once; without a limit; for the last that was asked for */
    int64_t height;         /* of the usual one */
    int64_t touches;        /* of a curve */
    const char *name;       /* of its order */
};

/* The plan that nobody asks for less of. */
static void entry_open(EntryPlan *x, Program *p, ProgramEntry *e) {
    x->p = p;
    x->e = e;
    x->touches = curve_touches(e->entry);
    x->shared = problem_shared(p, e, &x->scratch);
    prepare(p, e);
    x->usual = x->once = find_plan(p, &x->shared, NULL, &e->step, &x->eval, &x->name);
    if (e->entry->kind == ENTRY_TRAIN) { /* whatever its budget, so a larger one costs no more */
        Plan little = {.call = {0}};
        bool less = plan_repeat_little(&x->eval, &x->once, problem_cost(&e->step), &little);
        x->usual = less ? little : x->once;
    }
    x->height = plan_height(&x->eval, &x->usual);
    const int64_t touched = count_add(problem_outside(x->shared.top), 1, x->height);
    e->touched = e->entry->touched > 0 ? e->entry->touched : touched;
    e->far_share = times_far_share(&p->times, e->touched);
    problem_by_time(x->shared.top, &p->times, e->far_share);
}

/* `limit`: most bytes of its arena. What does not fit is as small as can be. */
static void entry_within(EntryPlan *x, int64_t limit) {
    ProgramEntry *e = x->e;
    x->plan = x->usual;
    e->planned_height = x->height;
    e->order_name = x->name;
    if (x->height > limit) {
        const PlanCost usual = plan_eval(&x->eval, &x->usual, NO_LIMIT);
        Front front = {.arena = &x->scratch, .least = usual.cost};
        front_offer(&front, &x->usual, &usual);
        const char **name = fill_front(x->p, &x->eval, &x->usual, &front, x->touches);
        FrontPlan *chosen = front_choose(&front, &x->eval, limit);
        x->plan = chosen->plan;
        e->planned_height = chosen->height;
        e->order_name = name[chosen->order];
    }
}

/* Beside the steps of the list, its plan runs some again and copies what is kept to the end. */
PlanTold entry_plan_within(EntryPlan *x, int64_t limit) {
    ProgramEntry *e = x->e;
    const StepTimes *times = &x->p->times;
    const Problem *s = x->eval.s;
    entry_within(x, limit);
    plan_eval(&x->eval, &x->plan, limit);
    plan_count(e);
    PlanTold told = {.arena = e->planned_height, .flops = e->flops, .touched = e->touched};
    told.time = list_time(times, e->far_share, &e->step);
    for (int c = 0; c < x->plan.call.count; c++) {
        const int i = x->plan.call.at[c];
        if (x->eval.place[i] < c) {
            told.again = count_add(told.again, 1, s->item[i].step->flops);
            told.time = count_add(told.time, 1, step_time(times, e->far_share, s->item[i].step));
        }
    }
    for (int u = 0; u < s->use.count; u++) {
        const int64_t bytes = s->use.at[u].kept ? copy_bytes(s->use.at[u].buf) : 0;
        told.time = count_add(told.time, 1, bytes_time(times, e->far_share, bytes, 1));
    }
    told.flops = count_add(told.flops, 1, told.again);
    return told;
}

static void plan_entry(Program *p, ProgramEntry *e, int64_t limit) {
    EntryPlan x = {.scratch = {0}};
    entry_open(&x, p, e);
    const PlanTold told = entry_plan_within(&x, limit);
    const bool usual = x.height <= limit;
    e->spared_bytes = usual ? plan_height(&x.eval, &x.once) - x.height : 0;
    e->planned_bytes = plan_eval(&x.eval, &x.plan, limit).peak;
    plan_apply(p, &x.plan, &x.eval);
    program_number(e);
    plan_offsets(p, e, &x.eval.memo);
    arena_free(&x.scratch);
    e->predicted = list_time(&p->times, e->far_share, &e->step);
    if (told.time != e->predicted || told.arena != e->arena_bytes || told.flops != e->flops) {
        BUG("the plan of %s is not what it was told to be", e->c_name);
    }
}

void pass_plan(Program *p, bool staging, int64_t budget) {
    plan_regions(p, staging); /* all but the arenas is known before */
    for (int i = 0; i < p->entry.count; i++) {
        ProgramEntry *e = p->entry.at[i];
        int64_t limit = budget >= 0 ? budget - plan_phases_beside(p, e) : NO_LIMIT;
        plan_entry(p, e, limit);
    }
    plan_regions(p, staging);
}

/* ---- plans that are only looked at ---------------------------------------------------------- */

EntryPlan *entry_plan_open(Program *p) {
    EntryPlan *x = ARENA_NEW(p->arena, EntryPlan);
    entry_open(x, p, p->entry.at[0]);
    return x;
}

int64_t entry_plan_bytes(const EntryPlan *x) {
    return (int64_t)x->scratch.used_bytes;
}

void entry_plan_close(EntryPlan *x) {
    arena_free(&x->scratch);
}
