/* repeats: products over windows of repeated places read each of them once.
 *
 * An image that is made larger by repeating its places (upsampling by a whole factor) and goes
 * through a convolution is read r times along an axis, and neighbouring taps multiply the same
 * number. Repeating spreads each place over r, a product over windows of k taps gathers: together
 * each place goes to k + r - 1 places of the result,
 *
 *     y[m] = sum over t of w[t] u[m + t - p], u[r*i + j] = x[i]
 *          = sum over i of x[i] v[m + p' - r*i], v[s] = w[k-1-s] + w[k-s] + ... (r of them)
 *
 * the adjoint of windows of x at stride r: a CONTRACT of the places as they are, and OVERLAP_ADD.
 * Of 3 taps and a factor of 2 along two axes that is 4/9 of the multiplications, in the derivatives
 * too, since the pass runs in front of them, and nothing as large as the repeated image is stored.
 *
 * Where repeated and other channels stand behind one another (a CONCAT along an axis that is
 * summed), the product is one for each of both, and their sum. A program that takes derivatives to
 * values that it computes, of which the repeated image may be one, is left as it is. Needs and
 * gives: see repeats.h. */
#include "passes/repeats.h"

#include "passes/points.h"

#include <string.h>

enum {
    WORTH = 70, /* percent of the multiplications, at most */
    LEAST_COLUMNS = TUNED(8, 2)
};

const int64_t repeats_least = TUNED(1 << 22, 1 << 12);

/* An operand that is windows of a value, by the axes of that. */
typedef struct {
    int k;                       /* which operand */
    Node *base;                  /* what the windows show */
    int8_t label[MD_RANK];       /* of its axes */
    int8_t tap[MD_RANK];         /* behind windows along an axis; -1: there are none */
    const Attr *window[MD_RANK]; /* NULL: there are none */
    int joined;                  /* the axis along which the base is a CONCAT; -1: it is none */
    int64_t factor[CONCAT_PARTS][MD_RANK]; /* of its parts, by axis: how often places repeat */
    Node *part[CONCAT_PARTS], *once[CONCAT_PARTS]; /* a part, and what it repeats or itself */
    int parts;
} Windows;

static const int8_t *labels(const Node *contract, int k) {
    return k == 0 ? contract->attr->la : contract->attr->lb;
}

/* --- what is there ---------------------------------------------------------------------------- */

/* The windows of operand `k` and the value that they show; false: windows of windows. */
static bool find_windows(const Node *n, Node *const *in, int k, Windows *w) {
    const int rank = in[k]->type->rank;
    int at[MD_RANK];
    const Attr *window[MD_RANK] = {NULL};
    bool tap[MD_RANK] = {false};
    *w = (Windows){.k = k, .joined = -1};
    for (int i = 0; i < rank; i++) {
        at[i] = i;
    }
    Node *x = in[k];
    for (; x->op == OP_WINDOW; x = x->in[0]) {
        for (int i = 0; i < rank; i++) {
            const bool here = at[i] == x->attr->axis || at[i] == x->attr->axis + 1;
            if (here && window[i]) {
                return false;
            }
            window[i] = here ? x->attr : window[i];
            tap[i] = tap[i] || (here && at[i] > x->attr->axis);
            at[i] -= at[i] > x->attr->axis;
        }
    }
    w->base = x;
    memset(w->tap, -1, sizeof w->tap);
    for (int i = 0; i < rank; i++) {
        w->window[at[i]] = window[i];
        *(tap[i] ? &w->tap[at[i]] : &w->label[at[i]]) = labels(n, k)[i];
    }
    return x != in[k];
}

/* What `x` repeats along its axes, each place factor[i] times; itself: nothing. */
static Node *find_once(Graph *g, Node *x, int64_t *factor) {
    const int rank = x->type->rank;
    Node *wide = x->op == OP_RESHAPE ? x->in[0] : x;
    int64_t dim[MD_RANK];
    for (int i = 0; i < rank; i++) {
        factor[i] = 1;
    }
    if (wide->op != OP_BROADCAST) {
        return x;
    }
    const Type *type = wide->type;
    int at = 0;
    for (int i = 0; i < rank; i++) {
        int64_t seen = 1;
        dim[i] = 1;
        factor[i] = 1;
        while (at < type->rank && (seen < x->type->dim[i] || type->dim[at] == 1)) {
            const bool repeats = wide->attr->axes >> at & 1;
            if (!repeats && type->dim[at] > 1 && factor[i] > 1) {
                return x; /* whole runs of places are */
            }
            *(repeats ? &factor[i] : &dim[i]) *= type->dim[at];
            seen *= type->dim[at++];
        }
        if (seen != x->type->dim[i]) {
            return x;
        }
    }
    return g ? node_reshape(g, wide->in[0], rank, dim) : NULL;
}

/* Are windows along axis `i` of places that repeat `factor` times such that the sum may go through
 * the places as they are? */
