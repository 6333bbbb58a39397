/* grad_moved: stacks that a loop makes for others than its adjoint, made by the adjoint instead.
 *
 * An adjoint that runs its loop again from kept carries has at hand what each turn of it gives. A
 * stack that nothing reads which the adjoint is made of, as the losses of the turns are where their
 * mean is taken, need not be made by the loop as well: those who read it read that of the adjoint.
 * What only such stacks are made of then is no longer made by the loop, and nothing is made twice.
 *
 * Contract: needs the region in which adjoints were built, before anything else was made of it;
 * gives it with its nodes in another order. Changes no values. */
#include "passes/grad_rule.h"

/* What a node is read as: itself, or what stands for it. */
static Node *read_as(Node *const *stand, Node *n) {
    return stand[n->id] ? stand[n->id] : n;
}

/* Marks what `n` is made of. A list instead of recursion: nets are thousands of layers deep. */
static void mark_made_of(Node *const *stand, Node *n, bool *of, Node **list) {
    int left = 0;
    list[left++] = n;
    while (left > 0) {
        const Node *top = list[--left];
        for (int k = 0; k < top->nin; k++) {
            Node *x = read_as(stand, top->in[k]);
            if (!of[x->id]) {
                of[x->id] = true;
                list[left++] = x;
            }
        }
    }
}

/* The stack of the loop, where somebody reads it. */
static const Node *stack_of(const Region *region, const Moved *m) {
    const Node *found = NULL;
    for (int i = 0; i < region->node.count && !found; i++) {
        const Node *n = region->node.at[i];
        found = n->op == OP_PICK && n->in[0] == m->loop && n->attr->axis == m->result ? n : NULL;
    }
    return found;
}

/* By node: what of the adjoints stands for it. NULL: nothing does. */
static Node **find_standing(const Region *region, const MovedList *list, Arena *scratch) {
    const int count = region->node.count;
    Node **stand = ARENA_ARRAY(scratch, Node *, count);
    Node **queue = ARENA_ARRAY(scratch, Node *, count + 1);
    bool any = false;
    for (int i = 0; i < list->of.count; i++) {
        const Moved *m = &list->of.at[i];
        const Node *stack = stack_of(region, m);
        if (!stack || stand[stack->id]) {
            continue;
        }
        bool *of = ARENA_ARRAY(scratch, bool, count);
        mark_made_of(stand, m->again, of, queue);
        if (!of[stack->id]) {
            stand[stack->id] = m->again;
            any = true;
        }
    }
    return any ? stand : NULL;
}

void moved_apply(Region *region, const MovedList *list) {
    Arena scratch = {0};
    const int count = region->node.count;
    Node **stand = find_standing(region, list, &scratch);
    if (stand) {
        region_read_instead(region, stand, count, count);
        region_settle(region);
    }
    arena_free(&scratch);
}
