/* value: the column `lower` of the op table: what one element of a node is, as an expression.
 *
 * Technique: demand. A value at an index vector is asked for; views change the index vector, maps
 * ask their operands at the same one, folds ask over axes of the kernel, and memory answers with
 * loads. (node, index vector, guard) is computed once. Needs regions without marks; gives
 * hash-consed expressions; changes no values beyond the order of sums. */
#include "passes/lower/value.h"

#include "passes/view.h"

#include <math.h>
#include <string.h>

enum { TINY_FOLD = TUNED(8, 2) };

typedef const Expr *(*ValueRule)(Values *v, const Node *node, const Index *const *at);

void values_open(Values *v, Kernel *k, Arena *scratch) {
    *v = (Values){.k = k, .scratch = scratch};
}

/* --- leaves ----------------------------------------------------------------------------------- */

static const Expr *value_cnst(Values *v, const Node *node, const Index *const *at) {
    (void)at;
    return elem_is_int(node->type->elem) ? expr_int(v->k, node->type->elem, node->attr->ivalue)
                                         : expr_const(v->k, node->type->elem, node->attr->value);
}

/* What only memory can give: the caller's `stored` has declined. */
static const Expr *value_memory(Values *v, const Node *node, const Index *const *at) {
    (void)v;
    (void)at;
    BUG("node %u (%s) has no storage", node->id, op_info[node->op].name);
}

#define value_table value_memory
#define value_slot value_memory
#define value_body_param value_memory
#define value_pick value_memory
#define value_order value_memory

static const Expr *value_iota(Values *v, const Node *node, const Index *const *at) {
    return expr_index(v->k, node->type->elem, at[node->attr->axis]);
}

/* --- views, places, maps ---------------------------------------------------------------------- */

static const Expr *value_view(Values *v, const Node *node, const Index *const *at) {
    const Index *in[MD_RANK];
    const Expr *guard = view_index(v->k, node, at, in);
    const Expr *border = expr_const(v->k, node->type->elem, guard ? node->attr->value : 0);
    if (expr_is_false(guard)) {
        return border;
    }
    const Expr *inside = value_under(v, guard, node->in[0], in);
    if (expr_is_true(guard)) {
        return inside;
    }
    const Expr *choice[3] = {guard, inside, border};
    return expr_map(v->k, OP_SELECT, node->type->elem, choice, 3);
}

static const Expr *value_map(Values *v, const Node *node, const Index *const *at) {
    const Expr *in[3];
    for (int i = 0; i < node->nin; i++) {
        in[i] = value_at(v, node->in[i], at);
    }
    return expr_map(v->k, node->op, node->type->elem, in, node->nin);
}

static const Expr *value_term(Values *v, const Node *node, const Index *const *at) {
    const Expr *a = value_at(v, node->in[0], at);
    return expr_term(v->k, node->type->elem, a, value_at(v, node->in[1], at));
}

static const Expr *value_random(Values *v, const Node *node, const Index *const *at) {
    const Expr **in = ARENA_ARRAY(v->scratch, const Expr *, node->nin);
    const Expr *guard = v->guard;
    v->guard = NULL; /* the key is one value for all elements */
    for (int i = 0; i < node->nin; i++) {
        in[i] = value_at(v, node->in[i], NULL);
    }
    v->guard = guard;
    const Expr *key = expr_key(v->k, node->attr->site, in, node->nin);
    const Index *linear = index_flatten(&v->k->index, node->type->rank, node->type->dim, at);
    return expr_draw(v->k, node->attr->dist, node->type->elem, key, linear);
}

static const Expr *value_mark(Values *v, const Node *node, const Index *const *at) {
    if (node->op != OP_STOP) {
        BUG("a %s is left", op_info[node->op].name);
    }
    return value_at(v, node->in[0], at);
}

/* --- folds ------------------------------------------------------------------------------------ */