static bool window_fits(const Node *n, Node *const *in, const Windows *w, int i) {
    const Attr *a = w->window[i];
    const int rank = n->type->rank, other = in[!w->k]->type->rank;
    return a && a->s == 1 && a->d == 1 && a->count > 0 &&
           (a->border == BORDER_NONE || (a->border == BORDER_VALUE && a->value == 0)) &&
           find_label(n->attr->lo_, rank, w->label[i]) >= 0 &&
           find_label(labels(n, !w->k), other, w->label[i]) < 0 &&
           find_label(n->attr->lo_, rank, w->tap[i]) < 0 &&
           find_label(labels(n, !w->k), other, w->tap[i]) >= 0;
}

/* Are the multiplications of a part worth to be made place by place? Forward, where the taps of all
 * places that go to one of the result are as many as of that which has most, and backward. */
static bool part_is_worth(const Node *n, Node *const *in, const Windows *w, int p) {
    const int64_t *factor = w->factor[p];
    double now = WORTH, forward = 100,
           backward = 100; /* of products of extents, which may be large */
    int sums = 0;
    for (int i = 0; i < w->base->type->rank; i++) {
        const Attr *a = w->window[i];
        const int64_t r = factor[i];
        if (r > 1) {
            if (!window_fits(n, in, w, i)) {
                return false;
            }
            const int64_t wide = a->taps + r - 1, places = w->part[p]->type->dim[i] / r;
            now *= (double)(a->count * a->taps);
            backward *= (double)(places * wide);
            forward *= (double)((a->count + r - 1) / r * r) * (double)((wide + r - 1) / r);
            sums++;
        }
    }
    return sums > 0 && n->type->rank + sums <= MD_RANK && forward <= now && backward <= now;
}

/* Is it large, with columns enough for vectors? */
static bool is_large(const Node *n, Node *const *in, int k, int64_t least) {
    int64_t columns = 1, work = type_count(*n->type);
    for (int i = 0; i < in[!k]->type->rank; i++) {
        const int label = labels(n, !k)[i];
        const bool kept = find_label(n->attr->lo_, n->type->rank, label) >= 0;
        const bool shared = find_label(labels(n, k), in[k]->type->rank, label) >= 0;
        columns *= kept && !shared ? in[!k]->type->dim[i] : 1;
        work *= !kept ? in[!k]->type->dim[i] : 1;
    }
    return columns >= LEAST_COLUMNS && work >= least;
}

/* Windows of repeated places as operand `k`, of which any part is worth it. With `g` the values
 * without repeats are made. */
static bool find_repeats(Graph *g, const Node *n, Node *const *in, int k, int64_t least,
                         Windows *w) {
    if (n->op != OP_CONTRACT || !find_windows(n, in, k, w) || !is_large(n, in, k, least)) {
        return false;
    }
    Node *base = w->base;
    if (base->op == OP_CONCAT) {
        const int axis = base->attr->axis;
        const bool summed = find_label(n->attr->lo_, n->type->rank, w->label[axis]) < 0;
        if (w->window[axis] || !summed) {
            return false;
        }
        w->joined = axis;
    }
    w->parts = w->joined < 0 ? 1 : base->nin;
    bool any = false;
    for (int p = 0; p < w->parts; p++) {
        w->part[p] = w->joined < 0 ? base : base->in[p];
        Node *once = find_once(NULL, w->part[p], w->factor[p]);
        const bool worth = once != w->part[p] && part_is_worth(n, in, w, p);
        w->once[p] = !worth ? w->part[p] : g ? find_once(g, w->part[p], w->factor[p]) : NULL;
        any = any || worth;
    }
    return any;
}

/* --- what is made ----------------------------------------------------------------------------- */

/* `x` with its windows but those along axes that repeat; label[]: of its axes. */
static Node *with_windows(Graph *g, Node *x, const Windows *w, const int64_t *factor,
                          int8_t *label) {
    int count = 0, rank = x->type->rank;
    for (int i = 0; i < rank; i++) {
        const Attr *a = factor && factor[i] > 1 ? NULL : w->window[i];
        const int axis = count;
        label[count++] = w->label[i];
        if (a) {
            x = node_window(g, x, axis, a->s, a->d, a->p, a->count, a->taps, a->border, a->value);
            label[count++] = w->tap[i];
        }
    }
    return x;
}

/* The numbers that go with the elements [at, at + extent) of the joined axis. */
static Node *numbers_of(Graph *g, const Node *n, Node *const *in, const Windows *w, int64_t at,
                        int64_t extent) {
    Node *y = in[!w->k];
    const int axis =
        w->joined < 0 ? -1 : find_label(labels(n, !w->k), y->type->rank, w->label[w->joined]);
    return axis < 0 ? y : node_slice_axis(g, y, axis, at, extent, 1);
}

/* What all taps that read one of `r` equal places multiply it by, along an axis, in the order of
 * the places that it goes to. */
static Node *sums_of_taps(Graph *g, Node *y, int axis, int64_t r) {
    const int64_t taps = y->type->dim[axis];
    Node *reverse = node_flip(g, y, 1u << axis);
    Node *shown = node_window(g, reverse, axis, 1, 1, r - 1, taps + r - 1, r, BORDER_VALUE, 0);
    return node_fold(g, OP_SUM, shown, 1u << (axis + 1));
}

