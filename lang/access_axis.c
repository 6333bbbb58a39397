/* access_axis: one axis of an access after the other becomes a view over the object, data the last:
 * one gather takes all axes that are picked by data. The axes of the node under construction carry
 * labels, so that each step finds its place. Needs uses that access.c has read, gives the node with
 * its labels. */
#include "lang/access_axis.h"

#include "lang/arith.h"
#include "lang/expr.h"

#include <string.h>

const char *axis_object(Access *a) {
    const char *path = elab_path(a->e, a->ast->kid[0]);
    return path ? str_printf(a->e->arena, "'%s'", path) : "the object";
}

int axis_place(const Access *a, const AxisUse *use) {
    for (int i = 0; i < a->rank; i++) {
        if (a->label[i].use == use) {
            return i;
        }
    }
    BUG("an axis of an access is lost");
}

static void label_remove(Access *a, int at) {
    memmove(&a->label[at], &a->label[at + 1], sizeof a->label[0] * (size_t)(a->rank - at - 1));
    a->rank--;
}

static void label_insert(Access *a, int at, Label label) {
    memmove(&a->label[at + 1], &a->label[at], sizeof a->label[0] * (size_t)(a->rank - at));
    a->label[at] = label;
    a->rank++;
}

static bool outside(Access *a, const AxisUse *use, int64_t lo, int64_t hi) {
    elab_error(a->e, use->at->loc, 382,
               "this index runs over %lld..%lld, but axis %d of %s has extent "
               "%s",
               (long long)lo, (long long)hi + 1, use->number, axis_object(a),
               dim_text(a->e->arena, use->dim));
    diag_hint(&a->e->c->diag,
              "a border gives the values outside: x[...] else 0, else edge, else wrap");
    return false;
}

/* Nothing of an axis without elements can be picked, nor stand for what lies outside of it. */
static bool axis_is_empty(Access *a, const AxisUse *use) {
    elab_error(a->e, use->at->loc, 690, "axis %d of %s has no elements to pick from", use->number,
               axis_object(a));
    diag_hint(&a->e->c->diag, "'when n > 0 { ... } else { ... }' takes another value where the "
                              "extent n is 0");
    return false;
}

/* Makes positions lo..hi (inclusive) of the axis at `at` legal: pads as the border says. Gives the
 * position of the old element 0. */
static bool pad_axis(Access *a, const AxisUse *use, int at, int64_t lo, int64_t hi, int64_t *zero) {
    int64_t n = a->node->type->dim[at], before[MD_RANK] = {0}, after[MD_RANK] = {0};
    *zero = 0;
    if (lo >= 0 && hi < n) {
        return true;
    }
    if (a->border == BORDER_NONE) {
        return outside(a, use, lo, hi);
    }
    if (n == 0 && a->border != BORDER_VALUE) {
        return axis_is_empty(a, use);
    }
    before[at] = lo < 0 ? -lo : 0;
    after[at] = hi >= n ? hi - n + 1 : 0;
    double elements = 1;
    for (int i = 0; i < a->rank; i++) {
        elements *= (double)(a->node->type->dim[i] + before[i] + after[i]);
    }
    if (elements > 1e13) {
        return outside(a, use, lo, hi);
    }
    a->node = node_pad(a->e->g, a->node, before, after, a->border, a->value);
    *zero = before[at];
    return true;
}

/* Positions c + coef * i, i < n, of the axis at `at`. */
static bool slice_axis(Access *a, const AxisUse *use, int at, int64_t c, int64_t coef, int64_t n) {
    int64_t last = c + coef * (n - 1), zero;
    int64_t lo = coef > 0 ? c : last, hi = coef > 0 ? last : c;
    if (n == 0) { /* no position is read */
        a->node = node_slice_axis(a->e->g, a->node, at, 0, 0, 1);
        return true;
    }
    if (!pad_axis(a, use, at, lo, hi, &zero)) {
        return false;
    }
    a->node = node_slice_axis(a->e->g, a->node, at, lo + zero, n, coef > 0 ? coef : -coef);
    if (coef < 0 && n > 1) {
        a->node = node_flip(a->e->g, a->node, 1u << at);
    }
    return true;
}

