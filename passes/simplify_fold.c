/* simplify_fold: rules for folds, contractions, lookups and scatters; see simplify.c. */
#include "compiler/loop_builder.h"
#include "passes/simplify_rule.h"

#include <math.h>
#include <string.h>

/* --- sums ------------------------------------------------------------------------------------- */

/* A fold over axes of extent 1 is a matter of shape. */
static Node *fold_of_ones(Graph *g, const Node *n, Node *const *in) {
    Node *x = in[0];
    uint32_t ones = 0, axes = n->attr->axes;
    for (int i = 0; i < x->type->rank; i++) {
        ones |= (uint32_t)(axes >> i & 1 && x->type->dim[i] == 1) << i;
    }
    if (!ones) {
        return NULL;
    }
    Type t = without_axes(*x->type, ones);
    return node_fold(g, n->op, node_reshape(g, x, t.rank, t.dim),
                     axes_without(axes, ones, x->type->rank));
}

/* A fold of a fold of the same kind. */
static Node *fold_of_fold(Graph *g, const Node *n, Node *const *in) {
    Node *x = in[0];
    if (x->op != n->op) {
        return NULL;
    }
    uint32_t axes = x->attr->axes;
    for (int i = 0, k = 0; i < x->in[0]->type->rank; i++) {
        if (!(x->attr->axes >> i & 1)) {
            axes |= (n->attr->axes >> k++ & 1) << i;
        }
    }
    return node_fold(g, n->op, x->in[0], axes);
}

/* Where the largest or least of one is, whatever it is. */
static Node *place_of_one(Graph *g, const Node *n, Node *const *in) {
    return in[0]->type->dim[n->attr->axis] == 1 ? node_full(g, *n->type, 0) : NULL;
}

/* Elements along `axes`. */
static double count_along(const Node *x, uint32_t axes) {
    double count = 1;
    for (int i = 0; i < x->type->rank; i++) {
        count *= axes >> i & 1 ? (double)x->type->dim[i] : 1;
    }
    return count;
}

/* What is the same along `axes`, without them. */
static Node *outside(Graph *g, const Node *x, uint32_t axes) {
    Type t = without_axes(*x->type, axes);
    uint32_t kept = axes_without(x->attr->axes, axes, x->type->rank);
    return node_broadcast(g, x->in[0], kept, t.rank, t.dim);
}

/* Folding over axes along which a value is repeated: a sum multiplies, an extreme forgets them. */
static Node *fold_of_broadcast(Graph *g, const Node *n, Node *const *in) {
    Node *x = in[0];
    uint32_t both = x->op == OP_BROADCAST ? x->attr->axes & n->attr->axes : 0;
    if (!both || n->op == OP_PROD) {
        return NULL;
    }
    Node *small = outside(g, x, both);
    if (n->op == OP_SUM) {
        Node *count = node_const(g, small->type->elem, count_along(x, both));
        small = node_map2(g, OP_MUL, small, count);
    }
    return node_fold(g, n->op, small, axes_without(n->attr->axes, both, x->type->rank));
}

static Node *sum_of_neg(Graph *g, const Node *n, Node *const *in) {
    return in[0]->op == OP_NEG
               ? node_map1(g, OP_NEG, node_fold(g, OP_SUM, in[0]->in[0], n->attr->axes))
               : NULL;
}

/* The factor or divisor that is the same along `axes`: number of the operand; -1: none. */
static int scale_of(const Node *x, uint32_t axes) {
    for (int k = 0; (x->op == OP_MUL || x->op == OP_DIV) && k < 2; k++) {
        if (same_along(x->in[k], axes) && (x->op == OP_MUL || k == 1)) {
            return k;
        }
    }
    return -1;
}

/* sum(x) times, or over, what is the same along the summed axes. */
static Node *scaled_sum(Graph *g, OpCode op, Node *x, const Node *scale, uint32_t axes) {
    return node_map2(g, op, node_fold(g, OP_SUM, x, axes), outside(g, scale, axes));
}

/* A factor or divisor that is the same along all summed axes goes outside. */
static Node *sum_of_scaled(Graph *g, const Node *n, Node *const *in) {
    Node *x = in[0];
    int k = scale_of(x, n->attr->axes);
    return k < 0 ? NULL : scaled_sum(g, x->op, x->in[1 - k], x->in[k], n->attr->axes);
}

