/* thin: what loops stack for others, where it takes fewest bytes.
 *
 * A loop (the reader) that goes through stacks of a loop in front (the maker), as adjoints do,
 * makes cheap things of the slices first: sums of gates, their sigmoids, masks. Between the slices
 * and what the rest of its body reads there is a cut of fewest bytes: the values on it are all that
 * must be stacked. They become results of the maker, by copies of the operations of the reader,
 * which joins those that it has anyway; so values and their bits stay. The last such cut is taken,
 * since what lies before it is not made by the reader any more.
 *
 * Technique: the least cut of the nodes is found by augmenting paths (Edmonds and Karp) in a graph
 * that has every node twice, with an edge of its bytes between both. The region is a copy of the
 * pass's own, so it is changed in place; a last rebuild leaves behind what nobody reads.
 * Needs and gives: see thin.h. */
#include "passes/thin.h"

#include "passes/halves.h"

#include <limits.h>
#include <string.h>

enum {
    WORTH = 8 /* one byte in so many must go away */
};

typedef struct {
    Graph *g;
    const Halves *halves; /* or NULL */
} Pass;

typedef struct {
    int to, next; /* the other end; 1 + the next edge of the same node */
    int64_t left; /* what may flow yet; edge i ^ 1 leads back */
} Edge;

typedef struct {
    Graph *g;
    const Halves *halves; /* or NULL */
    Arena *scratch;
    Node *maker, *reader;
    bool *slice; /* by node of the reader's body: of a stack that nobody else reads */
    bool *made;  /* of such slices in cheap ways; slices too */
    bool *asked; /* read by what is not made so */
    bool *cut;   /* stacked instead */
    VEC(Edge) edge;
    int nodes;  /* of the network */
    int *first; /* by node of it: 1 + its first edge */
    int *by, *queue;
    Node **copy; /* by node of the reader's body: in the maker's */
} Thin;

/* --- what is cheap ---------------------------------------------------------------------------- */

static bool runs_through(const Node *n) {
    return n->op == OP_LOOP && !loop_ends_itself(n->attr) && n->attr->trip > 1;
}

/* The operand of a loop that its body parameter stands for; NULL: a carry, or the index. */
static Node *operand_of(const Node *loop, const Node *param) {
    int k = param->attr->axis - 1;
    return k >= loop->attr->ncarry ? loop->in[k] : NULL;
}

static bool is_sliced(const Node *loop, const Node *param) {
    return param->attr->axis > loop->attr->ncarry + loop->attr->ninv;
}

/* The parameter of the maker that is what `param` is to the reader; NULL: there is none. */
static Node *same_param(const Thin *t, const Node *param) {
    const Node *x = operand_of(t->reader, param);
    Node *found = param->attr->axis == 0 ? t->maker->body->param.at[0] : NULL;
    for (int k = 1; x && !found && k < t->maker->body->param.count; k++) {
        Node *other = t->maker->body->param.at[k];
        bool same = operand_of(t->maker, other) == x &&
                    is_sliced(t->maker, other) == is_sliced(t->reader, param);
        found = same ? other : NULL;
    }
    return found;
}

static bool is_cheap(const Node *n) {
    OpClass cls = op_info[n->op].cls;
    return (cls == CLASS_MAP || cls == CLASS_VIEW) && n->op != OP_RANDOM;
}

/* The result of the maker that operand k of the reader is a stack of, which nobody else reads; -1.
 */
static int own_stack(const Thin *t, const int *readers, int k) {
    const Node *x = t->reader->in[k];
    bool stack = k >= t->reader->attr->ncarry + t->reader->attr->ninv && x->op == OP_PICK &&
                 x->in[0] == t->maker && x->attr->axis >= t->maker->attr->ncarry;
    return stack && readers[x->id] == 1 ? x->attr->axis : -1;
}