uint32_t folded_axes(const Node *node) {
    switch (node->op) {
    case OP_ARGMAX:
    case OP_ARGMIN: return 1u << node->attr->axis;
    case OP_SUM:
    case OP_PROD:
    case OP_FMAX:
    case OP_FMIN: return node->attr->axes;
    default: return 0;
    }
}

int64_t fold_count(const Node *node) {
    int64_t out = type_count(*node->type);
    if (node->op == OP_CONTRACT) {
        int64_t extent[3 * MD_RANK], all = 1;
        int n = contract_labels(node, extent);
        for (int i = 0; i < n; i++) {
            all = count_add(0, all, extent[i]);
        }
        return out > 0 ? all / out : 1;
    }
    int64_t in = type_count(*node->in[0]->type);
    return out > 0 ? in / out : 1;
}

bool fold_is_tiny(const Node *node) {
    switch (node->op) {
    case OP_SUM:
    case OP_PROD:
    case OP_FMAX:
    case OP_FMIN:
    case OP_ARGMAX:
    case OP_ARGMIN:
    case OP_CONTRACT: return fold_count(node) <= TINY_FOLD;
    case OP_OVERLAP_ADD: return node->attr->taps <= TINY_FOLD;
    default: return false;
    }
}

bool fold_is_loop(const Node *node) {
    return folded_axes(node) != 0 && !fold_is_tiny(node);
}

OpCode fold_map(OpCode op) {
    switch (op) {
    case OP_PROD: return OP_MUL;
    case OP_FMAX: return OP_MAX;
    case OP_FMIN: return OP_MIN;
    default: return OP_ADD;
    }
}

/* Axes of its own for a fold inside an element's expression. */
static const OwnAxes *own_axes(Values *v, const Node *node, int n, const int64_t *dim) {
    for (int i = 0; i < v->own.count; i++) {
        if (v->own.at[i].node == node) {
            return &v->own.at[i];
        }
    }
    OwnAxes own = {.node = node, .naxis = n};
    for (int i = 0; i < n; i++) {
        own.axis[i] = kernel_axis(v->k, dim[i], "k");
    }
    VEC_PUSH(v->scratch, &v->own, own);
    return &v->own.at[v->own.count - 1];
}

static const Index *inner_flat(Values *v, const InnerSpace *inner) {
    const Index *flat = index_const(&v->k->index, 0);
    for (int i = 0; i < inner->naxis; i++) {
        int64_t extent = v->k->axis[inner->axis[i]].extent;
        flat = index_add(&v->k->index, index_scale(&v->k->index, flat, extent),
                         kernel_axis_index(v->k, inner->axis[i]));
    }
    return flat;
}

int64_t count_dims(int n, const int64_t *dim) {
    int64_t count = 1;
    for (int i = 0; i < n; i++) {
        count *= dim[i];
    }
    return count;
}

const InnerSpace *inner_of(const Values *v, int64_t count) {
    for (int i = 0; i < v->inner.count; i++) {
        if (v->inner.at[i].count == count) {
            return &v->inner.at[i];
        }
    }
    return NULL;
}

void inner_place(Values *v, const Node *node, int leading, const Index **at) {
    int rank = node->type->rank - leading;
    const int64_t *dim = node->type->dim + leading;
    int64_t count = count_dims(rank, dim);
    const InnerSpace *inner = count > 1 ? inner_of(v, count) : NULL;
    const Index *flat = inner ? inner_flat(v, inner) : index_const(&v->k->index, 0);
    index_unflatten(&v->k->index, flat, rank, dim, at + leading);
}

/* Index of each folded axis (outermost first) for a fold asked for at `at`; gives the set of axes.
 */