bool axis_const(Access *a, AxisUse *use) {
    int at = axis_place(a, use);
    int64_t zero, c = use->affine.c;
    if (!pad_axis(a, use, at, c, c, &zero)) {
        return false;
    }
    a->node = node_index_axis(a->e->g, a->node, at, c + zero);
    label_remove(a, at);
    return true;
}

bool axis_loop(Access *a, AxisUse *use) {
    const LoopScope *loop = use->affine.loop;
    int at = axis_place(a, use);
    Region *before = graph_enter(a->e->g, loop->outer);
    bool ok = slice_axis(a, use, at, use->affine.c, use->affine.loop_coef, loop->trip.size);
    if (ok) {
        int map[MD_RANK];
        map[0] = at;
        for (int i = 0, k = 1; i < a->rank; i++) {
            if (i != at) {
                map[k++] = i;
            }
        }
        a->node = node_permute(a->e->g, a->node, map);
    }
    graph_leave(a->e->g, before);
    if (!ok) {
        return false;
    }
    a->node = loop_xs(loop->builder, a->node);
    label_remove(a, at);
    return true;
}

static bool no_axis_left(Access *a, const AxisUse *use) {
    elab_error(a->e, use->at->loc, 327, "this needs more than %d axes and indices together",
               MD_RANK);
    return false;
}

/* Indices in one axis, one of which has no values: no position is read. */
static bool axis_of_nothing(Access *a, const AxisUse *use, int at, const Affine *f) {
    int64_t dim[MD_RANK];
    int rank = 0;
    if (a->rank + f->n - 1 > MD_RANK) {
        return no_axis_left(a, use);
    }
    for (int i = 0; i < a->rank; i++) {
        for (int k = 0; i == at && k < f->n; k++) {
            dim[rank++] = f->term[k].ix->extent.size;
        }
        if (i != at) {
            dim[rank++] = a->node->type->dim[i];
        }
    }
    a->node = node_reshape(a->e->g, node_slice_axis(a->e->g, a->node, at, 0, 0, 1), rank, dim);
    a->label[at] = (Label){f->term[0].ix, NULL};
    for (int k = 1; k < f->n; k++) {
        label_insert(a, at + k, (Label){f->term[k].ix, NULL});
    }
    return true;
}

/* Two or more indices in one axis. Terms are in order of binding: the outermost is the count of the
 * window, the rest its taps; three or more split the taps again. */
