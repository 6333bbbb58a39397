/* eval: regions, values and their memory; see eval.h. The rules are in eval_map.c (elementwise),
 * eval_view.c (leaves, views, places), eval_call.c (folds, calls, random) and, for LOOP and marks,
 * at the end of this file.
 *
 * Memory: buffers with a reference count, cut from the arena in size classes (four to an octave)
 * and kept in free lists. A frame holds what is known of a region: which nodes its results need and
 * how often each is read; it is made once per region. */
#include "compiler/eval_rule.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { CLASSES = 256 };

typedef struct Buffer Buffer;
struct Buffer {
    Buffer *next; /* of its free list */
    int refs, cls;
};

typedef struct {
    const Region *region;
    int nnode, nout; /* as they were when the frame was made */
    VEC(const Node *) order;
    int *uses, *left; /* by node id: reads in all; reads to come in this run */
    Value *value;     /* by node id */
    Value *in;        /* operands of the node at hand */
} Frame;

typedef struct {
    const Slot *slot;
    Value value;
} Bound;

struct Eval {
    Arena *arena;
    EvalOptions opt;
    Buffer *unused[CLASSES];
    VEC(Bound) bound;
    VEC(Frame *) frame;
    const Node *not_finite;
};

const EvalRule eval_rule[OP_COUNT] = {
#define OP(NAME, name, nin, cls, shape, eval, vjp, lower, made, sample, cost, spelling)            \
    [OP_##NAME] = eval_##eval,
#include "compiler/op.def"
#undef OP
};

/* --- memory ----------------------------------------------------------------------------------- */

static int size_class(size_t bytes, size_t *rounded) {
    size_t size = 64;
    int cls = 0;
    while (size < bytes) {
        for (size_t q = 4; q < 8; q++, cls++) {
            if (size / 4 * q >= bytes) {
                *rounded = size / 4 * q;
                return cls;
            }
        }
        size *= 2;
    }
    *rounded = size;
    return cls;
}

static void *buffer_new(Eval *ev, size_t bytes) {
    size_t rounded;
    int cls = size_class(bytes, &rounded);
    if (cls >= CLASSES) {
        BUG("a value of %zu bytes", bytes);
    }
    Buffer *b = ev->unused[cls];
    if (b) {
        ev->unused[cls] = b->next;
    } else {
        b = arena_alloc(ev->arena, sizeof *b + rounded);
        b->cls = cls;
    }
    b->refs = 1;
    return b + 1;
}

static Buffer *buffer_of(Value v) {
    return (Buffer *)(v.part ? (void *)v.part : (void *)v.at) - 1;
}

Value eval_new(Eval *ev, Type type) {
    Value v = {.type = type};
    v.at = buffer_new(ev, sizeof(Num) * (size_t)type_count(type));
    return v;
}

Value eval_share(Eval *ev, Value value) {
    (void)ev;
    buffer_of(value)->refs++;
    return value;
}

void eval_drop(Eval *ev, Value value) {
    Buffer *b = buffer_of(value);
    if (--b->refs > 0) {
        return;
    }
    for (int i = 0; i < value.nparts; i++) {
        eval_drop(ev, value.part[i]);
    }
    b->next = ev->unused[b->cls];
    ev->unused[b->cls] = b;
}

Num *eval_out(EvalCall *c) {
    if (!c->result.at) {
        c->result = eval_new(c->ev, c->type);
    }
    return c->result.at;
}

double value_get(Value value, int64_t i) {
    return elem_is_float(value.type.elem) ? value.at[i].f : (double)value.at[i].i;
}

void value_strides(Type type, int64_t *stride) {
    int64_t n = 1;
    for (int i = type.rank - 1; i >= 0; i--) {
        stride[i] = n;
        n *= type.dim[i];
    }
}

bool value_step(int64_t *index, const int64_t *dim, int rank) {
    for (int i = rank - 1; i >= 0; i--) {
        if (++index[i] < dim[i]) {
            return true;
        }
        index[i] = 0;
    }
    return false;
}

/* --- regions ---------------------------------------------------------------------------------- */

static Frame *frame_make(Eval *ev, const Region *region) {
    Frame *f = ARENA_NEW(ev->arena, Frame);
    int n = region->node.count, most = 1;
    f->region = region;
    f->nnode = n;
    f->nout = region->out.count;
    f->uses = ARENA_ARRAY(ev->arena, int, n + 1);
    f->left = ARENA_ARRAY(ev->arena, int, n + 1);
    f->value = ARENA_ARRAY(ev->arena, Value, n + 1);
    for (int k = 0; k < region->out.count; k++) {
        f->uses[region->out.at[k]->id]++;
    }
    for (int i = n - 1; i >= 0; i--) {
        const Node *node = region->node.at[i];
        for (int k = 0; f->uses[node->id] > 0 && k < node->nin; k++) {
            f->uses[node->in[k]->id]++;
        }
    }
    for (int i = 0; i < n; i++) {
        const Node *node = region->node.at[i];
        if (f->uses[node->id] > 0 && node->op != OP_BODY_PARAM) {
            VEC_PUSH(ev->arena, &f->order, node);
            most = node->nin > most ? node->nin : most;
        }
    }
    f->in = ARENA_ARRAY(ev->arena, Value, most);
    return f;
}

static Frame *frame_of(Eval *ev, const Region *region) {
    for (int i = 0; i < ev->frame.count; i++) {
        Frame *f = ev->frame.at[i];
        if (f->region == region && f->nnode == region->node.count && f->nout == region->out.count) {
            return f;
        }
    }
    Frame *f = frame_make(ev, region);
    VEC_PUSH(ev->arena, &ev->frame, f);
    return f;
}

static void finish_floats(Eval *ev, const Node *node, Value v) {
    if (v.part || !elem_is_float(v.type.elem)) {
        return;
    }
    int64_t n = type_count(v.type);
    if (ev->opt.round && v.type.elem != TY_F64) {
        for (int64_t i = 0; i < n; i++) {
            v.at[i].f = num_round(v.type.elem, v.at[i].f);
        }
    }
    for (int64_t i = 0; ev->opt.check_nan && !ev->not_finite && i < n; i++) {
        if (!isfinite(v.at[i].f)) {
            ev->not_finite = node;
        }
    }
}

/* Ops whose results are exact, or elements of an operand. */
static bool is_exact(OpCode op) {
    switch (op) { /* what picks, compares or changes the sign */
    case OP_NEG:
    case OP_ABS:
    case OP_MIN:
    case OP_MAX:
    case OP_FLOOR:
    case OP_ROUND:
    case OP_BF16:
    case OP_F16:
    case OP_BF16_DRAWN:
    case OP_SIGN:
    case OP_SELECT:
    case OP_FMAX:
    case OP_FMIN:
    case OP_GATHER: return true;
    default: {
        OpClass cls = op_info[op].cls;
        return cls != CLASS_MAP && cls != CLASS_FOLD && cls != CLASS_CALL;
    }
    }
}

/* How many terms a result of a fold or call has, about; 0: it is no sum. */
static double term_count(const EvalCall *c) {
    OpClass cls = op_info[c->node->op].cls;
    if (cls != CLASS_FOLD && cls != CLASS_CALL) {
        return 0;
    }
    double n = (double)type_count(c->type), all = (double)type_count(c->in[0].type);
    if (c->nin == 2 &&
        elem_is_float(c->in[1].type.elem)) { /* a product: all summed ones, squared */
        return sqrt(all * (double)type_count(c->in[1].type) / fmax(n, 1));
    }
    return c->nin == 2 ? (double)type_count(c->in[1].type) : ceil(all / fmax(n, 1));
}

/* The size that rounding of a sum is relative to: it drifts where terms are equal, which shows when
 * there are many. */
static double terms_size(const EvalCall *c) {
    double terms = term_count(c), size = terms * sqrt(terms) * fmax(1, sqrt(terms) / 16);
    for (int k = 0; k < c->nin && size > 0; k++) {
        double most = 0;
        for (int64_t i = 0; elem_is_float(c->in[k].type.elem) && i < type_count(c->in[k].type);
             i++) {
            most = fmax(most, fabs(c->in[k].at[i].f));
        }
        size *= elem_is_float(c->in[k].type.elem) ? most : 1;
    }
    return size;
}

/* The largest power of two that a number is a multiple of; infinity for 0, and 0 for what is not
 * finite, whose sums are never exact. */
static double grain_of(double x) {
    if (x == 0 || !isfinite(x)) {
        return x == 0 ? INFINITY : 0;
    }
    int exponent;
    int64_t mantissa = (int64_t)ldexp(frexp(fabs(x), &exponent), 53), low = mantissa & -mantissa;
    return ldexp((double)low, exponent - 53);
}

/* Does a sum of this size stay exact in 24 bits, whatever its order? A result that needs few bits
 * may have partial sums that need more. */
static bool sum_is_exact(const EvalCall *c, double size) {
    double grain = 1;
    for (int k = 0; k < c->nin && size > 0; k++) {
        double least = INFINITY;
        for (int64_t i = 0; elem_is_float(c->in[k].type.elem) && i < type_count(c->in[k].type);
             i++) {
            least = fmin(least, grain_of(c->in[k].at[i].f));
        }
        grain *= elem_is_float(c->in[k].type.elem) ? least : 1;
    }
    return !(size > grain * 0x1p24);
}

/* A number of -1..1 that depends on the value and where it was computed. */
static double noise_at(const Eval *ev, const Node *node, double x) {
    uint64_t h = hash_bytes(ev->opt.noise_seed, &x, sizeof x);
    h = hash_bytes(h, &node->id, sizeof node->id);
    h = (h ^ h >> 29) * UINT64_C(0x94D049BB133111EB);
    return (double)(int64_t)(h ^ h >> 32) * 0x1p-63;
}

static void add_noise(const Eval *ev, const EvalCall *c) {
    Value v = c->result;
    if (v.part || !elem_is_float(v.type.elem) || is_exact(c->node->op)) {
        return;
    }
    double size = terms_size(c);
    bool sum = size > 0 && !sum_is_exact(c, size);
    for (int64_t i = 0, n = type_count(v.type); i < n; i++) {
        double x = v.at[i].f;
        if (isfinite(x) && (sum || x != (double)(float)x)) {
            v.at[i].f = x + ev->opt.noise * noise_at(ev, c->node, x) * fmax(fabs(x), size);
        }
    }
}

/* Near the middle of two floats of 16 bits a small error becomes a large one: all that is rounded
 * is taken a little up under one noise, and down under the next. */
static double tilt_of(const Eval *ev) {
    enum { WORST = 32 }; /* of the noise of one result */
    return (ev->opt.noise_seed % 2 == 1 ? WORST : -WORST) * ev->opt.noise;
}

void eval_run(Eval *ev, const Region *region, const Value *param, Value *out) {
    Frame *f = frame_of(ev, region);
    memcpy(f->left, f->uses, sizeof *f->left * (size_t)region->node.count);
    for (int i = 0; i < region->param.count; i++) {
        uint32_t id = region->param.at[i]->id;
        if (f->left[id] > 0) {
            f->value[id] = eval_share(ev, param[i]);
        }
    }
    for (int i = 0; i < f->order.count; i++) {
        const Node *node = f->order.at[i];
        for (int k = 0; k < node->nin; k++) {
            f->in[k] = f->value[node->in[k]->id];
        }
        EvalCall c = {.ev = ev,
                      .smooth = ev->opt.smooth,
                      .tilt = tilt_of(ev),
                      .node = node,
                      .attr = node->attr,
                      .type = *node->type,
                      .in = f->in,
                      .nin = node->nin};
        eval_rule[node->op](&c);
        f->value[node->id] = c.result;
        if (ev->opt.noise > 0) {
            add_noise(ev, &c);
        }
        finish_floats(ev, node, c.result);
        for (int k = 0; k < node->nin; k++) {
            uint32_t id = node->in[k]->id;
            if (--f->left[id] == 0) {
                eval_drop(ev, f->value[id]);
            }
        }
    }
    for (int k = 0; k < region->out.count; k++) {
        out[k] = eval_share(ev, f->value[region->out.at[k]->id]);
    }
    for (int k = 0; k < region->out.count; k++) {
        uint32_t id = region->out.at[k]->id;
        if (--f->left[id] == 0) {
            eval_drop(ev, f->value[id]);
        }
    }
}

Eval *eval_open(Arena *arena, EvalOptions options) {
    Eval *ev = ARENA_NEW(arena, Eval);
    ev->arena = arena;
    ev->opt = options;
    return ev;
}

void eval_region(Eval *ev, const Region *region, Value *out) {
    eval_run(ev, region, NULL, out);
}

static Bound *find_bound(const Eval *ev, const Slot *slot) {
    for (int i = 0; i < ev->bound.count; i++) {
        if (ev->bound.at[i].slot == slot) {
            return &ev->bound.at[i];
        }
    }
    return NULL;
}

static void bind(Eval *ev, const Slot *slot, Value value) {
    if (!type_equal(slot_value_type(slot), value.type)) {
        BUG("slot '%s' bound to a value of another type", slot->name);
    }
    if (ev->opt.round && elem_is_half(slot->type.elem)) {
        Value stored = eval_new(ev, value.type);
        for (int64_t i = 0, n = type_count(value.type); i < n; i++) {
            stored.at[i].f = num_round(slot->type.elem, value.at[i].f);
        }
        eval_drop(ev, value);
        value = stored;
    }
    Bound *b = find_bound(ev, slot);
    if (b) {
        eval_drop(ev, b->value);
        b->value = value;
    } else {
        VEC_PUSH(ev->arena, &ev->bound, ((Bound){slot, value}));
    }
}

void eval_bind(Eval *ev, const Slot *slot, const double *data) {
    Value v = eval_new(ev, slot_value_type(slot));
    int64_t n = type_count(slot->type);
    bool is_float = elem_is_float(slot->type.elem);
    for (int64_t i = 0; i < n; i++) {
        if (is_float) {
            v.at[i].f = ev->opt.round ? num_round(slot->type.elem, data[i]) : data[i];
        } else {
            v.at[i].i = num_wrap(slot->type.elem, (int64_t)data[i]);
        }
    }
    bind(ev, slot, v);
}

void eval_bind_num(Eval *ev, const Slot *slot, const Num *data) {
    Value v = eval_new(ev, slot_value_type(slot));
    int64_t n = type_count(slot->type);
    bool round = ev->opt.round && elem_is_float(slot->type.elem);
    for (int64_t i = 0; i < n; i++) {
        v.at[i] = data[i];
        if (round) {
            v.at[i].f = num_round(slot->type.elem, data[i].f);
        }
    }
    bind(ev, slot, v);
}

void eval_bind_int(Eval *ev, const Slot *slot, int64_t value) {
    Value v = eval_new(ev, slot_value_type(slot));
    v.at[0].i = num_wrap(slot->type.elem, value);
    bind(ev, slot, v);
}

void eval_bind_value(Eval *ev, const Slot *slot, Value value) {
    bind(ev, slot, eval_share(ev, value));
}

/* The ring with the first `count` rows behind those that its cursor has counted. */
static Value pushed(Eval *ev, const Slot *slot, Value rows, int64_t count) {
    Value v = eval_new(ev, slot_value_type(slot));
    const Bound *ring = find_bound(ev, slot), *cursor = find_bound(ev, slot->cursor);
    int64_t n = type_count(slot->type), capacity = slot->type.dim[0], row = n / capacity;
    memcpy(v.at, ring->value.at, sizeof(Num) * (size_t)n);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = (cursor->value.at[0].i + i) % capacity;
        memcpy(v.at + at * row, rows.at + i * row, sizeof(Num) * (size_t)row);
    }
    return v;
}

