/* join: a loop that makes what the next one reads, and that loop, become one, slice by slice.
 *
 * Technique: what both run over is cut into as many slices, of which each turn of one loop around
 * both makes one. That is the same where what one of them writes and the other touches lies, in
 * each slice, in bytes of its own; where an index lies in slice m is found as a multiple of m and a
 * range. A workspace that only these two touch then needs no more than a slice for each thread,
 * which stays in its cache: this is what they are joined for. So the copy of a sample with its
 * border is made, read by all of its windows, and gone. Needs the statements of a kernel; changes
 * no values: each loop does what it did, in the same order. */
#include "passes/schedule/schedule.h"

#include <string.h>

/* What a turn reaches: `mul` times its number, and from there `lo` to `hi`. */
typedef struct {
    bool known;
    int64_t mul, lo, hi;
    bool inside; /* of an axis: a loop of the statements at hand runs over it */
} Reach;

/* What is reached of an argument by all turns of a loop. */
typedef struct {
    bool load, store, odd; /* odd: not by slices */
    Reach at;
    const Index *index; /* of its first load */
} Touched;

typedef struct {
    const Kernel *k;
    Reach axis[AXES_MAX];
    Touched *arg; /* by Arg.id */
    bool refused; /* it holds what is no loop */
} Sites;

static Reach range(int64_t lo, int64_t hi) {
    return (Reach){.known = true, .lo = lo, .hi = hi};
}

static int64_t floored(int64_t a, int64_t by) {
    return a / by - (a % by < 0);
}

static Reach index_reach(const Sites *s, const Index *index);

static Reach atom_reach(const Sites *s, const Atom *atom) {
    if (atom->kind == ATOM_AXIS) {
        return s->axis[atom->number];
    }
    if (atom->kind == ATOM_LOOP) {
        return (Reach){0};
    }
    if (atom->kind == ATOM_VALUE) {
        return range(atom->least, atom->most);
    }
    const Reach of = index_reach(s, atom->of);
    if (!of.known || of.mul % atom->by != 0) {
        return range(atom->least, atom->most);
    }
    const int64_t lo = floored(of.lo, atom->by), hi = floored(of.hi, atom->by);
    if (atom->kind == ATOM_DIV) {
        return (Reach){.known = true, .mul = of.mul / atom->by, .lo = lo, .hi = hi};
    }
    return lo == hi ? range(of.lo - lo * atom->by, of.hi - lo * atom->by) : range(0, atom->by - 1);
}

static Reach index_reach(const Sites *s, const Index *index) {
    Reach sum = range(index->base, index->base);
    for (int i = 0; i < index->nterm; i++) {
        const Reach r = atom_reach(s, index->term[i].atom);
        const int64_t mul = index->term[i].mul;
        if (!r.known) {
            return (Reach){0};
        }
        sum.mul += r.mul * mul;
        sum.lo += mul * (mul > 0 ? r.lo : r.hi);
        sum.hi += mul * (mul > 0 ? r.hi : r.lo);
    }
    return sum;
}

static void touch(Sites *s, const Arg *arg, const Index *index, bool store) {
    Touched *t = &s->arg[arg->id];
    const Reach at = index_reach(s, index);
    const bool first = !t->load && !t->store;
    t->index = !store && !t->index ? index : t->index;
    t->load = t->load || !store;
    t->store = t->store || store;
    if (!at.known || at.mul <= 0 || (!first && at.mul != t->at.mul)) {
        t->odd = true;
    } else if (first) {
        t->at = at;
    } else {
        t->at.lo = at.lo < t->at.lo ? at.lo : t->at.lo;
        t->at.hi = at.hi > t->at.hi ? at.hi : t->at.hi;
    }
}

/* Where the guard holds, an axis that it asks for alone is within what it says. */
static void guarded(Sites *s, const Expr *guard) {
    if (guard->kind == EXPR_MAP && guard->op == OP_AND) {
        guarded(s, guard->in[0]);
        guarded(s, guard->in[1]);
        return;
    }
    const Index *index = guard->kind == EXPR_WITHIN ? guard->index : NULL;
    if (!index || index->nterm != 1 || index->term[0].mul != 1 ||
        index->term[0].atom->kind != ATOM_AXIS) {
        return;
    }
    Reach *r = &s->axis[index->term[0].atom->number];
    const int64_t lo = guard->lo - index->base, hi = guard->hi - 1 - index->base;
    if (r->known && r->mul == 0) {
        r->lo = lo > r->lo ? lo : r->lo;
        r->hi = hi < r->hi ? hi : r->hi;
    }
}