/* One index for each batch element: a row of the result has one element of it, and zeros. */
static bool scatters_one(const Node *n) {
    return n->op == OP_SCATTER_ADD && n->in[1]->type->rank == n->attr->batch;
}

static Node *sum_of_one(Graph *g, const Node *n, Node *const *in) {
    Node *x = in[0];
    int axis = x->attr->batch;
    if (!scatters_one(x) || !(n->attr->axes >> axis & 1)) {
        return NULL;
    }
    return node_fold(g, OP_SUM, x->in[0], axes_without(n->attr->axes, 1u << axis, x->type->rank));
}

/* A summand that is almost all zeros is summed by itself. One that is the same along the axes is
 * not: x - c has digits that a sum of x, less as many times c, has lost. */
static Node *sum_of_sum(Graph *g, const Node *n, Node *const *in) {
    Node *x = in[0];
    uint32_t axes = n->attr->axes;
    for (int k = 0; (x->op == OP_ADD || x->op == OP_SUB) && k < 2; k++) {
        const Node *part = x->in[k];
        if (scatters_one(part) && axes >> part->attr->batch & 1) {
            return node_map2(g, x->op, node_fold(g, OP_SUM, x->in[0], axes),
                             node_fold(g, OP_SUM, x->in[1], axes));
        }
    }
    return NULL;
}

/* The sum of `x` along `axes`; also where both come from stacks of a loop that has made them. */
static bool is_sum_of(const Node *sum, const Node *x, uint32_t axes) {
    if (sum->op == OP_SUM) {
        return sum->in[0] == x && sum->attr->axes == axes;
    }
    const Node *a = loop_stack_of(sum), *b = loop_stack_of(x);
    if (!a || !b || a->op != OP_PICK || b->op != OP_PICK || a->in[0] != b->in[0] ||
        a->in[0]->op != OP_LOOP) {
        return false;
    }
    const Region *body = a->in[0]->body;
    int ncarry = a->in[0]->attr->ncarry;
    return a->attr->axis >= ncarry && b->attr->axis >= ncarry &&
           is_sum_of(body->out.at[a->attr->axis], body->out.at[b->attr->axis], axes);
}

/* Of a value less its mean along these axes, times anything that is the same along them: the sum
 * that the mean was made of, and which part of it the numbers that fractions are rounded to leave;
 * NULL: `x` is no such value. */
static Node *centred_from(const Node *x, uint32_t axes, double *left) {
    for (int k = scale_of(x, axes); k >= 0 || x->op == OP_NEG; k = scale_of(x, axes)) {
        x = x->in[k < 0 ? 0 : 1 - k];
    }
    const Node *mean = x->op == OP_SUB ? x->in[1] : NULL;
    if (!mean || mean->op != OP_BROADCAST || mean->attr->axes != axes) {
        return NULL;
    }
    mean = mean->in[0];
    double part = 0;
    bool scaled = mean->op == OP_MUL && is_uniform(mean->in[1], &part);
    *left = 1 - part * count_along(x, axes);
    return scaled && fabs(*left) < 1e-6 && is_sum_of(mean->in[0], x->in[0], axes) ? mean->in[0]
                                                                                  : NULL;
}

/* The same factors of what is left of that sum. */
static Node *centred_sum(Graph *g, const Node *x, uint32_t axes, Node *left) {
    int k = scale_of(x, axes);
    if (k >= 0) {
        Node *inner = centred_sum(g, x->in[1 - k], axes, left);
        return node_map2(g, x->op, inner, outside(g, x->in[k], axes));
    }
    return x->op == OP_NEG ? node_map1(g, OP_NEG, centred_sum(g, x->in[0], axes, left)) : left;
}

/* Of a value less its mean, with what it is multiplied by: does something else read it, too? Then a
 * NaN of it is not lost with the sum. */
static bool read_beside(const Node *x, uint32_t axes) {
    for (;;) {
        const Reads *reads = x->note;
        const int k = scale_of(x, axes);
        if (!reads || reads->count > 1 || (x->op != OP_NEG && k < 0)) {
            return !reads || reads->count > 1;
        }
        x = x->in[k < 0 ? 0 : 1 - k];
    }
}

