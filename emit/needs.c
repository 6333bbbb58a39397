/* needs: see the header. Walks the statements as they are printed: a value that has a name, inside
 * or outside of the block, is not looked into. Needs a finished kernel, changes nothing. */
#include "emit/needs.h"

int scalar_count(const Kernel *k) {
    return k->loop.count + k->site.count;
}

bool scalar_used(const Kernel *k, int scalar) {
    return scalar < k->loop.count ? k->loop.at[scalar].used : k->site.at[scalar - k->loop.count];
}

const char *scalar_name(Arena *arena, const Kernel *k, int scalar) {
    return scalar < k->loop.count ? str_printf(arena, "i%d", scalar)
                                  : str_printf(arena, "site%d", scalar - k->loop.count);
}

const char *scalar_declared(Arena *arena, const Kernel *k, int scalar) {
    return str_printf(arena, "%s %s", scalar < k->loop.count ? "int64_t" : "uint64_t",
                      scalar_name(arena, k, scalar));
}

typedef struct {
    Arena *arena;
    const Kernel *k;
    const char *const *bound;
    bool *named; /* by Expr.id: inside the block, or already in the list of values */
    Needs needs;
} Walk;

static void walk_index(Walk *w, const Index *index) {
    w->needs.axes |= index->axes;
    for (int i = 0; i < index->nterm; i++) {
        const Atom *atom = index->term[i].atom;
        if (atom->of != NULL) {
            walk_index(w, atom->of);
        }
        if (atom->kind == ATOM_LOOP) {
            w->needs.scalar[atom->number] = true;
        }
    }
}

static void walk_expr(Walk *w, const Expr *e) {
    if (w->named[e->id]) {
        return;
    }
    if (w->bound != NULL && w->bound[e->id] != NULL) {
        w->named[e->id] = true;
        VEC_PUSH(w->arena, &w->needs.value, e);
        return;
    }
    if (e->arg != NULL) {
        w->needs.arg[e->arg->id] = true;
    }
    if (e->index != NULL) {
        walk_index(w, e->index);
    }
    if (e->kind == EXPR_KEY) {
        w->needs.scalar[w->k->loop.count + e->site] = true;
    }
    for (int i = 0; i < e->nkid; i++) {
        walk_expr(w, e->kid[i]);
    }
}

/* Values that stand in an index. */
static void walk_place(Walk *w, const Index *index) {
    walk_index(w, index);
    for (int i = 0; i < index->nterm; i++) {
        const Atom *atom = index->term[i].atom;
        if (atom->kind == ATOM_VALUE) {
            walk_expr(w, atom->value);
        } else if (atom->of != NULL) {
            walk_place(w, atom->of);
        }
    }
}

static void walk_list(Walk *w, const StmtList *list);

static void walk_stmt(Walk *w, const Stmt *st) {
    if (st->kind == STMT_TILE || st->kind == STMT_ORDER) {
        BUG("a product or an order in a block that becomes a function");
    }
    if (st->begin != NULL) {
        walk_place(w, st->begin);
    }
    if (st->until != NULL) {
        walk_place(w, st->until);
    }
    for (int i = 0; i < st->ahead.count; i++) {
        w->needs.arg[st->ahead.at[i].arg->id] = true;
        walk_place(w, st->ahead.at[i].at);
    }
    walk_list(w, &st->body);
    if (st->expr != NULL) {
        walk_expr(w, st->kind == STMT_LET && st->as != NULL ? st->as : st->expr);
    }
    if (st->index != NULL) {
        walk_place(w, st->index);
    }
    if (st->arg != NULL) {
        w->needs.arg[st->arg->id] = true;
    }
    if (st->kind == STMT_LET) {
        w->named[st->expr->id] = true;
    }
    for (int i = 0; i < st->fold.count; i++) {
        const Expr *fold = st->fold.at[i];
        for (int k = 0; k < fold->nin && !st->parts; k++) {
            walk_expr(w, fold->in[k]);
        }
        if (fold->index != NULL) {
            walk_place(w, fold->index);
        }
    }
    for (int i = 0; i < st->fold.count; i++) {
        w->named[st->fold.at[i]->id] = true;
    }
}

static void walk_list(Walk *w, const StmtList *list) {
    for (int i = 0; i < list->count; i++) {
        walk_stmt(w, list->at[i]);
    }
}

static Walk walk_open(Arena *arena, const Kernel *k, const char *const *bound) {
    Walk w = {.arena = arena, .k = k, .bound = bound};
    w.named = ARENA_ARRAY(arena, bool, k->expr.count + 1);
    w.needs.arg = ARENA_ARRAY(arena, bool, k->nargs + 1);
    w.needs.scalar = ARENA_ARRAY(arena, bool, scalar_count(k) + 1);
    return w;
}

Needs needs_of(Arena *arena, const Kernel *k, const StmtList *list, const char *const *bound) {
    Walk w = walk_open(arena, k, bound);
    walk_list(&w, list);
    return w.needs;
}

static void walk_operand(Walk *w, const Arg *arg, const Index *at) {
    if (arg != NULL) {
        w->needs.arg[arg->id] = true;
        walk_place(w, at);
    }
}

Needs needs_of_pieces(Arena *arena, const Kernel *k, const Tile *tile) {
    Walk w = walk_open(arena, k, NULL);
    walk_operand(&w, tile->a, tile->at_a);
    walk_operand(&w, tile->b, tile->at_b);
    w.needs.arg[tile->work->id] = true;
    return w.needs;
}

Needs needs_of_end(Arena *arena, const Kernel *k, const Tile *tile) {
    Walk w = walk_open(arena, k, NULL);
    walk_list(&w, &tile->body);
    walk_operand(&w, tile->add, tile->at_c);
    walk_operand(&w, tile->c, tile->at_c);
    w.needs.arg[tile->work->id] = true;
    return w.needs;
}
