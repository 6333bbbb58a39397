/* fuse: which nodes of a region get storage, and which of them one kernel computes.
 *
 * Technique: atoms are the nodes that are computed once (folds, products, what must be in memory,
 * maps too dear to compute again for each user); everything else is written out inside the
 * expressions of its users. Each atom starts as a unit of its own; two units merge where one reads
 * the other or both read the same tensor, they have the same rows, every value of one that the
 * other uses is at the same row (tried out by asking for the values symbolically), and no third
 * unit stands between. Views always vanish. Needs a region without marks; gives the Fusion of
 * fuse.h; changes no values. */
#include "passes/fuse.h"

#include "passes/lower_value.h"
#include "passes/view.h"

#include <string.h>

enum {
    CHEAP = 40,        /* what may be computed again for each user (an erf and its neighbours) */
    CHEAP_LOADS = 2,   /* while it reads no more than this many tensors */
    MOST_ATOMS = 24,   /* of one kernel */
    FEW_ROWS = 8,      /* rows of fewer and */
    LONG_ROW = 8192,   /* longer rows than this are no rows for a kernel of rows */
    FULL_COUNT = 16384 /* sums of at least so many elements are split into chunks */
};

typedef struct {
    Arena *arena;
    Fusion *f;
    int words; /* of a set of nodes */
    VEC(Unit *) unit;
} Fuse;

static NodeInfo *info_of(Fuse *s, const Node *node) {
    return &s->f->info[node->id];
}

static bool set_has(const uint64_t *set, uint32_t id) {
    return set[id / 64] >> (id % 64) & 1;
}
static void set_add(uint64_t *set, uint32_t id) {
    set[id / 64] |= (uint64_t)1 << (id % 64);
}

/* --- atoms ------------------------------------------------------------------------------------ */

static bool is_leaf(const Node *node) {
    return node->op == OP_SLOT || node->op == OP_TABLE || node->op == OP_BODY_PARAM ||
           node->op == OP_PICK;
}

static bool is_call(const Node *node) {
    return (node->op == OP_CONTRACT && !fold_is_tiny(node)) || node->op == OP_CUMSUM ||
           node->op == OP_CONCAT || node->op == OP_LOOP ||
           (node->op == OP_SCATTER_ADD && !scatter_is_select(node));
}

/* Memory must hold what a view is taken of: the nearest value behind the views that it holds
 * anyway, or the last. */
static void require_base(Fuse *s, const Node *node) {
    while (op_info[node->op].cls == CLASS_VIEW && !info_of(s, node)->sink) {
        node = node->in[0];
    }
    if (!is_leaf(node) && node->op != OP_CONST) {
        info_of(s, node)->sink = true;
    }
}

static void mark_live(Fuse *s) {
    const Region *region = s->f->region;
    for (int i = 0; i < region->out.count; i++) {
        NodeInfo *n = info_of(s, region->out.at[i]);
        n->live = true;
        n->sink = n->sink || region->out.at[i]->op != OP_PICK;
    }
    for (int i = region->node.count - 1; i >= 0; i--) {
        const Node *node = region->node.at[i];
        for (int k = 0; s->f->info[i].live && k < node->nin; k++) {
            info_of(s, node->in[k])->live = true;
        }
    }
}

/* Values with a place of their own: starts of carries, parts of concatenations. */
static void mark_places(Fuse *s) {
    const Region *region = s->f->region;
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        int n = node->op == OP_CONCAT ? node->nin : node->op == OP_LOOP ? node->attr->ncarry : 0;
        for (int k = 0; s->f->info[i].live && k < n; k++) {
            const Node *in = node->in[k];
            const Node *base = node->op == OP_LOOP ? in : view_base(in);
            bool copied = is_leaf(base) || (node->op == OP_CONCAT && base->op == OP_CONST);
            info_of(s, in)->sink = info_of(s, in)->sink || !copied;
        }
    }
}

static void mark_required(Fuse *s) {
    const Region *region = s->f->region;
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        if (!s->f->info[i].live) {
            continue;
        }
        if (node->op == OP_CONTRACT && is_call(node)) {
            require_base(s, node->in[0]);
            require_base(s, node->in[1]);
        } else if (node->op == OP_LOOP) {
            for (int k = node->attr->ncarry; k < node->nin; k++) {
                require_base(s, node->in[k]);
            }
        }
    }
}

