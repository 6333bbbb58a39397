/* Large values between two products exist for a chunk at a time: where that may be, and where not;
 * the same values and derivatives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pass_fixture.h"
#include "passes/chunk.h"
#include "passes/grad.h"
#include "passes/simplify.h"

/* Scores [B, H, T, T] of queries and keys [B, T, H, D]. */
enum { B = 2, H = 4, T = 8, D = 2, SCORES = B * H * T * T * 8 };

typedef enum {
    PLAIN,
    MASKED,   /* by a table of the last two axes and one of the first and the last */
    SHARED,   /* one set of keys for all heads: the heads are no batch axis */
    SEEN,     /* the weights are a result too */
    SUM_SEEN, /* the sums of rows are */
    DRAWN,    /* some of the weights are dropped */
    PLACED,   /* the mask asks for the place in the batch */
    BATCHED,  /* so does one that is smaller than a chunk */
    JOINED,   /* queries, keys and values are one product of what is smaller */
    TWICE,    /* products one behind the other */
    IN_LOOP,  /* all of it in a loop that carries */
    FORMS
} Form;

static Type shape(int rank, int64_t a, int64_t b, int64_t c, int64_t d) {
    return (Type){.elem = TY_F64, .rank = rank, .dim = {a, b, c, d}};
}

static Node *softmax(Graph *g, Node *s, Node **sums) {
    int rank = s->type->rank;
    uint32_t last = 1u << (rank - 1);
    Node *most = node_stop(g, node_fold(g, OP_FMAX, s, last));
    Node *e = node_map1(g, OP_EXP,
                        node_map2(g, OP_SUB, s, node_broadcast(g, most, last, rank, s->type->dim)));
    *sums = node_fold(g, OP_SUM, e, last);
    return node_map2(g, OP_DIV, e, node_broadcast(g, *sums, last, rank, s->type->dim));
}

static Node *masked(Fixture *f, Node *s) {
    Graph *g = f->g;
    Type square = {.elem = TY_I32, .rank = 2, .dim = {T, T}};
    Node *causal = node_map2(g, OP_LE, node_iota(g, square, 1), node_iota(g, square, 0));
    Node *key = sample_input(&f->s, shape(2, B, T, 0, 0), -1, 1);
    s = node_map2(g, OP_ADD, s, node_broadcast(g, key, 6, 4, s->type->dim));
    return node_select(g, node_broadcast(g, causal, 3, 4, s->type->dim), s,
                       node_full(g, *s->type, -1e30));
}

static Node *placed(Graph *g, Node *s) {
    Type type = *s->type;
    type.elem = TY_I32;
    Node *first = node_map2(g, OP_EQ, node_iota(g, type, 0), node_iota(g, type, 1));
    return node_select(g, first, s, node_full(g, *s->type, -1));
}

static Node *batched(Graph *g, Node *s) {
    Type type = {.elem = TY_I32, .rank = 2, .dim = {B, T}};
    Node *later = node_map2(g, OP_LE, node_iota(g, type, 0), node_iota(g, type, 1));
    return node_select(g, node_broadcast(g, later, 6, 4, s->type->dim), s,
                       node_full(g, *s->type, -1));
}

static Node *dropped(Fixture *f, Node *p) {
    Node *key[2] = {node_int(f->g, TY_I64, 3), node_int(f->g, TY_I64, 1)};
    Node *draw = node_random(f->g, DIST_UNIFORM, 7, key, 2, *p->type);
    Node *keep = node_map2(f->g, OP_LT, draw, node_full(f->g, *p->type, 0.5));
    return node_select(f->g, keep, p, node_full(f->g, *p->type, 0));
}

