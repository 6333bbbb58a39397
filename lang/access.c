/* access: one access is a chain of views over the object, one step an axis:
 *
 *   constant               slice of one element, axis dropped
 *   loop index             a stacked input of the loop (slice, flip, permute outside of it)
 *   a*i + c                pad (border), slice with step, flip for a negative a
 *   a*i + b*k + c, ...     window; more indices split a window's axis again
 *   the same index twice   the diagonal: merge both axes, slice with step n + 1
 *   anything else          gather by an integer tensor, its range proved or clamped
 *
 * The result's axes are in the order that costs no permutation. */
#include "lang/access.h"

#include "lang/arith.h"
#include "lang/dims.h"
#include "lang/evaluation.h"
#include "lang/expr.h"
#include "lang/loop.h"
#include "lang/prelude.h"

#include <math.h>
#include <string.h>

/* --- index expressions ----------------------------------------------------------------------- */

bool access_uses_index(Elab *e, const Ast *ast) {
    if (!ast) {
        return false;
    }
    if (ast->kind == AST_NAME) {
        return notation_find(e, ast->name) != NULL;
    }
    if (ast->kind == AST_INDEXED || ast->kind == AST_FOLD || ast->kind == AST_PACK) {
        return true;
    }
    int first = ast->kind == AST_CALL && ast->kid[0]->kind == AST_NAME ? 1 : 0;
    for (int i = first; i < ast->nkid; i++) {
        if (access_uses_index(e, ast->kid[i])) {
            return true;
        }
    }
    return false;
}

const Value *access_object(Elab *e, const Ast *ast) {
    for (int i = 0; i < e->index->object.count; i++) {
        if (e->index->object.at[i].ast == ast) {
            return e->index->object.at[i].value;
        }
    }
    const Value *v = elab_expr(e, ast);
    v = elab_single(e, ast, v);
    ObjectValue known = {ast, v};
    VEC_PUSH(e->arena, &e->index->object, known);
    return v;
}

static bool affine_value(const Value *v, Affine *out) {
    if (v->kind == V_INT) {
        out->c = v->integer;
        return true;
    }
    if (v->kind == V_TENSOR && v->loop) {
        out->loop = v->loop;
        out->loop_coef = 1;
        return true;
    }
    return false;
}

static bool affine_scale(Affine *a, int64_t by) {
    const int64_t limit = (int64_t)1 << 40;
    a->c *= by;
    a->loop_coef *= by;
    if (a->loop_coef == 0) {
        a->loop = NULL;
    }
    int n = 0;
    for (int i = 0; i < a->n; i++) {
        a->term[i].coef *= by;
        if (a->term[i].coef != 0) {
            a->term[n++] = a->term[i];
        }
    }
    a->n = n;
    return a->c < limit && a->c > -limit;
}

static bool affine_add(Affine *a, const Affine *b) {
    if (a->loop && b->loop && a->loop != b->loop) {
        return false;
    }
    a->c += b->c;
    a->loop_coef += b->loop_coef;
    a->loop = a->loop_coef == 0 ? NULL : a->loop ? a->loop : b->loop;
    for (int i = 0; i < b->n; i++) {
        int k = 0;
        while (k < a->n && a->term[k].ix != b->term[i].ix) {
            k++;
        }
        if (k == MD_RANK) {
            return false;
        }
        if (k == a->n) {
            a->term[a->n++] = (Term){b->term[i].ix, 0};
        }
        a->term[k].coef += b->term[i].coef;
    }
    return affine_scale(a, 1) || true;
}

bool access_affine(Elab *e, const Ast *ast, Affine *out) {
    *out = (Affine){0};
    if (ast->kind == AST_NUMBER) {
        bool fits = (ast->flags & AST_INTEGER) != 0 && ast->number < 1e12;
        out->c = fits ? (int64_t)ast->number : 0;
        return fits;
    }
    if (ast->kind == AST_NAME) {
        Index *ix = notation_find(e, ast->name);
        if (ix) {
            out->n = 1;
            out->term[0] = (Term){ix, 1};
            return true;
        }
        return affine_value(access_object(e, ast), out);
    }
    if (ast->kind == AST_UNARY && ast->op == AO_NEG) {
        return access_affine(e, ast->kid[0], out) && affine_scale(out, -1);
    }
    if (ast->kind == AST_BINARY && (ast->op == AO_ADD || ast->op == AO_SUB || ast->op == AO_MUL)) {
        Affine b;
        if (!access_affine(e, ast->kid[0], out) || !access_affine(e, ast->kid[1], &b)) {
            return false;
        }
        if (ast->op == AO_MUL) {
            bool left = out->n == 0 && !out->loop, right = b.n == 0 && !b.loop;
            if (!left && !right) {
                return false;
            }
            int64_t by = right ? b.c : out->c;
            if (!right) {
                *out = b;
            }
            return affine_scale(out, by);
        }
        return (ast->op == AO_ADD || affine_scale(&b, -1)) && affine_add(out, &b);
    }
    if (access_uses_index(e, ast)) {
        return false;
    }
    return affine_value(access_object(e, ast), out);
}