/* A train ends without any change when its loss or gradient norm is not finite, so what that check
 * waits for and what it lets through are never one kernel. */
static void mark_check(Fuse *s, const EntryOut *out) {
    const Region *region = s->f->region;
    for (int i = 0; out && i < region->out.count; i++) {
        NodeInfo *n = info_of(s, region->out.at[i]);
        n->early = n->early || out[i].role == OUT_LOSS || out[i].role == OUT_GRAD_NORM;
        n->late = n->late || out[i].role == OUT_WRITE;
        n->forward = n->forward || out[i].role == OUT_LOSS;
    }
    for (int i = region->node.count - 1; i >= 0; i--) {
        const Node *node = region->node.at[i];
        for (int k = 0; k < node->nin; k++) {
            NodeInfo *in = info_of(s, node->in[k]);
            in->early = in->early || s->f->info[i].early;
            in->forward = in->forward || s->f->info[i].forward;
        }
    }
}

/* How often the users read each element, about: a broadcast or a window makes it more than once. */
static void count_uses(Fuse *s) {
    const Region *region = s->f->region;
    for (int i = region->node.count - 1; i >= 0; i--) {
        const Node *node = region->node.at[i];
        const NodeInfo *n = &s->f->info[i];
        bool view = op_info[node->op].cls == CLASS_VIEW;
        for (int k = 0; n->live && k < node->nin; k++) {
            NodeInfo *in = info_of(s, node->in[k]);
            bool again = type_count(node->type) > type_count(node->in[k]->type);
            in->uses += (view && !n->sink ? n->uses : 1) * (again ? 2 : 1);
        }
    }
}

static void sum_costs(Fuse *s, const Node *node, NodeInfo *n) {
    int times = 1;
    n->made = true;
    if (fold_is_tiny(node)) {
        times = (int)fold_count(node);
    } else if (node->op == OP_OVERLAP_ADD) {
        times = 4 * (int)node->attr->taps;
    }
    int own = op_info[node->op].cls == CLASS_MAP ? elem_cost(node->op) : 1;
    if (node->op == OP_RANDOM) {
        own = node->attr->dist == DIST_NORMAL ? 60 : 25;
    } else if (op_info[node->op].cls == CLASS_VIEW || node->op == OP_CONST) {
        own = 0;
    }
    for (int k = 0; k < node->nin; k++) {
        const NodeInfo *in = info_of(s, node->in[k]);
        int64_t count = type_count(node->in[k]->type);
        bool scalar = count == 1;
        own += scalar ? 0 : in->cost;
        /* What is read again and again for a broadcast is not traffic. */
        n->loads += count * 4 <= type_count(node->type) ? 0 : in->loads;
        n->made = n->made && (in->made || scalar);
    }
    n->cost = own < 1 << 16 ? own * times : 1 << 16;
}

static void choose_atoms(Fuse *s) {
    const Region *region = s->f->region;
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        NodeInfo *n = &s->f->info[i];
        n->leaf = is_leaf(node);
        if (!n->live) {
            continue;
        }
        if (n->leaf && !n->sink) {
            n->loads = type_count(node->type) > 1;
            continue;
        }
        sum_costs(s, node, n);
        bool map = op_info[node->op].cls != CLASS_VIEW && node->op != OP_CONST;
        bool dear = n->cost > CHEAP || n->loads > CHEAP_LOADS;
        n->atom = n->sink || fold_is_loop(node) || is_call(node) ||
                  (map && !n->made && n->uses > 1 && dear);
        if (n->atom) {
            n->again = view_base(node)->op == OP_CONST;
            n->cost = 0;
            n->loads = !n->again && type_count(node->type) > 1;
            n->made = n->again;
        }
    }
}

/* --- units ------------------------------------------------------------------------------------ */

static bool folds_trailing(const Node *node) {
    bool folded = false;
    Type type = node->in[0]->type;
    for (int i = 0; i < type.rank; i++) {
        bool axis = folded_axes(node) >> i & 1;
        if (type.dim[i] != 1 && folded && !axis) {
            return false;
        }
        folded = folded || (axis && type.dim[i] != 1);
    }
    return true;
}

