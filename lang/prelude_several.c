/* prelude_several: functions of the prelude with any number of tensors, concat and the folds, and
 * what an axis is.
 *
 * Needs elaborated arguments, gives a value, or poison after an error. */
#include "lang/prelude_several.h"

#include "lang/arith.h"
#include "lang/dims.h"
#include "lang/expr.h"
#include "lang/fold.h"
#include "lang/prelude.h"

bool prelude_axis(Elab *e, const char *name, Loc loc, const Value *arg, Loc at, int rank,
                  int preset, int *axis) {
    *axis = preset;
    if (rank == 0) {
        elab_error(e, loc, 423, "'%s' needs a tensor with axes, found a scalar", name);
        return false;
    }
    if (arg) {
        if (arg->kind != V_INT) {
            elab_error(e, at, 421, "an axis is a compile-time integer, found %s",
                       value_kind_text(arg));
            return false;
        }
        *axis = (int)(arg->integer < 0 ? arg->integer + rank : arg->integer);
        if (arg->integer < -rank || arg->integer >= rank) {
            elab_error(e, at, 422, "there is no axis %lld: the tensor has the axes 0..%d",
                       (long long)arg->integer, rank);
            return false;
        }
    }
    return true;
}

/* What other languages call an axis. */
bool prelude_hint_axis(Elab *e, const char *name) {
    bool axis = str_eq(name, "dim") || str_eq(name, "dims") || str_eq(name, "axes");
    if (axis) {
        diag_hint(&e->c->diag, "an axis is given as 'axis = n'");
    }
    return axis;
}

bool prelude_several(Elab *e, const char *name, Arguments *args, Several *out) {
    *out = (Several){0};
    for (int i = 0; i < args->count; i++) {
        Argument *arg = &args->at[i];
        const Value *v = arg->value ? arg->value : elab_expr(e, arg->ast);
        if (!elab_ok(v)) {
            return false;
        }
        if (arg->name && str_eq(arg->name, "axis")) {
            out->axis = v;
            out->axis_at = arg->loc;
        } else if (arg->name) {
            elab_error(e, arg->loc, 432, "'%s' has no parameter '%s'", name, arg->name);
            if (!prelude_hint_axis(e, arg->name)) {
                elab_hint_foreign_arg(e, arg->name, NULL);
            }
            return false;
        } else if (out->n == MOST_ARGUMENTS) {
            elab_error(e, arg->loc, 445, "'%s' takes at most %d tensors; join some of them before",
                       name, MOST_ARGUMENTS);
            return false;
        } else {
            out->v[out->n] = v;
            out->at[out->n++] = arg->loc;
        }
    }
    return true;
}

const Value *prelude_concat(Elab *e, const char *name, Several *s, Loc loc) {
    bool stack = str_eq(name, "stack");
    Node *in[MOST_ARGUMENTS];
    if (s->n == 0) {
        return elab_error(e, loc, 433, "'%s' needs tensors", name);
    }
    for (int i = 0; i < s->n; i++) {
        if (s->v[i]->kind != V_TENSOR || s->v[i]->nspan > 0) {
            elab_error(e, s->at[i], 434, "'%s' needs whole tensors, found %s", name,
                       s->v[i]->kind == V_TENSOR && s->v[i]->nspan > 0
                           ? "an element in index notation"
                           : value_kind_text(s->v[i]));
            if (s->v[i]->kind == V_LIST) {
                diag_hint(&e->c->diag, "they stand one after the other: %s(a, b)", name);
            }
            return &value_poison;
        }
        if (!elab_plain(e, s->at[i], s->v[i])) {
            return &value_poison;
        }
    }
    const Value *first = s->v[0];
    int rank = first->rank + (stack ? 1 : 0), axis;
    if (!prelude_axis(e, name, loc, s->axis, s->axis_at, rank, stack ? 0 : rank - 1, &axis)) {
        return &value_poison;
    }
    if (rank > MD_RANK) {
        return elab_error(e, loc, 435, "a tensor has at most %d axes", MD_RANK);
    }
    Value *v = ARENA_NEW(e->scratch, Value);
    v->kind = V_TENSOR;
    Dim *dim = value_axes(e->scratch, v, 0, rank).dim;
    v->rank = rank;
    for (int i = 0, k = 0; i < rank; i++) {
        dim[i] = stack && i == axis ? (Dim){.size = s->n} : first->dim[k++];
    }
    int64_t total = 0;
    for (int i = 0; i < s->n; i++) {
        const Value *x = s->v[i];
        bool same = value_elem(x) == value_elem(first), fits = same && x->rank == first->rank;
        for (int k = 0; fits && k < x->rank; k++) {
            fits = (!stack && k == axis) || dims_agree(x->dim[k], first->dim[k]);
        }
        if (!fits) {
            elab_error(e, s->at[i], 436,
                       !same   ? "'%s' of %s and %s: their element types differ"
                       : stack ? "'%s' of %s and %s: they differ"
                               : "'%s' of %s and %s: they differ outside axis %d",
                       name, value_text(e->arena, first), value_text(e->arena, x), axis);
            return &value_poison;
        }
        in[i] = x->node;
        if (stack) {
            int64_t one[MD_RANK];
            for (int k = 0; k < rank; k++) {
                one[k] = k == axis ? 1 : v->dim[k].size;
            }
            in[i] = node_reshape(e->g, x->node, rank, one);
        } else {
            total += x->dim[axis].size;
        }
    }
    if (!stack) {
        dim[axis] = s->n == 1 ? first->dim[axis] : (Dim){.size = total};
    }
    v->node = node_concat(e->g, in, s->n, axis);
    return v;
}

const Value *prelude_fold(Elab *e, const char *name, Several *s, Loc loc) {
    bool two = s->n >= 2 && (str_eq(name, "max") || str_eq(name, "min"));
    if (two && !s->axis) {
        const Value *v = s->v[0];
        for (int i = 1; i < s->n; i++) {
            v = arith_minmax(e, loc, str_eq(name, "max"), v, s->v[i]);
        }
        return v;
    }
    if (s->n != 1) {
        elab_error(e, loc, 437, "'%s' folds one tensor, found %d arguments", name, s->n);
        if (s->n == 2 && s->v[1]->kind == V_INT) {
            diag_hint(&e->c->diag, "an axis is given by name: axis = %lld",
                      (long long)s->v[1]->integer);
        }
        return &value_poison;
    }
    const Value *v = s->v[0];
    int rank = v->kind == V_TENSOR ? v->rank : 0, axis;
    uint32_t axes = rank > 0 ? (1u << rank) - 1 : 0;
    if (s->axis && s->axis->kind == V_LIST) {
        axes = 0;
        for (int i = 0; i < s->axis->count; i++) {
            if (!prelude_axis(e, name, loc, s->axis->item[i], s->axis_at, rank, 0, &axis)) {
                return &value_poison;
            }
            axes |= 1u << axis;
        }
    } else if (s->axis || str_eq(name, "argmax") || str_eq(name, "argmin")) {
        if (!prelude_axis(e, name, loc, s->axis, s->axis_at, rank, rank - 1, &axis)) {
            return &value_poison;
        }
        axes = 1u << axis;
    }
    return fold_axes(e, name, v, axes, loc);
}