static void expr_sites(Sites *s, const Expr *e, bool *seen) {
    if (seen[e->id]) {
        return;
    }
    seen[e->id] = true;
    if (e->kind == EXPR_LOAD && e->nin == 2) {
        Reach before[AXES_MAX];
        memcpy(before, s->axis, sizeof before);
        guarded(s, e->in[0]);
        touch(s, e->arg, e->index, false);
        memcpy(s->axis, before, sizeof before);
    } else if (e->kind == EXPR_LOAD) {
        touch(s, e->arg, e->index, false);
    }
    for (int i = 0; i < e->nkid; i++) {
        expr_sites(s, e->kid[i], seen);
    }
}

static void index_sites(Sites *s, const Index *index, bool *seen) {
    const Expr *kid[MD_RANK];
    const int n = index ? index_kids(index, kid, 0, MD_RANK) : 0;
    for (int i = 0; i < n; i++) {
        expr_sites(s, kid[i], seen);
    }
}

static void open_axis(Sites *s, int axis, const Index *begin, int64_t span) {
    const int64_t extent = s->k->axis[axis].extent;
    Reach r = begin ? index_reach(s, begin) : range(0, 0);
    r.hi += (span > 0 && span < extent ? span : extent) - 1;
    r.inside = true;
    s->axis[axis] = r;
}

static void list_sites(Sites *s, const StmtList *list, Arena *scratch) {
    bool *seen = ARENA_ARRAY(scratch, bool, s->k->expr.count + 1);
    for (int i = 0; i < list->count; i++) {
        const Stmt *st = list->at[i];
        index_sites(s, st->begin, seen);
        switch (st->kind) {
        case STMT_FOR:
            open_axis(s, st->axis, st->begin, st->span);
            list_sites(s, &st->body, scratch);
            break;
        case STMT_LET: expr_sites(s, st->as ? st->as : st->expr, seen); break;
        case STMT_STORE:
            index_sites(s, st->index, seen);
            expr_sites(s, st->expr, seen);
            touch(s, st->arg, st->index, true);
            if (st->add != OP_CONST) {
                touch(s, st->arg, st->index, false);
            }
            break;
        case STMT_FOLD: {
            for (int a = 0; a < st->axes.count; a++) {
                open_axis(s, st->axes.at[a], a == 0 ? st->begin : NULL, a == 0 ? st->span : 0);
            }
            list_sites(s, &st->body, scratch);
            bool *inside = ARENA_ARRAY(scratch, bool, s->k->expr.count + 1);
            for (int f = 0; f < st->fold.count && !st->parts; f++) {
                for (int c = 0; c < st->fold.at[f]->nkid; c++) {
                    expr_sites(s, st->fold.at[f]->kid[c], inside);
                }
            }
            break;
        }
        case STMT_TILE:
        case STMT_ORDER: s->refused = true; break;
        }
    }
}

/* What a parallel loop touches when each turn is so many of its own, or other statements do. */
static Sites sites_of(const Kernel *k, Arena *scratch, const StmtList *list, const Stmt *loop,
                      int64_t each) {
    Sites s = {.k = k, .arg = ARENA_ARRAY(scratch, Touched, k->nargs + 1)};
    for (int a = 0; a < k->naxis; a++) {
        s.axis[a] = range(0, k->axis[a].extent - 1);
    }
    if (loop) {
        s.axis[loop->axis] = (Reach){.known = true, .mul = each, .hi = each - 1};
    }
    if (list) {
        list_sites(&s, list, scratch);
    }
    return s;
}

