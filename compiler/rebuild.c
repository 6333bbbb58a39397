/* rebuild: copies what is needed of a region through the builder. Dead nodes, unused results of
 * loops, loops without iterations, carries that never change, stacks of what a loop that runs once
 * begins with, and what only they needed stay behind.
 * Contract: needs a verified region; gives an equal one (up to what `visit` changes); changes no
 * values. */
#include "compiler/graph.h"
#include "compiler/loop_builder.h"
#include "compiler/turn.h"

#include <string.h>

/* What of a region is needed. */
typedef struct Live Live;
typedef struct {
    bool *result; /* of the LOOP: used by somebody */
    bool *param;  /* body parameters that are read */
    Live *body;
} LoopLive;
struct Live {
    bool *node;
    const bool *given; /* nodes that are there without what they are made of; or NULL */
    LoopLive **loop;   /* by node id, for LOOP nodes */
};

static Live *live_new(Arena *scratch, const Region *region) {
    Live *live = ARENA_NEW(scratch, Live);
    live->node = ARENA_ARRAY(scratch, bool, region->node.count);
    live->loop = ARENA_ARRAY(scratch, LoopLive *, region->node.count);
    return live;
}

static void live_mark(Arena *scratch, const Region *region, Live *live);

/* Which results of the loop are used is known; finds what its body and so its operands need. */
static void live_loop(Arena *scratch, const Node *loop, Live *live) {
    LoopLive *ll = live->loop[loop->id];
    const Region *body = loop->body;
    const Attr *at = loop->attr;
    bool *wanted = ARENA_ARRAY(scratch, bool, body->out.count);
    memcpy(wanted, ll->result, sizeof *wanted * (size_t)body->out.count);
    if (at->go) {
        wanted[at->go - 1] = true;
    }
    for (bool again = true; again;) {
        again = false;
        ll->body = live_new(scratch, body);
        for (int k = 0; k < body->out.count; k++) {
            if (wanted[k]) {
                ll->body->node[body->out.at[k]->id] = true;
            }
        }
        live_mark(scratch, body, ll->body);
        for (int k = 0; k < at->ncarry; k++) {
            bool read = ll->body->node[body->param.at[1 + k]->id];
            if ((read || ll->result[k]) && !wanted[k]) {
                wanted[k] = again = true;
            }
        }
    }
    for (int k = 0; k < loop->nin; k++) {
        bool needed = ll->body->node[body->param.at[1 + k]->id] || (k < at->ncarry && wanted[k]) ||
                      (at->last && k == at->ncarry + at->last - 1);
        ll->param[1 + k] = needed;
        if (needed) {
            live->node[loop->in[k]->id] = true;
        }
    }
}

static void live_mark(Arena *scratch, const Region *region, Live *live) {
    for (int i = region->node.count - 1; i >= 0; i--) {
        const Node *node = region->node.at[i];
        if (!live->node[i] || (live->given && live->given[i])) {
            continue;
        }
        if (node->op == OP_PICK) {
            const Node *loop = node->in[0];
            LoopLive **ll = &live->loop[loop->id];
            if (!*ll) {
                *ll = ARENA_NEW(scratch, LoopLive);
                (*ll)->result = ARENA_ARRAY(scratch, bool, loop->body->out.count);
                (*ll)->param = ARENA_ARRAY(scratch, bool, loop->body->param.count);
            }
            (*ll)->result[node->attr->axis] = true;
        }
        if (node->op == OP_LOOP) {
            if (live->loop[i]) { /* else no result is used: nothing of it is needed */
                live_loop(scratch, node, live);
            }
            continue;
        }
        for (int k = 0; k < node->nin; k++) {
            live->node[node->in[k]->id] = true;
        }
    }
}

typedef struct {
    Graph *graph;
    RebuildVisit visit;
    LoopVisit loop;
    void *ctx;
    Arena *scratch;
    Arena *notes; /* of turned carries; NULL: no value is seen as turned */
    bool differs;
    MergePlanner merges;       /* NULL: each loop stays one of its own */
    RematPlanner again;        /* NULL: loops read what there are stacks of */
    EndsPlanner ends;          /* NULL: last values are read of the carries */
    SliceMaker slice;          /* the same */
    const RebuildGiven *given; /* NULL: no node is */
} Rebuild;

