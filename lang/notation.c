/* notation: binding of indices and their extents.
 *
 * A statement is walked once before it is elaborated: objects are evaluated (once; their values are
 * kept by syntax node), folds get their indices, and every use of an index as an axis is noted.
 * From the uses the extents follow; then the expression is evaluated like any other. */
#include "lang/notation.h"

#include "lang/access.h"
#include "lang/arith.h"
#include "lang/dims.h"
#include "lang/evaluation.h"
#include "lang/expr.h"
#include "lang/fold.h"

#include <string.h>

IndexNotation *notation_save(Elab *e) {
    IndexNotation *before = e->index;
    e->index = NULL;
    return before;
}

void notation_restore(Elab *e, IndexNotation *before) {
    e->index = before;
}

Index *notation_find(Elab *e, const char *name) {
    for (IndexScope *s = e->index ? e->index->scope : NULL; s; s = s->up) {
        for (int i = 0; i < s->index.count; i++) {
            if (str_eq(s->index.at[i]->name, name)) {
                return s->index.at[i];
            }
        }
    }
    return NULL;
}

const Value *notation_value(Elab *e, Index *ix) {
    if (!ix->known) {
        e->index->failed = true;
        return &value_poison;
    }
    Type type = {.elem = TY_I32, .rank = 1, .dim = {ix->extent.size}};
    Value *v = ARENA_NEW(e->scratch, Value);
    v->kind = V_TENSOR;
    v->node = node_iota(e->g, type, 0);
    value_axes(e->scratch, v, 1, 0).span[0] = ix;
    v->nspan = 1;
    v->ranged = true;
    v->hi = ix->extent.size;
    return v;
}

bool notation_is_scalar_list(const Ast *index) {
    for (int i = 0; i < index->nkid; i++) {
        if (index->kid[i]->kind == AST_COLON || index->kid[i]->kind == AST_RANGE_EXPR) {
            return false;
        }
    }
    return true;
}

static Index *index_new(Elab *e, const char *name, Loc loc, int seq) {
    Index *ix = ARENA_NEW(e->scratch, Index);
    ix->name = name;
    ix->loc = loc;
    ix->seq = seq;
    return ix;
}

static bool mentions(const Ast *ast, const char *name) {
    bool found = ast && ast->kind == AST_NAME && str_eq(ast->name, name);
    for (int i = 0; ast && !found && i < ast->nkid; i++) {
        found = mentions(ast->kid[i], name);
    }
    return found;
}

/* Is the entry the place of the loop's iterations, `t` or, from the last to the first, `n - 1 - t`?
 */
static bool loop_place(Elab *e, const Ast *entry, LoopAxis *axis) {
    const LoopScope *loop = e->loop;
    if (!loop->index_name || !mentions(entry, loop->index_name)) {
        return false;
    }
    Affine f;
    int64_t n = loop->trip.size;
    bool affine = access_affine(e, entry, &f) && f.n == 0 && f.loop == loop;
    if (affine && axis->position >= 0) {
        elab_error(e, entry->loc, 372, "index '%s' is bound twice", loop->index_name);
        e->index->failed = true;
        return true;
    }
    axis->reversed = affine && f.loop_coef == -1 && f.c == n - 1;
    if (!affine || (!axis->reversed && (f.loop_coef != 1 || f.c != 0))) {
        elab_error(e, entry->loc, 667,
                   "the iterations of the loop fill 0..%lld of their axis, each place once: '%s', "
                   "or '%s - 1 - %s' from the end",
                   (long long)n, loop->index_name,
                   loop->trip.name ? loop->trip.name->name
                                   : str_printf(e->arena, "%lld", (long long)n),
                   loop->index_name);
        e->index->failed = true;
    }
    return true;
}

/* Binds the list on a left side or in the brackets of a fold. `loop` (emit): the place of the
 * loop's own index, which is no new index. */
