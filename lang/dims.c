/* dims: unification of extents. A lower-case name that nothing else declares is a dim variable of
 * the signature: its first use binds it, every other one must agree. */
#include "lang/dims.h"

#include "lang/expr.h"
#include "lang/half.h"
#include "lang/notation.h"

#include <string.h>

bool dims_agree(Dim a, Dim b) {
    return a.size == b.size && (!a.name || !b.name || a.name == b.name);
}

Dim dims_join(Dim a, Dim b) {
    Dim d = a.name ? a : b;
    if (a.batch != b.batch) {
        d.batch = a.batch == 0 ? b.batch : b.batch == 0 ? a.batch : BATCH_LOST;
    }
    return d;
}

const Value *dims_too_many(Elab *e, Loc loc) {
    return elab_error(e, loc, 305, "a tensor has at most %d axes", MD_RANK);
}

bool dims_extent_possible(Elab *e, int64_t extent, Loc loc) {
    if (extent < 0 || extent > (int64_t)1 << 40) {
        elab_error(e, loc, 303, "an extent of %lld is not possible", (long long)extent);
        return false;
    }
    return true;
}

bool dims_eval(Elab *e, const Ast *expr, Dim *dim) {
    *dim = (Dim){.size = -1};
    const Value *v = elab_expr(e, expr);
    if (!elab_ok(v)) {
        return false;
    }
    if (v->kind == V_TENSOR) {
        elab_error(e, expr->loc, 301,
                   "a shape needs a compile-time integer, but %s is known only at run time",
                   expr->kind == AST_NAME ? str_printf(e->arena, "'%s'", expr->name) : "this");
        return false;
    }
    if (v->kind != V_INT) {
        elab_error(e, expr->loc, 302, "a shape needs a compile-time integer, found %s",
                   v->kind == V_REAL ? str_printf(e->arena, "%g", v->real) : value_kind_text(v));
        if (v->kind == V_REAL) {
            diag_hint(&e->c->diag, "'div(a, b)' divides integers and rounds down");
        }
        return false;
    }
    if (!dims_extent_possible(e, v->integer, expr->loc)) {
        return false;
    }
    *dim = value_to_dim(v);
    return true;
}

bool dims_possible(Elab *e, Loc loc, const Value *like) {
    double n = 1;
    for (int i = 0; i < like->nspan; i++) {
        n *= (double)like->span[i]->extent.size;
    }
    for (int i = 0; i < like->rank; i++) {
        n *= (double)like->dim[i].size;
    }
    if (n > 1e13) {
        elab_error(e, loc, 395, "a tensor of %.3g elements is not possible", n);
        return false;
    }
    return true;
}

bool dims_eval_type(Elab *e, const Ast *type, int *rank, Dim *dim) {
    *rank = 0;
    bool ok = true;
    for (int i = 0; i < type->nkid; i++) {
        const Ast *axis = type->kid[i];
        int n = 1;
        if (axis->kind == AST_PACK) {
            if (!e->frame || !e->frame->pack_bound) {
                elab_error(e, axis->loc, 304, "'...' has no axes here: no argument has bound it");
                return false;
            }
            n = e->frame->npack;
        }
        if (*rank + n > MD_RANK) {
            dims_too_many(e, type->loc);
            return false;
        }
        if (axis->kind == AST_PACK) {
            for (int k = 0; k < n; k++) {
                dim[(*rank)++] = e->frame->pack[k];
            }
        } else {
            ok = dims_eval(e, axis, &dim[(*rank)++]) && ok;
        }
    }
    if (ok) {
        Value like = {.rank = *rank, .dim = dim};
        ok = dims_possible(e, type->loc, &like);
    }
    return ok;
}

bool dims_elem(Elab *e, const Ast *type, Elem *elem) {
    *elem = e->g->float_type;
    if (!type->name) {
        return true;
    }
    if (str_eq(type->name, "int")) {
        *elem = TY_ERROR;
        return true;
    }
    if (str_eq(type->name, "real")) {
        return true;
    }
    if (!elem_from_name(type->name, elem)) {
        elab_error(e, type->name_loc, 306, "unknown element type '%s'", type->name);
        Nearest n = nearest_start(type->name);
        static const char *const names[] = {"bool", "i8",   "i16",  "i32",  "i64", "u8",
                                            "u16",  "u32",  "f16",  "bf16", "f32", "f64",
                                            "int",  "real", "int2", "int3", "text"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            nearest_add(&n, names[i]);
        }
        elab_hint_nearest(e, &n);
        return false;
    }
    if (*elem == TY_F32) {
        *elem = e->g->float_type;
    }
    return !elem_is_half(*elem) || half_in_build(e, type->name_loc, *elem);
}

Type dims_type(Elem elem, int rank, const Dim *dim) {
    Type t = {.elem = elem, .rank = rank};
    for (int i = 0; i < rank; i++) {
        t.dim[i] = dim[i].size;
    }
    return t;
}