/* --- the access at hand ---------------------------------------------------------------------- */

typedef enum { AXIS_CONST, AXIS_LOOP, AXIS_AFFINE, AXIS_DATA, AXIS_KEEP, AXIS_RANGE } AxisKind;

typedef struct {
    AxisKind kind;
    const Ast *at;
    int number; /* of the object's axis */
    Dim dim;
    Affine affine;
    const Value *data;
    int64_t lo, extent; /* RANGE */
} AxisUse;

/* What an axis of the node under construction stands for. */
typedef struct {
    Index *ix;    /* an index, or */
    AxisUse *use; /* an axis that is still to be treated or stays */
} Label;

typedef struct {
    Elab *e;
    const Ast *ast;
    Node *node;
    Label label[2 * MD_RANK];
    int rank;
    Border border;
    double value;
} Access;

static const char *object_name(Access *a) {
    const char *path = elab_path(a->e, a->ast->kid[0]);
    return path ? str_printf(a->e->arena, "'%s'", path) : "the object";
}

static int place_of(const Access *a, const AxisUse *use) {
    for (int i = 0; i < a->rank; i++) {
        if (a->label[i].use == use) {
            return i;
        }
    }
    BUG("an axis of an access is lost");
}

static void label_remove(Access *a, int at) {
    memmove(&a->label[at], &a->label[at + 1], sizeof a->label[0] * (size_t)(a->rank - at - 1));
    a->rank--;
}

static void label_insert(Access *a, int at, Label label) {
    memmove(&a->label[at + 1], &a->label[at], sizeof a->label[0] * (size_t)(a->rank - at));
    a->label[at] = label;
    a->rank++;
}

static bool outside(Access *a, const AxisUse *use, int64_t lo, int64_t hi) {
    elab_error(a->e, use->at->loc, 382,
               "this index runs over %lld..%lld, but axis %d of %s has extent "
               "%s",
               (long long)lo, (long long)hi + 1, use->number, object_name(a),
               dim_text(a->e->arena, use->dim));
    diag_hint(&a->e->c->diag,
              "a border gives the values outside: x[...] else 0, else edge, else wrap");
    return false;
}

/* Makes positions lo..hi (inclusive) of the axis at `at` legal: pads as the border says. Gives the
 * position of the old element 0. */
static bool pad_axis(Access *a, const AxisUse *use, int at, int64_t lo, int64_t hi, int64_t *zero) {
    int64_t n = a->node->type.dim[at], before[MD_RANK] = {0}, after[MD_RANK] = {0};
    *zero = 0;
    if (lo >= 0 && hi < n) {
        return true;
    }
    if (a->border == BORDER_NONE) {
        return outside(a, use, lo, hi);
    }
    before[at] = lo < 0 ? -lo : 0;
    after[at] = hi >= n ? hi - n + 1 : 0;
    double elements = 1;
    for (int i = 0; i < a->rank; i++) {
        elements *= (double)(a->node->type.dim[i] + before[i] + after[i]);
    }
    if (elements > 1e13) {
        return outside(a, use, lo, hi);
    }
    a->node = node_pad(a->e->g, a->node, before, after, a->border, a->value);
    *zero = before[at];
    return true;
}

/* Positions c + coef * i, i < n, of the axis at `at`. */
static bool slice_axis(Access *a, const AxisUse *use, int at, int64_t c, int64_t coef, int64_t n) {
    int64_t last = c + coef * (n - 1), zero;
    int64_t lo = coef > 0 ? c : last, hi = coef > 0 ? last : c;
    if (!pad_axis(a, use, at, lo, hi, &zero)) {
        return false;
    }
    a->node = node_slice_axis(a->e->g, a->node, at, lo + zero, n, coef > 0 ? coef : -coef);
    if (coef < 0 && n > 1) {
        a->node = node_flip(a->e->g, a->node, 1u << at);
    }
    return true;
}

