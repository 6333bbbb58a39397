/* value: see the header. Three walks over the calls: when values are made and touched last, which
 * of them take over the bytes of an operand that dies, how many bytes are live. In the list of a
 * loop, a carry is dead from its last reader to its next value, and its bytes serve others then. */
#include "passes/plan/value.h"

#include "passes/plan/alloc.h"
#include "passes/plan/storage.h"

#include <string.h>

void plan_copy(Arena *arena, Plan *to, const Plan *from) {
    if (to->call.capacity < from->call.count) {
        to->call.at = ARENA_ARRAY(arena, int, 2 * from->call.count);
        to->call.capacity = 2 * from->call.count;
    }
    to->call.count = from->call.count;
    if (from->call.count > 0) {
        memcpy(to->call.at, from->call.at, sizeof *to->call.at * (size_t)from->call.count);
    }
}

static void list_touches(PlanEval *e) {
    const Problem *s = e->s;
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        e->start[i] = n;
        n += s->item[i].touch.count;
    }
    e->start[s->n] = n;
    e->touch = ARENA_ARRAY(s->arena, PlanTouch, n + 1);
    for (int i = 0; i < s->n; i++) {
        const Item *item = &s->item[i];
        for (int k = 0; k < item->touch.count; k++) {
            const int use = item->touch.at[k];
            e->touch[e->start[i] + k] = (PlanTouch){use, item->makes.at[k], s->use.at[use].kept};
        }
    }
}

PlanEval plan_eval_new(const Problem *s) {
    PlanEval e = {.s = s,
                  .memo = {.arena = s->arena},
                  .start = ARENA_ARRAY(s->arena, int, s->n + 1),
                  .now = ARENA_ARRAY(s->arena, int, s->use.count + 1),
                  .place = ARENA_ARRAY(s->arena, int, s->n + 1)};
    list_touches(&e);
    return e;
}

/* Room for so many calls, each of which may make what its item makes. */
static void make_room(PlanEval *e, const Plan *plan) {
    const Problem *s = e->s;
    int touches = 0;
    for (int p = 0; p < plan->call.count; p++) {
        touches += e->start[plan->call.at[p] + 1] - e->start[plan->call.at[p]];
    }
    if (touches > e->seen.capacity) {
        e->seen.capacity = 2 * touches;
        e->seen.at = ARENA_ARRAY(s->arena, int, e->seen.capacity);
    }
    const int values = s->use.count + 1 + (plan->call.count > s->n ? touches : 0);
    if (values > e->room) {
        e->room = 2 * values;
        e->value = ARENA_ARRAY(s->arena, PlanValue, e->room);
        e->taken = ARENA_ARRAY(s->arena, int, e->room);
        e->fits = ARENA_ARRAY(s->arena, bool, e->room);
    }
    if (plan->call.count + 2 > e->calls) {
        e->calls = 2 * plan->call.count + 2;
        e->need = ARENA_ARRAY(s->arena, int64_t, e->calls);
    }
}

static void find_values(PlanEval *e, const Plan *plan) {
    const Problem *s = e->s;
    const int calls = plan->call.count;
    int *now = e->now, *place = e->place, *seen = e->seen.at, count = 0;
    memset(place, -1, sizeof *place * (size_t)s->n);
    memset(now, -1, sizeof *now * (size_t)s->use.count);
    for (int p = 0; p < calls; p++) {
        const int i = plan->call.at[p];
        const bool again = place[i] >= 0;
        place[i] = again ? place[i] : p;
        const PlanTouch *end = &e->touch[e->start[i + 1]];
        for (const PlanTouch *t = &e->touch[e->start[i]]; t < end; t++) {
            int v = now[t->use];
            if (v < 0 || (again && t->makes)) {
                v = now[t->use] = count++;
                e->taken[v] = -1;
                e->value[v] = (PlanValue){t->use, p, p, v, NULL};
            }
            e->value[v].last = t->kept ? calls : p;
            *seen++ = v;
        }
    }
    e->count = count;
    e->seen.count = (int)(seen - e->seen.at);
}

int plan_root(const PlanEval *e, int v) {
    while (e->value[v].root != v) {
        v = e->value[v].root;
    }
    return v;
}

/* Values by number; of other Bufs a negative one. */
static int64_t bytes_now(const void *ctx, const Buf *buf) {
    const PlanEval *e = ctx;
    buf = problem_made_in(e->s->shared, buf);
    int v = buf->kind == BUF_TEMP && buf->loop == e->s->loop ? e->now[e->s->shared->local[buf->id]]
                                                             : -1;
    return v >= 0 ? plan_root(e, v) : -1 - (int64_t)buf->id;
}