/* May turns of both be one behind the other, slice by slice? */
static bool slices_fit(const Sites *a, const Sites *b) {
    for (int i = 0; i < a->k->nargs; i++) {
        const Touched *x = &a->arg[i], *y = &b->arg[i];
        const bool in_a = x->load || x->store, in_b = y->load || y->store;
        if (!in_a || !in_b || (!x->store && !y->store)) {
            continue;
        }
        const int64_t lo = x->at.lo < y->at.lo ? x->at.lo : y->at.lo;
        const int64_t hi = x->at.hi > y->at.hi ? x->at.hi : y->at.hi;
        if (x->odd || y->odd || x->at.mul != y->at.mul || lo < 0 || hi >= x->at.mul) {
            return false;
        }
    }
    return !a->refused && !b->refused;
}

/* Statements in any order: none touches what another one writes. */
static bool apart(const Sites *a, const Sites *b) {
    bool fit = !a->refused && !b->refused;
    for (int i = 0; i < a->k->nargs && fit; i++) {
        const Touched *x = &a->arg[i], *y = &b->arg[i];
        fit = !(x->store && (y->load || y->store)) && !(y->store && x->load);
    }
    return fit;
}

/* --- one loop of two -------------------------------------------------------------------------- */

/* A workspace, and the two loops that alone touch it. */
typedef struct {
    Kernel *k;
    Arena *scratch;
    Arg *arg;
    StmtList *list; /* that holds both */
    int from, to;   /* in it */
    int64_t slices; /* of both */
    int64_t slice;  /* elements of one in the workspace */
    int axis;       /* number of the slice */
} Join;

static int64_t divisor(int64_t a, int64_t b) {
    return b == 0 ? a : divisor(b, a % b);
}

static int64_t turns_each(const Join *j, const Stmt *loop) {
    return j->k->axis[loop->axis].extent / j->slices;
}

static StmtList part_of(const StmtList *list, int from, int to) {
    return (StmtList){.at = list->at + from, .count = to - from};
}

/* The loops around all that touches the workspace; false: there are not just two. */
static bool find_loops(Join *j) {
    int n = 0;
    j->from = j->to = -1;
    for (int i = 0; i < j->list->count; i++) {
        const StmtList one = part_of(j->list, i, i + 1);
        const Sites s = sites_of(j->k, j->scratch, &one, NULL, 0);
        const Touched *t = &s.arg[j->arg->id];
        if (s.refused) {
            return false;
        }
        if (t->load || t->store) {
            j->from = n == 0 ? i : j->from;
            j->to = i;
            n++;
        }
    }
    return n == 2;
}

/* Both loops are alike, can go slice by slice, and what stands between them can stand before. */
static bool may_join(Join *j) {
    const Kernel *k = j->k;
    const Stmt *a = j->list->at[j->from], *b = j->list->at[j->to];
    if (a->kind != STMT_FOR || b->kind != STMT_FOR || a->begin || b->begin || a->simd || b->simd ||
        (a->parallel > 0) != (b->parallel > 0)) {
        return false;
    }
    j->slices = divisor(k->axis[a->axis].extent, k->axis[b->axis].extent);
    const int64_t fewest =
        j->list == &k->body ? k->threads : 1; /* that is no less for each thread */
    if (j->slices <= fewest || k->naxis + 3 > AXES_MAX) {
        return false;
    }
    const StmtList first = part_of(j->list, j->from, j->from + 1);
    const StmtList between = part_of(j->list, j->from + 1, j->to);
    const Sites f = sites_of(k, j->scratch, &first, NULL, 0);
    const Sites m = sites_of(k, j->scratch, &between, NULL, 0);
    const Sites x = sites_of(k, j->scratch, &a->body, a, turns_each(j, a));
    const Sites y = sites_of(k, j->scratch, &b->body, b, turns_each(j, b));
    j->slice = x.arg[j->arg->id].at.mul;
    return apart(&f, &m) && slices_fit(&x, &y);
}

/* --- the statements of a slice ---------------------------------------------------------------- */

static const Index *moved(ExprAt *x, const Index *index, const Arg *arg) {
    if (!index) {
        return NULL;
    }
    index = index_subst(&x->k->index, index, x->axis, x->place);
    return arg && arg == x->arg ? index_add(&x->k->index, index, x->by) : index;
}

static bool slice_list(ExprAt *x, Arena *scratch, const StmtList *from, StmtList *to);

