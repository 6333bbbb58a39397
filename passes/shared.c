/* shared: see the header. What is counted are the operations that read a weight on the way to a
 * loss: its gradient is the sum of as many parts. In a loop those of its body count, once. */
#include "passes/shared.h"

/* How often each node of `region` is read, by id, by those that are marked (NULL: by all). */
static int *count_reads(const Region *region, const bool *marked, Arena *scratch) {
    int *reads = ARENA_ARRAY(scratch, int, region->node.count + 1);
    for (int i = 0; i < region->node.count; i++) {
        const Node *user = region->node.at[i];
        bool counts = (!marked || marked[i]) && op_info[user->op].cls != CLASS_MARK;
        for (int k = 0; counts && user->op != OP_LOOP && k < user->nin; k++) {
            reads[user->in[k]->id]++;
        }
        if (!counts || user->op != OP_LOOP) {
            continue;
        }
        const Region *body = user->body;
        const int *inside = count_reads(body, NULL, scratch);
        for (int b = 0; b < body->node.count; b++) {
            const Node *param = body->node.at[b];
            int k = param->op == OP_BODY_PARAM ? param->attr->axis - 1 : -1; /* 0 is the index */
            if (k >= 0) {
                reads[user->in[k]->id] += inside[b];
            }
        }
    }
    return reads;
}

static void count_train(const Entry *entry, Arena *scratch) {
    const Region *region = entry->region;
    bool *marked = ARENA_ARRAY(scratch, bool, region->node.count + 1);
    for (int k = 0; k < entry->out.count; k++) {
        if (entry->out.at[k].role == OUT_LOSS) {
            marked[region->out.at[k]->id] = true;
        }
    }
    for (int i = region->node.count - 1; i >= 0; i--) {
        const Node *node = region->node.at[i];
        for (int k = 0; marked[i] && k < node->nin; k++) {
            marked[node->in[k]->id] = true;
        }
    }
    const int *reads = count_reads(region, marked, scratch);
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        if (marked[i] && node->op == OP_SLOT && node->attr->slot->kind == SLOT_PARAM) {
            Slot *slot = node->attr->slot;
            slot->uses = reads[i] > slot->uses ? reads[i] : slot->uses;
        }
    }
}

void pass_shared(Module *module) {
    for (int i = 0; i < module->entry.count; i++) {
        Arena scratch = {0};
        if (module->entry.at[i]->kind == ENTRY_TRAIN) {
            count_train(module->entry.at[i], &scratch);
        }
        arena_free(&scratch);
    }
}
