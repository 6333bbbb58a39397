/* check_kernel: which elements a kernel reads before it writes which, read off its statements.
 *
 * Sharing. `out` may lie in the bytes of `in` when no load of `in` finds what a store of `out` has
 * left. Every load and every store is a site: a place in memory, the loops around it, and its turn
 * in the text. For each load L and store S it is enough that
 *   - they never meet at one place, or
 *   - wherever they meet, every loop around both stands at the same iteration, and L stands before
 *     S in the text. Then the order of iterations is of no concern, so parallel and vector loops
 *     are covered too.
 * Which loops stand at the same iteration is solved from the equation place(L) = place(S): an atom
 * with the same multiple on both sides differs by at most its range; taken from the largest
 * multiple down, one that exceeds all that the rest can make up must be equal on both sides. A
 * known quotient bounds what it divides, with the remainder it fixes it, digit by digit where the
 * quotient is one of a quotient; a known axis of a loop that begins at a block fixes the block.
 * What cannot be solved is refused. So is what names the place of a loop that it does not stand in.
 *
 * Products are calls: their sites are those of the table call_operand. So are orders: places are
 * written in any order, and lines read until the last one is.
 *
 * Needs a finished kernel, changes nothing. Shares nothing with lowering but the text. */
#include "passes/check_kernel.h"

#include <string.h>

typedef VEC(const Stmt *) Loops;

typedef struct {
    const Arg *arg;
    const Index *index; /* NULL: any place of the argument */
    bool store, guarded;
    int turn;    /* in the text; loads of a statement before its store */
    Loops loop;  /* around it, outermost first: FOR, FOLD, TILE */
    bool summed; /* the operand that a product begins as, or the result of such a product */
    int64_t run; /* so many elements from the index on, in any order; 0: one */
} Site;

struct KernelSites {
    Arena *arena;
    const Kernel *k;
    VEC(Site) site;
    const char *fault;
};

/* When a product touches its operands, for all blocks and threads. */
typedef enum {
    CALL_FIRST, /* once, before anything of the product is written */
    CALL_EARLY, /* stored from the first moment on, unfinished */
    CALL_LATE,  /* loaded until the last block is finished */
} CallTime;

/* md_tile_run and md_blas_run alike: A and B are read block by block, in an order that depends on
 * threads and cache sizes; C is written in several goes, each time in part; what C begins as is
 * copied there, or is there already, before. The workspace belongs to the product alone. */
typedef struct {
    size_t operand; /* const Arg * in Tile */
    size_t at;      /* const Index * in Tile: offset of its first element; 0: none */
    bool store;
    CallTime time;
} CallOperand;

static const CallOperand call_operand[] = {
    {offsetof(Tile, add), offsetof(Tile, at_c), false, CALL_FIRST},
    {offsetof(Tile, c), offsetof(Tile, at_c), true, CALL_EARLY},
    {offsetof(Tile, work), 0, true, CALL_EARLY},
    {offsetof(Tile, a), offsetof(Tile, at_a), false, CALL_LATE},
    {offsetof(Tile, b), offsetof(Tile, at_b), false, CALL_LATE},
};

static const Arg *operand_arg(const Tile *tile, const CallOperand *o) {
    return *(const Arg *const *)(const void *)((const char *)tile + o->operand);
}

static const Index *operand_at(const Tile *tile, const CallOperand *o) {
    return o->at == 0 ? NULL : *(const Index *const *)(const void *)((const char *)tile + o->at);
}

/* ---- sites ---------------------------------------------------------------------------------- */

typedef struct {
    KernelSites *to;
    bool *bound; /* by Expr.id: computed already, where a LET or a FOLD stands */
    Loops loop;
    AxisSet open; /* axes of these */
    int turn;
} Walk;

static void add_site(Walk *w, Site site) {
    Arena *arena = w->to->arena;
    site.turn = w->turn;
    for (int i = 0; i < w->loop.count; i++) {
        VEC_PUSH(arena, &site.loop, w->loop.at[i]);
    }
    VEC_PUSH(arena, &w->to->site, site);
}

