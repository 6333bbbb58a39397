/* order: sorting, the first k in order, and sums by segments, as functions of the prelude.
 * Derivatives go through what is picked, never through the places.
 *
 * Needs elaborated arguments, gives a value, or poison after an error. */
#include "lang/order.h"

#include "compiler/order.h"
#include "lang/accumulate.h"
#include "lang/arith.h"
#include "lang/dims.h"
#include "lang/evaluation.h"

#include <string.h>

/* In an evaluation of few rows the axis of the batch holds rows that are none. */
static bool whole_axis(Elab *e, const char *name, Loc loc, const Dim *dim) {
    if (evaluation_of_few(e) && dim->batch) {
        elab_error(e, loc, 679,
                   "%s may run on fewer rows than the batch, so '%s' along the batch is not "
                   "defined in it",
                   evaluation_of_few(e), name);
        return false;
    }
    return true;
}

/* Places are i32. */
static bool counts_line(Elab *e, const char *name, Loc loc, int64_t n) {
    if (n > ORDER_MOST) {
        elab_error(e, loc, 684, "'%s' orders lines of at most %lld elements, found %lld", name,
                   (long long)ORDER_MOST, (long long)n);
        return false;
    }
    return true;
}

static Node *order_node(Elab *e, const Value *x, int axis, bool descending, int64_t most) {
    Graph *g = e->g;
    Node *key = value_elem(x) == TY_BOOL ? node_cast(g, x->node, TY_I32) : x->node;
    return node_order(g, key, x->nspan + axis, descending, most);
}

static const Value *as_places(Elab *e, const Value *v, int64_t n) {
    return n > 0 ? value_ranged(e->scratch, v, 0, n) : v;
}

const Value *order_sorted(Elab *e, const char *name, Loc loc, const Value *x, int axis,
                          bool descending, OrderKind kind) {
    int64_t n = x->dim[axis].size;
    if (!whole_axis(e, name, loc, &x->dim[axis]) || !counts_line(e, name, loc, n)) {
        return &value_poison;
    }
    Node *place = order_node(e, x, axis, descending, n);
    if (kind == ORDER_PLACES) {
        return as_places(e, value_with(e->scratch, x, place), n);
    }
    const Value *v =
        value_with(e->scratch, x, node_along(e->g, x->node, place, x->nspan + axis));
    return x->ranged ? value_ranged(e->scratch, v, x->lo, x->hi) : v;
}

const Value *order_first(Elab *e, Loc loc, const Value *x, const Value *k, Loc k_at, int axis,
                         bool largest) {
    int64_t n = x->dim[axis].size;
    if (!whole_axis(e, "top_k", loc, &x->dim[axis]) || !counts_line(e, "top_k", loc, n)) {
        return &value_poison;
    }
    if (k->kind != V_INT || k->integer < 1 || k->integer > n) {
        return elab_error(e, k_at, 676,
                          "'top_k' takes 1 to %lld of the elements along axis %d, a number that "
                          "is known when compiling, found %s",
                          (long long)n, axis,
                          k->kind == V_INT ? str_printf(e->arena, "%lld", (long long)k->integer)
                                           : value_text(e->arena, k));
    }
    Value *like = ARENA_NEW(e->scratch, Value);
    *like = *x;
    like->loop = NULL;
    value_axes(e->scratch, like, x->nspan, x->rank).dim[axis] = value_to_dim(k);
    Node *place = order_node(e, x, axis, largest, k->integer);
    Node *found = node_along(e->g, x->node, place, x->nspan + axis);
    const Value *values = value_with(e->scratch, like, found);
    Value *r = ARENA_NEW(e->scratch, Value);
    r->kind = V_RECORD;
    r->count = 2;
    r->item = ARENA_ARRAY(e->scratch, const Value *, 2);
    r->field = ARENA_ARRAY(e->scratch, const char *, 2);
    r->field[0] = "values";
    r->item[0] = x->ranged ? value_ranged(e->scratch, values, x->lo, x->hi) : values;
    r->field[1] = "indices";
    r->item[1] = as_places(e, value_with(e->scratch, like, place), n);
    return r;
}

const Value *order_segment_sum(Elab *e, const char *name, Loc loc, const Value *x,
                               const Value *ids, Dim n) {
    bool fits = ids->rank > 0 && ids->rank <= x->rank && x->nspan == 0 && ids->nspan == 0 &&
                elem_is_int(value_elem(ids)) && value_elem(x) != TY_BOOL;
    for (int i = 0; fits && i < ids->rank; i++) {
        fits = dims_agree(x->dim[i], ids->dim[i]);
    }
    if (!fits) {
        elab_error(e, loc, 677,
                   "'%s' adds up whole tensors of numbers by integers, one for each place of their "
                   "first axes, found %s by %s",
                   name, value_text(e->arena, x), value_text(e->arena, ids));
        return &value_poison;
    }
    for (int i = 0; i < ids->rank; i++) {
        if (!whole_axis(e, name, loc, &ids->dim[i])) {
            return &value_poison;
        }
    }
    bool empty = type_count(*ids->node->type) == 0;
    if (!empty && (!ids->ranged || ids->lo < 0 || ids->hi > n.size)) {
        elab_error(e, loc, 678, "nothing says that the integers of '%s' stay inside 0..%lld", name,
                   (long long)n.size);
        diag_hint(&e->c->diag,
                  "declare a range where they enter ('in 0..%lld'), or write clamp(i, 0, %lld)",
                  (long long)n.size, (long long)(n.size > 0 ? n.size - 1 : 0));
        return &value_poison;
    }
    x = arith_widened(e, loc, x);
    Value *v = ARENA_NEW(e->scratch, Value);
    v->kind = V_TENSOR;
    int rank = 1 + x->rank - ids->rank;
    Dim *dim = value_axes(e->scratch, v, 0, rank).dim;
    v->rank = rank;
    dim[0] = n;
    for (int i = 1; i < rank; i++) {
        dim[i] = x->dim[ids->rank + i - 1];
    }
    v->node = node_scatter_add(e->g, x->node, ids->node, 0,
                               dims_type(value_elem(x), v->rank, dim));
    for (int i = 0; i < ids->rank; i++) {
        if (accumulate_rows(e, ids->dim[i])) {
            return accumulate_fold(e, "sum", v);
        }
    }
    return v;
}