static Node *product(Graph *g, const Node *n, int k, Node *x, const int8_t *lx, Node *y,
                     const int8_t *to, int rank) {
    const int8_t *ly = labels(n, !k);
    return k == 0 ? node_contract(g, x, y, lx, ly, to, rank)
                  : node_contract(g, y, x, ly, lx, to, rank);
}

/* The product with part `p`, which repeats places; y: its numbers. */
static Node *product_once(Graph *g, const Node *n, const Windows *w, int p, Node *y) {
    const int64_t *factor = w->factor[p];
    Node *once = w->once[p];
    int8_t list[MD_RANK], to[MD_RANK];
    Attr sum[MD_RANK];
    int count = 0, sums = 0;
    for (int i = 0; i < once->type->rank; i++) {
        if (factor[i] > 1) {
            y = sums_of_taps(g, y, find_label(labels(n, !w->k), y->type->rank, w->tap[i]),
                             factor[i]);
        }
    }
    for (int j = 0; j < n->type->rank; j++) {
        const int8_t label = n->attr->lo_[j];
        to[count++] = label;
        const int i = find_label(w->label, once->type->rank, label);
        if (i >= 0 && factor[i] > 1) {
            const Attr *a = w->window[i];
            const int64_t places = once->type->dim[i], wide = a->taps + factor[i] - 1;
            const int64_t at = a->taps - 1 - a->p;
            const bool inside = at <= 0 && factor[i] * (places - 1) + wide - at <= a->count;
            sum[sums++] = (Attr){.axis = j, /* those in front of it are added up behind it */
                                 .s = factor[i],
                                 .d = 1,
                                 .p = at,
                                 .count = places,
                                 .taps = wide,
                                 .taps_n = a->count,
                                 .border = inside ? BORDER_NONE : BORDER_VALUE};
            to[count++] = w->tap[i];
        }
    }
    Node *x = with_windows(g, once, w, factor, list);
    Node *made = product(g, n, w->k, x, list, y, to, count);
    for (int i = sums - 1; i >= 0; i--) {
        sum[i].axis += i;
        made = node_overlap_add(g, made, &sum[i]);
    }
    return made;
}

/* The product with the parts that stay as they are; NULL: there are none. */
static Node *product_of_rest(Graph *g, const Node *n, Node *const *in, const Windows *w) {
    Node *rest[CONCAT_PARTS], *numbers[CONCAT_PARTS];
    int count = 0;
    int64_t at = 0;
    for (int p = 0; p < w->parts; p++) {
        const int64_t extent = w->joined < 0 ? 1 : w->part[p]->type->dim[w->joined];
        if (w->once[p] == w->part[p]) {
            rest[count] = w->part[p];
            numbers[count++] = numbers_of(g, n, in, w, at, extent);
        }
        at += extent;
    }
    if (count == 0) {
        return NULL;
    }
    int8_t list[MD_RANK];
    const int axis = find_label(labels(n, !w->k), in[!w->k]->type->rank, w->label[w->joined]);
    Node *x = count == 1 ? rest[0] : node_concat(g, rest, count, w->joined);
    Node *y = count == 1 ? numbers[0] : node_concat(g, numbers, count, axis);
    return product(g, n, w->k, with_windows(g, x, w, NULL, list), list, y, n->attr->lo_,
                   n->type->rank);
}

static Node *repeats_node(void *ctx, Graph *g, const Node *n, Node *const *in) {
    const int64_t least = *(const int64_t *)ctx;
    Windows w;
    if (!find_repeats(g, n, in, 0, least, &w) && !find_repeats(g, n, in, 1, least, &w)) {
        return NULL;
    }
    const bool exact = g->exact;
    g->exact = n->attr->exact;
    Node *made = product_of_rest(g, n, in, &w);
    int64_t at = 0;
    for (int p = 0; p < w.parts; p++) {
        const int64_t extent = w.joined < 0 ? 1 : w.part[p]->type->dim[w.joined];
        if (w.once[p] != w.part[p]) {
            Node *y = numbers_of(g, n, in, &w, at, extent);
            Node *part = product_once(g, n, &w, p, y);
            made = made ? node_map2(g, OP_ADD, made, part) : part;
        }
        at += extent;
    }
    g->exact = exact;
    return made;
}

/* --- the pass --------------------------------------------------------------------------------- */

static bool is_wanted(const Node *n) {
    Windows w;
    return find_repeats(NULL, n, n->in, 0, repeats_least, &w) ||
           find_repeats(NULL, n, n->in, 1, repeats_least, &w);
}

bool repeats_applies(const Region *region) {
    return points_fixed(region) && region_any(region, is_wanted);
}

Region *pass_repeats(Graph *g, const Region *region, int64_t least) {
    const bool fixed = points_fixed(region);
    return region_rebuild(g, region, fixed ? repeats_node : NULL, &least);
}