static UnitKind unit_kind(const Node *node) {
    switch (op_info[node->op].cls) {
    case CLASS_LOOP: return UNIT_LOOP;
    case CLASS_PLACE: return UNIT_CONCAT;
    case CLASS_CALL:
        if (node->op == OP_GATHER || !is_call(node)) {
            return UNIT_NEST;
        }
        return node->op == OP_CONTRACT ? UNIT_CONTRACT : UNIT_SCATTER;
    case CLASS_FOLD:
        if (node->op == OP_CUMSUM) {
            return UNIT_SCAN;
        }
        break;
    default: return UNIT_NEST;
    }
    if (!fold_is_loop(node) || node->op == OP_ARGMAX || node->op == OP_ARGMIN) {
        return UNIT_NEST;
    }
    if (!folds_trailing(node)) {
        return UNIT_COLUMN;
    }
    return type_count(node->type) == 1 && fold_count(node) >= FULL_COUNT ? UNIT_FULL : UNIT_NEST;
}

/* Adds the atoms and leaves that the expression of `node` reads. */
static void collect_deps(Fuse *s, const Node *node, uint64_t *deps, uint64_t *seen) {
    for (int k = 0; k < node->nin; k++) {
        const Node *in = node->in[k];
        const NodeInfo *n = info_of(s, in);
        if (set_has(seen, in->id)) {
            continue;
        }
        set_add(seen, in->id);
        if ((n->atom && !n->again) || n->leaf) {
            set_add(deps, in->id);
            if (in->op == OP_PICK) { /* the loop makes it */
                set_add(deps, in->in[0]->id);
            }
        } else {
            collect_deps(s, in, deps, seen);
        }
    }
}

static void make_units(Fuse *s) {
    const Region *region = s->f->region;
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        NodeInfo *n = &s->f->info[i];
        if (!n->atom) {
            continue;
        }
        Unit *u = ARENA_NEW(s->arena, Unit);
        *u = (Unit){.kind = unit_kind(node), .id = s->unit.count};
        u->deps = ARENA_ARRAY(s->arena, uint64_t, s->words);
        u->count = type_count(node->type);
        u->rows = u->kind == UNIT_NEST && fold_is_loop(node) ? u->count : 0;
        if (n->leaf) { /* a copy of what memory holds */
            set_add(u->deps, node->id);
            if (node->op == OP_PICK) {
                set_add(u->deps, node->in[0]->id);
            }
        } else {
            collect_deps(s, node, u->deps, ARENA_ARRAY(s->arena, uint64_t, s->words));
        }
        VEC_PUSH(s->arena, &u->atom, node);
        VEC_PUSH(s->arena, &s->unit, u);
        n->unit = u;
    }
}

static bool unit_reads(Fuse *s, const Unit *u, const Unit *from) {
    for (int i = 0; i < from->atom.count; i++) {
        if (set_has(u->deps, from->atom.at[i]->id)) {
            return true;
        }
    }
    (void)s;
    return false;
}

/* Both read one tensor that is not tiny. */
static bool units_share(Fuse *s, const Unit *a, const Unit *b) {
    for (int w = 0; w < s->words; w++) {
        uint64_t both = a->deps[w] & b->deps[w];
        for (int i = 0; both >> i != 0 && i < 64; i++) {
            const Node *node = both >> i & 1 ? s->f->region->node.at[64 * w + i] : NULL;
            if (node && node->op != OP_LOOP && type_count(node->type) > 1) {
                return true;
            }
        }
    }
    return false;
}

/* True when `from` is read by `to` through at least one unit other than the two. */
static bool path_between(Fuse *s, const Unit *from, const Unit *to, bool *seen) {
    for (int i = 0; i < s->unit.count; i++) {
        const Unit *u = s->unit.at[i];
        if (u->into || seen[i] || u == from || u == to || !unit_reads(s, u, from)) {
            continue;
        }
        seen[i] = true;
        if (unit_reads(s, to, u) || path_between(s, u, to, seen)) {
            return true;
        }
    }
    return false;
}

/* --- do two units have the same rows ---------------------------------------------------------- */

bool fuse_split(Type type, int64_t rows, int *leading) {
    int64_t product = 1;
    for (int i = 0; i <= type.rank; i++) {
        if (product == rows) {
            *leading = i;
            return true;
        }
        product *= i < type.rank ? type.dim[i] : 1;
    }
    return false;
}

/* Trial of a unit: values are asked for symbolically on one row axis and one axis for each length
 * of a row, and every use of one of its own atoms must be where that atom is computed. */
typedef struct {
    Fuse *fuse;
    const Unit *unit;
    int64_t rows;
    const Node *root; /* the atom that is tried */
    int row;          /* axis */
    bool fits;
    Buf **fake; /* by node id: something to load from */
} Trial;

