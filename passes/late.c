/* late: see the header.
 *
 * Slots of a train belong to it alone, and nearly all of them begin as zero. Those of a phase
 * behind the first need no memory before it, and none that somebody has written: fresh pages of the
 * system are zero. So `init` leaves them alone, and they are marked. What begins as another value
 * stays a matter of `init`, and is there from the start. Changes no values of a run. */
#include "passes/late.h"

#include <math.h>

static bool is_zero(const Node *node) {
    while (node->op == OP_BROADCAST || node->op == OP_RESHAPE) {
        node = node->in[0];
    }
    const Attr *attr = node->attr;
    return node->op == OP_CONST &&
           (elem_is_int(node->type->elem) ? attr->ivalue == 0
                                          : attr->value == 0 && !signbit(attr->value));
}

void pass_late(Module *module) {
    Entry *init = module->entry.at[0];
    if (init->kind != ENTRY_INIT) {
        BUG("init is not the first entry");
    }
    int n = 0;
    for (int k = 0; k < init->out.count; k++) {
        const EntryOut *out = &init->out.at[k];
        Node *node = init->region->out.at[k];
        Slot *slot = out->slot;
        bool slots = out->role == OUT_WRITE && slot->role == STATE_OPTIMIZER && slot->entry != NULL;
        slot->late = slots && module_phase(module, slot->entry) > 0 && is_zero(node);
        if (!slot->late) {
            init->out.at[n] = *out;
            init->region->out.at[n++] = node;
        }
    }
    init->out.count = init->region->out.count = n;
}
