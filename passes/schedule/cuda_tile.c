/* cuda_tile: products by tiles in shared memory, and what follows them, element by element, by the
 * thread that has the element.
 * Needs a PRODUCT part; gives its tile; changes no values beyond the order of sums, which depends
 * on the number of terms alone. */
#include "passes/schedule/product.h"

#include <stddef.h>
#include <string.h>

static bool tile_fits(KernelBuild *b, const Part *part, void **plan) {
    Tiling *p = product_tiling(b, part, false);
    *plan = p;
    return p && product_shape(p).ko == 1; /* a sum has three axes there, most */
}

static int64_t product_flops(const Product *of) {
    int64_t flops = 2;
    for (int l = 0; l < of->nlabel; l++) {
        flops = count_add(0, flops, of->space[l].count);
    }
    return flops;
}

static Cost tile_cost(KernelBuild *b, const Part *part, const void *plan) {
    (void)b;
    (void)plan;
    return (Cost){.tile = product_flops(part->product), .bytes = product_bytes(part->product)};
}

/* The Work is made again as a COLUMN. */
static Cost loops_cost(KernelBuild *b, const Part *part, const void *plan) {
    (void)b;
    (void)plan;
    return (Cost){.loop = product_flops(part->product), .bytes = product_bytes(part->product)};
}

/* How many rows or columns of so many a thread makes: 8 threads side by side. */
static int64_t each_of(int64_t extent, int64_t least) {
    int64_t each = least;
    while (each < 4 && extent > 8 * each) {
        each *= 2;
    }
    return each;
}

static int64_t blocks_of(int64_t extent, int64_t each) {
    return (extent + 8 * each - 1) / (8 * each);
}

/* The plan is the shape, extents and strides, as md_product of runtime/cuda.h has them; of how many
 * terms a piece is; how many rows and columns a thread makes; how many groups of threads share the
 * terms. Sums of many terms that few blocks would make are made in pieces. */
static void tile_emit(KernelBuild *b, const Part *part, void *plan) {
    enum {
        PLENTY = 256,               /* blocks that fill a device */
        LEAST_SPAN = TUNED(256, 8), /* terms of a piece, at least */
        LONG_SPAN = 4096,           /* and at most where blocks are few, */
        CORES_SPAN = 16384,         /* where a tensor core adds 16 of them at a time, */
        CHAINS_SPAN = 131072        /* and 128 are a chain: 1,024 of either are added at most */
    };
    (void)part;
    const md_tile_shape shape = product_shape(plan);
    Tile *tile = product_emit(b, plan);
    tile->nplan = (int)(offsetof(md_tile_shape, ko) / sizeof *tile->plan);
    memcpy(tile->plan, &shape, sizeof *tile->plan * (size_t)tile->nplan);
    const bool halves = elem_is_half(tile->as[0]) && tile->as[0] == tile->as[1];
    int64_t batches = shape.b1 * shape.b2, rows = shape.m1 * shape.m2, columns = shape.n;
    int64_t depth = shape.k0 * shape.k1 * shape.k2;
    /* Two warps of a block halve the rows, and a tensor core makes 16 of them by 16 columns. */
    int64_t down = each_of(rows, halves ? 4 : 1), across = each_of(columns, halves ? 2 : 1);
    int64_t large = batches * blocks_of(rows, 8) * blocks_of(columns, 8);
    if (rows >= 64 && columns >= 64 && large >= 2 * PLENTY) {
        down = across = 8;
    }
    int64_t blocks = batches * blocks_of(rows, down) * blocks_of(columns, across);
    int64_t most = halves ? CORES_SPAN : CHAINS_SPAN, span = depth;
    most = blocks < 4 * PLENTY ? LONG_SPAN : most;
    if (batches * rows * columns == tile->count && (blocks < PLENTY / 2 || span > most)) {
        int64_t pieces = blocks < PLENTY ? (PLENTY + blocks - 1) / blocks : 1;
        span = (depth + pieces - 1) / pieces;
        span = span < LEAST_SPAN ? LEAST_SPAN : span > most ? most : (span + 31) / 32 * 32;
        span = span < depth ? span : depth;
    }
    /* Shared memory has room for the sums of four groups of small blocks, in f64 of two. */
    int64_t groups = down * across > 16 || blocks >= 8 * PLENTY ? 1
                     : span < 128                               ? 1
                     : span < 256                               ? 2
                                                                : 4;
    groups = groups > 2 && elem_bytes(tile->strip->elem) > 4 ? 2 : groups;
    if (span < depth) {
        int64_t pieces = (depth + span - 1) / span;
        Type type = {.elem = tile->strip->elem, .rank = 1, .dim = {pieces * tile->count}};
        tile->work = kernel_work(b, type, 0, "parts");
    }
    const int64_t rest[] = {span, down, across, groups};
    memcpy(tile->plan + tile->nplan, rest, sizeof rest);
    tile->nplan += (int)(sizeof rest / sizeof *rest);
}

const Schedule cuda_tile = {"tile", 1 << PART_PRODUCT, tile_fits, tile_cost, tile_emit};
const Schedule cuda_loops = {"loops", 1 << PART_PRODUCT, NULL, loops_cost, NULL};
