/* cpu_band: see tiling.h.
 *
 * Of a product near a diagonal, as those of causal attention (passes/lower/band.h), and of one that
 * reads windows with a border of zeros, the plan is told which steps of its sum a register tile
 * has. The labels that this is said of must be axes of the plan, place by place. */
#include "passes/schedule/tiling.h"

/* Which axis of the plan this label is, place by place: of which class, and which from the last one
 * on; -1: none. */
static int axis_of(const Tiling *p, int label, int *class) {
    const Radix *r = &p->of->space[label];
    for (*class = 0; *class < CLASSES; ++*class) {
        const Class *x = &p->class[*class];
        for (int i = 0; i < x->ngroup; i++) {
            const Digit *g = &x->group[x->ngroup - 1 - i];
            for (int d = 0; d < r->n; d++) {
                if (r->digit[d] != 1 && r->axis[d] == g->axis && g->extent == r->count) {
                    return i;
                }
            }
        }
    }
    return -1;
}

/* Is the plan's one axis of class `c` this label, place by place? */
static bool is_axis(const Tiling *p, int c, int label) {
    int class;
    return axis_of(p, label, &class) == 0 && class == c && p->class[c].ngroup == 1;
}

/* Beside borders of zeros there is nothing to multiply. */
static void plan_border(Tiling *p) {
    static const struct {
        int class, place, step, kind;
    } kinds[] = {{ROWS, 1, 2, MD_BAND_ROW_STEP0},     {ROWS, 1, 1, MD_BAND_ROW_STEP1},
                 {BATCH, 1, 1, MD_BAND_BATCH1_STEP1}, {BATCH, 0, 1, MD_BAND_BATCH2_STEP1},
                 {BATCH, 1, 2, MD_BAND_BATCH1_STEP1}, {BATCH, 0, 2, MD_BAND_BATCH2_STEP1}};
    for (int i = 0; i < p->of->nborder; i++) {
        const Band *band = &p->of->border[i];
        int class, summed;
        const int place = axis_of(p, band->first, &class), step = axis_of(p, band->second, &summed);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds && p->banded == 0; k++) {
            if (kinds[k].class == class && kinds[k].place == place && kinds[k].step == step &&
                md_tile_set_border(&p->plan, kinds[k].kind, band->by, band->from, band->until)) {
                p->banded = 2 + i;
            }
        }
    }
}

void tiling_band(Tiling *p) {
    const Band *band = &p->of->band;
    int first = BATCH;
    p->banded = 0;
    const int at = band->known ? axis_of(p, band->first, &first) : -1;
    if (at != 0 || first == BATCH || p->class[first].ngroup != 1) {
        plan_border(p);
        return;
    }
    if (is_axis(p, SUMMED, band->second)) {
        md_tile_set_band(&p->plan, first == ROWS ? MD_BAND_ROW_SUM : MD_BAND_COLUMN_SUM, band->from,
                         band->until);
    } else if (first == ROWS && is_axis(p, COLUMNS, band->second)) {
        md_tile_set_band(&p->plan, MD_BAND_ROW_COLUMN, band->from, band->until);
    } else if (first == COLUMNS && is_axis(p, ROWS, band->second)) {
        md_tile_set_band(&p->plan, MD_BAND_ROW_COLUMN, 1 - band->until, 1 - band->from);
    }
    p->banded = p->plan.band != MD_BAND_NONE;
}
