/* value: the value of a node at an index vector, as an expression of a kernel. */
#ifndef MDLC_PASSES_LOWER_VALUE_H
#define MDLC_PASSES_LOWER_VALUE_H

#include "compiler/kernel.h"

/* Axes over which whole rows are folded: several stages of one kernel share them, so that what one
 * stage computed is the same expression in the next. */
typedef struct {
    int64_t count;
    int naxis;
    int axis[MD_RANK]; /* outermost first */
    AxisSet set;
} InnerSpace;

typedef struct {
    const Node *node;
    int naxis;
    int axis[MD_RANK];
} OwnAxes;

typedef struct {
    const Node *node;
    const Expr *guard;
    const Index *at[MD_RANK];
    const Expr *value;
} ValueMemo;

typedef struct Values Values;
struct Values {
    Kernel *k;
    Arena *scratch;
    /* The value of a node that memory holds (or that the caller makes otherwise); NULL: it is
     * computed here from its operands. Called for every node but constants. */
    const Expr *(*stored)(void *ctx, Values *v, const Node *node, const Index *const *at);
    void *ctx;
    const Expr *guard; /* the condition under which the current value is needed; NULL: always */
    VEC(InnerSpace) inner;
    VEC(OwnAxes) own;
    VEC(ValueMemo) memo;
    int *cons;
    int cons_size;
};

void values_open(Values *v, Kernel *k, Arena *scratch);
const Expr *value_at(Values *v, const Node *node, const Index *const *at);
/* Asks `stored` again for what it was asked before. */
void values_forget(Values *v);
/* The same under a further condition (NULL: none). */
const Expr *value_under(Values *v, const Expr *guard, const Node *node, const Index *const *at);
/* One product of a CONTRACT, at an index for each label. */
const Expr *value_product(Values *v, const Node *node, const Index *const *label);
/* The position that the value of `index` at `at` picks among `extent`. */
const Index *value_position(Values *v, const Node *index, const Index *const *at, int64_t extent);
int64_t count_dims(int n, const int64_t *dim);
/* NULL: there is none of so many. */
const InnerSpace *inner_of(const Values *v, int64_t count);
/* The indices of `node` behind its `leading` axes: a place in the inner space of so many. */
void inner_place(Values *v, const Node *node, int leading, const Index **at);

/* Elements that a FOLD, ARGFOLD or CONTRACT combines into one. */
int64_t fold_count(const Node *node);
/* A fold or product of so few elements that it is written out in the expression. */
bool fold_is_tiny(const Node *node);
bool fold_is_loop(const Node *node); /* a FOLD that is not */
/* Made by a kernel of its own kind, never written out. */
bool node_has_kernel(const Node *node);
/* SCATTER_ADD with one position for each element of the result's batch: a selection. */
bool scatter_is_select(const Node *node);
uint32_t folded_axes(const Node *node); /* mask of operand axes that a FOLD removes */
OpCode fold_map(OpCode op);             /* OP_SUM: OP_ADD and so on */

#endif
