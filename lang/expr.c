/* expr: one function a kind of expression. */
#include "lang/expr.h"

#include "lang/arith.h"
#include "lang/call.h"
#include "lang/constant.h"
#include "lang/dims.h"
#include "lang/evaluation.h"
#include "lang/foreign.h"
#include "lang/model_copy.h"
#include "lang/normalise.h"
#include "lang/notation.h"
#include "lang/params.h"
#include "lang/prelude.h"
#include "lang/ring.h"
#include "lang/train.h"

#include <string.h>

enum { MAX_DEPTH = 2000 };

/* --- names ----------------------------------------------------------------------------------- */

const Value *elab_unknown_name(Elab *e, const char *name, Loc loc) {
    if (!elab_first_in_body(e, 205, name)) {
        return &value_poison;
    }
    elab_error(e, loc, 205, "unknown name '%s'", name);
    bool word = str_eq(name, "None") || str_eq(name, "True") || str_eq(name, "False");
    bool module = name[1] != '\0' && foreign_is_module(name); /* a lone letter is a dim */
    if ((word || module) && elab_hint_foreign(e, name)) {
        return &value_poison;
    }
    Nearest n = nearest_start(name);
    nearest_scope(&n, e->scope);
    nearest_file(&n, e->scope->file);
    prelude_nearest(&n);
    if (!n.best && e->index) {
        diag_hint(&e->c->diag, "an index is bound on the left side, or by a fold: sum[%s] ...",
                  name);
    }
    elab_hint_nearest(e, &n);
    return &value_poison;
}

static const Value *named_item(Elab *e, Item *item, Loc loc) {
    switch (item->kind) {
    case AST_DIMS:
    case AST_CONSTS: return constant_value(e, item, loc);
    case AST_STATE:
        if (!elab_outside_adjoint(e, loc, item->name)) {
            return &value_poison;
        }
        if (!model_copy_is(e, item)) {
            const StateUse *use = params_top_state(e, item, loc);
            return use ? params_state_value(e, use) : &value_poison;
        }
        if (!model_copy_instance(e, item, loc)) {
            return &value_poison;
        }
        /* fall through */
    case AST_MODEL: {
        if (!elab_outside_adjoint(e, loc, item->name)) {
            return &value_poison;
        }
        Value *v = ARENA_NEW(e->scratch, Value);
        v->kind = V_PATH;
        v->text = item->name;
        v->model = item;
        return v;
    }
    default:
        elab_error(e, loc, 206, "'%s' is %s and no value", item->name, item_text(e->arena, item));
        if (item->kind == AST_OP || item->kind == AST_LAYER) {
            diag_hint(&e->c->diag, "call it: %s(x)", item->name);
        }
        return &value_poison;
    }
}

const Value *elab_name(Elab *e, const Ast *ast) {
    const char *name = ast->name;
    Index *ix = notation_find(e, name);
    if (ix) {
        return notation_value(e, ix);
    }
    ScopeName *bound = scope_find(e->scope, name);
    if (bound) {
        if (bound->next && bound->kind == BIND_STATE && train_reads_before(e, bound->next_loc)) {
            return bound->value;
        }
        if (bound->next && bound->told) {
            e->errors++;
            return &value_poison;
        }
        if (bound->next) {
            bound->told = true;
            elab_error(e, ast->loc, 207,
                       "'%s' is read after its '<-': it has its new value only in the "
                       "next %s",
                       name, bound->kind == BIND_CARRY ? "iteration" : "call");
            diag_note(&e->c->diag, bound->next_loc, "it is set here");
            diag_hint(&e->c->diag, "give the new value a name, read that, and set '%s' last", name);
            return &value_poison;
        }
        if (bound->kind == BIND_MICRO_BATCH) {
            elab_error(e, ast->loc, 529,
                       "'%s' is a value of one micro-batch; behind 'accumulate' an update sees "
                       "what all of them give: loss, metrics, and values made of sums and means",
                       name);
            diag_note(&e->c->diag, bound->loc, "it is set here");
            return &value_poison;
        }
        if (bound->kind == BIND_STATE) {
            return params_state_value(e, bound->ref);
        }
        return bound->value;
    }
    const Value *each = model_copy_each(e, ast);
    Item *item = each ? NULL : file_find(e->scope->file, name);
    if (each || item) {
        return each ? each : named_item(e, item, ast->loc);
    }
    const Value *v = prelude_constant(e, name, ast->loc);
    return v ? v : elab_unknown_name(e, name, ast->loc);
}

