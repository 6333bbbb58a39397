/* arith_join: operands of elementwise arithmetic, brought to one element type, span and shape.
 *
 * Needs elaborated values, gives values of nodes; elements keep their values but for casts to the
 * common type. */
#include "lang/arith_join.h"

#include "lang/arith.h"
#include "lang/dims.h"
#include "lang/evaluation.h"
#include "lang/notation.h"

#include <string.h>

void arith_bool_hint(Elab *e) {
    diag_hint(&e->c->diag, "f32(c) is 1 where c is true, 0 elsewhere");
}

static void bool_mixed(Elab *e, Loc loc) {
    elab_error(e, loc, 329, "a bool and a number are mixed");
    arith_bool_hint(e);
}

const Value *arith_tensor(Elab *e, Loc loc, const Value *v, Elem elem) {
    if (v->kind == V_TENSOR || v->kind == V_POISON) {
        return v;
    }
    if (v->kind == V_BOOL && elem == TY_BOOL) {
        return value_scalar(e->scratch, node_const(e->g, TY_BOOL, v->truth ? 1 : 0));
    }
    if (v->kind == V_INT && elem_is_int(elem)) {
        int bits = 8 * (int)elem_bytes(elem) - (elem_is_signed(elem) ? 1 : 0);
        int64_t most = bits < 63 ? ((int64_t)1 << bits) - 1 : INT64_MAX;
        if (v->integer > most || v->integer < (elem_is_signed(elem) ? -most - 1 : 0)) {
            return elab_error(e, loc, 446, "%lld does not fit %s", (long long)v->integer,
                              elem_name(elem));
        }
        const Value *t = value_scalar(e->scratch, node_int(e->g, elem, v->integer));
        return value_ranged(e->scratch, t, v->integer, v->integer + 1);
    }
    if (value_is_number(v) && elem_is_float(elem)) {
        return value_scalar(e->scratch, node_const(e->g, elem, value_number(v)));
    }
    if (v->kind == V_REAL && elem_is_int(elem)) {
        return elab_error(e, loc, 323, "%g is no integer, and one is needed here", v->real);
    }
    return elab_error(e, loc, 324, "%s cannot be used as %s", value_kind_text(v),
                      elem_is_float(elem) ? "a number"
                      : elem == TY_BOOL   ? "a bool"
                                          : "an integer");
}

const Value *arith_lift(Elab *e, Loc loc, const Value *v) {
    return arith_tensor(e, loc, v,
                        v->as != TY_ERROR   ? v->as
                        : v->kind == V_INT  ? TY_I32
                        : v->kind == V_BOOL ? TY_BOOL
                                            : e->g->float_type);
}

static int span_place(Index *const *span, int n, const Index *ix) {
    for (int i = 0; i < n; i++) {
        if (span[i] == ix) {
            return i;
        }
    }
    return -1;
}

Node *arith_spread(Elab *e, const Value *v, Index *const *span, int nspan, int rank,
                   const Dim *dim) {
    if (v->nspan == 0 && v->rank == 0) {
        int64_t to[MD_RANK];
        for (int i = 0; i < nspan + rank; i++) {
            to[i] = i < nspan ? span[i]->extent.size : dim[i - nspan].size;
        }
        return node_broadcast_to(e->g, v->node, type_make(v->node->type->elem, nspan + rank, to));
    }
    int map[MD_RANK] = {0}, n = 0;
    uint32_t fresh = 0;
    int64_t to[MD_RANK];
    for (int i = 0; i < nspan; i++) {
        int from = span_place(v->span, v->nspan, span[i]);
        to[i] = span[i]->extent.size;
        if (from >= 0) {
            map[n++] = from;
        } else {
            fresh |= 1u << i;
        }
    }
    for (int i = 0; i < rank; i++) {
        to[nspan + i] = dim[i].size;
        if (v->rank > 0) {
            map[n++] = v->nspan + i;
        } else {
            fresh |= 1u << (nspan + i);
        }
    }
    Node *node = node_permute(e->g, v->node, map);
    return fresh ? node_broadcast(e->g, node, fresh, nspan + rank, to) : node;
}

