/* kernel_table: equal kernels are one function, called from several places.
 *
 * A kernel is written down as words, in the order of its statements: what an expression, a part of
 * an index, a loop of the call or a draw site is stands where it is first met, later only its
 * number. So two kernels have the same words exactly if they do the same with their arguments. What
 * is only for readers (names, layers) is not written down; extents, strides and constants are.
 * Needs a finished kernel that is still being built (its expressions have their numbers). */
#include "compiler/kernel_table.h"

#include <string.h>

/* Things of one kind, numbered as they are met. */
typedef struct {
    int *number; /* by id; 0: not met */
    int count;
} Met;

typedef struct {
    Arena *arena;
    const Kernel *k;
    VEC(uint64_t) word;
    Met expr, atom, loop, site;
    VEC(int) loops, sites; /* ids as they are met */
} Writer;

static void write_expr(Writer *w, const Expr *e);
static void write_list(Writer *w, const StmtList *list);

static void word(Writer *w, uint64_t x) {
    VEC_PUSH_FROM(w->arena, &w->word, x, 256);
}

static void number(Writer *w, int64_t x) {
    word(w, (uint64_t)x);
}

/* Writes its number; true: it is met for the first time, and what it is follows. */
static bool meet(Writer *w, Met *met, int id) {
    bool first = met->number[id] == 0;
    if (first) {
        met->number[id] = ++met->count;
    }
    number(w, met->number[id]);
    return first;
}

static void write_index(Writer *w, const Index *index) {
    number(w, index != NULL ? index->nterm : -1);
    if (index == NULL) {
        return;
    }
    number(w, index->base);
    for (int i = 0; i < index->nterm; i++) {
        const Atom *atom = index->term[i].atom;
        number(w, index->term[i].mul);
        if (!meet(w, &w->atom, atom->id)) {
            continue;
        }
        bool sized = atom->kind == ATOM_AXIS && kernel_sized(w->k, atom->number);
        number(w, atom->kind);
        number(w, atom->least);
        number(w, sized ? 0 : atom->most);
        if (atom->kind == ATOM_LOOP) {
            if (meet(w, &w->loop, atom->number)) {
                VEC_PUSH(w->arena, &w->loops, atom->number);
            }
        } else {
            number(w, atom->number);
            number(w, atom->by);
        }
        if (atom->value != NULL) {
            write_expr(w, atom->value);
        }
        if (atom->of != NULL) {
            write_index(w, atom->of);
        }
    }
}

static void write_arg(Writer *w, const Arg *arg) {
    number(w, arg != NULL ? arg->id : -1);
    if (arg != NULL && arg->strip) { /* no parameter, and so described nowhere else */
        number(w, arg->elem);
    }
}

static void write_expr(Writer *w, const Expr *e) {
    if (e == NULL) {
        number(w, 0);
        return;
    }
    if (!meet(w, &w->expr, e->id)) {
        return;
    }
    uint64_t value;
    memcpy(&value, &e->value, sizeof value);
    number(w, e->kind);
    number(w, e->op);
    number(w, e->elem);
    number(w, e->term);
    word(w, value);
    number(w, e->ivalue);
    number(w, e->lo);
    number(w, e->hi);
    number(w, e->dist);
    word(w, e->fold);
    write_index(w, e->index);
    write_arg(w, e->arg);
    if (e->kind == EXPR_KEY && meet(w, &w->site, e->site)) {
        VEC_PUSH(w->arena, &w->sites, e->site);
    }
    number(w, e->nin);
    for (int i = 0; i < e->nin; i++) {
        write_expr(w, e->in[i]);
    }
}