static IndexScope *bind_indices(Elab *e, const Ast *list, LoopAxis *loop) {
    IndexScope *scope = ARENA_NEW(e->scratch, IndexScope);
    scope->up = e->index->scope;
    for (int i = 0; i < list->nkid; i++) {
        const Ast *entry = list->kid[i], *name = entry;
        const Ast *written = NULL;
        if (entry->kind == AST_PACK) {
            if (scope->has_pack) {
                elab_error(e, entry->loc, 370, "'...' may stand once in an index list");
                e->index->failed = true;
                continue;
            }
            scope->has_pack = true;
            scope->pack_loc = entry->loc;
            scope->npack = e->next_index;
            e->next_index += MD_RANK;
            VEC_PUSH(e->scratch, &scope->order, entry);
            continue;
        }
        if (entry->kind == AST_BINARY && entry->op == AO_LT && entry->kid[0]->kind == AST_NAME) {
            name = entry->kid[0];
            written = entry->kid[1];
        }
        if (loop && !written && loop_place(e, entry, loop)) {
            loop->position = scope->order.count;
            continue;
        }
        if (name->kind != AST_NAME) {
            elab_error(e, entry->loc, 371, "an index list binds names: 'i' or 'i < n'");
            if (entry->kind == AST_NUMBER) {
                diag_hint(&e->c->diag,
                          "single elements are not set; the statement defines all: "
                          "y[i] = select(i == %s, a, x[i])",
                          entry->text);
            }
            e->index->failed = true;
            continue;
        }
        bool twice = false;
        for (int k = 0; k < scope->index.count; k++) {
            twice = twice || str_eq(scope->index.at[k]->name, name->name);
        }
        if (twice) {
            elab_error(e, entry->loc, 372, "index '%s' is bound twice", name->name);
            e->index->failed = true;
            continue;
        }
        Index *ix = index_new(e, name->name, name->loc, e->next_index++);
        ix->written = written;
        VEC_PUSH(e->scratch, &scope->index, ix);
        VEC_PUSH(e->scratch, &scope->order, entry);
    }
    return scope;
}

/* --- the walk before ------------------------------------------------------------------------- */

static void walk(Elab *e, const Ast *ast);

static IndexScope *pack_scope(const Elab *e) {
    for (IndexScope *s = e->index->scope; s; s = s->up) {
        if (s->has_pack) {
            return s;
        }
    }
    return NULL;
}

/* Settles how many axes `...` stands for. */
static bool pack_count(Elab *e, IndexScope *scope, int n, const Ast *at) {
    if (!scope->pack_known) {
        int seq = scope->npack; /* reserved when it was bound */
        scope->pack_known = true;
        scope->npack = n;
        for (int i = 0; i < n; i++) {
            scope->pack[i] = index_new(e, "...", scope->pack_loc, seq + i);
        }
        return true;
    }
    if (scope->npack != n) {
        elab_error(e, at->loc, 373, "'...' stands for %d axes in this statement, but for %d here",
                   scope->npack, n);
        e->index->failed = true;
        return false;
    }
    return true;
}

static void note_use(Elab *e, Index *ix, IndexUse use) {
    ix->seen = true;
    VEC_PUSH(e->scratch, &ix->use, use);
}

static void walk_entry(Elab *e, const Ast *entry, IndexUse use) {
    if (entry->kind == AST_NAME) {
        Index *ix = notation_find(e, entry->name);
        if (ix) {
            use.bare = true;
            note_use(e, ix, use);
        }
        return;
    }
    walk(e, entry);
    Affine a;
    if (access_uses_index(e, entry) && access_affine(e, entry, &a)) {
        for (int i = 0; i < a.n; i++) {
            note_use(e, a.term[i].ix, use);
        }
    }
}