static void name_places(Walk *w, const Index *index) {
    if (index != NULL && (index->axes & ~w->open) != 0) {
        w->to->fault = "it names the place of a loop around something else";
    }
}

static void walk_expr(Walk *w, const Expr *e) {
    if (w->bound[e->id]) {
        return;
    }
    name_places(w, e->index);
    for (int i = 0; i < e->nkid; i++) {
        walk_expr(w, e->kid[i]);
    }
    if (e->kind == EXPR_LOAD) {
        add_site(w, (Site){.arg = e->arg, .index = e->index, .guarded = e->nin == 2});
    }
}

/* What is bound is not computed again until its block ends. */
static void bind(Walk *w, const Expr *e) {
    if (w->bound[e->id]) {
        w->to->fault = "it binds a value twice";
    }
    w->bound[e->id] = true;
}

static void walk_index(Walk *w, const Index *index) {
    name_places(w, index);
    for (int i = 0; index != NULL && i < index->nterm; i++) {
        const Atom *atom = index->term[i].atom;
        if (atom->kind == ATOM_VALUE) {
            walk_expr(w, atom->value);
        }
        walk_index(w, atom->of);
    }
}

static void walk_list(Walk *w, const StmtList *list);
static void unbind(Walk *w, const StmtList *list);

static void walk_product(Walk *w, const Stmt *s) {
    const Tile *tile = s->tile;
    const AxisSet open = w->open;
    for (size_t i = 0; i < sizeof call_operand / sizeof *call_operand; i++) {
        walk_index(w, operand_at(tile, &call_operand[i]));
    }
    VEC_PUSH(w->to->arena, &w->loop, s);
    w->open = ~(AxisSet)0; /* its blocks have axes of their own */
    for (int time = CALL_FIRST; time <= CALL_LATE; time++) {
        w->turn++;
        if (time == CALL_FIRST) {
            walk_list(w, &tile->copy);
            unbind(w, &tile->copy);
        } else if (time == CALL_LATE) {
            walk_list(w, &tile->body);
            w->turn++;
        }
        for (size_t i = 0; i < sizeof call_operand / sizeof *call_operand; i++) {
            const CallOperand *o = &call_operand[i];
            const Arg *arg = operand_arg(tile, o);
            if (arg != NULL && o->time == (CallTime)time) {
                bool summed = tile->add != NULL && (arg == tile->add || arg == tile->c);
                add_site(w, (Site){.arg = arg,
                                   .store = o->store,
                                   .summed = summed && o->time != CALL_LATE});
            }
        }
    }
    w->open = open;
    w->loop.count--;
}

static void walk_order(Walk *w, const Stmt *s) {
    const Ordering *o = s->order;
    int64_t lines = o->way == ORDER_LONG || !o->team ? 1 : w->to->k->threads;
    int64_t need = ordering_work(w->to->k, o), word = (int64_t)elem_bytes(TY_I64);
    lines = lines < o->rows ? lines : o->rows;
    if (w->loop.count > 0) {
        w->to->fault = "it orders lines in a loop";
    }
    if (o->work->elem != TY_I64 || o->out->elem != TY_I32 || o->most > o->n || o->n > INT32_MAX ||
        (o->work->thread && o->work->part * word < need)) {
        w->to->fault = "it orders lines otherwise than its parts allow";
    }
    walk_index(w, o->at_x);
    walk_index(w, o->at_out);
    Site out = {.arg = o->out, .index = o->at_out, .run = o->rows * o->most, .store = true};
    Site x = {.arg = o->x, .index = o->at_x, .run = o->rows * o->n};
    static const Index start = {0};
    Site room = {.arg = o->work, .index = &start, .run = lines * (need / word), .store = true};
    add_site(w, out);
    add_site(w, room);
    w->turn++;
    add_site(w, x);
}

