/* final: what a carry has become by the end of its loop is read of the stack of its values.
 *
 * A loop that stacks a carry for its adjoint has one value of it twice. Of the next values the last
 * one is also the carry behind the loop, whose bytes are there until its last reader has run; of
 * the values as turns begin the first one is also what the carry started from. In a residual net
 * that is an activation of full size for each stage, from the forward part to the end of the
 * backward one. So the next values are stacked: who reads the carry behind the loop reads the last
 * slice, and the adjoint reads the slice of the turn before, and the start in the first one.
 *
 * This is done where the stack is there as long as the carry's last value is asked for: where some
 * reader of the stack comes behind all other operands of each reader of the carry. And where the
 * stack held the values as turns begin, if the start is there as long as the stack anyway. The
 * start of another loop's carry is read as before, since its bytes are taken over.
 * Changes no values. Needs and gives: see final.h. */
#include "passes/final.h"

#include "compiler/loop_builder.h"

const int64_t final_least = TUNED(256 << 10, 64);

/* --- who reads what, and when ----------------------------------------------------------------- */

static const Node *find_pick(const Node *loop, int k) {
    const Region *region = loop->region;
    for (int i = (int)loop->id + 1; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        if (n->op == OP_PICK && n->in[0] == loop && n->attr->axis == k) {
            return n;
        }
    }
    return NULL;
}

static bool is_result(const Node *x) {
    bool is = false;
    for (int k = 0; k < x->region->out.count && !is; k++) {
        is = x->region->out.at[k] == x;
    }
    return is;
}

static bool is_start(const Node *user, int k) {
    return user->op == OP_LOOP && k < user->attr->ncarry;
}

/* By node: some reader of `stack` is made of it. */
static const bool *find_before(const Node *stack, Arena *scratch) {
    const Region *region = stack->region;
    bool *before = ARENA_ARRAY(scratch, bool, region->node.count);
    for (int i = region->node.count - 1; i >= 0; i--) {
        const Node *user = region->node.at[i];
        bool behind = before[i] || node_reads(user, stack);
        for (int k = 0; behind && k < user->nin; k++) {
            before[user->in[k]->id] = true;
        }
    }
    return before;
}

/* By node: `x`, and what is made of it alone in cheap ways, where it is read as a rule. */
static const bool *find_forms(const Node *x, Arena *scratch) {
    const Region *region = x->region;
    bool *form = ARENA_ARRAY(scratch, bool, region->node.count);
    form[x->id] = true;
    for (int i = (int)x->id + 1; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        OpClass cls = op_info[n->op].cls;
        bool any = false, all = cls == CLASS_MAP || cls == CLASS_VIEW;
        for (int k = 0; k < n->nin && all; k++) {
            any = any || form[n->in[k]->id];
            all = form[n->in[k]->id] || n->in[k]->op == OP_CONST ||
                  (n->in[k]->op == OP_BROADCAST && n->in[k]->in[0]->op == OP_CONST);
        }
        form[i] = any && all;
    }
    return form;
}

/* Is the stack there as long as `last` is asked for? */
static bool lives_as_long(const Node *last, const Node *stack, Arena *scratch) {
    const Region *region = last->region;
    const bool *before = find_before(stack, scratch), *form = find_forms(last, scratch);
    bool any = false, all = !is_result(last);
    for (int i = (int)last->id + 1; i < region->node.count && all; i++) {
        const Node *user = region->node.at[i];
        bool reads = false, there = true;
        for (int k = 0; k < user->nin; k++) {
            const Node *x = user->in[k];
            reads = reads || form[x->id];
            there = there && (form[x->id] ? x != last || !is_start(user, k)
                                          : op_info[x->op].cls == CLASS_LEAF || before[x->id]);
        }
        any = any || reads;
        all = !reads || form[i] || there;
    }
    return any && all;
}

/* Do loops alone read the stack, slice by slice? */
static bool is_sliced(const Node *stack) {
    const Region *region = stack->region;
    bool all = !is_result(stack);
    for (int i = (int)stack->id + 1; i < region->node.count && all; i++) {
        const Node *user = region->node.at[i];
        for (int k = 0; k < user->nin; k++) {
            bool slice = user->op == OP_LOOP && !loop_ends_itself(user->attr) &&
                         user->attr->trip == stack->in[0]->attr->trip &&
                         k >= user->attr->ncarry + user->attr->ninv;
            all = all && (user->in[k] != stack || slice);
        }
    }
    return all;
}

