/* reach: what loops touch of each argument; see reach.h. Technique: one walk over the statements,
 * which adds up the ranges of the terms of every index; a guard that asks for an axis alone makes
 * its range narrower. Needs statements of a kernel; changes none. */
#include "passes/schedule/reach.h"

#include <string.h>

static Reach range(int64_t lo, int64_t hi) {
    return (Reach){.known = true, .lo = lo, .hi = hi};
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
    const int64_t lo = floor_div(of.lo, atom->by), hi = floor_div(of.hi, atom->by);
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
    t->index = t->index ? t->index : index;
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

int64_t loop_turns(const Kernel *k, int axis, int64_t span) {
    const int64_t extent = k->axis[axis].extent;
    return span > 0 && span < extent ? span : extent;
}

static void open_axis(Sites *s, int axis, const Index *begin, int64_t span) {
    Reach r = begin ? index_reach(s, begin) : range(0, 0);
    r.hi += loop_turns(s->k, axis, span) - 1;
    r.inside = true;
    s->axis[axis] = r;
}

/* Adds what the statements touch. */
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

Sites sites_of(const Kernel *k, Arena *scratch, const StmtList *list, const Stmt *loop,
               int64_t each) {
    Sites s = {.k = k, .arg = ARENA_ARRAY(scratch, Touched, k->nargs + 1)};
    for (int a = 0; a < k->naxis; a++) {
        s.axis[a] = range(0, k->axis[a].extent - 1);
    }
    if (loop) {
        s.axis[loop->axis] = (Reach){.known = true, .mul = each, .hi = each - 1};
    }
    list_sites(&s, list, scratch);
    return s;
}

bool sites_apart(const Sites *a, const Sites *b) {
    bool fit = !a->refused && !b->refused;
    for (int i = 0; i < a->k->nargs && fit; i++) {
        const Touched *x = &a->arg[i], *y = &b->arg[i];
        fit = !(x->store && (y->load || y->store)) && !(y->store && x->load);
    }
    return fit;
}

StmtList list_part(const StmtList *list, int from, int to) {
    return (StmtList){.at = list->at + from, .count = to - from};
}

void list_append(Kernel *k, StmtList *to, const StmtList *from) {
    for (int i = 0; i < from->count; i++) {
        VEC_PUSH_FROM(k->arena, to, from->at[i], from->count);
    }
}

bool sites_pair(const Kernel *k, Arena *scratch, const Arg *arg, const StmtList *list,
                int pair[2]) {
    int n = 0;
    for (int i = 0; i < list->count; i++) {
        const StmtList one = list_part(list, i, i + 1);
        const Sites s = sites_of(k, scratch, &one, NULL, 0);
        const Touched *t = &s.arg[arg->id];
        if (s.refused || ((t->load || t->store) && n == 2)) {
            return false;
        }
        if (t->load || t->store) {
            pair[n++] = i;
        }
    }
    if (n < 2) {
        return false;
    }
    const StmtList first = list_part(list, pair[0], pair[0] + 1);
    const StmtList between = list_part(list, pair[0] + 1, pair[1]);
    const Sites f = sites_of(k, scratch, &first, NULL, 0);
    const Sites m = sites_of(k, scratch, &between, NULL, 0);
    return sites_apart(&f, &m);
}
