/* bind: arguments to parameters, and the shapes of arguments to dim variables. */
#include "lang/call.h"

#include "lang/arith.h"
#include "lang/dims.h"
#include "lang/expr.h"
#include "lang/half.h"
#include "lang/notation.h"
#include "lang/point.h"
#include "lang/prelude.h"

#include <string.h>

enum { MAX_CALLS = 200 };

void call_arguments(Elab *e, const Ast *args, const Value *piped, Loc loc, Arguments *out) {
    if (piped) {
        Argument first = {.loc = loc, .value = piped};
        VEC_PUSH(e->scratch, out, first);
    }
    for (int i = 0; args && i < args->nkid; i++) {
        const Ast *a = args->kid[i];
        Argument arg = {.loc = a->loc, .ast = a};
        if (a->kind == AST_ARG) {
            arg.name = a->name;
            arg.ast = a->kid[0];
        }
        VEC_PUSH(e->scratch, out, arg);
    }
}

bool call_evaluate(Elab *e, Arguments *args) {
    bool ok = true;
    for (int i = 0; i < args->count; i++) {
        if (!args->at[i].value) {
            args->at[i].value = elab_expr(e, args->at[i].ast);
        }
        ok = elab_ok(args->at[i].value) && ok;
    }
    return ok;
}

bool call_is_setting(const Ast *type) {
    static const char *const names[] = {"int", "int2", "int3", "real", "bool", "text"};
    for (size_t i = 0;
         !(type->flags & AST_SHAPED) && type->name && i < sizeof names / sizeof *names; i++) {
        if (str_eq(type->name, names[i])) {
            return true;
        }
    }
    return false;
}

int call_parameter(const Ast *params, const char *name) {
    for (int i = 0; params && i < params->nkid; i++) {
        if (str_eq(params->kid[i]->name, name)) {
            return i;
        }
    }
    return -1;
}

bool call_works_along(const Item *item) {
    const Ast *params = item->ast->kid[0];
    const Ast *type = params && params->nkid > 0 ? params->kid[0]->kid[0] : NULL;
    return item->kind == AST_OP && type && type->nkid == 2 && type->kid[0]->kind == AST_PACK &&
           type->kid[1]->kind == AST_NAME && call_parameter(params, "axis") < 0;
}

static bool unknown_parameter(Elab *e, const Item *item, const Argument *arg) {
    if (!item->file->library &&
        !elab_first(e, 211, str_printf(e->arena, "%s.%s", item->name, arg->name))) {
        return false;
    }
    elab_error(e, arg->loc, 211, "'%s' has no parameter '%s'", item->name, arg->name);
    Nearest n = nearest_start(arg->name);
    const Ast *params = item->ast->kid[0];
    Text names = {.arena = e->arena};
    int count = 0;
    for (int i = item->kind == AST_OPTIMIZER ? 2 : 0; params && i < params->nkid; i++) {
        nearest_add(&n, params->kid[i]->name);
        text_printf(&names, count++ ? ", %s" : "%s", params->kid[i]->name);
    }
    diag_note(&e->c->diag, item->loc, "'%s' is declared here", item->name);
    if (call_works_along(item) && prelude_hint_axis(e, arg->name)) {
        return false;
    }
    if (elab_hint_foreign_arg(e, arg->name, params)) {
        return false;
    }
    if (n.best) {
        elab_hint_nearest(e, &n);
    } else if (count > 0) {
        diag_hint(&e->c->diag, "it has %s", names.at);
    }
    return false;
}