/* False: together they have more indices than a tensor may have axes. */
static bool join_spans(Elab *e, const Value *const *v, int n, Value *like) {
    int most = 0;
    for (int i = 1; i < n; i++) {
        if (v[i]->nspan > v[most]->nspan) {
            most = i;
        }
    }
    like->nspan = v[most]->nspan;
    like->span = v[most]->span;
    Index **span = NULL; /* its own, once there are more */
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < v[i]->nspan; k++) {
            if (span_place(like->span, like->nspan, v[i]->span[k]) >= 0) {
                continue;
            }
            if (like->nspan == MD_RANK) {
                return false;
            }
            span = span ? span : value_axes(e->scratch, like, MD_RANK, 0).span;
            span[like->nspan++] = v[i]->span[k];
        }
    }
    if (!span) {
        return true; /* one operand has them all: its order costs no permutation */
    }
    for (int i = 1; i < like->nspan; i++) {
        for (int k = i; k > 0 && span[k - 1]->seq > span[k]->seq; k--) {
            Index *swap = span[k];
            span[k] = span[k - 1];
            span[k - 1] = swap;
        }
    }
    return true;
}

bool arith_join(Elab *e, Loc loc, const Value *const *v, int n, Value *like) {
    *like = (Value){.kind = V_TENSOR};
    bool fits = join_spans(e, v, n, like);
    const Value *first = NULL;
    for (int i = 0; i < n; i++) {
        if (v[i]->rank == 0) {
            continue;
        }
        if (!first) {
            first = v[i];
            like->rank = first->rank;
            like->dim = first->dim;
            continue;
        }
        if (v[i]->rank != like->rank) {
            elab_error(e, loc, 325, "shapes %s and %s do not fit",
                       shape_text(e->arena, first->rank, first->dim),
                       shape_text(e->arena, v[i]->rank, v[i]->dim));
            diag_hint(&e->c->diag,
                      "whole tensors need equal shapes; write a broadcast with an index: "
                      "z[i, j] = x[i, j] + y[j]");
            return false;
        }
        Dim dim[MD_RANK];
        bool joined = false;
        for (int k = 0; k < like->rank; k++) {
            if (!dims_agree(like->dim[k], v[i]->dim[k])) {
                elab_error(e, loc, 326, "shapes %s and %s differ in axis %d",
                           shape_text(e->arena, like->rank, like->dim),
                           shape_text(e->arena, v[i]->rank, v[i]->dim), k);
                elab_note_dim(e, like->dim[k]);
                elab_note_dim(e, v[i]->dim[k]);
                return false;
            }
            dim[k] = dims_join(like->dim[k], v[i]->dim[k]);
            joined = joined || memcmp(&dim[k], &like->dim[k], sizeof *dim) != 0;
        }
        if (joined) {
            memcpy(value_axes(e->scratch, like, like->nspan, like->rank).dim, dim,
                   sizeof *dim * (size_t)like->rank);
        }
    }
    if (!fits || like->rank + like->nspan > MD_RANK) {
        elab_error(e, loc, 327, "this needs more than %d axes and indices together", MD_RANK);
        return false;
    }
    return dims_possible(e, loc, like);
}

const Value *arith_node(Elab *e, Loc loc, OpCode op, const Value *const *v, int n) {
    const Value *side[3] = {NULL};
    Region *before = NULL;
    bool end = false;
    for (int i = 0; i < n; i++) {
        if (!elab_ok(v[i])) {
            return v[i];
        }
        side[i] = v[i];
        end = end || v[i]->end;
    }
    if (end) { /* scalars of the end of an evaluation are computed there */
        for (int i = 0; i < n; i++) {
            side[i] = evaluation_at_end(e, loc, v[i]);
            if (!elab_ok(side[i])) {
                return side[i];
            }
        }
        before = graph_enter(e->g, evaluation_end_region(e));
    }
    Value like;
    if (!arith_join(e, loc, side, n, &like)) {
        return &value_poison;
    }
    Node *in[3];
    for (int i = 0; i < n; i++) {
        bool scalar = side[i]->nspan == 0 && side[i]->rank == 0;
        in[i] = scalar ? side[i]->node
                       : arith_spread(e, side[i], like.span, like.nspan, like.rank, like.dim);
    }
    Node *node = n == 1   ? node_map1(e->g, op, in[0])
                 : n == 2 ? node_map2(e->g, op, in[0], in[1])
                          : node_map3(e->g, op, in[0], in[1], in[2]);
    Value *r = ARENA_NEW(e->scratch, Value);
    *r = like;
    r->node = node;
    r->end = end;
    if (before) {
        graph_leave(e->g, before);
    }
    return r;
}

