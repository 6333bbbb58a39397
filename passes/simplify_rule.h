/* simplify_rule: the rules of passes/simplify*.c and what they share. */
#ifndef MDLC_PASSES_SIMPLIFY_RULE_H
#define MDLC_PASSES_SIMPLIFY_RULE_H

#include "compiler/graph.h"

/* `n` tells the op, attributes and type, `in` the operands to use (already rebuilt). Gives an equal
 * node that is less work, or NULL when the rule does not apply. */
typedef Node *(*SimplifyRule)(Graph *g, const Node *n, Node *const *in);

typedef struct {
    OpCode op; /* OP_COUNT: every elementwise op */
    SimplifyRule rule;
} SimplifyRow;

/* They end with rule NULL. The late ones wait until no other rule applies. */
extern const SimplifyRow simplify_maps[], simplify_views[], simplify_folds[], simplify_late[];

/* Whether every element of `n` is one constant, and which (integers below 2^53). */
bool is_uniform(const Node *n, double *value);
bool is_number(const Node *n, double value);
/* `a` with another operand list; same op and attributes as `n`, type inferred from `type`. */
Node *same_op(Graph *g, const Node *n, Node *const *in, Type type);
/* Of a node, while the pass is at work: how often those that matter read it, and whether what is
 * made of it place by place jumps: is rounded, compared or put in order, so that its last bit may
 * make another number of it. Sums and products end that. */
typedef struct {
    int count;
    bool jumps;
} Reads;

/* Whether something else than `n` reads its operand k too: it stays, whatever `n` becomes. */
static inline bool is_shared(const Node *n, int k) {
    const Reads *reads = n->in[k]->note; /* NULL: a rule is tried by itself */
    return reads && reads->count > 1;
}
/* Whether `x` repeats one value along all of `axes`. */
static inline bool same_along(const Node *x, uint32_t axes) {
    return x->op == OP_BROADCAST && (x->attr->axes & axes) == axes;
}
Type without_axes(Type t, uint32_t axes);
/* `axes` of the result of a node, counted among those that are not in `dropped`. */
uint32_t axes_without(uint32_t axes, uint32_t dropped, int rank);

/* A copy of the region where every value without elements is a constant, and so is what is made of
 * nothing else. Its derivatives are expanded, or taken to points that no rule can change. */
bool is_empty(const Node *n); /* a value without elements */
Region *region_without_empty(Graph *g, const Region *region);

/* A bias or a ReLU behind an extreme, as a pool, in front of which it stands. */
Node *extreme_of_ordered(Graph *g, const Node *n, Node *const *in);

/* `x` with axes labelled `list` as a value with axes `lo`, repeated along those that it lacks. */
Node *spread(Graph *g, Node *x, const int8_t *list, const int8_t *lo, Type result);

#endif
