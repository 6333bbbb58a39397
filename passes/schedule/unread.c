/* unread: zeros far from a diagonal, which nobody reads, are not stored.
 *
 * What makes the matrix of a masked softmax, or its derivative, fills it: products clear the tiles
 * outside of their band, loops that end early store one value behind their end. Most who read it
 * end near the diagonal too. So of each matrix (the last two axes of a temporary) it is asked how
 * far ahead of the diagonal, column less row, the kernels look that are called with it: products in
 * tiles by their band, loops by where they end. If all end within MD_TILE_UNREAD places of what its
 * makers compute, those stop there: Stmt.rests, MD_TILE_AHEAD_UNREAD and MD_TILE_BEHIND_UNREAD of
 * plans, and Buf.near, how far it is written. A product packs more than it multiplies, whatever
 * that is.
 *
 * Needs a lowered Program, before what kernels share is found; changes no values. */
#include "compiler/kernel.h"
#include "passes/schedule/product.h"

#include <string.h>

enum {
    TILE_SIDE = 64, /* rows or columns of a register tile, at most */
    PAIRS = 2       /* steps more that pairs take */
};
#define EVERYWHERE (INT64_MAX / 4) /* a reader looks at all of it */

typedef VEC(Step *) Calls;

/* A matrix: `rows` rows of `cols` elements, one behind the other. */
typedef struct {
    int64_t rows, cols;
} Matrix;

typedef struct {
    Program *p;
    Arena scratch;
    Calls *calls;   /* by Kernel.id */
    bool *wanted;   /* by Buf.id: some maker could leave something out */
    int64_t *reach; /* by Buf.id: the largest distance that is read */
} Unread;

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* The last two axes of a dense Buf; no rows: it has none. */
static Matrix matrix_of(const Buf *buf) {
    const int rank = buf->type->rank;
    const int64_t cols = rank > 1 ? buf->type->dim[rank - 1] : 0;
    bool dense = rank > 1 && buf->kind == BUF_TEMP && buf->final == NULL;
    for (int64_t k = rank - 1, all = 1; dense && k >= 0; k--) {
        dense = buf->stride[k] == all;
        all *= buf->type->dim[k];
    }
    return dense ? (Matrix){buf->type->dim[rank - 2], cols} : (Matrix){0, 0};
}

/* --- places ----------------------------------------------------------------------------------- */

/* It moves by whole matrices. */
static bool whole(Matrix m, const Index *at) {
    bool is = at->base % (m.rows * m.cols) == 0;
    for (int i = 0; i < at->nterm; i++) {
        is = is && at->term[i].mul % (m.rows * m.cols) == 0;
    }
    return is;
}

static bool begins_whole(Matrix m, const Call *call, const Arg *arg) {
    bool is = true;
    for (int i = 0; i < call->offset.count; i++) {
        const Offset *o = &call->offset.at[i];
        is = is && (o->arg != arg->id || o->mul % (m.rows * m.cols) == 0);
    }
    return is;
}

/* The same in another table: that of a finished kernel finds nothing any more. */
static const Index *copy_of(IndexTable *t, const Index *from) {
    const Index *sum = index_const(t, from->base);
    for (int i = 0; i < from->nterm; i++) {
        const Atom *a = from->term[i].atom;
        const Index *of = a->of ? copy_of(t, a->of) : NULL;
        const Index *one = a->kind == ATOM_AXIS   ? index_axis(t, a->number, a->most + 1)
                           : a->kind == ATOM_LOOP ? index_loop(t, a->number, a->most + 1, true)
                           : a->kind == ATOM_DIV  ? index_div(t, of, a->by)
                           : a->kind == ATOM_MOD
                               ? index_mod(t, of, a->by)
                               : index_value(t, a->value, a->axes, a->least, a->most);
        sum = index_add(t, sum, index_scale(t, one, from->term[i].mul));
    }
    return sum;
}

/* What `until` is at most: without the rounding of its quotients, which lowers it by *less at
 * most. */
static const Index *unrounded(IndexTable *t, const Index *until, int64_t *less) {
    const Index *most = index_const(t, until->base);
    *less = 0;
    for (int i = 0; i < until->nterm; i++) {
        const Atom *atom = until->term[i].atom;
        const int64_t mul = until->term[i].mul;
        const bool quotient = atom->kind == ATOM_DIV && mul > 0 && mul % atom->by == 0;
        const Term term = {atom, mul};
        const Index plain = {.nterm = 1, .term = &term};
        *less += quotient ? mul / atom->by * (atom->by - 1) : 0;
        most = index_add(t, most, quotient ? index_scale(t, atom->of, mul / atom->by) : &plain);
    }
    return most;
}

