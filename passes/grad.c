/* grad: expands the derivative placeholders of a program by reverse sweeps; see grad.h.
 *
 * Technique: the region is copied node by node, loops included. When the copy reaches a GRAD, its
 * value and point are made already and hold no GRAD any more, so placeholders go innermost first
 * and a derivative of a derivative needs nothing special. All placeholders of one value and
 * cotangent share one sweep. A sweep visits only nodes that lie between its points and its value;
 * cotangents that are zero are never made. STOP and CUSTOM steer the sweeps and go in a last
 * rebuild, which also leaves behind what nobody reads. */
#include "passes/grad_rule.h"

#include <string.h>

const VjpRule vjp_rules[OP_COUNT] = {
#define OP(NAME, name, nin, cls, shape, eval, vjp, lower, made, sample, cost, spelling)            \
    [OP_##NAME] = vjp_##vjp,
#include "compiler/op.def"
#undef OP
};

bool vjp_is_none(OpCode op) {
    return vjp_rules[op] == vjp_none;
}

/* --- the sweep -------------------------------------------------------------------------------- */

Sweep *sweep_new(Graph *g, Arena *scratch, GradSave save, const VjpRule *rules,
                 const Region *region, int count, Replay *replay) {
    Sweep *s = ARENA_NEW(scratch, Sweep);
    *s = (Sweep){.g = g,
                 .scratch = scratch,
                 .save = save,
                 .rules = rules,
                 .region = region,
                 .count = count,
                 .replay = replay};
    s->active = ARENA_ARRAY(scratch, bool, count);
    s->cot = ARENA_ARRAY(scratch, Node *, count);
    s->loop = ARENA_ARRAY(scratch, LoopSweep *, count);
    return s;
}

static bool operand_active(const Sweep *s, const Node *n, int k) {
    bool is_value = n->op == OP_CUSTOM && k == 0; /* its derivative is given, not taken */
    return !is_value && s->active[n->in[k]->id];
}

static bool loop_activate(Sweep *s, const Node *loop) {
    LoopSweep *ls = ARENA_NEW(s->scratch, LoopSweep);
    ls->nresults = loop->body->out.count;
    ls->active = ARENA_ARRAY(s->scratch, bool, ls->nresults);
    ls->cot = ARENA_ARRAY(s->scratch, Node *, ls->nresults);
    bool *operand = ARENA_ARRAY(s->scratch, bool, loop->nin), any = false;
    for (int k = 0; k < loop->nin; k++) {
        operand[k] = s->active[loop->in[k]->id];
        any = any || operand[k];
    }
    if (any) {
        loop_activity(s, loop, operand, ls->active);
    }
    s->loop[loop->id] = ls;
    return any;
}

void sweep_activate(Sweep *s) {
    for (int i = 0; i < s->count; i++) {
        const Node *n = s->region->node.at[i];
        if (n->op == OP_LOOP) {
            s->active[i] = loop_activate(s, n);
        } else if (n->op == OP_PICK) {
            const LoopSweep *ls = s->loop[n->in[0]->id];
            s->active[i] =
                s->active[i] || (n->attr->axis < ls->nresults && ls->active[n->attr->axis]);
        } else if (elem_is_float(n->type->elem) && !vjp_is_none(n->op)) {
            for (int k = 0; k < n->nin; k++) {
                s->active[i] = s->active[i] || operand_active(s, n, k);
            }
        }
    }
}

void sweep_name(const Graph *g, Node *cotangent, const Node *of) {
    if (of->name) {
        const char *dot = strrchr(of->name, '.');
        const char *last = dot ? dot + 1 : of->name;
        graph_name(cotangent,
                   str_printf(g->keep, "%.*sd_%s", (int)(last - of->name), of->name, last));
    }
}

void sweep_run(Sweep *s) {
    Loc loc = s->g->loc;
    uint32_t begun = (uint32_t)s->g->region->node.count;
    for (int i = s->count - 1; i >= 0; i--) {
        Node *n = s->region->node.at[i];
        if (!s->active[i] || vjp_is_none(n->op)) {
            continue;
        }
        s->g->loc = n->loc;
        if (s->cot[i] && s->cot[i]->region == s->g->region && s->cot[i]->id >= begun) {
            sweep_name(s->g, s->cot[i], n);
        }
        if (n->op == OP_LOOP || s->cot[i]) {
            s->rules[n->op](s, n, s->cot[i]);
        }
    }
    s->g->loc = loc;
}

Node *sweep_value(Sweep *s, Node *n) {
    return s->replay ? replay_value(s->replay, n) : n;
}

bool sweep_wants(const Sweep *s, const Node *n, int k) {
    return operand_active(s, n, k);
}

/* Zeros add nothing and must not grow a graph. */
static bool is_zero(const Node *n) {
    if (n->op == OP_BROADCAST) {
        n = n->in[0];
    }
    return n->op == OP_CONST && n->attr->value == 0;
}

void sweep_add(Sweep *s, const Node *n, Node *cotangent) {
    if (!s->active[n->id] || is_zero(cotangent)) {
        return;
    }
    if (!type_equal(*n->type, *cotangent->type)) {
        BUG("the cotangent of %s has another type", op_info[n->op].name);
    }
    Node **cot = &s->cot[n->id];
    *cot = *cot ? node_map2(s->g, OP_ADD, *cot, cotangent) : cotangent;
}

void sweep_give(Sweep *s, const Node *n, int k, Node *cotangent) {
    if (operand_active(s, n, k)) {
        sweep_add(s, n->in[k], cotangent);
    }
}

/* --- placeholders ----------------------------------------------------------------------------- */

typedef struct Expand Expand;
struct Expand {
    Graph *g;
    Arena *scratch;
    GradSave save;
    const VjpRule *rules;
    const Region *old;
    Region *fresh;
    Node **map;        /* by id in `old` */
    Node **derivative; /* of GRAD nodes, once their sweep has run */
    const Node *loop;  /* whose body `old` is, or NULL */
    Expand *outer;     /* then: of the region around it */
};

static void expand_nodes(Expand *e);

/* A loop body may ask for the derivative of a value of the region around it. Points and values
 * that the body only borrows are its invariants, so the sweep goes on outside: `levels[0]` sweeps
 * the body, levels[1] the region around, and so on, all building in the body. */
enum { LEVELS = 32 };

/* The invariant k of the body of e, and the value outside that it stands for. False: a constant. */
static bool invariant_at(const Expand *e, int k, Node **param, Node **outside) {
    const Region *body = e->loop->body;
    *param = e->map[body->param.at[1 + e->loop->attr->ncarry + k]->id];
    *outside = e->outer->map[e->loop->in[e->loop->attr->ncarry + k]->id];
    return (*param)->op == OP_BODY_PARAM;
}

static void levels_activate(const Expand *e, Sweep **levels, int depth) {
    Sweep *s = levels[0], *up = NULL;
    Node *param, *outside;
    for (int k = 0; e->loop && depth + 1 < LEVELS && k < e->loop->attr->ninv; k++) {
        if (invariant_at(e, k, &param, &outside) && s->active[param->id]) {
            up = up ? up
                    : sweep_new(e->g, e->scratch, e->save, e->rules, outside->region,
                                outside->region->node.count, NULL);
            up->active[outside->id] = true;
        }
    }
    levels[1] = up;
    if (up) {
        levels_activate(e->outer, levels + 1, depth + 1);
        for (int k = 0; k < e->loop->attr->ninv; k++) {
            if (invariant_at(e, k, &param, &outside)) {
                s->active[param->id] = s->active[param->id] || up->active[outside->id];
            }
        }
    }
    sweep_activate(s);
}

static void levels_run(const Expand *e, Sweep **levels) {
    Sweep *s = levels[0], *up = levels[1];
    Node *param, *outside;
    sweep_run(s);
    for (int k = 0; up && k < e->loop->attr->ninv; k++) {
        if (invariant_at(e, k, &param, &outside) && s->cot[param->id]) {
            sweep_add(up, outside, s->cot[param->id]);
            s->cot[param->id] = NULL; /* two invariants may be one param */
        }
    }
    if (up) {
        levels_run(e->outer, levels + 1);
    }
    for (int k = 0; up && k < e->loop->attr->ninv; k++) {
        if (invariant_at(e, k, &param, &outside)) {
            s->cot[param->id] = up->cot[outside->id];
        }
    }
}

/* Every placeholder of `old` with the value and cotangent of `grad` that has a point upstream. */
static void expand_grads(Expand *e, const Node *grad) {
    Node *value = e->map[grad->in[0]->id];
    Sweep *levels[LEVELS + 1];
    Sweep *s = sweep_new(e->g, e->scratch, e->save, e->rules, e->fresh, e->fresh->node.count, NULL);
    levels[0] = s;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = (int)grad->id; i < e->old->node.count; i++) {
            const Node *n = e->old->node.at[i];
            if (n->op != OP_GRAD || n->in[0] != grad->in[0] || n->in[2] != grad->in[2]) {
                continue;
            }
            Node *point = e->map[n->in[1]->id]; /* not made yet: it comes after the value */
            bool upstream = point && point->id < (uint32_t)s->count && point->region == e->fresh;
            if (pass == 0 && upstream) {
                s->active[point->id] = true;
            } else if (pass == 1) {
                Node *cot = upstream ? s->cot[point->id] : NULL;
                e->derivative[i] = cot ? cot : node_full(e->g, *n->type, 0);
            }
        }
        if (pass == 0) {
            levels_activate(e, levels, 0);
            sweep_add(s, value, e->map[grad->in[2]->id]);
            levels_run(e, levels);
        }
    }
}

