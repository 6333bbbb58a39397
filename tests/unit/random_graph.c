/* random_graph: see the header. */
#include "random_graph.h"

#include <string.h>

static Node *total(Graph *g, Node *a) {
    return a->type->rank == 0 ? a : node_fold(g, OP_SUM, a, (1u << a->type->rank) - 1);
}

static int64_t below(RandomGraph *r, int64_t n) {
    return sample_below(r->s, n);
}

Node *random_graph_any(RandomGraph *r) {
    return r->pool[below(r, r->npool)];
}

static void keep(RandomGraph *r, Node *node) {
    if (type_count(*node->type) > 400 || node->type->rank > 5) {
        return;
    }
    r->pool[r->npool < RANDOM_POOL ? r->npool++ : (int)below(r, RANDOM_POOL)] = node;
}

/* `a` as a value of type `like`, by whatever view fits. */
static Node *fit(RandomGraph *r, Node *a, Type like) {
    Graph *g = r->s->g;
    if (type_same_shape(*a->type, like)) {
        return a;
    }
    uint32_t axes = 0;
    int k = 0;
    for (int i = 0; i < like.rank; i++) {
        if (k < a->type->rank && a->type->dim[k] == like.dim[i]) {
            k++;
        } else {
            axes |= 1u << i;
        }
    }
    return k == a->type->rank ? node_broadcast(g, a, axes, like.rank, like.dim)
                              : node_broadcast_to(g, total(r->s->g, a), like);
}

static Node *squash(RandomGraph *r, Node *a) {
    return node_map1(r->s->g, below(r, 2) ? OP_SIN : OP_TANH, a);
}

static Node *random_constant(RandomGraph *r) {
    static const double values[] = {0, 1, -1, 2, 0.5, -0.25, 3};
    return node_const(r->s->g, r->s->elem, values[below(r, 7)]);
}

static Node *random_view(RandomGraph *r, Node *a) {
    Graph *g = r->s->g;
    int rank = a->type->rank, axis = rank ? (int)below(r, rank) : 0;
    int64_t lo[MD_RANK] = {0}, hi[MD_RANK] = {0};
    int map[MD_RANK];
    switch (below(r, rank ? 8 : 1)) {
    case 0: {
        int64_t dim[MD_RANK] = {1 + below(r, 3)};
        memcpy(dim + 1, a->type->dim, sizeof *dim * (size_t)rank);
        return node_broadcast(g, a, 1, rank + 1, dim);
    }
    case 1: {
        for (int i = 0; i < rank; i++) {
            map[i] = (i + axis) % rank;
        }
        return node_permute(g, a, map);
    }
    case 2: {
        int64_t from = below(r, a->type->dim[axis]),
                extent = 1 + below(r, a->type->dim[axis] - from);
        return node_slice_axis(g, a, axis, from, extent, 1);
    }
    case 3:
        lo[axis] = below(r, 2);
        hi[axis] = below(r, 3);
        return node_pad(g, a, lo, hi, BORDER_VALUE, 0);
    case 4: return node_flip(g, a, 1u << axis);
    case 5: return node_reshape(g, a, 1, (int64_t[]){type_count(*a->type)});
    case 6: return node_concat(g, (Node *[]){a, a}, 2, axis);
    default: return node_slice_axis(g, a, axis, 0, (a->type->dim[axis] + 1) / 2, 2);
    }
}

static Node *random_product(RandomGraph *r, Node *a, Node *b) {
    int8_t la[MD_RANK], lb[MD_RANK], lo[MD_RANK];
    int n = 0, rank = 0;
    for (int i = 0; i < a->type->rank; i++) {
        la[i] = (int8_t)n++;
    }
    uint32_t shared = 0;
    for (int j = 0; j < b->type->rank; j++) {
        lb[j] = -1;
        for (int i = 0; i < a->type->rank && lb[j] < 0; i++) {
            if (a->type->dim[i] == b->type->dim[j] && !(shared >> i & 1) && below(r, 3)) {
                lb[j] = (int8_t)i;
                shared |= 1u << i;
            }
        }
        if (lb[j] < 0) {
            lb[j] = (int8_t)n++;
        }
    }
    for (int l = n - 1; l >= 0; l--) { /* shared labels are summed, or batch axes */
        if (!(shared >> l & 1) || !below(r, 3)) {
            lo[rank++] = (int8_t)l;
        }
    }
    return rank <= 5 ? node_contract(r->s->g, a, b, la, lb, lo, rank) : a;
}