static AxisSet fold_space(Values *v, const Node *node, int n, const int64_t *dim, int rank,
                          const Index *const *at, const Index **pos) {
    AxisSet outer = 0, inner = 0;
    int64_t count = count_dims(n, dim);
    for (int i = 0; i < rank; i++) {
        outer |= at[i]->axes;
    }
    for (int i = 0; i < v->inner.count; i++) {
        inner |= v->inner.at[i].set;
    }
    for (int i = 0; i < v->inner.count && !(outer & inner) && v->guard == NULL; i++) {
        const InnerSpace *space = &v->inner.at[i];
        if (space->count == count) {
            index_unflatten(&v->k->index, inner_flat(v, space), n, dim, pos);
            return space->set;
        }
    }
    const OwnAxes *own = own_axes(v, node, n, dim);
    AxisSet set = 0;
    for (int i = 0; i < n; i++) {
        pos[i] = kernel_axis_index(v->k, own->axis[i]);
        set |= (AxisSet)1 << own->axis[i];
    }
    return set;
}

/* Calls for every position of the folded axes dim[0..n); in[] is complete except for those. */
static const Expr *fold_written_out(Values *v, OpCode op, Elem elem, int n, const int64_t *dim,
                                    const Index **pos, const Expr *(*body)(void *ctx, Values *v),
                                    void *ctx) {
    int64_t index[MD_RANK] = {0}, count = 1;
    for (int i = 0; i < n; i++) {
        count *= dim[i];
    }
    const Expr *value = NULL;
    for (int64_t c = 0; c < count; c++) {
        int64_t rest = c;
        for (int i = n - 1; i >= 0; i--) {
            index[i] = rest % dim[i];
            rest /= dim[i];
            pos[i] = index_const(&v->k->index, index[i]);
        }
        const Expr *x = body(ctx, v);
        const Expr *both[2] = {op == OP_ADD || op == OP_MUL ? value : x,
                               op == OP_ADD || op == OP_MUL ? x : value};
        value = value ? expr_map(v->k, op, elem, both, 2) : x;
    }
    return value ? value : expr_const(v->k, elem, op == OP_MUL ? 1 : 0);
}

typedef struct {
    const Node *node;
    const Index *const *at;
    const Index **pos;
} FoldBody;

/* The operand of a FOLD at kept axes `at`, folded axes `pos`. */
static const Expr *fold_body(void *ctx, Values *v) {
    FoldBody *f = ctx;
    const Index *in[MD_RANK];
    uint32_t axes = folded_axes(f->node);
    for (int i = 0, kept = 0, folded = 0; i < f->node->in[0]->type->rank; i++) {
        in[i] = axes >> i & 1 ? f->pos[folded++] : f->at[kept++];
    }
    return value_at(v, f->node->in[0], in);
}

/* The first of a few positions at which the extreme stands; 0 where none equals it (NaN). */
static const Expr *first_written_out(Values *v, FoldBody *body, const int64_t *dim) {
    Elem elem = body->node->in[0]->type->elem, to = body->node->type->elem;
    OpCode best = body->node->op == OP_ARGMAX ? OP_MAX : OP_MIN;
    const Expr *extreme = fold_written_out(v, best, elem, 1, dim, body->pos, fold_body, body);
    const Expr *where = expr_int(v->k, to, 0);
    for (int64_t c = dim[0] - 1; c >= 0; c--) {
        body->pos[0] = index_const(&v->k->index, c);
        const Expr *both[2] = {fold_body(body, v), extreme};
        const Expr *choice[3] = {expr_map(v->k, OP_EQ, TY_BOOL, both, 2), expr_int(v->k, to, c),
                                 where};
        where = expr_map(v->k, OP_SELECT, to, choice, 3);
    }
    return where;
}