/* Each of the three is a third of a product with few numbers of each place. */
static void joined(Fixture *f, Node **q, Node **k, Node **v) {
    static const int8_t la[] = {0, 1, 2}, lb[] = {3, 2}, lo[] = {0, 1, 3};
    const int64_t parts[] = {B, T, 3, H, D}, one[] = {B, T, H, D};
    Graph *g = f->g;
    Node *x = sample_input(&f->s, shape(3, B, T, D, 0), -1, 1);
    Node *w = sample_input(&f->s, shape(2, 3 * H * D, D, 0, 0), -1, 1);
    Node *all = node_reshape(g, node_contract(g, x, w, la, lb, lo, 3), 5, parts);
    Node **part[] = {q, k, v};
    for (int i = 0; i < 3; i++) {
        *part[i] = node_reshape(g, node_slice_axis(g, all, 2, i, 1, 1), 4, one);
    }
}

static Node *attention(Fixture *f, Form form, Node *q) {
    static const int8_t la[] = {0, 1, 2, 3}, keys[] = {0, 4, 2, 3}, one[] = {0, 4, 3};
    static const int8_t scores[] = {0, 2, 1, 4}, out[] = {0, 1, 2, 3};
    Graph *g = f->g;
    bool shared = form == SHARED;
    Type like = shared ? shape(3, B, T, D, 0) : shape(4, B, T, H, D);
    Node *k = sample_input(&f->s, like, -1, 1), *v = sample_input(&f->s, like, -1, 1), *sums;
    if (form == JOINED) {
        joined(f, &q, &k, &v);
    }
    Node *s = node_contract(g, q, k, la, shared ? one : keys, scores, 4);
    s = form == MASKED    ? masked(f, s)
        : form == PLACED  ? placed(g, s)
        : form == BATCHED ? batched(g, s)
                          : s;
    Node *p = softmax(g, s, &sums);
    if (form == SEEN || form == SUM_SEEN) {
        region_result(f->region, form == SEEN ? p : sums);
    }
    p = form == DRAWN ? dropped(f, p) : p;
    return node_contract(g, p, v, scores, shared ? one : keys, out, 4);
}

static void build(Fixture *f, Form form) {
    Graph *g = f->g;
    Node *q = sample_input(&f->s, shape(4, B, T, H, D), -1, 1);
    if (form == IN_LOOP) {
        LoopBuilder *loop = loop_open(g, 3, false);
        int carry = loop_carry(loop, q);
        loop_next(loop, carry, attention(f, form, loop_carry_value(loop, carry)));
        q = loop_final(g, loop_close(loop), carry);
    } else {
        Node *y = attention(f, form, q);
        q = form == TWICE ? attention(f, form, y) : y;
    }
    region_result(f->region, q);
}

static int loops, largest; /* of what was looked at: bytes of a value that is computed */
static bool places;        /* a loop makes indices */

static bool is_iota(const Node *n) {
    return n->op == OP_IOTA;
}

static bool look(const Node *n) {
    OpClass cls = op_info[n->op].cls;
    loops += n->op == OP_LOOP;
    places = places || (n->op == OP_LOOP && region_any(n->body, is_iota));
    if (cls == CLASS_MAP || cls == CLASS_FOLD || cls == CLASS_CALL) {
        int bytes = n->op == OP_IOTA || n->op == OP_RANDOM ? 0 : (int)type_bytes(*n->type);
        largest = bytes > largest ? bytes : largest;
    }
    return false;
}

static void look_at(const Region *region) {
    loops = largest = 0;
    places = false;
    region_any(region_rebuild(region->graph, region, NULL, NULL), look);
}

/* Chunks of batch axes alone. */
static ChunkLimits batches(int64_t large, int64_t own) {
    return (ChunkLimits){large, own, false};
}

static void expect(Form form, ChunkLimits limits, int more, int bytes) {
    Fixture f;
    fixture_open(&f, TY_F64, (uint64_t)form);
    build(&f, form);
    Region *before = pass_simplify(f.g, f.region);
    Region *now = pass_chunk(f.g, before, limits);
    region_verify(now, STAGE_BUILT);
    look_at(now);
    assert_int_equal(loops, more + (form == IN_LOOP));
    assert_int_equal(largest, bytes);
    assert_true(places == (form == MASKED)); /* a mask is made again, one of the batch is sliced */
    assert_true(difference(&f, before, now) == 0); /* no sum is cut */
    arena_free(&f.arena);
}