/* The new values of the results of a loop. */
typedef struct {
    Node **result;
    int *number; /* as the builder numbers its carries and stacks, of one that went into another */
} LoopMap;

/* A region that is being copied. */
typedef struct {
    const Live *live;
    Node **map;               /* by node: what it has become */
    LoopMap **loop;           /* by LOOP */
    Node ***inner;            /* by LOOP that others are put into, while it is open: of its body */
    const LoopMerge *merge;   /* or NULL */
    const bool *const *again; /* by LOOP: results that are made again; or NULL */
    const bool *const *ends;  /* by LOOP: carries whose last value is read of a stack; or NULL */
} Copy;

static void copy_nodes(Rebuild *r, const Region *old, const Live *live, Node **map);

/* A loop without iterations gives what its carries start from, and stacks of nothing. */
static LoopMap *results_of_none(Rebuild *r, const Node *loop, const LoopLive *ll, Node **map) {
    const Region *body = loop->body;
    LoopMap *lm = ARENA_NEW(r->scratch, LoopMap);
    lm->result = ARENA_ARRAY(r->scratch, Node *, body->out.count);
    for (int k = 0; k < body->out.count; k++) {
        Type slice = *body->out.at[k]->type, stack = {.elem = slice.elem, .rank = slice.rank + 1};
        memcpy(stack.dim + 1, slice.dim, sizeof *slice.dim * (size_t)slice.rank);
        if (ll->result[k]) {
            lm->result[k] =
                k < loop->attr->ncarry ? map[loop->in[k]->id] : node_full(r->graph, stack, 0);
        }
    }
    return lm;
}

/* How `x` crosses the border of a loop. */
static Turn crossing(const Rebuild *r, const Node *x) {
    return r->notes ? turn_of(x) : (Turn){0, 0};
}

/* How a carry does: as was noted for its parameter, or as it starts. */
static Turn carry_crossing(const Rebuild *r, const Node *param, const Node *start) {
    const Turn *noted = r->notes ? param->note : NULL;
    return noted ? *noted : crossing(r, start);
}

static void note_crossing(Rebuild *r, Node *param, Turn used, const Node *next) {
    Turn t = crossing(r, next);
    if (r->notes && !param->note && !turn_equal(t, used)) {
        Turn *noted = ARENA_NEW(r->notes, Turn);
        *noted = t;
        param->note = noted;
        r->differs = true;
    }
}

/* The LOOP of the region that goes into the body of `host` behind `guest`; NULL: none does. */
static const Node *next_guest(const Copy *c, const Region *old, const Node *guest) {
    int next = c->merge ? c->merge->next[guest->id] : 0;
    while (next > 0 && !c->live->loop[next]) {
        next = c->merge->next[next];
    }
    return next > 0 ? old->node.at[next] : NULL;
}

/* The slice of the stack `x` that an iteration has at hand, since it has made it; else NULL. */
static Node *made_slice(const Copy *c, const Node *x) {
    const Node *maker = x->op == OP_PICK ? x->in[0] : NULL;
    return maker && c->inner[maker->id]
               ? c->inner[maker->id][maker->body->out.at[x->attr->axis]->id]
               : NULL;
}

/* Does a carry keep its start? Then it is an invariant. */
static bool stays(const Region *body, int carry) {
    return body->out.at[carry] == body->param.at[1 + carry];
}