/* Names end with the block that they stand in. */
static void unbind(Walk *w, const StmtList *list) {
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        if (s->kind == STMT_LET) {
            w->bound[s->expr->id] = false;
        }
        for (int k = 0; s->kind == STMT_FOLD && k < s->fold.count; k++) {
            w->bound[s->fold.at[k]->id] = false;
        }
    }
}

static void walk_fold(Walk *w, const Stmt *s) {
    const AxisSet open = w->open;
    for (int i = 0; i < s->axes.count; i++) {
        w->open |= (AxisSet)1 << s->axes.at[i];
    }
    VEC_PUSH(w->to->arena, &w->loop, s);
    for (int i = 0; i < s->body.count; i++) {
        StmtList one = {.at = &s->body.at[i], .count = 1};
        walk_list(w, &one);
    }
    w->turn++;
    for (int i = 0; i < s->fold.count; i++) {
        for (int k = 0; k < s->fold.at[i]->nkid && !s->parts; k++) {
            walk_expr(w, s->fold.at[i]->kid[k]);
        }
        if (s->parts && !w->bound[s->fold.at[i]->id]) {
            w->to->fault = "it adds parts of a sum that nothing has made";
        }
    }
    unbind(w, &s->body);
    w->open = open;
    w->loop.count--;
    for (int i = 0; i < s->fold.count; i++) {
        bind(w, s->fold.at[i]);
    }
}

static void walk_list(Walk *w, const StmtList *list) {
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        const AxisSet open = w->open;
        w->turn++;
        walk_index(w, s->begin);
        walk_index(w, s->until);
        switch (s->kind) {
        case STMT_FOR:
            VEC_PUSH(w->to->arena, &w->loop, s);
            w->open |= (AxisSet)1 << s->axis;
            for (int k = 0; k < s->ahead.count; k++) {
                walk_index(w, s->ahead.at[k].at);
            }
            walk_list(w, &s->body);
            unbind(w, &s->body);
            w->open = open;
            w->loop.count--;
            break;
        case STMT_LET:
            walk_expr(w, s->as != NULL ? s->as : s->expr);
            bind(w, s->expr);
            break;
        case STMT_STORE:
            walk_index(w, s->index);
            walk_expr(w, s->expr);
            w->turn++;
            add_site(w, (Site){.arg = s->arg, .index = s->index, .store = true});
            break;
        case STMT_FOLD: walk_fold(w, s); break;
        case STMT_TILE:
            walk_product(w, s);
            unbind(w, &s->tile->body);
            break;
        case STMT_ORDER: walk_order(w, s); break;
        }
    }
}

KernelSites *kernel_sites(Arena *arena, const Kernel *k) {
    KernelSites *sites = ARENA_NEW(arena, KernelSites);
    sites->arena = arena;
    sites->k = k;
    Walk w = {.to = sites, .bound = ARENA_ARRAY(arena, bool, k->expr.count + 1)};
    walk_list(&w, &k->body);
    return sites;
}

/* ---- one place, two sites ------------------------------------------------------------------- */

typedef struct {
    const Kernel *k;
    const Site *load, *store;
    bool *known; /* by Atom.id: the same on both sides */
    AxisSet axes;
    bool changed, apart;
} Meeting;

typedef struct {
    const Atom *atom;
    int64_t mul, width; /* both not negative */
} Unknown;

static int64_t magnitude(int64_t x) {
    return x < 0 ? -x : x;
}

static void know(Meeting *m, const Atom *atom) {
    if (!m->known[atom->id]) {
        m->known[atom->id] = m->changed = true;
        m->axes |= atom->kind == ATOM_AXIS ? (AxisSet)1 << atom->number : 0;
    }
}

static int64_t multiple_of(const Index *index, const Atom *atom) {
    for (int i = 0; i < index->nterm; i++) {
        if (index->term[i].atom == atom) {
            return index->term[i].mul;
        }
    }
    return 0;
}