static void walk_indexed(Elab *e, const Ast *ast) {
    const Ast *object = ast->kid[0], *list = ast->kid[1];
    const Value *v = NULL;
    if (access_uses_index(e, object)) {
        walk(e, object);
    } else {
        v = access_object(e, object);
        e->index->failed = e->index->failed || !elab_ok(v);
    }
    bool sized = v && v->kind == V_TENSOR;
    int npack = -1, fixed = 0;
    for (int i = 0; i < list->nkid; i++) {
        fixed += list->kid[i]->kind != AST_PACK;
    }
    int axis = 0;
    for (int i = 0; i < list->nkid; i++) {
        const Ast *entry = list->kid[i];
        IndexUse use = {.border = ast->kid[2] != NULL,
                        .at = entry,
                        .object = object,
                        .number = axis,
                        .scope = e->index->scope};
        if (entry->kind == AST_COLON || entry->kind == AST_RANGE_EXPR) {
            return;
        }
        if (entry->kind != AST_PACK) {
            if (sized && axis < v->rank) {
                use.axis = v->dim[axis];
                use.known = true;
            }
            walk_entry(e, entry, use);
            axis++;
            continue;
        }
        IndexScope *scope = pack_scope(e);
        if (!scope) {
            elab_error(e, entry->loc, 374,
                       "'...' is not bound here: put it on the left side or in the "
                       "brackets of a fold");
            e->index->failed = true;
            return;
        }
        npack = v->rank - fixed;
        /* A second '...' has no axes left; that is said where the value is made. */
        if (!sized || npack < 0 || axis + npack > v->rank || !pack_count(e, scope, npack, entry)) {
            return;
        }
        for (int k = 0; k < npack; k++, axis++) {
            use.bare = use.known = true;
            use.axis = v->dim[axis];
            use.number = axis;
            note_use(e, scope->pack[k], use);
        }
    }
}

static void walk(Elab *e, const Ast *ast) {
    if (!ast) {
        return;
    }
    if (ast->kind == AST_NAME) {
        Index *ix = notation_find(e, ast->name);
        if (ix) {
            ix->seen = true;
        }
        return;
    }
    if (ast->kind == AST_INDEXED) {
        walk_indexed(e, ast);
        return;
    }
    if (ast->kind == AST_FOLD) {
        IndexScope *scope = bind_indices(e, ast->kid[0], NULL), *before = e->index->scope;
        FoldScope fold = {ast, scope};
        VEC_PUSH(e->scratch, &e->index->fold, fold);
        e->index->scope = scope;
        walk(e, ast->kid[1]);
        e->index->scope = before;
        return;
    }
    int first = ast->kind == AST_CALL && ast->kid[0]->kind == AST_NAME ? 1 : 0;
    for (int i = first; i < ast->nkid; i++) {
        walk(e, ast->kid[i]);
    }
}

/* --- extents --------------------------------------------------------------------------------- */

static const char *object_text(Elab *e, const Ast *object) {
    const char *path = elab_path(e, object);
    return path ? str_printf(e->scratch, "'%s'", path) : "this";
}

static void resolve_bare(Elab *e, Index *ix) {
    const IndexUse *first = NULL;
    for (int i = 0; i < ix->use.count; i++) {
        const IndexUse *use = &ix->use.at[i];
        if (!use->bare || !use->known) {
            continue;
        }
        if (!first) {
            first = use;
            ix->extent = use->axis;
            ix->known = true;
            continue;
        }
        if (!dims_agree(ix->extent, use->axis)) {
            elab_error(e, use->at->loc, 375,
                       "index '%s' ranges over %s in axis %d of %s but over %s in "
                       "axis %d of %s",
                       ix->name, dim_text(e->scratch, first->axis), first->number,
                       object_text(e, first->object), dim_text(e->scratch, use->axis), use->number,
                       object_text(e, use->object));
            elab_note_dim(e, first->axis);
            elab_note_dim(e, use->axis);
            if (ix->extent.size == use->axis.size) {
                diag_note(&e->c->diag, LOC_NONE,
                          "the sizes are equal, but declared dimensions are "
                          "compared by name");
            }
            e->index->failed = true;
            return;
        }
        ix->extent = dims_join(ix->extent, use->axis);
    }
}

