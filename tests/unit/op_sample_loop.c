/* op_sample_loop: loops for op_sample: recurrent ones, layers, nested ones, one that ends itself,
 * and the steps of an equation. */
#include "op_sample_loop.h"

static Type dims2(Elem elem, int64_t a, int64_t b) {
    return type_make(elem, 2, (int64_t[]){a, b});
}

static Type dims3(Elem elem, int64_t a, int64_t b, int64_t c) {
    return type_make(elem, 3, (int64_t[]){a, b, c});
}

static Node *dot(Graph *g, Node *a, Node *b) {
    return node_contract(g, a, b, (int8_t[]){0, 1}, (int8_t[]){1, 2}, (int8_t[]){0, 2}, 2);
}

static Node *plus(Graph *g, Node *a, Node *b) {
    return node_map2(g, OP_ADD, a, b);
}
static Node *times(Graph *g, Node *a, Node *b) {
    return node_map2(g, OP_MUL, a, b);
}

/* h <- tanh(h w + x[t]), emit h^2: a recurrent net. */
static Node *loop_recurrent(Sample *s, int64_t trip, bool reverse, bool stacked) {
    Graph *g = s->g;
    Node *h0 = sample_input(s, dims2(s->elem, 2, 3), -1, 1),
         *w = sample_input(s, dims2(s->elem, 3, 3), -1, 1);
    Node *x = sample_input(s, dims3(s->elem, trip, 2, 3), -1, 1);
    LoopBuilder *loop = loop_open(g, trip, reverse);
    int c = loop_carry(loop, h0);
    Node *h = loop_carry_value(loop, c);
    Node *next = node_map1(g, OP_TANH, plus(g, dot(g, h, w), loop_xs(loop, x)));
    loop_next(loop, c, next);
    int y = loop_emit(loop, times(g, next, h));
    Node *done = loop_close(loop);
    return stacked ? loop_stack(g, done, y) : loop_final(g, done, c);
}

/* A stack of layers with their own weights, a residual path and the layer's number. */
static Node *loop_layers(Sample *s) {
    Graph *g = s->g;
    Node *x = sample_input(s, dims2(s->elem, 2, 3), -1, 1),
         *w = sample_input(s, dims3(s->elem, 5, 3, 3), -1, 1);
    Node *scale = sample_input(s, type_scalar(s->elem), 0.5, 1);
    LoopBuilder *loop = loop_open(g, 5, false);
    int c = loop_carry(loop, x);
    Node *h = loop_carry_value(loop, c);
    Node *number = node_cast(g, loop_index(loop), s->elem);
    Node *wave = node_map1(g, OP_SIN, times(g, dot(g, h, loop_xs(loop, w)), scale));
    loop_next(loop, c,
              plus(g, h,
                   times(g, wave,
                         node_map2(g, OP_DIV, node_const(g, s->elem, 1),
                                   plus(g, number, node_const(g, s->elem, 1))))));
    return loop_final(g, loop_close(loop), c);
}

/* A loop in a loop; the inner one reads the outer's carry, stack and invariant. */
static Node *loop_nested(Sample *s) {
    Graph *g = s->g;
    Type row = type_make(s->elem, 1, (int64_t[]){3});
    Node *a = sample_input(s, row, -1, 1), *w = sample_input(s, row, -1, 1);
    Node *x = sample_input(s, dims2(s->elem, 3, 3), -1, 1),
         *z = sample_input(s, dims2(s->elem, 2, 3), -1, 1);
    LoopBuilder *outer = loop_open(g, 3, false);
    int c = loop_carry(outer, a);
    Node *h = loop_carry_value(outer, c), *xt = loop_xs(outer, x);
    LoopBuilder *inner = loop_open(g, 2, true);
    int d = loop_carry(inner, h);
    Node *v = loop_carry_value(inner, d);
    Node *next =
        node_map1(g, OP_SIN, plus(g, times(g, v, w), plus(g, times(g, xt, loop_xs(inner, z)), h)));
    loop_next(inner, d, next);
    int y = loop_emit(inner, node_map1(g, OP_EXP, times(g, next, v)));
    Node *in = loop_close(inner);
    Node *sum = node_fold(g, OP_SUM, loop_stack(g, in, y), 1);
    loop_next(outer, c, plus(g, loop_final(g, in, d), times(g, sum, node_const(g, s->elem, 0.25))));
    int e = loop_emit(outer, sum);
    Node *out = loop_close(outer), *stack = times(g, loop_stack(g, out, e), x);
    return plus(g, loop_final(g, out, c), node_fold(g, OP_SUM, stack, 1));
}

