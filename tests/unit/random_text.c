/* random_text: see the header. Statements are drawn over what is in scope; extents, ranges and
 * sizes are known of everything, so that a text is right and its numbers stay small. */
#include "random_text.h"

#include <math.h>
#include <string.h>

/* ---- draws ---------------------------------------------------------------------------------- */

int64_t rt_below(RandomText *r, int64_t n) {
    return (int64_t)random_below(&r->random, (uint64_t)n);
}

bool rt_chance(RandomText *r, int percent) {
    return rt_below(r, 100) < percent;
}

double rt_number(RandomText *r, double most) {
    return (double)(rt_below(r, (int64_t)(most * 16) + 1) - (int64_t)(most * 8)) / 8;
}

/* No two dims have one size: what fits as a number fits as a name. */
static const struct {
    int64_t n;
    const char *name;
} dims[] = {{2, "A"}, {3, "B"}, {4, "C"}, {5, "D"}};

const char *rt_extent(RandomText *r, int64_t n) {
    if (n < RT_MOST && r->variable[n] && rt_chance(r, 70)) {
        return str_printf(r->arena, "d%lld", (long long)n);
    }
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        if (dims[i].n == n && rt_chance(r, 60)) {
            return dims[i].name;
        }
    }
    return str_printf(r->arena, "%lld", (long long)n);
}

static int64_t some_extent(RandomText *r) {
    static const int64_t sizes[] = {2, 3, 4, 2, 3, 5, 1, 7};
    return sizes[rt_below(r, 8)];
}

/* ---- variables ------------------------------------------------------------------------------ */

int64_t rt_count(const RtVar *v) {
    int64_t n = 1;
    for (int i = 0; i < v->rank; i++) {
        n *= v->dim[i];
    }
    return n;
}

RtVar *rt_var_new(RandomText *r, RtKind kind, int rank, const int64_t *dim) {
    RtVar *v = ARENA_NEW(r->arena, RtVar);
    v->id = r->nvar++;
    v->name = str_printf(r->arena, "%c%d", "xnm"[kind], v -> id);
    v->kind = kind;
    v->rank = rank;
    for (int i = 0; i < rank; i++) { /* of a scalar there is no `dim` */
        v->dim[i] = dim[i];
    }
    v->size = 1;
    return v;
}

static void describe(RtVar *v, const Sx *e) {
    v->size = e->size;
    v->lo = e->lo;
    v->hi = e->hi;
    v->ranged = e->ranged;
}

/* ---- statements ----------------------------------------------------------------------------- */

Stmt *rt_stmt_new(RandomText *r, Stmts *list, StKind kind) {
    Stmt *s = ARENA_NEW(r->arena, Stmt);
    s->kind = kind;
    VEC_PUSH(r->arena, list, s);
    return s;
}

static const RtVar *define(RandomText *r, Stmt *s, RtVar *v) {
    s->out = v;
    VEC_PUSH(r->arena, &r->scope, v);
    return v;
}

static bool has_tensor(const Sx *e) {
    if (!e || e->kind == SX_VAR) {
        return e && e->var->rank > 0;
    }
    return has_tensor(e->kid[0]) || has_tensor(e->kid[1]) || has_tensor(e->kid[2]);
}

const RtVar *rt_point(RandomText *r, Stmts *list, const RtVar *like, double most) {
    RtWhere w = {.like = like};
    Sx *e = rt_float(r, &w, 3);
    e = rt_calm(
        r, has_tensor(e) ? e : rt_bin(r, "+", RT_FLOAT, rt_whole(r, like), e, like->size + e->size),
        most);
    Stmt *s = rt_stmt_new(r, list, ST_POINT);
    s->e = e;
    RtVar *v = rt_var_new(r, RT_FLOAT, like->rank, like->dim);
    describe(v, e);
    return define(r, s, v);
}