/* What is left of a mean sums to nothing, or to what the rounding of 1 / n leaves: the errors that
 * it would sum to are no more right. So the derivative of a normalisation sums what comes in once,
 * before it is made. */
static Node *sum_of_centred(Graph *g, const Node *n, Node *const *in) {
    Node *x = in[0];
    uint32_t axes = n->attr->axes;
    double part;
    for (int k = 0; (x->op == OP_ADD || x->op == OP_SUB) && k < 2; k++) {
        Node *from = elem_is_float(x->type->elem) ? centred_from(x->in[k], axes, &part) : NULL;
        if (!from || n->in[0]->op != x->op || !read_beside(n->in[0]->in[k], axes)) {
            continue;
        }
        Node *sum[2], *rest = node_fold(g, OP_SUM, x->in[1 - k], axes);
        if (part == 0) {
            return x->op == OP_SUB && k == 0 ? node_map1(g, OP_NEG, rest) : rest;
        }
        Node *left = node_map2(g, OP_MUL, from, node_const(g, from->type->elem, part));
        sum[k] = centred_sum(g, x->in[k], axes, left);
        sum[1 - k] = rest;
        return node_map2(g, x->op, sum[0], sum[1]);
    }
    return NULL;
}

/* The sum of a value padded with zeros. */
static Node *sum_of_pad(Graph *g, const Node *n, Node *const *in) {
    Node *x = in[0];
    int64_t lo[MD_RANK] = {0}, hi[MD_RANK] = {0};
    bool summed = false;
    if (x->op != OP_PAD || x->attr->border != BORDER_VALUE || x->attr->value != 0) {
        return NULL;
    }
    for (int i = 0, k = 0; i < x->type->rank; i++) {
        bool folded = n->attr->axes >> i & 1;
        summed = summed || (folded && (x->attr->lo[i] > 0 || x->attr->hi[i] > 0));
        if (!folded) {
            lo[k] = x->attr->lo[i];
            hi[k++] = x->attr->hi[i];
        }
    }
    if (!summed) {
        return NULL;
    }
    return node_pad(g, node_fold(g, OP_SUM, x->in[0], n->attr->axes), lo, hi, BORDER_VALUE, 0);
}

/* --- products that are contractions ----------------------------------------------------------- */

/* Labels of any numbers, at most one byte each, renumbered in the order of the operands. */
static Node *contract(Graph *g, Node *a, Node *b, const int8_t *la, const int8_t *lb,
                      const int8_t *lo, int rank) {
    int8_t number[128], fresh[3][MD_RANK] = {{0}}, next = 0;
    memset(number, -1, sizeof number);
    const int8_t *list[3] = {la, lb, lo};
    const int count[3] = {a->type->rank, b->type->rank, rank};
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < count[k]; i++) {
            int8_t *to = &number[list[k][i]];
            if (*to < 0) {
                *to = next++;
            }
            fresh[k][i] = *to;
        }
    }
    return node_contract(g, a, b, fresh[0], fresh[1], fresh[2], rank);
}

/* A value seen through permutes and broadcasts: its axes by the axis of the view where each
 * appears. */
typedef struct {
    Node *base;
    int8_t label[MD_RANK];
    uint32_t seen; /* axes of the view that the base has */
} Traced;

static Traced trace(Node *x) {
    Traced t = {.base = x};
    for (int i = 0; i < x->type->rank; i++) {
        t.label[i] = (int8_t)i;
    }
    for (;; t.base = t.base->in[0]) {
        int8_t label[MD_RANK] = {0};
        const Node *view = t.base;
        if (view->op == OP_PERMUTE) {
            for (int i = 0; i < view->type->rank; i++) {
                label[view->attr->map[i]] = t.label[i];
            }
        } else if (view->op == OP_BROADCAST) {
            for (int i = 0, k = 0; i < view->type->rank; i++) {
                if (!(view->attr->axes >> i & 1)) {
                    label[k++] = t.label[i];
                }
            }
        } else {
            break;
        }
        memcpy(t.label, label, sizeof label);
    }
    for (int i = 0; i < t.base->type->rank; i++) {
        t.seen |= 1u << t.label[i];
    }
    return t;
}