/* How far the loop over `axis`, which ends at `until`, comes ahead of the diagonal in elements at
 * `index`: between *least and *most places; false: not known. */
static bool ahead(Unread *u, const Kernel *k, Matrix m, const Index *index, int axis,
                  const Index *until, int64_t *least, int64_t *most) {
    IndexTable table, *t = &table;
    int64_t mul, start, less;
    if (!index_stride(index, axis, &mul) || mul != 1 || k->axis[axis].extent > m.cols) {
        return false;
    }
    index_open(t, &u->scratch);
    until = copy_of(t, until);
    const Index *first = index_subst(t, copy_of(t, index), axis, index_const(t, 0));
    if (!index_is_const(index_mod(t, first, m.cols), &start) || start != 0) {
        return false;
    }
    const Index *row = index_mod(t, index_div(t, first, m.cols), m.rows);
    const Index *distance = index_add(t, unrounded(t, until, &less), index_scale(t, row, -1));
    *least = distance->least - less - 1;
    *most = distance->most - 1;
    return true;
}

/* --- who reads -------------------------------------------------------------------------------- */

typedef struct {
    Unread *u;
    const Kernel *k;
    const Arg *arg;
    Matrix m;
    const Index *until[AXES_MAX]; /* of the loops around, by axis */
    bool *seen;
    int64_t reach;
} Reading;

static void read_expr(Reading *r, const Expr *e) {
    if (r->seen[e->id]) {
        return;
    }
    r->seen[e->id] = true;
    if (e->kind == EXPR_LOAD && e->arg == r->arg) {
        int64_t reach = EVERYWHERE, least, most;
        for (int i = 0; i < r->k->naxis; i++) {
            if (r->until[i] && ahead(r->u, r->k, r->m, e->index, i, r->until[i], &least, &most)) {
                reach = most < reach ? most : reach;
            }
        }
        r->reach = larger(r->reach, reach);
    }
    for (int i = 0; e->kind != EXPR_FOLD && i < e->nkid; i++) { /* a fold is made by its loop */
        read_expr(r, e->kid[i]);
    }
}

static void read_list(Reading *r, const StmtList *list) {
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        const bool fold = s->kind == STMT_FOLD;
        const int axis = fold && s->axes.count == 1 ? s->axes.at[0] : s->axis;
        const Index *around = r->until[axis];
        r->until[axis] = s->until ? s->until : around;
        r->seen = ARENA_ARRAY(&r->u->scratch, bool, r->k->expr.count + 1);
        for (int k = 0; k < s->fold.count; k++) {
            for (int n = 0; n < s->fold.at[k]->nkid; n++) {
                read_expr(r, s->fold.at[k]->kid[n]);
            }
        }
        const Expr *const of[] = {s->expr, s->as};
        for (int k = 0; k < 2; k++) {
            if (of[k]) {
                read_expr(r, of[k]);
            }
        }
        if (s->kind == STMT_ORDER && s->order->x == r->arg) {
            r->reach = EVERYWHERE;
        }
        if (s->tile) {
            read_list(r, &s->tile->copy);
            read_list(r, &s->tile->body);
        }
        read_list(r, &s->body);
        r->until[axis] = around;
    }
}

/* As operand A or B. Of what is packed, only the steps near the band are multiplied. */
static int64_t tile_reach(const Tile *tile, Matrix m, bool is_a) {
    const md_tile s = product_plan(tile);
    const bool x = is_a != ((s.is & MD_TILE_SWAPPED) != 0);
    const int64_t row = x ? s.r2.x : s.cols.y, step = x ? s.k2.x : s.k2.y;
    const int64_t b1 = x ? s.b1.x : s.b1.y, b2 = x ? s.b2.x : s.b2.y, n = m.rows * m.cols;
    const bool plain = s.band == (x ? MD_BAND_ROW_SUM : MD_BAND_COLUMN_SUM) && s.k0.n == 1 &&
                       s.k1.n == 1 && s.r1.n == 1 && b1 % n == 0 && b2 % n == 0 &&
                       whole(m, is_a ? tile->at_a : tile->at_b);
    const int64_t side = TILE_SIDE - 1 + PAIRS;
    if (plain && step == 1 && row == m.cols && s.until < MD_BAND_OPEN) {
        return s.until - 1 + side;
    }
    if (plain && row == 1 && step == m.cols && s.from > -MD_BAND_OPEN) {
        return side - s.from;
    }
    return EVERYWHERE;
}