/* y = bf16(x) */
static void rounded(RandomText *r, Stmts *list) {
    const RtVar *v = rt_some_var(r, RT_FLOAT, 1);
    Elem half = rt_half(r, 100);
    if (!v || !v->exact || half == TY_ERROR) {
        return;
    }
    Stmt *s = rt_stmt_new(r, list, ST_POINT);
    s->e = rt_short(r, rt_whole(r, v), half);
    RtVar *to = rt_var_new(r, RT_FLOAT, v->rank, v->dim);
    describe(to, s->e);
    to->exact = true;
    to->half = half;
    define(r, s, to);
}

bool rt_depends(const Sx *e) {
    if (!e) {
        return false;
    }
    bool self = e->kind == SX_AT || e->kind == SX_VAR || e->kind == SX_INDEX || e->kind == SX_FOLD;
    return self || rt_depends(e->kid[0]) || rt_depends(e->kid[1]) || rt_depends(e->kid[2]);
}

static const RtVar *indexed(RandomText *r, Stmts *list) {
    static const RtKind kinds[] = {RT_FLOAT, RT_FLOAT, RT_FLOAT, RT_FLOAT, RT_INT, RT_INT, RT_BOOL};
    RtWhere w = {.n = 0};
    RtKind kind = kinds[rt_below(r, 7)];
    kind = r->smooth && kind == RT_INT ? RT_FLOAT : kind;
    int rank = 1 + (int)rt_below(r, 3);
    int64_t dim[RT_RANK], room = r->most;
    if (r->nindex > 900) {
        return NULL;
    }
    const RtVar *hint = rt_some_var(r, RT_FLOAT, 1);
    for (int i = 0; i < rank; i++) {
        dim[i] = hint && rt_chance(r, 60) ? hint->dim[rt_below(r, hint->rank)] : some_extent(r);
        dim[i] = dim[i] > room ? 1 : dim[i];
        room /= dim[i];
        r->extent[r->nindex] = dim[i];
        w.index[w.n++] = r->nindex++;
    }
    int index[RT_RANK];
    memcpy(index, w.index, sizeof *index * (size_t)rank);
    Sx *e = kind == RT_FLOAT ? rt_float(r, &w, 3)
            : kind == RT_INT ? rt_int(r, &w, 3)
                             : rt_bool(r, &w, 2);
    if (!rt_depends(e)) {
        return NULL;
    }
    Stmt *s = rt_stmt_new(r, list, ST_INDEX);
    s->e = e;
    rt_write_extents(r, e);
    RtVar *v = rt_var_new(r, kind, rank, dim);
    describe(v, e);
    for (int i = 0; i < rank; i++) {
        s->index[i] = index[i];
        s->written[i] = !rt_extent_known(r, index[i], e) || rt_chance(r, 50);
    }
    return define(r, s, v);
}

static const RtVar *slice(RandomText *r, Stmts *list) {
    const RtVar *v = rt_some_var(r, RT_FLOAT, 1);
    if (!v) {
        return NULL;
    }
    int64_t dim[RT_RANK];
    int rank = 0;
    Stmt *s = rt_stmt_new(r, list, ST_SLICE);
    s->from[0] = v;
    for (int i = 0; i < v->rank; i++) {
        int64_t n = v->dim[i], what = rt_below(r, 4), lo = rt_below(r, n);
        int k = r->depth > 0 ? (int)rt_below(r, r->depth) : -1;
        if (what == 0 && k >= 0 && r->trip[k] <= n) {
            s->cut[i].lo = -1 - r->loop[k];
            s->cut[i].hi = s->cut[i].lo - 1;
        } else if (what == 0 && v->rank > 1) {
            s->cut[i].lo = lo;
            s->cut[i].hi = lo - 1;
        } else {
            s->cut[i].lo = what == 1 ? lo : 0;
            s->cut[i].hi = what == 1 ? lo + 1 + rt_below(r, n - lo) : n;
            dim[rank++] = s->cut[i].hi - s->cut[i].lo;
        }
    }
    RtVar *to = rt_var_new(r, RT_FLOAT, rank, dim);
    to->size = v->size;
    to->exact = v->exact;
    to->half = v->half;
    return define(r, s, to);
}