static bool trial_at(Trial *t, Values *v, const Node *node, const Index **at) {
    int leading;
    if (!fuse_split(node->type, t->rows, &leading)) {
        return false;
    }
    IndexTable *table = &v->k->index;
    index_unflatten(table, kernel_axis_index(v->k, t->row), leading, node->type.dim, at);
    int64_t inner = type_count(node->type) / (t->rows > 0 ? t->rows : 1);
    const Index *flat = index_const(table, 0);
    for (int i = 0; inner > 1 && i < v->inner.count; i++) {
        if (v->inner.at[i].count == inner) {
            flat = inner_flat(v, &v->inner.at[i]);
        }
    }
    index_unflatten(table, flat, node->type.rank - leading, node->type.dim + leading, at + leading);
    return true;
}

static const Expr *trial_stored(void *ctx, Values *v, const Node *node, const Index *const *at) {
    Trial *t = ctx;
    const NodeInfo *n = info_of(t->fuse, node);
    if (!n->leaf && (node == t->root || !n->atom || n->again)) {
        return NULL;
    }
    if (n->unit == t->unit && node != t->root) {
        const Index *here[MD_RANK];
        bool same = trial_at(t, v, node, here);
        for (int i = 0; same && i < node->type.rank; i++) {
            same = here[i] == at[i];
        }
        t->fits = t->fits && same;
    }
    if (!t->fake[node->id]) {
        t->fake[node->id] = ARENA_NEW(v->scratch, Buf);
        t->fake[node->id]->type = node->type;
    }
    const Index *flat = index_flatten(&v->k->index, node->type.rank, node->type.dim, at);
    return expr_load(v->k, kernel_arg(v->k, t->fake[node->id], ACCESS_READ), flat, v->guard);
}

static void trial_inner(Trial *t, Values *v, int64_t count) {
    for (int i = 0; i < v->inner.count; i++) {
        if (v->inner.at[i].count == count) {
            return;
        }
    }
    (void)t;
    int axis = kernel_axis(v->k, count, "j");
    InnerSpace inner = {.count = count, .naxis = 1, .axis = {axis}, .set = (AxisSet)1 << axis};
    VEC_PUSH(v->scratch, &v->inner, inner);
}

/* True when the atoms of `u` and of what was merged into it can run row by row together. The
 * product of a CONTRACT unit counts as something that memory holds. */
static bool trial_fits(Fuse *s, const Unit *u, int64_t rows) {
    Arena scratch = {0};
    Kernel *k = kernel_new(&scratch, 1);
    Values v;
    values_open(&v, k, &scratch);
    Trial t = {.fuse = s, .unit = u, .rows = rows, .fits = true};
    t.fake = ARENA_ARRAY(&scratch, Buf *, s->f->region->node.count);
    t.row = kernel_axis(k, rows, "r");
    v.stored = trial_stored;
    v.ctx = &t;
    for (int i = 0; i < u->atom.count; i++) {
        const Node *node = u->atom.at[i];
        int64_t inner = type_count(node->type) / (rows > 0 ? rows : 1);
        if (fold_is_loop(node)) {
            trial_inner(&t, &v, fold_count(node));
        } else if (inner > 1) {
            trial_inner(&t, &v, inner);
        }
    }
    for (int i = 0; t.fits && i < u->atom.count; i++) {
        const Index *at[MD_RANK];
        t.root = u->atom.at[i];
        t.fits = trial_at(&t, &v, t.root, at);
        if (t.fits && !is_call(t.root)) {
            value_at(&v, t.root, at);
        }
    }
    bool fits = t.fits;
    arena_free(&scratch);
    return fits;
}

/* The rows of both together, or 0. */
static int64_t common_rows(const Unit *a, const Unit *b) {
    if (a->rows != 0 && b->rows != 0) {
        return a->rows == b->rows ? a->rows : -1;
    }
    if (a->rows == 0 && b->rows == 0) {
        return a->count == b->count ? 0 : -1;
    }
    return a->rows != 0 ? a->rows : b->rows;
}

/* Every atom has the rows, and rows are worth it. */
static bool rows_fit(const Unit *u, int64_t rows) {
    for (int i = 0; i < u->atom.count; i++) {
        int leading;
        Type type = u->atom.at[i]->type;
        if (!fuse_split(type, rows, &leading)) {
            return false;
        }
        int64_t inner = type_count(type) / (rows > 0 ? rows : 1);
        if (rows < FEW_ROWS && inner > LONG_ROW) {
            return false;
        }
    }
    return true;
}

