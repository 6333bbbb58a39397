/* needed: see the header.
 *
 * Each axis of an operand is followed through the views that it is read by, as a sum of labels with
 * coefficients. Where a border of zeros is met, the places that lie inside of it are counted, for
 * the two labels of a window together; borders of different labels multiply. An axis that is no
 * such sum any more (a reshape that splits or joins it) is not followed: its terms all count. Needs
 * a graph at STAGE_OPTIMISED; changes nothing. */
#include "passes/lower/needed.h"

#include "compiler/program.h"

#include <string.h>

enum { TERMS = 2 };

/* Where an axis is read: base + sum of mul * label. */
typedef struct {
    bool known;
    int n, label[TERMS];
    int64_t mul[TERMS], base;
} Place;

typedef struct {
    int64_t extent[3 * MD_RANK];
    int64_t flops;
    uint64_t cut; /* labels whose borders are counted */
    const Node *of;
    Band *border; /* NULL: nobody asks for them */
    int nborder;
} Needed;

static bool place_add(Place *p, const Place *q, int64_t times) {
    if (!p->known || !q->known || p->n + q->n > TERMS) {
        return false;
    }
    for (int i = 0; i < q->n; i++) {
        p->label[p->n] = q->label[i];
        p->mul[p->n++] = times * q->mul[i];
    }
    p->base += times * q->base;
    return true;
}

static void place_scale(Place *p, int64_t times, int64_t offset) {
    for (int i = 0; i < p->n; i++) {
        p->mul[i] *= times;
    }
    p->base = p->base * times + offset;
}

/* How many of 0 .. n-1 have 0 <= base + mul * i < size. */
static int64_t inside_line(int64_t base, int64_t mul, int64_t n, int64_t size) {
    if (mul < 0) { /* the same from the other end */
        base += mul * (n - 1);
        mul = -mul;
    }
    if (mul == 0) {
        return base >= 0 && base < size ? n : 0;
    }
    int64_t first = base >= 0 ? 0 : (-base + mul - 1) / mul;
    int64_t end = size - base <= 0 ? 0 : (size - base + mul - 1) / mul;
    end = end < n ? end : n;
    return end > first ? end - first : 0;
}

/* A border that two labels have, one of the result and a summed one, is noted. */
static void note_border(Needed *w, const Place *p, int64_t size) {
    if (w->border == NULL || w->nborder == BORDERS_MOST || p->n != 2 || p->mul[0] <= 0 ||
        p->mul[1] <= 0) {
        return;
    }
    const Attr *a = w->of->attr;
    const int rank = w->of->type->rank;
    const bool kept[2] = {find_label(a->lo_, rank, (int8_t)p->label[0]) >= 0,
                          find_label(a->lo_, rank, (int8_t)p->label[1]) >= 0};
    if (kept[0] != kept[1]) {
        const int f = kept[0] ? 0 : 1;
        w->border[w->nborder++] = (Band){.known = true,
                                         .first = p->label[f],
                                         .second = p->label[!f],
                                         .by = {p->mul[f], p->mul[!f]},
                                         .from = -p->base,
                                         .until = size - p->base};
    }
}

/* The axis is read at `p`, and its elements outside of 0 .. size-1 are zeros. */
static void cut(Needed *w, const Place *p, int64_t size) {
    enum { TURNS_MOST = 1 << 16 };
    uint64_t labels = 0;
    for (int i = 0; i < p->n; i++) {
        labels |= UINT64_C(1) << p->label[i];
    }
    if (!p->known || p->n == 0 || (labels & w->cut) != 0) {
        return; /* a label with two borders: the first counts */
    }
    note_border(w, p, size);
    int64_t n0 = w->extent[p->label[0]], n1 = p->n > 1 ? w->extent[p->label[1]] : 1;
    int64_t mul = p->mul[0], other = p->n > 1 ? p->mul[1] : 0, count = 0;
    if (n1 > n0) { /* the shorter one is gone through */
        int64_t n = n0, m = mul;
        n0 = n1, n1 = n;
        mul = other, other = m;
    }
    if (n1 > TURNS_MOST || n0 == 0 || n1 == 0) {
        return;
    }
    for (int64_t i = 0; i < n1; i++) {
        count += inside_line(p->base + other * i, mul, n0, size);
    }
    w->flops = count_add(0, w->flops / (n0 * n1), count);
    w->cut |= labels;
}