/* Puts the body of `guest` behind what the open loop does in a turn. */
static void copy_guest(Rebuild *r, Copy *c, LoopBuilder *lb, const Node *guest) {
    const Region *body = guest->body;
    const LoopLive *ll = c->live->loop[guest->id];
    const int ncarry = guest->attr->ncarry;
    Node **inner = ARENA_ARRAY(r->scratch, Node *, body->node.count);
    LoopMap *lm = ARENA_NEW(r->scratch, LoopMap);
    lm->result = ARENA_ARRAY(r->scratch, Node *, body->out.count);
    lm->number = ARENA_ARRAY(r->scratch, int, body->out.count);
    inner[body->param.at[0]->id] = loop_index(lb);
    for (int k = 0; k < guest->nin; k++) {
        Node *outer = c->map[guest->in[k]->id], *value;
        if (!ll->param[1 + k]) {
            continue;
        }
        if (k < ncarry && !stays(body, k)) {
            lm->number[k] = loop_carry(lb, outer);
            value = loop_carry_value(lb, lm->number[k]);
            value->name = body->param.at[1 + k]->name;
        } else if (k < ncarry + guest->attr->ninv) {
            value = graph_import(r->graph, outer);
        } else {
            Node *made = made_slice(c, guest->in[k]);
            value = made ? made : loop_xs(lb, outer);
        }
        inner[body->param.at[1 + k]->id] = value;
    }
    copy_nodes(r, body, ll->body, inner);
    for (int k = 0; k < body->out.count; k++) {
        Node *value = inner[body->out.at[k]->id];
        if (k >= ncarry) {
            lm->number[k] = ll->result[k] ? loop_emit(lb, value) : -1;
        } else if (ll->param[1 + k] && !stays(body, k)) {
            loop_next(lb, lm->number[k], value);
        }
    }
    c->inner[guest->id] = inner;
    c->loop[guest->id] = lm;
}

static void guest_results(Rebuild *r, Copy *c, const Node *guest, Node *host) {
    LoopMap *lm = c->loop[guest->id];
    c->inner[guest->id] = NULL;
    for (int k = 0; k < guest->body->out.count; k++) {
        if (!c->live->loop[guest->id]->result[k]) {
            continue;
        }
        if (k >= guest->attr->ncarry) {
            lm->result[k] = loop_stack(r->graph, host, lm->number[k]);
        } else {
            lm->result[k] = stays(guest->body, k) ? c->map[guest->in[k]->id]
                                                  : loop_final(r->graph, host, lm->number[k]);
        }
    }
}

/* --- what is made again ----------------------------------------------------------------------- */

/* The values of the body of a loop in front, in the iteration of the one that is open. */
typedef struct Again {
    const Node *loop;
    Node **value;
    struct Again *next;
} Again;

static Node *slice_of(Rebuild *r, const Copy *c, LoopBuilder *lb, Again **again, const Node *x);

static bool is_again(const Copy *c, const Node *loop, int k) {
    return c->again && c->again[loop->id] && c->again[loop->id][k];
}

static Node *param_again(Rebuild *r, const Copy *c, LoopBuilder *lb, Again **again,
                         const Node *loop, const Node *param) {
    const int k = param->attr->axis, ncarry = loop->attr->ncarry;
    if (k == 0) {
        return loop_index(lb);
    }
    const Node *x = loop->in[k - 1];
    if (k > ncarry + loop->attr->ninv) {
        return slice_of(r, c, lb, again, x);
    }
    if (k > ncarry || stays(loop->body, k - 1)) {
        return graph_import(r->graph, c->map[x->id]);
    }
    int next = loop_next_stack(loop, k - 1);
    if (next < 0) {
        BUG("a carry is not at hand where what is made of it is made again");
    }
    return loop_carry_before(lb, c->loop[loop->id]->result[next], c->map[x->id],
                             loop->attr->reverse);
}

/* What of the body of `loop` is made again: of what other stacks hold, and so on. */
static Node **values_again(Rebuild *r, const Copy *c, LoopBuilder *lb, Again **again,
                           const Node *loop) {
    const Region *body = loop->body;
    const int count = body->node.count, ncarry = loop->attr->ncarry;
    Node **value = ARENA_ARRAY(r->scratch, Node *, count);
    bool *given = ARENA_ARRAY(r->scratch, bool, count);
    Live *live = live_new(r->scratch, body);
    live->given = given;
    for (int k = ncarry; k < body->out.count; k++) {
        given[body->out.at[k]->id] = !is_again(c, loop, k) && c->loop[loop->id]->result[k];
        live->node[body->out.at[k]->id] |= is_again(c, loop, k);
    }
    live_mark(r->scratch, body, live);
    for (int k = ncarry; k < body->out.count; k++) {
        int id = (int)body->out.at[k]->id;
        if (given[id] && live->node[id]) {
            value[id] = loop_xs(lb, c->loop[loop->id]->result[k]);
        }
    }
    for (int k = 0; k < body->param.count; k++) {
        const Node *param = body->param.at[k];
        if (live->node[param->id] && !given[param->id]) {
            value[param->id] = param_again(r, c, lb, again, loop, param);
        }
    }
    copy_nodes(r, body, live, value);
    return value;
}