/* Two carries that swap, one that never changes, one that counts, and a draw in each iteration. */
static Node *loop_carries(Sample *s) {
    Graph *g = s->g;
    Type row = type_make(s->elem, 1, (int64_t[]){5});
    Node *a = sample_input(s, row, -1, 1), *b = sample_input(s, row, -1, 1),
         *k = sample_input(s, row, -1, 1);
    LoopBuilder *loop = loop_open(g, 4, false);
    int ca = loop_carry(loop, a), cb = loop_carry(loop, b), ck = loop_carry(loop, k);
    int cn = loop_carry(loop, node_int(g, TY_I32, 0));
    Node *va = loop_carry_value(loop, ca), *vb = loop_carry_value(loop, cb),
         *vn = loop_carry_value(loop, cn);
    Node *key[3] = {node_int(g, TY_I64, 7), node_int(g, TY_I64, 1),
                    node_cast(g, loop_index(loop), TY_I64)};
    Node *draw = node_random(g, DIST_UNIFORM, 99, key, 3, row);
    loop_next(loop, ca, node_map1(g, OP_COS, plus(g, vb, draw)));
    loop_next(loop, cb,
              times(g, plus(g, va, loop_carry_value(loop, ck)),
                    node_cast(g, plus(g, vn, node_int(g, TY_I32, 1)), s->elem)));
    loop_next(loop, cn, plus(g, vn, node_int(g, TY_I32, 1)));
    Node *done = loop_close(loop);
    return plus(g, loop_final(g, done, ca), loop_final(g, done, cb));
}

/* No carry: a map over stacks, with a scatter of the outputs by the loop's index. */
static Node *loop_map(Sample *s) {
    Graph *g = s->g;
    Node *x = sample_input(s, dims2(s->elem, 5, 3), 0.2, 2),
         *w = sample_input(s, type_make(s->elem, 1, (int64_t[]){3}), 0.2, 2);
    LoopBuilder *loop = loop_open(g, 5, true);
    Node *xt = loop_xs(loop, x);
    int y = loop_emit(loop, node_map2(g, OP_POW, xt, w));
    int z = loop_emit(loop, node_map2(g, OP_DIV, xt, w));
    Node *done = loop_close(loop);
    return times(g, loop_stack(g, done, y), loop_stack(g, done, z));
}

/* A loop with a condition, which holds for three of at most five iterations: h <- tanh(h w + x[t]),
 * emit h^2, and how far it went, for its adjoint. */
static Node *loop_ending(Sample *s) {
    Graph *g = s->g;
    Node *h0 = sample_input(s, dims2(s->elem, 2, 3), -1, 1),
         *w = sample_input(s, dims2(s->elem, 3, 3), -1, 1);
    Node *x = sample_input(s, dims3(s->elem, 5, 2, 3), -1, 1);
    Node *two = node_int(g, TY_I32, 2);
    Node *begins = node_map2(g, OP_LT, node_int(g, TY_I32, 0), two),
         *none = node_int(g, TY_I32, -1);
    LoopBuilder *loop = loop_open(g, 5, false);
    int c = loop_carry(loop, h0), go = loop_carry(loop, begins), last = loop_carry(loop, none);
    loop_while(loop, go);
    Node *h = loop_carry_value(loop, c);
    Node *next = node_map1(g, OP_TANH, plus(g, dot(g, h, w), loop_xs(loop, x)));
    loop_next(loop, c, next);
    loop_next(loop, go, node_map2(g, OP_LT, loop_index(loop), two));
    loop_next(loop, last, loop_index(loop));
    int y = loop_emit(loop, times(g, next, h));
    Node *done = loop_close(loop);
    return plus(g, loop_final(g, done, c), node_fold(g, OP_SUM, loop_stack(g, done, y), 1));
}

/* The slope at y: a loop that runs once and keeps its carry alone, as a stage of an ode is. */
static Node *stage(Graph *g, Node *y, Node *w, Node *v) {
    LoopBuilder *loop = loop_open(g, 1, false);
    loop_checkpoint(loop, CHECKPOINT_EACH);
    int c = loop_carry(loop, y);
    Node *wide = node_map1(g, OP_TANH, dot(g, loop_carry_value(loop, c), graph_import(g, w)));
    loop_next(loop, c, dot(g, wide, graph_import(g, v)));
    return loop_final(g, loop_close(loop), c);
}

/* Four steps of Heun's method on y' = tanh(y w) v, which keep the carry of each step. */
static Node *loop_steps(Sample *s) {
    Graph *g = s->g;
    Node *y0 = sample_input(s, dims2(s->elem, 2, 3), -1, 1);
    Node *w = sample_input(s, dims2(s->elem, 3, 5), -1, 1),
         *v = sample_input(s, dims2(s->elem, 5, 3), -1, 1);
    Node *size = sample_input(s, type_scalar(s->elem), 0.2, 0.4);
    LoopBuilder *loop = loop_open(g, 4, false);
    loop_checkpoint(loop, CHECKPOINT_EACH);
    int c = loop_carry(loop, y0);
    Node *y = loop_carry_value(loop, c), *h = graph_import(g, size);
    Node *first = stage(g, y, w, v), *second = stage(g, plus(g, y, times(g, first, h)), w, v);
    Node *mean = times(g, plus(g, first, second), node_const(g, s->elem, 0.5));
    loop_next(loop, c, plus(g, y, times(g, mean, h)));
    return loop_final(g, loop_close(loop), c);
}

Node *sample_loop_build(Sample *s, int variant) {
    switch (variant) {
    case 0: return loop_recurrent(s, 5, false, false);
    case 1: return loop_recurrent(s, 5, false, true);
    case 2: return loop_recurrent(s, 3, true, true);
    case 3: return loop_recurrent(s, 1, false, false);
    case 4: return loop_layers(s);
    case 5: return loop_nested(s);
    case 6: return loop_carries(s);
    case 7: return loop_map(s);
    case 8: return loop_ending(s);
    case 9: return loop_steps(s);
    default: return NULL;
    }
}
