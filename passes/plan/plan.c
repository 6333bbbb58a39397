/* plan: finds the plan of each list of an entry, loops from inside out, applies them and lays them
 * out. Where a budget asks for less, steps of the entry's list run again. */
#include "passes/plan/plan.h"

#include "passes/plan/apply.h"
#include "passes/plan/offsets.h"
#include "passes/plan/order.h"
#include "passes/plan/phases.h"
#include "passes/plan/repeat.h"

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

static Plan find_plan(Program *p, ProblemShared *shared, Step *loop, StepList *list, int64_t limit,
                      PlanEval *eval, const char **name);

/* Plans the body of a loop; gives what it needs beside what lives through the loop. */
static int64_t plan_body(Program *p, ProblemShared *shared, Step *loop) {
    PlanEval eval;
    const char *name = NULL;
    Plan plan = find_plan(p, shared, loop, &loop->body, NO_LIMIT, &eval, &name);
    int64_t peak = plan_eval(&eval, &plan, NO_LIMIT).peak;
    plan_apply(p, &plan, &eval);
    return peak;
}

enum {
    ALL_SLICES = -1,
    SMALL_SLICE = 16,  /* times a next value must be smaller than what a body needs */
    WORTH_COPIES = 64, /* one in so many bytes is worth copies */
};

static Plan order_of(Program *p, ProblemShared *shared, Step *loop, StepList *list, int64_t above,
                     const int64_t *inner, int64_t limit, PlanEval *eval, const char **name) {
    Problem *s = problem_open(shared, loop, list, above);
    for (int i = 0; i < s->n; i++) {
        s->item[i].inner = inner[i];
    }
    *eval = plan_eval_new(s);
    return order_find(s, eval, limit, p->arena, name);
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
static Plan find_plan(Program *p, ProblemShared *shared, Step *loop, StepList *list, int64_t limit,
                      PlanEval *eval, const char **name) {
    int64_t *inner = ARENA_ARRAY(shared->arena, int64_t, list->count + 1);
    for (int i = 0; i < list->count; i++) {
        inner[i] = list->at[i]->kind == STEP_LOOP ? plan_body(p, shared, list->at[i]) : 0;
    }
    Plan plan = order_of(p, shared, loop, list, ALL_SLICES, inner, limit, eval, name);
    const int64_t peak = plan_eval(eval, &plan, limit).peak;
    if (loop != NULL && slices_matter(eval->s, peak / SMALL_SLICE)) {
        PlanEval other;
        const char *other_name = NULL;
        Plan free =
            order_of(p, shared, loop, list, peak / SMALL_SLICE, inner, limit, &other, &other_name);
        int64_t lower = plan_eval(&other, &free, limit).peak;
        if (peak - lower > problem_lost(other.s, other.place) + peak / WORTH_COPIES) {
            *eval = other;
            return free;
        }
    }
    return plan;
}

enum { LEAST = 1 }; /* byte: as little as can be */

/* The least that is found from orders for several limits. They are parts of what the order without
 * a limit needs, so the least is the same whatever was asked for, and who asks for it gets it; but
 * `asked`, found for that, may need less. */
static Plan least_plan(Program *p, ProgramEntry *e, PlanEval *eval, const Plan *asked) {
    enum { LEVELS = 4 };
    const Problem *s = eval->s;
    const char *name = NULL;
    Plan least = *asked, plan = order_find(s, eval, NO_LIMIT, p->arena, &name);
    int64_t whole = plan_eval(eval, &plan, NO_LIMIT).peak, height = plan_height(eval, &least);
    for (int k = LEVELS; k >= 0; k--) {
        int64_t limit = k == LEVELS ? NO_LIMIT : k == 0 ? LEAST : whole / LEVELS * k;
        plan = order_find(s, eval, limit, p->arena, &name);
        plan_repeat(eval, &plan, LEAST);
        int64_t found = plan_height(eval, &plan);
        if (found < height) {
            least = plan;
            height = found;
            e->order_name = name;
        }
    }
    return least;
}

/* `limit`: most bytes of its arena. `least`: where that is not met, as little as is found. */
static void plan_entry(Program *p, ProgramEntry *e, int64_t limit, bool least) {
    Arena scratch = {0};
    ProblemShared shared = problem_shared(p, e, &scratch);
    PlanEval eval;
    prepare(p, e);
    Plan plan = find_plan(p, &shared, NULL, &e->step, limit, &eval, &e->order_name);
    Plan little = {.call = {0}};
    int64_t spared = 0;
    if (e->entry->kind == ENTRY_TRAIN) { /* whatever its budget, so a larger one costs no more */
        spared = plan_repeat_little(&eval, &plan, problem_cost(&e->step), &little);
    }
    e->spared_bytes = 0;
    if (spared > 0 && plan_height(&eval, &little) <= limit) {
        plan = little;
        e->spared_bytes = spared;
    } else if (limit > LEAST && limit < NO_LIMIT && plan_height(&eval, &plan) > limit) {
        plan_repeat(&eval, &plan, limit);
    }
    if (least && limit < NO_LIMIT && plan_height(&eval, &plan) > limit) {
        plan = least_plan(p, e, &eval, &plan);
    }
    e->planned_bytes = plan_eval(&eval, &plan, limit).peak;
    plan_apply(p, &plan, &eval);
    arena_free(&scratch);
    program_number(e);
    plan_offsets(e);
}

void pass_plan(Program *p, bool staging, int64_t budget) {
    plan_regions(p, staging); /* all but the arenas is known before */
    for (int i = 0; i < p->entry.count; i++) {
        ProgramEntry *e = p->entry.at[i];
        int64_t limit = budget >= 0 ? budget - plan_phases_beside(p, e) : NO_LIMIT;
        plan_entry(p, e, e->entry->aim > 0 && e->entry->aim < limit ? e->entry->aim : limit, true);
    }
    plan_regions(p, staging);
}

void pass_plan_arenas(Program *p, int64_t limit, bool least) {
    for (int i = 0; i < p->entry.count; i++) {
        plan_entry(p, p->entry.at[i], limit, least);
    }
}