const char *elab_path(Elab *e, const Ast *ast) {
    if (ast->kind == AST_NAME || ast->kind == AST_PATH) {
        return ast->name;
    }
    if (ast->kind == AST_DOT) {
        const char *head = elab_path(e, ast->kid[0]);
        return head ? str_printf(e->arena, "%s.%s", head, ast->name) : NULL;
    }
    return NULL;
}

static const Value *eval_dot(Elab *e, const Ast *ast) {
    const Value *each = model_copy_each(e, ast);
    if (each) {
        return each;
    }
    Item *ring = ring_named(e, ast->kid[0]);
    if (ring) {
        return ring_field(e, ring, ast);
    }
    const Value *constant = normalise_constant(e, ast);
    if (constant) {
        return constant;
    }
    const Value *v = elab_expr(e, ast->kid[0]);
    if (!elab_ok(v)) {
        return v;
    }
    if (v->kind == V_RECORD) {
        Nearest n = nearest_start(ast->name);
        for (int i = 0; i < v->count; i++) {
            if (str_eq(v->field[i], ast->name)) {
                return v->item[i];
            }
            nearest_add(&n, v->field[i]);
        }
        elab_error(e, ast->name_loc, 208, "there is no result '%s'", ast->name);
        elab_hint_nearest(e, &n);
        return &value_poison;
    }
    if (v->kind == V_PATH) {
        return params_by_path(e, v->model, str_printf(e->arena, "%s.%s", v->text, ast->name),
                              ast->loc);
    }
    if (v->kind == V_INSTANCE) {
        return params_of_instance(e, v->instance, ast->name, ast->loc);
    }
    elab_error(e, ast->name_loc, 209, "%s has no field '%s'", value_kind_text(v), ast->name);
    if (!elab_hint_foreign(e, ast->name) && v->kind == V_TENSOR) {
        diag_hint(&e->c->diag, "shape(x) gives the extents, count(x) the number of elements");
    }
    return &value_poison;
}

/* --- shapes ---------------------------------------------------------------------------------- */

/* One more extent of a shape. */
static bool extent(Elab *e, const Value *v, Loc loc, int *rank, Dim *dim) {
    if (*rank == MD_RANK) {
        dims_too_many(e, loc);
        return false;
    }
    dim[(*rank)++] = value_to_dim(v);
    return dims_extent_possible(e, v->integer, loc);
}

bool elab_shape(Elab *e, const Value *v, Loc loc, int *rank, Dim *dim) {
    *rank = 0;
    if (!elab_ok(v)) {
        return false;
    }
    if (v->kind == V_INT) {
        return extent(e, v, loc, rank, dim);
    }
    if (v->kind != V_LIST) {
        elab_error(e, loc, 350, "a shape is a list of extents such as [B, 64], found %s",
                   value_kind_text(v));
        return false;
    }
    if (v->from_shape) {
        elab_error(e, loc, 351, "the shape of a scalar in index notation is not known here");
        diag_hint(&e->c->diag, "make the tensor first, outside of the index notation");
        return false;
    }
    for (int i = 0; i < v->count; i++) {
        if (!elab_ok(v->item[i])) {
            return false;
        }
        if (v->item[i]->kind != V_INT) {
            elab_error(e, loc, 352, "extent %d of a shape is %s, not a compile-time integer", i,
                       value_kind_text(v->item[i]));
            return false;
        }
        if (!extent(e, v->item[i], loc, rank, dim)) {
            return false;
        }
    }
    Value like = {.rank = *rank, .dim = dim};
    return dims_possible(e, loc, &like);
}

/* Which extents of the result hold the batch, when rows of one are told apart at run time. */
static void reshape_batch(const Value *v, int rank, Dim *dim) {
    int i = 0, k = 0;
    while (i < v->rank && k < rank) {
        int first = i, to = k;
        int64_t a = v->dim[i++].size, b = dim[k++].size;
        while (a != b && (a < b ? i < v->rank : k < rank)) {
            if (a < b) {
                a *= v->dim[i++].size;
            } else {
                b *= dim[k++].size;
            }
        }
        for (int j = first; j < i; j++) {
            int64_t batch = v->dim[j].batch;
            if (batch == 0) {
                continue;
            }
            int64_t rows = batch > 0 ? v->dim[j].size / batch : 0;
            bool outer = batch > 0 && j == first && rows > 0 && dim[to].size % rows == 0;
            dim[to].batch = outer ? dim[to].size / rows : BATCH_LOST;
        }
    }
}