bool dims_range(Elab *e, const Ast *range, int64_t *lo, int64_t *hi) {
    const Value *v[2];
    for (int i = 0; i < 2; i++) {
        v[i] = elab_expr(e, range->kid[i]);
        if (!elab_ok(v[i])) {
            return false;
        }
        if (v[i]->kind != V_INT) {
            elab_error(e, range->kid[i]->loc, 308, "a range needs compile-time integers, found %s",
                       value_kind_text(v[i]));
            return false;
        }
    }
    *lo = v[0]->integer;
    *hi = v[1]->integer;
    if (*lo >= *hi) {
        elab_error(e, range->loc, 309, "the range %lld..%lld is empty: its end is not in it",
                   (long long)*lo, (long long)*hi);
        return false;
    }
    return true;
}

bool dims_elem_range(Elab *e, const Ast *range, Elem elem, int64_t *lo, int64_t *hi) {
    if (!elem_is_int(elem)) {
        elab_error(e, range->loc, 220, "only integers have a range");
        return false;
    }
    if (!dims_range(e, range, lo, hi)) {
        return false;
    }
    int bits = 8 * (int)elem_bytes(elem) - (elem_is_signed(elem) ? 1 : 0);
    int64_t most = bits < 63 ? ((int64_t)1 << bits) - 1 : INT64_MAX;
    int64_t least = elem_is_signed(elem) ? -most - 1 : 0;
    if (*lo < least || *hi - 1 > most) {
        elab_error(e, range->loc, 316, "%s holds %lld..%lld, which does not contain %lld..%lld",
                   elem_name(elem), (long long)least,
                   (long long)(most < INT64_MAX ? most + 1 : most), (long long)*lo, (long long)*hi);
        return false;
    }
    return true;
}

bool dims_within(Elab *e, const Ast *range, const Value *v, Loc loc, const char *what) {
    int64_t lo, hi;
    if (!range) {
        return true;
    }
    if (!dims_range(e, range, &lo, &hi)) {
        return false;
    }
    if (v->kind == V_INT) {
        if (v->integer < lo || v->integer >= hi) {
            elab_error(e, loc, 219, "%s is %lld, outside %lld..%lld", what, (long long)v->integer,
                       (long long)lo, (long long)hi);
            return false;
        }
        return true;
    }
    if (v->kind != V_TENSOR || !elem_is_int(value_elem(v))) {
        elab_error(e, range->loc, 220, "only integers have a range");
        return false;
    }
    if (!v->ranged) {
        elab_error(e, loc, 221,
                   "%s must be in %lld..%lld, but the range of this value is not known", what,
                   (long long)lo, (long long)hi);
        diag_hint(&e->c->diag, "declare it where the value enters ('in %lld..%lld'), or clamp it",
                  (long long)lo, (long long)hi);
        return false;
    }
    if (v->lo < lo || v->hi > hi) {
        elab_error(e, loc, 222, "%s must be in %lld..%lld, but this value is in %lld..%lld", what,
                   (long long)lo, (long long)hi, (long long)v->lo, (long long)v->hi);
        return false;
    }
    return true;
}

/* Is `name` a parameter of the signature that is being bound? Its value may come later. */
static bool is_signature_name(const Elab *e, const char *name) {
    const Item *item = e->frame ? e->frame->item : NULL;
    if (!item || item->kind == AST_CONSTS || item->kind == AST_DIMS) {
        return false;
    }
    const Ast *params = item->ast->kid[0];
    for (int i = 0; params && i < params->nkid; i++) {
        if (str_eq(params->kid[i]->name, name)) {
            return true;
        }
    }
    return false;
}

static bool lower_case(const char *name) {
    return (name[0] >= 'a' && name[0] <= 'z') || name[0] == '_';
}

bool dims_is_variable(const File *file, const char *name) {
    const Item *item = file_find(file, name);
    return lower_case(name) && !(item && item->kind == AST_CONSTS);
}

/* Is this axis a dim variable of the signature (bound here or not yet)? */
static bool is_variable(Elab *e, const Ast *axis) {
    return axis->kind == AST_NAME && !is_signature_name(e, axis->name) &&
           dims_is_variable(e->scope->file, axis->name);
}

static bool mismatch(Elab *e, Loc loc, const char *what, int axis, Dim want, Dim have,
                     const Ast *written) {
    elab_error(e, loc, 310, "axis %d of %s has extent %s, expected %s", axis, what,
               dim_text(e->arena, have), dim_text(e->arena, want));
    elab_note_dim(e, want);
    elab_note_dim(e, have);
    if (written) {
        diag_note(&e->c->diag, written->loc, "the expected extent is written here");
    }
    if (want.size == have.size) {
        diag_note(&e->c->diag, LOC_NONE,
                  "the sizes are equal, but declared dimensions are compared "
                  "by name");
    }
    return false;
}

