/* precision: roundings to 16 bits as nodes of the graph, so that every later stage, and the
 * evaluator, know of nothing else: whatever is rounded may be stored in 16 bits, and a product of
 * two such values may multiply them so.
 *
 * Policy: operands of products are rounded, and so is what they give in front of differentiation,
 * behind a bias or a number that is all that is done to it: that is what is saved. Sums of products
 * are f32. Everything else computes in f32: reductions, softmax, norms, losses, residual sums,
 * optimizers, and the parameters themselves. The cotangent of a result is rounded
 * once, for all that read it; that of an operand is the f32 that its product adds up to, and so are
 * gradients of parameters. (torch.autocast rounds these, too.) Convolutions stay f32 in
 * f16, whose conversions cost more around a border than is won. Products of what the source marks
 * with @f32, and of its derivatives, are left alone: they read what others have rounded as it is,
 * and parameters in full. */
#include "passes/precision.h"

#include "compiler/eval_rule.h"
#include "compiler/program.h"
#include "passes/halves.h"
#include "passes/view.h"

typedef struct {
    const Region *region;
    bool *product; /* by node id: it multiplies in 16 bits */
    bool *ends;    /* the last of what is done to such a product alone */
} Found;

typedef struct {
    Arena scratch;
    Halves *halves; /* of the region that is read */
    Elem half;      /* what is rounded to */
    bool results;   /* are rounded too */
    bool convolves; /* convolutions multiply so */
    VEC(Found) found;
} Precision;

/* Fewer rows or columns do not pay for packing the other operand; between windows, which overlap,
 * less is packed. */
enum { LEAST_SIDE = TUNED(32, 2), LEAST_CHANNELS = TUNED(8, 2) };
/* Bytes that all convolutions of an entry read and give, least, for which they multiply in 16 bits:
 * less comes from caches, and conversions cost more than the memory that is not read. */
enum { LEAST_CONVOLVED = TUNED(64 << 20, 0) };

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
    return side_of(a->la, x, a->lb, y->rank) >= least && side_of(a->lb, y, a->la, x->rank) >= least;
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
        product[i] = convolution[i] ? p->convolves && is_product(n, LEAST_CHANNELS)
                                    : is_product(n, LEAST_SIDE);
    }
    return product;
}

/* Bytes that convolutions read and give, all iterations of loops counted: what lies behind windows
 * once. */
static int64_t convolved_bytes(Arena *arena, const Region *region) {
    const bool *convolution = find_convolutions(arena, region);
    int64_t bytes = 0;
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        if (convolution[i] && is_product(n, LEAST_CHANNELS)) {
            bytes = count_add(bytes, 4, type_count(*n->type));
            bytes = count_add(bytes, 4, type_count(*view_base(n->in[0])->type));
            bytes = count_add(bytes, 4, type_count(*view_base(n->in[1])->type));
        }
        if (n->op == OP_LOOP) {
            bytes = count_add(bytes, n->attr->trip, convolved_bytes(arena, n->body));
        }
    }
    return bytes;
}

/* Does a convolution multiply two roundings? Behind differentiation those of the model do so, or
 * none does: its other products share their operands. */
static bool has_convolved(Precision *p, const Region *region) {
    const bool *convolution = find_convolutions(&p->scratch, region);
    bool found = false;
    for (int i = 0; i < region->node.count && !found; i++) {
        const Node *n = region->node.at[i];
        found = convolution[i] && halves_hold(p->halves, n->in[0]) &&
                halves_hold(p->halves, n->in[1]);
        found = found || (n->op == OP_LOOP && has_convolved(p, n->body));
    }
    return found;
}

/* Products, and what is added to or multiplied with them by something repeated. Of a product in a
 * chain of such nodes the last is what is rounded. */
static void look_at(Precision *p, const Region *region) {
    bool *chain = ARENA_ARRAY(&p->scratch, bool, region->node.count + 1);
    int *readers = ARENA_ARRAY(&p->scratch, int, region->node.count + 1);
    Found f = {region, find_products(p, region),
               ARENA_ARRAY(&p->scratch, bool, region->node.count + 1)};
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

/* `x`, which was `old`, rounded. Views are of what is rounded, so that it is stored once. */
static Node *rounded(Precision *p, Graph *g, const Node *old, Node *x) {
    if (halves_hold(p->halves, old) || op_rounds_to(x->op) == p->half) {
        return x;
    }
    if (x->op == OP_CONST) {
        return node_const(g, TY_F32, num_round(p->half, x->attr->value));
    }
    bool moves = x->op == OP_RESHAPE || x->op == OP_PERMUTE || x->op == OP_SLICE ||
                 x->op == OP_FLIP || x->op == OP_BROADCAST || x->op == OP_WINDOW || x->op == OP_PAD;
    if (moves && old->op == x->op && num_round(p->half, x->attr->value) == x->attr->value) {
        Node *below = rounded(p, g, old->in[0], x->in[0]);
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
        operand[k] = rounded(p, g, n->in[k], in[k]);
    }
    Node *made = graph_copy(g, n, operand);
    return ends ? round_it(p, g, made, true) : made;
}

static Region *run(Graph *g, const Region *region, Elem half, bool results) {
    Precision p = {.half = half, .results = results};
    p.halves = halves_new(&p.scratch, region, half);
    p.convolves = results ? half == TY_BF16 &&
                                convolved_bytes(&p.scratch, region) >= (int64_t)LEAST_CONVOLVED
                          : has_convolved(&p, region);
    look_at(&p, region);
    Region *fresh = region_rebuild(g, region, visit, &p);
    arena_free(&p.scratch);
    return fresh;
}

Region *pass_precision(Graph *g, const Region *region, Elem half) {
    return run(g, region, half, true);
}

Region *pass_operands(Graph *g, const Region *region, Elem half) {
    return run(g, region, half, false);
}
