/* fold: reductions. A product under a sum is taken apart: factors without a fold index move out,
 * a fold index of one factor alone is summed there, and two remaining factors are a contraction
 * whose operands carry only their own axes. */
#include "lang/fold.h"

#include "lang/accumulate.h"
#include "lang/arith.h"
#include "lang/dims.h"
#include "lang/evaluation.h"
#include "lang/expr.h"
#include "lang/notation.h"

#include <string.h>

/* The most products of one contraction: days of work, far from the range of the counters. */
#define MOST_WORK 1e17

bool fold_is_name(const char *name) {
    static const char *const names[] = {"sum", "min", "max", "mean", "prod", "argmax", "argmin"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (str_eq(names[i], name)) {
            return true;
        }
    }
    return false;
}

static bool spans(const Value *v, const Index *ix) {
    for (int i = 0; i < v->nspan; i++) {
        if (v->span[i] == ix) {
            return true;
        }
    }
    return false;
}

static bool spans_any(const Value *v, Index *const *ix, int n) {
    for (int i = 0; i < n; i++) {
        if (spans(v, ix[i])) {
            return true;
        }
    }
    return false;
}

Value *fold_left(Elab *e, const Value *v, uint32_t axes, Node *node) {
    Value *r = ARENA_NEW(e->scratch, Value);
    r->kind = V_TENSOR;
    r->node = node;
    Axes left = value_axes(e->scratch, r, v->nspan, v->rank);
    for (int i = 0; i < v->nspan; i++) {
        if (!(axes >> i & 1)) {
            left.span[r->nspan++] = v->span[i];
        }
    }
    for (int i = 0; i < v->rank; i++) {
        if (!(axes >> (v->nspan + i) & 1)) {
            left.dim[r->rank++] = v->dim[i];
        }
    }
    return r;
}

/* v without the node axes in `axes`, by op. */
static const Value *reduced(Elab *e, OpCode op, const Value *v, uint32_t axes) {
    return fold_left(e, v, axes, node_fold(e->g, op, v->node, axes));
}

static Dim axis_dim(const Value *v, int i) {
    return i < v->nspan ? v->span[i]->extent : v->dim[i - v->nspan];
}

static double folded_count(const Value *v, uint32_t axes) {
    double n = 1;
    for (int i = 0; i < v->nspan + v->rank; i++) {
        n *= axes >> i & 1 ? (double)axis_dim(v, i).size : 1;
    }
    return n;
}

static const Value *scaled(Elab *e, Loc loc, const Value *v, double count) {
    if (!elab_ok(v) || count == 1) {
        return v;
    }
    return arith_binary(e, loc, AO_MUL, v, value_real(e->scratch, 1.0 / count));
}

/* Sums and products of nothing are 0 and 1; the other folds have no value there. */
static bool needs_elements(const char *name) {
    return !str_eq(name, "sum") && !str_eq(name, "prod");
}

static const Value *empty_axis(Elab *e, const char *name, Loc loc) {
    elab_error(e, loc, 402, "'%s' over an axis without elements has no value", name);
    diag_hint(&e->c->diag, "'when n > 0 { ... } else { ... }' takes another value where the extent "
                           "n is 0");
    return &value_poison;
}

