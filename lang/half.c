/* half: floats of 16 bits as element types. They are types of what is stored: states, inputs,
 * results, rows. What is read of them is a float like any other, so everything takes it, and a
 * conversion `bf16(x)` is the float of that type that is nearest, which may be stored as one
 * (docs/decisions/0057-storage-types.md). Needs values of the front end, gives nodes that round. */
#include "lang/half.h"

#include "lang/value.h"

Node *half_round(Graph *g, Node *node, Elem half) {
    if (!elem_is_half(half) || node_holds_half(node, half)) {
        return node;
    }
    return node_map1(g, op_rounding(half), node);
}

Elem half_elem(const Value *v) {
    Elem half = v->nspan == 0 ? node_half(v->node) : TY_ERROR;
    return half == TY_ERROR ? value_elem(v) : half;
}

bool half_fits(const Value *v, Elem elem) {
    return elem_is_half(elem) ? node_holds_half(v->node, elem) : value_elem(v) == elem;
}

bool half_in_build(Elab *e, Loc loc, Elem half) {
    if (e->g->float_type == TY_F32) {
        return true;
    }
    elab_error(e, loc, 307, "'%s' goes with f32, and this build computes in %s", elem_name(half),
               elem_name(e->g->float_type));
    return false;
}

void half_hint(Elab *e, const Value *v, Elem elem) {
    if (elem_is_half(elem) && v->kind == V_TENSOR && elem_is_float(value_elem(v))) {
        diag_hint(&e->c->diag, "%s(...) rounds to the nearest", elem_name(elem));
    }
}

const Value *half_next(Elab *e, const Slot *slot, const Value *given, const Value *next,
                       const char *name, Loc loc) {
    Elem half = slot ? slot->type.elem : TY_ERROR;
    if (!next || !elem_is_half(half) || node_holds_half(next->node, half)) {
        return next;
    }
    /* What parameters are stored as is not said where they are assigned. */
    if (value_is_number(given) || slot->kind == SLOT_PARAM) {
        return value_with(e->scratch, next, half_round(e->g, next->node, half));
    }
    elab_error(e, loc, 686, "'%s' is kept in %s, and its next value is %s", name, elem_name(half),
               value_text(e->scratch, given));
    half_hint(e, next, half);
    return NULL;
}