/* Is the start of the loop's carry there as long as the stack anyway? */
static bool start_stays(const Node *start, const Node *stack, Arena *scratch) {
    const Region *region = stack->region;
    const bool *form = find_forms(start, scratch);
    bool *behind = ARENA_ARRAY(scratch, bool, region->node.count);
    bool stays = op_info[start->op].cls == CLASS_LEAF;
    for (int i = (int)stack->id + 1; i < region->node.count && !stays; i++) {
        const Node *user = region->node.at[i];
        behind[i] = node_reads(user, stack);
        bool reads = false;
        for (int k = 0; k < user->nin; k++) {
            behind[i] = behind[i] || behind[user->in[k]->id];
            reads = reads || form[user->in[k]->id];
        }
        stays = behind[i] && reads;
    }
    return stays;
}

/* --- what is done ----------------------------------------------------------------------------- */

/* The stack of the carry's values as turns begin, which the next ones can stand for; NULL. */
static const Node *values_stack(const Node *loop, int carry, Arena *scratch) {
    const Region *body = loop->body;
    const Node *stack = NULL;
    for (int k = loop->attr->ncarry; k < body->out.count; k++) {
        stack = body->out.at[k] == body->param.at[1 + carry] ? find_pick(loop, k) : stack;
    }
    return stack && is_sliced(stack) && start_stays(loop->in[carry], stack, scratch) ? stack : NULL;
}

/* Is the last value of the carry in a stack as well, or would it be? */
static bool is_twice(const Node *loop, int carry, int64_t least, Arena *scratch) {
    const Attr *a = loop->attr;
    const Type *type = loop->body->out.at[carry]->type;
    if (loop_ends_itself(a) || a->trip < 2 || type->rank >= MD_RANK || type_bytes(*type) < least) {
        return false;
    }
    const Node *last = find_pick(loop, carry);
    int next = last ? loop_next_stack(loop, carry) : -1;
    const Node *stack = next >= 0 ? find_pick(loop, next)
                        : last    ? values_stack(loop, carry, scratch)
                                  : NULL;
    return stack && lives_as_long(last, stack, scratch);
}

static const bool *const *find_ends(void *ctx, Arena *scratch, const Region *region) {
    const int64_t *least = ctx;
    const bool **ends = ARENA_ARRAY(scratch, const bool *, region->node.count + 1);
    for (int i = 0; i < region->node.count; i++) {
        const Node *loop = region->node.at[i];
        for (int k = 0; loop->op == OP_LOOP && k < loop->attr->ncarry; k++) {
            Arena own = {0};
            if (is_twice(loop, k, *least, &own)) {
                bool *of =
                    ends[i] ? (bool *)ends[i] : ARENA_ARRAY(scratch, bool, loop->attr->ncarry);
                of[k] = true;
                ends[i] = of;
            }
            arena_free(&own);
        }
    }
    return ends;
}

/* Stacks of values as turns begin, beside those of the next ones. */
static const bool *const *find_again(void *ctx, Arena *scratch, const Region *region) {
    const int64_t *least = ctx;
    const bool **again = ARENA_ARRAY(scratch, const bool *, region->node.count + 1);
    for (int i = 0; i < region->node.count; i++) {
        const Node *loop = region->node.at[i];
        for (int c = 0; loop->op == OP_LOOP && c < loop->attr->ncarry; c++) {
            Arena own = {0};
            const Node *stack =
                type_bytes(*loop->in[c]->type) >= *least && loop_next_stack(loop, c) >= 0
                    ? values_stack(loop, c, &own)
                    : NULL;
            if (stack) {
                bool *of =
                    again[i] ? (bool *)again[i] : ARENA_ARRAY(scratch, bool, loop->body->out.count);
                of[stack->attr->axis] = true;
                again[i] = of;
            }
            arena_free(&own);
        }
    }
    return again;
}

bool final_applies(const Region *region, int64_t least) {
    bool any = false;
    Arena scratch = {0};
    const bool *const *ends = find_ends(&least, &scratch, region);
    for (int i = 0; i < region->node.count && !any; i++) {
        const Node *n = region->node.at[i];
        any = ends[i] || (n->body && final_applies(n->body, least));
    }
    arena_free(&scratch);
    return any;
}

Region *pass_final(Graph *g, const Region *region, int64_t least) {
    Region *stacked = region_rebuild_ends(g, region, find_ends, &least);
    Region *fresh = region_rebuild_remat(g, stacked, find_again, &least);
    return region_rebuild(g, fresh, NULL, NULL); /* without the stacks */
}
