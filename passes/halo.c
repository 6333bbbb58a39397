/* halo: what products read lies at plain strides.
 *
 * A tile of registers multiplies loads at strides, and no more. A window with a border is none:
 * each element asks whether it lies inside. So where many results are made of each element, the
 * value behind the windows is copied once with its border around it (a halo), and the windows read
 * the copy without asking. And where a product makes the terms of windows that overlap (the adjoint
 * of a convolution by its input), which are then added up, the sum over windows becomes part of the
 * product: at stride 1
 *
 *     y[j] = sum over (i, k) with i + d*k - p = j of (sum over o of a[i, o] b[k, o])
 *          = sum over (k, o) of a[j + p - d*k, o] b[k, o]
 *
 * is a product over a window of a, its taps in reverse, and no buffer holds the terms.
 *
 * Where both operands have the channels (depthwise convolutions, and their adjoints), a product is
 * no matrix: each channel is multiplied by numbers of its own. Vectors then run along the channels,
 * which become the last axis of the result and of the few numbers.
 *
 * Where such an adjoint has few columns (the channels of a first picture), most lanes of a vector
 * would be empty: several neighbouring places are columns beside one another then, whose numbers
 * are zero for taps that they do not have.
 * Needs and gives: see halo.h. */
#include "passes/halo_rule.h"

#include "passes/simplify_rule.h"
#include "passes/view.h"

#include <string.h>

enum {
    LEAST_READS = TUNED(2, 1), /* of each element by windows, where both operands have channels */
    LEAST_CHANNELS = TUNED(8, 2),   /* that lie side by side */
    LEAST_ROWS = TUNED(32, 4),      /* of the other operand for a row */
    LEAST_COPY = TUNED(1 << 14, 64) /* of an image in order: less is near whatever its order */
};

/* --- channels of both operands ---------------------------------------------------------------- */

/* Is operand `k` windows, and all that the result has of the other one channels of both? They stand
 * behind the first axis of the windows: there are images around them. */
static bool shares_channels(const Node *contract, int k) {
    int64_t shared = 1, own = 1;
    for (int i = 0; i < contract->type->rank; i++) {
        int label = contract->attr->lo_[i];
        int64_t extent = contract->type->dim[i];
        int place = find_label(labels(contract, k), contract->in[k]->type->rank, label);
        if (has_label(contract, !k, label) && extent > 1) {
            own *= place < 0 ? extent : 1;
            shared *= place > 0 ? extent : 1;
            own += place == 0;
        }
    }
    return own == 1 && shared >= LEAST_CHANNELS && view_has_window(contract->in[k]);
}

/* The last axis of more than one element; -1: there is none. */
static int last_axis(const Type *type) {
    int axis = type->rank - 1;
    while (axis >= 0 && type->dim[axis] == 1) {
        axis--;
    }
    return axis;
}

/* Is it a value seen through permutes and reshapes, and lies apart in memory what lies side by side
 * in the view? */
static bool seen_across(const Node *x) {
    int axis = last_axis(x->type);
    bool merged = false;
    for (; axis >= 0 && (x->op == OP_PERMUTE || x->op == OP_RESHAPE); x = x->in[0]) {
        int64_t behind = 1, size = 1;
        if (x->op == OP_PERMUTE) {
            axis = x->attr->map[axis];
            continue;
        }
        for (int i = axis + 1; i < x->type->rank; i++) {
            behind *= x->type->dim[i];
        }
        merged = true;
        axis = last_axis(x->in[0]->type);
        while (axis > 0 && size * x->in[0]->type->dim[axis] <= behind) {
            size *= x->in[0]->type->dim[axis--];
        }
    }
    bool base = op_info[x->op].cls != CLASS_VIEW && x->op != OP_CONST;
    return merged && base && axis >= 0 && axis != last_axis(x->type);
}

/* Is operand `k` seen in another order, that of the sum in the rows of the other one, which has
 * `times` as many elements at least? An image with its channels last is, in front of a layer that
 * multiplies all of it: the other operand would be gathered as the image lies. */
static bool is_row_in_order(const Node *contract, int k, int64_t times) {
    const Node *x = contract->in[k], *y = contract->in[!k];
    int own = last_axis(x->type), other = last_axis(y->type);
    int8_t label = own < 0 ? -1 : labels(contract, k)[own];
    return other >= 0 && label == labels(contract, !k)[other] && seen_across(x) &&
           find_label(contract->attr->lo_, contract->type->rank, label) < 0 &&
           type_count(*x->type) <= type_count(*y->type) / times;
}