/* The largest column less row of the argument that a call looks at. */
static int64_t reach_of(Unread *u, const Kernel *k, const Call *call, const Arg *arg, Matrix m) {
    const Tile *tile = kernel_tile(k);
    Reading r = {.u = u, .k = k, .arg = arg, .m = m, .reach = -EVERYWHERE};
    if (!begins_whole(m, call, arg) || (tile && (tile->blas || tile->add == arg))) {
        return EVERYWHERE;
    }
    if (tile && tile->a == arg) {
        r.reach = larger(r.reach, tile_reach(tile, m, true));
    }
    if (tile && tile->b == arg) {
        r.reach = larger(r.reach, tile_reach(tile, m, false));
    }
    read_list(&r, &k->body);
    return r.reach;
}

static void note_reads(void *ctx, Step *step, int depth) {
    Unread *u = ctx;
    (void)depth;
    const AccessList *touched = step_touches(step);
    for (int i = 0; step->kind != STEP_KERNEL && i < touched->count; i++) {
        u->reach[touched->at[i].buf->id] = EVERYWHERE;
    }
    for (int i = 0; step->kind == STEP_KERNEL && i < step->kernel->arg.count; i++) {
        const Arg *arg = step->kernel->arg.at[i];
        Buf *buf = arg->id < step->call.buf.count ? step->call.buf.at[arg->id] : NULL;
        if (buf && !arg->strip && u->wanted[buf->id]) {
            const Matrix m = matrix_of(buf);
            const int64_t reach =
                m.rows > 0 ? reach_of(u, step->kernel, &step->call, arg, m) : EVERYWHERE;
            u->reach[buf->id] = larger(u->reach[buf->id], reach);
        }
    }
}

/* --- who makes -------------------------------------------------------------------------------- */

/* What one maker leaves out. */
typedef struct {
    Kernel *k;
    const Arg *arg;
    const Index *index, *until; /* a store of a loop over `axis`; NULL: the tile */
    int axis;
    int64_t flag; /* of the plan */
} Maker;

/* The tile clears what lies outside of its band; `flag` is 0 where it does not, or not in C. */
static Maker tile_maker(Kernel *k) {
    const Tile *tile = kernel_tile(k);
    Maker maker = {.k = k};
    if (!tile || tile->blas || !tile->c || tile->add || tile->body.count > 0) {
        return maker;
    }
    const md_tile s = product_plan(tile);
    const int64_t is = s.is & (MD_TILE_IN_PLACE | MD_TILE_ADD);
    if (s.band == MD_BAND_ROW_COLUMN && is == MD_TILE_IN_PLACE && s.chunks == 1) {
        maker.arg = tile->c;
        maker.flag = s.cols.c == 1 && s.until < MD_BAND_OPEN ? MD_TILE_AHEAD_UNREAD
                     : s.r2.c == 1 && s.from > -MD_BAND_OPEN ? MD_TILE_BEHIND_UNREAD
                                                             : 0;
    }
    return maker;
}

/* All distances below are stored; -EVERYWHERE: of this matrix it may be none. */
static int64_t made_below(Unread *u, const Maker *maker, Matrix m, const Call *call) {
    int64_t least, most;
    if (m.rows == 0 || !begins_whole(m, call, maker->arg)) {
        return -EVERYWHERE;
    }
    if (maker->until) {
        const bool known =
            ahead(u, maker->k, m, maker->index, maker->axis, maker->until, &least, &most);
        return known ? least + 1 + MD_TILE_UNREAD : -EVERYWHERE;
    }
    const Tile *tile = kernel_tile(maker->k);
    const md_tile s = product_plan(tile);
    const bool along = maker->flag == MD_TILE_AHEAD_UNREAD;
    const bool plain = (along ? s.r2.c : s.cols.c) == m.cols && s.b1.c % (m.rows * m.cols) == 0 &&
                       s.b2.c % (m.rows * m.cols) == 0 && whole(m, tile->at_c);
    return !plain ? -EVERYWHERE : (along ? s.until : -s.from) + MD_TILE_UNREAD;
}