static const RtVar *reshaped(RandomText *r, Stmts *list) {
    const RtVar *v = rt_some_var(r, RT_FLOAT, 1);
    if (!v) {
        return NULL;
    }
    int64_t dim[RT_RANK], rest = rt_count(v);
    int rank = 0;
    while (rank < 3 && rest > 1 && rt_chance(r, 80)) {
        int64_t n = 2 + rt_below(r, 4);
        if (rest % n == 0) {
            dim[rank++] = n;
            rest /= n;
        }
    }
    dim[rank++] = rest;
    Stmt *s = rt_stmt_new(r, list, ST_AS);
    s->from[0] = v;
    RtVar *to = rt_var_new(r, RT_FLOAT, rank, dim);
    to->size = v->size;
    to->exact = v->exact;
    to->half = v->half;
    return define(r, s, to);
}

static const RtVar *along_axes(RandomText *r, Stmts *list) {
    static const char *const ops[] = {"sum", "mean", "cumsum", "flip",  "prod",
                                      "max", "min",  "argmax", "argmin"};
    const RtVar *v = rt_some_var(r, RT_FLOAT, 1);
    const char *op = ops[rt_below(r, r->smooth ? 4 : 9)];
    if (!v || v->size > 16) {
        return NULL;
    }
    bool keeps = str_eq(op, "cumsum") || str_eq(op, "flip"), arg = op[0] == 'a';
    Stmt *s = rt_stmt_new(r, list, ST_AXES);
    s->op = op;
    s->from[0] = v;
    s->whole = !keeps && !arg && rt_chance(r, 30);
    s->axis = (int)rt_below(r, v->rank);
    int64_t dim[RT_RANK], n = s->whole ? rt_count(v) : v->dim[s->axis];
    int rank = 0;
    for (int i = 0; i < v->rank && !s->whole; i++) {
        if (keeps || i != s->axis) {
            dim[rank++] = v->dim[i];
        }
    }
    if (str_eq(op, "prod") && (n > 5 || v->size > 2)) {
        s->op = "sum";
    }
    RtVar *to = rt_var_new(r, arg ? RT_INT : RT_FLOAT, rank, dim);
    to->size = str_eq(s->op, "prod")                             ? pow(fmax(v->size, 1), (double)n)
               : str_eq(s->op, "sum") || str_eq(s->op, "cumsum") ? v->size * (double)n
                                                                 : v->size;
    to->hi = n - 1;
    to->ranged = arg;
    return define(r, s, to);
}

static const RtVar *joined(RandomText *r, Stmts *list) {
    const RtVar *a = rt_some_var(r, RT_FLOAT, 1), *b = NULL;
    for (int tries = 0; a && tries < 6; tries++) {
        b = rt_some_var(r, RT_FLOAT, 1);
        b = b && rt_same_shape(a, b) ? b : NULL;
        if (b) {
            break;
        }
    }
    b = b ? b : a;
    if (!a || rt_count(a) * 2 > r->most || a->rank > 2) {
        return NULL;
    }
    Stmt *s = rt_stmt_new(r, list, ST_JOIN);
    bool stack = rt_chance(r, 50);
    s->op = stack ? "stack" : "concat";
    s->from[0] = a;
    s->from[1] = b;
    s->nfrom = 2;
    s->axis = (int)rt_below(r, a->rank + stack);
    int64_t dim[RT_RANK];
    int rank = 0;
    for (int i = 0; i < a->rank; i++) {
        if (stack && i == s->axis) {
            dim[rank++] = 2;
        }
        dim[rank++] = a->dim[i] * (i == s->axis && !stack ? 2 : 1);
    }
    if (stack && s->axis == a->rank) {
        dim[rank++] = 2;
    }
    RtVar *to = rt_var_new(r, RT_FLOAT, rank, dim);
    to->size = fmax(a->size, b->size);
    to->exact = a->exact && b->exact;
    to->half = a->half == b->half ? a->half : TY_ERROR;
    return define(r, s, to);
}

