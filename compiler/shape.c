/* shape: one rule a kind of op, tied to the table by the column `shape`.
 * Contract: needs operands of one region; gives the type, or what is wrong with operands and
 * attributes. */
#include "compiler/shape.h"

#include <math.h>
#include <string.h>

typedef struct {
    OpCode op;
    Node *const *in;
    int nin;
    const Attr *attr;
    const Region *body;
    Type given;
    const char **fault;
} Query;

#define REQUIRE(q, ok, what)                                                                       \
    do {                                                                                           \
        if (!(ok)) {                                                                               \
            *(q)->fault = (what);                                                                  \
            return type_scalar(TY_ERROR);                                                          \
        }                                                                                          \
    } while (0)

static Type shape_cnst(const Query *q) {
    REQUIRE(q, q->given.rank == 0, "a constant is a scalar");
    return q->given;
}

static Type shape_table(const Query *q) {
    REQUIRE(q, q->attr->data != NULL, "a table has data");
    return q->given;
}

static Type shape_slot(const Query *q) {
    REQUIRE(q, q->attr->slot != NULL, "a slot node names its slot");
    return slot_value_type(q->attr->slot);
}

static Type shape_body_param(const Query *q) {
    return q->given;
}

static Type shape_iota(const Query *q) {
    REQUIRE(q, elem_is_int(q->given.elem), "iota counts in integers");
    REQUIRE(q, q->attr->axis >= 0 && q->attr->axis < q->given.rank, "axis out of range");
    return q->given;
}

static Type shape_reshape(const Query *q) {
    Type t = q->given;
    t.elem = q->in[0]->type->elem;
    REQUIRE(q, type_count(t) == type_count(*q->in[0]->type), "element counts differ");
    return t;
}

static Type shape_permute(const Query *q) {
    Type a = *q->in[0]->type;
    Type t = {.elem = a.elem, .rank = a.rank};
    uint32_t seen = 0;
    for (int i = 0; i < a.rank; i++) {
        int from = q->attr->map[i];
        REQUIRE(q, from >= 0 && from < a.rank && !(seen >> from & 1), "not a permutation");
        seen |= 1u << from;
        t.dim[i] = a.dim[from];
    }
    return t;
}

static Type shape_slice(const Query *q) {
    Type t = *q->in[0]->type;
    for (int i = 0; i < t.rank; i++) {
        int64_t lo = q->attr->lo[i], extent = q->attr->hi[i], step = q->attr->step[i];
        REQUIRE(q, step > 0 && lo >= 0 && extent >= 0, "bad range");
        bool inside = lo < t.dim[i] && extent - 1 <= (t.dim[i] - 1 - lo) / step;
        REQUIRE(q, extent == 0 || inside, "range leaves the operand");
        t.dim[i] = extent;
    }
    return t;
}

static Type shape_pad(const Query *q) {
    Type t = *q->in[0]->type;
    REQUIRE(q, q->attr->border != BORDER_NONE, "a pad has a border rule");
    for (int i = 0; i < t.rank; i++) {
        REQUIRE(q, q->attr->lo[i] >= 0 && q->attr->hi[i] >= 0, "negative padding");
        const bool none = q->attr->lo[i] + q->attr->hi[i] == 0;
        REQUIRE(q, none || t.dim[i] > 0 || q->attr->border == BORDER_VALUE,
                "an empty axis has no edge");
        t.dim[i] += q->attr->lo[i] + q->attr->hi[i];
    }
    return t;
}

static Type shape_broadcast(const Query *q) {
    Type t = q->given, a = *q->in[0]->type;
    t.elem = a.elem;
    int from = 0;
    for (int i = 0; i < t.rank; i++) {
        if (!(q->attr->axes >> i & 1)) {
            REQUIRE(q, from < a.rank && a.dim[from] == t.dim[i], "kept axes differ");
            from++;
        }
    }
    REQUIRE(q, q->attr->axes >> t.rank == 0, "axes out of range");
    REQUIRE(q, from == a.rank, "an axis of the operand is lost");
    return t;
}

static Type shape_flip(const Query *q) {
    REQUIRE(q, q->attr->axes >> q->in[0]->type->rank == 0, "axes out of range");
    return *q->in[0]->type;
}