static bool check_between(Fuse *s, const Unit *a, const Unit *b) {
    bool early = false, late = false;
    for (int i = 0; i < a->atom.count + b->atom.count; i++) {
        const Node *atom = i < a->atom.count ? a->atom.at[i] : b->atom.at[i - a->atom.count];
        early = early || info_of(s, atom)->early;
        late = late || info_of(s, atom)->late;
    }
    return early && late;
}

/* One row is worth a kernel of rows only when all of it has one length. */
static bool single_row_fits(const Unit *a, const Unit *b) {
    int64_t length = 0;
    for (int i = 0; i < a->atom.count + b->atom.count; i++) {
        const Node *atom = i < a->atom.count ? a->atom.at[i] : b->atom.at[i - a->atom.count];
        int64_t inner = fold_is_loop(atom) ? fold_count(atom) : type_count(atom->type);
        if (inner > 1 && length > 0 && inner != length) {
            return false;
        }
        length = inner > 1 ? inner : length;
    }
    return true;
}

static bool same_fold_space(const Unit *a, const Unit *b) {
    const Node *x = a->atom.at[0], *y = b->atom.at[0];
    return type_same_shape(x->in[0]->type, y->in[0]->type) && folded_axes(x) == folded_axes(y);
}

/* --- merging ---------------------------------------------------------------------------------- */

static void unit_absorb(Fuse *s, Unit *a, Unit *b, int64_t rows) {
    VEC(const Node *) all = {0};
    int i = 0, j = 0;
    while (i < a->atom.count || j < b->atom.count) {
        bool first =
            j == b->atom.count || (i < a->atom.count && a->atom.at[i]->id < b->atom.at[j]->id);
        const Node *next = first ? a->atom.at[i++] : b->atom.at[j++];
        VEC_PUSH(s->arena, &all, next);
    }
    a->atom.at = all.at;
    a->atom.count = all.count;
    a->atom.capacity = all.capacity;
    a->rows = rows;
    b->into = a;
    for (int w = 0; w < s->words; w++) {
        a->deps[w] |= b->deps[w];
    }
    for (int k = 0; k < b->atom.count; k++) {
        info_of(s, b->atom.at[k])->unit = a;
    }
}

/* Tries the merged atoms without keeping them. */
static bool merged_fits(Fuse *s, Unit *a, Unit *b, int64_t rows) {
    Unit both = {.kind = UNIT_NEST};
    for (int i = 0; i < a->atom.count; i++) {
        VEC_PUSH(s->arena, &both.atom, a->atom.at[i]);
    }
    for (int i = 0; i < b->atom.count; i++) {
        VEC_PUSH(s->arena, &both.atom, b->atom.at[i]);
        info_of(s, b->atom.at[i])->unit = a; /* for the trial */
    }
    both.into = NULL;
    for (int i = 0; i < both.atom.count; i++) {
        info_of(s, both.atom.at[i])->unit = &both;
    }
    bool fits = trial_fits(s, &both, rows);
    for (int i = 0; i < a->atom.count; i++) {
        info_of(s, a->atom.at[i])->unit = a;
    }
    for (int i = 0; i < b->atom.count; i++) {
        info_of(s, b->atom.at[i])->unit = b;
    }
    return fits;
}

static bool try_merge(Fuse *s, Unit *a, Unit *b) {
    bool reads = unit_reads(s, b, a);
    bool epilogue = b->kind == UNIT_NEST && reads &&
                    (a->kind == UNIT_CONTRACT || a->kind == UNIT_COLUMN || a->kind == UNIT_FULL);
    if (!epilogue && a->kind != b->kind) {
        return false;
    }
    if (a->atom.count + b->atom.count > MOST_ATOMS || check_between(s, a, b)) {
        return false;
    }
    int64_t rows = 0;
    if (a->kind == UNIT_NEST) {
        rows = common_rows(a, b);
        bool scalars = a->count == 1 && b->count == 1 && rows == 0;
        if (rows < 0 || (!reads && !scalars && !units_share(s, a, b))) {
            return false;
        }
        if (rows > 0 && (!rows_fit(a, rows) || !rows_fit(b, rows))) {
            return false;
        }
        if (rows == 1 && !single_row_fits(a, b)) {
            return false;
        }
    } else if (!epilogue && (a->kind == UNIT_COLUMN || a->kind == UNIT_FULL)) {
        if (reads || !units_share(s, a, b) || !same_fold_space(a, b)) {
            return false;
        }
    } else if (epilogue) {
        if (b->rows != 0 || a->count != b->count) {
            return false;
        }
    } else {
        return false;
    }
    bool *seen = ARENA_ARRAY(s->arena, bool, s->unit.count);
    if (path_between(s, a, b, seen)) {
        return false;
    }
    memset(seen, 0, sizeof *seen * (size_t)s->unit.count);
    if (path_between(s, b, a, seen)) {
        return false;
    }
    if ((a->kind == UNIT_NEST || epilogue) && !merged_fits(s, a, b, rows > 0 ? rows : a->count)) {
        return false;
    }
    unit_absorb(s, a, b, rows);
    return true;
}