/* A loop over a part of its axis that depends on the slice counts its turns from 0 on. */
static bool slice_turns(Kernel *k, Arena *scratch, Stmt *s) {
    const int axis = s->axis;
    const StmtList before = s->body;
    if (s->span <= 0 || s->begin->most + s->span > k->axis[axis].extent) {
        return false;
    }
    memset(&s->body, 0, sizeof s->body);
    s->axis = kernel_axis(k, s->span, k->axis[axis].name);
    const Index *place = index_add(&k->index, s->begin, kernel_axis_index(k, s->axis));
    s->begin = NULL;
    s->span = 0;
    ExprAt x = expr_at_open(k, scratch, axis, place);
    for (int i = 0; i < s->ahead.count; i++) { /* the list is the copy's own */
        s->ahead.at[i].at = moved(&x, s->ahead.at[i].at, NULL);
    }
    return slice_list(&x, scratch, &before, &s->body);
}

/* The statements where the axis is at its place; false: that cannot be said. */
static bool slice_list(ExprAt *x, Arena *scratch, const StmtList *from, StmtList *to) {
    for (int i = 0; i < from->count; i++) {
        const Stmt *old = from->at[i];
        Stmt *s = ARENA_NEW(x->k->arena, Stmt);
        *s = *old;
        memset(&s->body, 0, sizeof s->body);
        memset(&s->ahead, 0, sizeof s->ahead);
        s->parallel = 0;
        s->begin = moved(x, old->begin, NULL);
        s->index = moved(x, old->index, old->arg);
        s->expr = old->expr ? expr_at(x, old->expr) : NULL;
        s->as = old->as ? expr_at(x, old->as) : NULL;
        if ((old->expr && !s->expr) || (old->as && !s->as) || old->kind == STMT_FOLD ||
            !slice_list(x, scratch, &old->body, &s->body)) {
            return false;
        }
        for (int m = 0; m < old->ahead.count; m++) {
            Stream stream = old->ahead.at[m];
            stream.at = moved(x, stream.at, NULL);
            if (stream.arg != x->arg) { /* a slice is in the cache */
                VEC_PUSH_FROM(x->k->arena, &s->ahead, stream, 2);
            }
        }
        const bool part = s->begin != old->begin;
        if (part && x->k->naxis == AXES_MAX) {
            return false;
        }
        if (part && !slice_turns(x->k, scratch, s)) {
            return false;
        }
        VEC_PUSH_FROM(x->k->arena, to, s, from->count);
    }
    return true;
}

/* What one of the loops does in a slice. */
static bool slice_loop(const Join *j, const Stmt *loop, StmtList *list) {
    Kernel *k = j->k;
    const int64_t each = turns_each(j, loop);
    const Index *slice = kernel_axis_index(k, j->axis);
    const Index *place = index_scale(&k->index, slice, each);
    if (each > 1) {
        Stmt *turns = stmt_for(k, list, kernel_axis(k, each, k->axis[loop->axis].name));
        place = index_add(&k->index, place, kernel_axis_index(k, turns->axis));
        list = &turns->body;
    }
    StmtList placed = {0};
    ExprAt x = expr_at_open(k, j->scratch, loop->axis, place);
    if (!slice_list(&x, j->scratch, &loop->body, &placed)) {
        return false;
    }
    x = expr_at_open(k, j->scratch, loop->axis, place); /* where it stands no more */
    x.arg = j->arg;
    x.by = index_scale(&k->index, slice, -j->slice);
    return slice_list(&x, j->scratch, &placed, list);
}

/* --- the next slice --------------------------------------------------------------------------- */

/* The loop with the most turns in the statements, vector loops aside, and the loops around it. */
typedef struct {
    Stmt *at[AXES_MAX];
    int n;
    int64_t turns;
} Path;

static void most_turns(const Kernel *k, const StmtList *list, Path *here, Path *most) {
    for (int i = 0; i < list->count; i++) {
        Stmt *s = list->at[i];
        if (s->kind != STMT_FOR || s->simd || s->begin || here->n == AXES_MAX) {
            continue;
        }
        const int64_t before = here->turns;
        here->at[here->n++] = s;
        here->turns = count_add(0, before, k->axis[s->axis].extent);
        *most = here->turns > most->turns ? *here : *most;
        most_turns(k, &s->body, here, most);
        here->n--;
        here->turns = before;
    }
}