/* Positions are computed without overflow. */
static bool window_possible(const Attr *at) {
    double i = (double)at->s * (double)at->count, k = (double)at->d * (double)at->taps;
    return at->count >= 0 && at->taps >= 0 && fabs(i) + fabs(k) + fabs((double)at->p) < 1e18;
}

static Type shape_window(const Query *q) {
    Type a = *q->in[0]->type;
    int axis = q->attr->axis;
    REQUIRE(q, axis >= 0 && axis < a.rank && a.rank < MD_RANK, "axis out of range");
    REQUIRE(q, a.dim[axis] == q->attr->taps_n, "extent differs from the attribute");
    REQUIRE(q, window_possible(q->attr), "positions are out of range");
    bool reads = q->attr->count > 0 && q->attr->taps > 0;
    if (reads && q->attr->border == BORDER_NONE) {
        int64_t i1 = q->attr->s * (q->attr->count - 1), k1 = q->attr->d * (q->attr->taps - 1);
        int64_t least = (i1 < 0 ? i1 : 0) + (k1 < 0 ? k1 : 0) - q->attr->p;
        int64_t most = (i1 > 0 ? i1 : 0) + (k1 > 0 ? k1 : 0) - q->attr->p;
        REQUIRE(q, least >= 0 && most < a.dim[axis], "reads outside without a border");
    }
    REQUIRE(q, a.dim[axis] > 0 || !reads || q->attr->border == BORDER_VALUE,
            "an empty axis has no edge");
    Type t = {.elem = a.elem, .rank = a.rank + 1};
    for (int i = 0; i < a.rank; i++) {
        t.dim[i < axis ? i : i + 1] = a.dim[i];
    }
    t.dim[axis] = q->attr->count;
    t.dim[axis + 1] = q->attr->taps;
    return t;
}

static Type shape_concat(const Query *q) {
    REQUIRE(q, q->nin > 0, "nothing to put together");
    Type t = *q->in[0]->type;
    int axis = q->attr->axis;
    REQUIRE(q, axis >= 0 && axis < t.rank, "axis out of range");
    for (int k = 1; k < q->nin; k++) {
        Type a = *q->in[k]->type;
        int64_t extent = a.dim[axis];
        a.dim[axis] = q->in[0]->type->dim[axis];
        REQUIRE(q, type_equal(a, *q->in[0]->type), "operands differ outside the axis");
        t.dim[axis] += extent;
    }
    return t;
}

static Type shape_same_any(const Query *q) {
    for (int k = 1; k < q->nin; k++) {
        REQUIRE(q, type_equal(*q->in[0]->type, *q->in[k]->type), "operand types differ");
    }
    return *q->in[0]->type;
}

static Type shape_same(const Query *q) {
    REQUIRE(q, q->in[0]->type->elem != TY_BOOL, "not an operation on bool");
    return shape_same_any(q);
}

static Type shape_same_float(const Query *q) {
    REQUIRE(q, elem_is_float(q->in[0]->type->elem), "floats only");
    return shape_same(q);
}

static Type shape_single_float(const Query *q) {
    REQUIRE(q, q->in[0]->type->elem == TY_F32, "f32 only");
    return shape_same(q);
}

static Type shape_same_int(const Query *q) {
    REQUIRE(q, elem_is_int(q->in[0]->type->elem), "integers only");
    return shape_same(q);
}

static Type shape_compare(const Query *q) {
    REQUIRE(q, type_equal(*q->in[0]->type, *q->in[1]->type), "operand types differ");
    Type t = *q->in[0]->type;
    t.elem = TY_BOOL;
    return t;
}

static Type shape_logic(const Query *q) {
    for (int k = 0; k < q->nin; k++) {
        REQUIRE(q, q->in[k]->type->elem == TY_BOOL, "bool only");
        REQUIRE(q, type_equal(*q->in[0]->type, *q->in[k]->type), "operand types differ");
    }
    return *q->in[0]->type;
}

static Type shape_isfinite(const Query *q) {
    REQUIRE(q, elem_is_float(q->in[0]->type->elem), "floats only");
    Type t = *q->in[0]->type;
    t.elem = TY_BOOL;
    return t;
}

static Type shape_select(const Query *q) {
    REQUIRE(q, q->in[0]->type->elem == TY_BOOL, "the condition is bool");
    REQUIRE(q, type_same_shape(*q->in[0]->type, *q->in[1]->type), "shapes differ");
    REQUIRE(q, type_equal(*q->in[1]->type, *q->in[2]->type), "branch types differ");
    return *q->in[1]->type;
}