static bool const_axis(Access *a, AxisUse *use) {
    int at = place_of(a, use);
    int64_t zero, c = use->affine.c;
    if (!pad_axis(a, use, at, c, c, &zero)) {
        return false;
    }
    a->node = node_index_axis(a->e->g, a->node, at, c + zero);
    label_remove(a, at);
    return true;
}

static bool encloses(const Region *outer, const Region *inner) {
    for (; inner; inner = inner->up) {
        if (inner == outer) {
            return true;
        }
    }
    return false;
}

/* The index of an enclosing loop: this iteration's slice of a stack made outside of the loop. */
static bool loop_axis(Access *a, AxisUse *use) {
    const LoopScope *loop = use->affine.loop;
    int at = place_of(a, use);
    Region *before = graph_enter(a->e->g, loop->outer);
    bool ok = slice_axis(a, use, at, use->affine.c, use->affine.loop_coef, loop->trip.size);
    if (ok) {
        int map[MD_RANK];
        map[0] = at;
        for (int i = 0, k = 1; i < a->rank; i++) {
            if (i != at) {
                map[k++] = i;
            }
        }
        a->node = node_permute(a->e->g, a->node, map);
    }
    graph_leave(a->e->g, before);
    if (!ok) {
        return false;
    }
    a->node = loop_xs(loop->builder, a->node);
    label_remove(a, at);
    return true;
}

/* Two or more indices in one axis. Terms are in order of binding: the outermost is the count of the
 * window, the rest its taps; three or more split the taps again. */
static bool window_axis(Access *a, const AxisUse *use, int at, Affine f) {
    Graph *g = a->e->g;
    if (f.n == 1) {
        a->label[at] = (Label){f.term[0].ix, NULL};
        return slice_axis(a, use, at, f.c, f.term[0].coef, f.term[0].ix->extent.size);
    }
    for (int i = 1; i < f.n; i++) {
        for (int k = i; k > 0 && f.term[k - 1].ix->seq > f.term[k].ix->seq; k--) {
            Term swap = f.term[k];
            f.term[k] = f.term[k - 1];
            f.term[k - 1] = swap;
        }
    }
    int64_t lo = f.c, hi = f.c;
    for (int i = 0; i < f.n; i++) {
        int64_t last = f.term[i].coef * (f.term[i].ix->extent.size - 1);
        lo += last < 0 ? last : 0;
        hi += last > 0 ? last : 0;
    }
    int64_t zero = 0;
    bool inside = lo >= 0 && hi < a->node->type.dim[at];
    Border border = inside ? BORDER_NONE : a->border;
    if (!inside && border != BORDER_VALUE && !pad_axis(a, use, at, lo, hi, &zero)) {
        return false;
    }
    if (border != BORDER_VALUE) {
        border = BORDER_NONE;
    }
    Term first = f.term[0];
    int64_t n = first.ix->extent.size;
    if (a->rank >= MD_RANK) {
        elab_error(a->e, use->at->loc, 327, "this needs more than %d axes and indices together",
                   MD_RANK);
        return false;
    }
    if (f.n == 2) {
        Term second = f.term[1];
        a->node = node_window(g, a->node, at, first.coef, second.coef, -(f.c + zero), n,
                              second.ix->extent.size, border, border == BORDER_NONE ? 0 : a->value);
        a->label[at] = (Label){first.ix, NULL};
        label_insert(a, at + 1, (Label){second.ix, NULL});
        return true;
    }
    /* The taps run over all positions that the rest can reach, from its least one. */
    Affine rest = {.n = f.n - 1};
    int64_t least = 0, most = 0;
    for (int i = 1; i < f.n; i++) {
        rest.term[i - 1] = f.term[i];
        int64_t last = f.term[i].coef * (f.term[i].ix->extent.size - 1);
        least += last < 0 ? last : 0;
        most += last > 0 ? last : 0;
    }
    a->node = node_window(g, a->node, at, first.coef, 1, -(f.c + zero + least), n, most - least + 1,
                          border, border == BORDER_NONE ? 0 : a->value);
    a->label[at] = (Label){first.ix, NULL};
    label_insert(a, at + 1, (Label){NULL, NULL});
    rest.c = -least;
    return window_axis(a, use, at + 1, rest);
}