void eval_store(Eval *ev, const Entry *entry, const Value *out) {
    for (int k = 0; k < entry->out.count; k++) { /* before the cursors move */
        if (entry->out.at[k].role == OUT_PUSH) {
            const Slot *slot = entry->out.at[k].slot;
            int64_t rows = entry_pushes_used(entry, &out[k].type)
                               ? find_bound(ev, entry->rows_slot)->value.at[0].i
                               : out[k].type.dim[0];
            bind(ev, slot, pushed(ev, slot, out[k], rows));
        }
    }
    for (int k = 0; k < entry->out.count; k++) {
        if (entry->out.at[k].role == OUT_WRITE) {
            eval_bind_value(ev, entry->out.at[k].slot, out[k]);
        }
    }
}

bool eval_bound(const Eval *ev, const Slot *slot, Value *value) {
    const Bound *b = find_bound(ev, slot);
    if (b) {
        *value = b->value;
    }
    return b != NULL;
}

const Node *eval_not_finite(const Eval *ev) {
    return ev->not_finite;
}

/* --- rules: slots, loops and marks ------------------------------------------------------------ */

void eval_slot(EvalCall *c) {
    const Bound *b = find_bound(c->ev, c->attr->slot);
    if (!b) {
        BUG("slot '%s' is not bound", c->attr->slot->name);
    }
    c->result = eval_share(c->ev, b->value);
}

