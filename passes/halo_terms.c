/* halo_terms: sums over overlapping windows of a product's terms. Where they stay, at strides, or
 * where the product would have few columns, the terms lie place by place: one product makes them,
 * without batches, and loops along the channels add them up.
 * Needs and gives: see halo_rule.h; docs/decisions/0097-terms-by-places.md. */
#include "compiler/program.h"
#include "passes/halo_rule.h"

#include <string.h>

int64_t halo_places_beside(int64_t lanes, int64_t columns, int64_t places, int64_t taps) {
    enum { WORTH = 70 }; /* percent of the time, most */
    int64_t best = 1, least = taps * WORTH;
    for (int64_t by = 2; by * columns <= lanes; by++) {
        int64_t time = (taps + by - 1) * 100 / by;
        if (places % by == 0 && time < least) {
            best = by;
            least = time;
        }
    }
    return best;
}

bool halo_has_fewer_terms(const Node *n, const Node *contract) {
    enum { WORTH = 70 }; /* percent of the time, most: terms are stored, and added up */
    const Attr *o = n->attr;
    int a = halo_windowed(n, contract);
    if (a < 0) {
        return false;
    }
    int64_t lanes = MD_ALIGN / (int64_t)elem_bytes(n->type->elem), columns = 1, along = 1;
    for (int i = 0; i < contract->type->rank; i++) {
        bool own = has_label(contract, a, contract->attr->lo_[i]);
        columns *= own || i == o->axis + 1 ? 1 : contract->type->dim[i];
    }
    const Node *x = contract->in[a]; /* windows along other axes, whose places may be beside */
    for (; along == 1 && (x->op == OP_PERMUTE || x->op == OP_WINDOW); x = x->in[0]) {
        along = x->op == OP_WINDOW ? x->attr->taps : 1;
    }
    int64_t by = columns < lanes ? halo_places_beside(lanes, columns, lanes, along) : 1;
    int64_t windows = o->taps_n * o->taps * (along + by - 1) / by;
    int64_t terms = o->count * ((columns * o->taps + lanes - 1) / lanes) * along;
    return columns < lanes && terms * 100 < windows * WORTH &&
           type_count(*contract->in[a]->type) >= LEAST_WORK / columns;
}

bool halo_find_sums(const Node *n, HaloSums *s) {
    const int rank = n->type->rank;
    *s = (HaloSums){.a = -1};
    for (; n->op == OP_OVERLAP_ADD && s->count < MD_RANK; n = n->in[0]) {
        s->sum[s->count++] = n->attr;
    }
    s->contract = n->op == OP_PERMUTE ? n->in[0] : n;
    if (s->contract->op != OP_CONTRACT || rank + s->count > MD_RANK) {
        return false;
    }
    int8_t label[MD_RANK];
    for (int i = 0; i < n->type->rank; i++) {
        label[i] = s->contract->attr->lo_[n->op == OP_PERMUTE ? n->attr->map[i] : i];
    }
    for (int i = s->count - 1, left = n->type->rank; i >= 0; i--, left--) {
        const int at = s->sum[i]->axis;
        s->window[i] = label[at];
        s->tap[i] = label[at + 1];
        const int a = halo_side(s->contract, label[at], label[at + 1]);
        if (a < 0 || (s->a >= 0 && a != s->a)) {
            return false;
        }
        s->a = a;
        memmove(&label[at + 1], &label[at + 2], sizeof *label * (size_t)(left - at - 2));
    }
    memcpy(s->result, label, sizeof label);
    return s->count > 0 && halo_has_results(s->contract, s->a, -1);
}

/* The product with the labels of its result in order `to`, and the numbers in that of the columns,
 * behind what is summed. */
static Node *product_in_order(Graph *g, const HaloSums *s, const int8_t *to) {
    const Node *contract = s->contract, *y = contract->in[!s->a];
    const int8_t *own = labels(contract, !s->a);
    const int rank = contract->type->rank;
    int8_t list[MD_RANK];
    int map[MD_RANK], n = 0;
    for (int i = 0; i < y->type->rank; i++) {
        if (find_label(to, rank, own[i]) < 0) {
            list[n] = own[i];
            map[n++] = i;
        }
    }
    for (int i = 0; i < rank; i++) {
        int at = find_label(own, y->type->rank, to[i]);
        if (at >= 0) {
            list[n] = to[i];
            map[n++] = at;
        }
    }
    Node *in[2];
    in[s->a] = contract->in[s->a];
    in[!s->a] = node_permute(g, contract->in[!s->a], map);
    const int8_t *lists[2] = {s->a == 0 ? labels(contract, 0) : list,
                              s->a == 0 ? list : labels(contract, 1)};
    return node_contract(g, in[0], in[1], lists[0], lists[1], to, rank);
}

Node *halo_sums_of_places(Graph *g, const Node *n) {
    HaloSums s;
    if (!halo_find_sums(n, &s)) {
        return NULL;
    }
    const int rank = s.contract->type->rank, sums = n->type->rank;
    int8_t to[MD_RANK], label[MD_RANK];
    int map[MD_RANK], made_at = 0, beside = 0, count = 0;
    for (int kind = -2; kind <= s.count; kind++) { /* lines, places, each of the taps, columns */
        for (int i = 0; i < rank; i++) {
            const int8_t l = s.contract->attr->lo_[i];
            const int tap = find_label(s.tap, s.count, l);
            const int place = find_label(s.window, s.count, l) < 0 ? -2 : -1;
            if ((has_label(s.contract, s.a, l) ? place : tap >= 0 ? tap : s.count) == kind) {
                to[made_at++] = l;
            }
        }
    }
    for (int i = 0; i < rank; i++) { /* each tap behind its window */
        const int window = find_label(s.window, s.count, to[i]);
        if (find_label(s.tap, s.count, to[i]) < 0) {
            label[count++] = to[i];
            map[beside++] = i;
        }
        if (window >= 0) {
            map[beside++] = find_label(to, rank, s.tap[window]);
        }
    }
    Node *made = node_permute(g, product_in_order(g, &s, to), map);
    for (int i = s.count - 1; i >= 0; i--) { /* further taps stand in front of it */
        Attr sum = attr_copy(s.sum[i]);
        sum.axis = find_label(label, sums, s.window[i]);
        for (int j = 0; j < i; j++) {
            sum.axis += find_label(label, sums, s.window[j]) < find_label(label, sums, s.window[i]);
        }
        made = node_overlap_add(g, made, &sum);
    }
    for (int i = 0; i < sums; i++) {
        map[i] = find_label(label, sums, s.result[i]);
    }
    return node_permute(g, made, map);
}