bool axis_window(Access *a, const AxisUse *use, int at, Affine f) {
    Graph *g = a->e->g;
    if (f.n == 1) {
        a->label[at] = (Label){f.term[0].ix, NULL};
        return slice_axis(a, use, at, f.c, f.term[0].coef, f.term[0].ix->extent.size);
    }
    for (int i = 1; i < f.n; i++) {
        for (int k = i; k > 0 && f.term[k - 1].ix->seq > f.term[k].ix->seq; k--) {
            Term swap = f.term[k];
            f.term[k] = f.term[k - 1];
            f.term[k - 1] = swap;
        }
    }
    int64_t lo = f.c, hi = f.c;
    bool nothing = false;
    for (int i = 0; i < f.n; i++) {
        nothing = nothing || f.term[i].ix->extent.size == 0;
        int64_t last = f.term[i].coef * (f.term[i].ix->extent.size - 1);
        lo += last < 0 ? last : 0;
        hi += last > 0 ? last : 0;
    }
    if (nothing) {
        return axis_of_nothing(a, use, at, &f);
    }
    int64_t zero = 0;
    bool inside = lo >= 0 && hi < a->node->type->dim[at];
    Border border = inside ? BORDER_NONE : a->border;
    if (!inside && border != BORDER_VALUE && !pad_axis(a, use, at, lo, hi, &zero)) {
        return false;
    }
    if (border != BORDER_VALUE) {
        border = BORDER_NONE;
    }
    Term first = f.term[0];
    int64_t n = first.ix->extent.size;
    if (a->rank >= MD_RANK) {
        return no_axis_left(a, use);
    }
    if (f.n == 2) {
        Term second = f.term[1];
        a->node = node_window(g, a->node, at, first.coef, second.coef, -(f.c + zero), n,
                              second.ix->extent.size, border, border == BORDER_NONE ? 0 : a->value);
        a->label[at] = (Label){first.ix, NULL};
        label_insert(a, at + 1, (Label){second.ix, NULL});
        return true;
    }
    /* The taps run over all positions that the rest can reach, from its least one. */
    Affine rest = {.n = f.n - 1};
    int64_t least = 0, most = 0;
    for (int i = 1; i < f.n; i++) {
        rest.term[i - 1] = f.term[i];
        int64_t last = f.term[i].coef * (f.term[i].ix->extent.size - 1);
        least += last < 0 ? last : 0;
        most += last > 0 ? last : 0;
    }
    a->node = node_window(g, a->node, at, first.coef, 1, -(f.c + zero + least), n, most - least + 1,
                          border, border == BORDER_NONE ? 0 : a->value);
    a->label[at] = (Label){first.ix, NULL};
    label_insert(a, at + 1, (Label){NULL, NULL});
    rest.c = -least;
    return axis_window(a, use, at + 1, rest);
}

/* Two axes with one index: their diagonal. */
static void diagonal(Access *a, int i, int k) {
    int map[MD_RANK], n = 0;
    int64_t dim[MD_RANK], extent = a->node->type->dim[i];
    for (int j = 0; j < a->rank; j++) {
        if (j != i && j != k) {
            map[n++] = j;
        }
    }
    map[n] = i;
    map[n + 1] = k;
    Label rest[2 * MD_RANK];
    a->node = node_permute(a->e->g, a->node, map);
    for (int j = 0; j < n; j++) {
        rest[j] = a->label[map[j]];
        dim[j] = a->node->type->dim[j];
    }
    rest[n] = a->label[i];
    int64_t row = a->node->type->dim[n + 1];
    dim[n] = extent * row;
    a->node = node_reshape(a->e->g, a->node, n + 1, dim);
    a->node = node_slice_axis(a->e->g, a->node, n, 0, extent, row + 1);
    memcpy(a->label, rest, sizeof *rest * (size_t)(n + 1));
    a->rank = n + 1;
}

void axis_diagonals(Access *a) {
    for (int i = 0; i < a->rank; i++) {
        for (int k = i + 1; k < a->rank; k++) {
            if (a->label[i].ix && a->label[i].ix == a->label[k].ix) {
                diagonal(a, i, k);
                i = -1;
                break;
            }
        }
    }
}

/* --- data-dependent indices ------------------------------------------------------------------ */

static const Value *data_index(Access *a, AxisUse *use, const Value **mask) {
    Elab *e = a->e;
    Loc loc = use->at->loc;
    const Value *v = use->data;
    int64_t n = use->dim.size;
    if (v->ranged && v->lo >= 0 && v->hi <= n) {
        return v;
    }
    if (n == 0) {
        axis_is_empty(a, use);
        return &value_poison;
    }
    if (a->border == BORDER_NONE) {
        if (v->ranged) {
            outside(a, use, v->lo, v->hi - 1);
            return &value_poison;
        }
        elab_error(e, loc, 384,
                   "this index is data, and nothing says that it stays inside axis %d of "
                   "%s (0..%lld)",
                   use->number, axis_object(a), (long long)n);
        diag_hint(&e->c->diag,
                  "declare a range where it enters ('in 0..%lld'), or write "
                  "clamp(i, 0, %lld)",
                  (long long)n, (long long)(n - 1));
        return &value_poison;
    }
    const Value *last = value_int(e->scratch, n - 1), *zero = value_int(e->scratch, 0);
    if (a->border == BORDER_WRAP) {
        return arith_divide(e, loc, true, v, value_int(e->scratch, n));
    }
    if (a->border == BORDER_VALUE) {
        const Value *in = arith_binary(e, loc, AO_AND, arith_binary(e, loc, AO_GE, v, zero),
                                       arith_binary(e, loc, AO_LE, v, last));
        *mask = *mask ? arith_binary(e, loc, AO_AND, *mask, in) : in;
    }
    return arith_minmax(e, loc, false, arith_minmax(e, loc, true, v, zero), last);
}