static void test_forms(void **state) {
    static const int more[FORMS] = {[PLAIN] = 1,   [MASKED] = 1, [SHARED] = 1, [DRAWN] = 1,
                                    [BATCHED] = 1, [JOINED] = 1, [TWICE] = 2,  [IN_LOOP] = 1};
    (void)state;
    for (Form form = 0; form < FORMS; form++) {
        int bytes = !more[form]      ? SCORES
                    : form == SHARED ? SCORES / B
                    : form == JOINED ? SCORES * 3 / 4 /* they are stored as a whole */
                                     : SCORES / (B * H);
        expect(form, batches(SCORES, SCORES / (B * H)), more[form], bytes);
    }
}

static void test_limits(void **state) {
    (void)state;
    expect(PLAIN, batches(SCORES + 1, 8), 0, SCORES);          /* it is not large */
    expect(PLAIN, batches(SCORES, SCORES), 0, SCORES);         /* it is small enough */
    expect(PLAIN, batches(SCORES, SCORES - 1), 1, SCORES / 2); /* the first axis alone */
    expect(PLAIN, batches(SCORES, SCORES / 3), 1, SCORES / 4); /* and half of the second */
    expect(SHARED, batches(SCORES, 8), 1, SCORES / 2);         /* there is no other */
    /* With many samples what goes in and what comes out is large, too. */
    expect(PLAIN, batches(SCORES / 8, SCORES / (B * H)), 1, SCORES / (B * H));
    expect(MASKED, batches(SCORES / 8, SCORES / (B * H)), 1, SCORES / (B * H));
    expect(JOINED, batches(SCORES / 8, SCORES / (B * H)), 1, SCORES * 3 / 4);
}

/* Where a derivative is taken to something that would be made in the chunks, there are none. */
static void test_points(void **state) {
    (void)state;
    for (int point = 0; point < 2; point++) {
        Fixture f;
        fixture_open(&f, TY_F64, 50);
        Graph *g = f.g;
        static const int8_t la[] = {0, 1, 2, 3}, lk[] = {0, 4, 2, 3}, scores[] = {0, 2, 1, 4};
        Type like = shape(4, B, T, H, D);
        Node *q = sample_input(&f.s, like, -1, 1), *k = sample_input(&f.s, like, -1, 1), *sums;
        Node *bias = sample_input(&f.s, shape(2, T, T, 0, 0), -1, 1);
        Node *s = node_contract(g, q, k, la, lk, scores, 4);
        Node *biases = node_broadcast(g, bias, 3, 4, s->type->dim);
        Node *p = softmax(g, node_map2(g, OP_ADD, s, biases), &sums);
        Node *y = node_contract(g, p, sample_input(&f.s, like, -1, 1), scores, lk, la, 4);
        region_result(f.region, y);
        if (point) {
            Node *all = node_fold(g, OP_SUM, node_map2(g, OP_MUL, y, y), 15);
            region_result(f.region, node_grad(g, all, biases, node_const(g, TY_F64, 1)));
        }
        Region *now = pass_chunk(g, f.region, batches(SCORES, SCORES / (B * H)));
        look_at(now);
        assert_int_equal(loops, !point);
        Region *before = pass_grad(g, f.region, GRAD_SAVE_CALLS);
        assert_true(difference(&f, before, pass_grad(g, now, GRAD_SAVE_CALLS)) == 0);
        arena_free(&f.arena);
    }
}

