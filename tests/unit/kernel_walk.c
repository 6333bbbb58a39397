/* kernel_walk: see the header. */
#include "kernel_walk.h"

#include <string.h>

typedef struct {
    const Kernel *k;
    const Call *call;
    bool backward;
    KernelTouch touch;
    void *ctx;
    Arena arena;
    bool *bound;                            /* by Expr.id */
    int64_t axis[AXES_MAX];                 /* current values */
    int64_t first[AXES_MAX], end[AXES_MAX]; /* of rows and columns of a block; end 0: none */
} Walk;

static int64_t index_value_at(const Walk *w, const Index *index);

static void touch(Walk *w, const Arg *arg, int64_t place, bool store) {
    if (!arg->strip) { /* the block of a product is no memory that is passed */
        w->touch(w->ctx, w->call->buf.at[arg->id], place, store);
    }
}

static int64_t floor_quotient(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

static int64_t atom_value(const Walk *w, const Atom *atom) {
    switch (atom->kind) {
    case ATOM_AXIS: return w->axis[atom->number];
    case ATOM_LOOP: return 0;
    case ATOM_DIV: return floor_quotient(index_value_at(w, atom->of), atom->by);
    case ATOM_MOD: {
        int64_t of = index_value_at(w, atom->of);
        return of - atom->by * floor_quotient(of, atom->by);
    }
    case ATOM_VALUE: break;
    }
    uint64_t hash = hash_bytes(HASH_START, &atom->id, sizeof atom->id);
    for (int i = 0; i < w->k->naxis; i++) {
        if (atom->axes >> i & 1) {
            hash = hash_bytes(hash, &w->axis[i], sizeof w->axis[i]);
        }
    }
    return atom->least + (int64_t)(hash % (uint64_t)(atom->most - atom->least + 1));
}

static int64_t index_value_at(const Walk *w, const Index *index) {
    int64_t sum = index->base;
    for (int i = 0; i < index->nterm; i++) {
        sum += index->term[i].mul * atom_value(w, index->term[i].atom);
    }
    return sum;
}

static void walk_expr(Walk *w, const Expr *e) {
    if (w->bound[e->id]) {
        return;
    }
    for (int i = 0; i < e->nkid; i++) {
        walk_expr(w, e->kid[i]);
    }
    if (e->kind == EXPR_LOAD && !e->arg->strip) {
        int64_t place = index_value_at(w, e->index);
        bool outside = place < 0 || place >= type_count(*w->call->buf.at[e->arg->id]->type);
        if (!(e->nin == 2 && outside)) {
            touch(w, e->arg, place, false);
        }
    }
}

static void walk_index(Walk *w, const Index *index) {
    for (int i = 0; index != NULL && i < index->nterm; i++) {
        const Atom *atom = index->term[i].atom;
        if (atom->kind == ATOM_VALUE) {
            walk_expr(w, atom->value);
        }
        walk_index(w, atom->of);
    }
}

static void walk_list(Walk *w, const StmtList *list);

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

static void loop_range(const Walk *w, int axis, const Index *begin, int64_t span, int64_t *first,
                       int64_t *end) {
    *first = begin != NULL ? index_value_at(w, begin) : 0;
    *end = kernel_extent(w->k, w->call, axis);
    if (span > 0 && *first + span < *end) {
        *end = *first + span;
    }
    if (w->end[axis] > 0) {
        *first = w->first[axis];
        *end = w->end[axis];
    }
}

static void walk_for(Walk *w, const Stmt *s) {
    int64_t first, end;
    loop_range(w, s->axis, s->begin, s->span, &first, &end);
    for (int64_t i = first; i < end; i++) {
        w->axis[s->axis] = w->backward ? end - 1 - (i - first) : i;
        walk_list(w, &s->body);
        unbind(w, &s->body);
    }
}

static void walk_fold(Walk *w, const Stmt *s, int level) {
    if (level == s->axes.count) {
        walk_list(w, &s->body);
        for (int i = 0; i < s->fold.count; i++) {
            for (int k = 0; k < s->fold.at[i]->nkid && !s->parts; k++) {
                walk_expr(w, s->fold.at[i]->kid[k]);
            }
        }
        unbind(w, &s->body);
        return;
    }
    int64_t first, end;
    int axis = s->axes.at[level];
    loop_range(w, axis, level == 0 ? s->begin : NULL, level == 0 ? s->span : 0, &first, &end);
    for (int64_t i = first; i < end; i++) {
        w->axis[axis] = i;
        walk_fold(w, s, level + 1);
    }
}

/* Two by two blocks of rows and columns. */
static void walk_blocks(Walk *w, const Tile *t) {
    int64_t extent[2] = {kernel_extent(w->k, w->call, t->row),
                         kernel_extent(w->k, w->call, t->column)};
    int axis[2] = {t->row, t->column};
    for (int64_t b = 0; b < kernel_extent(w->k, w->call, t->batch); b++) {
        w->axis[t->batch] = w->backward ? kernel_extent(w->k, w->call, t->batch) - 1 - b : b;
        walk_list(w, &t->copy);
        unbind(w, &t->copy);
        for (int block = 0; block < 4; block++) {
            for (int i = 0; i < 2; i++) {
                bool upper = ((block >> i & 1) != 0) != w->backward;
                int64_t half = (extent[i] + 1) / 2;
                w->first[axis[i]] = upper ? half : 0;
                w->end[axis[i]] = upper ? extent[i] : half;
            }
            walk_list(w, &t->body);
            unbind(w, &t->body);
        }
    }
    w->end[t->row] = w->end[t->column] = 0;
}

static void walk_tile(Walk *w, const Tile *t) {
    walk_index(w, t->at_a);
    walk_index(w, t->at_b);
    walk_index(w, t->at_c);
    if (t->add != NULL) {
        touch(w, t->add, -1, false);
    }
    if (t->c != NULL) {
        touch(w, t->c, -1, true);
    }
    if (t->work != NULL) {
        touch(w, t->work, -1, true);
    }
    walk_blocks(w, t);
    touch(w, t->a, -1, false);
    touch(w, t->b, -1, false);
}

/* Places are written from the first moment on, lines read until the last one. */
static void walk_order(Walk *w, const Ordering *o) {
    walk_index(w, o->at_x);
    walk_index(w, o->at_out);
    int64_t x = index_value_at(w, o->at_x), out = index_value_at(w, o->at_out);
    touch(w, o->work, -1, true);
    for (int64_t i = 0; i < o->rows * o->most; i++) {
        touch(w, o->out, out + i, true);
    }
    for (int64_t i = 0; i < o->rows * o->n; i++) {
        touch(w, o->x, x + i, false);
    }
}

static void walk_list(Walk *w, const StmtList *list) {
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        walk_index(w, s->begin);
        switch (s->kind) {
        case STMT_FOR: walk_for(w, s); break;
        case STMT_LET:
            walk_expr(w, s->as != NULL ? s->as : s->expr);
            w->bound[s->expr->id] = true;
            break;
        case STMT_STORE:
            walk_index(w, s->index);
            walk_expr(w, s->expr);
            touch(w, s->arg, index_value_at(w, s->index), true);
            break;
        case STMT_FOLD:
            walk_fold(w, s, 0);
            for (int k = 0; k < s->fold.count; k++) {
                w->bound[s->fold.at[k]->id] = true;
            }
            break;
        case STMT_TILE: walk_tile(w, s->tile); break;
        case STMT_ORDER: walk_order(w, s->order); break;
        }
    }
}

