/* random_element: expressions of random texts, see random_text.h. Of each is known how large it may
 * become and in which range an integer is, so that numbers stay small and indices inside. */
#include "random_text.h"

#include <math.h>
#include <string.h>

/* Late ones more often: chains grow. NULL: none of the kind. */
const RtVar *rt_some_var(RandomText *r, RtKind kind, int least_rank) {
    for (int tries = 0; tries < 12 && r->scope.count > 0; tries++) {
        int64_t back = rt_below(r, r->scope.count);
        back = rt_chance(r, 50) ? rt_below(r, back + 1) : back;
        const RtVar *v = r->scope.at[r->scope.count - 1 - back];
        if (v->kind == kind && v->rank >= least_rank) {
            return v;
        }
    }
    return NULL;
}

bool rt_same_shape(const RtVar *a, const RtVar *b) {
    return a->rank == b->rank && memcmp(a->dim, b->dim, sizeof *a->dim * (size_t)a->rank) == 0;
}

/* ---- elements ------------------------------------------------------------------------------- */

static Sx *sx_new(RandomText *r, SxKind kind, RtKind type, double size) {
    Sx *e = ARENA_NEW(r->arena, Sx);
    e->kind = kind;
    e->type = type;
    e->size = size;
    return e;
}

Sx *rt_num(RandomText *r, RtKind type, double x) {
    Sx *e = sx_new(r, SX_NUM, type, fabs(x));
    e->number = x;
    e->lo = e->hi = (int64_t)x;
    return e;
}

static Sx *call(RandomText *r, const char *op, RtKind type, Sx *a, double size) {
    Sx *e = sx_new(r, SX_CALL, type, size);
    e->op = op;
    e->kid[0] = a;
    return e;
}

Sx *rt_bin(RandomText *r, const char *op, RtKind type, Sx *a, Sx *b, double size) {
    Sx *e = sx_new(r, SX_BIN, type, size);
    e->op = op;
    e->kid[0] = a;
    e->kid[1] = b;
    return e;
}

Elem rt_half(RandomText *r, int percent) {
    static const Elem halves[] = {TY_BF16, TY_F16};
    return r->elem == TY_F32 && rt_chance(r, percent) ? halves[rt_below(r, 2)] : TY_ERROR;
}

Sx *rt_short(RandomText *r, Sx *e, Elem half) {
    return half == TY_ERROR ? e : call(r, elem_name(half), RT_FLOAT, e, e->size);
}

static Sx *ranged(Sx *e, int64_t lo, int64_t hi, bool known) {
    e->lo = lo;
    e->hi = hi;
    e->ranged = known;
    return e;
}

/* Not larger than `most`. */
Sx *rt_calm(RandomText *r, Sx *e, double most) {
    static const char *const squash[] = {"tanh", "sin", "erf", "cos"};
    if (e->size <= most) {
        return e;
    }
    if (e->size <= most * 8 && rt_chance(r, 50)) {
        return rt_bin(r, "*", RT_FLOAT, e, rt_num(r, RT_FLOAT, 0.125), e->size / 8);
    }
    return most < 1 ? rt_bin(r, "*", RT_FLOAT, rt_num(r, RT_FLOAT, most),
                             call(r, "tanh", RT_FLOAT, e, 1), most)
                    : call(r, squash[rt_below(r, 4)], RT_FLOAT, e, 1);
}

Sx *rt_whole(RandomText *r, const RtVar *v) {
    Sx *e = sx_new(r, SX_VAR, v->kind, v->size);
    e->var = v;
    return ranged(e, v->lo, v->hi, v->ranged);
}

/* Least and most of a sum of indices. */
static void span_of(const RandomText *r, const RtPlace *p, int64_t *lo, int64_t *hi) {
    *lo = *hi = p->add;
    for (int i = 0; i < p->nterm; i++) {
        int index = p->term[i].index;
        int64_t n = 1, by = p->term[i].by;
        for (int k = 0; index < 0 && k < RT_LOOPS; k++) {
            n = k < r->depth && r->loop[k] == -1 - index ? r->trip[k] : n;
        }
        n = index < 0 ? n : r->extent[index];
        *lo += by < 0 ? by * (n - 1) : 0;
        *hi += by > 0 ? by * (n - 1) : 0;
    }
}