/* Two axes with one index: their diagonal. */
static void diagonal(Access *a, int i, int k) {
    int map[MD_RANK], n = 0;
    int64_t dim[MD_RANK], extent = a->node->type.dim[i];
    for (int j = 0; j < a->rank; j++) {
        if (j != i && j != k) {
            map[n++] = j;
        }
    }
    map[n] = i;
    map[n + 1] = k;
    Label rest[2 * MD_RANK];
    a->node = node_permute(a->e->g, a->node, map);
    for (int j = 0; j < n; j++) {
        rest[j] = a->label[map[j]];
        dim[j] = a->node->type.dim[j];
    }
    rest[n] = a->label[i];
    dim[n] = extent * a->node->type.dim[n + 1];
    a->node = node_reshape(a->e->g, a->node, n + 1, dim);
    a->node = node_slice_axis(a->e->g, a->node, n, 0, extent, a->node->type.dim[n] / extent + 1);
    memcpy(a->label, rest, sizeof *rest * (size_t)(n + 1));
    a->rank = n + 1;
}

static void diagonals(Access *a) {
    for (int i = 0; i < a->rank; i++) {
        for (int k = i + 1; k < a->rank; k++) {
            if (a->label[i].ix && a->label[i].ix == a->label[k].ix) {
                diagonal(a, i, k);
                i = -1;
                break;
            }
        }
    }
}

/* --- data-dependent indices ------------------------------------------------------------------ */

static const Value *data_index(Access *a, AxisUse *use, const Value **mask) {
    Elab *e = a->e;
    Loc loc = use->at->loc;
    const Value *v = use->data;
    int64_t n = use->dim.size;
    if (v->ranged && v->lo >= 0 && v->hi <= n) {
        return v;
    }
    if (a->border == BORDER_NONE) {
        if (v->ranged) {
            outside(a, use, v->lo, v->hi - 1);
            return &value_poison;
        }
        elab_error(e, loc, 384,
                   "this index is data, and nothing says that it stays inside axis %d of "
                   "%s (0..%lld)",
                   use->number, object_name(a), (long long)n);
        diag_hint(&e->c->diag,
                  "declare a range where it enters ('in 0..%lld'), or write "
                  "clamp(i, 0, %lld)",
                  (long long)n, (long long)(n - 1));
        return &value_poison;
    }
    const Value *last = value_int(e->scratch, n - 1), *zero = value_int(e->scratch, 0);
    if (a->border == BORDER_WRAP) {
        return arith_divide(e, loc, true, v, value_int(e->scratch, n));
    }
    if (a->border == BORDER_VALUE) {
        const Value *in = arith_binary(e, loc, AO_AND, arith_binary(e, loc, AO_GE, v, zero),
                                       arith_binary(e, loc, AO_LE, v, last));
        *mask = *mask ? arith_binary(e, loc, AO_AND, *mask, in) : in;
    }
    return arith_minmax(e, loc, false, arith_minmax(e, loc, true, v, zero), last);
}

