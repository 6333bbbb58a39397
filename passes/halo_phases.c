/* halo_phases: sums over overlapping windows at strides of a product's terms, as one product. What
 * is added up at a place are the terms of every r-th tap,
 *
 *     y[m] = sum over (i, t) with r*i + t - p = m of (sum over o of a[i, o] b[t, o])
 *     y[r*j + f - p] = sum over (s, o) of a[j - s, o] b[r*s + f, o], f < r
 *
 * so r neighbouring places (the phases f) are columns of one place j beside one another: windows of
 * a at stride 1, and no buffer holds the terms. Places that a whole number of phases adds at the
 * borders are made and not read. Needs and gives: see halo_rule.h. */
#include "passes/halo_rule.h"

#include <string.h>

/* Of one of the sums: its phases, taps of one, and places with phases. */
typedef struct {
    int64_t r, taps, places;
    int64_t first; /* place of the operand that the first one reads with its last tap */
    int64_t cut;   /* phases of the first place that are no places of the result */
} Phase;

static Phase phase_of(const Attr *o) {
    const int64_t first = o->p >= 0 ? o->p / o->s : -((-o->p + o->s - 1) / o->s);
    const int64_t last = (o->taps_n - 1 + o->p) / o->s;
    return (Phase){.r = o->s,
                   .taps = (o->taps + o->s - 1) / o->s,
                   .places = last - first + 1,
                   .first = first,
                   .cut = o->p - first * o->s};
}

/* Would the product make at most WORTH percent of the multiplications of the terms? These are
 * stored, and read again to be added up. */
static bool phases_are_worth(const HaloSums *s, Phase *phase) {
    enum { WORTH = 130 };
    double now = 1, then = 100; /* of products of extents, which may be large */
    bool any = false;
    for (int i = 0; i < s->count; i++) {
        const Attr *o = s->sum[i];
        if (o->d != 1 || o->s < 1 || o->taps_n + o->p < 1) {
            return false;
        }
        const Phase f = phase[i] = phase_of(o);
        any = any || f.r > 1;
        now *= (double)(o->count * o->taps);
        then *= (double)(f.places * f.r * f.taps);
    }
    return any && then <= now * WORTH;
}

/* A product of phases as it is put together. */
typedef struct {
    HaloSums s;
    Phase f[MD_RANK];
    int8_t phase[MD_RANK];   /* labels */
    int8_t to[MD_RANK];      /* of the result: places, each before its phases, and columns */
    int8_t list[2][MD_RANK]; /* of the operands */
    int rank, own;           /* of the result, and of the operand that has the windows */
    int64_t dim[MD_RANK];    /* of the result with phases and places as one axis each */
    int64_t lo[MD_RANK], extent[MD_RANK], step[MD_RANK]; /* what of it is the sum */
    int back[MD_RANK];                                   /* its axes as those of the sum stand */
} Phases;

/* Is `n` such a sum, which may become a product of phases? */
static bool find_phases(const Node *n, Phases *p) {
    *p = (Phases){.rank = 0};
    if (!halo_find_sums(n, &p->s) || n->type->rank + p->s.count > MD_RANK) {
        return false;
    }
    const Node *contract = p->s.contract;
    int8_t label = 0;
    for (int i = 0; i < p->s.count; i++) {
        while (has_label(contract, 0, label) || has_label(contract, 1, label)) {
            label++;
        }
        p->phase[i] = label++;
    }
    return contract->in[0]->type->rank + p->s.count <= MD_RANK &&
           contract->in[1]->type->rank + p->s.count <= MD_RANK && phases_are_worth(&p->s, p->f);
}

static void settle_result(const Node *n, Phases *p) {
    int count = 0;
    for (int columns = 0; columns < 2; columns++) {
        for (int j = 0; j < n->type->rank; j++) {
            const int8_t label = p->s.result[j];
            const int i = find_label(p->s.window, p->s.count, label);
            if (has_label(p->s.contract, p->s.a, label) == columns) {
                continue;
            }
            p->to[p->rank++] = label;
            p->dim[count] = i < 0 ? n->type->dim[j] : p->f[i].places * p->f[i].r;
            p->lo[count] = i < 0 ? 0 : p->f[i].cut;
            p->extent[count] = n->type->dim[j];
            p->step[count] = 1;
            p->back[j] = count++;
            if (i >= 0) {
                p->to[p->rank++] = p->phase[i];
            }
        }
    }
}