bool call_match(Elab *e, const Item *item, const Arguments *args, bool only_numbers,
                const Argument **out) {
    const Ast *params = item->ast->kid[0];
    int n = params ? params->nkid : 0, next = 0;
    if (n > CALL_PARAMS) {
        elab_error(e, item->loc, 223, "'%s' has more than %d parameters", item->name, CALL_PARAMS);
        return false;
    }
    for (int i = 0; i < args->count; i++) {
        const Argument *arg = &args->at[i];
        if (!arg->name) {
            continue;
        }
        int k = call_parameter(params, arg->name);
        if (k < 0) {
            return unknown_parameter(e, item, arg);
        }
        if (out[k]) {
            elab_error(e, arg->loc, 212, "parameter '%s' of '%s' is given twice", arg->name,
                       item->name);
            return false;
        }
        out[k] = arg;
    }
    for (int i = 0; i < args->count; i++) {
        const Argument *arg = &args->at[i];
        if (arg->name) {
            continue;
        }
        while (next < n &&
               (out[next] || (only_numbers && !call_is_setting(params->kid[next]->kid[0])))) {
            next++;
        }
        if (next == n) {
            elab_error(e, arg->loc, 213, "'%s' takes %d argument%s, this is one more", item->name,
                       n, n == 1 ? "" : "s");
            diag_note(&e->c->diag, item->loc, "'%s' is declared here", item->name);
            if (call_works_along(item)) {
                diag_hint(&e->c->diag, "an axis is given by name: axis = n");
            }
            return false;
        }
        out[next++] = arg;
    }
    return true;
}

static const char *what_of(Elab *e, const Item *item, const Ast *param) {
    return str_printf(e->scratch, "argument '%s' of '%s'", param->name, item->name);
}

/* int2, int3: a list of so many integers, or one that stands for all. */
static const Value *bind_integers(Elab *e, int n, const Value *v, Loc loc, const char *what) {
    const Value *item[3] = {v, v, v};
    if (v->kind == V_INT) {
        return value_list(e->arena, item, n);
    }
    bool good = v->kind == V_LIST && v->count == n;
    for (int i = 0; good && i < n; i++) {
        good = v->item[i]->kind == V_INT;
    }
    if (good) {
        return v;
    }
    const char *found = v->kind == V_LIST && v->count != n
                            ? str_printf(e->arena, "a list of %d", v->count)
                            : value_text(e->arena, v);
    elab_error(e, loc, 285, "%s must be a compile-time integer or a list of %d, found %s", what, n,
               found);
    diag_hint(&e->c->diag, "one number stands for all axes, %s for each its own",
              n == 2 ? "[3, 5]" : "[3, 5, 5]");
    return &value_poison;
}

