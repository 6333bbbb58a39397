/* gradcheck: gradients against central differences, in the evaluator. */
#ifndef MDLC_COMPILER_GRADCHECK_H
#define MDLC_COMPILER_GRADCHECK_H

#include "compiler/eval.h"

typedef struct {
    double error;             /* the worst relative one; not a number when a value was not finite */
    const Slot *worst;        /* whose; NULL: no slot was checked */
    double analytic, numeric; /* the derivatives along the direction that gave it */
} GradCheck;

/* `region` gives [a scalar, its derivative to slot[0], to slot[1], ...]; all its slots are bound in
 * `ev`, which should not round. Each slot is moved along `directions` random directions of its own;
 * what is bound afterwards is what was bound before. */
GradCheck gradcheck_region(Eval *ev, Arena *arena, const Region *region, Slot *const *slot,
                           int nslot, uint64_t seed, int directions);

#endif