/* sum + times * n; false where that is no int64_t. */
static bool add_to(int64_t *sum, int64_t times, int64_t n) {
    int64_t product;
    return !__builtin_mul_overflow(times, n, &product) &&
           !__builtin_add_overflow(*sum, product, sum);
}

/* Adds mul * atom, a term of one side alone, to the range of what is left over. */
static bool spread(int64_t mul, const Atom *atom, int64_t *lo, int64_t *hi) {
    bool up = mul > 0;
    return add_to(lo, mul, up ? atom->least : atom->most) &&
           add_to(hi, mul, up ? atom->most : atom->least);
}

/* a, seen from one site, and b, seen from the other, differ by at most `slack`. Ranges beyond 64
 * bits, of places that a guard keeps out, tell nothing. */
static void solve(Meeting *m, const Index *a, const Index *b, int64_t slack) {
    enum { MOST = 128 };
    Unknown unknown[MOST];
    int n = 0;
    int64_t lo = a->base - b->base - slack, hi = a->base - b->base + slack, width = 0;
    for (int i = 0; i < a->nterm; i++) {
        const Atom *atom = a->term[i].atom;
        int64_t mul = a->term[i].mul;
        if (multiple_of(b, atom) != mul) {
            if (!spread(mul, atom, &lo, &hi)) {
                return;
            }
            continue;
        }
        /* The loops around the step stand where they stand. */
        if (atom->kind == ATOM_LOOP || m->known[atom->id]) {
            continue;
        }
        if (n == MOST) {
            return;
        }
        Unknown next = {atom, magnitude(mul), atom->most - atom->least};
        int at = n++;
        for (; at > 0 && unknown[at - 1].mul > next.mul; at--) {
            unknown[at] = unknown[at - 1];
        }
        unknown[at] = next;
        if (!add_to(&width, next.mul, next.width)) {
            return;
        }
    }
    for (int i = 0; i < b->nterm; i++) {
        if (multiple_of(a, b->term[i].atom) != b->term[i].mul &&
            !spread(-b->term[i].mul, b->term[i].atom, &lo, &hi)) {
            return;
        }
    }
    m->apart = m->apart || lo > width || hi < -width;
    int64_t rest = magnitude(lo) > magnitude(hi) ? magnitude(lo) : magnitude(hi);
    if (!add_to(&rest, 1, width)) {
        return;
    }
    while (n-- > 0) {
        rest -= unknown[n].mul * unknown[n].width;
        if (unknown[n].mul <= rest) {
            return;
        }
        know(m, unknown[n].atom);
    }
}

/* The loop around a site that binds an axis. */
static const Stmt *binder(const Site *site, int axis) {
    for (int i = 0; i < site->loop.count; i++) {
        const Stmt *s = site->loop.at[i];
        if (s->kind == STMT_FOR ? s->axis == axis : s->kind == STMT_FOLD && s->axes.at[0] == axis) {
            return s;
        }
    }
    return NULL;
}

/* An axis runs from `begin` over `span` places. */
static void solve_blocks(Meeting *m) {
    for (int axis = 0; axis < m->k->naxis; axis++) {
        const Stmt *x = binder(m->load, axis), *y = binder(m->store, axis);
        if ((m->axes >> axis & 1) && x != NULL && y != NULL && x->begin != NULL &&
            x->begin == y->begin && x->span == y->span && x->span > 0) {
            solve(m, x->begin, y->begin, x->span - 1);
        }
    }
}

/* Is `div` what mod->of gives divided by mod->by? A quotient of a quotient is one quotient. */
static bool is_quotient(const Atom *div, const Atom *mod) {
    const Index *of = mod->of;
    if (div->of == of && div->by == mod->by) {
        return true;
    }
    const Atom *lone =
        of->nterm == 1 && of->base == 0 && of->term[0].mul == 1 ? of->term[0].atom : NULL;
    return lone != NULL && lone->kind == ATOM_DIV && div->of == lone->of &&
           div->by % lone->by == 0 && div->by / lone->by == mod->by;
}