/* Is operand `k` such an image as rows of the result, the gradient of that layer's weights? A tile
 * of rows would read as many lines at each step. */
static bool is_result_in_order(const Node *contract, int k) {
    const Node *x = contract->in[k];
    int rank = contract->type->rank, own = last_axis(x->type);
    int8_t label = own < 0 ? -1 : labels(contract, k)[own];
    int64_t each = 1; /* results of an element */
    for (int i = 0; i < rank; i++) {
        each *= has_label(contract, k, contract->attr->lo_[i]) ? 1 : contract->type->dim[i];
    }
    return label >= 0 && rank > 1 && contract->attr->lo_[rank - 1] == label &&
           !has_label(contract, !k, label) && each >= LEAST_ROWS && seen_across(x);
}

/* Is operand `k` few numbers with a border around them? */
static bool is_few_padded(const Node *contract, int k) {
    const Node *x = contract->in[k];
    bool few = type_count(*x->type) <= type_count(*contract->in[!k]->type) / LEAST_ROWS;
    while (few && op_info[x->op].cls == CLASS_VIEW && x->op != OP_PAD) {
        x = x->in[0];
    }
    return few && x->op == OP_PAD;
}

/* Is operand `k` few numbers seen as the columns of the result lie, its last labels, behind what is
 * summed? Labels of the result that stand in front of all are batches, with numbers of their own:
 * each of these is read for many rows. */
static bool is_columns_in_order(const Node *contract, int k) {
    const Node *x = contract->in[k];
    int rank = contract->type->rank, own = x->type->rank, n = 0, first = 0, last = own;
    while (last > 0 && n < rank &&
           labels(contract, k)[last - 1] == contract->attr->lo_[rank - 1 - n]) {
        last--;
        n++;
    }
    while (first < last && find_label(contract->attr->lo_, rank, labels(contract, k)[first]) >= 0) {
        first++;
    }
    bool few = type_count(*x->type) <= type_count(*contract->in[!k]->type) / LEAST_ROWS;
    if (first > 0 && first < last) {
        int64_t rows = 1;
        for (int i = 0; i < rank; i++) {
            rows *= has_label(contract, k, contract->attr->lo_[i]) ? 1 : contract->type->dim[i];
        }
        few = few || rows >= LEAST_ROWS;
    }
    bool sums = first < last;
    for (int i = first; i < last; i++) {
        sums = sums && find_label(contract->attr->lo_, rank, labels(contract, k)[i]) < 0;
    }
    return few && sums && n > 1 && x->op == OP_PERMUTE;
}

bool halo_turns(const Node *contract, int k) {
    const Node *x = contract->in[k];
    if (is_few_padded(contract, k) || is_columns_in_order(contract, k)) {
        return true;
    }
    bool few = type_count(*x->type) <= type_count(*contract->type) / LEAST_RESULTS;
    return (few && x->op == OP_PERMUTE && shares_channels(contract, !k)) ||
           is_row_in_order(contract, k, LEAST_ROWS);
}

bool halo_orders(const Node *contract, int k) {
    return type_count(*contract->in[k]->type) >= LEAST_COPY &&
           (is_row_in_order(contract, k, 1) || is_result_in_order(contract, k));
}

/* Operand `k`, of few numbers, with the channels last; *list gets its labels. */
static Node *turned_operand(Graph *g, const Node *contract, int k, int8_t *list) {
    Node *x = contract->in[k];
    int rank = x->type->rank, map[MD_RANK], n = 0;
    for (int shared = 0; shared < 2; shared++) {
        for (int i = 0; i < rank; i++) {
            int8_t label = labels(contract, k)[i];
            bool kept = find_label(contract->attr->lo_, contract->type->rank, label) >= 0;
            if ((kept && has_label(contract, !k, label)) == shared) {
                list[n] = label;
                map[n++] = i;
            }
        }
    }
    return node_permute(g, x, map);
}

/* The product with the channels of both operands last, seen as it was; itself where there are none.
 */