static bool unify_axis(Elab *e, const Ast *axis, int number, Loc loc, const char *what,
                       DimsPass pass, Dim *dim) {
    if (is_variable(e, axis)) {
        if (pass == DIMS_LATE) {
            return true;
        }
        ScopeName *bound = scope_find_here(e->scope, axis->name);
        if (!bound) {
            scope_add(e->scratch, e->scope, axis->name, axis->loc, BIND_DIM_VARIABLE,
                      value_dim(e->scratch, *dim));
            return true;
        }
        Dim want;
        if (!dims_eval(e, axis, &want)) {
            return false;
        }
        if (!dims_agree(want, *dim)) {
            return mismatch(e, loc, what, number, want, *dim, axis);
        }
        *dim = dims_join(want, *dim);
        bound->value = value_dim(e->scratch, *dim);
        return true;
    }
    bool late = axis->kind != AST_NAME && axis->kind != AST_NUMBER;
    if (axis->kind == AST_NAME && is_signature_name(e, axis->name) &&
        !scope_find_here(e->scope, axis->name)) {
        late = true;
    }
    if (late != (pass == DIMS_LATE)) {
        return true;
    }
    Dim want;
    if (!dims_eval(e, axis, &want)) {
        return false;
    }
    if (!dims_agree(want, *dim)) {
        return mismatch(e, loc, what, number, want, *dim, axis);
    }
    *dim = dims_join(want, *dim);
    return true;
}

static bool unify_pack(Elab *e, int n, Loc loc, const char *what, int first, Dim *dim) {
    Frame *f = e->frame;
    if (!f->pack_bound) {
        f->pack_bound = true;
        f->npack = n;
        memcpy(f->pack, dim, sizeof *dim * (size_t)n);
        return true;
    }
    if (f->npack != n) {
        elab_error(e, loc, 311, "'...' stands for %s in this call, but %s has %d axes there",
                   shape_text(e->arena, f->npack, f->pack), what, n);
        return false;
    }
    for (int i = 0; i < n; i++) {
        if (!dims_agree(f->pack[i], dim[i])) {
            return mismatch(e, loc, what, first + i, f->pack[i], dim[i], NULL);
        }
        dim[i] = f->pack[i] = dims_join(f->pack[i], dim[i]);
    }
    return true;
}

bool dims_unify(Elab *e, const Ast *type, const Value *v, Loc loc, const char *what, DimsPass pass,
                Dim *out) {
    int fixed = 0, packs = 0;
    for (int i = 0; i < type->nkid; i++) {
        packs += type->kid[i]->kind == AST_PACK;
        fixed += type->kid[i]->kind != AST_PACK;
    }
    if (packs > 1) {
        elab_error(e, type->loc, 312, "'...' may stand once in a type");
        return false;
    }
    if (packs ? v->rank < fixed : v->rank != fixed) {
        elab_error(e, loc, 313, "%s has shape %s with %d axes, %s%d expected", what,
                   shape_text(e->arena, v->rank, v->dim), v->rank, packs ? "at least " : "", fixed);
        diag_note(&e->c->diag, type->loc, "the shape is written here");
        return false;
    }
    int at = 0;
    for (int i = 0; i < type->nkid; i++) {
        if (type->kid[i]->kind == AST_PACK) {
            int n = v->rank - fixed;
            if (pass == DIMS_BIND && !unify_pack(e, n, loc, what, at, &out[at])) {
                return false;
            }
            at += n;
        } else if (!unify_axis(e, type->kid[i], at, loc, what, pass, &out[at])) {
            return false;
        } else {
            at++;
        }
    }
    return true;
}

const Value *dims_annotate(Elab *e, const Ast *type, const Value *v, Loc loc, const char *what) {
    Elem elem;
    if (!elab_ok(v)) {
        return v;
    }
    if (!dims_elem(e, type, &elem)) {
        return &value_poison;
    }
    if (v->kind != V_TENSOR) {
        bool number = value_is_number(v) || v->kind == V_BOOL;
        if (!number || type->nkid > 0) {
            return elab_error(e, loc, 314, "%s is %s, a tensor is expected", what,
                              value_kind_text(v));
        }
        return v;
    }
    bool fits = elem == TY_ERROR ? elem_is_int(value_elem(v))
                : !type->name    ? elem_is_float(value_elem(v))
                                 : half_fits(v, elem);
    if (!fits) {
        elab_error(e, loc, 315, "%s has elements of type %s, expected %s", what,
                   elem_name(half_elem(v)), elem == TY_ERROR ? "an integer type" : elem_name(elem));
        half_hint(e, v, elem);
        return &value_poison;
    }
    for (int i = 0; i < type->nkid; i++) {
        Dim dim;
        if (type->kid[i]->kind == AST_NAME && is_variable(e, type->kid[i]) &&
            !scope_find(e->scope, type->kid[i]->name) && !dims_eval(e, type->kid[i], &dim)) {
            return &value_poison; /* nothing binds this name: dims_eval has said so */
        }
    }
    Value *r = ARENA_NEW(e->scratch, Value);
    *r = *v;
    Dim *dim = value_axes(e->scratch, r, v->nspan, MD_RANK).dim;
    if (!dims_unify(e, type, v, loc, what, DIMS_BIND, dim)) {
        return &value_poison;
    }
    Dim joined[MD_RANK];
    memcpy(joined, dim, sizeof joined);
    if (!dims_unify(e, type, r, loc, what, DIMS_LATE, joined)) {
        return &value_poison;
    }
    memcpy(dim, joined, sizeof joined);
    return r;
}
