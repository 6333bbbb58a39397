/* directional: first and second derivatives against directional differences, in double.
 *
 * For results y of a region and random weights u, the value is u.y; for a random direction v of
 * all float inputs together, v.(J^T u) from the gradients is compared with u.(J v), a central
 * difference of the value. The second derivative is the same for a random functional of the
 * gradients. */
#ifndef MDLC_TESTS_DIRECTIONAL_H
#define MDLC_TESTS_DIRECTIONAL_H

#include "compiler/eval.h"
#include "op_sample.h"

typedef struct {
    double error[2]; /* of the first and the second derivative, relative; NaN: not finite */
    double size[2];  /* sum of the absolute terms of v.(J^T u) */
} Directional;

/* The float results of `region` (STAGE_BUILT, reads the slots of `s` alone) become [value, its
 * gradients, a functional of these, its gradients]; gradients are to every float slot in order.
 * NULL when no result or no slot is a float. */
Region *directional_region(Sample *s, const Region *region);
/* The same with derivatives along random directions of the slots: [value, its gradients, the sum of
 * its derivatives along them, its gradients, how far they are from the products with gradients]. */
Region *directional_forward(Sample *s, const Region *region);
/* `expanded`: what a grad pass made of directional_region or directional_forward. */
Directional directional_check(Arena *arena, Sample *s, const Region *expanded);
/* Results of a region on the sample's data, in double. */
Value *directional_values(Arena *arena, const Sample *s, const Region *region);
/* The region as the body of a loop of three iterations: float slots are in turn stacked inputs and
 * invariants, a carry that every result goes into moves the first one, and results are stacked. */
Region *directional_looped(Sample *s, const Region *region, bool reverse, int64_t checkpoint);

/* How far results 1.. of a region turn, relative to their size, when its inputs move by `step`:
 * more than curvature explains is a kink nearby, where differences say nothing of a derivative. */
double directional_turn(Arena *arena, const Region *region, Slot *const *slot,
                        const double *const *data, int nslot, double step);
/* Is the failed check of a derivative one of those? */
bool directional_unclear(Arena *arena, const Region *region, Slot *const *slot,
                         const double *const *data, int nslot);

#endif