/* The slice of the stack `x` in the iteration of the loop that is open. */
static Node *slice_of(Rebuild *r, const Copy *c, LoopBuilder *lb, Again **again, const Node *x) {
    const Node *loop = x->op == OP_PICK ? x->in[0] : NULL;
    if (!loop || !is_again(c, loop, x->attr->axis)) {
        Node *made = r->slice ? r->slice(r->ctx, r->graph, lb, x, c->map) : NULL;
        return made ? made : loop_xs(lb, c->map[x->id]);
    }
    Again *one = *again;
    while (one && one->loop != loop) {
        one = one->next;
    }
    if (!one) {
        one = ARENA_NEW(r->scratch, Again);
        one->loop = loop;
        one->value = values_again(r, c, lb, again, loop);
        one->next = *again;
        *again = one;
    }
    return one->value[loop->body->out.at[x->attr->axis]->id];
}

/* The carry or invariant whose value as turns begin is result k of a loop that runs once: a stack
 * of one slice, which is there before the loop is. -1: it is something else. */
static int given_stack(const Node *loop, int k) {
    const Attr *at = loop->attr;
    const Node *out = loop->body->out.at[k];
    bool given = k >= at->ncarry && at->trip == 1 && !loop_ends_itself(at) &&
                 out->op == OP_BODY_PARAM && out->attr->axis >= 1 &&
                 out->attr->axis <= at->ncarry + at->ninv;
    return given ? out->attr->axis - 1 : -1;
}

static Node *stack_of_one(Graph *g, Node *x) {
    int64_t dim[MD_RANK] = {1};
    memcpy(dim + 1, x->type->dim, sizeof *dim * (size_t)x->type->rank);
    return node_reshape(g, x, x->type->rank + 1, dim);
}