static Node *random_node(RandomGraph *r, int depth);

static Node *random_loop(RandomGraph *r, int depth) {
    Graph *g = r->s->g;
    Node *start = random_graph_any(r), *stack = random_graph_any(r), *used = random_graph_any(r);
    int64_t trip = stack->type->rank > 0 ? stack->type->dim[0] : 1 + below(r, 3);
    /* A third of them ends by itself: after a number of iterations, up to all. */
    Node *some = below(r, 3) ? NULL : node_int(g, TY_I32, below(r, trip + 1));
    LoopBuilder *loop = loop_open(g, trip, !some && below(r, 2));
    RandomGraph inner = {.s = r->s};
    int go = some ? loop_carry(loop, node_map2(g, OP_LT, node_int(g, TY_I32, 0), some)) : -1;
    int c = loop_carry(loop, start);
    keep(&inner, loop_carry_value(loop, c));
    keep(&inner, graph_import(g, used));
    keep(&inner, node_cast(g, loop_index(loop), r->s->elem));
    if (stack->type->rank > 0) {
        keep(&inner, loop_xs(loop, stack));
    }
    for (int i = 0, n = 2 + (int)below(r, 6); i < n; i++) {
        keep(&inner, random_node(&inner, depth - 1));
    }
    Node *next = node_map2(g, OP_ADD, loop_carry_value(loop, c),
                           fit(&inner, squash(&inner, random_graph_any(&inner)), *start->type));
    loop_next(loop, c, squash(&inner, next));
    if (some) {
        Node *made = node_map2(g, OP_ADD, loop_index(loop), node_int(g, TY_I32, 1));
        loop_next(loop, go, node_map2(g, OP_LT, made, graph_import(g, some)));
        loop_while(loop, go);
    }
    int y = loop_emit(loop, squash(&inner, random_graph_any(&inner)));
    Node *done = loop_close(loop);
    return below(r, 2) ? loop_final(g, done, c) : loop_stack(g, done, y);
}

static Node *random_node(RandomGraph *r, int depth) {
    static const OpCode two[] = {OP_ADD, OP_SUB, OP_MUL, OP_MUL, OP_ADD};
    static const OpCode one[] = {OP_NEG, OP_SIN, OP_TANH, OP_NEG, OP_EXP};
    Graph *g = r->s->g;
    Node *a = random_graph_any(r), *b = random_graph_any(r);
    switch (below(r, depth > 0 ? 10 : 9)) {
    case 0:
    case 1: return node_map2(g, two[below(r, 5)], a, fit(r, b, *a->type));
    case 2: return node_map1(g, one[below(r, 4)], a);
    case 3:
        return node_map2(
            g, below(r, 3) ? OP_MUL : OP_DIV, a,
            node_map2(g, OP_ADD, random_constant(r), node_const(g, a->type->elem, 0.0625)));
    case 4: return random_view(r, a);
    case 5: return random_view(r, random_view(r, a));
    case 6:
        return a->type->rank
                   ? node_fold(g, OP_SUM, a, 1 + (uint32_t)below(r, (1 << a->type->rank) - 1))
                   : a;
    case 7: return random_product(r, a, b);
    case 8: {
        Node *wide = node_map2(g, OP_MUL, a, fit(r, b, *a->type));
        return wide->type->rank
                   ? node_fold(g, OP_SUM, squash(r, wide), 1u << below(r, wide->type->rank))
                   : wide;
    }
    default: return random_loop(r, depth);
    }
}

Node *random_graph(RandomGraph *r, Sample *s, int nodes) {
    *r = (RandomGraph){.s = s};
    keep(r, sample_input(s, type_make(TY_F64, 2, (int64_t[]){2, 3}), -1, 1));
    keep(r, sample_input(s, type_make(TY_F64, 1, (int64_t[]){3}), -1, 1));
    keep(r, sample_input(s, type_scalar(TY_F64), -1, 1));
    keep(r, sample_input(s, type_make(TY_F64, 3, (int64_t[]){2, 1, 3}), -1, 1));
    Node *sum = node_const(s->g, TY_F64, 0);
    for (int i = 0; i < nodes; i++) {
        keep(r, random_node(r, 2));
    }
    for (int i = 0; i < r->npool; i++) {
        sum = node_map2(s->g, OP_ADD, sum, total(s->g, squash(r, r->pool[i])));
    }
    return sum;
}