static Type shape_cast(const Query *q) {
    Type t = *q->in[0]->type;
    t.elem = q->given.elem;
    return t;
}

static Type shape_random(const Query *q) {
    REQUIRE(q, q->nin >= 2, "a draw has a seed and a counter");
    for (int k = 0; k < q->nin; k++) {
        Type key = *q->in[k]->type;
        REQUIRE(q, key.rank == 0 && key.elem == TY_I64, "keys are i64 scalars");
    }
    REQUIRE(q, q->attr->dist == DIST_BITS ? q->given.elem == TY_U32 : elem_is_float(q->given.elem),
            "element type does not fit the distribution");
    return q->given;
}

static Type shape_fold(const Query *q) {
    Type a = *q->in[0]->type;
    Type t = {.elem = a.elem};
    REQUIRE(q, q->attr->axes != 0 && q->attr->axes >> a.rank == 0, "axes out of range");
    REQUIRE(q, a.elem != TY_BOOL, "not a fold over bool");
    bool extreme = q->op == OP_FMAX || q->op == OP_FMIN;
    for (int i = 0; i < a.rank; i++) {
        if (!(q->attr->axes >> i & 1)) {
            t.dim[t.rank++] = a.dim[i];
        } else {
            REQUIRE(q, !extreme || a.dim[i] > 0, "an empty axis has no extreme");
        }
    }
    return t;
}

static Type shape_argfold(const Query *q) {
    Type a = *q->in[0]->type;
    Type t = {.elem = TY_I32};
    REQUIRE(q, q->attr->axis >= 0 && q->attr->axis < a.rank, "axis out of range");
    REQUIRE(q, a.dim[q->attr->axis] > 0, "an empty axis has no winner");
    for (int i = 0; i < a.rank; i++) {
        if (i != q->attr->axis) {
            t.dim[t.rank++] = a.dim[i];
        }
    }
    return t;
}

static Type shape_cumsum(const Query *q) {
    REQUIRE(q, q->attr->axis >= 0 && q->attr->axis < q->in[0]->type->rank, "axis out of range");
    return *q->in[0]->type;
}

static Type shape_overlap_add(const Query *q) {
    Type a = *q->in[0]->type;
    int axis = q->attr->axis;
    REQUIRE(q, axis >= 0 && axis + 1 < a.rank, "axis out of range");
    REQUIRE(q, a.dim[axis] == q->attr->count && a.dim[axis + 1] == q->attr->taps,
            "extents differ from the attribute");
    REQUIRE(q, window_possible(q->attr), "positions are out of range");
    REQUIRE(q, q->attr->taps_n >= 0, "a negative extent");
    REQUIRE(q, q->attr->border == BORDER_NONE || q->attr->border == BORDER_VALUE,
            "what lies outside is left out");
    Type t = {.elem = a.elem, .rank = a.rank - 1};
    for (int i = 0; i < t.rank; i++) {
        t.dim[i] = i == axis ? q->attr->taps_n : a.dim[i < axis ? i : i + 1];
    }
    return t;
}

/* The place of `label` in list[0..n), or -1. */
static int label_find(const int8_t *list, int n, int label) {
    for (int i = 0; i < n; i++) {
        if (list[i] == label) {
            return i;
        }
    }
    return -1;
}

