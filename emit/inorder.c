/* inorder: see the header. Needs a finished kernel, changes nothing. */
#include "emit/inorder.h"

typedef struct {
    AxisSet inner;    /* the axes of all loops but the outermost */
    const Index **at; /* by Arg.id: where it is read */
    bool *seen;       /* by Expr.id */
    bool turned;
} Walk;

/* Does it only grow along the inner axes? */
static bool grows(const Index *index, AxisSet inner) {
    for (int i = 0; i < index->nterm; i++) {
        const Atom *atom = index->term[i].atom;
        if ((atom->axes & inner) && (atom->kind != ATOM_AXIS || index->term[i].mul < 0)) {
            return false;
        }
    }
    return true;
}

static void walk_expr(Walk *w, const Expr *e) {
    if (w->seen[e->id] || w->turned) {
        return;
    }
    w->seen[e->id] = true;
    if (e->kind == EXPR_LOAD) {
        const Index *before = w->at[e->arg->id];
        w->turned = !grows(e->index, w->inner) || (before && before != e->index);
        w->at[e->arg->id] = e->index;
    }
    for (int i = 0; i < e->nkid; i++) {
        walk_expr(w, e->kid[i]);
    }
}

static void walk_list(Walk *w, const StmtList *list) {
    for (int i = 0; i < list->count; i++) {
        const Stmt *st = list->at[i];
        if (st->expr) {
            walk_expr(w, st->expr);
        }
        for (int k = 0; k < st->fold.count; k++) {
            walk_expr(w, st->fold.at[k]);
        }
        walk_list(w, &st->body);
    }
}

/* A term that a choice leaves out: gcc 12 sums it under a mask, and with it wrong elements. */
static bool is_left_out(const Expr *term) {
    return (term->kind == EXPR_LOAD && term->nin == 2) ||
           (term->kind == EXPR_MAP && term->op == OP_SELECT);
}

bool fold_in_order(Arena *arena, const Kernel *k, const Stmt *fold) {
    Walk w = {.inner = 0};
    bool floats = false;
    for (int i = 0; i < fold->fold.count && fold->lanes <= 1; i++) {
        const Expr *e = fold->fold.at[i];
        if (elem_is_float(e->elem) && is_left_out(e->in[0])) {
            return true;
        }
    }
    for (int i = 1; i < fold->axes.count; i++) {
        w.inner |= (AxisSet)1 << fold->axes.at[i];
    }
    for (int i = 0; i < fold->fold.count; i++) {
        floats = floats || elem_is_float(fold->fold.at[i]->elem);
    }
    if (!w.inner || !floats) {
        return false;
    }
    w.at = ARENA_ARRAY(arena, const Index *, k->nargs + 1);
    w.seen = ARENA_ARRAY(arena, bool, k->expr.count + 1);
    const Stmt *one[1] = {fold};
    walk_list(&w, &(StmtList){.at = (Stmt **)one, .count = 1});
    return w.turned;
}