/* sum(a * b) where neither operand has all the axes: a contraction. What has, stays a fold, which
 * fuses with its neighbours. */
static Node *sum_is_contraction(Graph *g, const Node *n, Node *const *in) {
    Node *x = in[0];
    if (x->op != OP_MUL || !elem_is_float(x->type->elem)) {
        return NULL;
    }
    Traced a = trace(x->in[0]), b = trace(x->in[1]);
    uint32_t all = (1u << x->type->rank) - 1, summed = n->attr->axes;
    if ((a.seen | b.seen) != all || (a.seen & b.seen & summed) != summed || a.seen == all ||
        b.seen == all) {
        return NULL;
    }
    int8_t out[MD_RANK];
    int rank = 0;
    for (int i = 0; i < x->type->rank; i++) {
        if (!(summed >> i & 1)) {
            out[rank++] = (int8_t)i;
        }
    }
    return contract(g, a.base, b.base, a.label, b.label, out, rank);
}

/* sum(x * scale * y), both of all axes and the scale the same along the summed ones, which goes
 * outside: derivatives of scales ask for the sum of x * y too. */
static Node *sum_of_scaled_factor(Graph *g, const Node *n, Node *const *in) {
    Node *x = in[0];
    uint32_t all = (1u << x->type->rank) - 1, axes = n->attr->axes;
    for (int k = 0; x->op == OP_MUL && k < 2; k++) {
        Node *part = x->in[k], *other = x->in[1 - k];
        int at = scale_of(part, axes);
        double number; /* a factor of a gradient stays with it: its square may be out of range */
        if (at >= 0 && !is_uniform(part->in[at], &number) && trace(part->in[1 - at]).seen == all &&
            trace(other).seen == all) {
            Node *rest = node_map2(g, OP_MUL, part->in[1 - at], other);
            return scaled_sum(g, part->op, rest, part->in[at], axes);
        }
    }
    return NULL;
}

/* --- contractions ----------------------------------------------------------------------------- */

/* Operand k seen through permutes is relabelled. */
static Node *contract_of_permute(Graph *g, const Node *n, Node *const *in) {
    for (int k = 0; k < 2; k++) {
        if (in[k]->op == OP_PERMUTE) {
            const int8_t *list = k ? n->attr->lb : n->attr->la;
            int8_t label[MD_RANK] = {0};
            for (int i = 0; i < in[k]->type->rank; i++) {
                label[in[k]->attr->map[i]] = list[i];
            }
            return k ? contract(g, in[0], in[1]->in[0], n->attr->la, label, n->attr->lo_,
                                n->type->rank)
                     : contract(g, in[0]->in[0], in[1], label, n->attr->lb, n->attr->lo_,
                                n->type->rank);
        }
    }
    return NULL;
}

/* Contracts a with b, where labels may stand in one list alone: such ones are summed in their
 * operand first, and those of the result that no operand has are repeated. */
static Node *contract_loose(Graph *g, Node *a, Node *b, const int8_t *la, const int8_t *lb,
                            const int8_t *lo, Type result) {
    Node *x[2] = {a, b};
    int8_t label[2][MD_RANK] = {{0}};
    memcpy(label[0], la, (size_t)a->type->rank);
    memcpy(label[1], lb, (size_t)b->type->rank);
    for (int k = 0; k < 2; k++) {
        uint32_t alone = 0;
        int8_t kept[MD_RANK] = {0};
        int rank = 0;
        for (int i = 0; i < x[k]->type->rank; i++) {
            int l = label[k][i];
            if (find_label(label[1 - k], x[1 - k]->type->rank, l) < 0 &&
                find_label(lo, result.rank, l) < 0) {
                alone |= 1u << i;
            } else {
                kept[rank++] = (int8_t)l;
            }
        }
        x[k] = node_fold(g, OP_SUM, x[k], alone);
        memcpy(label[k], kept, sizeof kept);
    }
    int8_t out[MD_RANK] = {0};
    uint32_t repeated = 0;
    int rank = 0;
    for (int i = 0; i < result.rank; i++) {
        bool has = find_label(label[0], x[0]->type->rank, lo[i]) >= 0 ||
                   find_label(label[1], x[1]->type->rank, lo[i]) >= 0;
        if (has) {
            out[rank++] = lo[i];
        } else {
            repeated |= 1u << i;
        }
    }
    Node *c = contract(g, x[0], x[1], label[0], label[1], out, rank);
    return node_broadcast(g, c, repeated, result.rank, result.dim);
}