static void place_plain(RtPlace *p, int index) {
    *p = (RtPlace){.nterm = 1};
    p->term[0].index = index;
    p->term[0].by = 1;
}

/* A place along an axis of extent n; *open: it may lie outside. */
static RtPlace some_place(RandomText *r, RtWhere *w, int64_t n, bool *open) {
    RtPlace p = {.nterm = 0};
    int64_t lo, hi;
    for (int tries = 0; tries < 4 && w->n > 0 && rt_chance(r, 70); tries++) {
        int index = w->index[rt_below(r, w->n)];
        if (r->extent[index] == n) {
            place_plain(&p, index);
            return p;
        }
    }
    if (r->depth > 0 && rt_chance(r, 30)) {
        int k = (int)rt_below(r, r->depth);
        if (r->trip[k] <= n) {
            place_plain(&p, -1 - r->loop[k]);
            return p;
        }
    }
    int64_t what = rt_below(r, 10);
    if (what < 3 && w->depth < 2) { /* data */
        w->depth++;
        Sx *value = rt_int(r, w, 1);
        w->depth--;
        if (!(value->ranged && value->lo >= 0 && value->hi < n)) {
            value = rt_bin(r, "%", RT_INT, value, rt_num(r, RT_INT, (double)n), 0);
            ranged(value, 0, n - 1, true);
        }
        if (value->kind != SX_NUM && value->kind != SX_INDEX) {
            p.value = value;
            return p;
        }
    }
    if (what < 8 && w->n > 0) { /* affine */
        static const int64_t factors[] = {1, 1, 1, 2, -1, 3, -2};
        p.nterm = w->n > 1 && rt_chance(r, 40) ? 2 : 1;
        int first = (int)rt_below(r, w->n);
        for (int i = 0; i < p.nterm; i++) {
            p.term[i].index = w->index[(first + i) % w->n];
            p.term[i].by = factors[rt_below(r, 7)];
        }
        span_of(r, &p, &lo, &hi);
        p.add = -lo;
        if (hi - lo >= n || rt_chance(r, 25)) {
            p.add += rt_below(r, n + 2) - n / 2 - 1;
        } else {
            p.add += rt_below(r, n - (hi - lo));
        }
        span_of(r, &p, &lo, &hi);
        *open = *open || lo < 0 || hi >= n;
        return p;
    }
    p.add = rt_below(r, n);
    return p;
}

static Sx *access(RandomText *r, RtWhere *w, const RtVar *v) {
    bool open = false;
    Sx *e = sx_new(r, SX_AT, v->kind, v->size);
    e->var = v;
    ranged(e, v->lo, v->hi, v->ranged);
    for (int i = 0; i < v->rank; i++) {
        e->place[i] = some_place(r, w, v->dim[i], &open);
    }
    if (v->rank > 0 && v->kind == RT_FLOAT && (open || rt_chance(r, 8))) {
        e->border = (RtBorder)(1 + rt_below(r, 3));
        e->number = e->border == RT_NUMBER ? rt_number(r, 1) : 0;
        e->size = fmax(e->size, 1);
    } else if (open) { /* no number that fits every kind */
        e->border = (RtBorder)(2 + rt_below(r, 2));
    }
    return e;
}

/* An element of something; NULL: there is nothing of the kind. */
static Sx *leaf(RandomText *r, RtWhere *w, RtKind kind) {
    const RtVar *v = rt_some_var(r, kind, 0);
    for (int tries = 0; w->like && tries < 8; tries++) {
        if (v && (v->rank == 0 || rt_same_shape(v, w->like))) {
            break;
        }
        v = tries == 7 ? NULL : rt_some_var(r, kind, 0);
    }
    if (!v) {
        return NULL;
    }
    Sx *e = v->rank == 0 || w->like ? rt_whole(r, v) : access(r, w, v);
    return kind == RT_FLOAT && v->exact ? rt_short(r, e, rt_half(r, 15)) : e;
}

