/* flow: what a derivative of a value flows back to, see flow.h. */
#include "compiler/flow.h"

#include "compiler/loop_builder.h"

struct Flow {
    const Region *region;
    bool *mark; /* by node id, of the nodes that there are now */
    int count;
    Flow *up; /* of the region around, where the value reads it */
};

/* The value of the region around that an invariant of a body stands for; NULL: it is none. */
static Node *outside(const Node *n) {
    if (n->op != OP_BODY_PARAM) {
        return NULL;
    }
    if (n->region->loop) {
        return loop_captured(n->region->loop, n);
    }
    const Node *loop = n->region->owner;
    int k = n->attr->axis - 1;
    bool invariant = loop && loop->op == OP_LOOP && k >= loop->attr->ncarry &&
                     k < loop->attr->ncarry + loop->attr->ninv;
    return invariant ? loop->in[k] : NULL;
}

static const Node *home(const Node *n) {
    for (const Node *o = outside(n); o; o = outside(o)) {
        n = o;
    }
    return n;
}

static Flow *flow_new(Arena *arena, const Region *region) {
    Flow *flow = ARENA_NEW(arena, Flow);
    flow->region = region;
    flow->count = region->node.count;
    flow->mark = ARENA_ARRAY(arena, bool, flow->count);
    return flow;
}

static void flow_node(Arena *arena, Flow *flow, const Node *n);

/* Of a loop what its marked results are made of: results that nobody takes, and what only they
 * read, are no part of it. */
static void flow_loop(Arena *arena, Flow *flow, const Node *loop) {
    const Region *body = loop->body;
    bool *wanted = ARENA_ARRAY(arena, bool, body->out.count);
    for (int i = (int)loop->id; i < flow->count; i++) {
        const Node *pick = flow->region->node.at[i];
        if (flow->mark[i] && pick->op == OP_PICK && pick->in[0] == loop) {
            wanted[pick->attr->axis] = true;
        }
    }
    for (bool again = true; again;) {
        Flow *inner = flow_new(arena, body);
        again = false;
        for (int k = 0; k < body->out.count; k++) {
            inner->mark[body->out.at[k]->id] = inner->mark[body->out.at[k]->id] || wanted[k];
        }
        for (int i = inner->count - 1; i >= 0; i--) {
            flow_node(arena, inner, body->node.at[i]);
        }
        for (int k = 0; k < loop->nin; k++) {
            bool read = inner->mark[body->param.at[1 + k]->id];
            flow->mark[loop->in[k]->id] = flow->mark[loop->in[k]->id] || read;
            if (read && k < loop->attr->ncarry && !wanted[k]) {
                wanted[k] = again = true;
            }
        }
    }
}

/* Marks what a marked node is made of, in its region. */
static void flow_node(Arena *arena, Flow *flow, const Node *n) {
    bool flows = n->op != OP_STOP && (elem_is_float(n->type->elem) || n->type->elem == TY_TUPLE);
    if (!flow->mark[n->id] || !flows) {
        return;
    }
    if (n->op == OP_LOOP) {
        flow_loop(arena, flow, n);
        return;
    }
    for (int k = n->op == OP_CUSTOM ? 1 : 0; k < n->nin; k++) {
        flow->mark[n->in[k]->id] = true;
    }
}

/* Marks what the marked nodes are made of, here and in the regions around. */
static void flow_back(Arena *arena, Flow *flow) {
    for (int i = flow->count - 1; i >= 0; i--) {
        const Node *n = flow->region->node.at[i];
        flow_node(arena, flow, n);
        const Node *o = flow->mark[i] ? outside(n) : NULL;
        if (o) {
            flow->up = flow->up ? flow->up : flow_new(arena, o->region);
            flow->up->mark[o->id] = true;
        }
    }
    if (flow->up) {
        flow_back(arena, flow->up);
    }
}

const Flow *flow_of(Arena *arena, const Node *value) {
    Flow *flow = flow_new(arena, value->region);
    flow->mark[value->id] = true;
    flow_back(arena, flow);
    return flow;
}

bool flow_has(const Flow *flow, const Node *point) {
    point = home(point);
    while (flow && flow->region != point->region) {
        flow = flow->up;
    }
    return flow && (int)point->id < flow->count && flow->mark[point->id];
}

/* --- derivatives of derivatives --------------------------------------------------------------- */

typedef struct {
    Arena *arena;
    const Node *point;
    const Flow *before; /* of the point */
} Search;

static const Node *among(const Search *s, const Region *region, const bool *mark, int count) {
    for (int i = 0; i < count; i++) {
        const Node *n = region->node.at[i], *found = NULL;
        if (mark && !mark[i]) {
            continue;
        }
        if (n->body) {
            found = among(s, n->body, NULL, n->body->node.count);
        } else if (n->op == OP_GRAD && home(n->in[1]) != s->point &&
                   flow_has(s->before, n->in[1]) &&
                   flow_has(flow_of(s->arena, n->in[0]), s->point)) {
            found = n;
        }
        if (found) {
            return found;
        }
    }
    return NULL;
}

const Node *flow_ambiguous(Arena *arena, const Flow *flow, const Node *point) {
    point = home(point);
    Search s = {arena, point, flow_of(arena, point)};
    const Node *found = NULL;
    for (; flow && !found; flow = flow->up) {
        found = among(&s, flow->region, flow->mark, flow->count);
    }
    return found;
}