/* The product of extents, and the same without those that are 0: of shapes without elements the
 * product alone says too little. */
typedef struct {
    int64_t all, some;
} Extents;

static Extents extents_and(Extents n, int64_t extent) {
    if (__builtin_mul_overflow(n.all, extent, &n.all)) {
        n.all = INT64_MAX; /* too many, as elab_reshape says */
    }
    if (__builtin_mul_overflow(n.some, extent > 0 ? extent : 1, &n.some)) {
        n.some = INT64_MAX;
    }
    return n;
}

/* Are n leading or trailing axes of v those of the pack of the op or layer around? */
static bool is_pack(const Elab *e, const Value *v, bool trailing, int n) {
    bool is = e->frame && e->frame->pack_bound && e->frame->npack == n;
    for (int i = 0; is && i < n; i++) {
        is = v->dim[trailing ? v->rank - n + i : i].size == e->frame->pack[i].size;
    }
    return is;
}

/* How many leading or trailing axes of v stay, if the others become `want`; -1: it does not fit.
 * Axes of extent 1 beside the others may stay or not: where it fits as many as the pack has do,
 * else all but as many as `ones` are listed beside `...`. */
static int axes_kept(const Elab *e, const Value *v, bool trailing, Extents want, int ones) {
    int least = -1, most = -1, empty = -1;
    bool pack = false;
    for (int n = 0; n <= v->rank && !pack; n++) {
        Extents others = {1, 1};
        for (int i = 0; i < v->rank; i++) {
            bool kept = trailing ? i >= v->rank - n : i < n;
            others = kept ? others : extents_and(others, v->dim[i].size);
        }
        if (others.all == want.all && others.some == want.some) {
            pack = is_pack(e, v, trailing, n);
            least = least < 0 || pack ? n : least;
            most = n;
        }
        empty = others.all == 0 && want.all == 0 ? n : empty; /* as many as can */
    }
    return most < 0 ? empty : ones < most - least ? most - ones : least;
}

static const Value *eval_as(Elab *e, const Ast *ast) {
    const Value *v = elab_expr(e, ast->kid[0]);
    const Ast *type = ast->kid[1];
    if (!elab_ok(v)) {
        return v;
    }
    if (v->kind != V_TENSOR) {
        return elab_error(e, ast->kid[0]->loc, 353, "'as' needs a tensor, found %s",
                          value_kind_text(v));
    }
    if (!elab_plain(e, ast->loc, v)) {
        return &value_poison;
    }
    Dim dim[MD_RANK];
    int rank = 0, first = 0, last = 0; /* ones in front of all that is larger, and behind it */
    Extents want = {1, 1};
    for (int i = 0; i < type->nkid; i++) {
        Dim d;
        if (type->kid[i]->kind != AST_PACK) {
            if (!dims_eval(e, type->kid[i], &d)) {
                return &value_poison;
            }
            first += d.size == 1 && want.all == 1;
            last = d.size == 1 ? last + 1 : 0;
            want = extents_and(want, d.size);
        }
    }
    for (int i = 0; i < type->nkid; i++) {
        if (type->kid[i]->kind == AST_PACK) {
            bool trailing = i > 0;
            int n = axes_kept(e, v, trailing, want, trailing ? last : first);
            if ((trailing && i != type->nkid - 1) || n < 0) {
                return elab_error(
                    e, type->kid[i]->loc, 354,
                    "'...' after 'as' stands first or last, for leading or trailing axes that "
                    "stay; it does not fit %s",
                    shape_text(e->arena, v->rank, v->dim));
            }
            if (rank + n > MD_RANK) {
                return dims_too_many(e, ast->loc);
            }
            for (int k = 0; k < n; k++) {
                dim[rank++] = v->dim[trailing ? v->rank - n + k : k];
            }
        } else if (rank == MD_RANK) {
            return dims_too_many(e, ast->loc);
        } else if (!dims_eval(e, type->kid[i], &dim[rank++])) {
            return &value_poison;
        }
    }
    return elab_reshape(e, ast->loc, v, rank, dim);
}