/* A fold over new indices, which stand alone in the first factor of its body. */
static Sx *fold(RandomText *r, RtWhere *w, bool arg, int depth) {
    static const char *const words[] = {"sum", "sum", "mean", "max", "min", "prod"};
    const RtVar *v = rt_some_var(r, RT_FLOAT, 1);
    if (!v || w->like || w->n > 5) {
        return NULL;
    }
    RtWhere in = *w;
    Sx *body = sx_new(r, SX_AT, RT_FLOAT, v->size), *e = sx_new(r, SX_FOLD, RT_FLOAT, 0);
    bool open = false;
    double n = 1;
    body->var = v;
    for (int i = 0; i < v->rank; i++) {
        bool fresh =
            e->nfold < (arg ? 1 : 2) && (rt_chance(r, 60) || (i + 1 == v->rank && !e->nfold));
        if (!fresh || r->nindex > 990) {
            body->place[i] = some_place(r, &in, v->dim[i], &open);
            continue;
        }
        int index = r->nindex++;
        r->extent[index] = v->dim[i];
        place_plain(&body->place[i], index);
        e->fold[e->nfold++] = index;
        in.index[in.n++] = index;
        n *= (double)v->dim[i];
    }
    if (!e->nfold) {
        return NULL;
    }
    if (open) {
        body->border = (RtBorder)(2 + rt_below(r, 2));
    }
    if (rt_chance(r, 60)) {
        Sx *other = rt_calm(r, rt_float(r, &in, depth - 1), 8);
        body = rt_bin(r, rt_chance(r, 70) ? "*" : "+", RT_FLOAT, body, other, 0);
        body->size = body->op[0] == '*' ? body->kid[0]->size * other->size
                                        : body->kid[0]->size + other->size;
    }
    e->op = arg ? (rt_chance(r, 50) ? "argmax" : "argmin") : words[rt_below(r, r->smooth ? 3 : 6)];
    if (str_eq(e->op, "prod") && (n > 5 || body->size > 2)) {
        e->op = "sum";
    }
    e->kid[0] = rt_calm(r, body, 32);
    e->size = str_eq(e->op, "sum")    ? n * e->kid[0]->size
              : str_eq(e->op, "prod") ? pow(fmax(e->kid[0]->size, 1), n)
                                      : e->kid[0]->size;
    if (arg) {
        e->type = RT_INT;
        ranged(e, 0, r->extent[e->fold[0]] - 1, true);
    }
    return e;
}

static Sx *select_of(RandomText *r, RtWhere *w, Sx *a, Sx *b, int depth) {
    Sx *e = sx_new(r, SX_SELECT, a->type, fmax(a->size, b->size));
    e->kid[0] = rt_bool(r, w, depth - 1);
    e->kid[1] = a;
    e->kid[2] = b;
    return ranged(e, a->lo < b->lo ? a->lo : b->lo, a->hi > b->hi ? a->hi : b->hi, false);
}

static Sx *function_of(RandomText *r, RtWhere *w, int depth) {
    static const char *const smooth[] = {"tanh", "sin",     "cos",   "erf", "exp",  "expm1", "gelu",
                                         "silu", "sigmoid", "log1p", "log", "sqrt", "rsqrt", "-"};
    static const char *const kinks[] = {"abs", "relu", "sign", "floor", "clamp"};
    Sx *a = rt_float(r, w, depth - 1);
    const char *op =
        !r->smooth && rt_chance(r, 25) ? kinks[rt_below(r, 5)] : smooth[rt_below(r, 14)];
    if (str_eq(op, "exp") || str_eq(op, "expm1")) {
        a = rt_calm(r, a, 2);
        return call(r, op, RT_FLOAT, a, exp(a->size));
    }
    if (op[0] == 'l' || str_eq(op, "sqrt") || op[1] == 's') { /* positive */
        a = rt_calm(r, a, 8);
        a = rt_bin(r, "^", RT_FLOAT, a, rt_num(r, RT_INT, 2), a->size * a->size);
        a = str_eq(op, "log1p")
                ? a
                : rt_bin(r, "+", RT_FLOAT, a, rt_num(r, RT_FLOAT, 0.5), a->size + 0.5);
        return call(r, op, RT_FLOAT, a, fmax(sqrt(a->size), 2));
    }
    bool bounded = strstr("tanh sin cos erf sigmoid sign", op) != NULL;
    Sx *e = call(r, op, RT_FLOAT, a, bounded ? 1 : a->size + (str_eq(op, "floor") ? 1 : 0));
    if (str_eq(op, "clamp")) {
        e->kid[1] = rt_num(r, RT_FLOAT, -0.5);
        e->kid[2] = rt_num(r, RT_FLOAT, 1.25);
        e->size = 1.25;
    }
    return e;
}