/* The index as an affine form of those that are bound where it stands. */
static bool use_affine(Elab *e, const IndexUse *use, Affine *a) {
    IndexScope *before = e->index->scope;
    e->index->scope = use->scope;
    bool is = access_affine(e, use->at, a);
    e->index->scope = before;
    return is;
}

/* The largest extent that keeps coef * ix + rest inside the axis, -1 if that is not known. */
static int64_t largest_extent(Elab *e, const Index *ix, const IndexUse *use) {
    Affine a;
    int64_t coef = 0;
    if (!use->known || !use_affine(e, use, &a)) {
        return -1;
    }
    int64_t lo = a.c, hi = a.c;
    if (a.loop) {
        int64_t last = a.loop_coef * (a.loop->trip.size - 1);
        lo += last < 0 ? last : 0;
        hi += last > 0 ? last : 0;
    }
    for (int i = 0; i < a.n; i++) {
        if (a.term[i].ix == ix) {
            coef = a.term[i].coef;
            continue;
        }
        if (!a.term[i].ix->known) {
            return -1;
        }
        int64_t last = a.term[i].coef * (a.term[i].ix->extent.size - 1);
        lo += last < 0 ? last : 0;
        hi += last > 0 ? last : 0;
    }
    int64_t n = coef > 0 ? (use->axis.size - 1 - hi) / coef + 1 : coef < 0 ? lo / -coef + 1 : 0;
    bool start_inside = coef > 0 ? lo >= 0 && hi < use->axis.size : hi < use->axis.size && lo >= 0;
    return start_inside && n > 0 ? n : -1;
}

/* Used only in one affine form, with coefficient 1 or -1 and no border. */
static bool resolve_affine(Elab *e, Index *ix) {
    if (ix->known || ix->written || ix->use.count != 1 || ix->use.at[0].bare ||
        ix->use.at[0].border) {
        return false;
    }
    Affine a;
    if (!use_affine(e, &ix->use.at[0], &a)) {
        return false;
    }
    for (int i = 0; i < a.n; i++) {
        if (a.term[i].ix == ix && a.term[i].coef != 1 && a.term[i].coef != -1) {
            return false;
        }
    }
    int64_t n = largest_extent(e, ix, &ix->use.at[0]);
    if (n < 0) {
        return false;
    }
    ix->extent = (Dim){.size = n};
    ix->known = true;
    return true;
}

static void unresolved(Elab *e, const Index *ix) {
    int64_t n = -1;
    for (int i = 0; i < ix->use.count && n < 0; i++) {
        n = largest_extent(e, ix, &ix->use.at[i]);
    }
    if (!ix->seen) {
        elab_error(e, ix->loc, 394,
                   "index '%s' does not occur on the right side, so its extent must be "
                   "written",
                   ix->name);
    } else {
        elab_error(e, ix->loc, 376, "the extent of index '%s' is not known", ix->name);
    }
    if (n > 0) {
        diag_hint(&e->c->diag, "write it: '%s < %lld' is the largest that stays inside", ix->name,
                  (long long)n);
    } else {
        const Item *dim = NULL;
        for (int i = 0; i < e->root->item.count && !dim; i++) {
            dim = e->root->item.at[i]->kind == AST_DIMS ? e->root->item.at[i] : NULL;
        }
        diag_hint(&e->c->diag, "write it: '%s < n'%s%s", ix->name,
                  dim ? ", where n is a number or a dim such as " : "", dim ? dim->name : "");
    }
}

/* A fold over an index that its body does not use is a mistake. */
static void check_folds(Elab *e) {
    for (int f = 0; f < e->index->fold.count && !e->index->failed; f++) {
        const IndexScope *scope = e->index->fold.at[f].scope;
        for (int i = 0; i < scope->index.count && !e->index->failed; i++) {
            const Index *ix = scope->index.at[i];
            if (!ix->seen) {
                elab_error(e, ix->loc, 377, "index '%s' does not occur in the body of its fold",
                           ix->name);
                diag_hint(&e->c->diag, "the body of sum[..] ends before '+' and '-'; put it in "
                                       "parentheses if it goes on");
                elab_first_in_body(e, 205, ix->name); /* where it goes on, the name is unknown */
                e->index->failed = true;
            }
        }
    }
}

