/* kernel: makers of kernels: arguments, axes, hash-consed expressions, statements. */
#include "compiler/kernel.h"

#include "runtime/sort_plan.h"

#include <string.h>

enum { KIDS_MAX = 32 };

Kernel *kernel_new(Arena *arena, int threads) {
    Kernel *k = ARENA_NEW(arena, Kernel);
    k->arena = arena;
    k->threads = threads > 0 ? threads : 1;
    index_open(&k->index, arena);
    return k;
}

void kernel_keep(Kernel *k, Arena *arena) {
    arena_adopt(arena, k->arena);
    k->arena = k->index.arena = arena;
    k->cons = NULL;
    k->expr.at = NULL; /* found through statements */
    k->index.cons = NULL;
    k->cons_size = k->index.cons_size = 0;
}

Arg *kernel_arg(Kernel *k, Buf *buf, int mode) {
    for (int i = 0; i < k->arg.count; i++) {
        if (kernel_buf(k, k->arg.at[i]) == buf) {
            k->arg.at[i]->mode |= mode;
            return k->arg.at[i];
        }
    }
    Arg *arg = ARENA_NEW(k->arena, Arg);
    *arg = (Arg){.elem = buf->type->elem,
                 .id = k->nargs++,
                 .mode = mode,
                 .name = buf->role,
                 .work = buf->kind == BUF_WORK};
    VEC_PUSH_FROM(k->arena, &k->arg, arg, 4);
    VEC_PUSH_FROM(k->arena, &k->call.buf, buf, 4);
    return arg;
}

Buf *kernel_buf(const Kernel *k, const Arg *arg) {
    return k->call.buf.at[arg->id];
}

bool kernel_shares(const Kernel *k, const Arg *arg) {
    for (int i = 0; i < k->pair.count; i++) {
        if (k->pair.at[i].in == arg->id || k->pair.at[i].out == arg->id) {
            return true;
        }
    }
    return false;
}

int kernel_axis(Kernel *k, int64_t extent, const char *name) {
    if (k->naxis == AXES_MAX) {
        BUG("a kernel with more than %d axes", AXES_MAX);
    }
    if (k->naxis == k->axis_room) {
        enum { AXES_FIRST = 4 };
        int room = k->axis_room > 0 ? 2 * k->axis_room : AXES_FIRST;
        k->axis = arena_grow(k->arena, k->axis, sizeof *k->axis * (size_t)k->axis_room,
                             sizeof *k->axis * (size_t)room);
        k->axis_room = room;
    }
    k->axis[k->naxis] = (Axis){extent, name};
    return k->naxis++;
}

const Index *kernel_axis_index(Kernel *k, int axis) {
    return index_axis(&k->index, axis, k->axis[axis].extent);
}

const Index *kernel_loop_index(Kernel *k, const Step *loop) {
    int at = 0;
    while (at < k->loop.count && k->call.loop.at[at] != loop) {
        at++;
    }
    if (at == k->loop.count) {
        VEC_PUSH_FROM(k->arena, &k->loop, ((OuterLoop){loop->trip, true}), 2);
        VEC_PUSH_FROM(k->arena, &k->call.loop, loop, 2);
    }
    return index_loop(&k->index, at, loop->trip, loop->picks);
}

/* --- expressions ------------------------------------------------------------------------------ */

static uint64_t expr_hash(const Expr *e) {
    uint64_t h = hash_word(HASH_TABLE, (uint64_t)e->kind);
    h = hash_word(h, (uint64_t)e->op);
    h = hash_word(h, (uint64_t)e->elem << 1 | e->term);
    uint64_t value;
    memcpy(&value, &e->value, sizeof value);
    h = hash_word(h, value);
    h = hash_word(h, (uint64_t)e->ivalue);
    h = hash_word(h, (uint64_t)e->site);
    h = hash_word(h, (uint64_t)e->fold);
    for (int i = 0; i < e->nin; i++) {
        h = hash_word(h, (uint64_t)e->in[i]->id);
    }
    if (e->index) {
        h = hash_word(h, (uint64_t)e->index->base);
        h = hash_word(h, (uint64_t)e->index->nterm);
        for (int i = 0; i < e->index->nterm; i++) {
            h = hash_word(h, (uint64_t)e->index->term[i].atom->id);
            h = hash_word(h, (uint64_t)e->index->term[i].mul);
        }
    }
    return e->arg ? hash_word(h, (uint64_t)e->arg->id) : h;
}

