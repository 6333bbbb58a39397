/* halo_rule: what the files of pass_halo share. Included by halo*.c alone. */
#ifndef MDLC_PASSES_HALO_RULE_H
#define MDLC_PASSES_HALO_RULE_H

#include "compiler/graph.h"
#include "passes/halo.h"

enum {
    LEAST_RESULTS = TUNED(4, 2),         /* of each element, in the axes of the other operand */
    LEAST_WORK = TUNED(1 << 22, 1 << 12) /* multiplications worth numbers in another order */
};

/* The labels of operand `k` of a product. */
static inline const int8_t *labels(const Node *contract, int k) {
    return k == 0 ? contract->attr->la : contract->attr->lb;
}

static inline bool has_label(const Node *contract, int k, int label) {
    return find_label(labels(contract, k), contract->in[k]->type->rank, label) >= 0;
}

/* Are LEAST_RESULTS made of each element of operand `k`, label `summed` aside? */
bool halo_has_results(const Node *contract, int k, int summed);

/* How many neighbouring places share a vector: of few columns most of one would be empty. Each of
 * them multiplies the taps of all by numbers that are zero where it has none. */
int64_t halo_places_beside(int64_t lanes, int64_t columns, int64_t places, int64_t taps);

/* The operand that alone has label `window`, where the other one alone has `tap`; -1: none. */
int halo_side(const Node *contract, int window, int tap);

/* Of a CONTRACT whose terms OVERLAP_ADD `n` adds up: the operand that alone has the windows, where
 * the other one alone has the taps; -1: it is no such one. */
int halo_windowed(const Node *n, const Node *contract);

/* The product of the operands without borders; NULL: it has them already, or not all of a kind. */
Node *halo_unbordered(Graph *g, const Node *contract);

/* --- halo_terms.c --- */
/* A sum over windows of sums over windows ... of a product's terms, outermost first. */
typedef struct {
    const Node *contract;
    int a; /* the operand that has the windows; the other one has the taps */
    int count;
    const Attr *sum[MD_RANK];
    int8_t window[MD_RANK], tap[MD_RANK]; /* labels */
    int8_t result[MD_RANK];               /* of what is summed, in its order */
} HaloSums;
/* False: `n` is none, or few results are made of each element. */
bool halo_find_sums(const Node *n, HaloSums *sums);
/* Would a product over windows take longer than one that makes the terms that `n` adds up? Of few
 * columns most of a vector is empty there, and at a border numbers are multiplied by zeros; as
 * terms, the taps are columns, too. */
bool halo_has_fewer_terms(const Node *n, const Node *contract);
/* OVERLAP_ADDs of OVERLAP_ADDs ... of a product, outermost first, of terms that are made as a
 * matrix of whole rows, a place of the windows each, whose columns are the taps and behind them
 * what else the other operand gives; the sums lie in that order, too. NULL: they are none. */
Node *halo_sums_of_places(Graph *g, const Node *n);

/* --- halo_phases.c --- */
/* OVERLAP_ADDs at strides of a product as one product over windows, where most of the taps of its
 * phases are taps. NULL: they are none. */
Node *halo_product_of_phases(Graph *g, const Node *n);
/* The same as parts of one value, a product for each phase, where windows overlap and the products
 * are large. NULL: they are none. */
Node *halo_phases_apart(Graph *g, const Node *n);

#endif
