/* SPDX-License-Identifier: 0BSD */
/* tile_shape: the shape of a contraction, and the sizes by which plans cut it (tile_plan.h).
 *
 * Runs in the compiler, as plans do. Gives md_tile_normal, a pure function. */
#ifndef MD_TILE_SHAPE_H
#define MD_TILE_SHAPE_H

#include "runtime/tile.h"

/* Extents of absent axes are 1. Strides count elements, may be zero or negative, and are those of
 * whole indices: A[b1, b2, m1, m2, ko, k0, k1, k2] lies at a + b1 * a_b1 + ... . Flat row
 * m = i1 * m2 + i2. */
typedef struct {
    int64_t b1, b2;                                   /* batch axes: every operand may have them */
    int64_t m1, m2, n;                                /* rows and columns of C */
    int64_t k0, k1, k2;                               /* summed axes, k2 the fastest */
    int64_t a_b1, a_b2, a_m1, a_m2, a_k0, a_k1, a_k2; /* strides of A */
    int64_t b_b1, b_b2, b_k0, b_k1, b_k2, b_n;        /* strides of B */
    int64_t c_b1, c_b2, c_m1, c_m2, c_n;              /* strides of C */
    int64_t ko, a_ko, b_ko;                           /* a summed axis around k0 */
    int64_t flags; /* MD_TILE_ADD, NO_C, HALF, F16, EXACT, WIDE_A, WIDE_B, MADE, ACROSS, or 0;
                    * STREAMS, ENDS, BATCHED, WINOGRAD: where the plan can, it keeps that flag */
} md_tile_shape;

/* Sizes that decide how a product is cut, not what it is. With MDLC_ODD_SIZES they are so small
 * that small products have several blocks of everything, and ragged ones. */