static Type shape_contract(const Query *q) {
    Type a = *q->in[0]->type, b = *q->in[1]->type;
    const Attr *at = q->attr;
    REQUIRE(q, a.elem == b.elem && elem_is_float(a.elem), "two operands of one float type");
    Type t = {.elem = a.elem, .rank = q->given.rank};
    uint32_t labels = 0;
    for (int i = 0; i < a.rank; i++) {
        labels |= 1u << at->la[i];
        REQUIRE(q, label_find(at->la, i, at->la[i]) < 0, "a label twice in the first operand");
        int j = label_find(at->lb, b.rank, at->la[i]), k = label_find(at->lo_, t.rank, at->la[i]);
        REQUIRE(q, j >= 0 || k >= 0, "a label of the first operand alone");
        REQUIRE(q, j < 0 || a.dim[i] == b.dim[j], "extents of a shared label differ");
    }
    for (int j = 0; j < b.rank; j++) {
        labels |= 1u << at->lb[j];
        REQUIRE(q, label_find(at->lb, j, at->lb[j]) < 0, "a label twice in the second operand");
        int i = label_find(at->la, a.rank, at->lb[j]), k = label_find(at->lo_, t.rank, at->lb[j]);
        REQUIRE(q, i >= 0 || k >= 0, "a label of the second operand alone");
    }
    REQUIRE(q, (labels & (labels + 1)) == 0, "labels are not 0..n-1");
    for (int k = 0; k < t.rank; k++) {
        int i = label_find(at->la, a.rank, at->lo_[k]), j = label_find(at->lb, b.rank, at->lo_[k]);
        REQUIRE(q, label_find(at->lo_, k, at->lo_[k]) < 0, "a label twice in the result");
        REQUIRE(q, i >= 0 || j >= 0, "a label of the result alone");
        t.dim[k] = i >= 0 ? a.dim[i] : b.dim[j];
    }
    return t;
}

static Type shape_gather(const Query *q) {
    Type x = *q->in[0]->type, i = *q->in[1]->type;
    int nb = q->attr->batch;
    REQUIRE(q, elem_is_int(i.elem), "indices are integers");
    REQUIRE(q, nb >= 0 && nb < x.rank && nb <= i.rank, "batch axes out of range");
    Type t = {.elem = x.elem};
    for (int k = 0; k < nb; k++) {
        REQUIRE(q, x.dim[k] == i.dim[k], "batch extents differ");
    }
    REQUIRE(q, i.rank + x.rank - nb - 1 <= MD_RANK, "too many axes");
    for (int k = 0; k < i.rank; k++) {
        t.dim[t.rank++] = i.dim[k];
    }
    for (int k = nb + 1; k < x.rank; k++) {
        t.dim[t.rank++] = x.dim[k];
    }
    REQUIRE(q, x.dim[nb] > 0 || type_count(t) == 0, "an empty axis has nothing to pick");
    return t;
}

static Type shape_scatter_add(const Query *q) {
    Type u = *q->in[0]->type, i = *q->in[1]->type, t = q->given;
    int nb = q->attr->batch;
    REQUIRE(q, elem_is_int(i.elem), "indices are integers");
    REQUIRE(q, nb >= 0 && nb < t.rank && nb <= i.rank, "batch axes out of range");
    REQUIRE(q, u.rank == i.rank + t.rank - nb - 1, "ranks do not fit");
    for (int k = 0; k < i.rank; k++) {
        REQUIRE(q, u.dim[k] == i.dim[k], "index extents differ");
    }
    for (int k = 0; k < nb; k++) {
        REQUIRE(q, t.dim[k] == i.dim[k], "batch extents differ");
    }
    for (int k = nb + 1; k < t.rank; k++) {
        REQUIRE(q, u.dim[i.rank + k - nb - 1] == t.dim[k], "rest extents differ");
    }
    REQUIRE(q, t.dim[nb] > 0 || type_count(u) == 0, "an empty axis takes nothing");
    t.elem = u.elem;
    return t;
}

static Type shape_order(const Query *q) {
    Type a = *q->in[0]->type, t = q->given;
    int last = a.rank - 1;
    REQUIRE(q, a.elem != TY_BOOL, "bools have no order");
    REQUIRE(q, t.elem == TY_I32, "places are i32");
    REQUIRE(q, last >= 0 && t.rank == a.rank, "ranks do not fit");
    for (int k = 0; k < last; k++) {
        REQUIRE(q, t.dim[k] == a.dim[k], "extents differ");
    }
    REQUIRE(q, a.dim[last] <= INT32_MAX, "places are no i32");
    REQUIRE(q, t.dim[last] >= 0 && t.dim[last] <= a.dim[last], "more places than elements");
    return t;
}

/* A slice of a stack: the type without its leading axis. */
static Type slice_of(Type t) {
    Type s = {.elem = t.elem, .rank = t.rank - 1};
    for (int i = 0; i < s.rank; i++) {
        s.dim[i] = t.dim[i + 1];
    }
    return s;
}