static Sx *arithmetic(RandomText *r, RtWhere *w, int depth) {
    Sx *a = rt_float(r, w, depth - 1), *b = rt_float(r, w, depth - 1);
    switch (rt_below(r, r->smooth ? 6 : 8)) {
    case 0: return rt_bin(r, "+", RT_FLOAT, a, b, a->size + b->size);
    case 1: return rt_bin(r, "-", RT_FLOAT, a, b, a->size + b->size);
    case 2:
    case 3: return rt_bin(r, "*", RT_FLOAT, a, b, a->size * b->size);
    case 4: {
        b = rt_bin(r, "^", RT_FLOAT, rt_calm(r, b, 8), rt_num(r, RT_INT, 2), 64);
        return rt_bin(r, "/", RT_FLOAT, a,
                      rt_bin(r, "+", RT_FLOAT, b, rt_num(r, RT_FLOAT, 0.5), 65), 2 * a->size);
    }
    case 5:
        return rt_bin(r, "^", RT_FLOAT, rt_calm(r, a, 2),
                      rt_num(r, RT_INT, (double)(2 + rt_below(r, 2))), 8);
    case 6:
        return rt_bin(r, rt_chance(r, 50) ? "max" : "min", RT_FLOAT, a, b, fmax(a->size, b->size));
    default: {
        Sx *e = call(r, "lerp", RT_FLOAT, a, a->size + b->size);
        e->kid[1] = b;
        e->kid[2] = rt_num(r, RT_FLOAT, 0.25);
        return e;
    }
    }
}

Sx *rt_float(RandomText *r, RtWhere *w, int depth) {
    Sx *e = NULL;
    int64_t what = depth <= 0 ? rt_below(r, 3) : rt_below(r, 12);
    if (what == 0) {
        e = rt_chance(r, 60) ? rt_num(r, RT_FLOAT, rt_number(r, 2)) : NULL;
        if (!e && rt_chance(r, 40)) {
            Sx *i = rt_int(r, w, depth - 1);
            int64_t most = i->hi > -i->lo ? i->hi : -i->lo;
            e = i->kind == SX_NUM ? NULL : call(r, "f32", RT_FLOAT, i, (double)most);
        }
    } else if (what < 5 && depth > 0) {
        e = what < 3 ? arithmetic(r, w, depth) : function_of(r, w, depth);
    } else if (what == 5) {
        e = select_of(r, w, rt_float(r, w, depth - 1), rt_float(r, w, depth - 1), depth);
    } else if (what < 9 && depth > 0) {
        e = fold(r, w, false, depth);
    }
    e = e ? e : leaf(r, w, RT_FLOAT);
    e = e ? e : rt_num(r, RT_FLOAT, rt_number(r, 2));
    return rt_calm(r, e, 64);
}

