/* placed: statements at one place of an axis, as expr_at.c has expressions. Needs loops and stores
 * of a kernel; gives new ones; changes none. */
#include "passes/schedule/reach.h"

#include <string.h>

static const Index *moved(ExprAt *x, const Index *index, const Arg *arg) {
    if (!index) {
        return NULL;
    }
    index = index_subst(&x->k->index, index, x->axis, x->place);
    return arg && arg == x->arg ? expr_at_moved(x, index) : index;
}

static bool place_list(ExprAt *x, Arena *scratch, const StmtList *from, StmtList *to);

/* A loop over a part of its axis that depends on the place counts its turns from 0 on. */
static bool turns_at(Kernel *k, Arena *scratch, Stmt *s) {
    const int axis = s->axis;
    const StmtList before = s->body;
    if (s->span <= 0 || s->begin->most + s->span > k->axis[axis].extent) {
        return false;
    }
    memset(&s->body, 0, sizeof s->body);
    s->axis = kernel_axis(k, s->span, k->axis[axis].name);
    const Index *place = index_add(&k->index, s->begin, kernel_axis_index(k, s->axis));
    s->begin = NULL;
    s->span = 0;
    ExprAt x = expr_at_open(k, scratch, axis, place);
    for (int i = 0; i < s->ahead.count; i++) { /* the list is the copy's own */
        s->ahead.at[i].at = moved(&x, s->ahead.at[i].at, NULL);
    }
    return place_list(&x, scratch, &before, &s->body);
}

static bool place_list(ExprAt *x, Arena *scratch, const StmtList *from, StmtList *to) {
    for (int i = 0; i < from->count; i++) {
        const Stmt *old = from->at[i];
        Stmt *s = ARENA_NEW(x->k->arena, Stmt);
        *s = *old;
        memset(&s->body, 0, sizeof s->body);
        memset(&s->ahead, 0, sizeof s->ahead);
        s->parallel = 0;
        s->begin = moved(x, old->begin, NULL);
        s->index = moved(x, old->index, old->arg);
        s->expr = old->expr ? expr_at(x, old->expr) : NULL;
        s->as = old->as ? expr_at(x, old->as) : NULL;
        if ((old->expr && !s->expr) || (old->as && !s->as) || old->kind == STMT_FOLD ||
            !place_list(x, scratch, &old->body, &s->body)) {
            return false;
        }
        for (int m = 0; m < old->ahead.count; m++) {
            Stream stream = old->ahead.at[m];
            stream.at = moved(x, stream.at, NULL);
            if (stream.arg != x->arg) { /* what is handed on is in the cache */
                VEC_PUSH_FROM(x->k->arena, &s->ahead, stream, 2);
            }
        }
        const bool part = s->begin != old->begin;
        if (part && x->k->naxis == AXES_MAX) {
            return false;
        }
        if (part && !turns_at(x->k, scratch, s)) {
            return false;
        }
        VEC_PUSH_FROM(x->k->arena, to, s, from->count);
    }
    return true;
}

/* --- what nothing reads at that place --------------------------------------------------------- */

static void use(bool *used, const Expr *e) {
    if (e && !used[e->id]) {
        used[e->id] = true;
        for (int i = 0; i < e->nkid; i++) {
            use(used, e->kid[i]);
        }
    }
}

static void use_index(bool *used, const Index *index) {
    const Expr *kid[MD_RANK];
    const int n = index ? index_kids(index, kid, 0, MD_RANK) : 0;
    for (int i = 0; i < n; i++) {
        use(used, kid[i]);
    }
}

static void use_all(bool *used, const Stmt *s) {
    use_index(used, s->begin);
    use_index(used, s->index);
    use(used, s->as ? s->as : s->kind == STMT_STORE ? s->expr : NULL);
    for (int i = 0; s->kind == STMT_LET && !s->as && i < s->expr->nkid; i++) {
        use(used, s->expr->kid[i]);
    }
    for (int i = 0; i < s->body.count; i++) {
        use_all(used, s->body.at[i]);
    }
}

/* Constants, and what is one with a value that is bound there already. */
static void drop_bound(StmtList *list, bool *bound) {
    int kept = 0;
    for (int i = 0; i < list->count; i++) {
        Stmt *s = list->at[i];
        if (s->kind == STMT_LET && (expr_is_plain(s->expr) || bound[s->expr->id])) {
            continue;
        }
        if (s->kind == STMT_LET) {
            bound[s->expr->id] = true;
        }
        drop_bound(&s->body, bound);
        list->at[kept++] = s;
    }
    list->count = kept;
    for (int i = 0; i < kept; i++) {
        if (list->at[i]->kind == STMT_LET) {
            bound[list->at[i]->expr->id] = false;
        }
    }
}

/* What was bound for something that is a constant there. */
static void drop_unused(const Kernel *k, Arena *scratch, StmtList *list) {
    bool *used = ARENA_ARRAY(scratch, bool, k->expr.count);
    int kept = list->count;
    for (int i = list->count - 1; i >= 0; i--) {
        Stmt *s = list->at[i];
        drop_unused(k, scratch, &s->body);
        if (s->kind != STMT_LET || used[s->expr->id]) {
            use_all(used, s);
            list->at[--kept] = s;
        }
    }
    if (kept > 0) {
        list->count -= kept;
        memmove(list->at, list->at + kept, sizeof *list->at * (size_t)list->count);
    }
}

bool stmts_at(ExprAt *x, Arena *scratch, const StmtList *from, StmtList *to) {
    if (!place_list(x, scratch, from, to)) {
        return false;
    }
    drop_bound(to, ARENA_ARRAY(scratch, bool, x->k->expr.count));
    drop_unused(x->k, scratch, to);
    return true;
}

void stmts_apart(Kernel *k, StmtList *list) {
    bool binds = false;
    for (int i = 0; i < list->count; i++) {
        binds = binds || list->at[i]->kind == STMT_LET;
    }
    if (binds) {
        const StmtList inside = *list;
        *list = (StmtList){0};
        stmt_for(k, list, kernel_axis(k, 1, "once"))->body = inside;
    }
}