static Node *with_channels_last(Graph *g, Node *n) {
    int k = n->op != OP_CONTRACT ? -1 : shares_channels(n, 0) ? 0 : shares_channels(n, 1) ? 1 : -1;
    if (k < 0) {
        return n;
    }
    int8_t to[MD_RANK], list[2][MD_RANK];
    int back[MD_RANK], rank = n->type->rank, count = 0;
    for (int last = 0; last < 2; last++) {
        for (int i = 0; i < rank; i++) {
            if (has_label(n, !k, n->attr->lo_[i]) == last) {
                to[count] = n->attr->lo_[i];
                back[i] = count++;
            }
        }
    }
    Node *in[2] = {n->in[0], n->in[1]};
    memcpy(list[0], n->attr->la, sizeof list[0]);
    memcpy(list[1], n->attr->lb, sizeof list[1]);
    if (type_count(*in[!k]->type) <= type_count(*n->type) / LEAST_RESULTS) {
        in[!k] = turned_operand(g, n, !k, list[!k]);
    }
    return node_permute(g, node_contract(g, in[0], in[1], list[0], list[1], to, rank), back);
}

/* --- borders ---------------------------------------------------------------------------------- */

bool halo_has_results(const Node *contract, int k, int summed) {
    const Attr *a = contract->attr;
    const int8_t *own = k == 0 ? a->la : a->lb, *other = k == 0 ? a->lb : a->la;
    Type type = *contract->in[!k]->type;
    int64_t results = 1;
    for (int i = 0; i < type.rank; i++) {
        bool mine = find_label(own, contract->in[k]->type->rank, other[i]) >= 0;
        bool kept = find_label(a->lo_, contract->type->rank, other[i]) >= 0;
        bool counts = !mine && kept && other[i] != summed && results < LEAST_RESULTS;
        results *= counts ? type.dim[i] : 1;
    }
    return results >= LEAST_RESULTS;
}

bool halo_is_tiled(const Node *contract, int k) {
    return halo_has_results(contract, k, -1);
}

bool halo_is_worth(const Node *contract, int k) {
    const Node *x = contract->in[k];
    return halo_is_tiled(contract, k) ||
           (shares_channels(contract, k) &&
            type_count(*x->type) / LEAST_READS >= type_count(*view_base(x)->type));
}

static bool has_border(const Node *n) {
    return n->op == OP_WINDOW && n->attr->border != BORDER_NONE;
}

/* The rule of the borders behind a view; all of them must have one. */
typedef struct {
    Border border; /* BORDER_NONE: there is none */
    double value;
    bool same;
    bool asks; /* a window has one: its elements ask whether they lie inside */
} Rule;

static Rule border_rule(const Node *n) {
    Rule rule = {.border = BORDER_NONE, .same = true};
    for (; op_info[n->op].cls == CLASS_VIEW; n = n->in[0]) {
        if (!has_border(n) && n->op != OP_PAD) {
            continue;
        }
        rule.asks = rule.asks || has_border(n);
        rule.same = rule.same && (rule.border == BORDER_NONE ||
                                  (rule.border == n->attr->border && rule.value == n->attr->value));
        rule.border = n->attr->border;
        rule.value = n->attr->value;
    }
    return rule;
}

typedef struct {
    int64_t lo[MD_RANK], hi[MD_RANK];
} Halo;

static bool halo_is_empty(const Halo *h) {
    static const Halo none;
    return memcmp(h, &none, sizeof none) == 0;
}

static bool asks_along(const Halo *h, int axis) {
    return h->lo[axis] != 0 || h->hi[axis] != 0;
}

/* The axis of channels: the one in front of those with a halo, if these are the last ones and it is
 * not the first; -1: there is none, or too few of them for vectors. A chain of maps is computed
 * where it is copied, at the strides of what it reads: it stays as it is. */
static int channels(const Node *n, const Halo *h) {
    const int last = n->type->rank - 1;
    int axis = last;
    while (axis >= 0 && asks_along(h, axis)) {
        axis--;
    }
    const bool fits = axis < last && op_info[n->op].cls != CLASS_MAP;
    while (axis > 1 && n->type->dim[axis] == 1) { /* groups have one channel */
        axis--;
    }
    return fits && axis > 0 && n->type->dim[axis] >= LEAST_CHANNELS ? axis : -1;
}

