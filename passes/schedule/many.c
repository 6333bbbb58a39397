/* many: what many kernels share, and a few do not pay for.
 *
 * A loop over the tasks of products that knows no plan as a constant is compiled once for all of
 * them, which saves a C compiler some 30 ms for each, and takes 60 lines of text: so it is for many
 * products of middle size. So is the block of a small product that others have too, 40 ms each. One
 * function that runs loops on threads saves it 8 ms for each, and takes 20 lines and a struct for
 * each. Needs a lowered Program; gives Tile.large, Tile.block and Kernel.handed; changes no values.
 */
#include "compiler/kernel.h"
#include "passes/schedule/product.h"
#include "passes/schedule/schedule.h"

enum {
    MIDDLE = 1 << 16, /* multiply-adds of a task */
    MANY = 12,        /* products */
    BLOCKS = 4,       /* that others have too */
    LOOPS = 4         /* on threads */
};

static bool is_middle(const md_tile *plan) {
    return product_task(plan) > MIDDLE;
}

/* The plan that says so: where the text of a kernel should stay what it is with another batch, that
 * of a common one. */
static md_tile judged(const Tile *tile, bool apart) {
    const md_tile plan = product_plan(tile);
    const bool batch = plan.is & (MD_TILE_BATCHED | MD_TILE_WINOGRAD); /* which is in the plan */
    return apart && !batch ? product_nominal(&plan) : plan;
}

static void loops_many(Program *p) {
    int count = 0;
    for (int i = 0; i < p->kernel.count; i++) {
        count += kernel_parallel_loops(p->kernel.at[i]);
    }
    for (int i = 0; i < p->kernel.count; i++) {
        p->kernel.at[i]->handed = count >= LOOPS;
    }
}

/* Numbers the blocks; a small product keeps one that is its own, or is spared few others, in its
 * loop. */
static void blocks_many(Tile **tile, int count) {
    int spared = 0;
    for (int i = 0; i < count; i++) {
        const md_tile plan = product_plan(tile[i]);
        tile[i]->block = i + 1;
        for (int k = 0; k < i; k++) {
            const md_tile other = product_plan(tile[k]);
            if (product_same_block(&plan, &other)) {
                tile[i]->block = tile[k]->block;
                spared++;
                break;
            }
        }
    }
    for (int i = 0; i < count; i++) {
        bool alone = true;
        for (int k = 0; k < count; k++) {
            alone = alone && (k == i || tile[k]->block != tile[i]->block);
        }
        const bool half = product_plan(tile[i]).is & MD_TILE_HALF;
        if (!tile[i]->large && (half || alone || spared < BLOCKS)) {
            tile[i]->block = 0;
        }
    }
}

void kernels_many(Program *p, bool apart) {
    if (p->device) { /* which has plans of its own */
        return;
    }
    loops_many(p);
    Tile **tile = ARENA_ARRAY(p->arena, Tile *, p->kernel.count + 1);
    int count = 0, middle = 0;
    for (int i = 0; i < p->kernel.count; i++) {
        Tile *own = kernel_own_tile(p->kernel.at[i]);
        if (own != NULL && !own->blas) {
            const md_tile plan = judged(own, apart);
            own->large = product_large(&plan);
            middle += is_middle(&plan);
            tile[count++] = own;
        }
    }
    for (int i = 0; i < count && middle >= MANY; i++) {
        const md_tile plan = judged(tile[i], apart);
        tile[i]->large = tile[i]->large || is_middle(&plan);
    }
    blocks_many(tile, count);
}
