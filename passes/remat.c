/* remat: what loops read of stacks is made again where it is read, for less memory.
 *
 * A stack of values of a loop that other loops of its trip go through, as adjoints do, may go away:
 * they make the slice at hand again, of what other stacks hold of that iteration, of invariants and
 * of carries. All that decides how a value is computed is behind: a copy has the operations of the
 * original, multiply-adds included, and the order of a sum depends on extents alone
 * (docs/decisions/0051-remat.md). So the bits are those of the stack, which is not so where the
 * pass that differentiates makes values again (GradPlan.again). Carries are never made again: of
 * these all else is made. Needs and gives: see remat.h. */
#include "passes/remat.h"

#include "compiler/loop_builder.h"

typedef struct {
    const GradPlan *plan;
    Arena *scratch;
} Pass;

/* --- which stacks ----------------------------------------------------------------------------- */

static bool runs_through(const Node *n) {
    return n->op == OP_LOOP && !loop_ends_itself(n->attr) && n->attr->trip > 1;
}

/* By node of the region: something else reads it than loops of its trip, slice by slice. */
static const bool *read_as_whole(const Region *region, Arena *scratch) {
    bool *whole = ARENA_ARRAY(scratch, bool, region->node.count + 1);
    for (int i = 0; i < region->node.count; i++) {
        const Node *user = region->node.at[i];
        for (int k = 0; k < user->nin; k++) {
            const Node *x = user->in[k], *maker = x->op == OP_PICK ? x->in[0] : NULL;
            bool slice = maker && runs_through(user) && maker->attr->trip == user->attr->trip &&
                         k >= user->attr->ncarry + user->attr->ninv;
            whole[x->id] = whole[x->id] || !slice;
        }
    }
    for (int i = 0; i < region->out.count; i++) {
        whole[region->out.at[i]->id] = true;
    }
    return whole;
}

static bool is_carry(const Node *loop, const Node *n) {
    bool found = n->op == OP_BODY_PARAM;
    for (int k = 0; k < loop->attr->ncarry && !found; k++) {
        found = loop->body->out.at[k] == n;
    }
    return found;
}

/* Marks what `n` of the body is made of; those of `kept` stand for what they are made of. */
static void mark_made_of(const Node *n, const bool *kept, bool *of) {
    if (of[n->id]) {
        return;
    }
    of[n->id] = true;
    for (int k = 0; k < n->nin; k++) {
        if (!kept || !kept[n->in[k]->id]) {
            mark_made_of(n->in[k], kept, of);
        }
    }
}

/* Is every carry that result k is made of at hand in other loops? */
static bool can_be_made(const Node *loop, int k, Arena *scratch) {
    const Region *body = loop->body;
    bool *of = ARENA_ARRAY(scratch, bool, body->node.count), can = true;
    mark_made_of(body->out.at[k], NULL, of);
    for (int c = 0; c < loop->attr->ncarry; c++) {
        const Node *param = body->param.at[1 + c];
        bool there = !of[param->id] || body->out.at[c] == param || loop_next_stack(loop, c) >= 0;
        for (int y = loop->attr->ncarry; y < body->out.count; y++) {
            there = there || body->out.at[y] == param;
        }
        can = can && there;
    }
    return can;
}

/* By result of the loop: its stack can go away. NULL: none can. */
static bool *find_stacks(const Region *region, const Node *loop, const bool *whole,
                         Arena *scratch) {
    bool *can = ARENA_ARRAY(scratch, bool, loop->body->out.count), any = false;
    for (int i = 0; i < region->node.count; i++) {
        const Node *pick = region->node.at[i];
        int k = pick->op == OP_PICK && pick->in[0] == loop ? pick->attr->axis : -1;
        if (k >= loop->attr->ncarry && !whole[pick->id] &&
            !is_carry(loop, loop->body->out.at[k]) && can_be_made(loop, k, scratch)) {
            can[k] = any = true;
        }
    }
    return any ? can : NULL;
}

/* --- what is chosen --------------------------------------------------------------------------- */

/* Adds the stacks to what could be made again: their bytes, and what making them takes where the
 * other ones are kept. */
static void note_stacks(KeptList *list, const Node *loop, const bool *can, Arena *scratch) {
    const Region *body = loop->body;
    const double trip = (double)loop->attr->trip;
    bool *kept = ARENA_ARRAY(scratch, bool, body->node.count);
    for (int k = loop->attr->ncarry; k < body->out.count; k++) {
        kept[body->out.at[k]->id] = true;
    }
    for (int k = loop->attr->ncarry; k < body->out.count; k++) {
        const Node *n = body->out.at[k];
        if (!can[k]) {
            continue;
        }
        bool *of = ARENA_ARRAY(scratch, bool, body->node.count);
        mark_made_of(n, kept, of);
        Kept *one = kept_entry(list, n);
        one->bytes += trip * (double)type_bytes(*n->type);
        for (int i = 0; i < body->node.count; i++) {
            one->flops += of[i] ? trip * node_flops(body->node.at[i]) : 0;
        }
    }
}

static const bool *const *plan_remat(void *ctx, Arena *scratch, const Region *region) {
    const Pass *pass = ctx;
    const bool *whole = NULL, **again = NULL;
    for (int i = 0; i < region->node.count; i++) {
        const Node *loop = region->node.at[i];
        if (!runs_through(loop)) {
            continue;
        }
        whole = whole ? whole : read_as_whole(region, scratch);
        bool *can = find_stacks(region, loop, whole, scratch), any = false;
        if (can && pass->plan->kept) {
            note_stacks(pass->plan->kept, loop, can, scratch);
        }
        for (int k = 0; can && k < loop->body->out.count; k++) {
            can[k] = can[k] && plan_makes_again(pass->plan, loop->body->out.at[k]);
            any = any || can[k];
        }
        if (any) {
            again = again ? again : ARENA_ARRAY(scratch, const bool *, region->node.count);
            again[i] = can;
        }
    }
    return again;
}

Region *pass_remat(Graph *g, const Region *region, const GradPlan *plan) {
    Pass pass = {.plan = plan};
    Region *fresh = region_rebuild_remat(g, region, plan_remat, &pass);
    return region_rebuild(g, fresh, NULL, NULL); /* without the stacks */
}
