#include "random_module.h"

#include <math.h>
#include <string.h>

/* --- numbers ---------------------------------------------------------------------------------- */

uint64_t gen_bits(Gen *gen) {
    uint64_t x = gen->rng += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

int64_t gen_below(Gen *gen, int64_t n) {
    uint64_t drawn = gen_bits(gen);
    return n > 0 ? (int64_t)(drawn % (uint64_t)n) : 0; /* of an axis without elements */
}

bool gen_chance(Gen *gen, int percent) {
    return gen_below(gen, 100) < percent;
}

double gen_uniform(Gen *gen, double lo, double hi) {
    return lo + (hi - lo) * (double)(gen_bits(gen) >> 11) * 0x1p-53;
}

static double *numbers(Gen *gen, Type type, double lo, double hi) {
    int64_t n = type_count(type);
    double *data = ARENA_ARRAY(&gen->c->arena, double, n);
    for (int64_t i = 0; i < n; i++) {
        double x = gen_uniform(gen, lo, hi);
        data[i] = type.elem == TY_F64 ? x : elem_is_float(type.elem) ? (double)(float)x : floor(x);
    }
    return data;
}

/* --- types ------------------------------------------------------------------------------------ */

Elem gen_int_elem(Gen *gen) {
    static const Elem elems[] = {TY_I32, TY_I64, TY_I32, TY_U8, TY_I8, TY_I16, TY_U16, TY_U32};
    return elems[gen_below(gen, 8)];
}

Type gen_type(Gen *gen, Elem elem) {
    static const int ranks[] = {0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6};
    Type t = {.elem = elem};
    int rank = ranks[gen_below(gen, 14)];
    int64_t room = gen->most;
    while (t.rank < rank) {
        int64_t n = gen_chance(gen, 15) ? 1 : gen->dim[gen_below(gen, gen->ndim)];
        n = n > room ? 1 : n;
        room /= n > 0 ? n : 1;
        t.dim[t.rank++] = n;
    }
    return t;
}

/* --- values ----------------------------------------------------------------------------------- */

Val gen_any(Gen *gen) {
    GenPool *p = gen->pool;
    int back = (int)gen_below(gen, p->n);
    if (gen_chance(gen, 50)) { /* late ones more often: chains grow */
        back = (int)gen_below(gen, back + 1);
    }
    return p->at[p->n - 1 - back];
}

static bool find(Gen *gen, bool (*wanted)(const Gen *, Elem), Val *out) {
    for (int tries = 0; tries < 12; tries++) {
        *out = gen_any(gen);
        if (wanted(gen, out->node->type->elem)) {
            return true;
        }
    }
    return false;
}

static bool is_own(const Gen *gen, Elem elem) {
    return elem == gen->elem;
}
static bool is_int(const Gen *gen, Elem elem) {
    (void)gen;
    return elem_is_int(elem);
}
static bool is_bool(const Gen *gen, Elem elem) {
    (void)gen;
    return elem == TY_BOOL;
}

Val gen_input(Gen *gen, Type type, double lo, double hi) {
    if (gen->init || gen->entry->input.count >= 10) {
        return gen_table(gen, type, lo, hi);
    }
    bool ranged = elem_is_int(type.elem);
    Slot *slot = graph_case_input(gen->c, gen->entry, type, numbers(gen, type, lo, hi),
                                  ranged ? (int64_t)lo : 0, ranged ? (int64_t)hi : 0);
    return (Val){node_slot(gen->g, slot), lo, ranged ? hi - 1 : hi};
}

Val gen_table(Gen *gen, Type type, double lo, double hi) {
    if (type_count(type) > 200 || gen_chance(gen, 20)) {
        double x = floor(gen_uniform(gen, lo, hi) * 8) / 8;
        x = elem_is_float(type.elem) ? x : floor(x);
        x = x < lo ? lo : x;
        return (Val){node_full(gen->g, type, x), x, x};
    }
    return (Val){node_table(gen->g, type, numbers(gen, type, lo, hi)), lo, hi};
}

static Val fresh(Gen *gen, Type type) {
    bool table = gen_chance(gen, 25);
    double lo = type.elem == TY_BOOL || !elem_is_signed(type.elem) ? 0 : -1, hi = 1;
    if (!elem_is_float(type.elem)) {
        lo *= 9;
        hi = type.elem == TY_BOOL ? 2 : 9;
    }
    return table ? gen_table(gen, type, lo, hi) : gen_input(gen, type, lo, hi);
}

Val gen_float(Gen *gen) {
    Val v;
    return find(gen, is_own, &v) ? v : fresh(gen, gen_type(gen, gen->elem));
}

Val gen_int(Gen *gen) {
    Val v;
    return find(gen, is_int, &v) ? v : fresh(gen, gen_type(gen, gen_int_elem(gen)));
}

Val gen_bool(Gen *gen) {
    Val v;
    return find(gen, is_bool, &v) ? v : fresh(gen, gen_type(gen, TY_BOOL));
}

static Val to_elem(Gen *gen, Val v, Elem elem) {
    Graph *g = gen->g;
    if (v.node->type->elem == elem) {
        return v;
    }
    if (elem_is_int(v.node->type->elem) && elem_is_float(elem) && !(v.lo >= -64 && v.hi <= 64)) {
        v.node = node_map2(g, OP_IREM, v.node, node_int(g, v.node->type->elem, 16));
        v.lo = 0;
        v.hi = 15;
    }
    v.node = node_cast(g, v.node, elem);
    if (elem == TY_BOOL) {
        return (Val){v.node, 0, 1};
    }
    if (elem_is_int(elem)) {
        bool wraps = !elem_is_signed(elem) && v.lo < 0;
        return wraps ? (Val){v.node, -INFINITY, INFINITY} : (Val){v.node, floor(v.lo), ceil(v.hi)};
    }
    return v;
}

static Val total_of(Gen *gen, Val v) {
    Type t = *v.node->type;
    if (t.rank == 0) {
        return v;
    }
    double n = (double)type_count(t);
    Node *sum = node_fold(gen->g, OP_SUM, v.node, (1u << t.rank) - 1);
    return (Val){sum, fmin(v.lo * n, v.lo), fmax(v.hi * n, v.hi)};
}

Val gen_fit(Gen *gen, Val v, Type like) {
    Graph *g = gen->g;
    v = to_elem(gen, v, like.elem);
    if (type_same_shape(*v.node->type, like)) {
        return v;
    }
    if (type_count(*v.node->type) == type_count(like) && gen_chance(gen, 70)) {
        v.node = node_reshape(g, v.node, like.rank, like.dim);
        return v;
    }
    uint32_t axes = 0;
    int k = 0;
    for (int i = 0; i < like.rank; i++) {
        if (k < v.node->type->rank && v.node->type->dim[k] == like.dim[i]) {
            k++;
        } else {
            axes |= 1u << i;
        }
    }
    if (k == v.node->type->rank) {
        v.node = node_broadcast(g, v.node, axes, like.rank, like.dim);
        return v;
    }
    if (v.node->type->elem == TY_BOOL && type_count(*v.node->type) == 0) {
        return fresh(gen, like);
    }
    if (v.node->type->elem == TY_BOOL) { /* no fold over bool */
        int64_t lo[MD_RANK] = {0}, one[MD_RANK];
        for (int i = 0; i < MD_RANK; i++) {
            one[i] = 1;
        }
        v.node = node_reshape(g, node_slice(g, v.node, lo, one, NULL), 0, NULL);
    } else {
        v = total_of(gen, v);
        v = elem_is_float(like.elem) ? gen_calm(gen, v, 16) : (Val){v.node, -INFINITY, INFINITY};
    }
    v.node = node_broadcast_to(g, v.node, like);
    return v;
}

Val gen_like(Gen *gen, Type type) {
    for (int tries = 0; tries < 6; tries++) {
        Val v = gen_any(gen);
        if (type_equal(*v.node->type, type)) {
            return v;
        }
    }
    return gen_chance(gen, 20) ? fresh(gen, type) : gen_fit(gen, gen_any(gen), type);
}

Val gen_calm(Gen *gen, Val v, double most) {
    static const OpCode squash[] = {OP_TANH, OP_SIN, OP_ERF, OP_COS};
    double size = fmax(fabs(v.lo), fabs(v.hi));
    if (size <= most) {
        return v;
    }
    if (size < 8 * most && gen_chance(gen, 50)) {
        Node *part = node_const(gen->g, v.node->type->elem, 0.125);
        return (Val){node_map2(gen->g, OP_MUL, v.node, part), v.lo / 8, v.hi / 8};
    }
    return (Val){node_map1(gen->g, squash[gen_below(gen, 4)], v.node), -1, 1};
}

Val gen_index(Gen *gen, Type type, int64_t n) {
    int64_t most = type.elem == TY_I8 ? 127 : type.elem == TY_U8 ? 255 : 30000;
    type.elem = n > most ? TY_I32 : type.elem;
    if (gen_chance(gen, 40)) {
        return gen_input(gen, type, 0, (double)n);
    }
    Val v = gen_like(gen, type);
    if (v.lo >= 0 && v.hi < (double)n) {
        return v;
    }
    return (Val){node_map2(gen->g, OP_IREM, v.node, node_int(gen->g, type.elem, n)), 0,
                 (double)(n - 1)};
}

bool gen_keep(Gen *gen, Val v) {
    GenPool *p = gen->pool;
    Type t = *v.node->type;
    if (type_count(t) > 2 * gen->most || t.rank > 7) {
        return false;
    }
    if (elem_is_float(t.elem)) {
        v = gen_calm(gen, v, 32);
    }
    p->at[p->n < GEN_POOL ? p->n++ : gen_below(gen, GEN_POOL)] = v;
    return true;
}

Node *gen_total(Gen *gen, Val v) {
    v = to_elem(gen, v, gen->elem);
    Val w = gen_table(gen, *v.node->type, 0.25, 1);
    return total_of(gen, (Val){node_map2(gen->g, OP_MUL, v.node, w.node), v.lo, v.hi}).node;
}

/* --- entries ---------------------------------------------------------------------------------- */

static OpCode rare_op(Gen *gen) {
    OpCode best = (OpCode)gen_below(gen, OP_COUNT);
    for (int k = 0; k < 2; k++) {
        OpCode other = (OpCode)gen_below(gen, OP_COUNT);
        best = gen->made[other] < gen->made[best] ? other : best;
    }
    return best;
}

void gen_nodes(Gen *gen, int n) {
    for (int i = 0; i < n; i++) {
        OpCode op = gen->depth < 3 && gen_chance(gen, 8) ? OP_LOOP : rare_op(gen);
        Val v;
        for (int tries = 0; tries < 4; tries++) {
            if (gen_op(gen, op, &v) && gen_keep(gen, v)) {
                gen->made[op]++;
                break;
            }
        }
    }
}

static void slots(Gen *gen) {
    static const StateRole roles[] = {STATE_MODEL, STATE_LAYER, STATE_OPTIMIZER};
    Region *init = gen->c->module->entry.at[0]->region, *before = graph_enter(gen->g, init);
    GenPool pool = {.n = 0};
    gen->pool = &pool;
    gen->entry = gen->c->module->entry.at[0];
    gen->init = true;
    int n = 1 + (int)gen_below(gen, 5);
    for (int i = 0; i < n; i++) {
        bool param = gen_chance(gen, 50);
        Elem elem = param || gen_chance(gen, 40) ? gen->elem
                    : gen_chance(gen, 30)        ? TY_BOOL
                                                 : gen_int_elem(gen);
        Type type = i == 0 ? type_scalar(TY_I64) : gen_type(gen, elem);
        Val start = fresh(gen, type);
        if (type.elem == gen->elem && gen_chance(gen, 50)) {
            Node *key[2] = {node_int(gen->g, TY_I64, gen_below(gen, 99)),
                            node_int(gen->g, TY_I64, i)};
            start.node = node_random(gen->g, DIST_UNIFORM, gen_bits(gen), key, 2, type);
        }
        param = param && type.elem == gen->elem;
        char name[32] = "net.s0";
        name[5] = (char)('0' + i);
        graph_case_slot(gen->c, param ? SLOT_PARAM : SLOT_STATE,
                        param ? STATE_NONE : roles[gen_below(gen, 3)], name, start.node);
    }
    gen->init = false;
    graph_leave(gen->g, before);
}

static void entry_open(Gen *gen, GenPool *pool, EntryKind kind, const char *name) {
    pool->n = 0;
    gen->pool = pool;
    gen->entry = graph_case_entry(gen->c, kind, name);
    gen->repeats = 1;
    gen->depth = 0;
    graph_enter(gen->g, gen->entry->region);
    for (int i = 0, n = 2 + (int)gen_below(gen, 2); i < n; i++) {
        gen_keep(gen, gen_input(gen, gen_type(gen, gen->elem), -1, 1));
    }
    gen_keep(gen, gen_input(gen, gen_type(gen, gen_int_elem(gen)), 0, 9));
    for (int i = 0; i < gen->c->module->slot.count; i++) {
        Slot *slot = gen->c->module->slot.at[i];
        bool number = elem_is_float(slot->type.elem);
        if (gen_chance(gen, 70)) {
            gen_keep(gen, (Val){node_slot(gen->g, slot), number ? -1 : -INFINITY,
                                number ? 1 : INFINITY});
        }
    }
}

static void write_slots(Gen *gen) {
    for (int i = 0; i < gen->c->module->slot.count; i++) {
        Slot *slot = gen->c->module->slot.at[i];
        if (!gen_chance(gen, 60)) {
            continue;
        }
        Val v = gen_chance(gen, 15) ? (Val){node_slot(gen->g, slot), -1, 1}
                                    : gen_fit(gen, gen_any(gen), slot->type);
        v = elem_is_float(slot->type.elem) ? gen_calm(gen, v, 1) : v;
        graph_case_write_slot(gen->c, gen->entry, slot, v.node);
    }
}

/* Derivatives of `value` to some values of the pool; of a random one's scalar when it is NULL. */
static void derivatives(Gen *gen, Node *value, int n) {
    for (int i = 0; i < n; i++) {
        Node *v = value ? value : gen_total(gen, gen_calm(gen, gen_float(gen), 2));
        Node *d = gen_slope(gen, v, 1);
        if (gen_chance(gen, 30)) { /* a derivative of it */
            d = node_map1(gen->g, OP_TANH, d);
            d = gen_slope(gen, gen_total(gen, (Val){d, -1, 1}), 1);
        }
        graph_case_result(gen->c, gen->entry, OUT_RESULT, d);
    }
}

static void random_entry(Gen *gen, int number, int nodes) {
    GenPool pool;
    char name[16] = "call0";
    name[4] = (char)('0' + number);
    bool train = gen_chance(gen, 30);
    gen->smooth = false;
    entry_open(gen, &pool, train ? ENTRY_TRAIN : ENTRY_CALL, name);
    gen_nodes(gen, nodes);
    Node *loss = gen_total(gen, gen_calm(gen, gen_float(gen), 2));
    for (int i = pool.n / 2; i < pool.n; i++) { /* much of what was made is used */
        if (gen_chance(gen, 40) && pool.at[i].node->type->elem == gen->elem) {
            loss = node_map2(gen->g, OP_ADD, loss, gen_total(gen, pool.at[i]));
        }
    }
    graph_case_result(gen->c, gen->entry, train ? OUT_LOSS : OUT_RESULT, loss);
    for (int i = 0, n = 1 + (int)gen_below(gen, 4); i < n; i++) {
        graph_case_result(gen->c, gen->entry, OUT_RESULT, gen_any(gen).node);
    }
    if (gen_chance(gen, 60)) {
        derivatives(gen, gen_chance(gen, 70) ? loss : NULL, 1 + (int)gen_below(gen, 3));
    }
    write_slots(gen);
}

/* A scalar and its derivatives to the inputs; in every second one it is made of derivatives. */
static void smooth_entry(Gen *gen, int nodes) {
    GenPool pool;
    gen->smooth = true;
    entry_open(gen, &pool, ENTRY_CALL, "smooth");
    gen_nodes(gen, nodes);
    Graph *g = gen->g;
    Node *unit = node_const(g, gen->elem, 1), *loss = node_const(g, gen->elem, 0);
    for (int i = 0; i < pool.n; i++) {
        if (pool.at[i].node->type->elem == gen->elem && gen_chance(gen, 70)) {
            Node *part = gen_total(gen, gen_calm(gen, pool.at[i], 2));
            loss = node_map2(g, OP_ADD, loss, node_map1(g, OP_SIN, part));
        }
    }
    bool second = gen_chance(gen, 50);
    Node *next = loss;
    for (int k = 0; second && k < gen->entry->input.count; k++) {
        Slot *slot = gen->entry->input.at[k];
        if (slot->type.elem == gen->elem) {
            Node *slope = node_map1(g, OP_TANH, node_grad(g, loss, node_slot(g, slot), unit));
            next = node_map2(g, OP_ADD, next, gen_total(gen, (Val){slope, -1, 1}));
        }
    }
    graph_case_result(gen->c, gen->entry, OUT_RESULT, next);
    for (int k = 0; k < gen->entry->input.count; k++) {
        Slot *slot = gen->entry->input.at[k];
        if (slot->type.elem == gen->elem) {
            graph_case_result(gen->c, gen->entry, OUT_RESULT,
                              node_grad(g, next, node_slot(g, slot), unit));
        }
    }
}

void random_module(GraphCase *c, const GenWish *wish) {
    static const int64_t dims[] = {2, 3, 2, 3, 5, 7, 4, 8, 11, 13, 16, 17, 31, 33, 64};
    graph_case_open(c, wish->elem);
    Gen gen = {.c = c, .g = c->module->graph, .rng = wish->seed, .elem = wish->elem};
    gen.mixed = gen_chance(&gen, 20);
    gen.ndim = 3 + (int)gen_below(&gen, 3);
    gen.most = wish->big ? 150000 : gen_chance(&gen, 15) ? 4000 : 250;
    for (int i = 0; i < gen.ndim; i++) {
        gen.dim[i] = wish->big && i < 2 ? 200 + gen_below(&gen, 200) : dims[gen_below(&gen, 15)];
    }
    if (wish->seed % 8 == 5 && !wish->big) {
        gen.dim[gen.ndim - 1] = 0;
    }
    slots(&gen);
    bool smooth = wish->elem == TY_F64 && !wish->big && gen_chance(&gen, 50);
    int entries = smooth ? (int)gen_below(&gen, 2) : 1 + (int)gen_below(&gen, wish->big ? 1 : 3);
    for (int i = 0; i < entries; i++) {
        random_entry(&gen, i, wish->nodes);
    }
    if (smooth) {
        smooth_entry(&gen, wish->nodes / 2 + 2);
    }
}