/* A repeated operand has no say along its new axes. */
static Node *contract_of_broadcast(Graph *g, const Node *n, Node *const *in) {
    for (int k = 0; k < 2; k++) {
        if (in[k]->op != OP_BROADCAST) {
            continue;
        }
        const int8_t *list = k ? n->attr->lb : n->attr->la;
        int8_t label[MD_RANK] = {0};
        for (int i = 0, j = 0; i < in[k]->type->rank; i++) {
            if (!(in[k]->attr->axes >> i & 1)) {
                label[j++] = list[i];
            }
        }
        return k ? contract_loose(g, in[0], in[1]->in[0], n->attr->la, label, n->attr->lo_,
                                  *n->type)
                 : contract_loose(g, in[0]->in[0], in[1], label, n->attr->lb, n->attr->lo_,
                                  *n->type);
    }
    return NULL;
}

Node *spread(Graph *g, Node *x, const int8_t *list, const int8_t *lo, Type result) {
    int map[MD_RANK] = {0}, rank = 0;
    uint32_t missing = 0;
    for (int i = 0; i < result.rank; i++) {
        int from = find_label(list, x->type->rank, lo[i]);
        if (from < 0) {
            missing |= 1u << i;
        } else {
            map[rank++] = from;
        }
    }
    return node_broadcast(g, node_permute(g, x, map), missing, result.rank, result.dim);
}

/* Without a summed label it is an elementwise product. */
static Node *contract_is_product(Graph *g, const Node *n, Node *const *in) {
    const Attr *a = n->attr;
    for (int i = 0; i < in[0]->type->rank; i++) {
        if (find_label(a->lo_, n->type->rank, a->la[i]) < 0) {
            return NULL;
        }
    }
    return node_map2(g, OP_MUL, spread(g, in[0], a->la, a->lo_, *n->type),
                     spread(g, in[1], a->lb, a->lo_, *n->type));
}

/* What `x` is a constant times of; NULL: no such product. */
static Node *without_scale(const Node *x, double *scale) {
    for (int k = 0; x->op == OP_MUL && k < 2; k++) {
        if (is_uniform(x->in[k], scale)) {
            return x->in[1 - k];
        }
    }
    return NULL;
}

static Node *times(Graph *g, Node *x, double scale) {
    return node_map2(g, OP_MUL, x, node_const(g, x->type->elem, scale));
}

/* A constant factor of an operand goes to the result, where it is a part of the epilogue. Without
 * it the operand is more often a value that others need too: the summand of a bias gradient. */
static Node *contract_of_scaled(Graph *g, const Node *n, Node *const *in) {
    double scale;
    for (int k = 0; k < 2; k++) {
        Node *x = without_scale(in[k], &scale);
        if (x) {
            Node *operand[2] = {in[0], in[1]};
            operand[k] = x;
            return times(g, same_op(g, n, operand, *n->type), scale);
        }
    }
    return NULL;
}

/* The same of a sum over windows that has no more elements than its terms are. */
static Node *overlap_add_of_scaled(Graph *g, const Node *n, Node *const *in) {
    double scale;
    const bool fewer = n->attr->count * n->attr->taps >= n->attr->taps_n;
    Node *x = fewer && elem_is_float(n->type->elem) ? without_scale(in[0], &scale) : NULL;
    return x ? times(g, node_overlap_add(g, x, n->attr), scale) : NULL;
}

/* A summed label of extent 1 sums nothing: the axis goes. */
static Node *contract_of_ones(Graph *g, const Node *n, Node *const *in) {
    const Attr *a = n->attr;
    for (int i = 0; i < in[0]->type->rank; i++) {
        int j = find_label(a->lb, in[1]->type->rank, a->la[i]);
        if (in[0]->type->dim[i] != 1 || j < 0 || find_label(a->lo_, n->type->rank, a->la[i]) >= 0) {
            continue;
        }
        int at[2] = {i, j};
        int8_t label[2][MD_RANK] = {{0}};
        Node *x[2];
        for (int k = 0; k < 2; k++) {
            const int8_t *list = k ? a->lb : a->la;
            Type t = without_axes(*in[k]->type, 1u << at[k]);
            x[k] = node_reshape(g, in[k], t.rank, t.dim);
            memcpy(label[k], list, (size_t)at[k]);
            memcpy(label[k] + at[k], list + at[k] + 1, (size_t)(t.rank - at[k]));
        }
        return contract(g, x[0], x[1], label[0], label[1], a->lo_, n->type->rank);
    }
    return NULL;
}