static void merge_units(Fuse *s) {
    for (bool again = true; again;) {
        again = false;
        for (int j = 1; j < s->unit.count; j++) {
            for (int i = j - 1; i >= 0 && !s->unit.at[j]->into; i--) {
                Unit *a = s->unit.at[i], *b = s->unit.at[j];
                if (!a->into && try_merge(s, a, b)) {
                    again = true;
                }
            }
        }
    }
}

/* --- the result ------------------------------------------------------------------------------- */

/* What a loop only carries on is copied into the carry, what is only put together is written into
 * its part: neither is read from a place of its own. */
static bool reads_value(const Unit *u, const Node *node) {
    const Node *main = u->atom.at[0];
    if (u->kind == UNIT_CONCAT) {
        for (int i = 0; i < main->nin; i++) {
            if (main->in[i] == node) {
                return false;
            }
        }
    }
    if (u->kind != UNIT_LOOP) {
        return true;
    }
    for (int i = main->attr->ncarry; i < main->nin; i++) {
        if (main->in[i] == node || view_base(main->in[i]) == node) {
            return true;
        }
    }
    return false;
}

static void decide_stored(Fuse *s) {
    for (int i = 0; i < s->unit.count; i++) {
        const Unit *u = s->unit.at[i];
        for (int k = 0; !u->into && k < s->f->region->node.count; k++) {
            NodeInfo *n = &s->f->info[k];
            if (n->atom && n->unit != u && set_has(u->deps, (uint32_t)k)) {
                n->stored = true;
                n->read = n->read || reads_value(u, s->f->region->node.at[k]);
            }
        }
    }
    for (int k = 0; k < s->f->region->node.count; k++) {
        s->f->info[k].stored = s->f->info[k].stored || (s->f->info[k].atom && s->f->info[k].sink);
    }
}

/* Puts units behind what they read; among those that are ready, the one with the earliest atom. */
static void order_units(Fuse *s) {
    bool *done = ARENA_ARRAY(s->arena, bool, s->unit.count);
    for (int left = 0; left < s->unit.count; left++) {
        Unit *next = NULL;
        for (int i = 0; i < s->unit.count; i++) {
            Unit *u = s->unit.at[i];
            bool ready = !u->into && !done[i];
            for (int j = 0; ready && j < s->unit.count; j++) {
                const Unit *from = s->unit.at[j];
                ready = j == i || done[j] || from->into || !unit_reads(s, u, from);
            }
            if (ready && (!next || u->atom.at[0]->id < next->atom.at[0]->id)) {
                next = u;
            }
        }
        if (next) {
            done[next->id] = true;
            VEC_PUSH(s->arena, &s->f->unit, next);
        }
    }
    for (int i = 0; i < s->unit.count; i++) {
        if (!done[i] && !s->unit.at[i]->into) {
            BUG("kernels depend on each other in a circle");
        }
    }
}

Fusion *pass_fuse(Arena *arena, const Region *region, const EntryOut *out) {
    Fuse s = {.arena = arena};
    s.f = ARENA_NEW(arena, Fusion);
    s.f->region = region;
    s.f->info = ARENA_ARRAY(arena, NodeInfo, region->node.count + 1);
    s.words = region->node.count / 64 + 1;
    mark_live(&s);
    mark_places(&s);
    mark_required(&s);
    mark_check(&s, out);
    count_uses(&s);
    choose_atoms(&s);
    make_units(&s);
    merge_units(&s);
    decide_stored(&s);
    order_units(&s);
    return s.f;
}