/* The fold `name` over axes of v's node, in the region at hand. */
static const Value *fold_here(Elab *e, const char *name, const Value *v, uint32_t axes, Loc loc) {
    Elem elem = value_elem(v);
    bool arg = str_eq(name, "argmax") || str_eq(name, "argmin");
    if (elem == TY_BOOL) {
        elab_error(e, loc, 400, "'%s' is not defined for bools", name);
        diag_hint(&e->c->diag, "f32(c) is 1 where c is true: %s(f32(c))", name);
        return &value_poison;
    }
    if (str_eq(name, "mean") && !elem_is_float(elem)) {
        elab_error(e, loc, 401, "the mean of integers is not defined");
        diag_hint(&e->c->diag, "mean(f32(i))");
        return &value_poison;
    }
    bool rows = false, batch = false;
    for (int i = 0; i < v->nspan + v->rank; i++) {
        if (axes >> i & 1) {
            rows = rows || evaluation_masks(e, axis_dim(v, i));
            batch = batch || accumulate_rows(e, axis_dim(v, i));
            if (axis_dim(v, i).size == 0 && needs_elements(name)) {
                return empty_axis(e, name, loc);
            }
        }
    }
    if (rows) {
        return evaluation_fold(e, name, v, axes, loc);
    }
    if (arg) {
        int axis = 0, n = 0;
        for (int i = 0; i < v->nspan + v->rank; i++) {
            if (axes >> i & 1) {
                axis = i;
                n++;
            }
        }
        if (n != 1) {
            elab_error(e, loc, 403, "'%s' takes one index or axis, found %d", name, n);
            diag_hint(&e->c->diag, "x as [n] lays all elements along one axis");
            return &value_poison;
        }
        Value *r = ARENA_NEW(e->scratch, Value);
        *r = *v;
        r->node = node_argfold(e->g, str_eq(name, "argmax") ? OP_ARGMAX : OP_ARGMIN, v->node, axis);
        Axes left = value_axes(e->scratch, r, v->nspan, v->rank);
        if (axis < v->nspan) {
            memmove(&left.span[axis], &left.span[axis + 1],
                    sizeof left.span[0] * (size_t)(v->nspan - axis - 1));
            r->nspan--;
        } else {
            int at = axis - v->nspan;
            memmove(&left.dim[at], &left.dim[at + 1],
                    sizeof left.dim[0] * (size_t)(v->rank - at - 1));
            r->rank--;
        }
        r->loop = NULL;
        return value_ranged(e->scratch, r, 0, axis_dim(v, axis).size);
    }
    bool sum = str_eq(name, "sum") || str_eq(name, "mean") || str_eq(name, "prod");
    v = sum ? arith_widened(e, loc, v) : v;
    OpCode op = str_eq(name, "max")    ? OP_FMAX
                : str_eq(name, "min")  ? OP_FMIN
                : str_eq(name, "prod") ? OP_PROD
                                       : OP_SUM;
    const Value *r = reduced(e, op, v, axes);
    if ((op == OP_FMAX || op == OP_FMIN) && v->ranged) {
        r = value_ranged(e->scratch, r, v->lo, v->hi);
    }
    r = str_eq(name, "mean") ? scaled(e, loc, r, folded_count(v, axes)) : r;
    return batch ? accumulate_fold(e, name, r) : r;
}

/* What an evaluation knows at its end is folded there. */
static const Value *fold_node(Elab *e, const char *name, const Value *v, uint32_t axes, Loc loc) {
    Region *before = evaluation_enter(e, v);
    const Value *r = fold_here(e, name, v, axes, loc);
    return evaluation_leave(e, v, before, r);
}

const Value *fold_axes(Elab *e, const char *name, const Value *v, uint32_t axes, Loc loc) {
    if (!elab_ok(v)) {
        return v;
    }
    if (v->kind != V_TENSOR) {
        if (value_is_number(v)) {
            return v;
        }
        elab_error(e, loc, 404, "'%s' folds a tensor, found %s", name, value_kind_text(v));
        if (v->kind == V_LIST) {
            diag_hint(&e->c->diag, "max(a, b) and min(a, b) compare; stack(a, b) makes a tensor");
        }
        return &value_poison;
    }
    if (v->rank == 0) {
        return v;
    }
    return fold_node(e, name, v, axes << v->nspan, loc);
}

/* --- products under a sum -------------------------------------------------------------------- */

typedef VEC(const Value *) Factors;