/* The value of `out` takes over the bytes of `in` where those die with this call. */
static void take_over(PlanEval *e, const Step *step, int p, int in, int out) {
    if (e->now[in] < 0 || e->now[out] < 0) {
        return;
    }
    int old = plan_root(e, e->now[in]);
    PlanValue *v = &e->value[e->now[out]], *root = &e->value[old];
    const Bytes bytes = {bytes_now, e};
    if (root->last != p || v->first != p || v->root != e->now[out] || old == e->now[out] ||
        e->taken[old] == p || !step_yields(&bytes, step, old, e->s->use.at[out].buf, 0)) {
        return;
    }
    v->root = old;
    e->taken[old] = p;
    root->last = v->last;
}

static void share_bytes(PlanEval *e, const Plan *plan) {
    const Problem *s = e->s;
    const int *seen = e->seen.at;
    memset(e->now, -1, sizeof *e->now * (size_t)s->use.count);
    for (int p = 0; p < plan->call.count; p++) {
        const int i = plan->call.at[p];
        const Item *item = &s->item[i];
        for (int k = e->start[i]; k < e->start[i + 1]; k++) {
            e->now[e->touch[k].use] = *seen++;
        }
        for (int k = 0; k < item->over.count; k += 2) {
            take_over(e, item->step, p, item->over.at[k], item->over.at[k + 1]);
        }
    }
}

/* ---- gaps of carries ------------------------------------------------------------------------- */

/* The last call that reads a use; -1: none. */
static int last_reader(const PlanEval *e, const Plan *plan, int use) {
    int last = -1;
    for (int p = 0; use >= 0 && p < plan->call.count; p++) {
        const Ints *reads = &e->s->item[plan->call.at[p]].reads;
        for (int k = 0; k < reads->count; k++) {
            last = reads->at[k] == use ? p : last;
        }
    }
    return last;
}

typedef struct {
    Buf *carry;
    const Buf *next;
    int from, to; /* calls: the last reader of the carry, the first that touches what is next */
} GapCalls;

typedef struct {
    const PlanEval *e;
    const GapCalls *gap;
    int v; /* a value that is taken to have the carry's bytes */
} InGap;

/* 0: the carry's bytes. */
static int64_t bytes_in_gap(const void *ctx, const Buf *buf) {
    const InGap *in = ctx;
    const PlanEval *e = in->e;
    buf = problem_made_in(e->s->shared, buf);
    if (buf == problem_made_in(e->s->shared, in->gap->carry)) {
        return 0;
    }
    bool local = buf->kind == BUF_TEMP && buf->loop == e->s->loop;
    int v = local ? e->now[e->s->shared->local[buf->id]] : -1;
    return v >= 0 && plan_root(e, v) == in->v ? 0 : 1 + (int64_t)buf->id;
}

/* May value v be in the bytes of the carry? Of the calls at both ends, one reads the carry before
 * it writes the value, and one reads the value before it writes what the carry is next. */
static bool fits_gap(const PlanEval *e, const Plan *plan, const GapCalls *gap, int v) {
    const PlanValue *value = &e->value[v];
    const Use *use = &e->s->use.at[value->use];
    if (value->root != v || value->in != NULL || use->size == 0 || use->buf->kind != BUF_TEMP ||
        value->first < gap->from || value->last > gap->to || value->first == gap->to ||
        !layouts_agree(use->buf, gap->carry)) {
        return false;
    }
    const InGap in = {e, gap, v};
    const Bytes bytes = {bytes_in_gap, &in};
    const Step *first = e->s->item[plan->call.at[value->first]].step;
    const Step *last = e->s->item[plan->call.at[value->last]].step;
    return (value->first > gap->from || step_yields(&bytes, first, 0, use->buf, 0)) &&
           (value->last < gap->to || step_yields(&bytes, last, 0, gap->next, 0));
}

static bool meets_in_gap(const PlanEval *e, const Buf *carry, int v) {
    bool meets = false;
    for (int i = 0; i < e->count && !meets; i++) {
        const PlanValue *other = &e->value[i];
        meets = other->in == carry && other->first <= e->value[v].last &&
                e->value[v].first <= other->last;
    }
    return meets;
}

/* The one that is there for most calls, then what else fits beside it. */
static void fill_gap(PlanEval *e, const Plan *plan, const GapCalls *gap) {
    int longest = -1;
    bool *fits = e->fits;
    for (int v = 0; v < e->count; v++) {
        const PlanValue *value = &e->value[v];
        fits[v] = fits_gap(e, plan, gap, v);
        bool longer = longest < 0 ||
                      value->last - value->first > e->value[longest].last - e->value[longest].first;
        longest = fits[v] && longer ? v : longest;
    }
    for (int i = 0; i < e->count && longest >= 0; i++) {
        const int v = (longest + i) % e->count;
        if (fits[v] && !meets_in_gap(e, gap->carry, v)) {
            e->value[v].in = gap->carry;
        }
    }
}