static const Expr *value_fold(Values *v, const Node *node, const Index *const *at) {
    Type from = *node->in[0]->type;
    int64_t dim[MD_RANK];
    int n = 0;
    for (int i = 0; i < from.rank; i++) {
        if (folded_axes(node) >> i & 1) {
            dim[n++] = from.dim[i];
        }
    }
    const Index *pos[MD_RANK];
    FoldBody body = {node, at, pos};
    bool first = node->op == OP_ARGMAX || node->op == OP_ARGMIN;
    if (fold_is_tiny(node) && first) {
        return first_written_out(v, &body, dim);
    }
    if (fold_is_tiny(node)) {
        return fold_written_out(v, fold_map(node->op), node->type->elem, n, dim, pos, fold_body,
                                &body);
    }
    AxisSet set = fold_space(v, node, n, dim, node->type->rank, at, pos);
    const Expr *x = fold_body(&body, v);
    if (first) {
        OpCode best = node->op == OP_ARGMAX ? OP_FMAX : OP_FMIN;
        const Expr *extreme = expr_fold(v->k, best, from.elem, x, set);
        return expr_first(v->k, node->op, x, extreme, set, pos[0]);
    }
    return expr_fold(v->k, node->op, node->type->elem, x, set);
}

/* Gather form: position y of the axis sums over taps k the element i with s*i + d*k - p = y, where
 * there is one. */
typedef struct {
    const Node *node;
    const Index *const *at;
    const Index *tap;
} OverlapBody;

static const Expr *overlap_body(void *ctx, Values *v) {
    const OverlapBody *o = ctx;
    IndexTable *t = &v->k->index;
    const Attr *a = o->node->attr;
    const Index *y = o->at[a->axis];
    const Index *in[MD_RANK];
    for (int i = 0; i < o->node->type->rank; i++) {
        in[i < a->axis ? i : i + 1] = o->at[i];
    }
    int64_t s = a->s < 0 ? -a->s : a->s;
    const Index *up = index_add(t, index_offset(t, y, a->p), index_scale(t, o->tap, -a->d));
    const Expr *guard = expr_within(v->k, index_mod(t, up, s), 0, 1);
    in[a->axis] = index_scale(t, index_div(t, up, s), a->s < 0 ? -1 : 1);
    in[a->axis + 1] = o->tap;
    guard = expr_and(v->k, guard, expr_within(v->k, in[a->axis], 0, a->count));
    const Expr *zero = expr_const(v->k, o->node->type->elem, 0);
    if (expr_is_false(guard)) {
        return zero;
    }
    const Expr *value = value_under(v, guard, o->node->in[0], in);
    const Expr *choice[3] = {guard, value, zero};
    return expr_is_true(guard) ? value : expr_map(v->k, OP_SELECT, zero->elem, choice, 3);
}

static const Expr *value_overlap_add(Values *v, const Node *node, const Index *const *at) {
    OverlapBody body = {node, at, NULL};
    int64_t taps = node->attr->taps;
    if (node->attr->s == 0) {
        BUG("overlap_add of a window that does not move");
    }
    if (fold_is_tiny(node)) {
        return fold_written_out(v, OP_ADD, node->type->elem, 1, &taps, &body.tap, overlap_body,
                                &body);
    }
    const OwnAxes *own = own_axes(v, node, 1, &taps);
    body.tap = kernel_axis_index(v->k, own->axis[0]);
    AxisSet set = (AxisSet)1 << own->axis[0];
    return expr_fold(v->k, OP_SUM, node->type->elem, overlap_body(&body, v), set);
}

/* --- calls ------------------------------------------------------------------------------------ */

const Expr *value_product(Values *v, const Node *node, const Index *const *label) {
    const Expr *in[2];
    uint32_t owner = v->k->owner;
    v->k->owner = node->loc.owner;
    for (int k = 0; k < 2; k++) {
        const int8_t *labels = k == 0 ? node->attr->la : node->attr->lb;
        const Index *at[MD_RANK];
        for (int i = 0; i < node->in[k]->type->rank; i++) {
            at[i] = label[labels[i]];
        }
        in[k] = value_at(v, node->in[k], at);
    }
    const Elem elem = node->type->elem;
    /* Whether a tiny one is written out is a question of fusion, which changes no bits. */
    const Expr *product = fold_is_tiny(node) ? expr_map(v->k, OP_MUL, elem, in, 2)
                                             : expr_term(v->k, elem, in[0], in[1]);
    v->k->owner = owner;
    return product;
}