static LoopMap *copy_loop(Rebuild *r, const Region *old, const Node *loop, Copy *c) {
    const LoopLive *ll = c->live->loop[loop->id];
    Node **map = c->map;
    Graph *g = r->graph;
    const Region *body = loop->body;
    const Attr *at = loop->attr;
    if (at->trip == 0) {
        return results_of_none(r, loop, ll, map);
    }
    Node **inner = ARENA_ARRAY(r->scratch, Node *, body->node.count);
    int *carry = ARENA_ARRAY(r->scratch, int, at->ncarry);
    Turn *turn = ARENA_ARRAY(r->scratch, Turn, body->out.count); /* of carries, then of stacks */
    Node **start = ARENA_ARRAY(r->scratch, Node *, at->ncarry);
    for (int k = 0; k < at->ncarry; k++) {
        if (ll->param[1 + k]) {
            turn[k] = carry_crossing(r, body->param.at[1 + k], map[loop->in[k]->id]);
            start[k] = turn_behind(g, map[loop->in[k]->id], turn[k]);
        }
    }
    int *emitted = ARENA_ARRAY(r->scratch, int, body->out.count);
    Again *again = NULL;
    LoopBuilder *lb = loop_open(g, at->trip, at->reverse);
    loop_checkpoint(lb, at->checkpoint);
    if (at->aside) {
        loop_aside(lb);
    }
    if (at->last) {
        loop_until(lb, map[loop->in[at->ncarry + at->last - 1]->id]);
    }
    inner[body->param.at[0]->id] = loop_index(lb);
    for (int k = 0; k < loop->nin; k++) {
        const Node *param = body->param.at[1 + k];
        if (!ll->param[1 + k]) {
            continue;
        }
        Node *outer = map[loop->in[k]->id];
        Turn t = crossing(r, outer);
        if (k < at->ncarry && (body->out.at[k] != param || k == at->go - 1)) {
            carry[k] = loop_carry(lb, start[k]);
            Node *value = loop_carry_value(lb, carry[k]);
            value->name = param->name;
            inner[param->id] = turn_view(g, value, turn[k]);
            if (k == at->go - 1) {
                loop_while(lb, carry[k]);
            }
        } else if (k < at->ncarry + at->ninv) { /* an unchanging carry is an invariant */
            Node *behind = t.count > 0 ? outer->in[0] : outer;
            inner[param->id] = turn_view(g, graph_import(g, behind), t);
        } else {
            Turn slice = turn_shifted(t, -1);
            inner[param->id] = slice.count > 0 ? turn_view(g, loop_xs(lb, outer->in[0]), slice)
                                               : slice_of(r, c, lb, &again, loop->in[k]);
        }
    }
    copy_nodes(r, body, ll->body, inner);
    const bool *ends = c->ends ? c->ends[loop->id] : NULL;
    for (int k = 0; k < body->out.count; k++) {
        Node *value = inner[body->out.at[k]->id];
        if (k < at->ncarry) {
            if (ll->param[1 + k] && body->out.at[k] != body->param.at[1 + k]) {
                note_crossing(r, body->param.at[1 + k], turn[k], value);
                loop_next(lb, carry[k], turn_behind(g, value, turn[k]));
                emitted[k] = ends && ends[k] ? loop_emit(lb, value) : 0;
            }
        } else if (ll->result[k] && given_stack(loop, k) < 0) {
            turn[k] = crossing(r, value);
            emitted[k] = loop_emit(lb, turn_behind(g, value, turn[k]));
        }
    }
    if (c->merge) {
        c->inner[loop->id] = inner;
    }
    for (const Node *n = loop; (n = next_guest(c, old, n)) != NULL;) {
        copy_guest(r, c, lb, n);
    }
    if (r->loop) {
        r->loop(r->ctx, g, lb);
    }
    Node *copy = loop_close(lb);
    copy->loc = loop->loc;
    if (c->merge) {
        c->inner[loop->id] = NULL;
    }
    for (const Node *n = loop; (n = next_guest(c, old, n)) != NULL;) {
        guest_results(r, c, n, copy);
    }
    LoopMap *lm = ARENA_NEW(r->scratch, LoopMap);
    lm->result = ARENA_ARRAY(r->scratch, Node *, body->out.count);
    for (int k = 0; k < body->out.count; k++) {
        if (!ll->result[k]) {
            continue;
        }
        int given = given_stack(loop, k);
        if (given >= 0) {
            lm->result[k] = stack_of_one(g, map[loop->in[given]->id]);
        } else if (k >= at->ncarry) {
            lm->result[k] = turn_view(g, loop_stack(g, copy, emitted[k]), turn_shifted(turn[k], 1));
        } else if (body->out.at[k] == body->param.at[1 + k]) {
            lm->result[k] = map[loop->in[k]->id];
        } else if (ends && ends[k]) {
            Node *last = node_slice_axis(g, loop_stack(g, copy, emitted[k]), 0,
                                         at->reverse ? 0 : at->trip - 1, 1, 1);
            lm->result[k] = node_reshape(g, last, last->type->rank - 1, last->type->dim + 1);
        } else {
            lm->result[k] = turn_view(g, loop_final(g, copy, carry[k]), turn[k]);
        }
    }
    return lm;
}

static void copy_nodes(Rebuild *r, const Region *old, const Live *live, Node **map) {
    Graph *g = r->graph;
    Copy c = {.live = live, .map = map};
    c.loop = ARENA_ARRAY(r->scratch, LoopMap *, old->node.count);
    c.again = r->again ? r->again(r->ctx, r->scratch, old) : NULL;
    c.ends = r->ends ? r->ends(r->ctx, r->scratch, old) : NULL;
    if (r->merges) {
        c.merge = r->merges(r->ctx, r->scratch, old);
        c.inner = ARENA_ARRAY(r->scratch, Node **, old->node.count);
    }
    for (int at = 0; at < old->node.count; at++) {
        int i = c.merge ? c.merge->order[at] : at;
        const Node *node = old->node.at[i];
        if (!live->node[i] || map[i]) {
            continue;
        }
        g->loc = node->loc;
        if (node->op == OP_BODY_PARAM) {
            continue; /* dead ones that nobody mapped */
        }
        if (node->op == OP_LOOP) {
            if (live->loop[i] && !c.loop[i]) {
                c.loop[i] = copy_loop(r, old, node, &c);
            }
            continue;
        }
        if (node->op == OP_PICK) {
            map[i] = c.loop[node->in[0]->id]->result[node->attr->axis];
        } else {
            Node *local[64];
            Node **in = node->nin <= 64 ? local : ARENA_ARRAY(r->scratch, Node *, node->nin);
            for (int k = 0; k < node->nin; k++) {
                in[k] = map[node->in[k]->id];
            }
            map[i] = r->visit ? r->visit(r->ctx, g, node, in) : NULL;
            if (!map[i]) {
                map[i] = graph_copy(g, node, in);
            }
        }
        if (node->name) {
            graph_name(map[i], node->name);
        }
    }
}

