/* halo_phases: sums over overlapping windows at strides of a product's terms, as products. What is
 * added up at a place are the terms of every r-th tap,
 *
 *     y[m] = sum over (i, t) with r*i + t - p = m of (sum over o of a[i, o] b[t, o])
 *     y[r*j + f - p] = sum over (s, o) of a[j - s, o] b[r*s + f, o], f < r
 *
 * so r neighbouring places (the phases f) are columns of one place j beside one another: windows of
 * a at stride 1, and no buffer holds the terms. Places that a whole number of phases adds at the
 * borders are made and not read.
 *
 * Where taps do not fill the phases, these are parts of one value, each a product over windows with
 * taps of its own, which together multiply what the terms do:
 *
 *     y[r*q + g] = sum over (k, o) of a[q + e - k, o] b[r*k + f, o], r*e + f = g + p
 *
 * Needs and gives: see halo_rule.h; docs/decisions/0129-phases-apart.md. */
#include "compiler/index.h"
#include "compiler/program.h"
#include "passes/halo_rule.h"

#include <string.h>

/* Of one of the sums: its phases, all of them or one, and windows of the operand at stride 1 that
 * these read. */
typedef struct {
    int64_t r, taps, places;
    int64_t border; /* places that the first window reads in front of the operand */
    int64_t cut;    /* of all: phases of the first place that are no places of the result */
    int64_t tap;    /* of one: its first one */
} Phase;

static Phase phases_of(const Attr *o) {
    const int64_t first = floor_div(o->p, o->s), last = (o->taps_n - 1 + o->p) / o->s;
    const int64_t taps = (o->taps + o->s - 1) / o->s;
    return (Phase){.r = o->s,
                   .taps = taps,
                   .places = last - first + 1,
                   .border = taps - 1 - first,
                   .cut = o->p - first * o->s};
}

