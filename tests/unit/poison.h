/* poison: a planned entry on real bytes, held against the same entry with a storage of its own for
 * every Buf.
 *
 * No values are computed: what a step writes is noise that is unique to the step, its turn and the
 * seed, and a step that reads must find the bytes that it finds in the run with storages of its
 * own. Regions begin as noise; a workspace, and a result that does not take over an operand element
 * by element, is noise before the step reads; a storage is noise again when its value has been read
 * for the last time. So each read of dead or foreign bytes shows at once, whether or not a result
 * depends on it. What kernels may do in place is found by running their loops (kernel_walk). */
#ifndef MDLC_TESTS_POISON_H
#define MDLC_TESTS_POISON_H

#include "compiler/program.h"

typedef struct Poison Poison;

/* Notes what the entry means: its order, Bufs and kernels. Whatever is changed later is a change of
 * the plan. */
Poison *poison_open(Arena *arena, const Program *p, const ProgramEntry *e);
/* From now on `step` addresses the slices of `buf` with this stride, in elements, on axis 0. */
void poison_stride(Poison *x, const Step *step, const Buf *buf, int64_t stride);
/* Runs the entry as it is planned now. NULL: every step reads what it should, within its region,
 * parameters and states change after the check alone, and results, parameters and states end as
 * they should. Otherwise the first harm, owned by the arena. */
const char *poison_run(Poison *x, uint64_t seed);
/* May a step lay `out` over `in`, element by element? */
bool poison_may_share(const Poison *x, const Step *step, const Buf *in, const Buf *out);

#endif
