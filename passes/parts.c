/* parts: a loop goes through the rows of a batch, some of them (a part) in each iteration, and
 * makes all that is made of each row by itself. What each iteration gives is put together to what
 * the rest reads: the value of each row, or what sums over the rows begin with. So what is large
 * for a batch exists for a part of it.
 *
 * Technique: the label of the rows is followed forwards from the inputs that have them in front
 * (cut.c). An op with an axis for it in its result is inside; what adds up over rows, or takes them
 * in another way, is outside, and so is all that is made of that. Maps and broadcasts of other
 * values that are as long as the batch are made inside too. In front of the pass that
 * differentiates, the loop keeps nothing for its adjoint (Attr.checkpoint), which makes the part
 * again and adds up the gradients of weights over parts; where the cotangents are made of no part,
 * `merge` makes both loops one, and nothing is made twice.
 *
 * The turns of a loop are such rows too: what is made of the stacks of a loop, turn by turn, goes
 * into its body. So a loop that keeps for its adjoint what a segment of turns needs does so for
 * that as well, and neither the stacks nor their cotangents are there for all turns.
 * Needs and gives: see parts.h. */
#include "passes/parts.h"

#include "passes/cut.h"
#include "passes/merge.h"
#include "passes/points.h"

enum { HEAVY = 3 }; /* times a weight is counted beside values */

typedef struct {
    const Region *region;
    const Node *turns; /* the loop whose turns are the rows; NULL: inputs have them */
    int64_t rows;
    bool light, ends; /* see PartsPlan; a product is left out for that */
    CutLabel label;
    bool *made;   /* by node: of a row by itself; inputs, stacks too */
    bool *inside; /* made in the loop */
    bool *after;  /* of what the loop gives */
    bool *exit;   /* inside, and read outside */
    bool *enters; /* read inside, and made in front */
    bool *rest;   /* read outside */
    Node *loop;   /* that is made */
    Arena *scratch;
} Parts;

static bool is_rows(const Parts *p, const Node *n) {
    return p->turns
               ? n->op == OP_PICK && n->in[0] == p->turns && n->attr->axis >= p->turns->attr->ncarry
               : n->op == OP_SLOT && n->attr->slot->kind == SLOT_INPUT && n->type->rank > 0 &&
                     n->type->dim[0] == p->rows;
}

static bool reads_any(const Node *n, const bool *of) {
    bool any = false;
    for (int k = 0; k < n->nin; k++) {
        any = any || of[n->in[k]->id];
    }
    return any;
}

/* May the label be at `axis` of the result? Then each operand has it where it is known to, or all
 * of them the same. */
static bool agrees(const Parts *p, const Node *n, int axis) {
    bool all = n->type->dim[axis] == p->rows;
    for (int k = 0; k < n->nin && all; k++) {
        int from = cut_from(n, k, axis, true), is = p->label.axis[n->in[k]->id];
        all = from != CUT_LOST && (is == CUT_UNSEEN || is == from);
    }
    return all;
}

static void place(Parts *p, const Node *n, int axis) {
    p->label.axis[n->id] = (int8_t)axis;
    p->inside[n->id] = true;
    for (int k = 0; k < n->nin; k++) {
        p->label.axis[n->in[k]->id] = (int8_t)cut_from(n, k, axis, true);
    }
}

/* Is the weight of the product large beside what it reads and makes of the batch? Its gradient is
 * there through all parts, where a product that is made at once may update in place. */
static bool is_heavy(const Parts *p, const Node *n) {
    if (n->op != OP_CONTRACT) {
        return false;
    }
    const int k = p->made[n->in[1]->id] ? 1 : 0;
    const Node *of = n->in[k], *weight = n->in[1 - k];
    return !p->made[weight->id] &&
           HEAVY * type_bytes(*weight->type) > type_bytes(*n->type) + type_bytes(*of->type);
}

