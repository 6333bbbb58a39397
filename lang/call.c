/* call: a call opens a scope with the parameters and dim variables, and a frame that says where
 * parameters live; then the body runs like any statements. */
#include "lang/call.h"

#include "lang/arith.h"
#include "lang/data.h"
#include "lang/dims.h"
#include "lang/expr.h"
#include "lang/notation.h"
#include "lang/params.h"
#include "lang/prelude.h"
#include "lang/stmt.h"

#include <string.h>

enum { MAX_CALLS = 200 };

bool call_is_callable(const Item *item) {
    return item->kind == AST_OP || item->kind == AST_LAYER || item->kind == AST_MODEL;
}

/* --- arguments ------------------------------------------------------------------------------- */

static void arguments_of(Elab *e, const Ast *args, const Value *piped, Loc loc, Arguments *out) {
    if (piped) {
        Argument first = {.loc = loc, .value = piped};
        VEC_PUSH(e->arena, out, first);
    }
    for (int i = 0; args && i < args->nkid; i++) {
        const Ast *a = args->kid[i];
        Argument arg = {.loc = a->loc, .ast = a};
        if (a->kind == AST_ARG) {
            arg.name = a->name;
            arg.ast = a->kid[0];
        }
        VEC_PUSH(e->arena, out, arg);
    }
}

static bool evaluate_arguments(Elab *e, Arguments *args) {
    bool ok = true;
    for (int i = 0; i < args->count; i++) {
        if (!args->at[i].value) {
            args->at[i].value = elab_expr(e, args->at[i].ast);
        }
        ok = elab_ok(args->at[i].value) && ok;
    }
    return ok;
}

static bool is_compile_time(const Ast *param) {
    const Ast *type = param->kid[0];
    return !(type->flags & AST_SHAPED) && type->name &&
           (str_eq(type->name, "int") || str_eq(type->name, "real") || str_eq(type->name, "bool"));
}

static int param_find(const Ast *params, const char *name) {
    for (int i = 0; params && i < params->nkid; i++) {
        if (str_eq(params->kid[i]->name, name)) {
            return i;
        }
    }
    return -1;
}

static bool unknown_parameter(Elab *e, const Item *item, const Argument *arg) {
    elab_error(e, arg->loc, 211, "'%s' has no parameter '%s'", item->name, arg->name);
    Nearest n = nearest_start(arg->name);
    const Ast *params = item->ast->kid[0];
    for (int i = 0; params && i < params->nkid; i++) {
        nearest_add(&n, params->kid[i]->name);
    }
    elab_hint_nearest(e, &n);
    diag_note(&e->c->diag, item->loc, "'%s' is declared here", item->name);
    return false;
}

/* Which argument each parameter gets; `only_numbers` (new): positional ones go to int, real and bool
 * parameters. */
static bool match(Elab *e, const Item *item, const Arguments *args, bool only_numbers,
                  const Argument **out) {
    const Ast *params = item->ast->kid[0];
    int n = params ? params->nkid : 0, next = 0;
    for (int i = 0; i < args->count; i++) {
        const Argument *arg = &args->at[i];
        if (!arg->name) {
            continue;
        }
        int k = param_find(params, arg->name);
        if (k < 0) {
            return unknown_parameter(e, item, arg);
        }
        if (out[k]) {
            elab_error(e, arg->loc, 212, "parameter '%s' of '%s' is given twice", arg->name, item->name);
            return false;
        }
        out[k] = arg;
    }
    for (int i = 0; i < args->count; i++) {
        const Argument *arg = &args->at[i];
        if (arg->name) {
            continue;
        }
        while (next < n && (out[next] || (only_numbers && !is_compile_time(params->kid[next])))) {
            next++;
        }
        if (next == n) {
            elab_error(e, arg->loc, 213, "'%s' takes %d argument%s, this is one more", item->name, n,
                       n == 1 ? "" : "s");
            diag_note(&e->c->diag, item->loc, "'%s' is declared here", item->name);
            return false;
        }
        out[next++] = arg;
    }
    return true;
}

static const char *what_of(Elab *e, const Item *item, const Ast *param) {
    return str_printf(e->arena, "argument '%s' of '%s'", param->name, item->name);
}

