/* next: what a loop reads in its next turn is asked for in this one, some lines in each turn of the
 * loop inside of it that has most of them. Needs the statements of one turn; adds to what their
 * loops ask for; changes no values. */
#include "passes/schedule/reach.h"

enum { WORK = 4 }; /* instructions an element while memory hands a thread a byte */

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

static void drop_asks(const StmtList *list, const Arg *arg) {
    for (int i = 0; i < list->count; i++) {
        Stmt *s = list->at[i];
        int kept = 0;
        for (int m = 0; m < s->ahead.count; m++) {
            if (s->ahead.at[m].arg != arg) {
                s->ahead.at[kept++] = s->ahead.at[m];
            }
        }
        s->ahead.count = kept;
        drop_asks(&s->body, arg);
    }
}

/* The first element that the next turn touches and this one does not, in the first turn of the
 * loops around. */
static int64_t first_of_next(const Kernel *k, const Sites *s, int axis, const Touched *t) {
    const int64_t lo = t->at.lo + t->at.mul;
    int64_t hi = t->at.hi + 1, stride;
    for (int a = 0; a < k->naxis; a++) {
        const Reach *r = &s->axis[a];
        if (a != axis && r->known && !r->inside && index_stride(t->index, a, &stride) &&
            stride > 0) {
            hi -= stride * (r->hi - r->lo);
        }
    }
    return hi > lo ? hi : lo;
}

/* In `at_work`, asks for what of the argument the next turn of a loop over `axis` touches, by the
 * sites of its turns. False: that is not known, or too little. */
static bool ask(Kernel *k, const Sites *s, int axis, const Arg *arg, const StmtList *at_work) {
    const Touched *t = &s->arg[arg->id];
    if (!t->index || t->odd || !far_arg(k, arg)) {
        return false;
    }
    Path here = {.turns = 1}, path = {.turns = 1};
    most_turns(k, at_work, &here, &path);
    const int64_t line = MD_ALIGN / (int64_t)elem_bytes(arg->elem);
    int64_t each = (t->at.mul + path.turns - 1) / path.turns;
    if (path.n == 0 || each < line) {
        return false;
    }
    each = align_up(each, line); /* no line twice */
    const Index *turn = index_const(&k->index, 0), *at = t->index;
    for (int i = 0; i < path.n; i++) {
        turn = index_scale(&k->index, turn, k->axis[path.at[i]->axis].extent);
        turn = index_add(&k->index, turn, kernel_axis_index(k, path.at[i]->axis));
    }
    for (int a = 0; a < k->naxis; a++) { /* of the loops inside of the turn */
        const bool inside = a != axis && s->axis[a].inside;
        at = inside ? index_subst(&k->index, at, a, index_const(&k->index, 0)) : at;
    }
    at = index_offset(&k->index, at, first_of_next(k, s, axis, t) - at->base);
    at = index_add(&k->index, at, index_scale(&k->index, turn, each));
    const Stream stream = {.arg = arg, .at = at, .row = each};
    VEC_PUSH_FROM(k->arena, &path.at[path.n - 1]->ahead, stream, 2);
    return true;
}

void ask_for_next(Kernel *k, Arena *scratch, const Stmt *loop, const StmtList *first,
                  const StmtList *second) {
    const Sites s = sites_of(k, scratch, first, loop, 1);
    for (int i = 0; i < k->arg.count; i++) {
        const Arg *arg = k->arg.at[i];
        if (s.arg[arg->id].load && !s.arg[arg->id].store && !asks_for(first, arg) &&
            !asks_for(second, arg)) {
            (void)ask(k, &s, loop->axis, arg, second);
        }
    }
}

void ask_for_turns(Kernel *k, Arena *scratch, const Stmt *loop) {
    const Sites s = sites_of(k, scratch, &loop->body, loop, 1);
    for (int i = 0; i < k->arg.count; i++) {
        const Arg *arg = k->arg.at[i];
        if (s.arg[arg->id].load && !s.arg[arg->id].store) {
            drop_asks(&loop->body, arg);
            (void)ask(k, &s, loop->axis, arg, &loop->body);
        }
    }
}

/* --- two loops that take turns ---------------------------------------------------------------- */

/* Vector instructions of the statements, and bytes that these ask for. A sum stays in a register,
 * and reads memory as it multiplies and adds. */
typedef struct {
    int64_t work, bytes;
} Busy;

static Busy busy_of(const Kernel *k, const StmtList *list) {
    Busy sum = {0, 0};
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        int64_t times = 1;
        Busy one = {1, 0};
        if (s->kind == STMT_FOR) {
            one = busy_of(k, &s->body);
            times = loop_turns(k, s->axis, s->span);
        } else if (s->kind == STMT_STORE) {
            one.work = s->add == OP_CONST ? 2 + s->expr->cost : 1 + s->expr->cost / 2;
        }
        for (int m = 0; m < s->ahead.count; m++) {
            const Stream *of = &s->ahead.at[m];
            one.bytes = count_add(one.bytes, of->row, (int64_t)elem_bytes(of->arg->elem));
        }
        sum.work = count_add(sum.work, times, one.work);
        sum.bytes = count_add(sum.bytes, times, one.bytes);
    }
    return sum;
}

void ask_in_turn(Kernel *k, Arena *scratch, const Stmt *loop, const StmtList *first,
                 const StmtList *second) {
    ask_for_next(k, scratch, loop, first, second);
    const Sites s = sites_of(k, scratch, second, loop, 1);
    for (int i = 0; i < k->arg.count; i++) {
        const Arg *arg = k->arg.at[i];
        if (!asks_for(second, arg)) {
            continue;
        }
        const Busy x = busy_of(k, first), y = busy_of(k, second);
        const int64_t bytes = count_add(0, s.arg[arg->id].at.mul, (int64_t)elem_bytes(arg->elem));
        const bool half = bytes >= y.bytes / 2;
        const bool time = count_add(0, count_add(x.bytes, 1, bytes), WORK) <= x.work;
        if (half && time && ask(k, &s, loop->axis, arg, first)) {
            drop_asks(second, arg);
        }
    }
}