/* Splits a product into factors; a divisor becomes a factor 1/x. False after an error. */
static bool factors_of(Elab *e, const Ast *body, Index *const *ix, int n, Factors *out) {
    if (body->kind == AST_BINARY && body->op == AO_MUL) {
        return factors_of(e, body->kid[0], ix, n, out) && factors_of(e, body->kid[1], ix, n, out);
    }
    if (body->kind == AST_UNARY && body->op == AO_NEG) {
        VEC_PUSH(e->arena, out, value_int(e->scratch, -1));
        return factors_of(e, body->kid[0], ix, n, out);
    }
    if (body->kind == AST_BINARY && body->op == AO_DIV) {
        const Value *by = elab_expr(e, body->kid[1]);
        if (!elab_ok(by)) {
            return false;
        }
        if (spans_any(by, ix, n)) {
            const Value *v = arith_binary(e, body->loc, AO_DIV, elab_expr(e, body->kid[0]), by);
            VEC_PUSH(e->arena, out, v);
            return elab_ok(v);
        }
        const Value *inverse = arith_binary(e, body->loc, AO_DIV, value_int(e->scratch, 1), by);
        VEC_PUSH(e->arena, out, inverse);
        return elab_ok(inverse) && factors_of(e, body->kid[0], ix, n, out);
    }
    const Value *v = elab_expr(e, body);
    if (v->kind == V_BOOL) {
        v = elab_error(e, body->loc, 406, "a bool is no factor of a product");
        diag_hint(&e->c->diag, "f32(c) is 1 where c is true");
    }
    VEC_PUSH(e->arena, out, v);
    return elab_ok(v);
}

/* Sums over those fold indices that only v has. */
static const Value *sum_own(Elab *e, const Value *v, const Value *other, Index *const *ix, int n) {
    uint32_t axes = 0;
    for (int i = 0; i < v->nspan; i++) {
        for (int k = 0; k < n; k++) {
            if (v->span[i] == ix[k] && !spans(other, ix[k])) {
                axes |= 1u << i;
            }
        }
    }
    return axes ? reduced(e, OP_SUM, v, axes) : v;
}

static bool free_axis_only_in(const Value *v, const Value *other, Index *const *ix, int n) {
    for (int i = 0; i < v->nspan; i++) {
        bool folded = false;
        for (int k = 0; k < n; k++) {
            folded = folded || v->span[i] == ix[k];
        }
        if (!folded && !spans(other, v->span[i])) {
            return true;
        }
    }
    return false;
}

static const Value *too_many_axes(Elab *e, Loc loc) {
    return elab_error(e, loc, 407, "this spans more than %d axes", MD_RANK);
}

/* sum over ix of a * b as one contraction. */
static const Value *contract(Elab *e, const Value *a, const Value *b, Index *const *ix, int n,
                             Loc loc) {
    Index *all[2 * MD_RANK];
    int nall = 0;
    int8_t la[MD_RANK], lb[MD_RANK], lo[MD_RANK];
    for (int i = 0; i < a->nspan; i++) {
        la[i] = (int8_t)nall;
        all[nall++] = a->span[i];
    }
    for (int i = 0; i < b->nspan; i++) {
        int k = 0;
        while (k < nall && all[k] != b->span[i]) {
            k++;
        }
        if (k == nall) {
            all[nall++] = b->span[i];
        }
        lb[i] = (int8_t)k;
    }
    Value *r = ARENA_NEW(e->scratch, Value);
    r->kind = V_TENSOR;
    Index **span = value_axes(e->scratch, r, MD_RANK, 0).span;
    double work = 1;
    for (int i = 0; i < nall; i++) {
        bool folded = false;
        for (int k = 0; k < n; k++) {
            folded = folded || all[i] == ix[k];
        }
        work *= (double)all[i]->extent.size;
        if (!folded && r->nspan == MD_RANK) {
            return too_many_axes(e, loc);
        }
        if (!folded) {
            int at = r->nspan++;
            while (at > 0 && span[at - 1]->seq > all[i]->seq) {
                span[at] = span[at - 1];
                lo[at] = lo[at - 1];
                at--;
            }
            span[at] = all[i];
            lo[at] = (int8_t)i;
        }
    }
    if (work > MOST_WORK) {
        return elab_error(e, loc, 409, "a sum of %.3g products is not possible", work);
    }
    if (!dims_possible(e, loc, r)) {
        return &value_poison;
    }
    r->node = node_contract(e->g, a->node, b->node, la, lb, lo, r->nspan);
    return r;
}

static double joint_size(const Value *a, const Value *b) {
    double n = 1;
    for (int i = 0; i < a->nspan; i++) {
        n *= (double)a->span[i]->extent.size;
    }
    for (int i = 0; i < b->nspan; i++) {
        n *= spans(a, b->span[i]) ? 1 : (double)b->span[i]->extent.size;
    }
    return n;
}

