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
 * Needs and gives: see parts.h. */
#include "passes/parts.h"

#include "passes/cut.h"

typedef struct {
    const Region *region;
    int64_t rows;
    CutLabel label;
    bool *made;   /* by node: of a row by itself; inputs too */
    bool *inside; /* made in the loop */
    bool *after;  /* of what the loop gives */
    bool *exit;   /* inside, and read outside */
    bool *enters; /* read inside, and made in front */
    Arena *scratch;
} Parts;

static bool is_rows(const Node *n, int64_t rows) {
    return n->op == OP_SLOT && n->attr->slot->kind == SLOT_INPUT && n->type->rank > 0 &&
           n->type->dim[0] == rows;
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

/* What is made of a row by itself. */
static void find_made(Parts *p) {
    for (int i = 0; i < p->region->node.count; i++) {
        const Node *n = p->region->node.at[i];
        if (is_rows(n, p->rows)) {
            p->made[i] = true;
            p->label.axis[i] = 0;
            continue;
        }
        p->after[i] = reads_any(n, p->after);
        if (p->after[i] || !reads_any(n, p->made)) {
            continue;
        }
        for (int axis = 0; cut_takes(n) && axis < n->type->rank && !p->inside[i]; axis++) {
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
            p->exit[in] = p->exit[in] || (!p->inside[i] && p->inside[in] && p->made[in]);
        }
        /* a derivative by a value on the way from the inputs to the loss */
        fits = fits && !(n->op == OP_GRAD && p->inside[n->in[1]->id]);
    }
    for (int k = 0; k < region->out.count; k++) {
        int out = (int)region->out.at[k]->id;
        p->exit[out] = p->inside[out] && p->made[out];
    }
    for (int i = 0; i < region->node.count; i++) {
        bool crosses = p->exit[i] || (p->enters[i] && p->label.axis[i] >= 0);
        fits = fits && !(crosses && region->node.at[i]->type->rank >= MD_RANK);
        any = any || p->exit[i];
    }
    return any && fits;
}

static bool find_parts(Parts *p, Arena *scratch, const Region *region, int64_t rows) {
    const int count = region->node.count;
    *p = (Parts){.region = region, .rows = rows, .scratch = scratch};
    p->made = ARENA_ARRAY(scratch, bool, count);
    p->inside = ARENA_ARRAY(scratch, bool, count);
    p->after = ARENA_ARRAY(scratch, bool, count);
    p->exit = ARENA_ARRAY(scratch, bool, count);
    p->enters = ARENA_ARRAY(scratch, bool, count);
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
    Node *loop = loop_close(cut.loop);
    for (int i = 0; i < region->node.count; i++) {
        if (p->exit[i]) {
            g->loc = region->node.at[i]->loc;
            map[i] = cut_out(&cut, region->node.at[i], loop_stack(g, loop, number[i]));
        }
    }
    g->loc = loc;
}

bool parts_applies(const Region *region, int64_t rows) {
    Arena scratch = {0};
    Parts p;
    bool any = find_parts(&p, &scratch, region, rows);
    arena_free(&scratch);
    return any;
}

Region *pass_parts(Graph *g, const Region *region, int64_t rows, int64_t parts) {
    Arena scratch = {0};
    Parts p;
    RebuildGiven given = {.make = make_loop, .ctx = &p};
    bool any = find_parts(&p, &scratch, region, rows);
    p.label.extent = rows;
    p.label.trip = parts;
    p.label.own = rows / parts;
    given.needed = p.enters;
    given.given = p.exit;
    Region *fresh =
        any ? region_rebuild_given(g, region, &given) : region_rebuild(g, region, NULL, NULL);
    arena_free(&scratch);
    return fresh;
}