static void write_tile(Writer *w, const Tile *t) {
    number(w, t->nplan);
    for (int i = 0; i < t->nplan; i++) {
        number(w, t->plan[i]);
    }
    for (int i = 0; i < TILE_MACHINES; i++) {
        word(w, t->bodies[i]);
    }
    number(w, t->blas);
    number(w, t->team);
    const Arg *const arg[] = {t->a,      t->b,     t->c,   t->work,
                              t->common, t->strip, t->add, t->halo};
    for (size_t i = 0; i < sizeof arg / sizeof *arg; i++) {
        write_arg(w, arg[i]);
    }
    write_index(w, t->at_a);
    write_index(w, t->at_b);
    write_index(w, t->at_c);
    const int64_t rest[] = {t->count, t->as[0],  t->as[1],  t->batch,
                            t->row,   t->column, t->narrow, t->flops};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        number(w, rest[i]);
    }
    write_list(w, &t->copy);
    write_list(w, &t->body);
}

static void write_order(Writer *w, const Ordering *o) {
    const int64_t facts[] = {o->way, o->rows, o->n, o->most, o->descending, o->team};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        number(w, facts[i]);
    }
    write_arg(w, o->x);
    write_arg(w, o->out);
    write_arg(w, o->work);
    write_index(w, o->at_x);
    write_index(w, o->at_out);
}

static void write_stmt(Writer *w, const Stmt *s) {
    const int64_t facts[] = {
        s->kind,   s->axis, s->span,  s->parallel, s->simd,
        s->unroll, s->held, s->add,   s->lanes,    s->parts, s->rests,
        s->parallel > 0 ? stmt_team(w->k, s) : 0};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        number(w, facts[i]);
    }
    write_index(w, s->begin);
    write_index(w, s->until);
    write_expr(w, s->rest);
    for (int i = 0; i < s->ahead.count; i++) {
        write_arg(w, s->ahead.at[i].arg);
        write_index(w, s->ahead.at[i].at);
    }
    write_list(w, &s->body);
    write_expr(w, s->expr);
    write_expr(w, s->as);
    write_arg(w, s->arg);
    write_index(w, s->index);
    number(w, s->axes.count);
    for (int i = 0; i < s->axes.count; i++) {
        number(w, s->axes.at[i]);
    }
    number(w, s->fold.count);
    for (int i = 0; i < s->fold.count; i++) {
        write_expr(w, s->fold.at[i]);
    }
    if (s->tile != NULL) {
        write_tile(w, s->tile);
    }
    if (s->order != NULL) {
        write_order(w, s->order);
    }
}

static void write_list(Writer *w, const StmtList *list) {
    number(w, list->count);
    for (int i = 0; i < list->count; i++) {
        write_stmt(w, list->at[i]);
    }
}

static void write_kernel(Writer *w, const Kernel *k) {
    number(w, k->threads);
    number(w, k->arg.count);
    for (int i = 0; i < k->arg.count; i++) {
        const Arg *arg = k->arg.at[i];
        const int64_t facts[] = {arg->id, arg->elem, arg->mode, arg->work, arg->thread, arg->part};
        for (size_t j = 0; j < sizeof facts / sizeof *facts; j++) {
            number(w, facts[j]);
        }
    }
    number(w, k->naxis);
    for (int i = 0; i < k->naxis; i++) {
        number(w, kernel_sized(k, i) ? -1 - k->flat.exact : k->axis[i].extent);
    }
    write_list(w, &k->body);
}

/* ---- the table ------------------------------------------------------------------------------ */

typedef struct {
    uint64_t hash;
    const uint64_t *word;
    int nword;
    Kernel *kernel;
    const int *loop, *site; /* as the words meet them */
} Known;

struct KernelTable {
    Arena *arena;
    VEC(Known) known;
    int *slot; /* open addressing: 1 + position in `known` */
    int room;
};

KernelTable *kernel_table_new(Arena *arena) {
    KernelTable *t = ARENA_NEW(arena, KernelTable);
    t->arena = arena;
    return t;
}

static void place(KernelTable *t, int at) {
    uint64_t mask = (uint64_t)t->room - 1, h = t->known.at[at].hash & mask;
    while (t->slot[h] != 0) {
        h = (h + 1) & mask;
    }
    t->slot[h] = at + 1;
}