static Node *expand_custom(Expand *e, const Node *n) {
    Region *body = region_new(e->g, e->fresh);
    Region *before = graph_enter(e->g, body);
    Expand inner = {.g = e->g,
                    .scratch = e->scratch,
                    .save = e->save,
                    .rules = e->rules,
                    .old = n->body,
                    .fresh = body};
    inner.map = ARENA_ARRAY(e->scratch, Node *, n->body->node.count);
    for (int k = 0; k < n->body->param.count; k++) {
        inner.map[n->body->param.at[k]->id] = region_param(body, *n->body->param.at[k]->type);
    }
    expand_nodes(&inner);
    for (int k = 0; k < n->body->out.count; k++) {
        region_result(body, inner.map[n->body->out.at[k]->id]);
    }
    graph_leave(e->g, before);
    Node **in = ARENA_ARRAY(e->scratch, Node *, n->nin);
    for (int k = 0; k < n->nin; k++) {
        in[k] = e->map[n->in[k]->id];
    }
    return node_custom(e->g, in[0], in + 1, n->nin - 1, body);
}

/* Gives the values of the loop's results, carries first. */
static Node **expand_loop(Expand *e, const Node *n) {
    Graph *g = e->g;
    const Attr *a = n->attr;
    const Region *body = n->body;
    LoopBuilder *loop = loop_open(g, a->trip, a->reverse);
    loop_checkpoint(loop, a->checkpoint);
    if (a->last) {
        loop_until(loop, e->map[n->in[a->ncarry + a->last - 1]->id]);
    }
    Expand inner = {.g = g,
                    .scratch = e->scratch,
                    .save = e->save,
                    .rules = e->rules,
                    .old = body,
                    .fresh = g->region,
                    .loop = n,
                    .outer = e};
    inner.map = ARENA_ARRAY(e->scratch, Node *, body->node.count);
    inner.map[body->param.at[0]->id] = loop_index(loop);
    for (int k = 0; k < n->nin; k++) {
        Node *from = e->map[n->in[k]->id], *to;
        if (k < a->ncarry) {
            to = loop_carry_value(loop, loop_carry(loop, from));
        } else if (k < a->ncarry + a->ninv) {
            to = graph_import(g, from);
        } else {
            to = loop_xs(loop, from);
        }
        inner.map[body->param.at[1 + k]->id] = graph_name(to, body->param.at[1 + k]->name);
    }
    expand_nodes(&inner);
    Node **result = ARENA_ARRAY(e->scratch, Node *, body->out.count);
    int *number = ARENA_ARRAY(e->scratch, int, body->out.count);
    for (int k = 0; k < body->out.count; k++) {
        Node *value = inner.map[body->out.at[k]->id];
        number[k] = k;
        if (k < a->ncarry) {
            loop_next(loop, k, value);
        } else {
            number[k] = loop_emit(loop, value);
        }
    }
    if (a->go) { /* an adjoint runs as many iterations */
        loop_while(loop, a->go - 1);
        Region *around = graph_enter(g, g->region->up);
        int last = loop_carry(loop, node_int(g, TY_I32, -1));
        graph_leave(g, around);
        graph_name(loop_carry_value(loop, last), "last");
        loop_next(loop, last, loop_index(loop));
    }
    Node *copy = loop_close(loop);
    for (int k = 0; k < body->out.count; k++) {
        result[k] = k < a->ncarry ? loop_final(g, copy, k) : loop_stack(g, copy, number[k]);
    }
    return result;
}