/* With the border around it. Channels lie side by side: taps are read in one run. */
static Node *padded(Graph *g, Node *n, const Rule *rule, const Halo *h) {
    if (halo_is_empty(h)) {
        return n;
    }
    int rank = n->type->rank, axis = channels(n, h);
    if (axis < 0) {
        return node_pad(g, n, h->lo, h->hi, rule->border, rule->value);
    }
    Halo turned = {{0}, {0}};
    int there[MD_RANK], back[MD_RANK];
    for (int i = 0; i < rank; i++) {
        there[i] = i < axis ? i : i < rank - 1 ? i + 1 : axis;
        back[there[i]] = i;
        turned.lo[i] = h->lo[there[i]];
        turned.hi[i] = h->hi[there[i]];
    }
    Node *last = node_permute(g, n, there);
    Node *wide = node_pad(g, last, turned.lo, turned.hi, rule->border, rule->value);
    return node_permute(g, wide, back);
}

static Node *with_halo(Graph *g, Node *n, const Rule *rule, const Halo *h);

/* What is seen through a PERMUTE with its border around it. */
static Node *permuted_halo(Graph *g, Node *n, const Rule *rule, const Halo *h) {
    const int *map = n->attr->map;
    Halo in = {{0}, {0}};
    for (int i = 0; i < n->type->rank; i++) {
        in.lo[map[i]] = h->lo[i];
        in.hi[map[i]] = h->hi[i];
    }
    return node_permute(g, with_halo(g, n->in[0], rule, &in), map);
}

/* A window that reads a halo and asks for nothing. */
static Node *window_with_halo(Graph *g, Node *n, const Rule *rule, const Halo *h) {
    const Attr *a = n->attr;
    int64_t i1 = a->s * (a->count - 1), k1 = a->d * (a->taps - 1);
    int64_t least = (i1 < 0 ? i1 : 0) + (k1 < 0 ? k1 : 0) - a->p;
    int64_t most = (i1 > 0 ? i1 : 0) + (k1 > 0 ? k1 : 0) - a->p;
    Halo in = {{0}, {0}};
    for (int i = 0; i < n->in[0]->type->rank; i++) {
        in.lo[i] = i == a->axis ? 0 : h->lo[i < a->axis ? i : i + 1];
        in.hi[i] = i == a->axis ? 0 : h->hi[i < a->axis ? i : i + 1];
    }
    if (has_border(n)) {
        in.lo[a->axis] = least < 0 ? -least : 0;
        in.hi[a->axis] = most >= a->taps_n ? most - a->taps_n + 1 : 0;
    }
    Node *wide = with_halo(g, n->in[0], rule, &in);
    return node_window(g, wide, a->axis, a->s, a->d, a->p - in.lo[a->axis], a->count, a->taps,
                       BORDER_NONE, 0);
}

/* `n` with `h` around it, and no borders behind it but that of a pad. */
static Node *with_halo(Graph *g, Node *n, const Rule *rule, const Halo *h) {
    const Attr *a = n->attr;
    Halo in = {{0}, {0}};
    if (n->op == OP_WINDOW && !asks_along(h, a->axis) && !asks_along(h, a->axis + 1)) {
        return window_with_halo(g, n, rule, h);
    }
    if (n->op == OP_PERMUTE) {
        return permuted_halo(g, n, rule, h);
    }
    if (n->op == OP_PAD) { /* one copy for both, along whose axes the first border was not seen */
        for (int i = 0; i < n->type->rank; i++) {
            in.lo[i] = h->lo[i] + a->lo[i];
            in.hi[i] = h->hi[i] + a->hi[i];
        }
        return n->in[0]->op == OP_PERMUTE ? permuted_halo(g, n->in[0], rule, &in)
                                          : padded(g, n->in[0], rule, &in);
    }
    if (op_info[n->op].cls == CLASS_VIEW && halo_is_empty(h)) {
        Node *inner = with_halo(g, n->in[0], rule, h);
        return graph_copy(g, n, &inner);
    }
    return padded(g, n, rule, h);
}

/* The product of operands without borders; NULL: it has them already, or not all of one kind. */
static Node *unbordered(Graph *g, const Node *n, Node *const *in) {
    Node *operand[2] = {in[0], in[1]};
    const Halo none = {{0}, {0}};
    for (int k = 0; k < 2; k++) {
        Rule rule = border_rule(in[k]);
        if (rule.same && rule.asks && halo_is_worth(n, k)) {
            operand[k] = with_halo(g, in[k], &rule, &none);
        }
    }
    bool changed = operand[0] != in[0] || operand[1] != in[1];
    return changed ? node_contract(g, operand[0], operand[1], n->attr->la, n->attr->lb,
                                   n->attr->lo_, n->type->rank)
                   : NULL;
}

