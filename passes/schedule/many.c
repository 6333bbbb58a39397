/* many: which products share the loop over their tasks although they are of middle size.
 *
 * A loop that knows no plan as a constant is compiled once for all products, which saves a C
 * compiler some 30 ms for each, and takes 60 lines of text. Few products do not pay for these.
 * Needs a lowered Program; gives Tile.large; changes no values. */
#include "compiler/kernel.h"
#include "passes/schedule/product.h"
#include "passes/schedule/schedule.h"

#include <string.h>

enum { MIDDLE = 1 << 18 /* multiply-adds of a task */, MANY = 12 };

static bool is_middle(const Tile *tile) {
    md_tile p;
    if (tile == NULL || tile->blas) {
        return false;
    }
    memcpy(&p, tile->plan, sizeof p);
    return product_task(&p) > MIDDLE;
}

void products_many(Program *p) {
    int count = 0;
    for (int i = 0; i < p->kernel.count && !p->device; i++) { /* which has plans of its own */
        count += is_middle(kernel_tile(p->kernel.at[i]));
    }
    for (int i = 0; i < p->kernel.count && count >= MANY; i++) {
        Tile *tile = kernel_own_tile(p->kernel.at[i]);
        if (is_middle(tile)) {
            tile->large = true;
        }
    }
}