typedef VEC(Index *) IndexList;

static void collect(Elab *e, const IndexScope *scope, IndexList *list) {
    for (int i = 0; i < scope->index.count; i++) {
        VEC_PUSH(e->scratch, list, scope->index.at[i]);
    }
    for (int i = 0; scope->pack_known && i < scope->npack; i++) {
        VEC_PUSH(e->scratch, list, scope->pack[i]);
    }
}

static void resolve_written(Elab *e, Index *ix) {
    IndexNotation *notation = notation_save(e);
    Dim dim;
    if (dims_eval(e, ix->written, &dim)) {
        ix->extent = dim;
        ix->known = true;
    } else {
        notation->failed = true;
    }
    notation_restore(e, notation);
    for (int i = 0; i < ix->use.count; i++) { /* rows of an evaluation stay rows */
        if (ix->use.at[i].bare && ix->use.at[i].axis.size == ix->extent.size &&
            ix->use.at[i].axis.batch) {
            ix->extent.batch = ix->use.at[i].axis.batch;
        }
    }
}

/* Settles every index of the scopes seen; sets `failed` after an error. */
static void resolve(Elab *e, const IndexScope *left) {
    IndexList list = {0};
    if (e->index->failed) {
        return;
    }
    if (left) {
        collect(e, left, &list);
    }
    for (int i = 0; i < e->index->fold.count; i++) {
        collect(e, e->index->fold.at[i].scope, &list);
    }
    for (int i = 0; i < list.count; i++) {
        if (list.at[i]->written) {
            resolve_written(e, list.at[i]);
        } else {
            resolve_bare(e, list.at[i]);
        }
    }
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < list.count; i++) {
            more = resolve_affine(e, list.at[i]) || more;
        }
    }
    check_folds(e);
    for (int i = 0; i < list.count; i++) {
        if (!list.at[i]->known) {
            if (!e->index->failed) {
                unresolved(e, list.at[i]);
            }
            e->index->failed = true;
        }
    }
}

/* --- statements and folds -------------------------------------------------------------------- */

const Value *notation_axes(Elab *e, const Value *v, Value *r, Index *const *all) {
    int n = r->nspan + r->rank;
    Region *before = evaluation_enter(e, v);
    r->node = n > 0 ? arith_spread(e, v, all, n, 0, NULL) : v->node;
    return evaluation_leave(e, v, before, r);
}

