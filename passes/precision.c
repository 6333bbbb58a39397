/* precision: roundings to 16 bits as nodes of the graph, so that every later stage, and the
 * evaluator, know of nothing else: whatever is rounded may be stored in 16 bits, and a product of
 * two such values may multiply them so.
 *
 * Policy: operands of products are rounded, and so is what they give in front of differentiation,
 * behind a bias or a number that is all that is done to it: that is what is saved. Sums of products
 * are f32. Everything else computes in f32: reductions, softmax, norms, losses, residual sums,
 * optimizers, and the parameters themselves. The cotangent of a result is rounded
 * once, for all that read it; that of an operand is the f32 that its product adds up to, and so are
 * gradients of parameters. (torch.autocast rounds these, too.) Products of what the source marks
 * with @f32, and of its derivatives, are left alone: they read what others have rounded as it is,
 * and parameters in full.
 *
 * Which products of an entry, all or none: those whose conversions take little beside their
 * multiplications, by the times that planning has of a machine. Conversions are paid by element,
 * multiplications by term, so that is a matter of rows, columns and the sum: few rows times a
 * parameter, which is rounded each time, are slower. Where all that is read fills no cache, no
 * byte that is not read is won back. Convolutions multiply far more
 * often what they convert, in the cache: they are rounded where they fill one; in f16, whose
 * conversions take more steps than reading half of the bytes wins, where the source says so. */
#include "passes/precision.h"

#include "compiler/eval_rule.h"
#include "compiler/program.h"
#include "passes/halves.h"
#include "passes/points.h"
#include "passes/view.h"

typedef struct {
    const Region *region;
    bool *product; /* by node id: it multiplies in 16 bits */
    bool *ends;    /* the last of what is done to such a product alone */
    bool *point;   /* a derivative is taken to it */
} Found;

typedef struct {
    Arena scratch;
    Halves *halves; /* of the region that is read */
    Elem half;      /* what is rounded to */
    bool results;   /* are rounded too */
    int64_t rounds; /* which products multiply so */
    VEC(Found) found;
} Precision;

/* Fewer rows or columns do not pay for packing the other operand; between windows, which overlap,
 * less is packed. */
enum { LEAST_SIDE = TUNED(32, 2), LEAST_CHANNELS = TUNED(8, 2) };
/* Sums of fewer terms multiply each element too rarely; of one term they are no products at all,
 * but as large as what is made of them. */
enum { LEAST_SUM = TUNED(8, 2) };
/* What less comes from: bytes that a machine keeps near. */
enum { CACHED = TUNED(64 << 20, 0) };
/* What 16 bits cost, by what a machine multiplies them with: one by one, no faster than floats, or
 * bfloat16 in pairs. `rounded`, `made`: operations of a loop that it takes to round an element
 * while it is packed, for each product that reads it, and to round it once and read it in pairs or
 * widened. `share`: 1 / what of the time of multiplications in f32 may go into that: a twentieth,
 * since a step is more than products; where pairs halve that time, a fifth, as strips and
 * epilogues take what they took. `convolved`: bytes of convolutions from which those pay. */
typedef struct {
    double rounded, made, share;
    int64_t convolved;
} Paid;
static const Paid lone = {1.5, 0.4, TUNED(20, 0), CACHED}, pairs = {1, 1, TUNED(5, 0), CACHED / 16};

/* Rows or columns of a product: the axes of one operand alone. */
static int64_t side_of(const int8_t *own, const Type *type, const int8_t *other, int other_rank) {
    int64_t side = 1;
    for (int i = 0; i < type->rank; i++) {
        side *= find_label(other, other_rank, own[i]) < 0 ? type->dim[i] : 1;
    }
    return side;
}

static bool is_product(const Node *n, int64_t least) {
    if (n->op != OP_CONTRACT || n->type->elem != TY_F32 || n->attr->exact) {
        return false;
    }
    const Attr *a = n->attr;
    const Type *x = n->in[0]->type, *y = n->in[1]->type;
    int64_t sum = 1;
    for (int i = 0; i < x->rank; i++) {
        sum *= find_label(a->lo_, n->type->rank, a->la[i]) < 0 ? x->dim[i] : 1;
    }
    return sum >= LEAST_SUM && side_of(a->la, x, a->lb, y->rank) >= least &&
           side_of(a->lb, y, a->la, x->rank) >= least;
}

/* A bias or a number, repeated. */
static bool is_spread(const Node *n) {
    return n->op == OP_BROADCAST || n->op == OP_CONST;
}