static bool expr_is(const Expr *a, const Expr *b) {
    if (a->kind != b->kind || a->op != b->op || a->elem != b->elem || a->nin != b->nin ||
        memcmp(&a->value, &b->value, sizeof a->value) != 0 || a->ivalue != b->ivalue ||
        a->lo != b->lo || a->hi != b->hi || a->site != b->site || a->dist != b->dist ||
        a->index != b->index || a->arg != b->arg || a->fold != b->fold || a->term != b->term) {
        return false;
    }
    for (int i = 0; i < a->nin; i++) {
        if (a->in[i] != b->in[i]) {
            return false;
        }
    }
    return true;
}

static void cons_put(Kernel *k, int id) {
    uint64_t h = expr_hash(k->expr.at[id]), mask = (uint64_t)k->cons_size - 1;
    while (k->cons[h & mask]) {
        h++;
    }
    k->cons[h & mask] = id + 1;
}

int index_kids(const Index *index, const Expr **kid, int n, int most) {
    for (int i = 0; i < index->nterm; i++) {
        const Atom *atom = index->term[i].atom;
        if (atom->of) {
            n = index_kids(atom->of, kid, n, most);
        }
        bool known = atom->value == NULL;
        for (int j = 0; j < n; j++) {
            known = known || kid[j] == atom->value;
        }
        if (!known) {
            if (n == most) {
                BUG("an index with more than %d values", most);
            }
            kid[n++] = atom->value;
        }
    }
    return n;
}

/* Keeps one of each; works out axes and cost of a new one. */
static const Expr *expr_keep(Kernel *k, Expr like) {
    if (2 * k->expr.count >= k->cons_size) {
        k->cons_size = k->cons_size ? 2 * k->cons_size : 128;
        if (!k->cons && k->expr.count > 0) {
            BUG("a finished kernel grows");
        }
        k->cons = ARENA_ARRAY(k->index.tables, int, k->cons_size);
        for (int i = 0; i < k->expr.count; i++) {
            cons_put(k, i);
        }
    }
    uint64_t h = expr_hash(&like), mask = (uint64_t)k->cons_size - 1;
    for (; k->cons[h & mask]; h++) {
        Expr *old = k->expr.at[k->cons[h & mask] - 1];
        if (expr_is(old, &like)) {
            return old;
        }
    }
    Expr *e = ARENA_NEW(k->arena, Expr);
    *e = like;
    e->id = k->expr.count;
    e->owner = k->owner;
    const Expr *kid[KIDS_MAX] = {NULL};
    for (int i = 0; i < like.nin; i++) {
        kid[i] = like.in[i];
    }
    e->nkid = like.index ? index_kids(like.index, kid, like.nin, KIDS_MAX) : like.nin;
    e->kid = ARENA_ARRAY(k->arena, const Expr *, e->nkid);
    e->in = e->kid;
    e->axes = like.index ? like.index->axes : 0;
    for (int i = 0; i < e->nkid; i++) {
        e->kid[i] = kid[i];
        e->axes |= kid[i]->axes;
        e->cost += kid[i]->cost;
    }
    e->axes &= ~like.fold;
    if (e->cost > 1 << 20) {
        e->cost = 1 << 20;
    }
    VEC_PUSH(k->index.tables, &k->expr, e);
    k->cons[h & mask] = e->id + 1;
    return e;
}