static void expand_nodes(Expand *e) {
    Graph *g = e->g;
    int n = e->old->node.count;
    Node ***results = ARENA_ARRAY(e->scratch, Node **, n);
    e->derivative = ARENA_ARRAY(e->scratch, Node *, n);
    for (int i = 0; i < n; i++) {
        const Node *old = e->old->node.at[i];
        g->loc = old->loc;
        if (old->op == OP_BODY_PARAM) {
            continue;
        }
        if (old->op == OP_LOOP) {
            results[i] = expand_loop(e, old);
            continue;
        }
        if (old->op == OP_PICK) {
            e->map[i] = results[old->in[0]->id][old->attr->axis];
        } else if (old->op == OP_CUSTOM) {
            e->map[i] = expand_custom(e, old);
        } else if (old->op == OP_GRAD) {
            if (!e->derivative[i]) {
                expand_grads(e, old);
            }
            e->map[i] = e->derivative[i];
        } else {
            Node **in = ARENA_ARRAY(e->scratch, Node *, old->nin);
            for (int k = 0; k < old->nin; k++) {
                in[k] = e->map[old->in[k]->id];
            }
            e->map[i] = graph_copy(g, old, in);
        }
        if (old->name) {
            graph_name(e->map[i], old->name);
        }
    }
}