/* int, int2, int3, real, bool, text and element types without a shape. */
static const Value *bind_scalar(Elab *e, const Item *item, const Ast *param, const Value *v,
                                Loc loc) {
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
    if (str_eq(name, "int2") || str_eq(name, "int3")) {
        return bind_integers(e, name[3] - '0', v, loc, what);
    }
    if (str_eq(name, "text")) {
        return v->kind == V_STRING
                   ? v
                   : elab_error(e, loc, 293, "%s must be a text in quotes, found %s", what,
                                value_text(e->arena, v));
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
    if (number || (elem == TY_BOOL && v->kind == V_BOOL) || (runtime && half_fits(v, elem))) {
        return v;
    }
    if (runtime && elem_is_int(elem) && elem_is_int(value_elem(v)) &&
        elem_bytes(value_elem(v)) < elem_bytes(elem)) {
        return arith_cast(e, loc, elem, v);
    }
    elab_error(e, loc, 217, "%s must be a scalar %s, found %s", what, elem_name(elem),
               value_text(e->arena, v));
    half_hint(e, v, elem);
    return &value_poison;
}

/* Brings the elements of v to those of a shaped parameter. */
static const Value *bind_elem(Elab *e, const Item *item, const Ast *param, const Value *v,
                              Loc loc) {
    Elem elem, have = value_elem(v);
    if (!dims_elem(e, param->kid[0], &elem)) {
        return &value_poison;
    }
    bool unmarked = !param->kid[0]->name;
    if (param->kid[1] && elem != TY_ERROR && !elem_is_int(elem)) {
        elab_error(e, param->kid[1]->loc, 220, "only integers have a range");
        if (unmarked) {
            diag_hint(&e->c->diag, "without a word elements are floats; int[...] takes integers");
        }
        return &value_poison;
    }
    if (unmarked           ? elem_is_float(have)
        : elem == TY_ERROR ? elem_is_int(have)
                           : half_fits(v, elem)) {
        return v;
    }
    if (!unmarked && elem != TY_ERROR && elem_is_int(elem) && elem_is_int(have) &&
        elem_bytes(have) < elem_bytes(elem)) {
        return arith_cast(e, loc, elem, v);
    }
    elab_error(e, loc, 218, "%s has elements of type %s, expected %s", what_of(e, item, param),
               elem_name(half_elem(v)),
               unmarked           ? "floats"
               : elem == TY_ERROR ? "integers"
                                  : elem_name(elem));
    if (elem_is_int(have) && unmarked) {
        diag_hint(&e->c->diag, "f32(i) converts");
    }
    half_hint(e, v, elem);
    return &value_poison;
}

static ScopeName *bound_name(Elab *e, const Ast *param, const Value *v) {
    return scope_add(e->scratch, e->scope, param->name, param->name_loc, BIND_ARGUMENT,
                     point_given(e, param->name, v));
}

/* A number where a tensor is expected has the shape that the others gave. */
static const Value *fill(Elab *e, const Ast *param, const Value *v, Loc loc) {
    Elem elem;
    int rank;
    Dim dim[MD_RANK];
    if (!dims_elem(e, param->kid[0], &elem)) {
        return &value_poison;
    }
    v = arith_tensor(e, loc, v, elem == TY_ERROR ? TY_I32 : elem_computed(elem));
    bool lone = param->kid[0]->nkid == 1 && param->kid[0]->kid[0]->kind == AST_PACK &&
                !e->frame->pack_bound;
    if (!elab_ok(v) || lone || !dims_eval_type(e, param->kid[0], &rank, dim)) {
        return elab_ok(v) && lone ? v : &value_poison;
    }
    const Value *full = value_tensor(
        e->arena, node_broadcast_to(e->g, v->node, dims_type(value_elem(v), rank, dim)), rank, dim);
    return v->ranged ? value_ranged(e->scratch, full, v->lo, v->hi) : full;
}

/* A list of numbers where a tensor is expected is a constant tensor with one axis. */
static const Value *list_tensor(Elab *e, const Ast *param, const Value *v, Loc loc) {
    Elem elem;
    if (!dims_elem(e, param->kid[0], &elem)) {
        return &value_poison;
    }
    Elem stored = elem == TY_ERROR ? TY_I32 : elem;
    elem = elem_computed(stored);
    double *number = ARENA_ARRAY(e->arena, double, v->count);
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    for (int i = 0; i < v->count; i++) {
        const Value *item = v->item[i];
        if (!value_is_number(item)) {
            return v;
        }
        if (!elab_ok(arith_tensor(e, loc, item, elem))) {
            return &value_poison;
        }
        number[i] =
            elem_is_half(stored) ? num_round(stored, value_number(item)) : value_number(item);
        lo = item->integer < lo ? item->integer : lo;
        hi = item->integer >= hi ? item->integer + 1 : hi;
    }
    Dim dim = {.size = v->count};
    const Value *t =
        value_tensor(e->arena, node_table(e->g, dims_type(elem, 1, &dim), number), 1, &dim);
    return elem_is_int(elem) && v->count > 0 ? value_ranged(e->arena, t, lo, hi) : t;
}

/* Binds all parameters in the scope and frame at hand. */
static bool bind_all(Elab *e, const Item *item, const Argument **given, Loc loc) {
    const Ast *params = item->ast->kid[0];
    int n = params ? params->nkid : 0;
    ScopeName *bound[CALL_PARAMS] = {0};
    const Value *value[CALL_PARAMS] = {0};
    bool settings = true;         /* each wrong one is said */
    for (int i = 0; i < n; i++) { /* what is known first: shapes may name it */
        const Ast *param = params->kid[i];
        bool shaped = (param->kid[0]->flags & AST_SHAPED) != 0;
        value[i] = given[i] ? given[i]->value : NULL;
        if (value[i] && shaped && value[i]->kind == V_LIST) {
            value[i] = list_tensor(e, param, value[i], given[i]->loc);
            if (!elab_ok(value[i])) {
                return false;
            }
        } else if (value[i] && !shaped) {
            const Value *v = bind_scalar(e, item, param, given[i]->value, given[i]->loc);
            bound[i] = bound_name(e, param, v);
            settings = elab_ok(v) && settings;
        }
    }
    if (!settings) {
        return false;
    }
    Dim dim[CALL_PARAMS][MD_RANK];
    for (int i = 0; i < n; i++) {
        const Ast *param = params->kid[i];
        if (!given[i] || bound[i] || value[i]->kind != V_TENSOR) {
            continue;
        }
        const Value *v = bind_elem(e, item, param, value[i], given[i]->loc);
        if (!elab_ok(v)) {
            return false;
        }
        for (int k = 0; k < v->rank; k++) {
            dim[i][k] = v->dim[k];
        }
        if (!dims_unify(e, param->kid[0], v, given[i]->loc, what_of(e, item, param), DIMS_BIND,
                        dim[i])) {
            return false;
        }
        bound[i] = bound_name(e, param, v);
    }
    for (int i = 0; i < n; i++) {
        const Ast *param = params->kid[i];
        if (given[i] && !bound[i]) {
            const Value *v = value[i];
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
            const Value *v = bound[i] ? bound[i]->value : value[i];
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
            Value *named = ARENA_NEW(e->scratch, Value);
            *named = *bound[i]->value;
            if (!dims_unify(e, param->kid[0], named, at, what, DIMS_LATE, dim[i])) {
                return false;
            }
            memcpy(value_axes(e->scratch, named, named->nspan, named->rank).dim, dim[i],
                   sizeof dim[i][0] * (size_t)named->rank);
            bound[i]->value = named;
        }
        if (!dims_within(e, param->kid[1], bound[i]->value, at, what_of(e, item, param))) {
            return false;
        }
    }
    return true;
}

void call_check_settings(Elab *e, const Item *item, const Arguments *args) {
    const Ast *params = item->ast->kid[0];
    const Argument *given[CALL_PARAMS] = {0};
    if (!call_match(e, item, args, false, given)) {
        return;
    }
    for (int i = 0; params && i < params->nkid; i++) {
        if (given[i] && call_is_setting(params->kid[i]->kid[0])) {
            bind_scalar(e, item, params->kid[i], given[i]->value, given[i]->loc);
        }
    }
}

bool call_enter(Elab *e, Item *item, Arguments *args, Loc loc, Frame *frame) {
    const Argument *given[CALL_PARAMS] = {0};
    item->called = true;
    if (!call_match(e, item, args, false, given)) {
        return false;
    }
    int depth = 0;
    for (const Frame *f = e->frame; f; f = f->up) {
        depth++;
    }
    if (item->deep) { /* it has been said, and each call would go as deep again */
        e->errors++;
    } else if (depth > MAX_CALLS) {
        elab_error(e, loc, 226, "calls are nested more than %d deep", MAX_CALLS);
    }
    if (item->deep || depth > MAX_CALLS) {
        for (const Frame *f = e->frame; f && f->item; f = f->up) {
            f->item->deep = true;
        }
        return false;
    }
    Scope *scope = e->scope;
    frame->up = e->frame;
    frame->item = item;
    frame->call = loc;
    frame->call_loop = e->loop;
    e->scope = scope_new(e->scratch, NULL, item->file);
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