#ifdef MDLC_ODD_SIZES
#define MD_TUNED(usual, odd) (odd)
#else
#define MD_TUNED(usual, odd) (usual)
#endif
enum {
    /* Up to so many products one thread is faster: 2^18 take some 3 us. Where all lies in the
     * second-level cache of one core, a team must first bring it over: that pays from 20 us on. */
    MD_TILE_SERIAL = MD_TUNED(262144, 1),
    MD_TILE_SERIAL_NEAR = MD_TUNED(1572864, 1),
    MD_TILE_HELPED_FROM = MD_TUNED(1 << 24, 1), /* products: units are worth asking for */
    MD_TILE_LIST = 8192, /* steps of a sum, most, that are listed, or whose panels batches share, */
    MD_TILE_LIST_ROWS = 1024,                  /* for so many rows, most */
    MD_TILE_BOTH = MD_TUNED(1 << 18, 1 << 10), /* bytes of X, most, that workers read all of */
    MD_TILE_NEAR = MD_TUNED(524288, 1),        /* bytes of the operands and the result */
    MD_TILE_PITCH = MD_TUNED(4096, 8),         /* bytes: rows so far apart evict each other */
    MD_TILE_KEEP_BATCHES =
        MD_TUNED(4, 2),           /* least, for which a worker keeps the panels of all of Y */
    MD_TILE_SWAP_MOST = 1 << 16,  /* elements of many rows that are packed to change roles */
    MD_TILE_DOTS_LEAST = 64,      /* steps of a sum, where there are as many columns */
    MD_TILE_KEEP_ROWS = 1 << 13,  /* most of one batch: more pay for packing again */
    MD_TILE_KEEP_PART = 3,        /* least elements of C for each of them */
    MD_TILE_KEEP_BYTES = 1 << 18, /* most, which the second-level cache holds */
    MD_TILE_BATCHED_ROWS = MD_TUNED(256, 40), /* of a batch, most: packing takes a while beside */
    MD_TILE_BATCHED_FROM = MD_TUNED(1 << 21, 64), /* products of a batch, least */
    MD_TILE_K_BYTES = MD_TUNED(3072, 40),   /* of a block of the summed axes, about */
    MD_TILE_K_ONCE = MD_TUNED(320, 40),     /* the same where packed panels are read once */
    MD_TILE_K_FAR = MD_TUNED(1024, 40),     /* the same where rows of the sum evict each other */
    MD_TILE_K_NEXT = MD_TUNED(192, 16),     /* the same where the next one is fetched meanwhile, */
    MD_TILE_NEXT_C = MD_TUNED(16384, 4096), /* for so many results, most, */
    MD_TILE_NEXT_BYTES = MD_TUNED(1 << 22, 4096), /* and operands that no near cache holds, */
    MD_TILE_CLAIM_BYTES = MD_TUNED(1 << 19, 256), /* as it does not such a result; its sums have */
    MD_TILE_CLAIM_STEPS = 256,            /* so many terms, most: longer ones hide what it takes */
    MD_TILE_K_DOTS = MD_TUNED(16384, 40), /* the same where vectors run along it */
    MD_TILE_ALONG_LEAST = MD_TUNED(256, 20), /* steps of a sum along which all vectors run, */
    MD_TILE_K_ALONG = MD_TUNED(8192, 40),    /* of a block of those, in bytes, about; */
    MD_TILE_ALONG_WORTH = 70, /* percent of the time, most, for which they do, and columns */
    MD_TILE_ALONG_PANEL = 4,  /* of a panel, most */
    MD_TILE_DOTS_PARTS = MD_TUNED(8, 3), /* of such a sum that is cut, about */
    MD_TILE_LONG = MD_TUNED(256, 4),   /* of dot products, so that adding their lanes is little */
    MD_TILE_K_UNIT = MD_TUNED(16, 3),  /* such blocks are multiples of this */
    MD_TILE_GROUP = MD_TUNED(1024, 3), /* blocks of the summed axes that are added one to another */
    MD_TILE_CHUNKED = MD_TUNED(1572864, 200),      /* products from which the sum is cut, */
    MD_TILE_CHUNKED_MORE = MD_TUNED(1 << 22, 200), /* where eight register tiles are made */
    MD_TILE_K_PART = MD_TUNED(64, 4),         /* of such a sum, at least in each part */
    MD_TILE_BLOCK_ROWS = MD_TUNED(224, 15),   /* of a block, at most */
    MD_TILE_BLOCK_FAR = MD_TUNED(112, 15),    /* where streams lie in cache with it, */
    MD_TILE_BLOCK_HIGH = MD_TUNED(384, 15),   /* in place, where they share packed panels */
    MD_TILE_ENDS_BYTES = MD_TUNED(196608, 1024), /* bytes, packed, where each tile ends */
    MD_TILE_BLOCK_SIZE = MD_TUNED(65536, 40), /* elements of a block of whole rows, about */
    MD_TILE_BLOCK_IN = MD_TUNED(8, 1),        /* panels of a block in place, */
    MD_TILE_BLOCK_OUT = MD_TUNED(4, 1),       /* of another, */
    MD_TILE_BLOCK_HALF = MD_TUNED(2, 1),      /* and of operands of 16 bits */
    MD_TILE_WIDE = MD_TUNED(8, 3),            /* vectors of a row from which three make a panel, */
    MD_TILE_WIDE_ROWS = MD_TUNED(192, 9),     /* for at least so many rows */
    MD_TILE_EARLY_BYTES = MD_TUNED(1 << 17, 1), /* of panels, least, that are asked for ahead, */
    MD_TILE_EARLY_ROWS = MD_TUNED(56, 4),       /* by tiles of so many rows, least */
    MD_TILE_TAKEN_ROWS = MD_TUNED(48, 4),     /* side by side that are packed, least, */
    MD_TILE_TAKEN_COLS = MD_TUNED(128, 4),    /* for so many columns, least, */
    MD_TILE_TAKEN_FROM = MD_TUNED(524288, 1), /* and products, */
    MD_TILE_TAKEN_MOST = 1 << 22,             /* of an X of so many bytes, most */
    MD_TILE_TAKEN_BYTES = MD_TUNED(32768, 1), /* of their packed rows, but of large products */
    MD_TILE_WINOGRAD_LEAST = MD_TUNED(16, 3), /* channels, and columns, for transformed tiles, */
    MD_TILE_WINOGRAD_SUMS = MD_TUNED(32, 3),  /* the same of sums over places, */
    MD_TILE_WINOGRAD_TILES = MD_TUNED(64, 4), /* tiles, for which weights are transformed, */
    MD_TILE_WINOGRAD_FROM = MD_TUNED(1 << 22, 64),  /* and products, least, */
    MD_TILE_WINOGRAD_FROM1 = MD_TUNED(1 << 20, 64), /* or of one image; */
    MD_TILE_WINOGRAD_WORTH = 65,              /* percent of these, most, that are left */
    MD_TILE_WINOGRAD_HIGH = MD_TUNED(56, 15), /* tiles of a block, about, twice that of a sum, */
    MD_TILE_WINOGRAD_BYTES = 1 << 19,         /* and bytes of their values; of all that a worker */
    MD_TILE_WINOGRAD_MOST = 1 << 20,          /* has, most, where a line of tiles is long */
    MD_TILE_WINOGRAD_PART = MD_TUNED(128, 20), /* channels of a block of a sum, and columns */
    MD_TILE_WINOGRAD_STRIDE = 3,              /* of windows, most */
    MD_TILE_WINOGRAD_TEAM = 8,                /* workers, about, which all together have */
    MD_TILE_WINOGRAD_HELD = MD_TUNED(3, 99),  /* so many halves of the operands, most, */
    MD_TILE_WINOGRAD_HELD1 = MD_TUNED(5, 99), /* or of one image, which is little beside a net */
    MD_TILE_WINOGRAD_HELD2 = MD_TUNED(2, 99), /* or by 2 x 2 weights, of which one becomes four */
    MD_TILE_SPAN_READS = 2, /* of each element of X, least, for which the rows are not packed */
    MD_TILE_SPAN_GAPS = 4   /* elements for each that is read, most, where those have no runs */
};
/* A block lower than its tiles would be passed over without an end. */
_Static_assert((int)MD_TILE_BLOCK_ROWS >= (int)MD_TILE_HIGH, "a block holds a register tile");

