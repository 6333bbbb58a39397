/* work: what one kernel computes, of no target: index spaces, and values for their elements.
 *
 * A Work is a list of parts that run one behind the other: what a part stores, the parts behind it
 * may read. It holds no statements: which loops run over the spaces, in which order sums are added,
 * what is done by threads and what is kept where is a schedule's choice (passes/schedule). All
 * expressions and indices are those of one Kernel, which the schedule fills. */
#ifndef MDLC_PASSES_LOWER_WORK_H
#define MDLC_PASSES_LOWER_WORK_H

#include "compiler/kernel.h"
#include "passes/lower/needed.h"

/* A flat index space and the axes that its digits became. */
typedef struct {
    int64_t count;
    const char *name;
    int n;
    int64_t digit[MD_RANK]; /* outermost first */
    int axis[MD_RANK];
    AxisSet set;
} Radix;

const Index *radix_flat(Kernel *k, const Radix *r);
int space_axes(const Radix *r); /* axes worth a loop: none of a space of one element */
AxisSet space_set(const Radix *r);

/* A value on its way to memory. */
typedef struct {
    const Arg *arg; /* NULL: to no memory, but the name of `named` for the parts behind */
    const Index *index;
    const Expr *value;
    const Expr *named;
    OpCode add; /* OP_CONST: overwrites; else what combines it with the others of that place */
    uint32_t owner;
} Root;
typedef VEC(Root) RootList;

/* Two operands that are loads at strides, the sum of whose products over some axes is asked for. */
enum { IN_A = 1, IN_B = 2, IN_C = 4 };

typedef struct {
    int nlabel;
    Radix space[3 * MD_RANK]; /* of each label, */
    int in[3 * MD_RANK];      /* and which of the three tensors have it */
    const Expr *load[2];      /* the operands at the axes of the labels */
    const Type *copy[2];      /* the operand as a schedule is to make it, by work_copy; NULL */
    Elem rounds[2];           /* f32 in memory, multiplied as what so many bits hold; TY_ERROR */
    Band band;                /* of its labels: what counts of it */
    Band border[BORDERS_MOST]; /* beside borders of zeros, of each axis that windows run along */
    int nborder;
    const Index *place;       /* where the product goes, if anything takes it as it comes: dense, */
    const Buf *part_of;       /* or, not NULL, in the part of this that a concatenation has */
    Elem elem;
    int64_t count; /* elements of the result */
    uint32_t owner;
    bool tried;   /* a schedule has looked at it, */
    void *tiling; /* and found this */
} Product;

typedef enum {
    PART_MAP,     /* roots at each element of `rows` */
    PART_ROWS,    /* for each of `rows`: folds and roots along it, in spaces of their own */
    PART_COLUMN,  /* at each of `rows` and `columns`: roots; those that `add`, over `terms`, each of
                     which is a row as in ROWS where it is `staged` */
    PART_TOTAL,   /* roots whose values are folds over all `terms` */
    PART_PRODUCT, /* a product, and what is made of it at each of its elements */
    PART_RUNNING, /* of `rows`, `columns`: `first`, then along `axis` roots, `add`ed to `before` */
    PART_SCATTER, /* `first` along `axis`, then for each of `terms` roots, added to `before` */
    PART_ORDER,   /* of each of `rows` the places, `columns`, of the first ones of its `terms` */
    PART_KINDS
} PartKind;

typedef struct {
    PartKind kind;
    Radix rows, terms, columns;
    RootList roots;
    RootList first;
    int axis;
    const Expr *before; /* what stands at the place of roots.at[0] or, RUNNING, before it */
    const Index *to;    /* SCATTER: where along `axis` a term goes */
    const Expr *term;   /* ORDER: what is put in order; the value of its roots is the place as */
    bool descending;    /* the first of them has stored it */
    bool staged;        /* COLUMN: folds along the columns, and spaces of their own */
    Product *product;
} Part;

typedef struct {
    Kernel *k;
    Arena *scratch; /* until the kernel is done */
    bool library;   /* products by the library of --blas, where it has them */
    bool in_place;  /* a product reads what a copy with its border would be made of, */
    bool refused;   /* and its schedule needs the copy */
    VEC(Part) part;
} Work;

/* A workspace of the kernel; with `threads` that many of the type, one a thread. */
Buf *work_buf(Work *w, Type type, int threads, const char *name);
/* What is stored where element `label` of the product is `value`, and the dense place of that
 * element; NULL: it asks for other elements too. */
const Index *work_finish(Work *w, const Expr *value, const Index *const *label, RootList *roots);

/* Element `at` of the copy that a product makes of operand `k`, on its way into `to`, which has
 * room for all of one place of the first axis. */
Root work_copy(Work *w, int k, const Arg *to, const Index *const *at);

#endif