/* Picks by the axes that are data: one gather from the object as [batch, merged, rest], where batch
 * axes are indices that the data spans too. `mask` is set where a border gives the value. */
bool axis_gather(Access *a, AxisUse *use, int nuse, const Value **mask) {
    Elab *e = a->e;
    const Value *at = NULL;
    int data[MD_RANK], ndata = 0;
    int64_t merged = 1;
    *mask = NULL;
    for (int i = 0; i < nuse; i++) {
        if (use[i].kind != AXIS_DATA) {
            continue;
        }
        const Value *v = data_index(a, &use[i], mask);
        if (!elab_ok(v)) {
            return false;
        }
        data[ndata++] = axis_place(a, &use[i]);
        if (at) {
            Loc loc = use[i].at->loc;
            const Value *n = value_int(e->scratch, use[i].dim.size);
            at = arith_binary(e, loc, AO_ADD, arith_binary(e, loc, AO_MUL, at, n), v);
        } else {
            at = v;
        }
        merged *= use[i].dim.size;
    }
    if (ndata == 0) {
        return true;
    }
    int map[2 * MD_RANK], n = 0, nbatch = 0;
    for (int pass = 0; pass < 3; pass++) {
        if (pass == 1) {
            for (int i = 0; i < ndata; i++) {
                map[n++] = data[i];
            }
            continue;
        }
        for (int i = 0; i < a->rank; i++) {
            bool shared = false;
            for (int k = 0; k < at->nspan; k++) {
                shared = shared || at->span[k] == a->label[i].ix;
            }
            bool is_data = false;
            for (int k = 0; k < ndata; k++) {
                is_data = is_data || data[k] == i;
            }
            if (!is_data && shared == (pass == 0)) {
                map[n++] = i;
            }
        }
        if (pass == 0) {
            nbatch = n;
        }
    }
    Node *x = node_permute(e->g, a->node, map);
    int64_t dim[MD_RANK];
    int rank = 0;
    for (int i = 0; i < nbatch; i++) {
        dim[rank++] = x->type->dim[i];
    }
    dim[rank++] = merged;
    for (int i = nbatch + ndata; i < n; i++) {
        dim[rank++] = x->type->dim[i];
    }
    x = node_reshape(e->g, x, rank, dim);
    /* What the axes stand for: batch, the rest of what the data spans, the rest of the object. */
    Label label[2 * MD_RANK];
    Index *span[2 * MD_RANK];
    int nspan = 0;
    for (; nspan < nbatch; nspan++) {
        span[nspan] = a->label[map[nspan]].ix;
    }
    for (int i = 0; i < at->nspan; i++) {
        bool shared = false;
        for (int k = 0; k < nbatch; k++) {
            shared = shared || span[k] == at->span[i];
        }
        if (!shared) {
            span[nspan++] = at->span[i];
        }
    }
    if (nspan + rank - nbatch - 1 > MD_RANK) {
        elab_error(e, a->ast->loc, 327, "this needs more than %d axes and indices together",
                   MD_RANK);
        return false;
    }
    a->node = node_gather(e->g, x, arith_spread(e, at, span, nspan, 0, NULL), nbatch);
    a->rank = 0;
    for (int i = 0; i < nspan; i++) {
        label[a->rank++] = (Label){span[i], NULL};
    }
    for (int i = nbatch + ndata; i < n; i++) {
        label[a->rank++] = a->label[map[i]];
    }
    memcpy(a->label, label, sizeof *label * (size_t)a->rank);
    return true;
}