void eval_body_param(EvalCall *c) {
    BUG("param %d is not set", c->attr->axis);
}

/* Element `at` of the leading axis of `stack`. */
static Value slice_of(Eval *ev, Value stack, Type type, int64_t at) {
    Value v = eval_new(ev, type);
    int64_t n = type_count(type);
    memcpy(v.at, stack.at + at * n, sizeof(Num) * (size_t)n);
    return v;
}

void eval_loop(EvalCall *c) {
    Eval *ev = c->ev;
    const Attr *a = c->attr;
    const Region *body = c->node->body;
    int nparam = 1 + a->ncarry + a->ninv + a->nxs, nout = a->ncarry + a->nys;
    size_t bytes = sizeof(Value) * (size_t)(nparam + 2 * nout + 1);
    Value *param = buffer_new(ev, bytes), *out = param + nparam;
    Value tuple = {.type = c->type,
                   .part = buffer_new(ev, sizeof(Value) * (size_t)(nout + 1)),
                   .nparts = nout};
    for (int k = 0; k < a->ncarry; k++) {
        param[1 + k] = eval_share(ev, c->in[k]);
    }
    for (int k = 0; k < a->ninv; k++) {
        param[1 + a->ncarry + k] = c->in[a->ncarry + k];
    }
    for (int k = 0; k < a->nys; k++) {
        Type slice = *body->out.at[a->ncarry + k]->type,
             stack = {.elem = slice.elem, .rank = slice.rank + 1};
        stack.dim[0] = a->trip;
        memcpy(stack.dim + 1, slice.dim, sizeof *slice.dim * (size_t)slice.rank);
        Value ys = tuple.part[a->ncarry + k] = eval_new(ev, stack);
        if (loop_ends_itself(a)) {
            memset(ys.at, 0, sizeof *ys.at * (size_t)type_count(stack));
        }
    }
    int64_t trip = a->trip;
    if (a->last) {
        int64_t last = c->in[a->ncarry + a->last - 1].at[0].i;
        trip = last < 0 ? 0 : last < trip ? last + 1 : trip;
    }
    for (int64_t t = 0; t < trip && (!a->go || param[a->go].at[0].i); t++) {
        int64_t at = a->reverse ? trip - 1 - t : t;
        param[0] = eval_new(ev, type_scalar(TY_I32)); /* a carry may have the one before */
        param[0].at[0].i = at;
        for (int k = 0; k < a->nxs; k++) {
            int p = 1 + a->ncarry + a->ninv + k;
            param[p] = slice_of(ev, c->in[p - 1], *body->param.at[p]->type, at);
        }
        eval_run(ev, body, param, out);
        eval_drop(ev, param[0]);
        for (int k = 0; k < a->nxs; k++) {
            eval_drop(ev, param[1 + a->ncarry + a->ninv + k]);
        }
        for (int k = 0; k < a->ncarry; k++) {
            eval_drop(ev, param[1 + k]);
            param[1 + k] = out[k];
        }
        for (int k = a->ncarry; k < nout; k++) {
            int64_t n = type_count(out[k].type);
            memcpy(tuple.part[k].at + at * n, out[k].at, sizeof(Num) * (size_t)n);
            eval_drop(ev, out[k]);
        }
    }
    memcpy(tuple.part, param + 1, sizeof *param * (size_t)a->ncarry);
    eval_drop(ev, (Value){.part = param});
    c->result = tuple;
}

void eval_pick(EvalCall *c) {
    c->result = eval_share(c->ev, c->in[0].part[c->attr->axis]);
}

void eval_stop(EvalCall *c) {
    c->result = eval_share(c->ev, c->in[0]);
}

void eval_custom(EvalCall *c) {
    c->result = eval_share(c->ev, c->in[0]);
}

void eval_grad(EvalCall *c) {
    BUG("a derivative of type %s was not expanded", elem_name(c->type.elem));
}
