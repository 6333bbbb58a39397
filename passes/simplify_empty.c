/* simplify_empty: values without elements go, and what is made of them; see simplify.c.
 *
 * A value of zero elements is a constant, whatever computes it, and no derivative flows through it.
 * A fold over an empty axis is the fold's neutral number, padding and windows of nothing are their
 * border, a concatenation is that of its other parts. So no later pass and no kernel meets a value
 * without elements; only slots keep their types. */
#include "passes/simplify_rule.h"

bool is_empty(const Node *n) {
    return n->op != OP_LOOP && type_count(*n->type) == 0;
}

/* A concatenation without its empty parts, of which one has elements. */
static Node *concat_of_empty(Graph *g, const Node *n, Node *const *in) {
    Arena scratch = {0};
    Node **part = ARENA_ARRAY(&scratch, Node *, n->nin);
    int count = 0;
    for (int k = 0; k < n->nin; k++) {
        if (!is_empty(in[k])) {
            part[count++] = in[k];
        }
    }
    Node *made = count < n->nin ? node_concat(g, part, count, n->attr->axis) : NULL;
    arena_free(&scratch);
    return made;
}

/* Nothing added up, and what is around nothing. */
static Node *zeros(Graph *g, const Node *n, Node *const *in) {
    return is_empty(in[0]) ? node_full(g, *n->type, 0) : NULL;
}

static Node *ones(Graph *g, const Node *n, Node *const *in) {
    return is_empty(in[0]) ? node_full(g, *n->type, 1) : NULL;
}

static Node *border(Graph *g, const Node *n, Node *const *in) {
    return is_empty(in[0]) ? node_full(g, *n->type, n->attr->value) : NULL;
}

/* What has elements though an operand has none. */
static const SimplifyRow of_empty[] = {
    {OP_CONCAT, concat_of_empty},
    {OP_SUM, zeros},
    {OP_PROD, ones},
    {OP_CONTRACT, zeros},
    {OP_SCATTER_ADD, zeros},
    {OP_OVERLAP_ADD, zeros},
    {OP_PAD, border},
    {OP_WINDOW, border},
    {OP_COUNT, NULL},
};

static Node *visit(void *ctx, Graph *g, const Node *n, Node *const *in) {
    (void)ctx;
    if (is_empty(n)) {
        return node_full(g, *n->type, 0);
    }
    if (n->op == OP_CUSTOM) { /* its body is copied by itself */
        Region *body = region_without_empty(g, n->body);
        body->up = g->region;
        return node_custom(g, in[0], in + 1, n->nin - 1, body);
    }
    Node *made = NULL;
    for (const SimplifyRow *row = of_empty; row->rule && !made; row++) {
        made = row->op == n->op ? row->rule(g, n, in) : NULL;
    }
    return made;
}

Region *region_without_empty(Graph *g, const Region *region) {
    Region *fresh = region_rebuild(g, region, visit, NULL);
    Region *before = graph_enter(g, fresh);
    for (int k = 0; k < fresh->out.count; k++) { /* slots, and results of loops */
        if (is_empty(fresh->out.at[k])) {
            fresh->out.at[k] = node_full(g, *fresh->out.at[k]->type, 0);
        }
    }
    graph_leave(g, before);
    return fresh;
}