/* What is made of a row by itself. */
static void find_made(Parts *p) {
    for (int i = 0; i < p->region->node.count; i++) {
        const Node *n = p->region->node.at[i];
        if (is_rows(p, n)) {
            p->made[i] = true;
            p->label.axis[i] = 0;
            continue;
        }
        p->after[i] = reads_any(n, p->after);
        if (p->after[i] || !reads_any(n, p->made)) {
            continue;
        }
        const bool heavy = p->light && is_heavy(p, n), fits = cut_takes(n) && !heavy;
        p->ends = p->ends || heavy;
        for (int axis = 0; fits && axis < n->type->rank && !p->inside[i]; axis++) {
            if (agrees(p, n, axis)) {
                place(p, n, axis);
            }
        }
        p->made[i] = p->inside[i];
        p->after[i] = !p->inside[i];
    }
}

/* What else is as long as the batch, and costs no more by parts. */
static void find_spread(Parts *p) {
    for (int i = p->region->node.count - 1; i >= 0; i--) {
        const Node *n = p->region->node.at[i];
        const int axis = p->label.axis[i];
        bool cheap = op_info[n->op].cls == CLASS_MAP || n->op == OP_BROADCAST;
        if (!p->made[i] && axis >= 0 && cheap && n->nin > 0 && cut_takes(n) && agrees(p, n, axis)) {
            place(p, n, axis);
        }
    }
}

/* What crosses the border of the loop; false where no view takes it. */
static bool find_border(Parts *p) {
    const Region *region = p->region;
    bool any = false, fits = true;
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        for (int k = 0; k < n->nin; k++) {
            int in = (int)n->in[k]->id;
            p->enters[in] = p->enters[in] || (p->inside[i] && !p->inside[in]);
            p->rest[in] = p->rest[in] || !p->inside[i];
        }
    }
    bool *point = ARENA_ARRAY(p->scratch, bool, region->node.count);
    points_note(region, point);
    for (int k = 0; k < region->out.count; k++) {
        p->rest[region->out.at[k]->id] = true;
    }
    for (int i = 0; i < region->node.count; i++) {
        p->exit[i] = p->rest[i] && p->inside[i] && p->made[i];
        bool crosses = p->exit[i] || (p->enters[i] && p->label.axis[i] >= 0);
        /* a derivative by a value on the way from the rows to the loss; by a stack, where what is
         * made of it is made in the body instead */
        const bool stack = p->turns && p->enters[i] && is_rows(p, region->node.at[i]);
        fits = fits && !(point[i] && (p->inside[i] || stack));
        fits = fits && !(crosses && region->node.at[i]->type->rank >= MD_RANK);
        any = any || p->exit[i];
    }
    return any && fits;
}

static bool find_parts(Parts *p, Arena *scratch, const Region *region, const Node *turns,
                       PartsPlan plan) {
    const int count = region->node.count;
    *p = (Parts){.region = region,
                 .turns = turns,
                 .rows = plan.rows,
                 .light = plan.light,
                 .scratch = scratch};
    p->made = ARENA_ARRAY(scratch, bool, count);
    p->inside = ARENA_ARRAY(scratch, bool, count);
    p->after = ARENA_ARRAY(scratch, bool, count);
    p->exit = ARENA_ARRAY(scratch, bool, count);
    p->enters = ARENA_ARRAY(scratch, bool, count);
    p->rest = ARENA_ARRAY(scratch, bool, count);
    p->label.axis = ARENA_ARRAY(scratch, int8_t, count);
    for (int i = 0; i < count; i++) {
        p->label.axis[i] = CUT_UNSEEN;
    }
    find_made(p);
    find_spread(p);
    return find_border(p);
}

static void make_loop(void *ctx, Graph *g, Node **map) {
    Parts *p = ctx;
    const Region *region = p->region;
    Cut cut = {.g = g, .label = &p->label, .labels = 1, .trip = p->label.trip};
    int *number = ARENA_ARRAY(p->scratch, int, region->node.count);
    Loc loc = g->loc;
    cut.map = ARENA_ARRAY(p->scratch, Node *, region->node.count);
    cut.loop = loop_open(g, cut.trip, false);
    loop_checkpoint(cut.loop, CHECKPOINT_EACH);
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        if (p->inside[i]) {
            cut_make(&cut, n, map);
        }
        if (p->exit[i]) {
            number[i] = loop_emit(cut.loop, cut.map[i]);
        }
    }
    p->loop = loop_close(cut.loop);
    for (int i = 0; i < region->node.count; i++) {
        if (p->exit[i]) {
            g->loc = region->node.at[i]->loc;
            map[i] = cut_out(&cut, region->node.at[i], loop_stack(g, p->loop, number[i]));
        }
    }
    g->loc = loc;
}