/* int, real, bool and element types without a shape. */
static const Value *bind_scalar(Elab *e, const Item *item, const Ast *param, const Value *v, Loc loc) {
    const char *name = param->kid[0]->name, *what = what_of(e, item, param);
    if (!elab_ok(v)) {
        return v;
    }
    bool runtime = v->kind == V_TENSOR && v->rank == 0;
    if (str_eq(name, "int")) {
        if (v->kind == V_INT) {
            return v;
        }
        elab_error(e, loc, 214, "%s must be a compile-time integer, found %s", what,
                   runtime ? "a run-time scalar" : value_text(e->arena, v));
        return &value_poison;
    }
    if (str_eq(name, "bool")) {
        if (v->kind == V_BOOL || (runtime && value_elem(v) == TY_BOOL)) {
            return v;
        }
        return elab_error(e, loc, 215, "%s must be true or false, found %s", what,
                          value_text(e->arena, v));
    }
    if (str_eq(name, "real")) {
        if (value_is_number(v) || (runtime && elem_is_float(value_elem(v)))) {
            return v;
        }
        elab_error(e, loc, 216, "%s must be a number, found %s", what, value_text(e->arena, v));
        if (runtime && elem_is_int(value_elem(v))) {
            diag_hint(&e->c->diag, "f32(i) converts");
        }
        return &value_poison;
    }
    Elem elem;
    if (!dims_elem(e, param->kid[0], &elem)) {
        return &value_poison;
    }
    bool number = elem_is_float(elem) ? value_is_number(v) : elem_is_int(elem) && v->kind == V_INT;
    if (number || (elem == TY_BOOL && v->kind == V_BOOL) || (runtime && value_elem(v) == elem)) {
        return v;
    }
    if (runtime && elem_is_int(elem) && elem_is_int(value_elem(v)) &&
        elem_bytes(value_elem(v)) < elem_bytes(elem)) {
        return arith_cast(e, loc, elem, v);
    }
    return elab_error(e, loc, 217, "%s must be a scalar %s, found %s", what, elem_name(elem),
                      value_text(e->arena, v));
}

/* Brings the elements of v to those of a shaped parameter. */
static const Value *bind_elem(Elab *e, const Item *item, const Ast *param, const Value *v, Loc loc) {
    Elem elem, have = value_elem(v);
    if (!dims_elem(e, param->kid[0], &elem)) {
        return &value_poison;
    }
    bool unmarked = !param->kid[0]->name;
    if (unmarked ? elem_is_float(have) : elem == TY_ERROR ? elem_is_int(have) : have == elem) {
        return v;
    }
    if (!unmarked && elem != TY_ERROR && elem_is_int(elem) && elem_is_int(have) &&
        elem_bytes(have) < elem_bytes(elem)) {
        return arith_cast(e, loc, elem, v);
    }
    elab_error(e, loc, 218, "%s has elements of type %s, expected %s", what_of(e, item, param),
               elem_name(have),
               unmarked           ? "floats"
               : elem == TY_ERROR ? "integers"
                                  : elem_name(elem));
    if (elem_is_int(have) && unmarked) {
        diag_hint(&e->c->diag, "f32(i) converts");
    }
    return &value_poison;
}