const Expr *expr_const(Kernel *k, Elem elem, double value) {
    if (elem_is_int(elem)) {
        return expr_int(k, elem, (int64_t)value);
    }
    return expr_keep(k, (Expr){.kind = EXPR_CONST, .elem = elem, .value = value});
}

const Expr *expr_int(Kernel *k, Elem elem, int64_t value) {
    return expr_keep(k, (Expr){.kind = EXPR_CONST, .elem = elem, .ivalue = value});
}

const Expr *expr_index(Kernel *k, Elem elem, const Index *index) {
    int64_t value;
    if (index_is_const(index, &value)) {
        return expr_int(k, elem, value);
    }
    return expr_keep(k, (Expr){.kind = EXPR_INDEX, .elem = elem, .index = index});
}

const Expr *expr_within(Kernel *k, const Index *index, int64_t lo, int64_t hi) {
    bool always = index->least >= lo && index->most < hi;
    if (always || index->most < lo || index->least >= hi) {
        return expr_const(k, TY_BOOL, always ? 1 : 0);
    }
    return expr_keep(
        k,
        (Expr){
            .kind = EXPR_WITHIN, .elem = TY_BOOL, .index = index, .lo = lo, .hi = hi, .cost = 1});
}

bool expr_is_true(const Expr *e) {
    return e == NULL || (e->kind == EXPR_CONST && e->elem == TY_BOOL && e->value != 0);
}

bool expr_is_false(const Expr *e) {
    return e != NULL && e->kind == EXPR_CONST && e->elem == TY_BOOL && e->value == 0;
}

const Expr *expr_and(Kernel *k, const Expr *a, const Expr *b) {
    if (expr_is_true(a) || a == b) {
        return b;
    }
    if (expr_is_true(b)) {
        return a;
    }
    if (expr_is_false(a) || expr_is_false(b)) {
        return expr_const(k, TY_BOOL, 0);
    }
    const Expr *in[2] = {a, b};
    return expr_map(k, OP_AND, TY_BOOL, in, 2);
}

const Expr *expr_load(Kernel *k, const Arg *arg, const Index *index, const Expr *guard) {
    Elem elem = elem_computed(arg->elem);
    if (expr_is_true(guard)) {
        return expr_keep(k, (Expr){.kind = EXPR_LOAD, .elem = elem, .arg = arg, .index = index});
    }
    const Expr *in[2] = {guard, elem_is_int(elem) ? expr_int(k, elem, 0) : expr_const(k, elem, 0)};
    if (expr_is_false(guard)) {
        return in[1];
    }
    return expr_keep(
        k, (Expr){.kind = EXPR_LOAD, .elem = elem, .arg = arg, .index = index, .in = in, .nin = 2});
}

/* What is known of an integer or bool without running. */
static void value_range(const Expr *e, int64_t *least, int64_t *most) {
    elem_range(e->elem, least, most);
    if (e->kind == EXPR_CONST) {
        *least = *most = e->elem == TY_BOOL ? e->value != 0 : e->ivalue;
    } else if (e->kind == EXPR_INDEX && e->index->least >= *least && e->index->most <= *most) {
        *least = e->index->least;
        *most = e->index->most;
    }
}

/* Comparisons of integers that come out the same for all values: C compilers warn of them. */
static const Expr *compare_simpler(Kernel *k, OpCode op, const Expr *a, const Expr *b) {
    int64_t least[2], most[2];
    if (elem_is_float(a->elem)) {
        return NULL; /* NaN */
    }
    if (a == b) {
        return expr_const(k, TY_BOOL, op != OP_LT);
    }
    value_range(a, &least[0], &most[0]);
    value_range(b, &least[1], &most[1]);
    bool below = op == OP_LT ? most[0] < least[1] : op == OP_LE && most[0] <= least[1];
    bool above = op == OP_LT ? least[0] >= most[1] : least[0] > most[1];
    bool apart = above || (op == OP_EQ && most[0] < least[1]);
    return below || apart ? expr_const(k, TY_BOOL, below) : NULL;
}

