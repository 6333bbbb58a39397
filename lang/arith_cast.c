/* arith_cast: conversions between element types. A number that is known now stays one, so it may be
 * an extent, and remembers its type for where it becomes a tensor. */
#include "lang/arith.h"

#include "compiler/type.h"
#include "lang/evaluation.h"

#include <math.h>

static const Value *cast_number(Elab *e, Loc loc, Elem elem, const Value *a) {
    Value *r = ARENA_NEW(e->scratch, Value);
    if (elem_is_half(elem)) {
        return value_real(e->scratch, num_round(elem, value_number(a)));
    }
    if (elem_is_float(elem)) {
        *r = *value_real(e->scratch, value_number(a));
        r->as = elem == e->g->float_type ? TY_ERROR : elem; /* it has that type anyway */
        return r;
    }
    if (elem == TY_BOOL) {
        return elab_error(e, loc, 347, "a number is no bool; compare it: x != 0");
    }
    if (a->kind == V_REAL && !(fabs(a->real) < 9e18)) {
        return elab_error(e, loc, 447, "%g does not fit %s", a->real, elem_name(elem));
    }
    int64_t whole = a->kind == V_INT ? a->integer : (int64_t)a->real;
    *r = a->kind == V_INT && num_wrap(elem, whole) == whole
             ? *a
             : *value_int(e->scratch, num_wrap(elem, whole));
    r->as = elem;
    return r;
}

const Value *arith_cast(Elab *e, Loc loc, Elem elem, const Value *a) {
    if (!elab_ok(a)) {
        return a;
    }
    if (value_is_number(a)) {
        return cast_number(e, loc, elem, a);
    }
    if (a->kind == V_BOOL) {
        return elem == TY_BOOL ? a
                               : cast_number(e, loc, elem, value_int(e->scratch, a->truth ? 1 : 0));
    }
    if (a->kind != V_TENSOR) {
        return elab_error(e, loc, 348, "%s cannot be converted to %s", value_kind_text(a),
                          elem_name(elem));
    }
    bool same = value_elem(a) == elem && node_half(a->node) == TY_ERROR;
    if (same || (elem_is_half(elem) && node_half(a->node) == elem)) {
        return a;
    }
    if (elem == TY_BOOL) {
        return elab_error(e, loc, 347, "a number is no bool; compare it: x != 0");
    }
    Region *before = a->end ? graph_enter(e->g, evaluation_end_region(e)) : NULL;
    Value *r = ARENA_NEW(e->scratch, Value);
    *r = *a;
    if (elem_is_half(elem)) {
        r->node = node_map1(e->g, op_rounding(elem), node_cast(e->g, a->node, TY_F32));
    } else if (value_elem(a) == elem) {
        r->node = node_widen(e->g, a->node);
    } else {
        r->node = node_cast(e->g, a->node, elem);
    }
    int64_t least = 0, most = 0; /* of what does not fit the low bits are left */
    if (elem_is_int(elem)) {
        elem_range(elem, &least, &most);
    }
    r->ranged = a->ranged && a->lo >= least && a->hi - 1 <= most;
    r->loop = NULL;
    if (before) {
        graph_leave(e->g, before);
    }
    return r;
}