Node *halo_unbordered(Graph *g, const Node *contract) {
    return unbordered(g, contract, contract->in);
}

/* --- few columns ------------------------------------------------------------------------------ */

/* Windows whose places along `axis` are every `by`-th with all that the places between read, too:
 * by - 1 taps more. *tap: the axis of these. NULL: no such windows. */
static Node *stepped(Graph *g, Node *n, int axis, int64_t by, int *tap) {
    const Attr *a = n->attr;
    if (n->op == OP_PERMUTE) {
        Node *below = stepped(g, n->in[0], a->map[axis], by, tap);
        for (int i = 0; below && i < n->type->rank; i++) {
            if (a->map[i] == *tap) {
                *tap = i;
                return node_permute(g, below, a->map);
            }
        }
        return NULL;
    }
    if (n->op != OP_WINDOW || has_border(n) || axis == a->axis + 1) {
        return NULL;
    }
    if (axis == a->axis) {
        bool plain = a->s == 1 && a->d == 1 && a->count % by == 0;
        *tap = axis + 1;
        return plain ? node_window(g, n->in[0], axis, by, 1, a->p, a->count / by, a->taps + by - 1,
                                   BORDER_NONE, 0)
                     : NULL;
    }
    Node *below = stepped(g, n->in[0], axis > a->axis ? axis - 1 : axis, by, tap);
    *tap += below && *tap > a->axis;
    return below
               ? node_window(g, below, a->axis, a->s, a->d, a->p, a->count, a->taps, BORDER_NONE, 0)
               : NULL;
}

/* Where an axis of windows is in what they show. */
static int axis_below(const Node *n, int axis) {
    for (; axis >= 0 && (n->op == OP_WINDOW || n->op == OP_PERMUTE); n = n->in[0]) {
        axis = n->op == OP_PERMUTE ? n->attr->map[axis] : axis - (axis > n->attr->axis);
    }
    return axis;
}

/* Of a product over windows: which operand has them, the last axis of the result that they have,
 * where they have that, and where the other operand has its taps; places that go together. */
typedef struct {
    int k, last, axis, taps;
    int64_t by;
} Beside;

/* False: few columns are not what it has, or nothing would be gained. */
static bool find_beside(Graph *g, const Node *n, int k, Beside *b) {
    const Node *x = n->in[k], *y = n->in[!k];
    int64_t columns = 1, lanes = MD_ALIGN / (int64_t)elem_bytes(n->type->elem);
    bool shared = false;
    *b = (Beside){.k = k, .last = -1, .by = 1};
    for (int i = 0; i < n->type->rank; i++) {
        bool own = has_label(n, k, n->attr->lo_[i]), other = has_label(n, !k, n->attr->lo_[i]);
        b->last = own && n->type->dim[i] > 1 ? i : b->last;
        shared = shared || (own && other);
        columns *= other ? n->type->dim[i] : 1;
    }
    bool room = n->type->rank < MD_RANK && y->type->rank < MD_RANK;
    if (b->last < 0 || shared || columns == 1 || !room ||
        type_count(*x->type) < LEAST_WORK / columns) {
        return false;
    }
    int tap = -1;
    b->axis = find_label(labels(n, k), x->type->rank, n->attr->lo_[b->last]);
    if (!stepped(g, n->in[k], b->axis, 1, &tap)) {
        return false;
    }
    b->taps = find_label(labels(n, !k), y->type->rank, labels(n, k)[tap]);
    if (b->taps >= 0) {
        b->by = halo_places_beside(lanes, columns, n->type->dim[b->last], x->type->dim[tap]);
    }
    return b->by > 1;
}

/* The numbers of each of `by` places beside one another, for the taps of all, with the labels of
 * the result (`to`, of them) in front, so that columns lie at one stride, and those of the sum as
 * what the windows show lies. *list: their labels, the places' being `place`. */