/* a < max(x, b) where a >= b, the mask of a relu, as a < x; NaN gives false in both. C compilers
 * make branches of two choices in a row. */
static const Expr *mask_simpler(Kernel *k, const Expr *a, const Expr *e) {
    for (int i = 0; i < 2 && a->kind == EXPR_CONST && e->kind == EXPR_MAP && e->op == OP_MAX; i++) {
        const Expr *in[2] = {a, e->in[!i]}, *b = e->in[i];
        if (b->kind == EXPR_CONST && elem_is_float(b->elem) && a->value >= b->value) {
            return expr_map(k, OP_LT, TY_BOOL, in, 2);
        }
    }
    return NULL;
}

/* Few rules: what guards and borders leave behind. */
static const Expr *map_simpler(Kernel *k, OpCode op, Elem elem, const Expr *const *in) {
    const Expr *mask = op == OP_LT ? mask_simpler(k, in[0], in[1]) : NULL;
    if (mask) {
        return mask;
    }
    if (op == OP_LT || op == OP_LE || op == OP_EQ) {
        return compare_simpler(k, op, in[0], in[1]);
    }
    if (op == OP_SELECT && in[0]->kind == EXPR_CONST) {
        return in[in[0]->value != 0 ? 1 : 2];
    }
    if (op == OP_SELECT && in[1] == in[2]) {
        return in[1];
    }
    /* The border of a guarded load replaces its zero. */
    if (op == OP_SELECT && in[1]->kind == EXPR_LOAD && in[1]->nin == 2 && in[1]->in[0] == in[0]) {
        const Expr *with[2] = {in[0], in[2]};
        Expr load = *in[1];
        load.in = with;
        load.cost = 0;
        load.name = NULL;
        return expr_keep(k, load);
    }
    for (int i = 0; (op == OP_AND || op == OP_OR) && i < 2; i++) {
        if (in[i]->kind == EXPR_CONST) {
            return (in[i]->value != 0) == (op == OP_AND) ? in[!i] : in[i];
        }
    }
    if (op == OP_NOT && in[0]->kind == EXPR_CONST) {
        return expr_const(k, TY_BOOL, in[0]->value == 0);
    }
    if (op == OP_AGAIN || (op == OP_CAST && in[0]->elem == elem)) {
        return in[0];
    }
    if (op == OP_CAST && in[0]->kind == EXPR_CONST && elem_is_int(elem) &&
        elem_is_int(in[0]->elem)) {
        int64_t least, most;
        elem_range(elem, &least, &most);
        bool fits = in[0]->ivalue >= least && in[0]->ivalue <= most;
        return fits ? expr_int(k, elem, in[0]->ivalue) : NULL;
    }
    if (op == OP_CAST && in[0]->kind == EXPR_INDEX && elem_is_int(elem) && elem_bytes(elem) >= 4) {
        return expr_index(k, elem, in[0]->index);
    }
    return NULL;
}

static const Expr *map_keep(Kernel *k, OpCode op, Elem elem, const Expr *const *in, int nin,
                            bool term) {
    const Expr *simple = map_simpler(k, op, elem, in);
    if (simple) {
        return simple;
    }
    return expr_keep(k, (Expr){.kind = EXPR_MAP,
                               .op = op,
                               .elem = elem,
                               .nin = nin,
                               .in = (const Expr **)(uintptr_t)in,
                               .cost = op_info[op].cost,
                               .term = term});
}

const Expr *expr_map(Kernel *k, OpCode op, Elem elem, const Expr *const *in, int nin) {
    return map_keep(k, op, elem, in, nin, false);
}

const Expr *expr_term(Kernel *k, Elem elem, const Expr *a, const Expr *b) {
    const Expr *in[2] = {a, b};
    return map_keep(k, OP_MUL, elem, in, 2, elem_is_float(elem));
}