/* Summing a result axis of a contraction: a shared label becomes a summed one, another is summed
 * in its operand first. A product that others read is there anyway. */
static Node *sum_of_contraction(Graph *g, const Node *n, Node *const *in) {
    Node *c = in[0];
    if (c->op != OP_CONTRACT || is_shared(n, 0)) {
        return NULL;
    }
    int8_t lo[MD_RANK] = {0};
    int rank = 0;
    for (int i = 0; i < c->type->rank; i++) {
        if (!(n->attr->axes >> i & 1)) {
            lo[rank++] = c->attr->lo_[i];
        }
    }
    return contract_loose(g, c->in[0], c->in[1], c->attr->la, c->attr->lb, lo, *n->type);
}

/* --- lookups ---------------------------------------------------------------------------------- */

/* What is looked up in a repeated value is repeated itself; along an axis of one element every
 * index says the same, and is not asked. */
static Node *gather_of_repeated(Graph *g, const Node *n, Node *const *in) {
    const Node *x = in[0];
    const int batch = n->attr->batch, places = in[1]->type->rank - batch, rank = n->type->rank;
    const bool repeated = x->op == OP_BROADCAST && (x->attr->axes >> batch & 1);
    if (!repeated && x->type->dim[batch] != 1) {
        return NULL;
    }
    uint32_t axes = 0;
    int64_t dim[MD_RANK]; /* of x without that axis */
    for (int i = 0; i < rank; i++) {
        const bool place = i >= batch && i < batch + places;
        const int of = i < batch ? i : i - places + 1;
        axes |= (place || (repeated && x->attr->axes >> of & 1)) ? 1u << i : 0;
        if (!place) {
            dim[i < batch ? i : of - 1] = n->type->dim[i];
        }
    }
    Node *one = repeated ? x->in[0] : node_reshape(g, in[0], x->type->rank - 1, dim);
    return node_broadcast(g, one, axes, rank, n->type->dim);
}

/* Differences from a number that all the elements share of which one is looked up, as those of
 * logits from their largest are: one costs a subtraction more than to look up an element. */
static bool is_shifted(const Node *x, int axis) {
    return x->op == OP_SUB && x->in[1]->op == OP_BROADCAST && x->in[1]->attr->axes == 1u << axis;
}

/* Of few elements of elementwise work that nobody else reads, or that is next to none, only those
 * are made. */
static Node *gather_of_map(Graph *g, const Node *n, Node *const *in) {
    enum { FEWER = 4 };
    const Node *x = in[0];
    Node *of[3];
    if (op_info[x->op].cls != CLASS_MAP || x->op == OP_RANDOM || x->nin == 0 ||
        (is_shared(n, 0) && !is_shifted(x, n->attr->batch)) ||
        type_count(*n->type) > type_count(*x->type) / FEWER) {
        return NULL;
    }
    for (int k = 0; k < x->nin; k++) {
        of[k] = node_gather(g, x->in[k], in[1], n->attr->batch);
    }
    return same_op(g, x, of, *n->type);
}

/* --- scatters --------------------------------------------------------------------------------- */

/* A large table with few rows added to it, as the gradient of an embedding is: these rows alone are
 * summed, in the same order, and each row of the table knows which one is its own. To find that
 * takes a comparison for each of both, which is less than to write the table and read it again. */