/* Within -500..500. */
Sx *rt_int(RandomText *r, RtWhere *w, int depth) {
    Sx *e = NULL, *a, *b;
    int64_t what = rt_below(r, depth <= 0 ? 3 : 8);
    if (what == 0 && w->n > 0) {
        int index = w->index[rt_below(r, w->n)];
        e = sx_new(r, SX_INDEX, RT_INT, 0);
        e->index = index;
        ranged(e, 0, r->extent[index] - 1, true);
    } else if (what == 0 && r->depth > 0) {
        int k = (int)rt_below(r, r->depth);
        e = sx_new(r, SX_INDEX, RT_INT, 0);
        e->index = -1 - r->loop[k];
        ranged(e, 0, r->trip[k] - 1, true);
    } else if (what > 2) {
        int64_t n = 2 + rt_below(r, 6);
        a = rt_int(r, w, depth - 1);
        b = rt_int(r, w, depth - 1);
        bool fixed = a->kind == SX_NUM && b->kind == SX_NUM;
        switch (fixed ? 9 : what) {
        case 3:
            e = ranged(rt_bin(r, "+", RT_INT, a, b, 0), a->lo + b->lo, a->hi + b->hi, false);
            break;
        case 4:
            e = ranged(rt_bin(r, "-", RT_INT, a, b, 0), a->lo - b->hi, a->hi - b->lo, false);
            break;
        case 5:
            if (a->kind != SX_NUM) {
                e = ranged(rt_bin(r, "%", RT_INT, a, rt_num(r, RT_INT, (double)n), 0), 0, n - 1,
                           true);
            }
            break;
        case 6:
            if (a->kind != SX_NUM) {
                e = rt_bin(r, "div", RT_INT, a, rt_num(r, RT_INT, (double)n), 0);
                ranged(e, (a->lo < 0 ? a->lo - n + 1 : a->lo) / n, a->hi / n, false);
            }
            break;
        case 7:
            e = rt_bin(r, rt_chance(r, 50) ? "max" : "min", RT_INT, a, b, 0);
            ranged(e, a->lo < b->lo ? a->lo : b->lo, a->hi > b->hi ? a->hi : b->hi, false);
            break;
        default: break;
        }
        e = e && e->lo >= -500 && e->hi <= 500 ? e : NULL;
        e = e ? e : rt_chance(r, 50) && !r->smooth ? fold(r, w, true, 1) : NULL;
    }
    e = e ? e : leaf(r, w, RT_INT);
    return e ? e : rt_num(r, RT_INT, (double)rt_below(r, 7));
}

Sx *rt_bool(RandomText *r, RtWhere *w, int depth) {
    static const char *const compare[] = {"<", ">", "<=", ">=", "==", "!="};
    int64_t what = rt_below(r, depth <= 0 ? 3 : 6);
    Sx *e = what == 0 ? leaf(r, w, RT_BOOL) : NULL;
    if (what == 5) {
        return call(r, "not", RT_BOOL, rt_bool(r, w, depth - 1), 0);
    }
    if (what == 4) {
        return rt_bin(r, rt_chance(r, 50) ? "and" : "or", RT_BOOL, rt_bool(r, w, depth - 1),
                      rt_bool(r, w, depth - 1), 0);
    }
    if (!e && (r->smooth || rt_chance(r, 50))) {
        Sx *a = rt_int(r, w, depth - 1), *b = rt_num(r, RT_INT, (double)rt_below(r, 4));
        if (a->kind != SX_NUM) {
            return rt_bin(r, compare[rt_below(r, 6)], RT_BOOL, a, b, 0);
        }
    }
    if (!e && !r->smooth) {
        e = rt_bin(r, compare[rt_below(r, 4)], RT_BOOL, rt_float(r, w, depth - 1),
                   rt_num(r, RT_FLOAT, rt_number(r, 1)), 0);
        e = e->kid[0]->kind == SX_NUM ? NULL : e;
    }
    return e ? e : rt_bin(r, "<", RT_BOOL, rt_num(r, RT_INT, 1), rt_num(r, RT_INT, 2), 0);
}

/* How an index stands alone as an axis: of its extent (1), of another one (2). */
static int alone(const RandomText *r, int index, const Sx *e) {
    int how = 0;
    for (int i = 0; e && e->kind == SX_AT && i < e->var->rank; i++) {
        const RtPlace *p = &e->place[i];
        if (p->nterm == 1 && p->term[0].index == index && p->term[0].by == 1 && p->add == 0) {
            how |= e->var->dim[i] == r->extent[index] ? 1 : 2;
        }
        how |= p->value ? alone(r, index, p->value) : 0;
    }
    for (int i = 0; e && i < 3; i++) {
        how |= alone(r, index, e->kid[i]);
    }
    return how;
}

bool rt_extent_known(const RandomText *r, int index, const Sx *e) {
    return alone(r, index, e) == 1;
}

/* Which folds say how far their indices go. */
void rt_write_extents(RandomText *r, Sx *e) {
    for (int i = 0; e->kind == SX_FOLD && i < e->nfold; i++) {
        e->written[i] = !rt_extent_known(r, e->fold[i], e->kid[0]) || rt_chance(r, 30);
    }
    for (int i = 0; e->kind == SX_AT && i < e->var->rank; i++) {
        if (e->place[i].value) {
            rt_write_extents(r, e->place[i].value);
        }
    }
    for (int i = 0; i < 3 && e->kid[i]; i++) {
        rt_write_extents(r, e->kid[i]);
    }
}