static const Value *gather(Access *a, AxisUse *use, int nuse) {
    Elab *e = a->e;
    const Value *mask = NULL, *at = NULL;
    int data[MD_RANK], ndata = 0;
    int64_t merged = 1;
    for (int i = 0; i < nuse; i++) {
        if (use[i].kind != AXIS_DATA) {
            continue;
        }
        const Value *v = data_index(a, &use[i], &mask);
        if (!elab_ok(v)) {
            return v;
        }
        data[ndata++] = place_of(a, &use[i]);
        if (at) {
            Loc loc = use[i].at->loc;
            const Value *n = value_int(e->scratch, use[i].dim.size);
            at = arith_binary(e, loc, AO_ADD, arith_binary(e, loc, AO_MUL, at, n), v);
        } else {
            at = v;
        }
        merged *= use[i].dim.size;
    }
    if (ndata == 0) {
        Value *r = ARENA_NEW(e->scratch, Value);
        r->kind = V_TENSOR;
        r->node = a->node;
        r->nspan = a->rank;
        for (int i = 0; i < a->rank; i++) {
            r->span[i] = a->label[i].ix;
        }
        return r;
    }
    /* The object as [batch, merged, rest]: batch axes are indices that `at` spans too. */
    int map[MD_RANK], n = 0, nbatch = 0;
    Index *span[2 * MD_RANK];
    for (int pass = 0; pass < 3; pass++) {
        if (pass == 1) {
            for (int i = 0; i < ndata; i++) {
                map[n++] = data[i];
            }
            continue;
        }
        for (int i = 0; i < a->rank; i++) {
            bool shared = false;
            for (int k = 0; k < at->nspan; k++) {
                shared = shared || at->span[k] == a->label[i].ix;
            }
            bool is_data = false;
            for (int k = 0; k < ndata; k++) {
                is_data = is_data || data[k] == i;
            }
            if (!is_data && shared == (pass == 0)) {
                if (pass == 0) {
                    span[n] = a->label[i].ix;
                }
                map[n++] = i;
            }
        }
        if (pass == 0) {
            nbatch = n;
        }
    }
    Node *x = node_permute(e->g, a->node, map);
    int64_t dim[MD_RANK];
    int rank = 0;
    for (int i = 0; i < nbatch; i++) {
        dim[rank++] = x->type.dim[i];
    }
    dim[rank++] = merged;
    for (int i = nbatch + ndata; i < n; i++) {
        dim[rank++] = x->type.dim[i];
    }
    x = node_reshape(e->g, x, rank, dim);
    int nspan = nbatch;
    for (int i = 0; i < at->nspan; i++) {
        bool shared = false;
        for (int k = 0; k < nbatch; k++) {
            shared = shared || span[k] == at->span[i];
        }
        if (!shared) {
            span[nspan++] = at->span[i];
        }
    }
    if (nspan + rank - nbatch - 1 > MD_RANK) {
        return elab_error(e, a->ast->loc, 327, "this needs more than %d axes and indices together",
                          MD_RANK);
    }
    Node *index = arith_spread(e, at, span, nspan, 0, NULL);
    Value *r = ARENA_NEW(e->scratch, Value);
    r->kind = V_TENSOR;
    r->node = node_gather(e->g, x, index, nbatch);
    for (int i = nbatch + ndata; i < n; i++) {
        span[nspan++] = a->label[map[i]].ix;
    }
    r->nspan = nspan;
    memcpy(r->span, span, sizeof *span * (size_t)nspan);
    if (mask) {
        const Value *other = value_scalar(e->scratch, node_const(e->g, value_elem(r), a->value));
        return arith_select(e, a->ast->loc, mask, r, other);
    }
    return r;
}

/* --- putting it together --------------------------------------------------------------------- */

/* Is x one of the values of this type? */
static bool elem_holds(Elem elem, double x) {
    if (elem_is_float(elem)) {
        return true;
    }
    int bits = elem == TY_BOOL ? 1 : 8 * (int)elem_bytes(elem);
    double least = elem_is_signed(elem) ? -ldexp(1, bits - 1) : 0, end = least + ldexp(1, bits);
    return x >= least && x < end && x == floor(x);
}

static bool read_border(Access *a, Elem elem) {
    Elab *e = a->e;
    const Ast *ast = a->ast->kid[2];
    if (!ast) {
        return true;
    }
    if (ast->kind == AST_NAME && (str_eq(ast->name, "edge") || str_eq(ast->name, "wrap"))) {
        a->border = str_eq(ast->name, "edge") ? BORDER_EDGE : BORDER_WRAP;
        return true;
    }
    bool word = ast->kind == AST_NAME && !scope_find(e->scope, ast->name) &&
                !file_find(e->scope->file, ast->name) && !prelude_has_constant(ast->name);
    const Value *v = word ? NULL : elab_expr(e, ast);
    if (v && !elab_ok(v)) {
        return false;
    }
    if (!v || !value_is_number(v)) {
        elab_error(e, ast->loc, 386, "a border is a number, 'edge' or 'wrap'");
        return false;
    }
    a->border = BORDER_VALUE;
    a->value = value_number(v);
    if (!elem_holds(elem, a->value)) {
        elab_error(e, ast->loc, 388, "a border of %g does not fit elements of type %s", a->value,
                   elem_name(elem));
        return false;
    }
    return true;
}

static bool is_runtime_row(const Elab *e, const AxisUse *use) {
    return e->entry && e->entry->evaluation && use->dim.batch != 0;
}