/* In all calls what it leaves out is read by nobody. */
static bool may_leave(Unread *u, const Maker *maker) {
    const Calls *calls = &u->calls[maker->k->id];
    bool may = calls->count > 0;
    for (int i = 0; i < calls->count && may; i++) {
        const Buf *buf = calls->at[i]->call.buf.at[maker->arg->id];
        const int64_t made = made_below(u, maker, matrix_of(buf), &calls->at[i]->call);
        may = made > 0 && u->reach[buf->id] < made;
    }
    return may;
}

static void note_made(Unread *u, const Maker *maker) {
    const Calls *calls = &u->calls[maker->k->id];
    for (int i = 0; i < calls->count; i++) {
        Buf *buf = calls->at[i]->call.buf.at[maker->arg->id];
        const int64_t made = made_below(u, maker, matrix_of(buf), &calls->at[i]->call);
        buf->near = buf->near == 0 || made < buf->near ? made : buf->near;
    }
}

/* Visits the loops that store something behind their end. */
static void each_rest(Kernel *k, const StmtList *list, void (*visit)(Unread *, Kernel *, Stmt *),
                      Unread *u) {
    for (int i = 0; i < list->count; i++) {
        Stmt *s = list->at[i];
        bool any = false;
        for (int n = 0; n < s->body.count && s->until; n++) {
            any = any || s->body.at[n]->rest;
        }
        if (any) {
            visit(u, k, s);
        }
        each_rest(k, &s->body, visit, u);
    }
}

static Maker loop_maker(Kernel *k, const Stmt *loop, const Stmt *store) {
    const int axis = loop->kind == STMT_FOLD ? loop->axes.at[0] : loop->axis;
    return (Maker){k, store->arg, store->index, loop->until, axis, 0};
}

static void want_rests(Unread *u, Kernel *k, Stmt *loop) {
    for (int i = 0; i < u->calls[k->id].count; i++) {
        for (int n = 0; n < loop->body.count; n++) {
            const Stmt *in = loop->body.at[n];
            if (in->rest) {
                u->wanted[u->calls[k->id].at[i]->call.buf.at[in->arg->id]->id] = true;
            }
        }
    }
}

static void leave_rests(Unread *u, Kernel *k, Stmt *loop) {
    bool may = true;
    for (int pass = 0; pass < 2 && may; pass++) {
        for (int n = 0; n < loop->body.count; n++) {
            const Maker maker = loop_maker(k, loop, loop->body.at[n]);
            if (loop->body.at[n]->rest && pass == 0) {
                may = may && may_leave(u, &maker);
            } else if (loop->body.at[n]->rest) {
                note_made(u, &maker);
            }
        }
    }
    loop->rests = may ? MD_TILE_UNREAD : 0;
}

static void note_call(void *ctx, Step *step, int depth) {
    Unread *u = ctx;
    (void)depth;
    if (step->kind == STEP_KERNEL) {
        VEC_PUSH(&u->scratch, &u->calls[step->kernel->id], step);
    }
}

void kernels_unread(Program *p) {
    Unread u = {.p = p};
    if (p->device) { /* its products clear nothing */
        return;
    }
    const int count = p->kernel.count;
    u.calls = ARENA_ARRAY(&u.scratch, Calls, count + 1);
    u.wanted = ARENA_ARRAY(&u.scratch, bool, p->nbuf + 1);
    u.reach = ARENA_ARRAY(&u.scratch, int64_t, p->nbuf + 1);
    for (int i = 0; i < p->entry.count; i++) {
        steps_visit(&p->entry.at[i]->step, note_call, &u);
    }
    for (int i = 0; i < count; i++) {
        Kernel *k = p->kernel.at[i];
        const Maker tile = tile_maker(k);
        each_rest(k, &k->body, want_rests, &u);
        for (int n = 0; tile.flag && n < u.calls[i].count; n++) {
            u.wanted[u.calls[i].at[n]->call.buf.at[tile.arg->id]->id] = true;
        }
    }
    for (int i = 0; i < p->nbuf; i++) {
        u.reach[i] = -EVERYWHERE;
    }
    for (int i = 0; i < p->entry.count; i++) {
        steps_visit(&p->entry.at[i]->step, note_reads, &u);
    }
    for (int i = 0; i < count; i++) {
        Kernel *k = p->kernel.at[i];
        const Maker tile = tile_maker(k);
        each_rest(k, &k->body, leave_rests, &u);
        if (tile.flag && may_leave(&u, &tile)) {
            note_made(&u, &tile);
            Tile *own = kernel_own_tile(k);
            md_tile s = product_plan(own);
            s.is |= tile.flag;
            memcpy(own->plan, &s, sizeof s);
        }
    }
    arena_free(&u.scratch);
}