const Expr *expr_key(Kernel *k, uint64_t site, const Expr *const *in, int nin) {
    int number = 0;
    while (number < k->site.count && k->call.site.at[number] != site) {
        number++;
    }
    if (number == k->site.count) {
        VEC_PUSH_FROM(k->arena, &k->site, true, 1);
        VEC_PUSH_FROM(k->arena, &k->call.site, site, 1);
    }
    return expr_keep(k, (Expr){.kind = EXPR_KEY,
                               .elem = TY_TUPLE,
                               .site = number,
                               .nin = nin,
                               .in = (const Expr **)(uintptr_t)in,
                               .cost = 40});
}

const Expr *expr_draw(Kernel *k, Dist dist, Elem elem, const Expr *key, const Index *index) {
    return expr_keep(k, (Expr){.kind = EXPR_DRAW,
                               .elem = elem,
                               .dist = dist,
                               .nin = 1,
                               .in = &key,
                               .index = index,
                               .cost = dist == DIST_NORMAL ? 60 : 25});
}

const Expr *expr_fold(Kernel *k, OpCode op, Elem elem, const Expr *body, AxisSet axes) {
    return expr_keep(k, (Expr){.kind = EXPR_FOLD,
                               .op = op,
                               .elem = elem,
                               .nin = 1,
                               .in = &body,
                               .fold = axes,
                               .cost = 1000});
}

const Expr *expr_first(Kernel *k, OpCode op, const Expr *body, const Expr *best, AxisSet axes,
                       const Index *position) {
    const Expr *in[2] = {body, best};
    return expr_keep(k, (Expr){.kind = EXPR_FOLD,
                               .op = op,
                               .elem = TY_I32,
                               .nin = 2,
                               .in = in,
                               .fold = axes,
                               .index = position,
                               .cost = 1000});
}

void expr_name(const Expr *e, const char *name) {
    if (e->name == NULL && name != NULL) {
        ((Expr *)(uintptr_t)e)->name = name; /* a label: no part of the value or its hash */
    }
}

/* --- statements ------------------------------------------------------------------------------- */

static Stmt *stmt_new(Kernel *k, StmtList *list, StmtKind kind) {
    Stmt *s = ARENA_NEW(k->arena, Stmt);
    s->kind = kind;
    s->add = OP_CONST;
    s->lanes = 1;
    VEC_PUSH_FROM(k->arena, list, s, 2);
    return s;
}

Stmt *stmt_for(Kernel *k, StmtList *list, int axis) {
    Stmt *s = stmt_new(k, list, STMT_FOR);
    s->axis = axis;
    return s;
}

int stmt_team(const Kernel *k, const Stmt *s) {
    int64_t iterations = 1;
    for (int n = 0; n < s->parallel; n++) {
        iterations *= k->axis[s->axis].extent;
        s = n + 1 < s->parallel ? s->body.at[0] : s;
        if (iterations >= k->threads) {
            return k->threads;
        }
    }
    return iterations > 1 ? (int)iterations : 1;
}

Stmt *stmt_let(Kernel *k, StmtList *list, const Expr *e, const Expr *as) {
    Stmt *s = stmt_new(k, list, STMT_LET);
    s->expr = e;
    s->as = as;
    return s;
}

Stmt *stmt_store(Kernel *k, StmtList *list, const Arg *arg, const Index *index, const Expr *e) {
    Stmt *s = stmt_new(k, list, STMT_STORE);
    s->arg = arg;
    s->index = index;
    s->expr = e;
    return s;
}

Stmt *stmt_fold(Kernel *k, StmtList *list, int axis) {
    Stmt *s = stmt_new(k, list, STMT_FOLD);
    VEC_PUSH(k->arena, &s->axes, axis);
    return s;
}

Stmt *stmt_tile(Kernel *k, StmtList *list) {
    Stmt *s = stmt_new(k, list, STMT_TILE);
    s->tile = ARENA_NEW(k->arena, Tile);
    return s;
}