/* Places that an extent which is no multiple of the stride has more are cut. */
static Phase phase_of(const Attr *o, int64_t phase) {
    const int64_t first = floor_div(phase + o->p, o->s), tap = phase + o->p - first * o->s;
    const int64_t taps = (o->taps - tap + o->s - 1) / o->s;
    return (Phase){.r = o->s,
                   .taps = taps,
                   .places = (o->taps_n + o->s - 1) / o->s,
                   .border = taps - 1 - first,
                   .tap = tap};
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
        const Phase f = phase[i] = phases_of(o);
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
    int8_t phase[MD_RANK]; /* labels */
    int8_t to[MD_RANK];    /* of the result: places, each before its phases, and columns */
    int rank;              /* of the result */
    int64_t dim[MD_RANK];  /* of the result with phases and places as one axis each */
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

/* The labels of a result: what the operand with the windows has, and columns behind it; back[]:
 * where each label of the sums is. */
static void order_result(const HaloSums *s, int rank, int8_t *to, int *back) {
    int count = 0;
    for (int columns = 0; columns < 2; columns++) {
        for (int j = 0; j < rank; j++) {
            if (has_label(s->contract, s->a, s->result[j]) != columns) {
                to[count] = s->result[j];
                back[j] = count++;
            }
        }
    }
}

static void settle_result(const Node *n, Phases *p) {
    int8_t to[MD_RANK];
    const int rank = n->type->rank;
    order_result(&p->s, rank, to, p->back);
    for (int j = 0; j < rank; j++) {
        const int i = find_label(p->s.window, p->s.count, p->s.result[j]), at = p->back[j];
        p->dim[at] = i < 0 ? n->type->dim[j] : p->f[i].places * p->f[i].r;
        p->lo[at] = i < 0 ? 0 : p->f[i].cut;
        p->extent[at] = n->type->dim[j];
        p->step[at] = 1;
    }
    for (int k = 0; k < rank; k++) {
        const int i = find_label(p->s.window, p->s.count, to[k]);
        p->to[p->rank++] = to[k];
        if (i >= 0) {
            p->to[p->rank++] = p->phase[i];
        }
    }
}

/* The operand that has the windows, with those that phases read; list[]: its labels. */
static Node *windows_of_phases(Graph *g, const HaloSums *s, const Phase *f, int8_t *list) {
    Node *x = s->contract->in[s->a];
    memcpy(list, labels(s->contract, s->a), (size_t)x->type->rank);
    for (int i = 0; i < s->count; i++) {
        const int rank = x->type->rank, axis = find_label(list, rank, s->window[i]);
        x = node_window(g, x, axis, 1, 1, f[i].border, f[i].places, f[i].taps, BORDER_VALUE, 0);
        memmove(&list[axis + 2], &list[axis + 1], (size_t)(rank - axis - 1));
        list[axis + 1] = s->tap[i];
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

/* Numbers, of whose axes label[] are the labels, in the order in which they are read, of labels
 * order[]: batches, which are labels of the result, to[], in front of the first column; what is
 * summed, as list[] of the other operand has it, where channels in front of the first places lie
 * behind all taps; columns. */
static Node *numbers_in_order(Graph *g, const HaloSums *s, Node *y, const int8_t *label,
                              const int8_t *list, int own, const int8_t *to, int rank,
                              int8_t *order) {
    const int of = y->type->rank;
    int map[MD_RANK], n = 0, columns = rank, first = own;
    while (columns > 0 && !has_label(s->contract, s->a, to[columns - 1])) {
        columns--;
    }
    for (int i = 0; i < s->count; i++) {
        const int at = find_label(list, own, s->window[i]);
        first = at < first ? at : first;
    }
    for (int i = 0; i < columns; i++) {
        if (find_label(label, of, to[i]) >= 0) {
            order[n++] = to[i];
        }
    }
    for (int i = 0; i < own; i++) {
        const int8_t summed = list[(first + i) % own];
        if (find_label(label, of, summed) >= 0 && find_label(to, rank, summed) < 0) {
            order[n++] = summed;
        }
    }
    for (int i = columns; i < rank; i++) {
        order[n++] = to[i];
    }
    for (int i = 0; i < of; i++) {
        map[i] = find_label(label, of, order[i]);
    }
    return node_permute(g, y, map);
}

/* The product of the windows that phases read by their numbers; label[]: of the axes of these. */
static Node *contract_phases(Graph *g, const HaloSums *s, const Phase *f, Node *numbers,
                             const int8_t *label, const int8_t *to, int rank) {
    int8_t list[2][MD_RANK];
    Node *in[2];
    in[s->a] = windows_of_phases(g, s, f, list[s->a]);
    in[!s->a] = numbers_in_order(g, s, numbers, label, list[s->a], in[s->a]->type->rank, to, rank,
                                 list[!s->a]);
    Node *made = node_contract(g, in[0], in[1], list[0], list[1], to, rank);
    Node *plain = made->op == OP_CONTRACT ? halo_unbordered(g, made) : NULL;
    return plain ? plain : made;
}

Node *halo_product_of_phases(Graph *g, const Node *n) {
    Phases p;
    if (!find_phases(n, &p)) {
        return NULL;
    }
    int8_t label[MD_RANK];
    settle_result(n, &p);
    Node *taps = taps_of_phases(g, &p, label);
    Node *made = contract_phases(g, &p.s, p.f, taps, label, p.to, p.rank);
    made = node_reshape(g, made, n->type->rank, p.dim);
    return node_permute(g, node_slice(g, made, p.lo, p.extent, p.step), p.back);
}

/* --- products apart --------------------------------------------------------------------------- */

enum { MOST = 8 }; /* phases: each is a kernel */

/* Are the terms more than the places, of large products whose columns fill vectors? */
static bool parts_are_worth(const Node *n, const HaloSums *s) {
    const Node *contract = s->contract;
    double phases = 1, taps = 1, columns = 1, work = (double)type_count(*contract->type);
    for (int i = 0; i < s->count; i++) {
        const Attr *o = s->sum[i];
        if (o->d != 1 || o->s < 1 || o->taps < o->s || o->taps_n < 1) {
            return false;
        }
        phases *= (double)o->s;
        taps *= (double)o->taps;
    }
    for (int i = 0; i < n->type->rank; i++) {
        columns *= has_label(contract, s->a, s->result[i]) ? 1 : (double)n->type->dim[i];
    }
    for (int i = 0; i < contract->in[s->a]->type->rank; i++) {
        const int8_t label = labels(contract, s->a)[i];
        const bool kept = find_label(contract->attr->lo_, contract->type->rank, label) >= 0;
        work *= kept ? 1 : (double)contract->in[s->a]->type->dim[i];
    }
    return phases > 1 && phases <= MOST && phases < taps && work >= LEAST_WORK &&
           columns >= TUNED(MD_ALIGN / (double)elem_bytes(n->type->elem), 1);
}

/* The numbers with the taps of a phase, the last ones first. */
static Node *taps_of_phase(Graph *g, const HaloSums *s, const Phase *f) {
    Node *y = s->contract->in[!s->a];
    uint32_t reverse = 0;
    for (int i = 0; i < s->count; i++) {
        const int axis = find_label(labels(s->contract, !s->a), y->type->rank, s->tap[i]);
        y = node_slice_axis(g, y, axis, f[i].tap, f[i].taps, f[i].r);
        reverse |= 1u << axis;
    }
    return node_flip(g, y, reverse);
}

/* A value of phases, those of the last sum innermost, with the places beside one another. */
static Node *places_of_phases(Graph *g, const HaloSums *s, Node *x, const int8_t *to, int rank) {
    int64_t apart[MD_RANK], dim[MD_RANK];
    int map[MD_RANK], count = 0;
    for (int i = 0; i < s->count; i++) {
        apart[i] = s->sum[i]->s;
    }
    memcpy(&apart[s->count], &x->type->dim[1], sizeof *dim * (size_t)rank);
    for (int i = 0; i < rank; i++) {
        const int of = find_label(s->window, s->count, to[i]);
        map[count++] = s->count + i;
        dim[i] = x->type->dim[i + 1];
        if (of >= 0) {
            map[count++] = of;
            dim[i] *= s->sum[of]->s;
        }
    }
    x = node_permute(g, node_reshape(g, x, s->count + rank, apart), map);
    return node_reshape(g, x, rank, dim);
}

Node *halo_phases_apart(Graph *g, const Node *n) {
    HaloSums s;
    if (!halo_find_sums(n, &s) || !parts_are_worth(n, &s) || n->type->rank + s.count > MD_RANK ||
        s.contract->in[s.a]->type->rank + s.count > MD_RANK) {
        return NULL;
    }
    int8_t to[MD_RANK];
    int back[MD_RANK], parts = 1;
    const int rank = n->type->rank;
    int64_t lo[MD_RANK] = {0}, extent[MD_RANK], step[MD_RANK];
    order_result(&s, rank, to, back);
    for (int i = 0; i < s.count; i++) {
        parts *= (int)s.sum[i]->s;
    }
    Node *made[MOST];
    for (int k = 0; k < parts; k++) { /* phases of the last sum innermost */
        Phase f[MD_RANK];
        int64_t dim[MD_RANK] = {1};
        for (int i = s.count - 1, left = k; i >= 0; i--) {
            f[i] = phase_of(s.sum[i], left % s.sum[i]->s);
            left /= (int)s.sum[i]->s;
        }
        Node *taps = taps_of_phase(g, &s, f);
        made[k] = contract_phases(g, &s, f, taps, labels(s.contract, !s.a), to, rank);
        memcpy(&dim[1], made[k]->type->dim, sizeof *dim * (size_t)rank);
        made[k] = node_reshape(g, made[k], rank + 1, dim);
    }
    for (int j = 0; j < rank; j++) {
        extent[back[j]] = n->type->dim[j];
        step[j] = 1;
    }
    Node *whole = places_of_phases(g, &s, node_concat(g, made, parts, 0), to, rank);
    return node_permute(g, node_slice(g, whole, lo, extent, step), back);
}