static Node *scatter_is_rows(Graph *g, const Node *n, Node *const *in) {
    enum { LARGE = TUNED(1 << 20, 64), ROWS_FEWER = 2, FEW_LOOKS = 2 };
    Type table = *n->type, rows = table, place = {.elem = TY_I32, .rank = 2};
    int64_t count = type_count(*in[1]->type), width = type_count(table) / table.dim[0];
    if (n->attr->batch != 0 || !elem_is_float(table.elem) || type_count(table) < LARGE ||
        count > table.dim[0] / ROWS_FEWER || count > width * FEW_LOOKS || count == 0) {
        return NULL;
    }
    rows.dim[0] = place.dim[1] = count;
    place.dim[0] = table.dim[0];
    Node *u = node_reshape(g, in[0], rows.rank, rows.dim);
    Node *index = node_cast(g, node_reshape(g, in[1], 1, &count), TY_I32);
    Node *hit =
        node_map2(g, OP_EQ, node_iota(g, place, 0), node_broadcast(g, index, 1, 2, place.dim));
    Node *none = node_int(g, TY_I32, count);
    Node *own = node_fold(g, OP_FMIN, node_select(g, hit, node_iota(g, place, 1), none), 2);
    Node *sums = node_scatter_add(g, u, node_gather(g, own, index, 0), 0, rows);
    Node *last = node_int(g, TY_I32, count - 1);
    Node *spread_sums = node_gather(g, sums, node_map2(g, OP_MIN, own, last), 0);
    Node *has = node_broadcast(g, node_map2(g, OP_LT, own, none), ~(~0u << table.rank) & ~1u,
                               table.rank, table.dim);
    return node_select(g, has, spread_sums, node_const(g, table.elem, 0));
}

/* Every place of a row knows whether it is the one that an index means. */
static Node *scatter_is_select(Graph *g, const Node *n, Node *const *in) {
    int batch = n->attr->batch;
    Node *u = in[0], *index = in[1];
    if (!scatters_one(n) || !elem_is_float(n->type->elem)) {
        return NULL;
    }
    Type place = *n->type;
    place.elem = elem_bytes(index->type->elem) < 4 ? TY_I32 : index->type->elem;
    uint32_t behind = 0;
    for (int i = batch; i < place.rank; i++) {
        behind |= 1u << i;
    }
    Node *wanted =
        node_broadcast(g, node_cast(g, index, place.elem), behind, place.rank, place.dim);
    Node *hit = node_map2(g, OP_EQ, node_iota(g, place, batch), wanted);
    Node *spread_u = node_broadcast(g, u, 1u << batch, place.rank, place.dim);
    return node_select(g, hit, spread_u, node_const(g, n->type->elem, 0));
}

const SimplifyRow simplify_folds[] = {
    {OP_SUM, fold_of_ones},
    {OP_PROD, fold_of_ones},
    {OP_FMAX, fold_of_ones},
    {OP_FMIN, fold_of_ones},
    {OP_SUM, fold_of_fold},
    {OP_PROD, fold_of_fold},
    {OP_FMAX, fold_of_fold},
    {OP_FMIN, fold_of_fold},
    {OP_SUM, fold_of_broadcast},
    {OP_FMAX, fold_of_broadcast},
    {OP_FMIN, fold_of_broadcast},
    {OP_FMAX, extreme_of_ordered},
    {OP_FMIN, extreme_of_ordered},
    {OP_ARGMAX, place_of_one},
    {OP_ARGMIN, place_of_one},
    {OP_SUM, sum_of_neg},
    {OP_SUM, sum_of_scaled},
    {OP_SUM, sum_of_scaled_factor},
    {OP_SUM, sum_of_centred},
    {OP_SUM, sum_of_pad},
    {OP_SUM, sum_of_sum},
    {OP_SUM, sum_of_one},
    {OP_SUM, sum_of_contraction},
    {OP_SUM, sum_is_contraction},
    {OP_GATHER, gather_of_repeated},
    {OP_GATHER, gather_of_map},
    {OP_CONTRACT, contract_of_permute},
    {OP_CONTRACT, contract_of_broadcast},
    {OP_CONTRACT, contract_of_ones},
    {OP_CONTRACT, contract_is_product},
    {OP_CONTRACT, contract_of_scaled},
    {OP_OVERLAP_ADD, overlap_add_of_scaled},

    {OP_COUNT, NULL},
};

const SimplifyRow simplify_late[] = {
    {OP_SCATTER_ADD, scatter_is_select},
    {OP_SCATTER_ADD, scatter_is_rows},
    {OP_COUNT, NULL},
};