Stmt *stmt_order(Kernel *k, StmtList *list) {
    Stmt *s = stmt_new(k, list, STMT_ORDER);
    s->order = ARENA_NEW(k->arena, Ordering);
    return s;
}

int order_bits(Elem elem) {
    return elem_bytes(elem) == 8 ? 64 : 32;
}

int64_t ordering_work(const Kernel *k, const Ordering *order) {
    int bits = order_bits(order->x->elem);
    switch (order->way) {
    case ORDER_LINES: return md_sort_line_bytes(order->n, bits);
    case ORDER_LONG: return md_sort_long_bytes(order->n, bits, order->team ? k->threads : 1);
    case ORDER_FIRST: return md_sort_first_bytes(order->n, order->most, bits);
    }
    BUG("an order of no way");
}

const Ordering *kernel_order(const Kernel *k) {
    for (int i = 0; i < k->body.count; i++) {
        if (k->body.at[i]->kind == STMT_ORDER) {
            return k->body.at[i]->order;
        }
    }
    return NULL;
}

static Tile *list_tile(const StmtList *list) {
    for (int i = 0; i < list->count; i++) {
        Tile *tile =
            list->at[i]->kind == STMT_TILE ? list->at[i]->tile : list_tile(&list->at[i]->body);
        if (tile) {
            return tile;
        }
    }
    return NULL;
}

static bool holds(const StmtList *list, StmtKind kind) {
    bool found = false;
    for (int i = 0; i < list->count; i++) {
        found = found || list->at[i]->kind == kind;
    }
    return found;
}

bool stmt_is_shared(const Stmt *s) {
    bool folds = holds(&s->body, STMT_FOLD), loops = holds(&s->body, STMT_FOR);
    return s->kind == STMT_FOR ? folds || !loops : s->kind == STMT_FOLD && !folds && !loops;
}

/* Positions of extremes are searched for one by one; what is added in place has one owner. */
static bool is_alone(const Stmt *s) {
    bool search = s->kind == STMT_FOLD && s->fold.at[0]->nin == 2;
    bool adds = s->kind == STMT_STORE && s->add != OP_CONST;
    return search || adds || s->held || s->parallel > 0 || s->kind == STMT_TILE ||
           s->kind == STMT_ORDER;
}

int64_t list_shared_extent(const Kernel *k, const StmtList *list) {
    int64_t longest = 1;
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        int64_t inner = list_shared_extent(k, &s->body);
        if (is_alone(s) || inner == 0) {
            return 0;
        }
        int axis = s->kind == STMT_FOLD ? s->axes.at[s->axes.count - 1] : s->axis;
        bool shared = stmt_is_shared(s);
        int64_t extent = shared ? k->axis[axis].extent : inner;
        longest = extent > longest ? extent : longest;
    }
    return longest;
}

const Tile *kernel_tile(const Kernel *k) {
    return list_tile(&k->body);
}

Tile *kernel_own_tile(Kernel *k) {
    return list_tile(&k->body);
}

static int parallel_loops(const StmtList *list) {
    int n = 0;
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        n += (s->kind == STMT_FOR && s->parallel > 0) + parallel_loops(&s->body);
        n += s->tile != NULL ? parallel_loops(&s->tile->body) : 0;
    }
    return n;
}

int kernel_parallel_loops(const Kernel *k) {
    return parallel_loops(&k->body);
}

bool kernel_has_team(const Kernel *k) {
    const Tile *tile = kernel_tile(k);
    const Ordering *order = kernel_order(k);
    return parallel_loops(&k->body) > 0 || (tile != NULL && tile->team) ||
           (order != NULL && order->team);
}

const TileMachine tile_machine[TILE_MACHINES] = {
    {64, true, "MD_VBYTES == 64"},
    {32, false, "MD_VBYTES == 32 && !MD_TILE_MANY"},
    {16, true, "MD_VBYTES == 16 && MD_TILE_MANY"},
    {16, false, "MD_VBYTES == 16 && !MD_TILE_MANY"},
};