/* Multiplies the pair that makes the least tensor until two are left. */
static bool pair_up(Elab *e, Factors *f, Loc loc) {
    while (f->count > 2) {
        int x = 0, y = 1;
        for (int i = 0; i < f->count; i++) {
            for (int k = i + 1; k < f->count; k++) {
                if (joint_size(f->at[i], f->at[k]) < joint_size(f->at[x], f->at[y])) {
                    x = i;
                    y = k;
                }
            }
        }
        const Value *v = arith_binary(e, loc, AO_MUL, f->at[x], f->at[y]);
        if (!elab_ok(v)) {
            return false;
        }
        f->at[x] = v;
        f->at[y] = f->at[f->count - 1];
        f->count--;
    }
    return true;
}

static bool any_rows(Elab *e, Index *const *ix, int n) {
    for (int i = 0; i < n; i++) {
        if (evaluation_masks(e, ix[i]->extent)) {
            return true;
        }
    }
    return false;
}

static uint32_t span_mask(const Value *v, Index *const *ix, int n) {
    uint32_t axes = 0;
    for (int i = 0; i < v->nspan; i++) {
        for (int k = 0; k < n; k++) {
            axes |= v->span[i] == ix[k] ? 1u << i : 0;
        }
    }
    return axes;
}

/* v broadcast over those fold indices that it lost (a body that became constant). */
static const Value *with_indices(Elab *e, const Value *v, Index *const *ix, int n, Loc loc) {
    Index *span[2 * MD_RANK];
    int nspan = v->nspan;
    for (int i = 0; i < nspan; i++) {
        span[i] = v->span[i];
    }
    for (int i = 0; i < n; i++) {
        if (!spans(v, ix[i])) {
            span[nspan++] = ix[i];
        }
    }
    if (nspan == v->nspan) {
        return v;
    }
    if (nspan > MD_RANK) {
        return too_many_axes(e, loc);
    }
    Value *r = ARENA_NEW(e->scratch, Value);
    *r = *v;
    Region *before = evaluation_enter(e, v);
    r->node = arith_spread(e, v, span, nspan, 0, NULL);
    evaluation_leave(e, v, before, NULL);
    memcpy(value_axes(e->scratch, r, nspan, v->rank).span, span, sizeof *span * (size_t)nspan);
    r->nspan = nspan;
    return r;
}

static const Value *plain_fold(Elab *e, const char *name, const Value *v, Index *const *ix, int n,
                               Loc loc) {
    v = arith_lift(e, loc, v);
    if (!elab_ok(v)) {
        return v;
    }
    if (v->rank > 0) {
        elab_error(e, loc, 408,
                   "the body of '%s[..]' is a scalar with free indices, found shape %s", name,
                   shape_text(e->arena, v->rank, v->dim));
        diag_hint(&e->c->diag, "'%s(x)' folds a whole tensor", name);
        return &value_poison;
    }
    v = with_indices(e, v, ix, n, loc);
    return elab_ok(v) ? fold_node(e, name, v, span_mask(v, ix, n), loc) : v;
}

/* Numbers first, so that they are multiplied now. */
static const Value *product_of(Elab *e, const Factors *f, Loc loc) {
    const Value *product = NULL;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < f->count; i++) {
            if (value_is_number(f->at[i]) == (pass == 0)) {
                product = product ? arith_binary(e, loc, AO_MUL, product, f->at[i]) : f->at[i];
            }
        }
    }
    return product;
}