static void solve_quotients(Meeting *m) {
    const IndexTable *t = &m->k->index;
    for (int i = 0; i < t->atom.count; i++) {
        const Atom *div = t->atom.at[i];
        if (div->kind != ATOM_DIV || !m->known[div->id]) {
            continue;
        }
        solve(m, div->of, div->of, div->by - 1);
        for (int j = 0; j < t->atom.count; j++) {
            const Atom *mod = t->atom.at[j];
            if (mod->kind == ATOM_MOD && m->known[mod->id] && is_quotient(div, mod)) {
                solve(m, mod->of, mod->of, 0);
            }
        }
    }
}

/* The column of a product that has one only: its axis is of two, so that its places can be named.
 * `outer`: iterations of the loops around it. */
static AxisSet lone_column(const Kernel *k, const Stmt *s, int64_t outer) {
    const Tile *t = s->tile;
    bool one = s->kind == STMT_TILE &&
               t->count == outer * k->axis[t->batch].extent * k->axis[t->row].extent;
    return one ? (AxisSet)1 << t->column : 0;
}

/* The axes that a loop around both sites runs over. */
static AxisSet loop_axes(const Kernel *k, const Stmt *s) {
    AxisSet set = 0;
    if (s->kind == STMT_TILE) { /* the body runs block by block of rows and columns */
        const Tile *t = s->tile;
        set = (AxisSet)1 << t->batch | (AxisSet)1 << t->row | (AxisSet)1 << t->column;
    } else if (s->kind == STMT_FOR) {
        set = (AxisSet)1 << s->axis;
    }
    for (int i = 0; s->kind == STMT_FOLD && i < s->axes.count; i++) {
        set |= (AxisSet)1 << s->axes.at[i];
    }
    for (int axis = 0; axis < k->naxis; axis++) {
        set &= kernel_sized(k, axis) || k->axis[axis].extent > 1 ? set : ~((AxisSet)1 << axis);
    }
    return set;
}

static const char *meeting_fault(const KernelSites *sites, const Site *load, const Site *store,
                                 const char *in, const char *out) {
    const Kernel *k = sites->k;
    Meeting m = {.k = k, .load = load, .store = store};
    m.known = ARENA_ARRAY(sites->arena, bool, k->index.atom.count + 1);
    if (load->index != NULL && store->index != NULL && load->run == 0 && store->run == 0) {
        do {
            m.changed = false;
            solve(&m, load->index, store->index, 0);
            solve_blocks(&m);
            solve_quotients(&m);
        } while (m.changed && !m.apart);
    }
    if (m.apart) {
        return NULL;
    }
    AxisSet open = 0, lone = 0;
    int64_t outer = 1;
    int common = 0;
    while (common < load->loop.count && common < store->loop.count &&
           load->loop.at[common] == store->loop.at[common]) {
        const Stmt *s = load->loop.at[common++];
        /* What a product begins as it takes over as a whole. */
        bool whole = s->kind == STMT_TILE && load->summed && store->summed;
        lone |= lone_column(k, s, outer);
        open |= whole ? 0 : loop_axes(k, s) & ~m.axes & ~lone;
        outer *= s->kind == STMT_FOR ? k->axis[s->axis].extent : 1;
    }
    if (load->turn >= store->turn) {
        return str_printf(sites->arena, "%s is read after %s is written", in, out);
    }
    for (int axis = 0; axis < k->naxis; axis++) {
        if (open >> axis & 1) {
            return str_printf(sites->arena,
                              "an iteration of %s may read of %s what another one writes to %s",
                              k->axis[axis].name, in, out);
        }
    }
    return NULL;
}

/* The argument for which a call has `buf`; -1: none. */
static int arg_for(const Call *call, const Buf *buf) {
    int id = call->buf.count - 1;
    while (id >= 0 && call->buf.at[id] != buf) {
        id--;
    }
    return id;
}

