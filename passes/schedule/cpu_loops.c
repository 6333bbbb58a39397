/* cpu_loops: products that are cheaper as loops than in tiles: what they cost. Their Work is made
 * again as a COLUMN. Needs a PRODUCT part; gives no statements; changes no values. */
#include "passes/schedule/product.h"

/* Does an operand lie one element behind another along axis `axis` of C? */
static bool runs_along(const Index *at, int axis) {
    int64_t stride = 0;
    return index_stride(at, axis, &stride) && stride == 1;
}

/* Elements that loops multiply at once: vectors run along an axis of C and of both operands, or of
 * one; then sums are read and written again for each number of the other. */
static int vector_of(const Product *of, bool all) {
    enum { VECTOR = TUNED(8, 2) };
    for (int l = 0; l < of->nlabel; l++) {
        const Radix *r = &of->space[l];
        const int in = of->in[l], axis = r->n > 0 ? r->axis[r->n - 1] : 0;
        const bool a = in & IN_A, b = in & IN_B;
        if (r->n > 0 && r->digit[r->n - 1] >= VECTOR && in & IN_C && (a && b) == all &&
            runs_along(of->place, axis) && (!a || runs_along(of->load[0]->index, axis)) &&
            (!b || runs_along(of->load[1]->index, axis))) {
            return all ? VECTOR : VECTOR / 2;
        }
    }
    return 1;
}

/* The Work is made again as a COLUMN. */
static Cost loops_cost(KernelBuild *b, const Part *part, const void *plan) {
    (void)plan;
    const Product *of = part->product;
    int64_t flops = 2;
    for (int l = 0; l < of->nlabel; l++) {
        flops = count_add(0, flops, of->space[l].count);
    }
    flops /= vector_of(of, true);
    bool parallel = kernel_parallel(b, flops);
    flops /= parallel ? 1 : vector_of(of, false);
    return (Cost){.loop = flops / (parallel ? b->k->threads : 1),
                  .bytes = product_bytes(of),
                  .launches = parallel};
}

const Schedule cpu_loops = {"loops", 1 << PART_PRODUCT, NULL, loops_cost, NULL};
