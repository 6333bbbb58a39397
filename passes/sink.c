/* sink: what loops go through slice by slice and is looked up, is looked up slice by slice.
 *
 * The rows of an embedding of all steps are as large as what loops keep of these. Where nothing
 * but loops reads them, a slice in each turn, each loop looks up its slice by itself: the indices
 * of the slice are there, the table is the same for all turns, and no number is computed.
 *
 * Behind the pass that differentiates, their derivative is another value, and stays as it is: a
 * stack of what each turn gives to the table. In front of it, the adjoint of a loop that keeps the
 * carries of segments alone adds that up turn by turn, as the derivatives of weights, and there is
 * no such stack. It goes through the whole table in each turn for that, which must be little beside
 * the weights that a turn goes through anyway.
 *
 * Technique: from what goes into a loop backwards through views that have an axis for the turns,
 * to the GATHER, whose index has it (cut.c). Segments of turns are one axis of the value in two.
 * Needs and gives: see sink.h. */
#include "passes/sink.h"

#include "passes/cut.h"

const int64_t sink_least = TUNED(512 << 10, 64);

enum {
    SMALL = 2, /* times an index must be smaller than what is looked up by it */
    /* Times what is the same for all turns must be larger than a table to which the adjoint adds in
     * each of them. */
    LITTLE = TUNED(16, 1)
};

/* What is looked up in loops. */
typedef struct {
    int64_t least;        /* bytes of all turns */
    const GradPlan *plan; /* its derivative as well, as that says; NULL: there is none any more */
} Sink;

/* The nodes between a slice and what is looked up. */
typedef struct {
    const Node *base, *gather; /* base: what is sliced, without the axis of segments */
    int64_t trip, own;
    int8_t *axis; /* by node of the region: where it has the turns */
} Chain;

static bool is_slice(const Node *loop, int k) {
    return loop->op == OP_LOOP && k >= loop->attr->ncarry + loop->attr->ninv;
}

static bool is_view(const Node *n) {
    return n->op == OP_PERMUTE || n->op == OP_RESHAPE;
}

/* May the loop look up in `table`? */
static bool takes(const Sink *s, const Node *loop, const Node *table) {
    const Attr *a = loop->attr;
    int64_t same = 0;
    for (int k = a->ncarry; k < a->ncarry + a->ninv; k++) {
        same += type_bytes(*loop->in[k]->type);
    }
    return !s->plan || (grad_segment(loop, s->plan) > CHECKPOINT_EACH &&
                        type_bytes(*table->type) <= same / LITTLE);
}

/* Do nothing but loops read it, slice by slice, and views for them? */
static bool sliced_alone(const Sink *s, const Node *n, const Node *table) {
    const Region *region = n->region;
    bool alone = true;
    for (int i = 0; i < region->out.count; i++) {
        alone = alone && region->out.at[i] != n;
    }
    for (int i = (int)n->id + 1; i < region->node.count && alone; i++) {
        const Node *user = region->node.at[i];
        for (int k = 0; k < user->nin; k++) {
            if (user->in[k] == n) {
                alone =
                    alone && (is_slice(user, k) ? takes(s, user, table)
                                                : is_view(user) && sliced_alone(s, user, table));
            }
        }
    }
    return alone;
}

/* Is the first axis of `n` that of its operand in segments? */
static bool splits_turns(const Node *n) {
    const Type *to = n->type, *from = n->op == OP_RESHAPE ? n->in[0]->type : NULL;
    bool splits = from && to->rank == from->rank + 1 && to->dim[0] * to->dim[1] == from->dim[0];
    for (int i = 1; splits && i < from->rank; i++) {
        splits = to->dim[i + 1] == from->dim[i];
    }
    return splits;
}

/* Fills the chain of what a loop slices; false where it is none. */
static bool find_chain(Chain *c, Arena *scratch, const Node *x, const Sink *s) {
    const bool splits = splits_turns(x);
    const Node *n = c->base = splits ? x->in[0] : x;
    int axis = 0;
    c->gather = n;
    while (is_view(c->gather)) {
        c->gather = c->gather->in[0];
    }
    if (c->gather->op != OP_GATHER || type_bytes(*c->gather->type) < s->least) {
        return false; /* most operands: the axes of all nodes are not asked for */
    }
    c->trip = x->type->dim[0];
    c->own = splits ? x->type->dim[1] : 1;
    c->axis = ARENA_ARRAY(scratch, int8_t, x->region->node.count);
    for (int i = 0; i < x->region->node.count; i++) {
        c->axis[i] = CUT_NO_AXIS;
    }
    for (; is_view(n) && axis >= 0; n = n->in[0]) {
        c->axis[n->id] = (int8_t)axis;
        axis = cut_from(n, 0, axis, true);
    }
    if (axis < 0 || type_bytes(*n->in[1]->type) > type_bytes(*n->type) / SMALL ||
        !sliced_alone(s, n, n->in[0])) {
        return false;
    }
    c->axis[n->id] = (int8_t)axis;
    c->axis[n->in[1]->id] = (int8_t)cut_from(n, 1, axis, true);
    return cut_from(n, 0, axis, true) == CUT_NO_AXIS && c->axis[n->in[1]->id] >= 0 &&
           n->type->rank < MD_RANK;
}

static Node *make_chain(Cut *cut, const Chain *c, const Node *n, Node *const *map) {
    if (n != c->gather) {
        make_chain(cut, c, n->in[0], map);
    }
    cut_make(cut, n, map);
    return cut->map[n->id];
}

/* The slice of `x` in a loop that is open; NULL: it is read. */
static Node *slice_made(void *ctx, Graph *g, LoopBuilder *loop, const Node *x, Node *const *map) {
    Arena scratch = {0};
    Chain c;
    Node *slice = NULL;
    if (find_chain(&c, &scratch, x, ctx)) {
        CutLabel label = {c.axis, c.trip * c.own, c.trip, c.own, true};
        Cut cut = {.g = g, .label = &label, .labels = 1, .loop = loop, .trip = c.trip};
        cut.map = ARENA_ARRAY(&scratch, Node *, x->region->node.count);
        slice = make_chain(&cut, &c, c.base, map);
    }
    arena_free(&scratch);
    return slice;
}

static bool has_chain(const Node *loop, const Sink *s) {
    bool found = false;
    for (int k = 0; k < loop->nin && !found; k++) {
        Arena scratch = {0};
        Chain c;
        found = is_slice(loop, k) && find_chain(&c, &scratch, loop->in[k], s);
        arena_free(&scratch);
    }
    return found;
}

static bool applies(const Region *region, const Sink *s) {
    bool any = false;
    for (int i = 0; i < region->node.count && !any; i++) {
        const Node *n = region->node.at[i];
        any = has_chain(n, s) || (n->body && applies(n->body, s));
    }
    return any;
}

static Region *sunk(Graph *g, const Region *region, Sink *s) {
    Region *fresh = region_rebuild_sliced(g, region, slice_made, s);
    return region_rebuild(g, fresh, NULL, NULL); /* without the whole values */
}

bool sink_applies(const Region *region, int64_t least) {
    return applies(region, &(Sink){.least = least});
}

Region *pass_sink(Graph *g, const Region *region, int64_t least) {
    return sunk(g, region, &(Sink){.least = least});
}

bool sink_turns_applies(const Region *region, int64_t least, const GradPlan *plan) {
    return applies(region, &(Sink){least, plan});
}

Region *pass_sink_turns(Graph *g, const Region *region, int64_t least, const GradPlan *plan) {
    return sunk(g, region, &(Sink){least, plan});
}