/* A convolution or a derivative of one. */
static bool reads_windows(const Node *n) {
    for (int k = 0; k < n->nin; k++) {
        const Node *x = n->in[k];
        while (op_info[x->op].cls == CLASS_VIEW && x->op != OP_WINDOW) {
            x = x->in[0];
        }
        if (x->op == OP_WINDOW) {
            return true;
        }
    }
    return false;
}

/* By node id. Those whose result is added up by windows read none themselves. */
static bool *find_convolutions(Arena *arena, const Region *region) {
    bool *found = ARENA_ARRAY(arena, bool, region->node.count + 1);
    bool *windows = ARENA_ARRAY(arena, bool, region->node.count + 1);
    for (int i = region->node.count - 1; i >= 0; i--) {
        const Node *n = region->node.at[i];
        bool view = op_info[n->op].cls == CLASS_VIEW;
        if (n->nin > 0 && (n->op == OP_OVERLAP_ADD || (view && windows[i]))) {
            windows[n->in[0]->id] = true;
        }
        found[i] = n->op == OP_CONTRACT && (windows[i] || reads_windows(n));
    }
    return found;
}

static bool *find_products(Precision *p, const Region *region) {
    bool *product = ARENA_ARRAY(&p->scratch, bool, region->node.count + 1);
    const bool *convolution = find_convolutions(&p->scratch, region);
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        product[i] = p->rounds & (convolution[i] ? ROUND_CONVOLUTIONS : ROUND_PRODUCTS) &&
                     is_product(n, convolution[i] ? LEAST_CHANNELS : LEAST_SIDE);
    }
    return product;
}

/* What 16 bits cost and win in a region, all iterations of loops counted. */
typedef struct {
    double flops;      /* of products that are no convolutions */
    double made, read; /* elements that these give and read: made in 16 bits, or in memory in 32 */
    double bytes;      /* of both; of what is the same in all iterations, once */
    int64_t convolved; /* bytes that convolutions read and give, what lies behind windows once */
} Traffic;

/* Is it what all iterations of the loop around it read? */
static bool is_invariant(const Node *n) {
    const Node *loop = n->op == OP_BODY_PARAM ? n->region->owner : NULL;
    int k = n->attr->axis;
    return loop && loop->op == OP_LOOP && k > loop->attr->ncarry &&
           k <= loop->attr->ncarry + loop->attr->ninv;
}

/* Of `n`, which a product reads or gives; `once`: iterations that see it anew. */
static void add_value(Traffic *t, const Node *n, double times, double once) {
    const Node *base = view_base(n);
    double count = (double)type_count(*n->type);
    bool leaf = base->op == OP_SLOT || base->op == OP_BODY_PARAM;
    *(leaf ? &t->read : &t->made) += times * count;
    t->bytes += 4 * (is_invariant(base) ? once : times) * count;
}

static void add_traffic(Arena *arena, const Region *region, double times, double once, Traffic *t) {
    const bool *convolution = find_convolutions(arena, region);
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        if (n->op == OP_LOOP) {
            add_traffic(arena, n->body, times * (double)n->attr->trip, times, t);
        } else if (convolution[i] && is_product(n, LEAST_CHANNELS)) {
            const Node *value[3] = {n, view_base(n->in[0]), view_base(n->in[1])};
            for (int k = 0; k < 3; k++) {
                int64_t bytes = count_add(0, 4, type_count(*value[k]->type));
                t->convolved = count_add(t->convolved, (int64_t)times, bytes);
            }
        } else if (!convolution[i] && is_product(n, LEAST_SIDE)) {
            t->flops += times * node_flops(n);
            add_value(t, n, times, once);
            add_value(t, n->in[0], times, once);
            add_value(t, n->in[1], times, once);
        }
    }
}

int64_t precision_pays(const Region *region, Elem half, const MachineTimes *machine) {
    Arena scratch = {0};
    Traffic t = {0};
    add_traffic(&scratch, region, 1, 1, &t);
    arena_free(&scratch);
    const Paid *paid = machine->pairs && half == TY_BF16 ? &pairs : &lone;
    double converted = (double)machine->loop * (paid->rounded * t.read + paid->made * t.made);
    double saved = t.bytes >= (double)CACHED ? 2 * (double)machine->byte * t.made : 0;
    double multiplied = (double)machine->tile * t.flops;
    bool products = t.flops > 0 && paid->share * (converted - saved) <= multiplied;
    bool convolutions = half == TY_BF16 && t.convolved >= paid->convolved;
    return (products ? ROUND_PRODUCTS : 0) | (convolutions ? ROUND_CONVOLUTIONS : 0);
}

