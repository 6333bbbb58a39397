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

Sweep *sweep_new(Graph *g, Arena *scratch, GradSave save, const GradRun *run, const Region *region,
                 int count, Replay *replay) {
    Sweep *s = ARENA_NEW(scratch, Sweep);
    *s = (Sweep){.g = g,
                 .scratch = scratch,
                 .save = save,
                 .run = run,
                 .region = region,
                 .count = count,
                 .replay = replay};
    s->active = ARENA_ARRAY(scratch, bool, count);
    s->cot = ARENA_ARRAY(scratch, Node *, count);
    s->loop = ARENA_ARRAY(scratch, LoopSweep *, count);
    s->sum = ARENA_ARRAY(scratch, Node *, count);
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
            s->run->rules[n->op](s, n, s->cot[i]);
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
void sweep_add(Sweep *s, const Node *n, Node *cotangent) {
    if (!s->active[n->id] || node_is_zero(cotangent)) {
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
    const GradRun *run;
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
                    : sweep_new(e->g, e->scratch, e->run->plan->save, e->run,
                                outside->region, outside->region->node.count, NULL);
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
    Sweep *s = sweep_new(e->g, e->scratch, e->run->plan->save, e->run, e->fresh,
                         e->fresh->node.count, NULL);
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
                    .run = e->run,
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
    moved_apply(body, e->run->moved);
    Node **in = ARENA_ARRAY(e->scratch, Node *, n->nin);
    for (int k = 0; k < n->nin; k++) {
        in[k] = e->map[n->in[k]->id];
    }
    return node_custom(e->g, in[0], in + 1, n->nin - 1, body);
}

/* A run of iterations of a loop of `old`, in the current region. */
typedef struct {
    int64_t trip, checkpoint;
    Node *first;  /* what the index counts from; NULL: 0 */
    Node *last;   /* as in Attr; NULL: all are run */
    Node **start; /* by operand: of carries, and the stacks that are sliced */
} Turns;

/* What the body of `n` reads of its parameters, in the copy. */
static void open_turns(Expand *inner, const Node *n, LoopBuilder *loop, const Turns *t) {
    const Attr *a = n->attr;
    const Region *body = n->body;
    Node *index = loop_index(loop);
    index = t->first ? node_map2(inner->g, OP_ADD, t->first, index) : index;
    inner->map[body->param.at[0]->id] = index;
    for (int k = 0; k < n->nin; k++) {
        Node *to;
        if (k < a->ncarry) {
            to = loop_carry_value(loop, loop_carry(loop, t->start[k]));
        } else if (k < a->ncarry + a->ninv) {
            to = graph_import(inner->g, inner->outer->map[n->in[k]->id]);
        } else {
            to = loop_xs(loop, t->start[k]);
        }
        inner->map[body->param.at[1 + k]->id] = graph_name(to, body->param.at[1 + k]->name);
    }
}

/* Gives the values of the results, carries first. */
static Node **expand_turns(Expand *e, const Node *n, const Turns *t) {
    Graph *g = e->g;
    const Attr *a = n->attr;
    const Region *body = n->body;
    LoopBuilder *loop = loop_open(g, t->trip, a->reverse);
    loop_checkpoint(loop, t->checkpoint);
    if (t->last) {
        loop_until(loop, t->last);
    } else if (a->aside) {
        loop_aside(loop);
    }
    Expand inner = {.g = g,
                    .scratch = e->scratch,
                    .run = e->run,
                    .old = body,
                    .fresh = g->region,
                    .loop = n,
                    .outer = e};
    inner.map = ARENA_ARRAY(e->scratch, Node *, body->node.count);
    open_turns(&inner, n, loop, t);
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
    moved_apply(copy->body, e->run->moved);
    for (int k = 0; k < body->out.count; k++) {
        result[k] = k < a->ncarry ? loop_final(g, copy, k) : loop_stack(g, copy, number[k]);
    }
    return result;
}

/* The stack `x` with its first axis as one of segments of `each` turns, or, with each 0, again as
 * one of turns. */
static Node *by_segments(Graph *g, Node *x, int64_t each) {
    const Type *type = x->type;
    int64_t dim[MD_RANK];
    int rank = type->rank + (each > 0 ? 1 : -1), shift = each > 0 ? -1 : 1;
    for (int i = each > 0 ? 2 : 1; i < rank; i++) {
        dim[i] = type->dim[i + shift];
    }
    dim[0] = each > 0 ? type->dim[0] / each : type->dim[0] * type->dim[1];
    if (each > 0) {
        dim[1] = each;
    }
    return node_reshape(g, x, rank, dim);
}

/* The last turn of the present segment, where the last segment has fewer than `each`. */
static Node *segment_end(Graph *g, int64_t trip, Node *first, int64_t each) {
    Node *left = node_map2(g, OP_SUB, node_int(g, TY_I32, trip - 1), first);
    return node_map2(g, OP_MIN, left, node_int(g, TY_I32, each - 1));
}

/* What the turns read of `stack`, in segments: the last one is filled up. */
static Node *segments_of(Graph *g, Node *stack, int64_t segments, int64_t each) {
    int64_t lo[MD_RANK] = {0}, hi[MD_RANK] = {segments * each - stack->type->dim[0]};
    Region *before = graph_enter(g, stack->region);
    Node *whole = hi[0] > 0 ? node_pad(g, stack, lo, hi, BORDER_VALUE, 0) : stack;
    whole = by_segments(g, whole, each);
    graph_leave(g, before);
    return whole;
}

/* A loop that keeps the carries of every n-th turn alone is a loop over segments of n, of which its
 * adjoint has the carries alone and runs each again. */
static Node **expand_segments(Expand *e, const Node *n, Node **start, int64_t each) {
    Graph *g = e->g;
    const Attr *a = n->attr;
    const int results = n->body->out.count;
    const int64_t segments = (a->trip + each - 1) / each;
    LoopBuilder *outer = loop_open(g, segments, a->reverse);
    loop_checkpoint(outer, CHECKPOINT_EACH);
    Turns t = {.trip = each, .checkpoint = CHECKPOINT_AFRESH};
    t.start = ARENA_ARRAY(e->scratch, Node *, n->nin);
    t.first = node_map2(g, OP_MUL, loop_index(outer), node_int(g, TY_I32, each));
    t.last = a->trip % each > 0 ? segment_end(g, a->trip, t.first, each) : NULL;
    for (int k = 0; k < n->nin; k++) {
        if (k < a->ncarry) {
            t.start[k] = loop_carry_value(outer, loop_carry(outer, start[k]));
        } else if (k >= a->ncarry + a->ninv) {
            t.start[k] = loop_xs(outer, segments_of(g, start[k], segments, each));
        }
    }
    Node **result = expand_turns(e, n, &t);
    int *number = ARENA_ARRAY(e->scratch, int, results);
    for (int k = 0; k < results; k++) {
        if (k < a->ncarry) {
            loop_next(outer, k, result[k]);
        } else {
            number[k] = loop_emit(outer, result[k]);
        }
    }
    Node *copy = loop_close(outer);
    for (int k = 0; k < results; k++) {
        if (k < a->ncarry) {
            result[k] = loop_final(g, copy, k);
        } else {
            Node *turns = by_segments(g, loop_stack(g, copy, number[k]), 0);
            result[k] = node_slice_axis(g, turns, 0, 0, a->trip, 1);
        }
    }
    return result;
}

/* May its stacks have an axis more? */
static bool ranks_fit(const Node *loop) {
    bool fit = true;
    for (int k = 0; k < loop->nin; k++) {
        fit = fit && loop->in[k]->type->rank < MD_RANK;
    }
    for (int k = 0; k < loop->body->out.count; k++) {
        fit = fit && loop->body->out.at[k]->type->rank + 2 <= MD_RANK;
    }
    return fit;
}

static bool is_grad(const Node *n) {
    return n->op == OP_GRAD;
}

/* Is a derivative taken anywhere in the entry? */
static bool has_adjoint(const Expand *e) {
    return e->outer ? has_adjoint(e->outer) : region_any(e->old, is_grad);
}

int64_t grad_segment(const Node *loop, const GradPlan *plan) {
    const Attr *a = loop->attr;
    const bool planned = a->checkpoint == CHECKPOINT_NONE && a->trip > plan->segment;
    const int64_t kept = planned ? plan->segment : a->checkpoint;
    const int64_t each = kept < a->trip ? kept : a->trip;
    return loop_ends_itself(a) || !ranks_fit(loop) ? CHECKPOINT_NONE : each;
}

/* Gives the values of the loop's results, carries first. */
static Node **expand_loop(Expand *e, const Node *n) {
    const Attr *a = n->attr;
    const int64_t each = grad_segment(n, e->run->plan);
    Turns t = {.trip = a->trip, .checkpoint = a->checkpoint};
    t.start = ARENA_ARRAY(e->scratch, Node *, n->nin);
    t.last = a->last ? e->map[n->in[a->ncarry + a->last - 1]->id] : NULL;
    for (int k = 0; k < n->nin; k++) {
        t.start[k] = e->map[n->in[k]->id];
    }
    if (each <= CHECKPOINT_EACH || !has_adjoint(e)) {
        return expand_turns(e, n, &t);
    }
    return expand_segments(e, n, t.start, each);
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

static Region *expand(Graph *g, const Region *region, const GradPlan *plan, const VjpRule *rules) {
    MovedList moved = {0};
    const GradRun how = {.plan = plan, .rules = rules, .moved = &moved}, *run = &how;
    Arena scratch = {0}, nodes[2] = {{0}, {0}}, *home = g->arena;
    Loc loc = g->loc;
    g->arena = &nodes[0];
    const Region *old = region_rebuild(g, region, NULL, NULL); /* without what nobody reads */
    graph_spend(g);
    g->arena = &nodes[1];
    Region *marked = region_new(g, NULL);
    Region *before = graph_enter(g, marked);
    Expand e = {.g = g, .scratch = &scratch, .run = run, .old = old, .fresh = marked};
    e.map = ARENA_ARRAY(&scratch, Node *, old->node.count);
    for (int k = 0; k < old->param.count; k++) {
        e.map[old->param.at[k]->id] = region_param(marked, *old->param.at[k]->type);
    }
    expand_nodes(&e);
    for (int k = 0; k < old->out.count; k++) {
        region_result(marked, e.map[old->out.at[k]->id]);
    }
    graph_leave(g, before);
    moved_apply(marked, &moved);
    g->loc = loc;
    arena_free(&scratch);
    arena_free(&nodes[0]);
    g->arena = home;
    Region *fresh = region_rebuild(g, marked, drop_mark, NULL);
    arena_free(&nodes[1]);
    return fresh;
}

Region *grad_by_rules(Graph *g, const Region *region, GradSave save, const VjpRule *rules) {
    const GradPlan plan = {.save = save};
    return expand(g, region, &plan, rules);
}

Region *pass_grad_planned(Graph *g, const Region *region, const GradPlan *plan) {
    return expand(g, region, plan, vjp_rules);
}

static bool is_kept(const Kept *kept, const Node *n) {
    return kept->op == n->op && loc_equal(kept->loc, n->loc);
}

Kept *kept_entry(KeptList *list, const Node *n) {
    int at = 0;
    while (at < list->of.count && !is_kept(&list->of.at[at], n)) {
        at++;
    }
    if (at == list->of.count) {
        Kept fresh = {.loc = n->loc, .op = n->op};
        VEC_PUSH(list->arena, &list->of, fresh);
    }
    return &list->of.at[at];
}

bool plan_makes_again(const GradPlan *plan, const Node *n) {
    bool again = false;
    for (int i = 0; i < plan->nagain && !again; i++) {
        again = is_kept(&plan->again[i], n);
    }
    return again;
}

Region *pass_grad(Graph *g, const Region *region, GradSave save) {
    return grad_by_rules(g, region, save, vjp_rules);
}
