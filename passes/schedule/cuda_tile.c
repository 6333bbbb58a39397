/* cuda_tile: products by tiles in shared memory, and what follows them, element by element, by the
 * thread that has the element.
 * Needs a PRODUCT part; gives its tile; changes no values beyond the order of sums, which depends
 * on the number of terms alone. */
#include "passes/schedule/product.h"

#include <stddef.h>
#include <string.h>

static bool tile_fits(KernelBuild *b, const Part *part, void **plan) {
    return (*plan = product_tiling(b, part, false)) != NULL;
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

/* The plan is the shape: extents and strides, as md_product of runtime/cuda.h has them. */
static void tile_emit(KernelBuild *b, const Part *part, void *plan) {
    (void)part;
    const md_tile_shape shape = product_shape(plan);
    Tile *tile = product_emit(b, plan);
    tile->nplan = (int)(offsetof(md_tile_shape, flags) / sizeof *tile->plan);
    memcpy(tile->plan, &shape, sizeof *tile->plan * (size_t)tile->nplan);
}

const Schedule cuda_tile = {"tile", 1 << PART_PRODUCT, tile_fits, tile_cost, tile_emit};
const Schedule cuda_loops = {"loops", 1 << PART_PRODUCT, NULL, loops_cost, NULL};
