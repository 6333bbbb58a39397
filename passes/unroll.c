/* unroll: loops of two turns whose sums begin with zeros, turn by turn.
 *
 * The adjoint of a trace goes through the unit vectors of a plane and adds up what each gives to
 * arrays as large as a hidden layer. In a loop these are written as zeros first, and read back in
 * the first turn; turn by turn the first one gives them.
 *
 * The region is a copy of the pass's own: who picks a result of such a loop reads what its turns
 * give, and the loop is left behind. Needs and gives: see unroll.h. */
#include "passes/unroll.h"

#include <string.h>

enum {
    TURNS = 2,
    NODES = 256,              /* of the body, at most */
    LARGE = TUNED(1 << 10, 2) /* elements of a sum that is worth it */
};

static bool unrolls(const Node *n) {
    if (n->op != OP_LOOP || n->attr->trip != TURNS || loop_ends_itself(n->attr) ||
        n->body->node.count > NODES || !n->region->up) {
        return false;
    }
    bool sums = false;
    for (int k = 0; k < n->attr->ncarry; k++) {
        const Type *type = n->in[k]->type;
        sums = sums ||
               (elem_is_float(type->elem) && node_is_zero(n->in[k]) && type_count(*type) >= LARGE);
    }
    return sums;
}

/* What turns give to one result of a loop, as one stack. */
static Node *stack_turns(Graph *g, Node *const *slice) {
    Node *part[TURNS];
    for (int t = 0; t < TURNS; t++) {
        const Type *type = slice[t]->type;
        int64_t dim[MD_RANK] = {1};
        for (int i = 0; i < type->rank; i++) {
            dim[1 + i] = type->dim[i];
        }
        part[t] = node_reshape(g, slice[t], type->rank + 1, dim);
    }
    return node_concat(g, part, TURNS, 0);
}

static Node **turns_of(Graph *g, const Node *loop, Arena *scratch) {
    const Attr *a = loop->attr;
    const Region *body = loop->body;
    const int results = body->out.count, first = a->ncarry + a->ninv;
    Node **arg = ARENA_ARRAY(scratch, Node *, loop->nin + 1);
    Node **out = ARENA_ARRAY(scratch, Node *, results);
    Node **result = ARENA_ARRAY(scratch, Node *, results);
    Node *(*slice)[TURNS] = arena_alloc(scratch, sizeof *slice * (size_t)results);
    for (int k = 0; k < loop->nin; k++) {
        arg[1 + k] = loop->in[k];
    }
    for (int t = 0; t < TURNS; t++) {
        const int at = a->reverse ? TURNS - 1 - t : t;
        arg[0] = node_int(g, TY_I32, at);
        for (int k = first; k < loop->nin; k++) {
            arg[1 + k] = node_index_axis(g, loop->in[k], 0, at);
        }
        region_inline(g, body, arg, out);
        for (int k = 0; k < results; k++) {
            if (k < a->ncarry) {
                arg[1 + k] = out[k];
            } else {
                slice[k][at] = out[k];
            }
        }
    }
    for (int k = 0; k < results; k++) {
        result[k] = k < a->ncarry ? arg[1 + k] : stack_turns(g, slice[k]);
    }
    return result;
}

/* Nodes that were made for a loop, behind it: turns come one behind the other. */
static void put_behind(Region *region, int count, const int *from, const int *to, Arena *scratch) {
    const int all = region->node.count;
    Node **order = ARENA_ARRAY(scratch, Node *, all);
    int n = 0;
    for (int i = 0; i < count; i++) {
        order[n++] = region->node.at[i];
        for (int k = from[i]; k < to[i]; k++) {
            order[n++] = region->node.at[k];
        }
    }
    memcpy(region->node.at, order, sizeof *order * (size_t)all);
}

static void unroll_region(Graph *g, Region *region) {
    Arena scratch = {0};
    const int count = region->node.count;
    Node **stands = ARENA_ARRAY(&scratch, Node *, count + 1);
    Node ***turns = ARENA_ARRAY(&scratch, Node **, count + 1);
    int *from = ARENA_ARRAY(&scratch, int, count + 1), *to = ARENA_ARRAY(&scratch, int, count + 1);
    bool any = false;
    Region *before = graph_enter(g, region);
    for (int i = 0; i < count; i++) {
        Node *n = region->node.at[i];
        if (n->body) {
            unroll_region(g, n->body);
        }
        if (unrolls(n)) {
            from[i] = region->node.count;
            turns[i] = turns_of(g, n, &scratch);
            to[i] = region->node.count;
            any = true;
        }
        if (n->op == OP_PICK && turns[n->in[0]->id]) {
            stands[i] = turns[n->in[0]->id][n->attr->axis];
        }
    }
    graph_leave(g, before);
    if (any) {
        put_behind(region, count, from, to, &scratch);
        region_read_instead(region, stands, count, region->node.count);
        region_settle(region);
    }
    arena_free(&scratch);
}

bool unroll_applies(const Region *region) {
    return region_any(region, unrolls);
}

Region *pass_unroll(Graph *g, const Region *region) {
    return region_changed(g, region, unroll_region);
}
