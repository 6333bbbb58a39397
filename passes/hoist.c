/* hoist: loop-invariant work out of loop bodies.
 *
 * Technique: a rebuild offers every node of a body, with its operands made already; when each of
 * them is a constant, an invariant or a view of such, the node is made in the region around
 * instead (and there offered again, for the next loop outwards) and comes back as an invariant.
 * Views stay in the body: they cost nothing there, and outside they might have to be stored. What
 * would be larger than what it reads stays too, as does a random draw, which is made again for
 * free memory. Needs and gives: see hoist.h. */
#include "passes/hoist.h"

#include "compiler/loop_builder.h"

static bool is_view(const Node *n) {
    OpClass cls = op_info[n->op].cls;
    return cls == CLASS_VIEW || n->op == OP_IOTA || n->op == OP_CONST || n->op == OP_TABLE;
}

/* The value of `n` of the body being built, in the region around; NULL when it is not the same in
 * every iteration. Sets *captured when it reads anything but constants. */
static Node *outside(Graph *g, Node *n, bool *captured) {
    Region *body = g->region;
    if (n->op == OP_BODY_PARAM) {
        Node *outer = loop_captured(body->loop, n);
        *captured = *captured || outer;
        return outer;
    }
    if (!is_view(n) || n->nin > 1) {
        return NULL;
    }
    Node *in = n->nin ? outside(g, n->in[0], captured) : NULL;
    if (n->nin && !in) {
        return NULL;
    }
    graph_enter(g, body->up);
    Node *copy = graph_copy(g, n, &in);
    graph_leave(g, body);
    return copy;
}

/* Whether the work is worth a value that lives as long as the loop. */
static bool worth_storing(const Node *n, Node *const *in) {
    OpClass cls = op_info[n->op].cls;
    int64_t most = 0;
    if (cls == CLASS_FOLD || cls == CLASS_CALL) {
        return true;
    }
    for (int k = 0; k < n->nin; k++) { /* what is read, behind the views */
        const Node *base = in[k];
        while (op_info[base->op].cls == CLASS_VIEW) {
            base = base->in[0];
        }
        int64_t count = type_count(*base->type);
        most = count > most ? count : most;
    }
    return cls == CLASS_MAP && n->op != OP_RANDOM && type_count(*n->type) <= most;
}

static Node *hoist_node(void *ctx, Graph *g, const Node *n, Node *const *in) {
    Region *body = g->region;
    Node *outer[4];
    bool captured = false;
    if (!body->up || !body->loop || n->nin == 0 || n->nin > 4 || !worth_storing(n, in)) {
        return NULL;
    }
    for (int k = 0; k < n->nin; k++) {
        outer[k] = outside(g, in[k], &captured);
        if (!outer[k]) {
            return NULL;
        }
    }
    if (!captured) {
        return NULL;
    }
    graph_enter(g, body->up);
    Node *made = hoist_node(ctx, g, n, outer);
    made = made ? made : graph_copy(g, n, outer);
    graph_leave(g, body);
    return graph_import(g, made);
}

static bool is_loop(const Node *n) {
    return n->op == OP_LOOP;
}

bool hoist_applies(const Region *region) {
    return region_any(region, is_loop);
}

Region *pass_hoist(Graph *g, const Region *region) {
    return region_rebuild(g, region, hoist_node, NULL);
}