const char *kernel_share_fault(const KernelSites *sites, const Call *call, const Buf *in,
                               const Buf *out) {
    int from = arg_for(call, in), to = arg_for(call, out);
    if (in->type->elem != out->type->elem) {
        return "their element types differ";
    }
    if (!call_same_offset(call, from, to)) {
        return "loops pick other places of them";
    }
    for (int i = 0; i < sites->site.count; i++) {
        const Site *store = &sites->site.at[i];
        if (store->store && store->arg->id == from) {
            return str_printf(sites->arena, "%s is written too", in->name);
        }
        for (int k = 0; store->store && store->arg->id == to && k < sites->site.count; k++) {
            const Site *load = &sites->site.at[k];
            const char *fault = !load->store && load->arg->id == from
                                    ? meeting_fault(sites, load, store, in->name, out->name)
                                    : NULL;
            if (fault != NULL) {
                return fault;
            }
        }
    }
    return NULL;
}

const char *kernel_pair_fault(const KernelSites *sites, const Call *call, const Buf *in,
                              const Buf *out) {
    int from = arg_for(call, in), to = arg_for(call, out);
    for (int i = 0; i < sites->k->pair.count; i++) {
        if (sites->k->pair.at[i].in == from && sites->k->pair.at[i].out == to) {
            return NULL;
        }
    }
    return "the kernel takes them for different places";
}

/* ---- what the step says --------------------------------------------------------------------- */

static int64_t floored(int64_t a, int64_t by) {
    return a / by - (a % by < 0);
}

enum { TERMS = 128 };

/* A sum of atoms, each once. */
typedef struct {
    int n;
    const Atom *atom[TERMS];
    int64_t mul[TERMS], base;
} Terms;

static bool add_terms(Terms *t, const Index *index, int64_t mul) {
    if (!add_to(&t->base, mul, index->base)) {
        return false;
    }
    for (int i = 0; i < index->nterm; i++) {
        int at = 0;
        while (at < t->n && t->atom[at] != index->term[i].atom) {
            at++;
        }
        if (at == TERMS) {
            return false;
        }
        t->mul[at] = at < t->n ? t->mul[at] : 0;
        if (!add_to(&t->mul[at], mul, index->term[i].mul)) {
            return false;
        }
        t->atom[at] = index->term[i].atom;
        t->n += at == t->n;
    }
    return true;
}

static void site_range(const Kernel *k, const Call *call, const Site *site, const Index *index,
                       int64_t *least, int64_t *most);

/* The values of an atom at a site: a loop may begin later and end earlier than its axis, which also
 * holds inside quotients and remainders. */
static Atom site_atom(const Kernel *k, const Call *call, const Site *site, const Atom *of) {
    Atom atom = *of;
    const Stmt *s = atom.kind == ATOM_AXIS ? binder(site, atom.number) : NULL;
    int64_t lo, hi;
    if (atom.kind == ATOM_AXIS && k->flat.known) { /* blocks cover the axis */
        atom.least = 0;
        atom.most = kernel_extent(k, call, atom.number) - 1;
    } else if (s != NULL && s->span > 0) {
        int64_t extent = k->axis[atom.number].extent;
        int64_t end = (s->begin != NULL ? s->begin->most : 0) + s->span;
        atom.least = s->begin != NULL ? s->begin->least : 0;
        atom.most = (end < extent ? end : extent) - 1;
    } else if (atom.kind == ATOM_DIV) {
        site_range(k, call, site, atom.of, &lo, &hi);
        lo = floored(lo, atom.by);
        hi = floored(hi, atom.by);
        atom.least = lo > atom.least ? lo : atom.least;
        atom.most = hi < atom.most ? hi : atom.most;
    }
    return atom;
}

/* The values of an index at a site, seen in two ways: by the range of each loop, and by how far
 * each is from where it begins, which the index may subtract. Beyond 64 bits it is anywhere. */