/* Fills slice, made and asked; false where no stack could go away. */
static bool find_made(Thin *t, const int *readers) {
    const Region *body = t->reader->body;
    const int count = body->node.count;
    bool *there = ARENA_ARRAY(t->scratch, bool, count), any = false; /* for the maker too */
    t->slice = ARENA_ARRAY(t->scratch, bool, count);
    t->made = ARENA_ARRAY(t->scratch, bool, count);
    t->asked = ARENA_ARRAY(t->scratch, bool, count);
    t->copy = ARENA_ARRAY(t->scratch, Node *, count);
    for (int k = 0; k < t->reader->nin; k++) {
        const Node *param = body->param.at[1 + k];
        int result = own_stack(t, readers, k);
        if (result >= 0) {
            t->slice[param->id] = t->made[param->id] = there[param->id] = any = true;
            t->copy[param->id] = t->maker->body->out.at[result];
        }
    }
    for (int i = 0; any && i < count; i++) {
        const Node *n = body->node.at[i];
        bool all = n->nin > 0 ? is_cheap(n) : op_info[n->op].cls == CLASS_LEAF;
        if (n->op == OP_BODY_PARAM) {
            all = there[i] || same_param(t, n);
        }
        bool of_slices = t->slice[i];
        for (int k = 0; k < n->nin; k++) {
            all = all && there[n->in[k]->id];
            of_slices = of_slices || t->made[n->in[k]->id];
        }
        there[i] = all;
        t->made[i] = all && of_slices;
        for (int k = 0; k < n->nin; k++) {
            t->asked[n->in[k]->id] |= !t->made[i];
        }
    }
    for (int k = 0; any && k < body->out.count; k++) {
        t->asked[body->out.at[k]->id] = true;
    }
    return any;
}

/* Bytes of a slice of a stack of such values. */
static int64_t stacked_bytes(const Thin *t, const Node *n) {
    bool half = t->halves && halves_hold(t->halves, n);
    Elem elem = half ? halves_elem(t->halves) : n->type->elem;
    return type_count(*n->type) * (int64_t)elem_bytes(elem);
}

/* --- the least cut ---------------------------------------------------------------------------- */

static void add_edge(Thin *t, int from, int to, int64_t most) {
    Edge there = {to, t->first[from], most}, back = {from, t->first[to], 0};
    VEC_PUSH(t->scratch, &t->edge, there);
    t->first[from] = t->edge.count;
    VEC_PUSH(t->scratch, &t->edge, back);
    t->first[to] = t->edge.count;
}

/* A node is 2i where it is made and 2i + 1 where it is read. */
static void make_network(Thin *t, int from, int to) {
    const Region *body = t->reader->body;
    t->nodes = to + 1;
    t->first = ARENA_ARRAY(t->scratch, int, t->nodes);
    t->by = ARENA_ARRAY(t->scratch, int, t->nodes);
    t->queue = ARENA_ARRAY(t->scratch, int, t->nodes);
    for (int i = 0; i < body->node.count; i++) {
        const Node *n = body->node.at[i];
        if (!t->made[i]) {
            continue;
        }
        add_edge(t, 2 * i, 2 * i + 1, stacked_bytes(t, n));
        if (t->slice[i]) {
            add_edge(t, from, 2 * i, INT64_MAX);
        }
        if (t->asked[i]) {
            add_edge(t, 2 * i + 1, to, INT64_MAX);
        }
        for (int k = 0; k < n->nin; k++) {
            if (t->made[n->in[k]->id]) {
                add_edge(t, 2 * (int)n->in[k]->id + 1, 2 * i, INT64_MAX);
            }
        }
    }
}

/* Breadth first, into t->by: by node, 1 + the edge by which it is reached from `from`; 0: it is
 * not. Backwards: from the end, along edges by which something may flow to it. */
static void reach(Thin *t, int from, bool backwards) {
    int count = 0;
    memset(t->by, 0, sizeof *t->by * (size_t)t->nodes);
    t->queue[count++] = from;
    t->by[from] = INT_MAX;
    for (int at = 0; at < count; at++) {
        for (int e = t->first[t->queue[at]]; e > 0; e = t->edge.at[e - 1].next) {
            const Edge *edge = &t->edge.at[e - 1], *back = &t->edge.at[(e - 1) ^ 1];
            if (t->by[edge->to] == 0 && (backwards ? back->left : edge->left) > 0) {
                t->by[edge->to] = e;
                t->queue[count++] = edge->to;
            }
        }
    }
}

static int64_t path_most(const Thin *t, int from, int to) {
    int64_t most = INT64_MAX;
    for (int at = to; at != from; at = t->edge.at[(t->by[at] - 1) ^ 1].to) {
        int64_t left = t->edge.at[t->by[at] - 1].left;
        most = left < most ? left : most;
    }
    return most;
}