void kernel_walk(const Kernel *k, const Call *call, bool backward, KernelTouch visit, void *ctx) {
    Walk w = {.k = k, .call = call, .backward = backward, .touch = visit, .ctx = ctx};
    w.bound = ARENA_ARRAY(&w.arena, bool, k->expr.count + 1);
    walk_list(&w, &k->body);
    arena_free(&w.arena);
}

/* ---- one pair ------------------------------------------------------------------------------- */

typedef struct {
    const Buf *in, *out;
    int64_t count;
    bool *written;
    bool any, found;
} Clobber;

static void clobber_touch(void *ctx, const Buf *buf, int64_t place, bool store) {
    Clobber *c = ctx;
    if (buf == c->out && store) {
        c->any = true;
        for (int64_t i = place < 0 ? 0 : place; i < (place < 0 ? c->count : place + 1); i++) {
            c->written[i] = true;
        }
    } else if (buf == c->in && (place < 0 || place < c->count)) {
        c->found |= store || (place < 0 ? c->any : c->written[place]);
    }
}

bool kernel_clobbers(const Kernel *k, const Call *call, const Buf *in, const Buf *out) {
    Arena arena = {0};
    bool found = false;
    for (int turn = 0; turn < 2 && !found; turn++) {
        Clobber c = {.in = in, .out = out, .count = type_count(*out->type)};
        c.written = ARENA_ARRAY(&arena, bool, c.count + 1);
        kernel_walk(k, call, turn == 1, clobber_touch, &c);
        found = c.found;
    }
    arena_free(&arena);
    return found;
}