Node *graph_copy(Graph *g, const Node *old, Node *const *in) {
    if (old->op == OP_CUSTOM) {
        Region *body = region_rebuild(g, old->body, NULL, NULL);
        body->up = g->region;
        return node_custom(g, in[0], in + 1, old->nin - 1, body);
    }
    if (old->op == OP_LOOP || old->op == OP_BODY_PARAM) {
        BUG("%s is not copied alone", op_info[old->op].name);
    }
    return graph_add(g, old->op, in, old->nin, old->attr, *old->type);
}

/* What is copied before the nodes that are given, then these. Of a loop that is copied all is that
 * anybody needs, since it is copied once. */
static void copy_needed(Rebuild *how, const Region *old, const Live *live, Node **map) {
    Live *first = live_new(how->scratch, old);
    memcpy(first->node, how->given->needed, sizeof *first->node * (size_t)old->node.count);
    for (bool more = true; more;) {
        more = false;
        live_mark(how->scratch, old, first);
        for (int i = 0; i < old->node.count; i++) {
            const Node *n = old->node.at[i];
            if (n->op == OP_PICK && first->node[n->in[0]->id] && live->node[i] && !first->node[i]) {
                first->node[i] = more = true;
            }
        }
    }
    copy_nodes(how, old, first, map);
    how->given->make(how->given->ctx, how->graph, map);
}

/* What is needed of what is not there yet. */
static Live *live_rest(Arena *scratch, const Region *old, Node *const *map) {
    bool *there = ARENA_ARRAY(scratch, bool, old->node.count);
    Live *live = live_new(scratch, old);
    for (int i = 0; i < old->node.count; i++) {
        there[i] = map[i] != NULL;
    }
    live->given = there;
    for (int k = 0; k < old->out.count; k++) {
        live->node[old->out.at[k]->id] = true;
    }
    live_mark(scratch, old, live);
    return live;
}

/* By what `how` says of what is done on the way. */
static Region *rebuild(Graph *g, const Region *old, Rebuild *how) {
    Arena scratch = {0};
    Live *live = live_new(&scratch, old);
    live->given = how->given ? how->given->given : NULL;
    for (int k = 0; k < old->out.count; k++) {
        live->node[old->out.at[k]->id] = true;
    }
    live_mark(&scratch, old, live);
    Loc loc = g->loc;
    Region *fresh = region_new(g, NULL);
    Region *before = graph_enter(g, fresh);
    Node **map = ARENA_ARRAY(&scratch, Node *, old->node.count);
    for (int k = 0; k < old->param.count; k++) {
        map[old->param.at[k]->id] = region_param(fresh, *old->param.at[k]->type);
    }
    how->graph = g;
    how->scratch = &scratch;
    if (how->given) {
        copy_needed(how, old, live, map);
        live = live_rest(&scratch, old, map);
    }
    copy_nodes(how, old, live, map);
    for (int k = 0; k < old->out.count; k++) {
        region_result(fresh, map[old->out.at[k]->id]);
    }
    graph_leave(g, before);
    g->loc = loc;
    arena_free(&scratch);
    return fresh;
}

Region *region_rebuild(Graph *g, const Region *old, RebuildVisit visit, void *ctx) {
    Rebuild how = {.visit = visit, .ctx = ctx};
    return rebuild(g, old, &how);
}

Region *region_rebuild_turned(Graph *g, const Region *old, RebuildVisit visit, void *ctx,
                              Arena *notes, bool *differs) {
    Rebuild how = {.visit = visit, .ctx = ctx, .notes = notes};
    Region *fresh = rebuild(g, old, &how);
    *differs = how.differs;
    return fresh;
}

Region *region_rebuild_loops(Graph *g, const Region *old, LoopVisit visit, void *ctx) {
    Rebuild how = {.loop = visit, .ctx = ctx};
    return rebuild(g, old, &how);
}