const Value *elab_reshape(Elab *e, Loc loc, const Value *v, int rank, Dim *dim) {
    int64_t have = 1, want = 1;
    for (int i = 0; i < v->rank; i++) {
        have *= v->dim[i].size;
    }
    for (int i = 0; i < rank; i++) {
        if (__builtin_mul_overflow(want, dim[i].size, &want)) {
            return elab_error(e, loc, 356, "these extents make more than 2^63 elements");
        }
    }
    if (want != have) {
        return elab_error(e, loc, 355, "%s has %lld elements, but %s has %lld",
                          shape_text(e->arena, v->rank, v->dim), (long long)have,
                          shape_text(e->arena, rank, dim), (long long)want);
    }
    if (rank + v->nspan > MD_RANK) {
        return dims_too_many(e, loc);
    }
    reshape_batch(v, rank, dim);
    int64_t to[MD_RANK];
    for (int i = 0; i < v->nspan; i++) {
        to[i] = v->node->type->dim[i];
    }
    for (int i = 0; i < rank; i++) {
        to[v->nspan + i] = dim[i].size;
    }
    Value *r = ARENA_NEW(e->scratch, Value);
    *r = *v;
    r->node = node_reshape(e->g, v->node, v->nspan + rank, to);
    memcpy(value_axes(e->scratch, r, v->nspan, rank).dim, dim, sizeof *dim * (size_t)rank);
    r->rank = rank;
    r->loop = NULL;
    return r;
}

/* --- the rest -------------------------------------------------------------------------------- */

static const Value *eval_binary(Elab *e, const Ast *ast) {
    const Value *a = elab_expr(e, ast->kid[0]);
    /* A condition that is already decided does not look at its right side. */
    if (a->kind == V_BOOL && ((ast->op == AO_AND && !a->truth) || (ast->op == AO_OR && a->truth))) {
        return a;
    }
    const Value *b = elab_expr(e, ast->kid[1]);
    Loc at =
        ast->name_loc.source == ast->loc.source && ast->name_loc.len ? ast->name_loc : ast->loc;
    if (ast->op == AO_DIV) {
        evaluation_divided(e, at, a, b);
    }
    return arith_binary(e, at, ast->op, a, b);
}

static const Value *eval_list(Elab *e, const Ast *ast) {
    const Value **item = ARENA_ARRAY(e->arena, const Value *, ast->nkid);
    for (int i = 0; i < ast->nkid; i++) {
        item[i] = elab_expr(e, ast->kid[i]);
        if (!elab_ok(item[i])) {
            return &value_poison;
        }
    }
    return value_list(e->scratch, item, ast->nkid);
}

/* So that one more, or a few, still fit 64 bits. */
#define INTEGERS_BELOW 9200000000000000000

/* Kept in the tree. */
static const Value *eval_number(Elab *e, const Ast *ast) {
    if (!(ast->flags & AST_INTEGER)) {
        return value_real(e->lasting, ast->number);
    }
    int64_t value = 0;
    for (const char *p = ast->text; *p >= '0' && *p <= '9'; p++) {
        if (value > (INTEGERS_BELOW - 1 - (*p - '0')) / 10) {
            return elab_error(e, ast->loc, 357,
                              "%s is too large for an integer, which is below 9.2e18; write %s.0",
                              ast->text, ast->text);
        }
        value = 10 * value + (*p - '0');
    }
    return value_int(e->lasting, value);
}