/* A tiny product inside an element's expression: of one factor, or written out. */
static const Expr *value_contract(Values *v, const Node *node, const Index *const *at) {
    if (!fold_is_tiny(node)) {
        return value_memory(v, node, at);
    }
    int64_t extent[3 * MD_RANK], dim[MD_RANK];
    int n = contract_labels(node, extent), nsum = 0;
    const Index *label[3 * MD_RANK] = {0};
    int sum[MD_RANK];
    for (int i = 0; i < node->type->rank; i++) {
        label[node->attr->lo_[i]] = at[i];
    }
    for (int i = 0; i < n; i++) {
        if (label[i] == NULL) {
            dim[nsum] = extent[i];
            sum[nsum++] = i;
        }
    }
    if (nsum == 0) {
        return value_product(v, node, label);
    }
    /* Positions are read through label[], so that one vector serves: flat over the sum. */
    const Index *pos[MD_RANK];
    const Expr *value = NULL;
    for (int64_t c = 0, count = fold_count(node); c < count; c++) {
        const Index *flat = index_const(&v->k->index, c);
        index_unflatten(&v->k->index, flat, nsum, dim, pos);
        for (int i = 0; i < nsum; i++) {
            label[sum[i]] = pos[i];
        }
        const Expr *both[2] = {value, value_product(v, node, label)};
        value = value ? expr_map(v->k, OP_ADD, node->type->elem, both, 2) : both[1];
    }
    return value ? value : expr_const(v->k, node->type->elem, 0);
}

const Index *value_position(Values *v, const Node *index, const Index *const *at, int64_t extent) {
    const Expr *pos = value_at(v, index, at);
    return pos->kind == EXPR_INDEX   ? pos->index
           : pos->kind == EXPR_CONST ? index_const(&v->k->index, pos->ivalue)
                                     : index_value(&v->k->index, pos, pos->axes, 0, extent - 1);
}

static const Expr *value_gather(Values *v, const Node *node, const Index *const *at) {
    const Node *x = node->in[0], *index = node->in[1];
    int nb = node->attr->batch;
    const Index *in[MD_RANK];
    memcpy(in, at, sizeof *in * (size_t)nb);
    in[nb] = value_position(v, index, at, x->type->dim[nb]);
    for (int i = nb + 1; i < x->type->rank; i++) {
        in[i] = at[index->type->rank + i - nb - 1];
    }
    return value_at(v, x, in);
}

bool node_has_kernel(const Node *node) {
    OpMade made = op_info[node->op].made;
    return made == MADE_kernel ||
           (made == MADE_either && !fold_is_tiny(node) && !scatter_is_select(node));
}

bool scatter_is_select(const Node *node) {
    return node->op == OP_SCATTER_ADD && node->in[1]->type->rank == node->attr->batch;
}

static const Expr *value_scatter_add(Values *v, const Node *node, const Index *const *at) {
    if (!scatter_is_select(node)) {
        return value_memory(v, node, at);
    }
    int nb = node->attr->batch;
    const Index *in[MD_RANK];
    for (int i = 0, j = 0; i < node->type->rank; i++) {
        if (i != nb) {
            in[j++] = at[i];
        }
    }
    Elem elem = node->in[1]->type->elem;
    const Expr *same[2] = {expr_index(v->k, elem, at[nb]), value_at(v, node->in[1], at)};
    const Expr *choice[3] = {expr_map(v->k, OP_EQ, TY_BOOL, same, 2), value_at(v, node->in[0], in),
                             expr_const(v->k, node->type->elem, 0)};
    return expr_map(v->k, OP_SELECT, node->type->elem, choice, 3);
}

/* --- the table -------------------------------------------------------------------------------- */