Region *region_rebuild_merged(Graph *g, const Region *old, MergePlanner merges, void *ctx) {
    Rebuild how = {.merges = merges, .ctx = ctx};
    return rebuild(g, old, &how);
}

Region *region_rebuild_given(Graph *g, const Region *old, const RebuildGiven *given) {
    Rebuild how = {.given = given};
    return rebuild(g, old, &how);
}

Region *region_rebuild_remat(Graph *g, const Region *old, RematPlanner again, void *ctx) {
    Rebuild how = {.again = again, .ctx = ctx};
    return rebuild(g, old, &how);
}

Region *region_rebuild_ends(Graph *g, const Region *old, EndsPlanner ends, void *ctx) {
    Rebuild how = {.ends = ends, .ctx = ctx};
    return rebuild(g, old, &how);
}

Region *region_rebuild_sliced(Graph *g, const Region *old, SliceMaker slice, void *ctx) {
    Rebuild how = {.slice = slice, .ctx = ctx};
    return rebuild(g, old, &how);
}

void region_inline(Graph *g, const Region *body, Node *const *arg, Node **out) {
    Arena scratch = {0};
    Live *live = live_new(&scratch, body);
    for (int k = 0; k < body->out.count; k++) {
        live->node[body->out.at[k]->id] = true;
    }
    live_mark(&scratch, body, live);
    Node **map = ARENA_ARRAY(&scratch, Node *, body->node.count);
    for (int k = 0; k < body->param.count; k++) {
        map[body->param.at[k]->id] = graph_import(g, arg[k]);
    }
    Loc loc = g->loc;
    Rebuild r = {.graph = g, .scratch = &scratch};
    copy_nodes(&r, body, live, map);
    g->loc = loc;
    for (int k = 0; k < body->out.count; k++) {
        out[k] = map[body->out.at[k]->id];
    }
    arena_free(&scratch);
}

Region *region_changed(Graph *g, const Region *region, void (*change)(Graph *g, Region *own)) {
    const Loc loc = g->loc;
    Region *own = region_rebuild(g, region, NULL, NULL);
    change(g, own);
    g->loc = loc;
    return region_rebuild(g, own, NULL, NULL);
}

static Node *read_as(Node *n, Node *const *stands, int count) {
    return (int)n->id < count && stands[n->id] ? stands[n->id] : n;
}

void region_read_instead(Region *region, Node *const *stands, int count, int readers) {
    for (int i = 0; i < readers; i++) {
        Node *n = region->node.at[i];
        for (int k = 0; k < n->nin; k++) {
            n->in[k] = read_as(n->in[k], stands, count);
        }
    }
    for (int k = 0; k < region->out.count; k++) {
        region->out.at[k] = read_as(region->out.at[k], stands, count);
    }
}

/* Nodes in an order in which each stands behind what it reads. */
typedef struct {
    Node **at;
    int count, left;
    Node **path; /* whose operands are being placed, */
    int *next;   /* and which of them comes next */
    bool *begun;
} Order;

static void begin(Order *o, Node *n) {
    if (!o->begun[n->id]) {
        o->begun[n->id] = true;
        o->path[o->left] = n;
        o->next[o->left++] = 0;
    }
}

/* A list instead of recursion: nets are thousands of layers deep. */
static void settle(Order *o, Node *n) {
    begin(o, n);
    while (o->left > 0) {
        Node *top = o->path[o->left - 1];
        int k = o->next[o->left - 1]++;
        if (k == top->nin) {
            o->at[o->count++] = top;
            o->left--;
        } else {
            begin(o, top->in[k]);
        }
    }
}

void region_settle(Region *region) {
    Arena scratch = {0};
    const int count = region->node.count;
    Order order = {.at = ARENA_ARRAY(&scratch, Node *, count)};
    order.path = ARENA_ARRAY(&scratch, Node *, count);
    order.next = ARENA_ARRAY(&scratch, int, count);
    order.begun = ARENA_ARRAY(&scratch, bool, count);
    for (int i = 0; i < count; i++) {
        settle(&order, region->node.at[i]);
    }
    for (int i = 0; i < count; i++) {
        region->node.at[i] = order.at[i];
        order.at[i]->id = (uint32_t)i;
    }
    arena_free(&scratch);
}
