/* adjoint: an op with a written adjoint becomes CUSTOM(value, arguments) with the adjoint as its
 * body. */
#include "lang/adjoint.h"

#include "lang/arith.h"
#include "lang/call.h"
#include "lang/stmt.h"

/* The cotangent v with the axes of `like`: what it spans more is summed, what it lacks repeated. */
static Node *cotangent(Elab *e, const Value *v, const Value *like, Loc loc) {
    v = arith_tensor(e, loc, v, value_elem(like));
    if (!elab_ok(v)) {
        return NULL;
    }
    bool fits = value_elem(v) == value_elem(like) && (v->rank == 0 || v->rank == like->rank);
    for (int i = 0; fits && i < v->rank; i++) {
        fits = v->dim[i].size == like->dim[i].size;
    }
    if (!fits) {
        elab_error(e, loc, 232, "the cotangent is %s, but the argument is %s",
                   value_text(e->arena, v), value_text(e->arena, like));
        return NULL;
    }
    uint32_t axes = 0;
    Value *w = ARENA_NEW(e->scratch, Value);
    *w = *v;
    Axes kept_axes = value_axes(e->scratch, w, v->nspan, v->rank);
    w->nspan = 0;
    for (int i = 0; i < v->nspan; i++) {
        bool kept = false;
        for (int k = 0; k < like->nspan; k++) {
            kept = kept || like->span[k] == v->span[i];
        }
        if (kept) {
            kept_axes.span[w->nspan++] = v->span[i];
        } else {
            axes |= 1u << i;
        }
    }
    w->node = node_fold(e->g, OP_SUM, v->node, axes);
    return arith_spread(e, w, like->span, like->nspan, like->rank, like->dim);
}

/* The cotangents that an adjoint returned, by the names of the arguments, which stand in `inner`:
 * that of the float tensor name[i] in cot[i]. What is known when compiling has none. */
static bool cotangents(Elab *e, const Item *item, const Value *g, const Scope *inner,
                       const char *const *name, int nfloat, const Value **cot) {
    int found = 0;
    for (int i = 0; g->kind == V_RECORD && i < g->count; i++) {
        const ScopeName *s = scope_find_here(inner, g->field[i]);
        int k = 0;
        while (k < nfloat && !str_eq(name[k], g->field[i])) {
            k++;
        }
        if (k < nfloat) {
            cot[k] = g->item[i];
            found++;
        } else if (!s || s->value->kind == V_TENSOR ||
                   call_parameter(item->ast->kid[0], g->field[i]) < 0) {
            elab_error(e, item->ast->kid[3]->loc, 727,
                       "the adjoint of '%s' returns '%s', which is no float argument of it",
                       item->name, g->field[i]);
            diag_hint(&e->c->diag,
                      "each cotangent has the name of its argument: return x = ..., y = ...;");
            return false;
        }
    }
    if (g->kind != V_RECORD) {
        cot[0] = g;
        found = 1;
    }
    if (found != nfloat) {
        elab_error(e, item->ast->kid[3]->loc, 236,
                   "the adjoint of '%s' returns %d cotangents, its float "
                   "arguments are %d",
                   item->name, found, nfloat);
    }
    return found == nfloat;
}

const Value *adjoint_wrap(Elab *e, Item *item, const Value *v) {
    const Ast *adjoint = item->ast->kid[3], *params = item->ast->kid[0];
    if (v->kind != V_TENSOR || v->end || !elem_is_float(value_elem(v))) {
        return v;
    }
    if (!adjoint->kid[0] || adjoint->kid[0]->nkid != 1) {
        return elab_error(e, adjoint->loc, 234,
                          "an adjoint takes one parameter: the cotangent of the "
                          "result");
    }
    const Value *arg[CALL_PARAMS];
    Node *in[CALL_PARAMS], *out[CALL_PARAMS] = {0};
    const Value *cot[CALL_PARAMS] = {0};
    const char *name[CALL_PARAMS];
    int n = 0, nfloat = 0, which[CALL_PARAMS];
    Scope *inner = scope_new(e->scratch, NULL, item->file), *before = e->scope;
    Region *body = region_new(e->g, e->g->region);
    for (int i = 0; i < before->name.count; i++) {
        const ScopeName *s = before->name.at[i];
        bool param = call_parameter(params, s->name) >= 0;
        if (!param && s->kind != BIND_DIM_VARIABLE) {
            continue;
        }
        const Value *seen = s->value;
        if (seen->kind == V_TENSOR) {
            arg[n] = seen;
            in[n] = seen->node;
            seen = value_with(e->scratch, seen, region_param(body, *seen->node->type));
            if (arg[n]->ranged) {
                seen = value_ranged(e->scratch, seen, arg[n]->lo, arg[n]->hi);
            }
            if (elem_is_float(value_elem(seen))) {
                name[nfloat] = s->name;
                which[nfloat++] = n;
            }
            n++;
        }
        scope_add(e->scratch, inner, s->name, s->loc, s->kind, seen);
    }
    const Ast *u = adjoint->kid[0]->kid[0];
    scope_add(e->scratch, inner, u->name, u->loc, BIND_ARGUMENT,
              value_with(e->scratch, v, region_param(body, *v->node->type)));
    Region *region = graph_enter(e->g, body);
    bool nested = e->in_adjoint;
    const Value *result = e->frame->result;
    e->scope = inner;
    e->in_adjoint = true;
    item->adjoints++;
    e->frame->returned = false;
    e->frame->result = NULL;
    stmt_block(e, adjoint->kid[1]);
    const Value *g = e->frame->result;
    bool ok = g && elab_ok(g);
    if (!g) {
        elab_error(e, adjoint->loc, 235, "the adjoint of '%s' returns nothing", item->name);
    }
    ok = ok && cotangents(e, item, g, inner, name, nfloat, cot);
    for (int i = 0; ok && i < nfloat; i++) {
        out[which[i]] = cotangent(e, cot[i], arg[which[i]], adjoint->loc);
        ok = out[which[i]] != NULL;
    }
    for (int i = 0; ok && i < n; i++) {
        Node *node = out[i] ? out[i] : node_full(e->g, *in[i]->type, 0);
        region_result(body, graph_import(e->g, node));
    }
    graph_leave(e->g, region);
    e->scope = before;
    e->in_adjoint = nested;
    item->adjoints--;
    e->frame->result = result;
    if (!ok) {
        return &value_poison;
    }
    Value *r = ARENA_NEW(e->scratch, Value);
    *r = *v;
    r->node = node_custom(e->g, v->node, in, n, body);
    return r;
}