#define VALUE_inline(rule) value_##rule
#define VALUE_either(rule) value_##rule
#define VALUE_kernel(rule) value_memory
static const ValueRule rules[OP_COUNT] = {
#define OP(NAME, name, nin, cls, shape, eval, vjp, lower, made, sample, cost, spelling)            \
    [OP_##NAME] = VALUE_##made(lower),
#include "compiler/op.def"
#undef OP
};

static uint64_t memo_hash(const Node *node, const Expr *guard, const Index *const *at) {
    uint64_t h = hash_word(HASH_TABLE, (uint64_t)node->id);
    h = guard ? hash_word(h, (uint64_t)guard->id) : h;
    for (int i = 0; i < node->type->rank; i++) {
        for (int t = 0; t < at[i]->nterm; t++) {
            h = hash_word(h, (uint64_t)at[i]->term[t].atom->id);
            h = hash_word(h, (uint64_t)at[i]->term[t].mul);
        }
        h = hash_word(h, (uint64_t)at[i]->base);
    }
    return h;
}

static bool memo_is(const ValueMemo *m, const Node *node, const Expr *guard,
                    const Index *const *at) {
    if (m->node != node || m->guard != guard) {
        return false;
    }
    for (int i = 0; i < node->type->rank; i++) {
        if (m->at[i] != at[i]) {
            return false;
        }
    }
    return true;
}

static void memo_put(Values *v, int id) {
    const ValueMemo *m = &v->memo.at[id];
    uint64_t h = memo_hash(m->node, m->guard, m->at), mask = (uint64_t)v->cons_size - 1;
    while (v->cons[h & mask]) {
        h++;
    }
    v->cons[h & mask] = id + 1;
}

/* NULL: not known yet. */
static const Expr *memo_find(const Values *v, const Node *node, const Index *const *at) {
    uint64_t h = memo_hash(node, v->guard, at), mask = (uint64_t)v->cons_size - 1;
    for (; v->cons_size && v->cons[h & mask]; h++) {
        const ValueMemo *m = &v->memo.at[v->cons[h & mask] - 1];
        if (memo_is(m, node, v->guard, at)) {
            return m->value;
        }
    }
    return NULL;
}

/* A long chain of operands comes here in a row, when its values are made one inside the other: the
 * table grows with each that is added, not with each that is looked for. */
static void memo_add(Values *v, ValueMemo m) {
    VEC_PUSH(v->scratch, &v->memo, m);
    if (2 * v->memo.count < v->cons_size) {
        memo_put(v, v->memo.count - 1);
        return;
    }
    v->cons_size = v->cons_size ? 2 * v->cons_size : 64;
    v->cons = ARENA_ARRAY(v->scratch, int, v->cons_size);
    for (int i = 0; i < v->memo.count; i++) {
        memo_put(v, i);
    }
}

const Expr *value_at(Values *v, const Node *node, const Index *const *at) {
    const Expr *value = memo_find(v, node, at);
    if (value != NULL) {
        return value;
    }
    uint32_t owner = v->k->owner;
    v->k->owner = node->loc.owner;
    if (node->op != OP_CONST) {
        value = v->stored(v->ctx, v, node, at);
    }
    if (value == NULL) {
        value = rules[node->op](v, node, at);
    }
    v->k->owner = owner;
    expr_name(value, node->name);
    ValueMemo m = {.node = node, .guard = v->guard, .value = value};
    for (int i = 0; i < node->type->rank; i++) {
        m.at[i] = at[i];
    }
    memo_add(v, m);
    return value;
}

void values_forget(Values *v) {
    v->memo.count = 0;
    v->cons_size = 0;
}

const Expr *value_under(Values *v, const Expr *guard, const Node *node, const Index *const *at) {
    const Expr *before = v->guard;
    v->guard = expr_and(v->k, before, guard);
    if (expr_is_true(v->guard)) {
        v->guard = NULL;
    }
    const Expr *value = value_at(v, node, at);
    v->guard = before;
    return value;
}
