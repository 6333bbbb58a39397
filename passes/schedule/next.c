/* next: what a loop reads in its next turn is asked for in this one, some lines in each turn of the
 * loop inside of it that has most of them. Needs the statements of one turn; adds to what their
 * loops ask for; changes no values. */
#include "passes/schedule/reach.h"

/* The loop with the most turns in the statements, vector loops aside, and the loops around it. */
typedef struct {
    Stmt *at[AXES_MAX];
    int n;
    int64_t turns;
} Path;

static void most_turns(const Kernel *k, const StmtList *list, Path *here, Path *most) {
    for (int i = 0; i < list->count; i++) {
        Stmt *s = list->at[i];
        if (s->kind != STMT_FOR || s->simd || s->begin || here->n == AXES_MAX) {
            continue;
        }
        const int64_t before = here->turns;
        here->at[here->n++] = s;
        here->turns = count_add(0, before, k->axis[s->axis].extent);
        *most = here->turns > most->turns ? *here : *most;
        most_turns(k, &s->body, here, most);
        here->n--;
        here->turns = before;
    }
}

/* Do turns of its loops ask for later lines of the argument? */
static bool asks_for(const StmtList *list, const Arg *arg) {
    bool asks = false;
    for (int i = 0; i < list->count && !asks; i++) {
        const Stmt *s = list->at[i];
        for (int m = 0; m < s->ahead.count; m++) {
            asks = asks || s->ahead.at[m].arg == arg;
        }
        asks = asks || asks_for(&s->body, arg);
    }
    return asks;
}

void ask_for_next(Kernel *k, Arena *scratch, int axis, const StmtList *first,
                  const StmtList *second) {
    Path here = {.turns = 1}, path = {.turns = 1};
    most_turns(k, second, &here, &path);
    Sites s = sites_of(k, scratch, NULL, NULL, 0);
    s.axis[axis] = (Reach){.known = true, .mul = 1};
    list_sites(&s, first, scratch);
    const Index *turn = index_const(&k->index, 0);
    for (int i = 0; i < path.n; i++) {
        turn = index_scale(&k->index, turn, k->axis[path.at[i]->axis].extent);
        turn = index_add(&k->index, turn, kernel_axis_index(k, path.at[i]->axis));
    }
    for (int i = 0; i < k->arg.count && path.n > 0; i++) {
        const Arg *arg = k->arg.at[i];
        const Touched *t = &s.arg[arg->id];
        const int64_t each = (t->at.mul + path.turns - 1) / path.turns;
        const int64_t bytes = (int64_t)elem_bytes(arg->elem);
        if (!t->load || t->store || t->odd || each * bytes < MD_ALIGN || !far_arg(k, arg) ||
            asks_for(first, arg)) {
            continue;
        }
        const Index *at = t->index;
        for (int a = 0; a < k->naxis; a++) { /* of the loops inside of the turn */
            const bool inside = a != axis && s.axis[a].inside;
            at = inside ? index_subst(&k->index, at, a, index_const(&k->index, 0)) : at;
        }
        at = index_offset(&k->index, at, t->at.lo - at->base + t->at.mul);
        at = index_add(&k->index, at, index_scale(&k->index, turn, each));
        const Stream stream = {.arg = arg, .at = at, .row = each};
        VEC_PUSH_FROM(k->arena, &path.at[path.n - 1]->ahead, stream, 2);
    }
}