static Type shape_loop(const Query *q) {
    const Attr *at = q->attr;
    const Region *body = q->body;
    REQUIRE(q, body != NULL && at->trip >= 0, "a loop has a body and a trip count");
    REQUIRE(q, q->nin == at->ncarry + at->ninv + at->nxs, "operand count");
    REQUIRE(q, body->param.count == 1 + q->nin, "body parameter count");
    REQUIRE(q, body->out.count == at->ncarry + at->nys, "body result count");
    REQUIRE(q, at->go >= 0 && at->go <= at->ncarry && at->last >= 0 && at->last <= at->ninv,
            "what ends a loop is a carry or an invariant");
    REQUIRE(q, !at->aside || (!at->go && !at->last), "what runs side by side has all its turns");
    REQUIRE(q, !at->go || (!at->last && !at->reverse),
            "a loop with a condition runs forward and has no last index");
    REQUIRE(q, !at->go || type_equal(*q->in[at->go - 1]->type, type_scalar(TY_BOOL)),
            "the condition of a loop is a scalar");
    REQUIRE(q,
            !at->last ||
                type_equal(*q->in[at->ncarry + at->last - 1]->type, type_scalar(TY_I32)),
            "the last index of a loop is a scalar");
    for (int k = 0; k < q->nin; k++) {
        Type t = *q->in[k]->type;
        if (k >= at->ncarry + at->ninv) {
            REQUIRE(q, t.rank > 0 && t.dim[0] == at->trip, "a stack has the trip count in front");
            t = slice_of(t);
        }
        REQUIRE(q, type_equal(t, *body->param.at[1 + k]->type), "body parameter type");
        if (k < at->ncarry) {
            REQUIRE(q, type_equal(t, *body->out.at[k]->type), "a carry keeps its type");
        }
    }
    return type_scalar(TY_TUPLE);
}

static Type shape_pick(const Query *q) {
    const Node *loop = q->in[0];
    REQUIRE(q, loop->op == OP_LOOP, "only loops have several results");
    int k = q->attr->axis;
    REQUIRE(q, k >= 0 && k < loop->body->out.count, "result out of range");
    Type t = *loop->body->out.at[k]->type;
    if (k < loop->attr->ncarry) {
        return t;
    }
    REQUIRE(q, t.rank < MD_RANK, "too many axes");
    Type s = {.elem = t.elem, .rank = t.rank + 1};
    s.dim[0] = loop->attr->trip;
    for (int i = 0; i < t.rank; i++) {
        s.dim[i + 1] = t.dim[i];
    }
    return s;
}

static Type shape_grad(const Query *q) {
    REQUIRE(q, type_equal(*q->in[0]->type, *q->in[2]->type), "cotangent type");
    REQUIRE(q, elem_is_float(q->in[1]->type->elem), "the point is a float");
    return *q->in[1]->type;
}

static Type shape_custom(const Query *q) {
    const Region *body = q->body;
    REQUIRE(q, body != NULL && body->param.count == q->nin, "adjoint parameter count");
    REQUIRE(q, body->out.count == q->nin - 1, "adjoint result count");
    for (int k = 1; k < q->nin; k++) {
        const Node *param = body->param.at[k - 1];
        REQUIRE(q, type_equal(*param->type, *q->in[k]->type), "adjoint parameter type");
        REQUIRE(q, type_equal(*body->out.at[k - 1]->type, *q->in[k]->type), "adjoint result type");
    }
    REQUIRE(q, type_equal(*body->param.at[q->nin - 1]->type, *q->in[0]->type), "cotangent type");
    return *q->in[0]->type;
}

typedef Type (*ShapeRule)(const Query *);
static const ShapeRule rules[OP_COUNT] = {
#define OP(NAME, name, nin, cls, shape, eval, vjp, lower, made, sample, cost, spelling)            \
    [OP_##NAME] = shape_##shape,
#include "compiler/op.def"
#undef OP
};

Type shape_check(OpCode op, Node *const *in, int nin, const Attr *attr, const Region *body,
                 Type given, const char **fault) {
    *fault = NULL;
    Query q = {op, in, nin, attr, body, given, fault};
    REQUIRE(&q, op_info[op].nin < 0 || op_info[op].nin == nin, "operand count");
    return rules[op](&q);
}

Type shape_infer(OpCode op, Node *const *in, int nin, const Attr *attr, const Region *body,
                 Type given) {
    const char *fault;
    Type type = shape_check(op, in, nin, attr, body, given, &fault);
    if (fault) {
        BUG("%s: %s", op_info[op].name, fault);
    }
    return type;
}