static void send(Thin *t, int from, int to, int64_t amount) {
    for (int at = to; at != from; at = t->edge.at[(t->by[at] - 1) ^ 1].to) {
        t->edge.at[t->by[at] - 1].left -= amount;
        t->edge.at[(t->by[at] - 1) ^ 1].left += amount;
    }
}

/* Fills cut: the last cut of fewest bytes, which it gives. */
static int64_t find_cut(Thin *t) {
    const Region *body = t->reader->body;
    const int from = 2 * body->node.count, to = from + 1;
    int64_t bytes = 0;
    make_network(t, from, to);
    for (reach(t, from, false); t->by[to] != 0; reach(t, from, false)) {
        int64_t amount = path_most(t, from, to);
        send(t, from, to, amount);
        bytes += amount;
    }
    reach(t, to, true);
    t->cut = ARENA_ARRAY(t->scratch, bool, body->node.count);
    for (int i = 0; i < body->node.count; i++) {
        t->cut[i] = t->made[i] && t->by[2 * i] == 0 && t->by[2 * i + 1] != 0;
    }
    return bytes;
}

/* A view of all of a value is not stacked instead of that. */
static void find_bases(Thin *t) {
    const Region *body = t->reader->body;
    for (int i = body->node.count - 1; i >= 0; i--) {
        const Node *n = body->node.at[i], *base = n->nin == 1 ? n->in[0] : NULL;
        if (t->cut[i] && !t->slice[i] && op_info[n->op].cls == CLASS_VIEW && t->made[base->id] &&
            stacked_bytes(t, base) == stacked_bytes(t, n)) {
            t->cut[i] = false;
            t->cut[base->id] = true;
        }
    }
}

/* --- the change ------------------------------------------------------------------------------- */

/* The nodes of the reader's body that the cut is made of, in the maker's; in order, since chains
 * may be long. */
static void copy_cut(Thin *t) {
    const Region *body = t->reader->body;
    const int count = body->node.count;
    bool *needed = ARENA_ARRAY(t->scratch, bool, count);
    for (int i = count - 1; i >= 0; i--) {
        const Node *n = body->node.at[i];
        needed[i] = (needed[i] || t->cut[i]) && !t->copy[i];
        for (int k = 0; needed[i] && k < n->nin; k++) {
            needed[n->in[k]->id] = true;
        }
    }
    Region *before = graph_enter(t->g, t->maker->body);
    for (int i = 0; i < count; i++) {
        const Node *n = body->node.at[i];
        if (needed[i] && n->op == OP_BODY_PARAM) {
            t->copy[i] = same_param(t, n);
        } else if (needed[i]) {
            Node **in = ARENA_ARRAY(t->scratch, Node *, n->nin + 1);
            for (int k = 0; k < n->nin; k++) {
                in[k] = t->copy[n->in[k]->id];
            }
            t->g->loc = n->loc;
            t->copy[i] = graph_copy(t->g, n, in);
            if (n->name && !t->copy[i]->name) {
                graph_name(t->copy[i], n->name);
            }
        }
    }
    graph_leave(t->g, before);
}

static Attr *own_attr(Thin *t, Node *loop) {
    Attr *attr = ARENA_NEW(t->g->arena, Attr);
    *attr = *loop->attr;
    loop->attr = attr;
    return attr;
}

/* The stack of `value` of the maker's body. */
static Node *stack_of(Thin *t, Node *value) {
    Region *body = t->maker->body;
    Attr pick = {.axis = t->maker->attr->ncarry};
    while (pick.axis < body->out.count && body->out.at[pick.axis] != value) {
        pick.axis++;
    }
    if (pick.axis == body->out.count) {
        VEC_PUSH(t->g->arena, &body->out, value);
        own_attr(t, t->maker)->nys++;
    }
    Region *before = graph_enter(t->g, t->maker->region);
    t->g->loc = value->loc;
    Node *stack = graph_add(t->g, OP_PICK, &t->maker, 1, &pick, type_scalar(TY_ERROR));
    graph_leave(t->g, before);
    return stack;
}

