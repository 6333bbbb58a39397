/* outer: which axis of a product's plan another batch makes longer or shorter: the outermost one,
 * whose length is in no stride. What follows from that length stands apart from the text of a
 * kernel where a program is in several files (emit/forms.c), so it decides nothing about that text
 * either. Needs a plan. */
#include "passes/schedule/product.h"

enum {
    LEAST = 64,        /* elements of such an axis, */
    LEAST_BATCHES = 8, /* or batches: few are written out */
    NOMINAL = 256
};

/* Is `a` the outermost of the two, or the only one, in an operand with these strides? */
static bool outer_in(const md_tile_axis *a, const md_tile_axis *b, int64_t stride, int64_t of_b) {
    return a == b || b->n == 1 || stride == 0 || of_b == 0 || llabs(stride) > llabs(of_b);
}

static md_tile_axis *outer_axis(md_tile *p) {
    md_tile_axis *const axis[] = {&p->b1, &p->b2, &p->r1, &p->r2, &p->cols, &p->k0, &p->k1, &p->k2};
    enum { AXES = sizeof axis / sizeof *axis };
    for (int i = 0; i < AXES; i++) {
        const md_tile_axis *a = axis[i];
        bool outer = a->n >= (i < 2 ? LEAST_BATCHES : LEAST) && p->skip.n == 1;
        for (int k = 0; k < AXES && outer; k++) {
            const md_tile_axis *b = axis[k];
            outer = outer_in(a, b, a->x, b->x) && outer_in(a, b, a->y, b->y) &&
                    outer_in(a, b, a->c, b->c);
        }
        if (outer) {
            return axis[i];
        }
    }
    return NULL;
}

int product_outer(const md_tile *plan) {
    md_tile p = *plan;
    const md_tile_axis *outer = outer_axis(&p);
    return outer != NULL ? (int)(&outer->n - (const int64_t *)(const void *)&p) + 1 : 0;
}

md_tile product_nominal(const md_tile *plan) {
    md_tile p = *plan;
    md_tile_axis *outer = outer_axis(&p);
    if (outer != NULL) {
        outer->n = NOMINAL;
    }
    return p;
}