static bool bind_range(Elab *e, const Item *item, const Ast *param, ScopeName *n, Loc loc) {
    const Ast *range = param->kid[1];
    int64_t lo, hi;
    if (!range) {
        return true;
    }
    if (!dims_range(e, range, &lo, &hi)) {
        return false;
    }
    const Value *v = n->value;
    const char *what = what_of(e, item, param);
    if (v->kind == V_INT) {
        if (v->integer < lo || v->integer >= hi) {
            elab_error(e, loc, 219, "%s is %lld, outside %lld..%lld", what, (long long)v->integer,
                       (long long)lo, (long long)hi);
            return false;
        }
        return true;
    }
    if (v->kind != V_TENSOR || !elem_is_int(value_elem(v))) {
        elab_error(e, param->kid[1]->loc, 220, "only integers have a range");
        return false;
    }
    if (!v->ranged) {
        elab_error(e, loc, 221, "%s must be in %lld..%lld, but the range of this value is not known",
                   what, (long long)lo, (long long)hi);
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

static ScopeName *bound_name(Elab *e, const Ast *param, const Value *v) {
    return scope_add(e->arena, e->scope, param->name, param->name_loc, BIND_ARGUMENT, v);
}

/* A number where a tensor is expected has the shape that the others gave. */
static const Value *fill(Elab *e, const Ast *param, const Value *v, Loc loc) {
    Elem elem;
    int rank;
    Dim dim[MD_RANK];
    if (!dims_elem(e, param->kid[0], &elem)) {
        return &value_poison;
    }
    v = arith_tensor(e, loc, v, elem == TY_ERROR ? TY_I32 : elem);
    bool lone = param->kid[0]->nkid == 1 && param->kid[0]->kid[0]->kind == AST_PACK &&
                !e->frame->pack_bound;
    if (!elab_ok(v) || lone || !dims_eval_type(e, param->kid[0], &rank, dim)) {
        return elab_ok(v) && lone ? v : &value_poison;
    }
    const Value *full = value_tensor(e->arena,
                                     node_broadcast_to(e->g, v->node,
                                                       dims_type(value_elem(v), rank, dim)),
                                     rank, dim);
    return v->ranged ? value_ranged(e->arena, full, v->lo, v->hi) : full;
}

/* Binds all parameters in the scope and frame at hand. */
static bool bind_all(Elab *e, const Item *item, const Argument **given, Loc loc) {
    const Ast *params = item->ast->kid[0];
    int n = params ? params->nkid : 0;
    ScopeName *bound[64] = {0};
    if (n > 64) {
        elab_error(e, item->loc, 223, "'%s' has more than 64 parameters", item->name);
        return false;
    }
    for (int i = 0; i < n; i++) { /* what is known first: shapes may name it */
        const Ast *param = params->kid[i];
        if (given[i] && !(param->kid[0]->flags & AST_SHAPED)) {
            const Value *v = bind_scalar(e, item, param, given[i]->value, given[i]->loc);
            bound[i] = bound_name(e, param, v);
            if (!elab_ok(v)) {
                return false;
            }
        }
    }
    Dim dim[64][MD_RANK];
    for (int i = 0; i < n; i++) {
        const Ast *param = params->kid[i];
        if (!given[i] || bound[i] || given[i]->value->kind != V_TENSOR) {
            continue;
        }
        const Value *v = bind_elem(e, item, param, given[i]->value, given[i]->loc);
        if (!elab_ok(v)) {
            return false;
        }
        memcpy(dim[i], v->dim, sizeof dim[i]);
        if (!dims_unify(e, param->kid[0], v, given[i]->loc, what_of(e, item, param), DIMS_BIND,
                        dim[i])) {
            return false;
        }
        bound[i] = bound_name(e, param, v);
    }
    for (int i = 0; i < n; i++) {
        const Ast *param = params->kid[i];
        if (given[i] && !bound[i]) {
            const Value *v = given[i]->value;
            if (!value_is_number(v) && v->kind != V_BOOL) {
                elab_error(e, given[i]->loc, 224, "%s must be a tensor, found %s",
                           what_of(e, item, param), value_kind_text(v));
                return false;
            }
            continue;
        }
        if (given[i]) {
            continue;
        }
        if (!param->kid[2]) {
            elab_error(e, loc, 225, "'%s' needs its parameter '%s'", item->name, param->name);
            diag_note(&e->c->diag, param->loc, "it is declared here");
            return false;
        }
        const Value *v = elab_expr(e, param->kid[2]);
        if (!(param->kid[0]->flags & AST_SHAPED)) {
            v = bind_scalar(e, item, param, v, param->kid[2]->loc);
        }
        bound[i] = bound_name(e, param, v);
        if (!elab_ok(v)) {
            return false;
        }
    }
    for (int i = 0; i < n; i++) {
        const Ast *param = params->kid[i];
        Loc at = given[i] ? given[i]->loc : param->loc;
        bool shaped = (param->kid[0]->flags & AST_SHAPED) != 0;
        if (!bound[i] || (shaped && bound[i]->value->kind != V_TENSOR)) {
            const Value *v = bound[i] ? bound[i]->value : given[i]->value;
            v = fill(e, param, v, at);
            if (bound[i]) {
                bound[i]->value = v;
            } else {
                bound[i] = bound_name(e, param, v);
            }
            if (!elab_ok(v)) {
                return false;
            }
        } else if (shaped && given[i]) {
            const char *what = what_of(e, item, param);
            Value *named = ARENA_NEW(e->arena, Value);
            *named = *bound[i]->value;
            if (!dims_unify(e, param->kid[0], named, at, what, DIMS_LATE, dim[i])) {
                return false;
            }
            memcpy(named->dim, dim[i], sizeof named->dim);
            bound[i]->value = named;
        }
        if (!bind_range(e, item, param, bound[i], at)) {
            return false;
        }
    }
    return true;
}

bool call_enter(Elab *e, const Item *item, Arguments *args, Loc loc, Frame *frame) {
    const Argument *given[64] = {0};
    const Ast *params = item->ast->kid[0];
    if ((params && params->nkid > 64) || !match(e, item, args, false, given)) {
        return false;
    }
    int depth = 0;
    for (const Frame *f = e->frame; f; f = f->up) {
        depth++;
    }
    if (depth > MAX_CALLS) {
        elab_error(e, loc, 226, "calls are nested more than %d deep", MAX_CALLS);
        return false;
    }
    Scope *scope = e->scope;
    frame->up = e->frame;
    frame->item = item;
    frame->call = loc;
    frame->call_loop = e->loop;
    e->scope = scope_new(e->arena, NULL, item->file);
    e->frame = frame;
    IndexNotation *index = notation_save(e);
    bool ok = bind_all(e, item, given, loc);
    notation_restore(e, index);
    if (!ok) {
        call_leave(e, frame, scope);
    }
    return ok;
}

void call_leave(Elab *e, Frame *frame, Scope *before) {
    e->frame = frame->up;
    e->scope = before;
}

/* --- paths ----------------------------------------------------------------------------------- */

bool call_segment(Elab *e, Frame *frame, const char *name, Loc loc, const char *what) {
    Frame *f = frame->names ? frame->names : frame;
    for (int i = 0; i < f->segment.count; i++) {
        if (str_eq(f->segment.at[i].name, name)) {
            elab_error(e, loc, 227, "%s '%s' would have the same path '%s.%s' as an earlier one", what,
                       name, frame->path, name);
            diag_note(&e->c->diag, f->segment.at[i].loc, "the earlier one is here");
            diag_hint(&e->c->diag, "give each its own label: 'a_label: %s(...)'", name);
            return false;
        }
    }
    Segment s = {name, loc};
    VEC_PUSH(e->arena, &f->segment, s);
    return true;
}

/* A draw path: the second time a path is entered in an entry it draws other numbers. */
static const char *draw_path(Elab *e, const char *path) {
    if (!e->entry) {
        return path;
    }
    for (int i = 0; i < e->entry->visit.count; i++) {
        if (str_eq(e->entry->visit.at[i].path, path)) {
            return str_printf(e->arena, "%s#%d", path, ++e->entry->visit.at[i].count);
        }
    }
    Visit visit = {path, 0};
    VEC_PUSH(e->arena, &e->entry->visit, visit);
    return path;
}

/* Where the parameters and draws of a call live. */
static bool place_frame(Elab *e, const Item *item, const Ast *call, const Instance *instance,
                        Frame *frame) {
    const Frame *up = e->frame;
    frame->frozen = (up && up->frozen) || (call->flags & AST_FROZEN) != 0;
    if (item->kind == AST_OP) {
        frame->draw_owner = up ? up->draw_owner : NULL;
        return true;
    }
    frame->draw_owner = frame;
    frame->names = frame;
    if (item->kind == AST_MODEL) {
        frame->path = item->name;
        frame->root = true;
        frame->draw_path = draw_path(e, item->name);
        return true;
    }
    if (instance) {
        frame->path = instance->path;
        frame->instance = instance;
        frame->frozen = frame->frozen || instance->frozen;
        frame->draw_path = draw_path(e, instance->path);
        return true;
    }
    if (!up || !up->path) {
        elab_error(e, call->loc, 228, "layer '%s' owns parameters, so it can be called only in a layer "
                                      "or model", item->name);
        return false;
    }
    const char *label = call->name ? call->name : item->name;
    if (str_eq(label, "_")) {
        frame->path = up->path;
        frame->names = up->names;
        frame->draw_path = draw_path(e, up->draw_path);
        return true;
    }
    if (!call_segment(e, e->frame, label, call->name ? call->name_loc : call->loc,
                      call->name ? "label" : "layer")) {
        return false;
    }
    frame->path = str_printf(e->arena, "%s.%s", up->path, label);
    frame->draw_path = draw_path(e, str_printf(e->arena, "%s.%s", up->draw_path, label));
    return true;
}

/* --- results --------------------------------------------------------------------------------- */

static const Value *declared_results(Elab *e, const Item *item, const Value *v, Loc loc) {
    const Ast *result = item->ast->kid[1];
    if (!result || !elab_ok(v)) {
        return v;
    }
    if (result->kind == AST_RESULT) {
        if (v->kind == V_RECORD) {
            return elab_error(e, loc, 229, "'%s' returns %d results, one is declared", item->name,
                              v->count);
        }
        return dims_annotate(e, result->kid[0], v, loc,
                             str_printf(e->arena, "the result of '%s'", item->name));
    }
    if (v->kind != V_RECORD || v->count != result->nkid) {
        return elab_error(e, loc, 230, "'%s' declares %d results, this returns %d", item->name,
                          result->nkid, v->kind == V_RECORD ? v->count : 1);
    }
    Value *r = ARENA_NEW(e->arena, Value);
    *r = *v;
    r->item = ARENA_ARRAY(e->arena, const Value *, v->count);
    r->field = ARENA_ARRAY(e->arena, const char *, v->count);
    for (int i = 0; i < result->nkid; i++) {
        const Ast *want = result->kid[i];
        int k = 0;
        while (k < v->count && !str_eq(v->field[k], want->name)) {
            k++;
        }
        if (k == v->count) {
            return elab_error(e, loc, 231, "'%s' declares a result '%s', which is not returned",
                              item->name, want->name);
        }
        r->field[i] = want->name;
        r->item[i] = dims_annotate(e, want->kid[0], v->item[k], loc,
                                   str_printf(e->arena, "result '%s' of '%s'", want->name, item->name));
        if (!elab_ok(r->item[i])) {
            return &value_poison;
        }
    }
    return r;
}

/* --- adjoints -------------------------------------------------------------------------------- */

/* The cotangent v with the axes of `like`: what it spans more is summed, what it lacks repeated. */
static Node *cotangent(Elab *e, const Value *v, const Value *like, Loc loc) {
    v = arith_tensor(e, loc, v, value_elem(like));
    if (!elab_ok(v)) {
        return NULL;
    }
    if (value_elem(v) != value_elem(like) || (v->rank != 0 && v->rank != like->rank)) {
        elab_error(e, loc, 232, "the cotangent is %s, but the argument is %s", value_text(e->arena, v),
                   value_text(e->arena, like));
        return NULL;
    }
    for (int i = 0; i < v->rank; i++) {
        if (v->dim[i].size != like->dim[i].size) {
            elab_error(e, loc, 233, "the cotangent is %s, but the argument is %s",
                       value_text(e->arena, v), value_text(e->arena, like));
            return NULL;
        }
    }
    uint32_t axes = 0;
    Value *w = ARENA_NEW(e->arena, Value);
    *w = *v;
    w->nspan = 0;
    for (int i = 0; i < v->nspan; i++) {
        bool kept = false;
        for (int k = 0; k < like->nspan; k++) {
            kept = kept || like->span[k] == v->span[i];
        }
        if (kept) {
            w->span[w->nspan++] = v->span[i];
        } else {
            axes |= 1u << i;
        }
    }
    w->node = node_fold(e->g, OP_SUM, v->node, axes);
    return arith_spread(e, w, like->span, like->nspan, like->rank, like->dim);
}

static const Value *with_adjoint(Elab *e, Item *item, const Value *v, Loc loc) {
    const Ast *adjoint = item->ast->kid[3], *params = item->ast->kid[0];
    if (v->kind != V_TENSOR || v->end || !elem_is_float(value_elem(v))) {
        return v;
    }
    if (!adjoint->kid[0] || adjoint->kid[0]->nkid != 1) {
        return elab_error(e, adjoint->loc, 234, "an adjoint takes one parameter: the cotangent of the "
                                                "result");
    }
    const Value *arg[64];
    Node *in[64], *out[64] = {0};
    int n = 0, nfloat = 0, which[64];
    Scope *inner = scope_new(e->arena, NULL, item->file), *before = e->scope;
    Region *body = region_new(e->g, e->g->region);
    for (int i = 0; i < before->name.count; i++) {
        const ScopeName *s = before->name.at[i];
        bool param = param_find(params, s->name) >= 0;
        if (!param && s->kind != BIND_DIM_VARIABLE) {
            continue;
        }
        const Value *seen = s->value;
        if (seen->kind == V_TENSOR) {
            arg[n] = seen;
            in[n] = seen->node;
            seen = value_with(e->arena, seen, region_param(body, seen->node->type));
            if (arg[n]->ranged) {
                seen = value_ranged(e->arena, seen, arg[n]->lo, arg[n]->hi);
            }
            if (elem_is_float(value_elem(seen))) {
                which[nfloat++] = n;
            }
            n++;
        }
        scope_add(e->arena, inner, s->name, s->loc, s->kind, seen);
    }
    const Ast *u = adjoint->kid[0]->kid[0];
    scope_add(e->arena, inner, u->name, u->loc, BIND_ARGUMENT,
              value_with(e->arena, v, region_param(body, v->node->type)));
    Region *region = graph_enter(e->g, body);
    bool nested = e->in_adjoint;
    const Value *result = e->frame->result;
    e->scope = inner;
    e->in_adjoint = true;
    item->in_adjoint = true;
    e->frame->returned = false;
    e->frame->result = NULL;
    stmt_block(e, adjoint->kid[1]);
    const Value *g = e->frame->result;
    bool ok = g && elab_ok(g);
    if (!g) {
        elab_error(e, adjoint->loc, 235, "the adjoint of '%s' returns nothing", item->name);
    } else if (ok && (g->kind == V_RECORD ? g->count : 1) != nfloat) {
        elab_error(e, adjoint->loc, 236, "the adjoint of '%s' returns %d cotangents, its float "
                                         "arguments are %d", item->name,
                   g->kind == V_RECORD ? g->count : 1, nfloat);
        ok = false;
    }
    for (int i = 0; ok && i < nfloat; i++) {
        out[which[i]] = cotangent(e, g->kind == V_RECORD ? g->item[i] : g, arg[which[i]], adjoint->loc);
        ok = out[which[i]] != NULL;
    }
    for (int i = 0; ok && i < n; i++) {
        Node *node = out[i] ? out[i] : node_full(e->g, in[i]->type, 0);
        region_result(body, graph_import(e->g, node));
    }
    graph_leave(e->g, region);
    e->scope = before;
    e->in_adjoint = nested;
    item->in_adjoint = false;
    e->frame->result = result;
    if (!ok) {
        return &value_poison;
    }
    (void)loc;
    Value *r = ARENA_NEW(e->arena, Value);
    *r = *v;
    r->node = node_custom(e->g, v->node, in, n, body);
    return r;
}

/* --- calls ----------------------------------------------------------------------------------- */

static bool same_value(const Value *a, const Value *b) {
    if (a == b) {
        return true;
    }
    if (a->kind != b->kind) {
        return false;
    }
    switch (a->kind) {
    case V_INT: return a->integer == b->integer;
    case V_REAL: return a->real == b->real;
    case V_BOOL: return a->truth == b->truth;
    case V_TENSOR:
        return a->node == b->node && a->nspan == b->nspan && a->rank == b->rank &&
               memcmp(a->span, b->span, sizeof a->span) == 0;
    default: return false;
    }
}

static bool encloses(const Region *outer, const Region *inner) {
    for (; inner; inner = inner->up) {
        if (inner == outer) {
            return true;
        }
    }
    return false;
}

/* The same model with the same arguments in one block is one value. */
static ModelCall *model_call(Elab *e, const Item *item, const Frame *frame, bool *found) {
    const Ast *params = item->ast->kid[0];
    int n = params ? params->nkid : 0;
    ModelCall call = {.item = item, .region = e->g->region, .narg = n, .frozen = frame->frozen};
    call.arg = ARENA_ARRAY(e->arena, const Value *, n);
    for (int i = 0; i < n; i++) {
        call.arg[i] = scope_find_here(e->scope, params->kid[i]->name)->value;
    }
    for (int i = 0; i < e->entry->call.count; i++) {
        ModelCall *old = &e->entry->call.at[i];
        bool same = old->item == item && old->frozen == call.frozen && old->result &&
                    encloses(old->region, e->g->region);
        for (int k = 0; same && k < n; k++) {
            same = same_value(old->arg[k], call.arg[k]);
        }
        if (same) {
            *found = true;
            return old;
        }
    }
    *found = false;
    VEC_PUSH(e->arena, &e->entry->call, call);
    return &e->entry->call.at[e->entry->call.count - 1];
}

static const Value *inline_item(Elab *e, Item *item, const Ast *call, Arguments *args,
                                const Instance *instance) {
    if (item->busy && !item->in_adjoint) {
        return elab_error(e, call->loc, 237, "'%s' calls itself", item->name);
    }
    Frame *frame = ARENA_NEW(e->arena, Frame);
    Scope *before = e->scope;
    if (!place_frame(e, item, call, instance, frame) || !call_enter(e, item, args, call->loc, frame)) {
        return &value_poison;
    }
    int known = -1;
    if (item->kind == AST_MODEL && e->entry) {
        bool found;
        ModelCall *same = model_call(e, item, frame, &found);
        if (found) {
            call_leave(e, frame, before);
            return same->result;
        }
        known = (int)(same - e->entry->call.at);
        item->used = true;
    }
    IndexNotation *index = notation_save(e);
    bool busy = item->busy;
    item->busy = true;
    stmt_block(e, item->ast->kid[2]);
    const Value *v = frame->result;
    if (!v) {
        v = elab_error(e, item->loc, 238, "'%s' returns nothing", item->name);
    }
    v = declared_results(e, item, v, call->loc);
    if (item->kind == AST_OP && item->ast->kid[3] && !item->in_adjoint && elab_ok(v)) {
        v = with_adjoint(e, item, v, call->loc);
    }
    item->busy = busy;
    notation_restore(e, index);
    call_leave(e, frame, before);
    if (known >= 0) {
        e->entry->call.at[known].result = v;
    }
    return v;
}

static const Value *call_instance(Elab *e, const Instance *instance, const Ast *call,
                                  Arguments *args) {
    Arguments all = {0};
    for (int i = 0; i < instance->given.count; i++) {
        Argument arg = {.name = instance->given.at[i].name, .loc = instance->loc,
                        .value = instance->given.at[i].value};
        VEC_PUSH(e->arena, &all, arg);
    }
    for (int i = 0; i < args->count; i++) {
        VEC_PUSH(e->arena, &all, args->at[i]);
    }
    return inline_item(e, (Item *)instance->item, call, &all, instance);
}

const Value *call_new(Elab *e, const Ast *ast, const char *name) {
    Item *item = file_find(e->scope->file, ast->name);
    if (!item || item->kind != AST_LAYER) {
        elab_error(e, ast->name_loc, 239, item ? "'%s' is no layer" : "unknown layer '%s'", ast->name);
        Nearest n = nearest_start(ast->name);
        nearest_file(&n, e->scope->file);
        elab_hint_nearest(e, &n);
        return &value_poison;
    }
    if (!e->frame || !e->frame->path) {
        return elab_error(e, ast->loc, 240, "'new' makes parameters, so it can stand only in a layer or "
                                            "model");
    }
    Arguments args = {0};
    const Argument *given[64] = {0};
    arguments_of(e, ast->kid[0], NULL, ast->loc, &args);
    if (!evaluate_arguments(e, &args) || !match(e, item, &args, true, given) ||
        !call_segment(e, e->frame, name, ast->loc, "instance")) {
        return &value_poison;
    }
    Instance *instance = ARENA_NEW(e->arena, Instance);
    instance->item = item;
    instance->path = str_printf(e->arena, "%s.%s", e->frame->path, name);
    instance->loc = ast->loc;
    instance->frozen = e->frame->frozen || (ast->flags & AST_FROZEN) != 0;
    instance->frame = e->frame;
    instance->loop = e->loop;
    for (int i = 0; item->ast->kid[0] && i < item->ast->kid[0]->nkid; i++) {
        if (given[i]) {
            Given g = {item->ast->kid[0]->kid[i]->name, given[i]->value};
            VEC_PUSH(e->arena, &instance->given, g);
        }
    }
    Value *v = ARENA_NEW(e->arena, Value);
    v->kind = V_INSTANCE;
    v->instance = instance;
    return v;
}

static const Value *unknown_callee(Elab *e, const Ast *callee) {
    const ScopeName *bound = scope_find(e->scope, callee->name);
    const Item *item = file_find(e->scope->file, callee->name);
    if (bound || item) {
        return elab_error(e, callee->loc, 241, "'%s' is %s and cannot be called", callee->name,
                          bound ? value_kind_text(bound->value) : ast_kind_name(item->kind));
    }
    elab_error(e, callee->loc, 242, "unknown op or layer '%s'", callee->name);
    Nearest n = nearest_start(callee->name);
    nearest_scope(&n, e->scope);
    nearest_file(&n, e->scope->file);
    prelude_nearest(&n);
    elab_hint_nearest(e, &n);
    if (!n.best && e->root->use.count == 0) {
        diag_hint(&e->c->diag, "the standard library needs 'use nn;'");
    }
    return &value_poison;
}

/* f.columns(...), replay.push(...) */
static const Value *call_method(Elab *e, const Ast *call) {
    const Ast *callee = call->kid[0];
    if (callee->kid[0]->kind == AST_NAME) {
        const Item *item = file_find(e->scope->file, callee->kid[0]->name);
        if (item && item->kind == AST_RING) {
            return elab_error(e, call->loc, 243, "rings ('%s.%s') are not supported yet",
                              callee->kid[0]->name, callee->name);
        }
    }
    const Value *v = elab_expr(e, callee->kid[0]);
    if (!elab_ok(v)) {
        return v;
    }
    return elab_error(e, callee->loc, 244, "%s has no '%s' to call", value_kind_text(v), callee->name);
}

const Value *call_eval(Elab *e, const Ast *call, const Value *piped) {
    const Ast *callee = call->kid[0];
    Arguments args = {0};
    arguments_of(e, call->kid[1], piped, call->loc, &args);
    if (callee->kind == AST_DOT) {
        return call_method(e, call);
    }
    if (callee->kind != AST_NAME && callee->kind != AST_PATH) {
        return elab_error(e, callee->loc, 245, "this cannot be called");
    }
    const ScopeName *bound = scope_find(e->scope, callee->name);
    if (bound && bound->value && bound->value->kind == V_INSTANCE) {
        return evaluate_arguments(e, &args) ? call_instance(e, bound->value->instance, call, &args)
                                            : &value_poison;
    }
    Item *item = file_find(e->scope->file, callee->name);
    if (item && call_is_callable(item)) {
        return evaluate_arguments(e, &args) ? inline_item(e, item, call, &args, NULL) : &value_poison;
    }
    if (prelude_has(callee->name)) {
        if (call->flags & AST_FROZEN) {
            return elab_error(e, call->loc, 246, "'%s' has no parameters to freeze", callee->name);
        }
        return prelude_call(e, callee->name, call, &args);
    }
    return unknown_callee(e, callee);
}

bool call_ensure_model(Elab *e, const Item *model, Loc loc) {
    if (model->used) {
        return true;
    }
    /* Its parameters follow from its signature: one call with inputs of the declared types. */
    const Ast *params = model->ast->kid[0];
    Arguments args = {0};
    EntryScope *entry = e->entry;
    Scope *scope = e->scope;
    Frame *frame = e->frame;
    LoopScope *loop = e->loop;
    IndexNotation *index = notation_save(e);
    EntryScope scratch = {.name = model->name};
    Region *before = graph_enter(e->g, region_new(e->g, NULL));
    e->entry = &scratch;
    e->scope = scope_new(e->arena, NULL, model->file);
    e->loop = NULL;
    Frame top = {0};
    top.draw_owner = &top;
    top.draw_path = model->name;
    e->frame = &top;
    bool ok = true;
    for (int i = 0; ok && params && i < params->nkid; i++) {
        const Ast *p = params->kid[i];
        int rank;
        Dim dim[MD_RANK];
        Elem elem;
        if (p->kid[2]) {
            continue;
        }
        ok = dims_elem(e, p->kid[0], &elem) && dims_eval_type(e, p->kid[0], &rank, dim);
        if (ok) {
            Slot *slot = ARENA_NEW(e->arena, Slot);
            slot->kind = SLOT_INPUT;
            slot->name = p->name;
            slot->type = dims_type(elem == TY_ERROR ? TY_I32 : elem, rank, dim);
            const Value *v = value_tensor(e->arena, node_slot(e->g, slot), rank, dim);
            int64_t lo, hi;
            if (p->kid[1] && dims_range(e, p->kid[1], &lo, &hi)) {
                v = value_ranged(e->arena, v, lo, hi);
            }
            Argument arg = {.name = p->name, .loc = p->loc, .value = v};
            VEC_PUSH(e->arena, &args, arg);
        }
    }
    if (ok) {
        Ast call = {.kind = AST_CALL, .loc = loc};
        ok = elab_ok(inline_item(e, (Item *)model, &call, &args, NULL));
    }
    graph_leave(e->g, before);
    e->entry = entry;
    e->scope = scope;
    e->frame = frame;
    e->loop = loop;
    notation_restore(e, index);
    return ok;
}
