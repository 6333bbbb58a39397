/* graph: the hash-consing builder.
 * Contract: needs operands of the current region or of one that encloses it; gives the one node of
 * the current region with that operation, operands and attributes; never changes an existing node
 * except to give it its first name. */
#include "compiler/graph.h"

#include "compiler/eval_rule.h"
#include "compiler/eval_scalar.h"
#include "compiler/keep.h"
#include "compiler/loop_builder.h"
#include "compiler/shape.h"

#include <string.h>

const OpInfo op_info[OP_COUNT] = {
#define OP(NAME, name, nin, cls, shape, eval, vjp, lower, made, sample, cost, spelling)            \
    [OP_##NAME] = {name, nin, CLASS_##cls, MADE_##made, cost, spelling},
#include "compiler/op.def"
#undef OP
};

Graph *graph_new(Arena *arena, Elem float_type) {
    Graph *g = ARENA_NEW(arena, Graph);
    g->arena = g->keep = arena;
    g->loc = LOC_NONE;
    g->float_type = float_type;
    return g;
}

Region *region_new(Graph *g, Region *up) {
    Region *region = ARENA_NEW(g->arena, Region);
    region->graph = g;
    region->up = up;
    return region;
}

Region *graph_enter(Graph *g, Region *region) {
    Region *before = g->region;
    g->region = region;
    return before;
}

void graph_leave(Graph *g, Region *before) {
    g->region = before;
}

/* --- adding ---------------------------------------------------------------------------------- */

static Node *append(Graph *g, OpCode op, Node *const *in, int nin, const Attr *attr, Region *body,
                    const Type *type) {
    Region *region = g->region;
    Node *node = ARENA_NEW(g->arena, Node);
    node->op = op;
    node->id = (uint32_t)region->node.count;
    node->type = type;
    node->nin = nin;
    node->in = ARENA_ARRAY(g->arena, Node *, nin);
    if (nin > 0) {
        memcpy(node->in, in, sizeof *in * (size_t)nin);
    }
    node->attr = attr;
    node->region = region;
    node->body = body;
    if (body) {
        body->owner = node;
    }
    node->loc = g->loc;
    VEC_PUSH(g->arena, &region->node, node);
    return node;
}

/* Appends without looking for an equal node: loops, marks with bodies, body parameters. */
Node *graph_append(Graph *g, OpCode op, Node *const *in, int nin, const Attr *attr, Region *body,
                   Type type) {
    return append(g, op, in, nin, attr_keep(g, op, attr), body,
                  type_keep(g->keep, &g->types, type));
}

/* Whether operands in the other order give the same, to the bit. */
static bool commutes(OpCode op) {
    return op == OP_ADD || op == OP_MUL || op == OP_EQ || op == OP_AND || op == OP_OR;
}

/* The node of the current region that is this, made if there is none. Attributes that are kept. */
static Node *add_once(Graph *g, OpCode op, Node *const *in, int nin, const Attr *attr, Type type) {
    const Type *kept = type_keep(g->keep, &g->types, type);
    uint32_t hash = node_hash(op, in, nin, attr, kept);
    Node *node = node_find(g->region, hash, op, in, nin, attr, kept);
    if (!node && commutes(op)) {
        Node *turned[2] = {in[1], in[0]};
        uint32_t other = node_hash(op, turned, nin, attr, kept);
        node = node_find(g->region, other, op, turned, nin, attr, kept);
    }
    if (!node) {
        node = append(g, op, in, nin, attr, NULL, kept);
        node_note(g->region, node, hash);
    }
    return node;
}

/* --- local identities ------------------------------------------------------------------------ */

/* The scalar constant that `node` repeats, or NULL. */
static Node *uniform_constant(Node *node) {
    if (node->op == OP_CONST) {
        return node;
    }
    if (node->op == OP_BROADCAST && node->in[0]->op == OP_CONST) {
        return node->in[0];
    }
    return NULL;
}

static Node *scalar_broadcast(Graph *g, Node *scalar, Type type) {
    return type.rank == 0 ? scalar
                          : node_broadcast(g, scalar, (1u << type.rank) - 1, type.rank, type.dim);
}

/* Folds an elementwise op whose operands are all constants, whatever their shape. */
static Node *fold_map(Graph *g, OpCode op, Node *const *in, int nin, const Attr *attr, Type type) {
    const Node *scalar[3];
    if (nin < 1 || nin > 3) {
        return NULL;
    }
    for (int i = 0; i < nin; i++) {
        scalar[i] = uniform_constant(in[i]);
        if (!scalar[i]) {
            return NULL;
        }
    }
    double value = 0;
    int64_t ivalue = 0;
    if (!eval_scalar(op, type_scalar(type.elem), attr, scalar, &value, &ivalue)) {
        return NULL;
    }
    Node *folded =
        elem_is_int(type.elem) ? node_int(g, type.elem, ivalue) : node_const(g, type.elem, value);
    return scalar_broadcast(g, folded, type);
}

static bool view_is_identity(OpCode op, const Node *a, const Attr *attr, Type type) {
    switch (op) { /* the identities of views; lint knows this file as part of the builder */
    case OP_RESHAPE: return type_equal(type, *a->type);
    case OP_PERMUTE:
        for (int i = 0; i < a->type->rank; i++) {
            if (attr->map[i] != i) {
                return false;
            }
        }
        return true;
    case OP_SLICE: return type_equal(type, *a->type);
    case OP_PAD: return type_equal(type, *a->type);
    case OP_BROADCAST: return attr->axes == 0;
    case OP_FLIP: return attr->axes == 0;
    case OP_CAST: return type.elem == a->type->elem && !attr->exact;
    default: return false;
    }
}

/* Views of a repeated constant are repeated constants. */
static Node *view_of_constant(Graph *g, OpCode op, Node *a, const Attr *attr, Type type) {
    Node *scalar = uniform_constant(a);
    if (!scalar || op == OP_BROADCAST) {
        return NULL;
    }
    if ((op == OP_PAD || op == OP_WINDOW) && attr->border == BORDER_VALUE) {
        bool same = elem_is_int(scalar->type->elem) ? (double)scalar->attr->ivalue == attr->value
                                                    : scalar->attr->value == attr->value;
        if (!same) {
            return NULL;
        }
    }
    return scalar_broadcast(g, scalar, type);
}

Node *graph_add(Graph *g, OpCode op, Node *const *in, int nin, const Attr *attr, Type type) {
    Node *local[64], **operand = nin <= 64 ? local : ARENA_ARRAY(g->arena, Node *, nin);
    if (op == OP_SLOT) {
        return node_slot(g, attr->slot);
    }
    for (int i = 0; i < nin; i++) {
        operand[i] = graph_import(g, in[i]);
    }
    attr = attr_keep(g, op, attr);
    if (op == OP_LOOP || op == OP_CUSTOM || op == OP_BODY_PARAM) {
        BUG("%s is not made by graph_add", op_info[op].name);
    }
    Type t = shape_infer(op, operand, nin, attr, NULL, type);
    if (nin == 1 && view_is_identity(op, operand[0], attr, t)) {
        return operand[0];
    }
    Node *other = NULL;
    if (op_info[op].cls == CLASS_MAP) {
        other = fold_map(g, op, operand, nin, attr, t);
    } else if (op_info[op].cls == CLASS_VIEW) {
        other = view_of_constant(g, op, operand[0], attr, t);
    }
    if (op == OP_RESHAPE && operand[0]->op == OP_RESHAPE && !operand[0]->name) {
        other = graph_add(g, op, operand[0]->in, 1, attr, t);
    }
    if (op == OP_CONCAT && nin == 1) {
        other = operand[0];
    }
    return other ? other : add_once(g, op, operand, nin, attr, t);
}

Node *graph_name(Node *node, const char *name) {
    if (!node->name && node->op != OP_CONST) {
        node->name = name;
    }
    return node;
}

void graph_spend(Graph *g) {
    if (g->spent != NULL) {
        arena_free(g->spent);
        g->spent = NULL;
    }
}

bool region_any(const Region *region, bool (*test)(const Node *node)) {
    bool any = false;
    for (int i = 0; i < region->node.count && !any; i++) {
        const Node *node = region->node.at[i];
        any = test(node) || (node->body && region_any(node->body, test));
    }
    return any;
}

/* --- regions --------------------------------------------------------------------------------- */

Node *region_param(Region *region, Type type) {
    Graph *g = region->graph;
    Region *before = graph_enter(g, region);
    Attr attr = {.axis = region->param.count};
    Node *node = graph_append(g, OP_BODY_PARAM, NULL, 0, &attr, NULL, type);
    VEC_PUSH(g->arena, &region->param, node);
    graph_leave(g, before);
    return node;
}

void region_result(Region *region, Node *node) {
    if (node->region != region) {
        BUG("result %u of another region", node->id);
    }
    VEC_PUSH(region->graph->arena, &region->out, node);
}

static bool encloses(const Region *outer, const Region *inner) {
    for (; inner; inner = inner->up) {
        if (inner == outer) {
            return true;
        }
    }
    return false;
}

Node *graph_import(Graph *g, Node *node) {
    Region *here = g->region;
    if (node->region == here) {
        return node;
    }
    /* Constants are made again wherever they are needed. */
    if (node->op == OP_CONST || node->op == OP_TABLE || node->op == OP_IOTA ||
        (node->op == OP_BROADCAST && node->in[0]->op == OP_CONST)) {
        Loc loc = g->loc;
        g->loc = node->loc;
        Node *copy = graph_add(g, node->op, node->in, node->nin, node->attr, *node->type);
        g->loc = loc;
        return copy;
    }
    if (!encloses(node->region, here)) {
        BUG("operand '%s' (%s) belongs to a region that does not enclose the current one",
            node->name ? node->name : "", op_info[node->op].name);
    }
    if (!here->loop) {
        BUG("a body that is no open loop reads '%s' (%s) from outside",
            node->name ? node->name : "", op_info[node->op].name);
    }
    Region *before = graph_enter(g, here->up);
    Node *outer = graph_import(g, node);
    graph_leave(g, before);
    return loop_capture(here->loop, outer);
}

/* --- makers ---------------------------------------------------------------------------------- */

Node *node_const(Graph *g, Elem elem, double value) {
    if (elem_is_int(elem)) {
        return node_int(g, elem, (int64_t)value);
    }
    Attr attr = {.value = elem == TY_F32 ? (double)(float)value : value};
    return graph_add(g, OP_CONST, NULL, 0, &attr, type_scalar(elem));
}

Node *node_int(Graph *g, Elem elem, int64_t value) {
    Attr attr = {.ivalue = num_wrap(elem, value)};
    return graph_add(g, OP_CONST, NULL, 0, &attr, type_scalar(elem));
}

Node *node_full(Graph *g, Type type, double value) {
    return scalar_broadcast(g, node_const(g, type.elem, value), type);
}

Node *node_table(Graph *g, Type type, const double *data) {
    static const double none; /* tables without numbers are one */
    Attr attr = {.data = type_count(type) > 0 ? data : &none};
    return graph_add(g, OP_TABLE, NULL, 0, &attr, type);
}

Node *node_slot(Graph *g, Slot *slot) {
    Region *here = g->region, *top = here;
    while (top->up) {
        top = top->up;
    }
    Attr attr = {.slot = slot};
    Region *before = graph_enter(g, top);
    Node *node = add_once(g, OP_SLOT, NULL, 0, attr_keep(g, OP_SLOT, &attr),
                          slot_value_type(slot));
    node->loc = slot->loc;
    node->name = slot->name;
    graph_leave(g, before);
    return graph_import(g, node);
}

Node *node_iota(Graph *g, Type type, int axis) {
    Attr attr = {.axis = axis};
    return graph_add(g, OP_IOTA, NULL, 0, &attr, type);
}

Node *node_map1(Graph *g, OpCode op, Node *a) {
    return graph_add(g, op, &a, 1, NULL, type_scalar(TY_ERROR));
}

Node *node_broadcast_to(Graph *g, Node *a, Type like) {
    if (a->type->rank == 0 && like.rank > 0) {
        return scalar_broadcast(g, graph_import(g, a), like);
    }
    if (like.rank > 0 && !type_same_shape(*a->type, like)) {
        BUG("only a scalar broadcasts by itself");
    }
    return a;
}

Node *node_map2(Graph *g, OpCode op, Node *a, Node *b) {
    Node *in[2] = {node_broadcast_to(g, a, *b->type), node_broadcast_to(g, b, *a->type)};
    return graph_add(g, op, in, 2, NULL, type_scalar(TY_ERROR));
}

Node *node_map3(Graph *g, OpCode op, Node *a, Node *b, Node *c) {
    Type like = *(a->type->rank > 0 ? a->type : b->type->rank > 0 ? b->type : c->type);
    Node *in[3] = {node_broadcast_to(g, a, like), node_broadcast_to(g, b, like),
                   node_broadcast_to(g, c, like)};
    return graph_add(g, op, in, 3, NULL, type_scalar(TY_ERROR));
}

Node *node_select(Graph *g, Node *c, Node *a, Node *b) {
    return node_map3(g, OP_SELECT, c, a, b);
}

Node *node_cast(Graph *g, Node *a, Elem elem) {
    return graph_add(g, OP_CAST, &a, 1, NULL, type_scalar(elem));
}

Node *node_widen(Graph *g, Node *a) {
    Attr attr = {.exact = true};
    return graph_add(g, OP_CAST, &a, 1, &attr, type_scalar(a->type->elem));
}

Node *node_reshape(Graph *g, Node *a, int rank, const int64_t *dim) {
    return graph_add(g, OP_RESHAPE, &a, 1, NULL, type_make(a->type->elem, rank, dim));
}

Node *node_permute(Graph *g, Node *a, const int *map) {
    Attr attr = {0};
    memcpy(attr.map, map, sizeof *map * (size_t)a->type->rank);
    return graph_add(g, OP_PERMUTE, &a, 1, &attr, *a->type);
}

Node *node_slice(Graph *g, Node *a, const int64_t *lo, const int64_t *extent, const int64_t *step) {
    Attr attr = {0};
    for (int i = 0; i < a->type->rank; i++) {
        attr.lo[i] = lo[i];
        attr.hi[i] = extent[i];
        attr.step[i] = step ? step[i] : 1;
    }
    return graph_add(g, OP_SLICE, &a, 1, &attr, *a->type);
}

Node *node_slice_axis(Graph *g, Node *a, int axis, int64_t lo, int64_t extent, int64_t step) {
    int64_t los[MD_RANK] = {0}, extents[MD_RANK], steps[MD_RANK];
    for (int i = 0; i < a->type->rank; i++) {
        extents[i] = a->type->dim[i];
        steps[i] = 1;
    }
    los[axis] = lo;
    extents[axis] = extent;
    steps[axis] = step;
    return node_slice(g, a, los, extents, steps);
}

Node *node_index_axis(Graph *g, Node *a, int axis, int64_t at) {
    Node *one = node_slice_axis(g, a, axis, at, 1, 1);
    int64_t dim[MD_RANK];
    int rank = 0;
    for (int i = 0; i < a->type->rank; i++) {
        if (i != axis) {
            dim[rank++] = a->type->dim[i];
        }
    }
    return node_reshape(g, one, rank, dim);
}

Node *node_pad(Graph *g, Node *a, const int64_t *lo, const int64_t *hi, Border border,
               double value) {
    Attr attr = {.border = border, .value = value};
    memcpy(attr.lo, lo, sizeof *lo * (size_t)a->type->rank);
    memcpy(attr.hi, hi, sizeof *hi * (size_t)a->type->rank);
    return graph_add(g, OP_PAD, &a, 1, &attr, *a->type);
}

Node *node_broadcast(Graph *g, Node *a, uint32_t axes, int rank, const int64_t *dim) {
    a = graph_import(g, a);
    uint32_t merged = axes;
    /* Axes new in either step are new in the merged one. A named value stays what it is: a
     * derivative to it may be asked for. */
    if (a->op == OP_BROADCAST && !a->name) {
        int from = 0;
        for (int i = 0; i < rank; i++) {
            if (!(axes >> i & 1)) {
                merged |= (a->attr->axes >> from & 1u) << i;
                from++;
            }
        }
        a = a->in[0];
    }
    Attr attr = {.axes = merged};
    return graph_add(g, OP_BROADCAST, &a, 1, &attr, type_make(a->type->elem, rank, dim));
}

Node *node_flip(Graph *g, Node *a, uint32_t axes) {
    Attr attr = {.axes = axes};
    return graph_add(g, OP_FLIP, &a, 1, &attr, *a->type);
}

Node *node_window(Graph *g, Node *a, int axis, int64_t s, int64_t d, int64_t p, int64_t count,
                  int64_t taps, Border border, double value) {
    Attr attr = {.axis = axis,
                 .s = s,
                 .d = d,
                 .p = p,
                 .count = count,
                 .taps = taps,
                 .taps_n = a->type->dim[axis],
                 .border = border,
                 .value = value};
    return graph_add(g, OP_WINDOW, &a, 1, &attr, *a->type);
}

Node *node_overlap_add(Graph *g, Node *a, const Attr *window_attr) {
    return graph_add(g, OP_OVERLAP_ADD, &a, 1, window_attr, *a->type);
}

Node *node_concat(Graph *g, Node *const *in, int nin, int axis) {
    Attr attr = {.axis = axis};
    if (nin <= CONCAT_PARTS) {
        return graph_add(g, OP_CONCAT, in, nin, &attr, type_scalar(TY_ERROR));
    }
    int count = (nin + CONCAT_PARTS - 1) / CONCAT_PARTS;
    Node **group = ARENA_ARRAY(g->arena, Node *, count);
    for (int i = 0; i < count; i++) {
        int first = i * CONCAT_PARTS, n = nin - first < CONCAT_PARTS ? nin - first : CONCAT_PARTS;
        group[i] = node_concat(g, in + first, n, axis);
    }
    return node_concat(g, group, count, axis);
}

Node *node_fold(Graph *g, OpCode op, Node *a, uint32_t axes) {
    if (axes == 0) {
        return graph_import(g, a);
    }
    Attr attr = {.axes = axes, .exact = g->exact && op == OP_SUM};
    return graph_add(g, op, &a, 1, &attr, type_scalar(TY_ERROR));
}

Node *node_argfold(Graph *g, OpCode op, Node *a, int axis) {
    Attr attr = {.axis = axis};
    return graph_add(g, op, &a, 1, &attr, type_scalar(TY_ERROR));
}

Node *node_cumsum(Graph *g, Node *a, int axis, bool reverse, bool exclusive) {
    Attr attr = {.axis = axis, .reverse = reverse, .exclusive = exclusive};
    return graph_add(g, OP_CUMSUM, &a, 1, &attr, *a->type);
}

Node *node_contract(Graph *g, Node *a, Node *b, const int8_t *la, const int8_t *lb,
                    const int8_t *lo, int rank) {
    Attr attr = {.exact = g->exact};
    memcpy(attr.la, la, (size_t)a->type->rank);
    memcpy(attr.lb, lb, (size_t)b->type->rank);
    memcpy(attr.lo_, lo, (size_t)rank);
    Node *in[2] = {a, b};
    Type type = {.elem = a->type->elem, .rank = rank};
    return graph_add(g, OP_CONTRACT, in, 2, &attr, type);
}

int contract_labels(const Node *contract, int64_t *extent) {
    const Attr *at = contract->attr;
    int n = 0;
    const int8_t *list[2] = {at->la, at->lb};
    for (int k = 0; k < 2; k++) {
        const Type *t = contract->in[k]->type;
        for (int i = 0; i < t->rank; i++) {
            int label = list[k][i];
            extent[label] = t->dim[i];
            n = label >= n ? label + 1 : n;
        }
    }
    return n;
}

Node *node_gather(Graph *g, Node *x, Node *index, int batch) {
    Attr attr = {.batch = batch};
    Node *in[2] = {x, index};
    return graph_add(g, OP_GATHER, in, 2, &attr, type_scalar(TY_ERROR));
}

Node *node_scatter_add(Graph *g, Node *u, Node *index, int batch, Type type) {
    Attr attr = {.batch = batch};
    Node *in[2] = {u, index};
    return graph_add(g, OP_SCATTER_ADD, in, 2, &attr, type);
}

Node *node_places(Graph *g, Node *a, bool descending, int64_t most) {
    Attr attr = {.reverse = descending};
    Type type = *a->type;
    type.elem = TY_I32;
    type.dim[type.rank - 1] = most;
    return graph_add(g, OP_ORDER, &a, 1, &attr, type);
}

Node *node_random(Graph *g, Dist dist, uint64_t site, Node *const *key, int nkey, Type type) {
    Attr attr = {.dist = dist, .site = site};
    return graph_add(g, OP_RANDOM, key, nkey, &attr, type);
}

Node *node_stop(Graph *g, Node *a) {
    return node_map1(g, OP_STOP, a);
}

Node *node_point(Graph *g, Node *a, uint64_t site) {
    Attr attr = {.site = site};
    return graph_add(g, OP_POINT, &a, 1, &attr, *a->type);
}

Node *node_grad(Graph *g, Node *value, Node *point, Node *cotangent) {
    Node *in[3] = {value, point, node_broadcast_to(g, cotangent, *value->type)};
    return graph_add(g, OP_GRAD, in, 3, NULL, type_scalar(TY_ERROR));
}

/* J'u is linear in u, so that its derivative by u with the cotangent d is J d, whatever u is. What
 * the first sweep makes for u alone is read by nobody. No rule looks through STOP at the zeros. */
Node *node_jvp(Graph *g, Node *value, Node *point, Node *direction) {
    Node *u = node_stop(g, node_full(g, *value->type, 0));
    return node_grad(g, node_grad(g, value, point, u), u, direction);
}

Node *node_custom(Graph *g, Node *value, Node *const *arg, int narg, Region *body) {
    Node **in = ARENA_ARRAY(g->arena, Node *, narg + 1);
    in[0] = graph_import(g, value);
    for (int i = 0; i < narg; i++) {
        in[i + 1] = graph_import(g, arg[i]);
    }
    Type type = shape_infer(OP_CUSTOM, in, narg + 1, &no_attr, body, *value->type);
    return graph_append(g, OP_CUSTOM, in, narg + 1, &no_attr, body, type);
}

int find_label(const int8_t *list, int n, int label) {
    for (int i = 0; i < n; i++) {
        if (list[i] == label) {
            return i;
        }
    }
    return -1;
}

const Owner *module_owner(const Module *module, Loc loc) {
    bool known = loc.owner > 0 && (int)loc.owner <= module->owner.count;
    return known ? &module->owner.at[loc.owner - 1] : NULL;
}

int module_layer(const Module *module, Loc loc) {
    const Owner *owner = module_owner(module, loc);
    return owner ? owner->layer : 0;
}

int module_phase(const Module *module, const Entry *entry) {
    for (int i = 0; i < module->phase.count; i++) {
        if (str_eq(module->phase.at[i].name, entry->name)) {
            return module->phase.at[i].phase;
        }
    }
    return -1;
}

bool node_is_zero(const Node *n) {
    n = n->op == OP_BROADCAST ? n->in[0] : n;
    return n->op == OP_CONST && n->attr->value == 0 && n->attr->ivalue == 0;
}

int region_readers(const Region *region, const Node *x) {
    int count = 0;
    for (int i = (int)x->id + 1; i < region->node.count; i++) {
        count += node_reads(region->node.at[i], x);
    }
    for (int k = 0; k < region->out.count; k++) {
        count += region->out.at[k] == x;
    }
    return count;
}

double node_flops(const Node *n) {
    double flops = (double)type_count(*n->type) * op_info[n->op].cost;
    if (n->op == OP_CONTRACT) {
        int64_t extent[3 * MD_RANK];
        flops = 2;
        for (int k = contract_labels(n, extent) - 1; k >= 0; k--) {
            flops *= (double)extent[k];
        }
    } else if (n->op == OP_LOOP) {
        flops = 0;
        for (int i = 0; i < n->body->node.count; i++) {
            flops += (double)n->attr->trip * node_flops(n->body->node.at[i]);
        }
    }
    return flops;
}