bool parts_applies(const Region *region, PartsPlan plan) {
    Arena scratch = {0};
    Parts p;
    bool any = find_parts(&p, &scratch, region, NULL, plan) && (p.ends || !plan.light);
    arena_free(&scratch);
    return any;
}

/* The region with what was found in a loop of so many iterations. */
static Region *apart(Graph *g, Parts *p, int64_t trip) {
    const RebuildGiven given = {.needed = p->enters, .given = p->exit, .make = make_loop, .ctx = p};
    p->label.extent = p->rows;
    p->label.trip = trip;
    p->label.own = p->rows / trip;
    return region_rebuild_given(g, p->region, &given);
}

Region *pass_parts(Graph *g, const Region *region, PartsPlan plan) {
    Arena scratch = {0};
    Parts p;
    bool any = find_parts(&p, &scratch, region, NULL, plan);
    Region *fresh = any ? apart(g, &p, plan.parts) : region_rebuild(g, region, NULL, NULL);
    arena_free(&scratch);
    return fresh;
}

/* --- turns ------------------------------------------------------------------------------------ */

/* Does it exist anyway: what a caller gives, or what others read too? */
static bool is_there(const Parts *p, const Node *n) {
    while (op_info[n->op].cls == CLASS_VIEW) {
        n = n->in[0];
    }
    return op_info[n->op].cls == CLASS_LEAF || p->rest[n->id];
}

/* Bytes of stacks that go away, less those of what there is instead. */
static int64_t bytes_freed(const Parts *p) {
    int64_t bytes = 0;
    for (int i = 0; i < p->region->node.count; i++) {
        const Node *n = p->region->node.at[i];
        const bool stack = is_rows(p, n);
        bool enters = p->enters[i] && !stack && p->label.axis[i] >= 0 && !is_there(p, n);
        bytes += stack && p->enters[i] && !p->rest[i] ? type_bytes(*n->type) : 0;
        bytes -= p->exit[i] || enters ? type_bytes(*n->type) : 0;
    }
    return bytes;
}

/* Does its adjoint run segments of its turns again? */
static bool in_segments(const Node *n, const GradPlan *plan) {
    return n->op == OP_LOOP && grad_segment(n, plan) > CHECKPOINT_EACH;
}

/* The region with what is made of each turn of `loop` in its body; NULL: nothing is that takes
 * fewer bytes there. */
static Region *turns_inside(Graph *g, const Region *region, const Node *loop) {
    Arena scratch = {0};
    Parts p;
    const PartsPlan each = {.rows = loop->attr->trip};
    bool any = find_parts(&p, &scratch, region, loop, each) && bytes_freed(&p) > 0;
    Region *fresh = any ? apart(g, &p, loop->attr->trip) : NULL;
    fresh = fresh ? pass_merge_one(g, fresh, p.loop) : NULL;
    arena_free(&scratch);
    return fresh;
}

bool turns_applies(const Region *region, const GradPlan *plan) {
    bool any = false;
    for (int i = 0; i < region->node.count && !any; i++) {
        any = in_segments(region->node.at[i], plan);
    }
    return any;
}

Region *pass_turns(Graph *g, const Region *region, const GradPlan *plan) {
    Region *fresh = NULL;
    for (int i = 0; i < region->node.count; i++) {
        const Node *loop = region->node.at[i];
        Region *more = in_segments(loop, plan) ? turns_inside(g, region, loop) : NULL;
        if (more) { /* of fewer bytes, so this ends */
            region = fresh = more;
            i = -1;
        }
    }
    return fresh ? fresh : region_rebuild(g, region, NULL, NULL);
}