static void grow(KernelTable *t) {
    enum { FIRST = 64 };
    t->room = t->room > 0 ? 2 * t->room : FIRST;
    t->slot = ARENA_ARRAY(t->arena, int, t->room);
    for (int i = 0; i < t->known.count; i++) {
        place(t, i);
    }
}

static Known *find(const KernelTable *t, uint64_t hash, const Writer *w) {
    uint64_t mask = (uint64_t)t->room - 1;
    for (uint64_t h = hash & mask; t->room > 0 && t->slot[h] != 0; h = (h + 1) & mask) {
        Known *known = &t->known.at[t->slot[h] - 1];
        if (known->hash == hash && known->nword == w->word.count &&
            memcmp(known->word, w->word.at, sizeof *known->word * (size_t)known->nword) == 0) {
            return known;
        }
    }
    return NULL;
}

/* The arguments have the same numbers; loops and sites take those of the known kernel. */
static void call_known(Arena *arena, const Known *known, const Writer *w, Call *call) {
    const Call own = *call;
    const Kernel *k = known->kernel;
    *call = (Call){.size = own.size};
    for (int i = 0; i < k->arg.count; i++) {
        VEC_PUSH_FROM(arena, &call->buf, own.buf.at[i], k->arg.count);
    }
    for (int i = 0; i < own.offset.count; i++) {
        VEC_PUSH_FROM(arena, &call->offset, own.offset.at[i], own.offset.count);
    }
    for (int i = 0; i < k->loop.count; i++) {
        VEC_PUSH_FROM(arena, &call->loop, NULL, k->loop.count);
    }
    for (int i = 0; i < w->loops.count; i++) {
        call->loop.at[known->loop[i]] = own.loop.at[w->loops.at[i]];
    }
    for (int i = 0; i < k->site.count; i++) {
        VEC_PUSH_FROM(arena, &call->site, 0, k->site.count);
    }
    for (int i = 0; i < w->sites.count; i++) {
        call->site.at[known->site[i]] = own.site.at[w->sites.at[i]];
    }
}

static const void *keep(Arena *arena, const void *at, size_t bytes) {
    void *copy = arena_alloc(arena, bytes);
    if (bytes > 0) {
        memcpy(copy, at, bytes);
    }
    return copy;
}

Kernel *kernel_table_put(KernelTable *t, Kernel *k, Call *call) {
    Arena scratch = {0};
    Writer w = {.arena = &scratch, .k = k};
    w.expr.number = ARENA_ARRAY(&scratch, int, k->expr.count + 1);
    w.atom.number = ARENA_ARRAY(&scratch, int, k->index.atom.count + 1);
    w.loop.number = ARENA_ARRAY(&scratch, int, k->loop.count + 1);
    w.site.number = ARENA_ARRAY(&scratch, int, k->site.count + 1);
    write_kernel(&w, k);
    uint64_t hash = HASH_TABLE;
    for (int i = 0; i < w.word.count; i++) {
        hash = hash_word(hash, w.word.at[i]);
    }
    Kernel *found = k;
    const Known *known = find(t, hash, &w);
    *call = k->call;
    if (known != NULL) {
        found = known->kernel;
    } else {
        if (2 * t->known.count >= t->room) {
            grow(t);
        }
        Known new = {.hash = hash, .nword = w.word.count, .kernel = k};
        new.word = keep(t->arena, w.word.at, sizeof *w.word.at * (size_t)w.word.count);
        new.loop = keep(t->arena, w.loops.at, sizeof *w.loops.at * (size_t)w.loops.count);
        new.site = keep(t->arena, w.sites.at, sizeof *w.sites.at * (size_t)w.sites.count);
        VEC_PUSH(t->arena, &t->known, new);
        place(t, t->known.count - 1);
        known = &t->known.at[t->known.count - 1];
    }
    call_known(t->arena, known, &w, call);
    arena_free(&scratch);
    return found;
}