static Node *numbers_beside(Graph *g, const Node *n, const Beside *b, const int8_t *to, int of,
                            int8_t place, int8_t *list) {
    Node *y = n->in[!b->k];
    const Node *x = n->in[b->k];
    int64_t around[MD_RANK] = {0}, taps = y->type->dim[b->taps];
    int8_t label[MD_RANK];
    int rank = y->type->rank + 1, map[MD_RANK], at = 0;
    around[b->taps] = b->by - 1;
    for (int i = 0; i < rank; i++) {
        label[i] = i == b->taps ? place : labels(n, !b->k)[i - (i > b->taps)];
    }
    for (int i = 0; i < of; i++) {
        int there = find_label(label, rank, to[i]);
        if (there >= 0) {
            list[at] = to[i];
            map[at++] = there;
        }
    }
    for (int below = -1; below < x->type->rank; below++) { /* -1: what y alone sums */
        for (int i = 0; i < rank; i++) {
            int there = find_label(labels(n, b->k), x->type->rank, label[i]);
            if (find_label(to, of, label[i]) < 0 && axis_below(x, there) == below) {
                list[at] = label[i];
                map[at++] = i;
            }
        }
    }
    Node *wide = node_pad(g, y, around, around, BORDER_VALUE, 0);
    Node *beside =
        node_window(g, wide, b->taps, -1, 1, 1 - b->by, b->by, taps + b->by - 1, BORDER_NONE, 0);
    return node_permute(g, beside, map);
}

/* A product over windows (operand `k`) with few columns, several places at a time; itself where
 * that gains nothing. The result lies with its columns last. */
static Node *with_places_beside(Graph *g, Node *n, int k) {
    Beside b;
    if (!find_beside(g, n, k, &b)) {
        return n;
    }
    int8_t list[MD_RANK], to[MD_RANK], place = 0;
    int64_t dim[MD_RANK];
    int back[MD_RANK], count = 0, made = 0, tap;
    for (int i = 0; i < 3 * MD_RANK; i++) { /* a label that is free */
        bool used = has_label(n, 0, place) || has_label(n, 1, place);
        place = (int8_t)(place + used);
    }
    for (int kind = 0; kind < 3; kind++) { /* of the windows, the places beside, columns */
        for (int i = 0; i < n->type->rank; i++) {
            int8_t label = n->attr->lo_[i];
            if ((i == b.last ? 1 : has_label(n, k, label) ? 0 : 2) == kind) {
                to[made++] = label;
                dim[count] = n->type->dim[i];
                back[i] = count++;
            }
        }
        if (kind == 1) {
            to[made++] = place;
        }
    }
    Node *in[2];
    in[k] = stepped(g, n->in[k], b.axis, b.by, &tap);
    in[!k] = numbers_beside(g, n, &b, to, made, place, list);
    Node *product = node_contract(g, in[0], in[1], k == 0 ? n->attr->la : list,
                                  k == 0 ? list : n->attr->lb, to, made);
    return node_permute(g, node_reshape(g, product, n->type->rank, dim), back);
}

/* --- overlapping windows ---------------------------------------------------------------------- */

int halo_side(const Node *contract, int window, int tap) {
    for (int k = 0; k < 2; k++) {
        if (has_label(contract, k, window) && !has_label(contract, !k, window) &&
            has_label(contract, !k, tap) && !has_label(contract, k, tap)) {
            return k;
        }
    }
    return -1;
}

int halo_windowed(const Node *n, const Node *contract) {
    const Attr *o = n->attr, *c = contract->attr;
    if (contract->op != OP_CONTRACT || o->s < 1 || o->s > o->taps || o->d == 0 || o->count < 1 ||
        o->taps < 1 || contract->type->rank > MD_RANK - 1 ||
        contract->in[0]->type->rank > MD_RANK - 1 || contract->in[1]->type->rank > MD_RANK - 1) {
        return -1;
    }
    return halo_side(contract, c->lo_[o->axis], c->lo_[o->axis + 1]);
}

static bool overlap_is_worth(const Node *n, const Node *contract) {
    int a = halo_windowed(n, contract);
    return a >= 0 && n->attr->s == 1 &&
           halo_has_results(contract, a, contract->attr->lo_[n->attr->axis + 1]);
}

/* x with s - 1 zeros behind each place of an axis: what a sum over windows at stride s reads as one
 * at stride 1. They go below windows and borders along other axes, to what is copied. */