static Node *drop_mark(void *ctx, Graph *g, const Node *old, Node *const *in) {
    (void)ctx, (void)g;
    return op_info[old->op].cls == CLASS_MARK ? in[0] : NULL;
}

Region *grad_by_rules(Graph *g, const Region *region, GradSave save, const VjpRule *rules) {
    Arena scratch = {0}, nodes[2] = {{0}, {0}}, *home = g->arena;
    Loc loc = g->loc;
    g->arena = &nodes[0];
    const Region *old = region_rebuild(g, region, NULL, NULL); /* without what nobody reads */
    graph_spend(g);
    g->arena = &nodes[1];
    Region *marked = region_new(g, NULL);
    Region *before = graph_enter(g, marked);
    Expand e = {
        .g = g, .scratch = &scratch, .save = save, .rules = rules, .old = old, .fresh = marked};
    e.map = ARENA_ARRAY(&scratch, Node *, old->node.count);
    for (int k = 0; k < old->param.count; k++) {
        e.map[old->param.at[k]->id] = region_param(marked, *old->param.at[k]->type);
    }
    expand_nodes(&e);
    for (int k = 0; k < old->out.count; k++) {
        region_result(marked, e.map[old->out.at[k]->id]);
    }
    graph_leave(g, before);
    g->loc = loc;
    arena_free(&scratch);
    arena_free(&nodes[0]);
    g->arena = home;
    Region *fresh = region_rebuild(g, marked, drop_mark, NULL);
    arena_free(&nodes[1]);
    return fresh;
}

Region *pass_grad(Graph *g, const Region *region, GradSave save) {
    return grad_by_rules(g, region, save, vjp_rules);
}