/* The derivative makes the chunks again, and keeps none of them. */
static void test_gradients(void **state) {
    static const Form forms[] = {PLAIN, MASKED, SHARED, DRAWN, BATCHED, JOINED, TWICE, IN_LOOP};
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, 100 + (uint64_t)i);
        build(&f, forms[i]);
        add_gradients(&f);
        Region *built = pass_simplify(f.g, f.region);
        Region *before = pass_simplify(f.g, pass_grad(f.g, built, GRAD_SAVE_CALLS));
        Region *now = pass_chunk(f.g, built, batches(SCORES, SCORES / (B * H)));
        now = optimise(&f, pass_grad(f.g, now, GRAD_SAVE_CALLS));
        assert_true(difference(&f, before, now) <= tolerance(&f, before));
        look_at(now);
        assert_true(largest < SCORES);
        arena_free(&f.arena);
    }
}

/* Something between two products, of values [B, H, T, T] or with the axes in another order. */
static Node *step(Fixture *f, Node *s) {
    Graph *g = f->g;
    Type t = *s->type;
    uint32_t axis = 1u << sample_below(&f->s, t.rank);
    switch (sample_below(&f->s, 8)) {
    case 0: return node_map1(g, OP_TANH, s);
    case 1: return node_map2(g, OP_MUL, s, node_full(g, t, 0.5));
    case 2: return dropped(f, s);
    case 3: return node_map2(g, OP_ADD, s, sample_input(&f->s, t, -1, 1));
    case 4: return node_broadcast(g, node_fold(g, OP_SUM, s, axis), axis, t.rank, t.dim);
    case 5: {
        int map[] = {1, 0, 3, 2};
        return node_permute(g, s, map);
    }
    case 6: {
        int64_t flat[] = {t.dim[0], t.dim[1], t.dim[2] * t.dim[3]};
        return node_reshape(g, node_map1(g, OP_SIN, node_reshape(g, s, 3, flat)), 4, t.dim);
    }
    default: {
        int64_t merged[] = {t.dim[0] * t.dim[1], t.dim[2], t.dim[3]};
        return node_reshape(g, node_map1(g, OP_SIN, node_reshape(g, s, 3, merged)), 4, t.dim);
    }
    }
}

static void test_random_chains(void **state) {
    enum { CHAINS = 300, WIDE = 9 };
    static const int8_t la[] = {0, 1, 2, 3}, keys[] = {0, 4, 2, 3}, scores[] = {0, 2, 1, 4};
    int made = 0;
    (void)state;
    print_message("MDLC_SEED=%llu\n", (unsigned long long)seed());
    for (int i = 0; i < CHAINS; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, 1000 + (uint64_t)i);
        int64_t b = 1 + sample_below(&f.s, 4), h = 1 + sample_below(&f.s, 6);
        Type like = shape(4, b, WIDE, h, 2);
        Node *s = node_contract(f.g, sample_input(&f.s, like, -1, 1),
                                sample_input(&f.s, like, -1, 1), la, keys, scores, 4);
        for (int64_t k = sample_below(&f.s, 5); k >= 0; k--) {
            s = step(&f, s);
        }
        bool turned = s->type->dim[0] != b || s->type->dim[1] != h;
        like = turned ? shape(4, s->type->dim[0], s->type->dim[3], s->type->dim[1], 2)
                      : shape(4, b, WIDE, h, 2);
        region_result(f.region,
                      node_contract(f.g, s, sample_input(&f.s, like, -1, 1), scores, keys, la, 4));
        add_gradients(&f);
        Region *built = pass_simplify(f.g, f.region);
        Region *now = pass_chunk(f.g, built, batches(b * h * WIDE * WIDE * 8, 1 + 1000 * (i % 3)));
        region_verify(now, STAGE_BUILT);
        look_at(now);
        made += loops;
        Region *before = pass_simplify(f.g, pass_grad(f.g, built, GRAD_SAVE_CALLS));
        now = optimise(&f, pass_grad(f.g, now, GRAD_SAVE_CALLS));
        assert_true(difference(&f, before, now) <= tolerance(&f, before));
        arena_free(&f.arena);
    }
    print_message("%d of %d became loops\n", made, CHAINS);
    assert_true(made > CHAINS / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms), cmocka_unit_test(test_limits), cmocka_unit_test(test_points),
        cmocka_unit_test(test_gradients), cmocka_unit_test(test_random_chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