static void site_range(const Kernel *k, const Call *call, const Site *site, const Index *index,
                       int64_t *least, int64_t *most) {
    Terms from = {.base = index->base};
    int64_t lo = 0, hi = 0;
    bool fits = true;
    *least = *most = index->base;
    for (int i = 0; i < index->nterm; i++) {
        const Atom *of = index->term[i].atom;
        const Stmt *s = of->kind == ATOM_AXIS ? binder(site, of->number) : NULL;
        Atom atom = site_atom(k, call, site, of);
        if (!spread(index->term[i].mul, &atom, least, most)) {
            *least = INT64_MIN / 4;
            *most = INT64_MAX / 4;
            return;
        }
        Index one = {.nterm = 1, .term = &index->term[i]};
        if (s != NULL && s->span > 0 && s->begin != NULL) {
            Atom along = {.least = 0, .most = s->span - 1};
            fits = fits && spread(index->term[i].mul, &along, &lo, &hi) &&
                   add_terms(&from, s->begin, index->term[i].mul);
        } else {
            fits = fits && add_terms(&from, &one, 1);
        }
    }
    fits = fits && add_to(&lo, 1, from.base) && add_to(&hi, 1, from.base);
    for (int i = 0; fits && i < from.n; i++) {
        Atom atom = site_atom(k, call, site, from.atom[i]);
        fits = spread(from.mul[i], &atom, &lo, &hi);
    }
    *least = fits && lo > *least ? lo : *least;
    *most = fits && hi < *most ? hi : *most;
}

/* Adds where the slices of an argument begin. */
static bool offset_range(const Call *call, int arg, int64_t *least, int64_t *most) {
    bool fits = true;
    for (int i = 0; i < call->offset.count; i++) {
        const Offset *o = &call->offset.at[i];
        Atom turns = {.least = 0, .most = o->loop->trip - 1};
        fits = o->arg == arg ? fits && spread(o->mul, &turns, least, most) : fits;
    }
    return fits;
}

/* The places inside one slice: what is left of the index without the loops that pick the slice. */
static bool slice_right(const Access *access, const Call *call, const Site *site, int64_t least,
                        int64_t most) {
    const Buf *buf = access->buf;
    int64_t room = 0;
    for (int k = 0; k < ACCESS_SLICES && access->slice[k] != NULL; k++) {
        const Step *loop = access->slice[k];
        int64_t mul = call_offset(call, site->arg->id, loop);
        for (int i = 0; i < site->index->nterm; i++) {
            const Atom *atom = site->index->term[i].atom;
            mul += atom->kind == ATOM_LOOP && call->loop.at[atom->number] == loop
                       ? site->index->term[i].mul
                       : 0;
        }
        /* The loop's index may also pick a place inside: what it adds beyond the slices counts. */
        int64_t all = (loop->trip - 1) * mul, inside = all - (loop->trip - 1) * buf->stride[k];
        least += (inside < 0 ? inside : 0) - (all < 0 ? all : 0);
        most += (inside > 0 ? inside : 0) - (all > 0 ? all : 0);
        room = buf->stride[k];
    }
    return room == 0 || site->guarded || (least >= 0 && most < room);
}

static bool is_around(const Step *loop, const Step *step) {
    const Step *up = step->up;
    while (up != NULL && up != loop) {
        up = up->up;
    }
    return up != NULL;
}