static Node *spread_out(Graph *g, Node *x, int axis, int64_t s) {
    const Attr *at = x->attr;
    if (s == 1) {
        return x;
    }
    if (x->op == OP_WINDOW && axis != at->axis && axis != at->axis + 1) {
        Node *below = spread_out(g, x->in[0], axis > at->axis ? axis - 1 : axis, s);
        return node_window(g, below, at->axis, at->s, at->d, at->p, at->count, at->taps, at->border,
                           at->value);
    }
    if (x->op == OP_PAD && at->lo[axis] == 0 && at->hi[axis] == 0) {
        return node_pad(g, spread_out(g, x->in[0], axis, s), at->lo, at->hi, at->border, at->value);
    }
    int rank = x->type->rank;
    int64_t dim[MD_RANK + 1], lo[MD_RANK + 1] = {0}, hi[MD_RANK + 1] = {0};
    for (int i = 0; i <= rank; i++) {
        dim[i] = i <= axis ? x->type->dim[i] : i == axis + 1 ? 1 : x->type->dim[i - 1];
    }
    hi[axis + 1] = s - 1;
    Node *apart = node_pad(g, node_reshape(g, x, rank + 1, dim), lo, hi, BORDER_VALUE, 0);
    memcpy(dim, x->type->dim, sizeof *dim * (size_t)rank);
    dim[axis] *= s;
    return node_reshape(g, apart, rank, dim);
}

static Node *product_of_windows(Graph *g, const Node *n, const Node *contract) {
    const Attr *o = n->attr, *c = contract->attr;
    int a = halo_windowed(n, contract);
    Node *x = contract->in[a], *y = contract->in[!a];
    const int8_t *lx = a == 0 ? c->la : c->lb, *ly = a == 0 ? c->lb : c->la;
    int8_t i = c->lo_[o->axis], k = c->lo_[o->axis + 1], label[MD_RANK], to[MD_RANK];
    int ax = find_label(lx, x->type->rank, i), ay = find_label(ly, y->type->rank, k);
    const bool reverse = o->d > 0; /* taps that go backwards are in reverse already */
    const int64_t d = reverse ? o->d : -o->d, p = reverse ? d * (o->taps - 1) - o->p : -o->p;
    Node *window = node_window(g, spread_out(g, x, ax, o->s), ax, 1, d, p, o->taps_n, o->taps,
                               BORDER_VALUE, 0);
    Node *taps = reverse ? node_flip(g, y, 1u << ay) : y;
    for (int j = 0; j < window->type->rank; j++) {
        label[j] = j <= ax ? lx[j] : j == ax + 1 ? k : lx[j - 1];
    }
    for (int j = 0; j < n->type->rank; j++) {
        to[j] = c->lo_[j <= o->axis ? j : j + 1];
    }
    Node *in[2] = {a == 0 ? window : taps, a == 0 ? taps : window};
    const int8_t *lists[2] = {a == 0 ? label : ly, a == 0 ? ly : label};
    Node *made = node_contract(g, in[0], in[1], lists[0], lists[1], to, n->type->rank);
    Node *plain = made->op == OP_CONTRACT ? unbordered(g, made, made->in) : NULL;
    made = plain ? plain : made;
    return made->op == OP_CONTRACT ? with_places_beside(g, made, a) : made;
}

/* A product without a sum is a multiplication of repeated values by now: as the CONTRACT that it
 * was; NULL: it is none. */
static Node *product_of_repeated(Graph *g, const Node *x) {
    int8_t list[2][MD_RANK], to[MD_RANK];
    Node *in[2] = {NULL, NULL};
    int rank = x->type->rank;
    const bool product = x->op == OP_MUL && elem_is_float(x->type->elem);
    uint32_t repeated = product ? ~0u : 0;
    for (int k = 0; k < 2 && product; k++) {
        bool broadcast = x->in[k]->op == OP_BROADCAST;
        uint32_t axes = broadcast ? x->in[k]->attr->axes : 0;
        in[k] = broadcast ? x->in[k]->in[0] : x->in[k];
        repeated &= axes;
        for (int i = 0, n = 0; i < rank; i++) {
            to[i] = (int8_t)i;
            if (!(axes >> i & 1)) {
                list[k][n++] = (int8_t)i;
            }
        }
    }
    return in[0] && repeated == 0 ? node_contract(g, in[0], in[1], list[0], list[1], to, rank)
                                  : NULL;
}

/* Where axis `axis` of a reshape that only adds and drops axes of extent 1 is in its operand; -1:
 * it is no such axis, or the reshape is another one. */
static int axis_before(const Node *reshape, int axis) {
    const Type *from = reshape->in[0]->type, *to = reshape->type;
    int at = -1;
    for (int i = 0, j = 0; i < from->rank || j < to->rank;) {
        if (i < from->rank && from->dim[i] == 1) {
            i++;
        } else if (j < to->rank && to->dim[j] == 1) {
            j++;
        } else if (i == from->rank || j == to->rank || from->dim[i] != to->dim[j]) {
            return -1;
        } else {
            at = j == axis ? i : at;
            i++;
            j++;
        }
    }
    return at;
}