static bool is_zero_border(const Attr *a) {
    return a->border == BORDER_VALUE && a->value == 0;
}

/* Axes that stay what they are. Those of one element come and go; others are lost. */
static void through_reshape(const Type *to, const Type *from, const Place *at, Place *in) {
    int i = 0, j = 0;
    while (j < from->rank) {
        if (from->dim[j] == 1) {
            in[j++] = (Place){.known = true};
            continue;
        }
        while (i < to->rank && to->dim[i] == 1) {
            i++;
        }
        if (i < to->rank && to->dim[i] == from->dim[j]) {
            in[j++] = at[i++];
            continue;
        }
        int64_t n = i < to->rank ? to->dim[i++] : 1, m = from->dim[j];
        in[j++] = (Place){0};
        while (n != m && (i < to->rank || j < from->rank)) {
            if (n < m && i < to->rank) {
                n *= to->dim[i++];
            } else if (j < from->rank) {
                m *= from->dim[j];
                in[j++] = (Place){0};
            } else {
                break;
            }
        }
    }
}

/* Where the operand of view `n` is read, given where `n` is. */
static void through_view(Needed *w, const Node *n, const Place *at, Place *in) {
    const Attr *a = n->attr;
    const Type *from = n->in[0]->type, *to = n->type;
    switch (n->op) {
    case OP_RESHAPE: through_reshape(to, from, at, in); break;
    case OP_PERMUTE:
        for (int i = 0; i < to->rank; i++) {
            in[a->map[i]] = at[i];
        }
        break;
    case OP_SLICE:
        for (int i = 0; i < to->rank; i++) {
            in[i] = at[i];
            place_scale(&in[i], a->step[i], a->lo[i]);
        }
        break;
    case OP_FLIP:
        for (int i = 0; i < to->rank; i++) {
            in[i] = at[i];
            if (a->axes >> i & 1) {
                place_scale(&in[i], -1, from->dim[i] - 1);
            }
        }
        break;
    case OP_BROADCAST:
        for (int i = 0, j = 0; i < to->rank; i++) {
            if (!(a->axes >> i & 1)) {
                in[j++] = at[i];
            }
        }
        break;
    case OP_PAD:
        for (int i = 0; i < to->rank; i++) {
            in[i] = at[i];
            in[i].base -= a->lo[i];
            if ((a->lo[i] > 0 || a->hi[i] > 0) && is_zero_border(a)) {
                cut(w, &in[i], from->dim[i]);
            }
        }
        break;
    case OP_WINDOW: {
        for (int i = 0; i < from->rank; i++) {
            in[i] = at[i <= a->axis ? i : i + 1];
        }
        Place *p = &in[a->axis];
        place_scale(p, a->s, -a->p);
        p->known = place_add(p, &at[a->axis + 1], a->d);
        if (is_zero_border(a)) {
            cut(w, p, a->taps_n);
        }
        break;
    }
    default: BUG("%s is no view", op_info[n->op].name);
    }
}

int64_t product_flops_all(const Node *node) {
    int64_t extent[3 * MD_RANK], flops = 2;
    int n = contract_labels(node, extent);
    for (int l = 0; l < n; l++) {
        flops = count_add(0, flops, extent[l]);
    }
    return flops;
}

static void look(Needed *w) {
    const Node *node = w->of;
    w->flops = product_flops_all(node);
    contract_labels(node, w->extent);
    for (int k = 0; k < 2; k++) {
        const int8_t *label = k == 0 ? node->attr->la : node->attr->lb;
        const Node *n = node->in[k];
        Place at[MD_RANK] = {{0}};
        for (int i = 0; i < n->type->rank; i++) {
            at[i] = (Place){.known = true, .n = 1, .label = {label[i]}, .mul = {1}};
        }
        for (; op_info[n->op].cls == CLASS_VIEW; n = n->in[0]) {
            Place in[MD_RANK] = {{0}};
            through_view(w, n, at, in);
            memcpy(at, in, sizeof at);
        }
    }
}

int64_t product_flops_needed(const Node *node) {
    Needed w = {.of = node};
    look(&w);
    return w.flops;
}

int product_borders(const Node *node, Band *list) {
    Needed w = {.of = node, .border = list};
    look(&w);
    return w.nborder;
}