Elem arith_computed(Elem elem) {
    return !elem_is_int(elem)     ? elem
           : elem == TY_U32       ? TY_I64
           : elem_bytes(elem) < 4 ? TY_I32
                                  : elem;
}

const Value *arith_widened(Elab *e, Loc loc, const Value *v) {
    Elem elem = v->kind == V_TENSOR ? value_elem(v) : TY_ERROR, wide = arith_computed(elem);
    return wide != elem ? arith_cast(e, loc, wide, v) : v;
}

/* What integers of two types meet in. */
static Elem joint_int(Elem x, Elem y) {
    bool wide = x == TY_I64 || y == TY_I64 || x == TY_U32 || y == TY_U32;
    return x == y ? x : wide ? TY_I64 : TY_I32;
}

static Elem int_elem(const Value *number) {
    return number->as != TY_ERROR ? number->as : TY_I32;
}

/* The common element type of two operands; TY_ERROR after a message. */
Elem arith_common(Elab *e, Loc loc, const Value *a, const Value *b) {
    if (a->kind != V_TENSOR && b->kind != V_TENSOR) {
        return a->kind == V_BOOL && b->kind == V_BOOL ? TY_BOOL
               : a->kind == V_INT && b->kind == V_INT ? joint_int(int_elem(a), int_elem(b))
                                                      : e->g->float_type;
    }
    if (a->kind == V_TENSOR && b->kind == V_TENSOR) {
        Elem x = value_elem(a), y = value_elem(b);
        if (x == y) {
            return x;
        }
        if (elem_is_int(x) && elem_is_int(y)) {
            return joint_int(x, y);
        }
        if (elem_is_float(x) && elem_is_float(y)) {
            elab_error(e, loc, 328, "float types %s and %s are mixed", elem_name(x), elem_name(y));
            diag_hint(&e->c->diag, "convert one: %s(x)", elem_name(y));
        } else if (x == TY_BOOL || y == TY_BOOL) {
            bool_mixed(e, loc);
        } else {
            elab_error(e, loc, 330, "run-time integers (%s) and floats (%s) are mixed",
                       elem_name(elem_is_int(x) ? x : y), elem_name(elem_is_int(x) ? y : x));
            diag_hint(&e->c->diag, "f32(i) converts");
        }
        return TY_ERROR;
    }
    const Value *t = a->kind == V_TENSOR ? a : b, *n = a->kind == V_TENSOR ? b : a;
    Elem elem = value_elem(t);
    if (n->kind == V_BOOL || elem == TY_BOOL) {
        if (n->kind == V_BOOL && elem == TY_BOOL) {
            return TY_BOOL;
        }
        bool_mixed(e, loc);
        return TY_ERROR;
    }
    if (elem_is_int(elem) && n->kind == V_REAL) {
        elab_error(e, loc, 332, "a run-time integer (%s) and the real number %g are mixed",
                   elem_name(elem), n->real);
        diag_hint(&e->c->diag, "f32(i) converts");
        return TY_ERROR;
    }
    if (elem_is_int(elem) && n->as != TY_ERROR) {
        return joint_int(elem, n->as);
    }
    return arith_computed(elem); /* a compile-time integer counts as i32 */
}

const Value *arith_to(Elab *e, Loc loc, const Value *v, Elem elem) {
    v = arith_tensor(e, loc, v, elem);
    if (elab_ok(v) && value_elem(v) != elem) {
        return arith_cast(e, loc, elem, v);
    }
    return v;
}
