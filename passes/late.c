/* late: see the header.
 *
 * A weight or a state that only later phases read needs no memory before the first of them. What
 * begins as zero is not written at all there: fresh pages of the system are zero. What begins as
 * another value is written by an `init` of that phase, a copy of the first one as far as its
 * results go; draws are functions of seed and place, so who makes them changes no bits. A second
 * set and what it copies begin together: where a file lacks it, it becomes what that one is then.
 * The numbers of a run, and the constants of data that it fills in before its first step, stay with
 * the first `init`. Changes no values of a run. */
#include "passes/late.h"

#include "compiler/keep.h"

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

enum { NEVER = 1 << 30 }; /* no phase */

static void earlier(int *first, const Slot *slot, int phase) {
    if (slot && slot->kind != SLOT_INPUT && phase < first[slot->index]) {
        first[slot->index] = phase;
    }
}

/* By slot the first phase whose entries read or write it. */
static int *first_phases(Arena *arena, const Module *module) {
    int *first = ARENA_ARRAY(arena, int, module->slot.count + 1);
    for (int i = 0; i < module->slot.count; i++) {
        first[i] = NEVER;
    }
    for (int i = 1; i < module->entry.count; i++) {
        const Entry *entry = module->entry.at[i];
        int phase = module_phase(module, entry);
        for (int k = 0; phase >= 0 && k < entry->region->node.count; k++) {
            const Node *node = entry->region->node.at[k];
            earlier(first, node->op == OP_SLOT ? node->attr->slot : NULL, phase);
        }
        for (int k = 0; phase >= 0 && k < entry->out.count; k++) {
            earlier(first, entry->out.at[k].slot, phase);
        }
    }
    for (int i = 0; i < module->dataset.count; i++) {
        const DataSet *set = &module->dataset.at[i];
        for (int k = 0; k < set->field.count; k++) {
            earlier(first, set->field.at[k].centre, 0);
            earlier(first, set->field.at[k].spread, 0);
        }
    }
    for (bool again = true; again;) { /* sets of sets too */
        again = false;
        for (int i = 0; i < module->slot.count; i++) {
            const Slot *copy = module->slot.at[i], *of = copy->copy_of;
            if (of && first[i] != first[of->index]) {
                again = true;
                first[i] < first[of->index] ? earlier(first, of, first[i])
                                            : earlier(first, copy, first[of->index]);
            }
        }
    }
    return first;
}

/* The region with the results that belong to a phase, in an arena of its own. */
static Region *part_of(Module *module, const Entry *init, Arena *nodes, const int *belongs,
                       int phase) {
    Region *region = init->region;
    Node **all = region->out.at;
    int count = region->out.count, n = 0;
    Arena *home = module->graph->arena, scratch = {0};
    Node **some = ARENA_ARRAY(&scratch, Node *, count + 1);
    for (int k = 0; k < count; k++) {
        some[n] = all[k];
        n += belongs[k] == phase;
    }
    region->out.at = some;
    region->out.count = n;
    module->graph->arena = nodes;
    Region *part = region_rebuild(module->graph, region, NULL, NULL);
    nodes_forget(part);
    module->graph->arena = home;
    region->out.at = all;
    region->out.count = count;
    arena_free(&scratch);
    return part;
}

static void take_outs(Arena *arena, Entry *entry, const Entry *init, const int *belongs) {
    entry->out.at = NULL;
    entry->out.count = entry->out.capacity = 0;
    for (int k = 0; k < init->out.count; k++) {
        if (belongs[k] == entry->begins) {
            VEC_PUSH(arena, &entry->out, init->out.at[k]);
        }
    }
}

void pass_late(Arena *arena, Module *module) {
    Entry *init = module->entry.at[0], whole = *init;
    if (init->kind != ENTRY_INIT) {
        BUG("init is not the first entry");
    }
    Arena scratch = {0};
    const int *first = first_phases(&scratch, module);
    int *belongs = ARENA_ARRAY(&scratch, int, whole.out.count + 1), last = 0;
    bool moves = false;
    for (int k = 0; k < whole.out.count; k++) {
        Slot *slot = whole.out.at[k].slot;
        bool number = slot->type.rank == 0 || first[slot->index] == NEVER;
        int phase = number ? 0 : first[slot->index];
        bool grouped = slot->copy_of != NULL;
        for (int i = 0; i < module->slot.count && !grouped; i++) {
            grouped = module->slot.at[i]->copy_of == slot;
        }
        slot->late = phase > 0 && !grouped && is_zero(whole.region->out.at[k]);
        belongs[k] = slot->late ? NEVER : phase;
        last = !slot->late && phase > last ? phase : last;
        moves = moves || phase > 0;
    }
    for (int phase = 1; phase <= last; phase++) {
        Entry *more = ARENA_NEW(arena, Entry);
        *more = whole;
        more->begins = phase;
        more->name = str_printf(arena, "init_phase_%d", phase + 1);
        more->nodes[0] = more->nodes[1] = (Arena){0};
        take_outs(arena, more, &whole, belongs);
        if (more->out.count > 0) {
            more->region = part_of(module, &whole, &more->nodes[0], belongs, phase);
            VEC_PUSH(arena, &module->entry, more);
        }
    }
    if (moves) {
        Arena *nodes = &init->nodes[init->passes++ % 2], *old = &init->nodes[init->passes % 2];
        init->region = part_of(module, &whole, nodes, belongs, 0);
        take_outs(arena, init, &whole, belongs);
        arena_free(old);
    }
    arena_free(&scratch);
}
