/* tiling: a product on its way to a plan of runtime/tile_plan.h: which of its axes are which of the
 * plan's. Of cpu_tile.c, cpu_roles.c and cpu_band.c. */
#ifndef MDLC_PASSES_SCHEDULE_TILING_H
#define MDLC_PASSES_SCHEDULE_TILING_H

#include "passes/schedule/product.h"
#include "runtime/blas_plan.h"

enum { BATCH, ROWS, COLUMNS, SUMMED, CLASSES };
enum { GROUPS = 4 }; /* axes of a plan for the sum, most */
enum { DIGITS = 2 * MD_RANK };

/* One axis of the index space with its stride in A, B and C. */
typedef struct {
    int axis;
    int64_t extent, a, b, c;
    bool lines; /* its first and last places read a border: it is an axis of the plan by itself */
    bool image; /* each has a copy of A that is made one at a time: it is a batch of the plan */
} Digit;

/* The axes of one class, outermost first; the first `loops` of them stay loops around the product,
 * the others form `ngroup` axes of the plan. */
typedef struct {
    int n, loops, ngroup;
    Digit digit[DIGITS];
    Digit group[GROUPS];
} Class;

struct Tiling {
    KernelBuild *b;
    const Product *of;
    Class class[CLASSES];
    bool swapped;       /* A is the second operand */
    bool apart;         /* rows are in the order of A alone: what is stored is so by the epilogue */
    bool across;        /* the block's rows are columns of the product, and its columns rows */
    const Index *block; /* dense place of the block's element */
    const Expr *strip;  /* the product there */
    const Arg *strip_arg;
    int batch, row, column; /* axes of the block */
    RootList roots;         /* what is stored there */
    int in_place;           /* which of them takes the product as it comes; -1: none */
    StreamList stream;      /* what of other memory they are made of, where that is much */
    const Arg *add;         /* C begins as this */
    md_tile plan;
    md_blas library;
    int workers;
    int banded; /* as of Tile */
};

/* --- cpu_roles.c --- */
/* Which operand gives the rows, and what is batches; false when the sum has too many axes. */
bool tiling_roles(Tiling *p);
/* Elements of the axes of a class that are no loops. */
int64_t tiling_count(const Class *c);
/* How often the loops around the tile run it. */
int64_t tiling_times(const Tiling *p);
/* An axis of the plan, counted from the innermost one; of one element: there is none. */
Digit tiling_group(const Class *c, int from_last);
/* The plan's shape with axes merged, but for lines of windows. */
md_tile_shape tiling_shape(const Tiling *p, int64_t flags);

/* --- cpu_band.c --- */
/* Tells the plan what of the product counts, where that is said of axes of the plan. */
void tiling_band(Tiling *p);

#endif