/* Sums over windows along several axes of a product without a sum, as one product over windows;
 * NULL: they are none. */
static Node *product_of_sums(Graph *g, Node *n) {
    Node *terms = n->in[0];
    Attr moved = attr_copy(n->attr);
    if (n->op != OP_OVERLAP_ADD) {
        return NULL;
    }
    if (terms->op == OP_RESHAPE) {
        moved.axis = axis_before(terms, n->attr->axis);
        if (moved.axis < 0 || axis_before(terms, n->attr->axis + 1) != moved.axis + 1) {
            return NULL;
        }
        Node *made = product_of_sums(g, node_overlap_add(g, terms->in[0], &moved));
        return made ? node_reshape(g, made, n->type->rank, n->type->dim) : NULL;
    }
    if (terms->op != OP_CONTRACT) {
        terms =
            terms->op == OP_OVERLAP_ADD ? product_of_sums(g, terms) : product_of_repeated(g, terms);
        if (!terms) {
            return NULL;
        }
        return terms->op == OP_CONTRACT || terms->op == OP_RESHAPE
                   ? product_of_sums(g, node_overlap_add(g, terms, &moved))
                   : NULL;
    }
    return halo_windowed(n, terms) >= 0 ? product_of_windows(g, n, terms) : NULL;
}

/* The same, where channels of both operands are all that the product is left with. */
static Node *product_of_channels(Graph *g, Node *n) {
    Node *product = product_of_sums(g, n);
    while (product && product->op == OP_RESHAPE) {
        product = product->in[0];
    }
    Node *made = product ? with_channels_last(g, product) : NULL;
    return made != product ? node_reshape(g, made, n->type->rank, n->type->dim) : NULL;
}

/* --- the pass --------------------------------------------------------------------------------- */

/* Which sums over windows others are made of, in a region. */
typedef struct {
    const Region *region;
    bool *of; /* by node */
    Arena scratch;
} Summed;

static bool is_summed(Summed *s, const Node *node) {
    if (s->region != node->region) {
        s->region = node->region;
        s->of = ARENA_ARRAY(&s->scratch, bool, s->region->node.count);
        for (int i = 0; i < s->region->node.count; i++) {
            const Node *n = s->region->node.at[i];
            if (n->op == OP_OVERLAP_ADD) {
                s->of[n->in[0]->id] = true;
            }
        }
    }
    return s->of[node->id];
}

static Node *halo_node(void *ctx, Graph *g, const Node *n, Node *const *in) {
    Summed *s = ctx;
    if (n->op == OP_OVERLAP_ADD && overlap_is_worth(n, in[0])) {
        Node *made = !is_summed(s, n) && halo_has_fewer_terms(n, in[0])
                         ? halo_sums_of_places(g, node_overlap_add(g, in[0], n->attr))
                         : NULL;
        return made ? made : product_of_windows(g, n, in[0]);
    }
    if (n->op == OP_OVERLAP_ADD) {
        Node *sum = node_overlap_add(g, in[0], n->attr);
        Node *made = product_of_channels(g, sum);
        made = made || is_summed(s, n) ? made : halo_product_of_phases(g, sum);
        made = made || is_summed(s, n) ? made : halo_phases_apart(g, sum);
        return made || is_summed(s, n) ? made : halo_sums_of_places(g, sum);
    }
    if (n->op != OP_CONTRACT) {
        return NULL;
    }
    Node *plain = unbordered(g, n, in);
    plain = plain ? plain : graph_copy(g, n, in);
    return with_channels_last(g, plain);
}

static bool is_wanted(const Node *n) {
    bool found = n->op == OP_OVERLAP_ADD;
    for (int k = 0; n->op == OP_CONTRACT && k < 2; k++) {
        found =
            found || (border_rule(n->in[k]).asks && halo_is_worth(n, k)) || shares_channels(n, k);
    }
    return found;
}

bool halo_applies(const Region *region) {
    return region_any(region, is_wanted);
}

Region *pass_halo(Graph *g, const Region *region) {
    Summed s = {0};
    Region *fresh = region_rebuild(g, region, halo_node, &s);
    arena_free(&s.scratch);
    return fresh;
}
