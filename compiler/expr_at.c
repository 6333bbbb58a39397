/* expr_at: expressions at one place of an axis: what of them is a condition of that place or a
 * constant there falls away. Needs expressions of a kernel under construction; gives such ones. */
#include "compiler/kernel.h"

ExprAt expr_at_open(Kernel *k, Arena *scratch, int axis, const Index *place) {
    int n = k->expr.count;
    return (ExprAt){.k = k,
                    .axis = axis,
                    .place = place,
                    .made = ARENA_ARRAY(scratch, const Expr *, n),
                    .nmade = n};
}

const Index *expr_at_moved(ExprAt *x, const Index *index) {
    IndexTable *t = &x->k->index;
    index = x->by ? index_add(t, index, x->by) : index;
    index = x->ring > 0 ? index_mod(t, index, x->ring) : index;
    return x->gap > 0 ? index_add(t, index, index_scale(t, index_div(t, index, x->pitch), x->gap))
                      : index;
}

/* With operands `in` and the place `index`. */
static const Expr *made_of(ExprAt *x, const Expr *e, const Expr *const *in, const Index *index) {
    Kernel *k = x->k;
    switch (e->kind) {
    case EXPR_INDEX: return expr_index(k, e->elem, index);
    case EXPR_WITHIN: return expr_within(k, index, e->lo, e->hi);
    case EXPR_MAP:
        return e->term ? expr_term(k, e->elem, in[0], in[1])
                       : expr_map(k, e->op, e->elem, in, e->nin);
    case EXPR_LOAD: {
        index = e->arg == x->arg ? expr_at_moved(x, index) : index;
        const Expr *load = expr_load(k, e->arg, index, e->nin == 2 ? in[0] : NULL);
        const Expr *choice[3] = {in[0], load, in[1]};
        return e->nin == 2 ? expr_map(k, OP_SELECT, e->elem, choice, 3) : load;
    }
    default: return NULL;
    }
}

const Expr *expr_at(ExprAt *x, const Expr *e) {
    const Expr *in[3] = {NULL};
    bool same = !(e->axes >> x->axis & 1);
    if (same && !x->arg) {
        return e;
    }
    if (e->id >= x->nmade || e->nin > 3) {
        return NULL;
    }
    if (x->made[e->id]) {
        return x->made[e->id];
    }
    same = same && !(e->kind == EXPR_LOAD && e->arg == x->arg);
    for (int i = 0; i < e->nkid; i++) {
        const Expr *kid = expr_at(x, e->kid[i]);
        if (!kid || (i >= e->nin && kid != e->kid[i])) {
            return NULL;
        }
        same = same && kid == e->kid[i];
        if (i < e->nin) {
            in[i] = kid;
        }
    }
    if (same) {
        return x->made[e->id] = e;
    }
    const Index *index = e->index;
    if (index) {
        index = index_subst(&x->k->index, index, x->axis, x->place);
    }
    uint32_t owner = x->k->owner;
    x->k->owner = e->owner;
    const Expr *made = made_of(x, e, in, index);
    x->k->owner = owner;
    if (made) {
        expr_name(made, e->name);
    }
    return x->made[e->id] = made;
}