/* The scalar v as a tensor whose axes are the indices of `scope`, in order. */
static const Value *bind_axes(Elab *e, const IndexScope *scope, const Value *v, Loc loc) {
    if (v->kind != V_TENSOR) {
        v = arith_lift(e, loc, v);
    }
    if (!elab_ok(v)) {
        return v;
    }
    if (v->rank > 0) {
        elab_error(e, loc, 378, "the right side has shape %s; in index notation it is a scalar",
                   shape_text(e->scratch, v->rank, v->dim));
        diag_hint(&e->c->diag, "give every tensor its indices: x[i, j]");
        return &value_poison;
    }
    Index *own[MD_RANK];
    int n = 0;
    for (int i = 0; i < scope->order.count; i++) {
        const Ast *entry = scope->order.at[i];
        int more = entry->kind != AST_PACK ? 1 : scope->pack_known ? scope->npack : 0;
        if (n + more > MD_RANK) {
            return dims_too_many(e, loc);
        }
        if (entry->kind == AST_PACK) {
            for (int k = 0; k < more; k++) {
                own[n++] = scope->pack[k];
            }
        } else {
            const char *name = entry->kind == AST_NAME ? entry->name : entry->kid[0]->name;
            for (int k = 0; k < scope->index.count; k++) {
                if (str_eq(scope->index.at[k]->name, name)) {
                    own[n++] = scope->index.at[k];
                }
            }
        }
    }
    Index *span[2 * MD_RANK];
    int nspan = 0;
    for (int i = 0; i < v->nspan; i++) { /* what an enclosing notation spans stays in front */
        bool mine = false;
        for (int k = 0; k < n; k++) {
            mine = mine || own[k] == v->span[i];
        }
        if (!mine) {
            span[nspan++] = v->span[i];
        }
    }
    for (int i = 0; i < n; i++) { /* the end has no rows to spread over */
        if (evaluation_masks(e, own[i]->extent) && !elab_plain(e, loc, v)) {
            return &value_poison;
        }
    }
    if (nspan + n > MD_RANK) {
        return elab_error(e, loc, 327, "this needs more than %d axes and indices together",
                          MD_RANK);
    }
    Value *r = ARENA_NEW(e->scratch, Value);
    r->kind = V_TENSOR;
    Axes axes = value_axes(e->scratch, r, nspan, n);
    r->nspan = nspan;
    r->rank = n;
    r->ranged = v->ranged;
    r->lo = v->lo;
    r->hi = v->hi;
    r->end = v->end;
    for (int i = 0; i < nspan; i++) {
        axes.span[i] = span[i];
    }
    for (int i = 0; i < n; i++) {
        axes.dim[i] = own[i]->extent;
        span[nspan + i] = own[i];
    }
    if (!dims_possible(e, loc, r)) {
        return &value_poison;
    }
    return notation_axes(e, v, r, span);
}

const Value *notation_statement(Elab *e, const Ast *left, const Ast *right, LoopAxis *loop) {
    IndexNotation *before = notation_save(e);
    e->index = ARENA_NEW(e->scratch, IndexNotation);
    IndexScope *scope = bind_indices(e, left, loop);
    e->index->scope = scope;
    walk(e, right);
    resolve(e, scope);
    const Value *v = &value_poison;
    if (scope->has_pack && !scope->pack_known && !e->index->failed) {
        elab_error(e, scope->pack_loc, 381, "nothing on the right side says which axes '...' is");
    } else if (!e->index->failed) {
        v = elab_expr(e, right);
        if (elab_ok(v)) {
            v = bind_axes(e, scope, v, right->loc);
        }
    }
    notation_restore(e, before);
    return v;
}

static IndexScope *fold_scope(const Elab *e, const Ast *fold) {
    for (int i = 0; e->index && i < e->index->fold.count; i++) {
        if (e->index->fold.at[i].ast == fold) {
            return e->index->fold.at[i].scope;
        }
    }
    return NULL;
}

const Value *notation_fold(Elab *e, const Ast *fold) {
    IndexNotation *before = e->index;
    IndexScope *scope = fold_scope(e, fold);
    if (!scope) { /* it stands alone */
        e->index = ARENA_NEW(e->scratch, IndexNotation);
        walk(e, fold);
        resolve(e, NULL);
        scope = fold_scope(e, fold);
    }
    const Value *v = &value_poison;
    if (!e->index->failed) {
        IndexScope *outer = e->index->scope;
        Index *list[2 * MD_RANK];
        int n = 0;
        for (int i = 0; i < scope->index.count && n < MD_RANK; i++) {
            list[n++] = scope->index.at[i];
        }
        for (int i = 0; scope->pack_known && i < scope->npack; i++) {
            list[n++] = scope->pack[i];
        }
        e->index->scope = scope;
        v = fold_indices(e, fold->name, fold->kid[1], list, n, fold->loc);
        e->index->scope = outer;
    }
    e->index = before;
    return v;
}

const Value *notation_access(Elab *e, const Ast *indexed) {
    IndexNotation *before = e->index;
    if (!e->index) {
        e->index = ARENA_NEW(e->scratch, IndexNotation);
    }
    const Value *v = access_eval(e, indexed);
    e->index = before;
    return v;
}