static const RtVar *when(RandomText *r, Stmts *list) {
    static const char *const conditions[] = {"2 > 1", "infer", "not train", "A == 2 and B < C",
                                             "count([1, 2, 3]) == 3"};
    Stmt *s = rt_stmt_new(r, list, ST_WHEN);
    s->op = conditions[rt_below(r, 5)];
    rt_statements(r, &s->body, 1 + (int)rt_below(r, 2));
    return NULL;
}

/* An op of its own over one or two tensors of this scope. */
static const RtVar *called(RandomText *r, Stmts *list) {
    RtVars outer = r->scope;
    if (r->depth >= 2 || r->scope.count == 0) {
        return NULL;
    }
    Stmt *s = ARENA_NEW(r->arena, Stmt);
    s->kind = ST_CALL;
    int n = 1 + (int)rt_below(r, 2), depth = r->depth;
    r->scope = (RtVars){0};
    for (int i = 0; i < n; i++) {
        const RtVar *from = outer.at[rt_below(r, outer.count)];
        if (i == 0 && from->kind != RT_FLOAT) {
            from = NULL;
        }
        if (!from) {
            r->scope = outer;
            return NULL;
        }
        RtVar *p = rt_var_new(r, from->kind, from->rank, from->dim);
        p->size = from->size;
        p->lo = from->lo;
        p->hi = from->hi;
        p->ranged = from->ranged;
        p->exact = from->exact;
        p->half = rt_chance(r, 50) ? from->half : TY_ERROR; /* as its signature says */
        s->from[s->nfrom++] = from;
        VEC_PUSH(r->arena, &s->param, p);
        VEC_PUSH(r->arena, &r->scope, p);
    }
    r->depth = 0;
    rt_statements(r, &s->body, 1 + (int)rt_below(r, 3));
    r->depth = depth;
    s->result = r->scope.at[r->scope.count - 1];
    r->scope = outer;
    if (s->body.count == 0) {
        return NULL;
    }
    s->op = str_printf(r->arena, "f%d", r->nop++);
    text_op(r, s->op, s);
    RtVar *v = rt_var_new(r, s->result->kind, s->result->rank, s->result->dim);
    v->size = s->result->size;
    v->lo = s->result->lo;
    v->hi = s->result->hi;
    v->ranged = false;
    v->exact = s->result->exact;
    v->half = s->result->half;
    VEC_PUSH(r->arena, list, s);
    return define(r, s, v);
}

void rt_statements(RandomText *r, Stmts *list, int n) {
    for (int i = 0; i < n && r->budget > 0; i++) {
        r->budget--;
        const RtVar *v = rt_some_var(r, RT_FLOAT, 0);
        switch (rt_below(r, r->elem == TY_F32 ? 16 : 15)) {
        case 0:
        case 1: slice(r, list); break;
        case 2: reshaped(r, list); break;
        case 3:
        case 4: along_axes(r, list); break;
        case 5: joined(r, list); break;
        case 6:
        case 7: rt_loop(r, list); break;
        case 8:
            if (rt_chance(r, 50)) {
                when(r, list);
            }
            break;
        case 9: called(r, list); break;
        case 15: rounded(r, list); break;
        case 10:
        case 11:
            if (v) {
                rt_point(r, list, v, 32);
            }
            break;
        default: indexed(r, list); break;
        }
    }
}

/* ---- entries -------------------------------------------------------------------------------- */

static RtEntry *entry_new(RandomText *r, const char *name) {
    RtEntry *e = ARENA_NEW(r->arena, RtEntry);
    e->name = name;
    r->scope = (RtVars){0};
    r->depth = 0;
    r->work = 1;
    for (int i = 0, n = 2 + (int)rt_below(r, 2); i < n; i++) {
        int64_t dim[RT_RANK];
        int rank = i == 0 ? 2 : (int)rt_below(r, 4);
        for (int k = 0; k < rank; k++) {
            dim[k] = some_extent(r);
        }
        RtVar *v = rt_var_new(r, RT_FLOAT, rank, dim);
        v->exact = true;
        v->half = rank > 0 ? rt_half(r, 25) : TY_ERROR;
        VEC_PUSH(r->arena, &e->input, v);
        VEC_PUSH(r->arena, &r->scope, v);
    }
    if (!r->smooth) {
        int64_t dim[1] = {some_extent(r)};
        RtVar *v = rt_var_new(r, RT_INT, 1, dim);
        v->hi = 1 + rt_below(r, 5);
        v->ranged = true;
        VEC_PUSH(r->arena, &e->input, v);
        VEC_PUSH(r->arena, &r->scope, v);
    }
    return e;
}