/* While the second loop works on a slice, what the first one reads of large arguments for the next
 * slice is asked for, some lines a turn: memory would rest meanwhile, and be waited for then. */
static void ask_ahead(const Join *j, const StmtList *first, const StmtList *second) {
    enum { FAR = TUNED(1 << 19, 64) }; /* bytes: no second-level cache holds it */
    Kernel *k = j->k;
    Path here = {.turns = 1}, path = {.turns = 1};
    most_turns(k, second, &here, &path);
    Sites s = sites_of(k, j->scratch, NULL, NULL, 0);
    s.axis[j->axis] = (Reach){.known = true, .mul = 1};
    list_sites(&s, first, j->scratch);
    const Index *turn = index_const(&k->index, 0);
    for (int i = 0; i < path.n; i++) {
        const int axis = path.at[i]->axis;
        turn = index_scale(&k->index, turn, k->axis[axis].extent);
        turn = index_add(&k->index, turn, kernel_axis_index(k, axis));
    }
    for (int i = 0; i < k->arg.count && path.n > 0; i++) {
        const Arg *arg = k->arg.at[i];
        const Touched *t = &s.arg[arg->id];
        const int64_t each = (t->at.mul + path.turns - 1) / path.turns;
        const int64_t bytes = (int64_t)elem_bytes(arg->elem);
        if (!t->load || t->store || t->odd || each * bytes < MD_ALIGN ||
            type_count(*kernel_buf(k, arg)->type) * bytes < FAR) {
            continue;
        }
        const Index *at = t->index;
        for (int axis = 0; axis < k->naxis; axis++) { /* of the loops inside of the slice */
            const bool inside = axis != j->axis && s.axis[axis].inside;
            at = inside ? index_subst(&k->index, at, axis, index_const(&k->index, 0)) : at;
        }
        at = index_offset(&k->index, at, t->at.lo - at->base + t->at.mul);
        at = index_add(&k->index, at, index_scale(&k->index, turn, each));
        const Stream stream = {.arg = arg, .at = at, .row = each};
        VEC_PUSH_FROM(k->arena, &path.at[path.n - 1]->ahead, stream, 2);
    }
}

/* --- all of it -------------------------------------------------------------------------------- */

static bool join_all(Join *j);

/* The loop of the two becomes one, and so do those that a slice is left with. */
static bool join(Join *j) {
    Kernel *k = j->k;
    const Stmt *a = j->list->at[j->from], *b = j->list->at[j->to];
    StmtList list = {0}, one = {0}, first = {0}, second = {0};
    j->axis = kernel_axis(k, j->slices, k->axis[a->axis].name);
    Stmt *both = stmt_for(k, &one, j->axis);
    both->parallel = a->parallel > 0;
    if (!slice_loop(j, a, &first) || !slice_loop(j, b, &second)) {
        return false;
    }
    for (int i = 0; i < first.count + second.count; i++) {
        Stmt *s = i < first.count ? first.at[i] : second.at[i - first.count];
        VEC_PUSH_FROM(k->arena, &both->body, s, first.count + second.count);
    }
    for (int i = 0; i < j->list->count; i++) {
        if (i == j->to) {
            VEC_PUSH_FROM(k->arena, &list, both, j->list->count);
        } else if (i != j->from) {
            VEC_PUSH_FROM(k->arena, &list, j->list->at[i], j->list->count);
        }
    }
    *j->list = list;
    Join inner = {.k = k, .scratch = j->scratch, .arg = j->arg, .list = &both->body};
    if (join_all(&inner)) {
        j->slice = inner.slice;
    } else {
        ask_ahead(j, &first, &second);
    }
    return true;
}

static bool join_all(Join *j) {
    return find_loops(j) && may_join(j) && join(j);
}

int64_t loops_join(Kernel *k, Arena *scratch, Arg *arg) {
    Join j = {.k = k, .scratch = scratch, .arg = arg, .list = &k->body};
    return arg->work && !arg->thread && join_all(&j) ? j.slice : 0;
}