/* What the list says of each axis. */
static bool read_axes(Access *a, const Value *v, AxisUse *use, bool slices) {
    Elab *e = a->e;
    const Ast *list = a->ast->kid[1];
    int fixed = 0, packs = 0, axis = 0;
    for (int i = 0; i < list->nkid; i++) {
        packs += list->kid[i]->kind == AST_PACK;
        fixed += list->kid[i]->kind != AST_PACK;
    }
    if (packs > 1) {
        elab_error(e, a->ast->loc, 370, "'...' may stand once in an index list");
        return false;
    }
    if (packs ? v->rank < fixed : v->rank != fixed) {
        elab_error(e, a->ast->loc, 387, "%s has %d axes %s, but %d indices are written",
                   object_name(a), v->rank, shape_text(e->arena, v->rank, v->dim), fixed);
        return false;
    }
    IndexScope *pack = NULL;
    for (IndexScope *s = e->index->scope; s && !pack; s = s->up) {
        pack = s->has_pack ? s : NULL;
    }
    for (int i = 0; i < list->nkid; i++) {
        const Ast *entry = list->kid[i];
        int n = entry->kind == AST_PACK ? v->rank - fixed : 1;
        for (int k = 0; k < n; k++, axis++) {
            AxisUse *u = &use[axis];
            *u = (AxisUse){.at = entry, .number = axis, .dim = v->dim[axis]};
            if (entry->kind == AST_COLON || (slices && entry->kind == AST_PACK)) {
                u->kind = AXIS_KEEP;
            } else if (entry->kind == AST_PACK) {
                if (!pack || !pack->pack_known || k >= pack->npack) {
                    elab_error(e, entry->loc, 374,
                               "'...' is not bound here: put it on the left side or in the "
                               "brackets of a fold");
                    return false;
                }
                u->kind = AXIS_AFFINE;
                u->affine.n = 1;
                u->affine.term[0] = (Term){pack->pack[k], 1};
            } else if (entry->kind == AST_RANGE_EXPR) {
                int64_t lo, hi;
                if (!elab_int(e, entry->kid[0], "the start of a slice", &lo) ||
                    !elab_int(e, entry->kid[1], "the end of a slice", &hi)) {
                    return false;
                }
                if (lo < 0 || hi < lo || hi > u->dim.size) {
                    elab_error(e, entry->loc, 389,
                               "the slice %lld..%lld leaves axis %d of %s (0..%lld)", (long long)lo,
                               (long long)hi, axis, object_name(a), (long long)u->dim.size);
                    return false;
                }
                u->kind = AXIS_RANGE;
                u->lo = lo;
                u->extent = hi - lo;
            } else if (access_affine(e, entry, &u->affine)) {
                u->kind = u->affine.n > 0 ? AXIS_AFFINE : u->affine.loop ? AXIS_LOOP : AXIS_CONST;
            } else {
                u->kind = AXIS_DATA;
            }
            for (int t = 0; t < u->affine.n; t++) {
                if (!u->affine.term[t].ix->known) {
                    return false; /* said already */
                }
            }
            bool plain = u->kind == AXIS_KEEP ||
                         (u->kind == AXIS_AFFINE && u->affine.n == 1 && !u->affine.loop &&
                          u->affine.c == 0 && u->affine.term[0].coef == 1 &&
                          u->affine.term[0].ix->extent.size == u->dim.size);
            if (!plain && is_runtime_row(e, u)) {
                elab_error(e, entry->loc, 552,
                           "an evaluation may run on fewer rows than the batch, so "
                           "single rows cannot be picked from the batch axis");
                return false;
            }
            if (slices && (u->kind == AXIS_AFFINE || u->kind == AXIS_DATA)) {
                elab_error(e, entry->loc, 390,
                           "a list with ':' or '..' takes constants and loop indices "
                           "beside them");
                return false;
            }
        }
    }
    return true;
}

/* A loop's index picks from a stack only if the object exists outside of the loop; with indices
 * beside it, or inside, it is data. */
