/* fuse: which nodes of a region get storage, and which of them one kernel computes. */
#ifndef MDLC_PASSES_FUSE_H
#define MDLC_PASSES_FUSE_H

#include "compiler/graph.h"

typedef enum {
    UNIT_NEST,    /* grid of rows; stages over each row; see Unit.rows */
    UNIT_COLUMN,  /* folds over axes in front of kept ones, of what is made on the way, which may be
                     a nest of rows; then a nest */
    UNIT_TOTAL,   /* folds of everything into numbers */
    UNIT_PRODUCT, /* a CONTRACT, then what follows it elementwise */
    UNIT_CALL,    /* another op with a kernel of its own kind */
    UNIT_LOOP
} UnitKind;

typedef struct Unit Unit;
struct Unit {
    UnitKind kind;
    int id;
    VEC(const Node *) atom; /* what it computes, topological; of a PRODUCT the CONTRACT first */
    int64_t rows;           /* NEST: number of rows; 0: elementwise over any rows that fit;
                               COLUMN: of the nest whose rows its folds are over; 0: of none */
    int64_t count;          /* NEST of rows 0: elements of every atom */
    Unit *into;             /* merged into that one */
    VEC(uint32_t) dep;      /* ids of what it reads, ascending: atoms and leaves in memory */
    VEC(uint32_t) anew;     /* atoms of others that it makes again of these */
    int written;            /* nodes that its expressions hold */
    bool early, late;       /* some atom is */
    bool forward;           /* the loss depends on some atom, and it is no adjoint */
    bool again;             /* makes something of an AGAIN: it comes behind the loss */
    bool pick;              /* its atom is: it merges with nothing and comes as soon as it can */
    int level;              /* above the levels of all that it reads */
    int changed, tried;     /* when it last merged, when it was last tried with all before it */
};

typedef struct {
    bool live : 1;
    bool leaf : 1;    /* memory holds it from the start: slot, table, parameter, result of a loop */
    bool atom : 1;    /* has a unit; not inlined into its users */
    bool sink : 1;    /* must be stored whoever reads it */
    bool copied : 1;  /* not stored: each product that reads it makes a copy of its own */
    bool again : 1;   /* a constant all over: users write it out, even where memory holds it too */
    bool shared : 1;  /* more than one product asks for a copy of it */
    bool in_turn : 1; /* and the last that does reads it one place of its first axis at a time */
    bool stored : 1;  /* read by another unit, or a sink */
    bool read : 1;    /* by a unit that wants it for more than a carry's start or a part */
    bool forward : 1; /* the loss depends on it, and it is no adjoint */
    bool early : 1;   /* the check of a train's loss and gradient norm waits for it */
    bool
        late : 1; /* becomes a parameter or state: no byte of it may be written before that check */
    bool pick : 1;     /* few elements of a large product: once they are read, that may go */
    bool plain : 1;    /* a rounding that more is made of than copies with borders */
    bool repeated : 1; /* many rows of a value read it */
    bool often : 1;    /* thousands of rows do */
    bool made : 1;     /* depends on no tensor in memory: draws, indices, constants */
    bool moved : 1;    /* someone reads it at other places than its own */
    bool in_row : 1;   /* of a COLUMN unit with rows, made in each of them */
    Unit *unit;
    int uses;      /* by nodes that are no views; repeated reads count more */
    int64_t reads; /* of elements, by those nodes */
    int cost;      /* of computing one element from atoms and leaves */
    int loads;     /* tensors that are read for it */
    int written;   /* nodes that the expression of one element holds */
} NodeInfo;

typedef struct {
    const Region *region;
    NodeInfo *info;   /* by Node.id */
    VEC(Unit *) unit; /* in an order that respects what they read */
} Fusion;

/* fuse: needs a region without marks, and what its results are for (NULL: the body of a loop);
 * gives units that cover every live node that is computed, with `stored` decided; changes no
 * values. `apart`: every float value gets a kernel and a place of its own, to be looked at.
 * `stored`: see Options. `total`: sums of at least so many elements are split into chunks.
 * `copies`: so many threads may each make a copy of the operand of a product; 0: none may.
 * `sums`: whether rows are added up while a nest makes them; NULL: never. */
Fusion *pass_fuse(Arena *arena, const Region *region, const EntryOut *out, bool apart,
                  uint64_t stored, int64_t total, int copies, RowSums *sums);

/* The copy that the product makes of its operand `k` for itself; NULL: it makes none. */
const Node *fuse_copied(const Fusion *f, const Node *contract, int k);

/* Whether the unit makes the atom, which memory holds, again of what it reads anyway. */
bool unit_makes_anew(const Unit *u, const Node *atom);
/* A fold over axes in front of kept ones, which a COLUMN unit makes. */
bool fold_is_column(const Node *node);
/* The first fold of a COLUMN or TOTAL unit; of a COLUMN that over its rows. */
const Node *unit_fold(const Unit *u);
/* Whether an atom of a COLUMN unit is made on the way, element by element of what is folded. */
bool unit_folds_over(const Unit *u, const Node *atom);

/* The number of leading axes whose extents multiply to `rows`; false when there is none. */
bool fuse_split(Type type, int64_t rows, int *leading);

#endif