/* What is passed: as many as there are formals, of their kind, each Buf once. */
static const char *call_fault(const KernelSites *sites, const Step *step) {
    const Kernel *k = sites->k;
    const Call *call = &step->call;
    if (call->buf.count < k->arg.count || call->loop.count != k->loop.count ||
        call->site.count != k->site.count) {
        return "it does not pass what its kernel takes";
    }
    if (k->flat.known ? call->size < 1 || (k->flat.exact && call->size % k->flat.span != 0)
                      : call->size != 0) {
        return "it passes a size that its kernel does not take";
    }
    for (int i = 0; i < k->arg.count; i++) {
        const Arg *arg = k->arg.at[i];
        const Buf *buf = call->buf.at[arg->id];
        if (buf->type->elem != arg->elem || (buf->kind == BUF_WORK) != arg->work) {
            return str_printf(sites->arena, "it passes %s for %s, which is of another kind",
                              buf->name, arg->name);
        }
        if (arg_for(call, buf) != arg->id) {
            return str_printf(sites->arena, "it passes %s twice", buf->name);
        }
    }
    for (int i = 0; i < k->loop.count; i++) {
        const Step *loop = call->loop.at[i];
        if (k->loop.at[i].used && (!is_around(loop, step) || loop->trip != k->loop.at[i].trip)) {
            return "it passes the index of a loop that is not around it, or of another length";
        }
    }
    for (int i = 0; i < call->offset.count; i++) {
        const Offset *o = &call->offset.at[i];
        if (o->arg < 0 || o->arg >= k->arg.count || !is_around(o->loop, step)) {
            return "it passes a slice that a loop picks which is not around it";
        }
    }
    return NULL;
}

const char *kernel_access_fault(const KernelSites *sites, const Step *step) {
    const char *fault = sites->fault != NULL ? sites->fault : call_fault(sites, step);
    if (fault != NULL) {
        return fault;
    }
    for (int i = 0; i < sites->site.count; i++) {
        const Site *site = &sites->site.at[i];
        if (site->arg->strip) {
            continue;
        }
        const Buf *buf = step->call.buf.at[site->arg->id];
        const Access *access = step_find(step, buf);
        if (access == NULL) {
            return str_printf(sites->arena, "it touches %s and does not say so", buf->name);
        }
        /* What it has written it may read back. */
        int wanted = site->store ? ACCESS_WRITE : ACCESS_READ | ACCESS_WRITE;
        if (!(access->mode & wanted)) {
            return str_printf(sites->arena, "it %s %s and does not say so",
                              site->store ? "writes" : "reads", buf->name);
        }
        if (site->index == NULL) {
            continue;
        }
        int64_t count = buf->bytes / (int64_t)elem_bytes(buf->type->elem), least, most;
        site_range(sites->k, &step->call, site, site->index, &least, &most);
        bool fits = site->run == 0 || add_to(&most, 1, site->run - 1);
        if (!offset_range(&step->call, site->arg->id, &least, &most) || !fits) {
            return str_printf(sites->arena, "it reaches beyond 64 bits in %s", buf->name);
        }
        if (!site->guarded && (least < 0 || most >= count)) {
            return str_printf(sites->arena,
                              "it reaches from %lld to %lld in the %lld elements of %s",
                              (long long)least, (long long)most, (long long)count, buf->name);
        }
        /* A flat loop stores at each place up to its size; behind a fold there is one place. */
        bool all = site->store && !(access->mode & ACCESS_PART) && access->slice[0] == NULL &&
                   site->index->nterm > 0;
        if (all && sites->k->flat.known && step->call.size != type_count(*buf->type)) {
            return str_printf(sites->arena, "it says that it writes all of %s and does not",
                              buf->name);
        }
        if (!slice_right(access, &step->call, site, least, most)) {
            return str_printf(sites->arena, "it leaves the slice of %s that it names", buf->name);
        }
    }
    for (int k = 0; k < step->access.count; k++) {
        const Access *access = &step->access.at[k];
        bool stored = !(access->mode & ACCESS_WRITE) || access->buf->kind == BUF_WORK;
        for (int i = 0; i < sites->site.count; i++) {
            const Site *site = &sites->site.at[i];
            stored = stored || (site->store && !site->arg->strip &&
                                step->call.buf.at[site->arg->id] == access->buf);
        }
        if (!stored) {
            return str_printf(sites->arena, "it says that it writes %s and does not",
                              access->buf->name);
        }
    }
    return NULL;
}
