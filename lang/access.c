/* access: one access is a chain of views over the object, one step an axis:
 *
 *   constant               slice of one element, axis dropped
 *   loop index             a stacked input of the loop (slice, flip, permute outside of it)
 *   a*i + c                pad (border), slice with step, flip for a negative a
 *   a*i + b*k + c, ...     window; more indices split a window's axis again
 *   the same index twice   the diagonal: merge both axes, slice with step n + 1
 *   anything else          gather by an integer tensor, its range proved or clamped; so is the
 *                          index of a loop where the object belongs to the iteration
 *
 * The result's axes are in the order that costs no permutation. */
#include "lang/access_axis.h"

#include "lang/arith.h"
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

static bool encloses(const Region *outer, const Region *inner) {
    for (; inner; inner = inner->up) {
        if (inner == outer) {
            return true;
        }
    }
    return false;
}

/* --- putting it together --------------------------------------------------------------------- */

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
    return evaluation_of_few(e) && use->dim.batch != 0;
}

static bool no_index_beside(Elab *e, const Ast *at) {
    elab_error(e, at->loc, 390,
               "a list with ':' or '..' takes no indices beside them: constants, loop indices and "
               "integers of the run");
    return false;
}

/* The list as it stands, with numbers from the end counted from the start, and ":" behind it. */
static void hint_whole_axes(const Access *a, const Value *v, int missing) {
    const Ast *list = a->ast->kid[1];
    const Source *source = &a->e->c->diag.sources.at[list->loc.source];
    Text text = {.arena = a->e->arena};
    const char *path = elab_path(a->e, a->ast->kid[0]);
    text_printf(&text, "%s[", path ? path : "x");
    for (int i = 0; i < list->nkid; i++) {
        const Ast *entry = list->kid[i];
        bool negative =
            entry->kind == AST_UNARY && entry->op == AO_NEG && entry->kid[0]->kind == AST_NUMBER;
        int64_t at = negative ? v->dim[i].size - (int64_t)entry->kid[0]->number : -1;
        text_add(&text, i ? ", " : "");
        if (at >= 0) {
            text_printf(&text, "%lld", (long long)at);
        } else {
            text_addn(&text, source->text + entry->loc.at, entry->loc.len);
        }
    }
    for (int i = 0; i < missing; i++) {
        text_add(&text, ", :");
    }
    text_add(&text, "]");
    diag_hint(&a->e->c->diag, "':' takes all of an axis: %s", text.at);
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
        elab_error(e, a->ast->loc, 387, "%s has %d ax%s %s and takes %d ind%s, but %d %s written",
                   axis_object(a), v->rank, v->rank == 1 ? "is" : "es",
                   shape_text(e->arena, v->rank, v->dim), v->rank, v->rank == 1 ? "ex" : "ices",
                   fixed, fixed == 1 ? "is" : "are");
        if (!packs && fixed > 0 && fixed < v->rank && e->index->scope == NULL) {
            hint_whole_axes(a, v, v->rank - fixed);
        }
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
                               (long long)hi, axis, axis_object(a), (long long)u->dim.size);
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
                           "%s may run on fewer rows than the batch, so single rows cannot be "
                           "picked from the batch axis",
                           evaluation_of_few(e));
                return false;
            }
            if (slices && u->kind == AXIS_AFFINE) {
                return no_index_beside(e, entry);
            }
        }
    }
    return true;
}

/* A loop's index picks from a stack only if the object exists outside of the loop; with indices
 * beside it, or inside, it is data. */
static bool settle_loops(Access *a, AxisUse *use, int n, bool slices) {
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
            if (!axis_loop(a, best)) {
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
        v = a->end ? evaluation_at_end(e, use[i].at->loc, v) : v;
        if (!elab_ok(v) || (!a->end && !elab_plain(e, use[i].at->loc, v))) {
            return false;
        }
        if (v->kind != V_TENSOR || !elem_is_int(value_elem(v)) || v->rank > 0) {
            elab_error(e, use[i].at->loc, 391, "an index is an integer, found %s",
                       value_text(e->arena, v));
            return false;
        }
        if (slices && v->nspan > 0) {
            return no_index_beside(e, use[i].at);
        }
        use[i].data = v;
    }
    return true;
}

/* The value behind the labels: indices are its span, what is left are the object's own axes. */
static Value *labelled(Access *a, const Value *v) {
    Value *r = ARENA_NEW(a->e->scratch, Value);
    r->kind = V_TENSOR;
    r->node = a->node;
    r->end = v->end;
    r->ranged = v->ranged;
    r->lo = v->lo;
    r->hi = v->hi;
    Axes axes = value_axes(a->e->scratch, r, a->rank, a->rank);
    for (int i = 0; i < a->rank; i++) {
        if (a->label[i].ix) {
            axes.span[r->nspan++] = a->label[i].ix;
        } else {
            const AxisUse *use = a->label[i].use;
            Dim dim = use->dim;
            axes.dim[r->rank++] = use->kind == AXIS_RANGE && use->extent != dim.size
                                      ? (Dim){.size = use->extent}
                                      : dim;
        }
    }
    return r;
}

/* The node behind all axes, which is made where the object lives. */
static const Value *picked(Access *a, AxisUse *use, const Value *v, bool slices) {
    Elab *e = a->e;
    for (int i = 0; i < v->rank; i++) {
        bool ok = true;
        if (use[i].kind == AXIS_CONST) {
            ok = axis_const(a, &use[i]);
        } else if (use[i].kind == AXIS_AFFINE) {
            ok = axis_window(a, &use[i], axis_place(a, &use[i]), use[i].affine);
        } else if (use[i].kind == AXIS_RANGE) {
            a->node =
                node_slice_axis(e->g, a->node, axis_place(a, &use[i]), use[i].lo, use[i].extent, 1);
        }
        if (!ok) {
            return &value_poison;
        }
    }
    if (!slices) {
        axis_diagonals(a);
    }
    const Value *mask;
    if (!axis_gather(a, use, v->rank, &mask)) {
        return &value_poison;
    }
    Value *r = labelled(a, v);
    if (a->border == BORDER_VALUE && (a->value < (double)v->lo || a->value >= (double)v->hi)) {
        r->ranged = false;
    }
    if (!mask) {
        return r;
    }
    Value *other = ARENA_NEW(e->scratch, Value);
    *other = *value_scalar(e->scratch, node_const(e->g, value_elem(r), a->value));
    other->end = v->end;
    const Value *chosen = arith_select(e, a->ast->loc, mask, r, other);
    return r->ranged && elab_ok(chosen) ? value_ranged(e->scratch, chosen, v->lo, v->hi) : chosen;
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
    Access a = {.e = e, .ast = indexed, .node = v->node, .rank = v->nspan + v->rank, .end = v->end};
    AxisUse use[MD_RANK];
    bool slices = !notation_is_scalar_list(indexed->kid[1]);
    if (!read_border(&a, value_elem(v)) || !read_axes(&a, v, use, slices)) {
        return &value_poison;
    }
    for (int i = 0; i < a.rank; i++) {
        a.label[i] = i < v->nspan ? (Label){v->span[i], NULL} : (Label){NULL, &use[i - v->nspan]};
    }
    if (!settle_loops(&a, use, v->rank, slices)) {
        return &value_poison;
    }
    Region *before = evaluation_enter(e, v);
    return evaluation_leave(e, v, before, picked(&a, use, v, slices));
}