static const Value *eval(Elab *e, const Ast *ast) {
    switch (ast->kind) {
    case AST_NAME: return elab_name(e, ast);
    case AST_NUMBER: /* a body of the library may be elaborated many times */
        if (!ast->value) {
            ((Ast *)(uintptr_t)ast)->value = eval_number(e, ast);
        }
        return ast->value;
    case AST_SIZE: return arith_truncate(e, ast->loc, ast->number);
    case AST_STRING: return value_string(e->scratch, ast->text);
    case AST_BINARY: return eval_binary(e, ast);
    case AST_UNARY: return arith_unary(e, ast->loc, ast->op, elab_expr(e, ast->kid[0]));
    case AST_FOLD: return notation_fold(e, ast);
    case AST_CALL: return call_eval(e, ast, NULL);
    case AST_PIPE: {
        const Value *v = elab_expr(e, ast->kid[0]);
        return elab_ok(v) ? call_eval(e, ast->kid[1], v) : call_of_poison(e, ast->kid[1], v);
    }
    case AST_NEW:
        elab_error(e, ast->loc, 210, "'new' makes an instance and needs a name");
        diag_hint(&e->c->diag, "f = new %s(...); then call f(x)", ast->name);
        return &value_poison;
    case AST_DOT: return eval_dot(e, ast);
    case AST_INDEXED: return notation_access(e, ast);
    case AST_AS: return eval_as(e, ast);
    case AST_LIST: return eval_list(e, ast);
    case AST_ERROR: return &value_poison;
    case AST_RANGE_EXPR:
        return elab_error(e, ast->loc, 358,
                          "a range is no value; it stands as an index, after 'in' or in "
                          "the call that picks columns");
    case AST_ARG:
        elab_error(e, ast->loc, 359, "'%s = ...' gives an argument by name and is no value",
                   ast->name);
        diag_hint(&e->c->diag, "write '==' to compare");
        return &value_poison;
    default: return elab_error(e, ast->loc, 360, "'%s' is no expression", ast_kind_name(ast->kind));
    }
}

const Value *elab_expr(Elab *e, const Ast *ast) {
    if (e->depth > MAX_DEPTH) {
        return elab_error(e, ast->loc, 361, "expressions and calls are nested too deeply");
    }
    e->depth++;
    Loc before = elab_at(e, ast->loc);
    const Value *v = eval(e, ast);
    e->g->loc = before;
    e->depth--;
    return v;
}

const Value *elab_single(Elab *e, const Ast *ast, const Value *v) {
    if (v->kind != V_RECORD) {
        return v;
    }
    if (ast->kind == AST_NAME && !elab_first_in_body(e, 364, ast->name)) {
        return &value_poison;
    }
    elab_error(e, ast->loc, 364, "these are %d results, and one is needed here", v->count);
    Text names = {.arena = e->arena};
    for (int i = 0; i < v->count; i++) {
        text_printf(&names, "%s%s", i > 0 ? ", " : "", v->field[i]);
    }
    diag_hint(&e->c->diag, "choose one by its name with a '.', or name all: '%s = ...'", names.at);
    return &value_poison;
}

bool elab_int(Elab *e, const Ast *ast, const char *what, int64_t *out) {
    const Value *v = elab_expr(e, ast);
    if (!elab_ok(v)) {
        return false;
    }
    if (v->kind != V_INT) {
        elab_error(e, ast->loc, 362, "%s must be a compile-time integer, found %s", what,
                   v->kind == V_TENSOR && ast->kind == AST_NAME
                       ? str_printf(e->arena, "the run-time value '%s'", ast->name)
                   : v->kind == V_REAL ? value_text(e->arena, v)
                                       : value_kind_text(v));
        return false;
    }
    *out = v->integer;
    return true;
}

/* The first name in the expression that is known only at run time, or NULL. */
static const char *runtime_name(Elab *e, const Ast *ast) {
    if (!ast) {
        return NULL;
    }
    if (ast->kind == AST_NAME) {
        const ScopeName *n = scope_find(e->scope, ast->name);
        bool runtime = n && n->value && n->value->kind == V_TENSOR;
        bool counter =
            str_eq(ast->name, "step") || str_eq(ast->name, "steps") || str_eq(ast->name, "epoch");
        return runtime || (counter && !n) ? ast->name : NULL;
    }
    const char *name = NULL;
    for (int i = ast->kind == AST_CALL ? 1 : 0; i < ast->nkid && !name; i++) {
        name = runtime_name(e, ast->kid[i]);
    }
    return name;
}

bool elab_condition(Elab *e, const Ast *ast, bool *out) {
    const Value *v = elab_expr(e, ast);
    if (!elab_ok(v)) {
        return false;
    }
    if (v->kind != V_BOOL) {
        const char *name = v->kind == V_TENSOR ? runtime_name(e, ast) : NULL;
        elab_error(e, ast->loc, 363,
                   "the condition of 'when' must be known at compile time, but %s%s%s is %s",
                   name ? "'" : "", name ? name : "it", name ? "'" : "",
                   v->kind == V_TENSOR ? "a run-time value" : value_kind_text(v));
        if (v->kind == V_TENSOR) {
            diag_hint(&e->c->diag, "select(c, a, b) chooses between values at run time");
        }
        return false;
    }
    *out = v->truth;
    return true;
}
