/* derive: derivatives are taken of values: a placeholder node (value, point, cotangent) that the
 * grad pass expands. */
#include "lang/derive.h"

#include "compiler/flow.h"
#include "lang/arith.h"

bool derive_used(Elab *e, const Node *value) {
    const Region *region = value->region;
    bool *mark = ARENA_ARRAY(e->scratch, bool, (int)value->id + 1);
    mark[value->id] = true;
    for (int i = (int)value->id; i >= 0; i--) {
        const Node *node = region->node.at[i];
        if (mark[i] && node->op == OP_GRAD) {
            return true;
        }
        for (int k = 0; mark[i] && k < node->nin; k++) {
            mark[node->in[k]->id] = true;
        }
    }
    return false;
}

/* Has u the elements of `like`, or is it one number for all? */
static bool fits(const Value *u, const Value *like) {
    bool fit = u->nspan == 0 && value_elem(u) == value_elem(like) &&
               (u->rank == 0 || u->rank == like->rank);
    for (int i = 0; fit && i < u->rank; i++) {
        fit = u->dim[i].size == like->dim[i].size;
    }
    return fit;
}

const Value *derive_call(Elab *e, const char *name, const Value *const *v, int n, Loc loc) {
    bool stop = str_eq(name, "stop_gradient"), jvp = str_eq(name, "jvp");
    bool vjp = str_eq(name, "vjp");
    int want = stop ? 1 : vjp || jvp ? 3 : 2;
    if (n != want) {
        return elab_error(e, loc, 450, "'%s' takes %d argument%s", name, want,
                          want == 1 ? "" : "s");
    }
    if (stop && v[0]->kind != V_TENSOR) {
        return v[0];
    }
    for (int i = 0; i < n; i++) {
        if (i == 2 && value_is_number(v[i])) {
            continue;
        }
        bool floats = v[i]->kind == V_TENSOR && elem_is_float(value_elem(v[i]));
        if (!stop && !floats) {
            return elab_error(e, loc, 451, "'%s' needs float tensors, found %s", name,
                              value_text(e->arena, v[i]));
        }
        if (v[i]->kind == V_TENSOR && v[i]->end && !stop) {
            /* Known when all batches were seen: a metric of it is one of steps alone. */
            return &value_poison;
        }
        if (!elab_plain(e, loc, v[i])) {
            return &value_poison;
        }
    }
    if (stop) {
        return elem_is_float(value_elem(v[0]))
                   ? value_with(e->scratch, v[0], node_stop(e->g, v[0]->node))
                   : v[0];
    }
    if (v[0]->nspan > 0 || v[1]->nspan > 0) {
        return elab_error(e, loc, 452, "'%s' is for whole tensors, outside of index notation",
                          name);
    }
    if (!vjp && !jvp && v[0]->rank > 0) {
        elab_error(e, loc, 453, "grad(v, x) needs a scalar v, found %s",
                   value_text(e->arena, v[0]));
        diag_hint(&e->c->diag, "vjp(v, x, u) takes a cotangent u of the shape of v");
        return &value_poison;
    }
    Node *value = graph_import(e->g, v[0]->node), *point = graph_import(e->g, v[1]->node);
    const Flow *flow = flow_of(e->scratch, value);
    if (!flow_has(flow, point)) {
        return elab_error(e, loc, 454,
                          "the first argument of '%s' was not computed from the second one", name);
    }
    const Node *between = flow_ambiguous(e->scratch, flow, point);
    if (between) {
        elab_error(e, loc, 468,
                   "'%s' by a value that lies between the two ends of an earlier derivative", name);
        diag_note(&e->c->diag, between->loc, "the derivative that the first argument is made of");
        diag_hint(&e->c->diag,
                  "derive by what that one was derived by, or by what the value was computed from");
        return &value_poison;
    }
    const Value *u = vjp || jvp ? v[2] : value_real(e->scratch, 1);
    const Value *like = jvp ? v[1] : v[0];
    u = arith_tensor(e, loc, u, value_elem(like));
    if (!elab_ok(u)) {
        return u;
    }
    if (!fits(u, like)) {
        return jvp ? elab_error(e, loc, 479, "the direction is %s, but the point is %s",
                                value_text(e->arena, u), value_text(e->arena, like))
                   : elab_error(e, loc, 455, "the cotangent is %s, but the value is %s",
                                value_text(e->arena, u), value_text(e->arena, like));
    }
    return jvp ? value_with(e->scratch, v[0], node_jvp(e->g, value, point, u->node))
               : value_with(e->scratch, v[1], node_grad(e->g, value, point, u->node));
}