/* Products, and what is added to or multiplied with them by something repeated. Of a product in a
 * chain of such nodes the last is what is rounded. */
static void look_at(Precision *p, const Region *region) {
    bool *chain = ARENA_ARRAY(&p->scratch, bool, region->node.count + 1);
    int *readers = ARENA_ARRAY(&p->scratch, int, region->node.count + 1);
    Found f = {region, find_products(p, region),
               ARENA_ARRAY(&p->scratch, bool, region->node.count + 1),
               ARENA_ARRAY(&p->scratch, bool, region->node.count + 1)};
    points_note(region, f.point);
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        for (int k = 0; k < n->nin; k++) {
            readers[n->in[k]->id]++;
        }
        if (n->body) {
            look_at(p, n->body);
        }
    }
    for (int i = 0; p->results && i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        bool linear = n->op == OP_ADD || n->op == OP_SUB || n->op == OP_MUL;
        chain[i] = f.ends[i] = f.product[i];
        for (int k = 0; linear && k < 2; k++) {
            const Node *x = n->in[k];
            if (chain[x->id] && readers[x->id] == 1 && is_spread(n->in[!k])) {
                f.ends[x->id] = false;
                chain[i] = f.ends[i] = true;
            }
        }
    }
    VEC_PUSH(&p->scratch, &p->found, f);
}

static const Found *found_in(const Precision *p, const Region *region) {
    for (int i = 0; i < p->found.count; i++) {
        if (p->found.at[i].region == region) {
            return &p->found.at[i];
        }
    }
    BUG("a region that was not looked at");
}

/* `both`: its cotangent is rounded too. */
static Node *round_it(const Precision *p, Graph *g, Node *x, bool both) {
    Attr attr = {.reverse = both};
    Node *made = graph_add(g, op_rounding(p->half), &x, 1, &attr, type_scalar(TY_ERROR));
    return x->name ? graph_name(made, x->name) : made;
}

/* `x`, which was `old`, rounded. Views are of what is rounded, so that it is stored once; but for
 * what a derivative is taken to: all that reads it is made of it. */
static Node *rounded(Precision *p, Graph *g, const bool *point, const Node *old, Node *x) {
    if (halves_hold(p->halves, old) || op_rounds_to(x->op) == p->half) {
        return x;
    }
    if (x->op == OP_CONST) {
        return node_const(g, TY_F32, num_round(p->half, x->attr->value));
    }
    bool moves = x->op == OP_RESHAPE || x->op == OP_PERMUTE || x->op == OP_SLICE ||
                 x->op == OP_FLIP || x->op == OP_BROADCAST || x->op == OP_WINDOW || x->op == OP_PAD;
    if (moves && !point[old->id] && old->op == x->op &&
        num_round(p->half, x->attr->value) == x->attr->value) {
        Node *below = rounded(p, g, point, old->in[0], x->in[0]);
        return graph_copy(g, x, &below);
    }
    return round_it(p, g, x, false);
}

static Node *visit(void *ctx, Graph *g, const Node *n, Node *const *in) {
    Precision *p = ctx;
    const Found *f = found_in(p, n->region);
    bool product = f->product[n->id], ends = f->ends[n->id];
    if (!product && !ends) {
        return NULL;
    }
    Node *operand[2] = {in[0], in[1]};
    for (int k = 0; product && k < 2; k++) {
        operand[k] = rounded(p, g, f->point, n->in[k], in[k]);
    }
    Node *made = graph_copy(g, n, operand);
    return ends ? round_it(p, g, made, true) : made;
}

static Region *run(Graph *g, const Region *region, Elem half, int64_t rounds, bool results) {
    Precision p = {.half = half, .rounds = rounds, .results = results};
    p.halves = halves_new(&p.scratch, region, half);
    look_at(&p, region);
    Region *fresh = region_rebuild(g, region, visit, &p);
    arena_free(&p.scratch);
    return fresh;
}

bool precision_applies(const Region *region) {
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        if ((op_rounds(n->op) && n->attr->reverse) || (n->body && !precision_applies(n->body))) {
            return false;
        }
    }
    return true;
}

Region *pass_precision(Graph *g, const Region *region, Elem half, int64_t rounds) {
    return run(g, region, half, rounds, true);
}

Region *pass_operands(Graph *g, const Region *region, Elem half, int64_t rounds) {
    return run(g, region, half, rounds, false);
}