/* Merges axes that lie behind one another in every operand and moves single ones inwards. The
 * index spaces, and so the pointers and the epilogue's m and n, stay what they were. */
MD_FN md_tile_shape md_tile_normal(md_tile_shape s) {
    if (s.m2 == 1 || s.m1 == 1 || (s.a_m1 == s.m2 * s.a_m2 && s.c_m1 == s.m2 * s.c_m2)) {
        s.a_m2 = s.m2 == 1 ? s.a_m1 : s.a_m2;
        s.c_m2 = s.m2 == 1 ? s.c_m1 : s.c_m2;
        s.m2 *= s.m1;
        s.m1 = 1;
    }
    if (s.b2 == 1 || s.b1 == 1 ||
        (s.a_b1 == s.b2 * s.a_b2 && s.b_b1 == s.b2 * s.b_b2 && s.c_b1 == s.b2 * s.c_b2)) {
        s.a_b2 = s.b2 == 1 ? s.a_b1 : s.a_b2;
        s.b_b2 = s.b2 == 1 ? s.b_b1 : s.b_b2;
        s.c_b2 = s.b2 == 1 ? s.c_b1 : s.c_b2;
        s.b2 *= s.b1;
        s.b1 = 1;
    }
    for (int pass = 0; pass < 3; pass++) {
        if (s.k2 == 1 || s.k1 == 1 || (s.a_k1 == s.k2 * s.a_k2 && s.b_k1 == s.k2 * s.b_k2)) {
            s.a_k2 = s.k2 == 1 ? s.a_k1 : s.a_k2;
            s.b_k2 = s.k2 == 1 ? s.b_k1 : s.b_k2;
            s.k2 *= s.k1;
            s.k1 = 1;
        }
        if (s.k1 == 1 || s.k0 == 1 || (s.a_k0 == s.k1 * s.a_k1 && s.b_k0 == s.k1 * s.b_k1)) {
            s.a_k1 = s.k1 == 1 ? s.a_k0 : s.a_k1;
            s.b_k1 = s.k1 == 1 ? s.b_k0 : s.b_k1;
            s.k1 *= s.k0;
            s.k0 = 1;
        }
        if (s.k0 == 1 || s.ko == 1 || (s.a_ko == s.k0 * s.a_k0 && s.b_ko == s.k0 * s.b_k0)) {
            s.a_k0 = s.k0 == 1 ? s.a_ko : s.a_k0;
            s.b_k0 = s.k0 == 1 ? s.b_ko : s.b_k0;
            s.k0 *= s.ko;
            s.ko = 1;
        }
    }
    return s;
}

MD_FN int64_t md_tile_up(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}

#endif