/* sum or mean over ix of a product. */
static const Value *fold_factors(Elab *e, const char *name, const Factors *all, Index *const *ix,
                                 int n, Loc loc) {
    Factors in = {0}, out = {0};
    bool floats = true;
    for (int i = 0; i < all->count; i++) {
        const Value *v = all->at[i];
        bool inside = v->kind == V_TENSOR && spans_any(v, ix, n);
        if (v->kind == V_TENSOR && v->rank > 0) {
            return plain_fold(e, name, v, ix, n, loc); /* says what is wrong */
        }
        if (inside && !elem_is_float(value_elem(v))) {
            floats = false;
        }
        if (v->kind == V_TENSOR && v->end) {
            floats = false; /* the product is made where it is known */
        }
        if (inside) {
            VEC_PUSH(e->arena, &in, v);
        } else {
            VEC_PUSH(e->arena, &out, v);
        }
    }
    double count = 1;
    bool batch = false;
    for (int i = 0; i < n; i++) {
        count *= (double)ix[i]->extent.size;
        batch = batch || accumulate_rows(e, ix[i]->extent);
    }
    const Value *r;
    if (in.count == 2 && in.at[0]->node == in.at[1]->node && value_same_span(in.at[0], in.at[1])) {
        floats = false; /* a square */
    }
    bool mean = str_eq(name, "mean"), folded = false;
    if (in.count < 2 || !floats || any_rows(e, ix, n)) {
        if (in.count == 0) {
            in = out;
            out.count = 0;
        }
        const Value *product = product_of(e, &in, loc);
        r = elab_ok(product) ? plain_fold(e, name, product, ix, n, loc) : product;
        mean = false;
        folded = true;
    } else {
        if (!pair_up(e, &in, loc)) {
            return &value_poison;
        }
        Elem x = value_elem(in.at[0]), y = value_elem(in.at[1]);
        if (x != y) {
            return arith_binary(e, loc, AO_MUL, in.at[0], in.at[1]); /* says what is wrong */
        }
        const Value *a = sum_own(e, in.at[0], in.at[1], ix, n);
        const Value *b = sum_own(e, in.at[1], in.at[0], ix, n);
        bool rows = free_axis_only_in(a, b, ix, n), columns = free_axis_only_in(b, a, ix, n);
        if ((rows || columns) && spans_any(a, ix, n)) {
            r = contract(e, a, b, ix, n, loc);
        } else { /* neither rows nor columns: a dot product, a plain nest */
            const Value *v = arith_binary(e, loc, AO_MUL, a, b);
            r = elab_ok(v) ? reduced(e, OP_SUM, v, span_mask(v, ix, n)) : v;
        }
        /* A fold index that no factor has counts how often the rest is added. */
        for (int i = 0; i < n && elab_ok(r); i++) {
            if (!spans(in.at[0], ix[i]) && !spans(in.at[1], ix[i])) {
                r = arith_binary(e, loc, AO_MUL, r,
                                 value_real(e->scratch, (double)ix[i]->extent.size));
            }
        }
    }
    if (mean) {
        r = scaled(e, loc, r, count);
    }
    if (batch && !folded) {
        r = accumulate_fold(e, name, r);
    }
    if (out.count > 0 && elab_ok(r)) {
        r = arith_binary(e, loc, AO_MUL, product_of(e, &out, loc), r);
    }
    return r;
}

static const Value *sum_product(Elab *e, const char *name, const Ast *body, Index *const *ix, int n,
                                Loc loc) {
    Factors all = {0};
    return factors_of(e, body, ix, n, &all) ? fold_factors(e, name, &all, ix, n, loc)
                                            : &value_poison;
}

const Value *fold_product(Elab *e, const Value *const *v, int nv, Index *const *ix, int n,
                          Loc loc) {
    Factors all = {0};
    for (int i = 0; i < nv; i++) {
        VEC_PUSH(e->arena, &all, v[i]);
    }
    return n > 0 ? fold_factors(e, "sum", &all, ix, n, loc) : product_of(e, &all, loc);
}

const Value *fold_indices(Elab *e, const char *name, const Ast *body, Index *const *ix, int n,
                          Loc loc) {
    for (int i = 0; i < n; i++) {
        if (ix[i]->extent.size == 0 && needs_elements(name)) {
            return empty_axis(e, name, loc);
        }
    }
    if (str_eq(name, "sum") || str_eq(name, "mean")) {
        return sum_product(e, name, body, ix, n, loc);
    }
    const Value *v = elab_expr(e, body);
    return elab_ok(v) ? plain_fold(e, name, v, ix, n, loc) : v;
}