static bool settle_loops(Access *a, AxisUse *use, int n) {
    Elab *e = a->e;
    for (int depth = 0, left = n; left > 0; depth++, left--) {
        /* the outermost loop first: its slice still encloses the inner ones */
        AxisUse *best = NULL;
        for (int i = 0; i < n; i++) {
            if (use[i].kind == AXIS_LOOP && !use[i].data &&
                (!best || use[i].affine.loop->depth < best->affine.loop->depth)) {
                best = &use[i];
            }
        }
        if (!best) {
            break;
        }
        if (encloses(a->node->region, best->affine.loop->outer)) {
            if (!loop_axis(a, best)) {
                return false;
            }
            best->kind = AXIS_KEEP; /* gone from the labels */
            best->data = &value_poison;
        } else {
            best->kind = AXIS_DATA;
        }
    }
    for (int i = 0; i < n; i++) {
        if (use[i].kind == AXIS_AFFINE && use[i].affine.loop) {
            use[i].kind = AXIS_DATA;
        }
        if (use[i].kind != AXIS_DATA) {
            continue;
        }
        const Value *v = elab_expr(e, use[i].at);
        if (!elab_ok(v) || !elab_plain(e, use[i].at->loc, v)) {
            return false;
        }
        if (v->kind != V_TENSOR || !elem_is_int(value_elem(v)) || v->rank > 0) {
            elab_error(e, use[i].at->loc, 391, "an index is an integer, found %s",
                       value_text(e->arena, v));
            return false;
        }
        use[i].data = v;
    }
    return true;
}

/* Slices: what is left are the object's own axes. */
static const Value *sliced(Access *a, const Value *v) {
    Value *r = ARENA_NEW(a->e->scratch, Value);
    r->kind = V_TENSOR;
    r->node = a->node;
    r->ranged = v->ranged;
    r->lo = v->lo;
    r->hi = v->hi;
    for (int i = 0; i < a->rank; i++) {
        if (a->label[i].ix) {
            r->span[r->nspan++] = a->label[i].ix;
        } else {
            const AxisUse *use = a->label[i].use;
            Dim dim = use->dim;
            r->dim[r->rank++] = use->kind == AXIS_RANGE && use->extent != dim.size
                                    ? (Dim){.size = use->extent}
                                    : dim;
        }
    }
    return r;
}

const Value *access_eval(Elab *e, const Ast *indexed) {
    const Value *v = access_uses_index(e, indexed->kid[0]) ? elab_expr(e, indexed->kid[0])
                                                           : access_object(e, indexed->kid[0]);
    if (!elab_ok(v)) {
        return v;
    }
    if (v->kind == V_LIST && indexed->kid[1]->nkid == 1) { /* shape(x)[0] */
        int64_t at;
        if (!elab_int(e, indexed->kid[1]->kid[0], "the place in a list", &at)) {
            return &value_poison;
        }
        if (at < 0 || at >= v->count) {
            return elab_error(e, indexed->kid[1]->loc, 392,
                              "there is no item %lld: the list has %d", (long long)at, v->count);
        }
        return v->item[at];
    }
    if (v->kind != V_TENSOR) {
        return elab_error(e, indexed->kid[0]->loc, 393, "%s cannot be indexed", value_kind_text(v));
    }
    if (!elab_plain(e, indexed->loc, v)) {
        return &value_poison;
    }
    Access a = {.e = e, .ast = indexed, .node = v->node, .rank = v->nspan + v->rank};
    AxisUse use[MD_RANK];
    bool slices = !notation_is_scalar_list(indexed->kid[1]);
    if (!read_border(&a, value_elem(v)) || !read_axes(&a, v, use, slices)) {
        return &value_poison;
    }
    for (int i = 0; i < a.rank; i++) {
        a.label[i] = i < v->nspan ? (Label){v->span[i], NULL} : (Label){NULL, &use[i - v->nspan]};
    }
    if (!settle_loops(&a, use, v->rank)) {
        return &value_poison;
    }
    for (int i = 0; i < v->rank; i++) {
        bool ok = true;
        if (use[i].kind == AXIS_CONST) {
            ok = const_axis(&a, &use[i]);
        } else if (use[i].kind == AXIS_AFFINE) {
            ok = window_axis(&a, &use[i], place_of(&a, &use[i]), use[i].affine);
        } else if (use[i].kind == AXIS_RANGE) {
            a.node =
                node_slice_axis(e->g, a.node, place_of(&a, &use[i]), use[i].lo, use[i].extent, 1);
        }
        if (!ok) {
            return &value_poison;
        }
    }
    if (slices) {
        return sliced(&a, v);
    }
    diagonals(&a);
    const Value *r = gather(&a, use, v->rank);
    bool widened =
        a.border == BORDER_VALUE && (a.value < (double)v->lo || a.value >= (double)v->hi);
    return elab_ok(r) && v->ranged && !widened ? value_ranged(e->scratch, r, v->lo, v->hi) : r;
}
