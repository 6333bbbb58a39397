/* cuda_launch: how the statements of a kernel for a graphics processor are cut into launches.
 *
 * They are launches, one behind the other, and nothing else: parallel loops whose iterations are
 * threads, and products. What a thread needs it computes or loads by itself; what one launch leaves
 * for the next lies in memory. So an operand is read where the text says, and the proofs of what
 * may share bytes hold as they do for loops.
 * Needs index spaces; gives a loop over them; changes no values. */
#include "passes/schedule/schedule.h"

#include <string.h>

AxisSet cuda_scope(const Radix *const *space, int n) {
    AxisSet scope = 0;
    for (int i = 0; i < n; i++) {
        scope |= space_set(space[i]);
    }
    return scope;
}

StmtList *cuda_launch(KernelBuild *b, const Radix *const *space, int n) {
    int axis[AXES_MAX], count = 0;
    for (int i = 0; i < n; i++) {
        memcpy(axis + count, space[i]->axis, sizeof *axis * (size_t)space_axes(space[i]));
        count += space_axes(space[i]);
    }
    if (count == 0) { /* one thread is a launch too */
        axis[count++] = kernel_axis(b->k, 1, "i");
    }
    int at = b->k->body.count;
    StmtList *list = nest_loops(b, &b->k->body, axis, count, false);
    b->k->body.at[at]->parallel = count;
    for (int i = 0; i < b->known.count; i++) {
        const Root *root = &b->known.at[i];
        if (b->uses[root->named->id] > 0) {
            stmt_let(b->k, list, root->named, root->value);
            b->bound[root->named->id] = true;
        }
    }
    return list;
}