static void fill_gaps(PlanEval *e, const Plan *plan) {
    const Problem *s = e->s;
    for (int i = 0; i < s->gap.count; i++) {
        const Use *next = &s->use.at[s->gap.at[i].next];
        const GapCalls gap = {.carry = next->buf->final,
                              .next = next->buf,
                              .from = last_reader(e, plan, s->gap.at[i].old),
                              .to = e->value[e->now[s->gap.at[i].next]].first};
        if (gap.from < gap.to) {
            fill_gap(e, plan, &gap);
        }
    }
}

PlanCost plan_eval(PlanEval *e, const Plan *plan, int64_t limit) {
    const Problem *s = e->s;
    PlanCost cost = {.at = -1};
    make_room(e, plan);
    find_values(e, plan);
    share_bytes(e, plan);
    fill_gaps(e, plan);
    memset(e->need, 0, sizeof *e->need * (size_t)(plan->call.count + 2)); /* changes at first */
    for (int v = 0; v < e->count; v++) {
        const PlanValue *value = &e->value[v];
        if (value->root == v && value->in == NULL) {
            e->need[value->first] += s->use.at[value->use].size;
            e->need[value->last + 1] -= s->use.at[value->use].size;
        }
    }
    int64_t live = 0;
    for (int p = 0; p < plan->call.count; p++) {
        const Item *item = &s->item[plan->call.at[p]];
        live += e->need[p];
        int64_t need = e->need[p] = live + item->inner;
        cost.over += need > limit ? need - limit : 0;
        cost.cost += e->place[plan->call.at[p]] < p ? item->cost : 0;
        if (cost.at < 0 || need > cost.peak) {
            cost.peak = need;
            cost.at = p;
        }
    }
    return cost;
}

/* By call: its first step; then that behind the last call, where copies stand. */
static int *number_calls(const PlanEval *e, const Plan *plan, Arena *scratch) {
    int *start = ARENA_ARRAY(scratch, int, plan->call.count + 1), at = 0;
    for (int p = 0; p < plan->call.count; p++) {
        const int span = e->s->item[plan->call.at[p]].span;
        start[p] = at;
        at += span > 1 ? span : 1;
    }
    start[plan->call.count] = at;
    return start;
}

/* By root: the step behind the last that touches its bytes. What is kept is copied at the end, in
 * the order of uses. */
static int *find_ends(const PlanEval *e, const int *start, int calls, Arena *scratch) {
    const Problem *s = e->s;
    int *end = ARENA_ARRAY(scratch, int, e->count + 1);
    int *copy = ARENA_ARRAY(scratch, int, s->use.count + 1), copies = 0;
    for (int u = 0; u < s->use.count; u++) {
        copy[u] = s->use.at[u].kept ? ++copies : 0;
    }
    for (int v = 0; v < e->count; v++) {
        const PlanValue *value = &e->value[v];
        const int root = plan_root(e, v);
        int own = value->last < calls ? start[value->last + 1] : 0;
        own = s->use.at[value->use].kept ? start[calls] + copy[value->use] : own;
        end[root] = own > end[root] ? own : end[root];
    }
    return end;
}

int64_t plan_height(PlanEval *e, const Plan *plan) {
    const Problem *s = e->s;
    Arena scratch = {0};
    plan_eval(e, plan, INT64_MAX);
    const int *start = number_calls(e, plan, &scratch);
    const int *end = find_ends(e, start, plan->call.count, &scratch);
    AllocItem *item = ARENA_ARRAY(&scratch, AllocItem, e->count + s->inside.count + 1);
    int n = 0;
    for (int v = 0; v < e->count; v++) {
        const PlanValue *value = &e->value[v];
        int64_t size = s->use.at[value->use].size;
        if (value->root == v && value->in == NULL && size > 0) {
            item[n++] = (AllocItem){start[value->first], end[v], size};
        }
    }
    for (int i = 0; i < s->inside.count; i++) {
        const Inside *in = &s->inside.at[i];
        int at = start[e->place[in->item]];
        item[n++] = (AllocItem){at + in->first, at + in->last, in->size};
    }
    int64_t *offset = ARENA_ARRAY(&scratch, int64_t, n + 1);
    int64_t height = alloc_place_any(&e->memo, item, n, offset);
    arena_free(&scratch);
    return height;
}

static bool called_between(const PlanEval *e, const Ints *items, int from, int to) {
    bool found = false;
    for (int k = 0; k < items->count && !found; k++) {
        int place = e->place[items->at[k]];
        found = place > from && place < to;
    }
    return found;
}

bool plan_repeatable(const PlanEval *e, int i, int place) {
    const Problem *s = e->s;
    int first = e->place[i];
    bool fits = s->item[i].pure && first < place;
    for (int k = 0; k < s->item[i].reads.count && fits; k++) {
        const Use *use = &s->use.at[s->item[i].reads.at[k]];
        const Use *next = use->next >= 0 ? &s->use.at[use->next] : NULL;
        fits = !called_between(e, &use->write, first, place) &&
               (next == NULL || !called_between(e, &next->write, first, place));
    }
    return fits;
}