/* The operand that has the windows, with those that phases read. */
static Node *windows_of_phases(Graph *g, Phases *p) {
    const int a = p->s.a;
    Node *x = p->s.contract->in[a];
    int8_t *list = p->list[a];
    p->own = x->type->rank;
    memcpy(list, labels(p->s.contract, a), (size_t)p->own);
    for (int i = 0; i < p->s.count; i++) {
        const Phase f = p->f[i];
        const int axis = find_label(list, p->own, p->s.window[i]);
        x = node_window(g, x, axis, 1, 1, f.taps - 1 - f.first, f.places, f.taps, BORDER_VALUE, 0);
        memmove(&list[axis + 2], &list[axis + 1], (size_t)(p->own - axis - 1));
        list[axis + 1] = p->s.tap[i];
        p->own++;
    }
    return x;
}

/* The numbers with the taps of each phase beside one another, their last taps first; label[]: of
 * their axes. */
static Node *taps_of_phases(Graph *g, const Phases *p, int8_t *label) {
    const HaloSums *s = &p->s;
    Node *y = s->contract->in[!s->a];
    int64_t dim[MD_RANK], around[MD_RANK] = {0};
    const int64_t none[MD_RANK] = {0};
    int count = 0;
    uint32_t reverse = 0;
    for (int i = 0; i < y->type->rank; i++) {
        const int at = find_label(s->tap, s->count, labels(s->contract, !s->a)[i]);
        label[count] = labels(s->contract, !s->a)[i];
        dim[count++] = at < 0 ? y->type->dim[i] : p->f[at].taps;
        if (at >= 0) {
            around[i] = p->f[at].taps * p->f[at].r - y->type->dim[i];
            reverse |= 1u << (count - 1);
            label[count] = p->phase[at];
            dim[count++] = p->f[at].r;
        }
    }
    Node *whole = node_pad(g, y, none, around, BORDER_VALUE, 0);
    return node_flip(g, node_reshape(g, whole, count, dim), reverse);
}

/* The same in the order in which they are read: batches, which are labels of the result that places
 * follow; what is summed, as the other operand has it, where channels in front of the first places
 * lie behind all taps; columns. */
static Node *numbers_of_phases(Graph *g, Phases *p) {
    const int a = p->s.a;
    const int8_t *list = p->list[a];
    int8_t label[MD_RANK], *order = p->list[!a];
    int map[MD_RANK], n = 0, columns = p->rank, first = p->own;
    Node *y = taps_of_phases(g, p, label);
    const int of = y->type->rank;
    while (columns > 0 && !has_label(p->s.contract, a, p->to[columns - 1])) {
        columns--;
    }
    for (int i = 0; i < p->s.count; i++) {
        const int at = find_label(list, p->own, p->s.window[i]);
        first = at < first ? at : first;
    }
    for (int i = 0; i < columns; i++) {
        if (find_label(label, of, p->to[i]) >= 0) {
            order[n++] = p->to[i];
        }
    }
    for (int i = 0; i < p->own; i++) {
        const int8_t own = list[(first + i) % p->own];
        if (find_label(label, of, own) >= 0 && find_label(p->to, p->rank, own) < 0) {
            order[n++] = own;
        }
    }
    for (int i = columns; i < p->rank; i++) {
        order[n++] = p->to[i];
    }
    for (int i = 0; i < of; i++) {
        map[i] = find_label(label, of, order[i]);
    }
    return node_permute(g, y, map);
}

Node *halo_product_of_phases(Graph *g, const Node *n) {
    Phases p;
    if (!find_phases(n, &p)) {
        return NULL;
    }
    Node *in[2];
    settle_result(n, &p);
    in[p.s.a] = windows_of_phases(g, &p);
    in[!p.s.a] = numbers_of_phases(g, &p);
    Node *made = node_contract(g, in[0], in[1], p.list[0], p.list[1], p.to, p.rank);
    Node *plain = made->op == OP_CONTRACT ? halo_unbordered(g, made) : NULL;
    made = node_reshape(g, plain ? plain : made, n->type->rank, p.dim);
    return node_permute(g, node_slice(g, made, p.lo, p.extent, p.step), p.back);
}