static void entry_text(RandomText *r, const RtEntry *e, const char *results) {
    text_printf(&r->text, "entry %s(", e->name);
    for (int i = 0; i < e->input.count; i++) {
        text_printf(&r->text, "%s%s: ", i ? ", " : "", e->input.at[i]->name);
        text_type(r, e->input.at[i], &r->text);
    }
    text_add(&r->text, ") {\n");
    text_statements(r, &e->body, 4, &r->text);
    text_printf(&r->text, "%s}\n\n", results);
}

static void formula(RandomText *r, int number) {
    r->smooth = false;
    RtEntry *e = entry_new(r, str_printf(r->arena, "formula%d", number));
    rt_statements(r, &e->body, r->budget);
    Text results = {.arena = r->arena};
    text_add(&results, "    return ");
    for (int i = r->scope.count - 1; i >= e->input.count && e->result.count < 6; i--) {
        const RtVar *v = r->scope.at[i];
        text_printf(&results, "%sr%d = %s", e->result.count ? ", " : "", e->result.count, v->name);
        VEC_PUSH(r->arena, &e->result, v);
    }
    text_add(&results, ";\n");
    if (e->result.count > 0) {
        entry_text(r, e, results.at);
        VEC_PUSH(r->arena, &r->entry, e);
    }
}

static void smooth(RandomText *r, int number) {
    r->smooth = true;
    RtEntry *e = entry_new(r, str_printf(r->arena, "smooth%d", number));
    rt_statements(r, &e->body, r->budget);
    Text results = {.arena = r->arena};
    text_add(&results, "    total = 0.5");
    int used = 0;
    for (int i = r->scope.count - 1; i >= 0 && used < 4; i--) {
        const RtVar *v = r->scope.at[i];
        if (v->kind == RT_FLOAT) {
            text_printf(&results, " + sin(%smean(%s))", used++ % 2 ? "0.5 * " : "", v->name);
        }
    }
    for (int i = 0; i < e->input.count; i++) { /* each has a derivative */
        text_printf(&results, " + tanh(0.25 * sum(%s))", e->input.at[i]->name);
    }
    text_add(&results, ";\n    return v = total");
    for (int i = 0; i < e->input.count; i++) {
        text_printf(&results, ", d%d = grad(total, %s)", i, e->input.at[i]->name);
    }
    text_add(&results, ";\n");
    entry_text(r, e, results.at);
    VEC_PUSH(r->arena, &r->entry, e);
    e->result.count = 0; /* values that only the evaluator knows */
    r->smooth = false;
}

void random_text(RandomText *r, Arena *arena, uint64_t seed, Elem elem) {
    memset(r, 0, sizeof *r);
    r->arena = arena;
    r->random = random_start(seed);
    r->elem = elem;
    r->most = 120;
    r->ops.arena = r->text.arena = arena;
    text_add(&r->ops, "use nn;\ndim A = 2, B = 3, C = 4, D = 5;\n\n");
    text_add(&r->text, "");
    int n = 1 + (int)rt_below(r, 3);
    for (int i = 0; i < n; i++) {
        r->budget = 4 + (int)rt_below(r, 10);
        if (rt_chance(r, 70)) {
            formula(r, i);
        } else {
            smooth(r, i);
        }
    }
    if (rt_chance(r, 60)) {
        rt_model(r);
    }
    text_addn(&r->ops, r->text.at, r->text.len);
    r->text = r->ops;
}