/* The slice of `stack`, one more operand of the reader, in its body. */
static Node *slice_of(Thin *t, Node *stack, Type type) {
    Node *reader = t->reader, **in = ARENA_ARRAY(t->g->arena, Node *, reader->nin + 1);
    memcpy(in, reader->in, sizeof(Node *) * (size_t)reader->nin);
    in[reader->nin++] = stack;
    reader->in = in;
    own_attr(t, reader)->nxs++;
    return region_param(reader->body, type);
}

static void stack_cut(Thin *t) {
    Region *body = t->reader->body;
    const int count = body->node.count;
    Node **instead = ARENA_ARRAY(t->scratch, Node *, count);
    copy_cut(t);
    for (int i = 0; i < count; i++) {
        const Node *n = body->node.at[i];
        if (t->cut[i] && !t->slice[i]) {
            instead[i] = slice_of(t, stack_of(t, t->copy[i]), *n->type);
        }
    }
    for (int i = 0; i < count; i++) {
        Node *n = body->node.at[i];
        for (int k = 0; k < n->nin; k++) {
            n->in[k] = instead[n->in[k]->id] ? instead[n->in[k]->id] : n->in[k];
        }
    }
    for (int k = 0; k < body->out.count; k++) {
        Node *out = body->out.at[k];
        body->out.at[k] = (int)out->id < count && instead[out->id] ? instead[out->id] : out;
    }
}

/* Does the reader go through fewer bytes of the maker now? */
static bool thin_pair(const Pass *p, Node *maker, Node *reader, const int *readers) {
    Arena scratch = {0};
    Thin t = {
        .g = p->g, .halves = p->halves, .scratch = &scratch, .maker = maker, .reader = reader};
    bool less = false;
    if (find_made(&t, readers)) {
        int64_t bytes = 0;
        for (int i = 0; i < reader->body->node.count; i++) {
            bytes += t.slice[i] ? stacked_bytes(&t, reader->body->node.at[i]) : 0;
        }
        int64_t away = bytes - find_cut(&t);
        less = away > 0 && away >= bytes / WORTH;
    }
    if (less) {
        find_bases(&t);
        stack_cut(&t);
        region_settle(reader->body);
    }
    arena_free(&scratch);
    return less;
}

/* --- a region --------------------------------------------------------------------------------- */

static int *count_readers(const Region *region, Arena *scratch) {
    int *readers = ARENA_ARRAY(scratch, int, region->node.count + 1);
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        for (int k = 0; k < n->nin; k++) {
            readers[n->in[k]->id]++;
        }
    }
    for (int k = 0; k < region->out.count; k++) {
        readers[region->out.at[k]->id]++;
    }
    return readers;
}

/* Loops of the region, each once, and those in bodies; was anything changed? */
static bool thin_region(const Pass *p, Region *region) {
    Arena scratch = {0};
    const int count = region->node.count;
    const int *readers = count_readers(region, &scratch);
    bool *done = ARENA_ARRAY(&scratch, bool, count), any = false;
    for (int i = 0; i < count; i++) {
        Node *reader = region->node.at[i];
        if (reader->body && thin_region(p, reader->body)) {
            done[i] = any = true;
        }
        for (int k = 0; runs_through(reader) && k < reader->nin && !done[i]; k++) {
            Node *x = reader->in[k], *maker = x->op == OP_PICK ? x->in[0] : NULL;
            if (maker && !done[maker->id] && runs_through(maker) &&
                maker->attr->trip == reader->attr->trip && thin_pair(p, maker, reader, readers)) {
                done[i] = done[maker->id] = any = true;
            }
        }
    }
    arena_free(&scratch);
    if (any) {
        region_settle(region);
    }
    return any;
}

static bool goes_through(const Node *n) {
    return runs_through(n) && n->attr->nxs > 0;
}

bool thin_applies(const Region *region) {
    return region_any(region, goes_through);
}

Region *pass_thin(Graph *g, const Region *region, Elem half) {
    Loc loc = g->loc;
    Region *fresh = region_rebuild(g, region, NULL, NULL);
    for (bool any = true; any;) {
        Arena scratch = {0};
        Pass p = {g, half != TY_ERROR ? halves_new(&scratch, fresh, half) : NULL};
        any = thin_region(&p, fresh);
        arena_free(&scratch);
        fresh = any ? region_rebuild(g, fresh, NULL, NULL) : fresh;
    }
    g->loc = loc;
    return fresh;
}
