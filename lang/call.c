/* call: a call opens a scope with the parameters and dim variables, and a frame that says where
 * parameters live; then the body runs like any statements. */
#include "lang/call.h"

#include "lang/adjoint.h"
#include "lang/dims.h"
#include "lang/expr.h"
#include "lang/foreign.h"
#include "lang/model_copy.h"
#include "lang/modules.h"
#include "lang/naming.h"
#include "lang/notation.h"
#include "lang/owner.h"
#include "lang/params.h"
#include "lang/part.h"
#include "lang/prelude.h"
#include "lang/ring.h"
#include "lang/stmt.h"

#include <string.h>

/* An op that is called in its own adjoint has that adjoint there too, for second derivatives. One
 * that is called in that one is plain. */
enum { ADJOINTS = 2 };

bool call_is_callable(const Item *item) {
    return item->kind == AST_OP || item->kind == AST_LAYER || item->kind == AST_MODEL;
}

/* --- paths ----------------------------------------------------------------------------------- */

/* The unlabelled calls of that name in the tree, in the order of the text. */
typedef VEC(const Ast *) Calls;
static void find_calls(Elab *e, const Ast *ast, const char *name, Calls *out) {
    if (!ast) {
        return;
    }
    if (ast->kind == AST_CALL && !ast->name && str_eq(ast->kid[0]->name, name)) {
        int i = out->count;
        VEC_PUSH(e->arena, out, ast);
        for (; i > 0 && out->at[i - 1]->loc.at > ast->loc.at; i--) {
            out->at[i] = out->at[i - 1];
            out->at[i - 1] = ast;
        }
    }
    for (int i = 0; i < ast->nkid; i++) {
        find_calls(e, ast->kid[i], name, out);
    }
}

/* The line of `loc` with labels put in before the calls of that layer. */
static void hint_labels(Elab *e, const Item *item, const char *name, Loc loc) {
    const Source *source = &e->c->diag.sources.at[loc.source];
    Calls calls = {0};
    find_calls(e, item->ast, name, &calls);
    uint32_t begin = loc.at, end = loc.at;
    while (begin > 0 && source->text[begin - 1] != '\n') {
        begin--;
    }
    while (end < source->length && source->text[end] != '\n' && source->text[end] != '\r') {
        end++;
    }
    while (begin < end && (source->text[begin] == ' ' || source->text[begin] == '\t')) {
        begin++;
    }
    Text line = {.arena = e->arena};
    for (int i = 0; i < calls.count; i++) {
        uint32_t at = calls.at[i]->loc.at;
        if (at >= begin && at < end) {
            text_addn(&line, source->text + begin, at - begin);
            text_printf(&line, "%s%d: ", name, i + 1);
            begin = at;
        }
    }
    text_addn(&line, source->text + begin, end - begin);
    diag_hint(&e->c->diag, "%s", line.at);
}

bool call_segment(Elab *e, Frame *frame, const char *name, Loc loc, const char *what) {
    Frame *f = frame->names ? frame->names : frame;
    int i = names_at(&f->segments, name);
    if (i >= 0) {
        if (!elab_first_in_body(e, 227, name)) {
            return false; /* the hint has labelled them all */
        }
        elab_error(e, loc, 227, "%s '%s' would have the same path '%s.%s' as an earlier one", what,
                   name, frame->path, name);
        diag_note(&e->c->diag, f->segment.at[i].loc, "the earlier one is here");
        if (str_eq(what, "layer") && f->item) {
            hint_labels(e, f->item, name, loc);
        } else {
            diag_hint(&e->c->diag, "give each its own name");
        }
        return false;
    }
    Segment s = {name, loc};
    VEC_PUSH(e->arena, &f->segment, s);
    names_push(e->arena, &f->segments, name);
    return true;
}

/* A draw path: the second time a path is entered in an entry it draws other numbers. */
static const char *draw_path(Elab *e, const char *path) {
    if (!e->entry) {
        return path;
    }
    int i = names_at(&e->entry->visits, path);
    if (i >= 0) {
        return str_printf(e->arena, "%s#%d", path, ++e->entry->visit.at[i].count);
    }
    Visit visit = {path, 0};
    VEC_PUSH(e->arena, &e->entry->visit, visit);
    names_push(e->arena, &e->entry->visits, path);
    return path;
}

/* Where the parameters and draws of a call live. */
static bool place_frame(Elab *e, Item *item, const Ast *call, const Instance *instance,
                        Frame *frame) {
    const Frame *up = e->frame;
    frame->frozen = (up && up->frozen) || (call->flags & AST_FROZEN) != 0;
    if (item->kind == AST_OP) {
        frame->draw_owner = up ? up->draw_owner : NULL;
        return true;
    }
    frame->draw_owner = frame;
    frame->names = frame;
    if (item->kind == AST_MODEL && !e->entry) {
        elab_error(e, call->loc, 611, "model '%s' is not known at compile time", item->name);
        diag_hint(&e->c->diag, "an op without parameters may be called here");
        return false;
    }
    if (item->kind == AST_MODEL && !elab_outside_adjoint(e, call->loc, item->name)) {
        return false;
    }
    if (item->kind == AST_MODEL) {
        frame->path = instance ? instance->path : item->name;
        frame->root = true;
        naming_root(e, frame, item->name);
        frame->draw_path = draw_path(e, frame->path);
        return true;
    }
    if (instance) {
        frame->path = instance->path;
        frame->file = instance->file;
        frame->turn = instance->turn;
        frame->instance = instance;
        frame->frozen = frame->frozen || instance->frozen;
        frame->draw_path = draw_path(e, instance->path);
        return true;
    }
    if (!up || !up->path) {
        elab_error(e, call->loc, 228, "layer '%s' can be called only in a layer or model",
                   item->name);
        return false;
    }
    const char *label = call->name ? call->name : item->name;
    if (str_eq(label, "_")) {
        frame->path = up->path;
        naming_call(e, up, item, NULL, &frame->file, &frame->turn);
        frame->names = up->names;
        frame->draw_path = draw_path(e, up->draw_path);
        return true;
    }
    if (!call_segment(e, e->frame, label, call->name ? call->name_loc : call->loc,
                      call->name ? "label" : "layer")) {
        return false;
    }
    frame->path = str_printf(e->arena, "%s.%s", up->path, label);
    naming_call(e, up, item, label, &frame->file, &frame->turn);
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
        const char *what = str_printf(e->arena, "the result of '%s'", item->name);
        v = dims_annotate(e, result->kid[0], v, loc, what);
        return elab_ok(v) && dims_within(e, result->kid[1], v, loc, what) ? v : &value_poison;
    }
    if (v->kind != V_RECORD || v->count != result->nkid) {
        return elab_error(e, loc, 230, "'%s' declares %d results, this returns %d", item->name,
                          result->nkid, v->kind == V_RECORD ? v->count : 1);
    }
    Value *r = ARENA_NEW(e->scratch, Value);
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
        const char *what = str_printf(e->arena, "result '%s' of '%s'", want->name, item->name);
        r->item[i] = dims_annotate(e, want->kid[0], v->item[k], loc, what);
        if (!elab_ok(r->item[i]) || !dims_within(e, want->kid[1], r->item[i], loc, what)) {
            return &value_poison;
        }
    }
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
    case V_STRING: return str_eq(a->text, b->text);
    case V_LIST:
        for (int i = 0; i < a->count; i++) {
            if (a->count != b->count || !same_value(a->item[i], b->item[i])) {
                return false;
            }
        }
        return a->count == b->count;
    case V_TENSOR: return a->node == b->node && a->rank == b->rank && value_same_span(a, b);
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

/* Equal calls of a model are one value, with one set of draws, unless their labels differ. */
static void warn_same_draws(Elab *e, const ModelCall *old, const Item *item, Loc loc) {
    int line = 0, column = 0;
    loc_line(&e->c->diag, old->loc, &line, &column);
    elab_warn(e, loc, 640,
              "this is the same value as the call of '%s' in line %d, with the same random draws",
              item->name, line);
    diag_hint(&e->c->diag,
              "a label makes it another call, with the same parameters: again: %s(...); for one "
              "value give the first a name",
              item->name);
}

/* The same model with the same arguments, and the same label, in one block is one value, unless it
 * uses states that have moved since, or may move from one iteration to the next. */
static ModelCall *model_call(Elab *e, const Item *item, const Ast *ast, const Frame *frame,
                             bool *found) {
    const Ast *params = item->ast->kid[0];
    int n = params ? params->nkid : 0;
    ModelCall call = {.path = frame->path,
                      .label = ast->name,
                      .loc = ast->loc,
                      .region = e->g->region,
                      .narg = n,
                      .frozen = frame->frozen,
                      .exact = e->g->exact,
                      .moves = e->entry->state_moves};
    call.arg = ARENA_ARRAY(e->arena, const Value *, n);
    for (int i = 0; i < n; i++) {
        call.arg[i] = scope_find_here(e->scope, params->kid[i]->name)->value;
    }
    for (int i = 0; i < e->entry->call.count; i++) {
        ModelCall *old = &e->entry->call.at[i];
        bool labels =
            old->label && call.label ? str_eq(old->label, call.label) : old->label == call.label;
        bool same = str_eq(old->path, call.path) && labels && old->frozen == call.frozen &&
                    old->exact == call.exact && old->result &&
                    encloses(old->region, e->g->region) &&
                    (!old->uses_state ||
                     (old->moves == e->entry->state_moves && old->region == e->g->region));
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

/* Reports speak of what a layer gives by its path: "fc1.out". */
static void name_results(Elab *e, const Value *v, const char *path) {
    path = params_file_name(e, path);
    if (v->kind == V_TENSOR && v->nspan == 0) {
        graph_name(v->node, str_printf(e->arena, "%s.out", path));
    }
    for (int i = 0; v->kind == V_RECORD && i < v->count; i++) {
        if (v->item[i]->kind == V_TENSOR) {
            graph_name(v->item[i]->node, str_printf(e->arena, "%s.%s", path, v->field[i]));
        }
    }
}

static const Value *inline_item(Elab *e, Item *item, const Ast *call, Arguments *args,
                                const Instance *instance) {
    if (item->busy && item->adjoints == 0) {
        return elab_error(e, call->loc, 237, "'%s' calls itself", item->name);
    }
    if (item->kind == AST_MODEL && item->failed) {
        return &value_poison;
    }
    Frame *frame = ARENA_NEW(e->scratch, Frame);
    Scope *before = e->scope;
    if (!place_frame(e, item, call, instance, frame) ||
        !call_enter(e, item, args, call->loc, frame)) {
        return &value_poison;
    }
    int known = -1;
    if (item->kind == AST_MODEL && e->entry) {
        bool found;
        ModelCall *same = model_call(e, item, call, frame, &found);
        if (found) {
            e->entry->state_uses += same->uses_state;
            if (same->draws && same->loc.at != call->loc.at) {
                warn_same_draws(e, same, item, call->loc);
                e->entry->draws++; /* whoever calls this twice does so with it */
            }
            call_leave(e, frame, before);
            return same->result;
        }
        known = (int)(same - e->entry->call.at);
        item->used = true;
    }
    part_note(e, item, frame);
    IndexNotation *index = notation_save(e);
    bool busy = item->busy;
    int errors = e->errors, uses = e->entry ? e->entry->state_uses : 0;
    int64_t draws = e->entry ? e->entry->draws : 0;
    item->busy = true;
    bool exact = e->g->exact;
    e->g->exact = exact || stmt_has_attribute(item->ast, "f32");
    uint32_t owner = owner_enter(e, item, frame->path);
    stmt_block(e, item->ast->kid[2]);
    e->g->exact = exact;
    const Value *v = frame->result;
    if (!v) {
        v = elab_error(e, item->loc, 238, "'%s' returns nothing", item->name);
    }
    v = declared_results(e, item, v, call->loc);
    if (item->kind == AST_OP && item->ast->kid[3] && item->adjoints < ADJOINTS && elab_ok(v)) {
        v = adjoint_wrap(e, item, v);
    }
    if (item->kind != AST_OP) {
        owner_result(e, v);
    }
    owner_leave(e, owner);
    item->busy = busy;
    item->failed = item->kind == AST_MODEL && e->errors != errors;
    notation_restore(e, index);
    call_leave(e, frame, before);
    if (known >= 0) {
        e->entry->call.at[known].result = v;
        e->entry->call.at[known].uses_state = e->entry->state_uses != uses;
        e->entry->call.at[known].draws = e->entry->draws > draws;
    }
    if (item->kind == AST_LAYER) {
        name_results(e, v, frame->path);
    }
    return v;
}

static const Value *call_instance(Elab *e, Instance *instance, const Ast *call, Arguments *args) {
    Arguments all = {0};
    if (instance->failed) {
        e->errors++; /* said at its first call */
        return &value_poison;
    }
    for (int i = 0; i < instance->given.count; i++) {
        Argument arg = {.name = instance->given.at[i].name,
                        .loc = instance->loc,
                        .value = instance->given.at[i].value};
        VEC_PUSH(e->scratch, &all, arg);
    }
    for (int i = 0; i < args->count; i++) {
        VEC_PUSH(e->scratch, &all, args->at[i]);
    }
    const Value *v = inline_item(e, instance->item, call, &all, instance);
    instance->failed = !elab_ok(v);
    return v;
}

const Value *call_new(Elab *e, const Ast *ast, const char *name) {
    Item *item = file_find(e->scope->file, ast->name);
    if (!item || item->kind != AST_LAYER) {
        elab_error(e, ast->name_loc, 239, item ? "'%s' is no layer" : "unknown layer '%s'",
                   ast->name);
        Nearest n = nearest_start(ast->name);
        nearest_file(&n, e->scope->file);
        elab_hint_nearest(e, &n);
        return &value_poison;
    }
    if (!e->frame || !e->frame->path) {
        return elab_error(e, ast->loc, 240,
                          "'new' makes parameters, so it can stand only in a layer or "
                          "model");
    }
    Arguments args = {0};
    const Argument *given[CALL_PARAMS] = {0};
    call_arguments(e, ast->kid[0], NULL, ast->loc, &args);
    if (!call_evaluate(e, &args) || !call_match(e, item, &args, true, given) ||
        !call_segment(e, e->frame, name, ast->loc, "instance")) {
        return &value_poison;
    }
    Instance *instance = ARENA_NEW(e->scratch, Instance);
    instance->item = item;
    instance->path = str_printf(e->arena, "%s.%s", e->frame->path, name);
    naming_call(e, e->frame, item, name, &instance->file, &instance->turn);
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
    Value *v = ARENA_NEW(e->scratch, Value);
    v->kind = V_INSTANCE;
    v->instance = instance;
    return v;
}

const Value *call_unknown(Elab *e, const Ast *callee) {
    const ScopeName *bound = scope_find(e->scope, callee->name);
    const Item *item = file_find(e->scope->file, callee->name);
    if (bound ? !elab_ok(bound->value) : item && item->failed) {
        return &value_poison;
    }
    if (bound || item) {
        elab_error(e, callee->loc, 241, "'%s' is %s and cannot be called", callee->name,
                   bound ? value_kind_text(bound->value) : item_text(e->arena, item));
        if (bound) {
            diag_hint(&e->c->diag, "a product needs its '*', an element is read by %s[i]",
                      callee->name);
        }
        return &value_poison;
    }
    const char *module = modules_with(e, callee->name);
    if (module ? !elab_first(e, 242, module) : !elab_first_in_body(e, 242, callee->name)) {
        return &value_poison;
    }
    elab_error(e, callee->loc, 242, "unknown op or layer '%s'", callee->name);
    if (module) {
        diag_hint(&e->c->diag, "it is in the library: 'use %s;'", module);
        return &value_poison;
    }
    if (elab_hint_foreign(e, callee->name)) {
        return &value_poison;
    }
    Nearest n = nearest_start(callee->name);
    nearest_scope(&n, e->scope);
    nearest_file(&n, e->scope->file);
    prelude_nearest(&n);
    elab_hint_nearest(e, &n);
    return &value_poison;
}

static bool has_axis(const Item *item, const Arguments *args) {
    for (int i = 0; call_works_along(item) && i < args->count; i++) {
        if (args->at[i].name && str_eq(args->at[i].name, "axis")) {
            return true;
        }
    }
    return false;
}

/* v with its own axis `from` moved to `to`. */
static const Value *move_axis(Elab *e, const Value *v, int from, int to) {
    int map[MD_RANK], n = 0;
    Value *r = ARENA_NEW(e->scratch, Value);
    *r = *v;
    Axes axes = value_axes(e->scratch, r, v->nspan, v->rank);
    for (int i = 0; i < v->nspan; i++) {
        map[n++] = i;
    }
    for (int i = 0, next = 0; i < v->rank; i++) {
        next += next == from;
        int axis = i == to ? from : next++;
        axes.dim[i] = v->dim[axis];
        map[n++] = v->nspan + axis;
    }
    r->node = node_permute(e->g, v->node, map);
    return r;
}

static const Value *call_along(Elab *e, Item *item, const Ast *call, Arguments *args) {
    Arguments rest = {0};
    const Value *at = NULL;
    Loc loc = call->loc;
    for (int i = 0; i < args->count; i++) {
        if (args->at[i].name && str_eq(args->at[i].name, "axis")) {
            at = args->at[i].value;
            loc = args->at[i].loc;
        } else {
            VEC_PUSH(e->scratch, &rest, args->at[i]);
        }
    }
    Argument *first = rest.count > 0 && !rest.at[0].name ? &rest.at[0] : NULL;
    if (!first || first->value->kind != V_TENSOR || at->kind != V_INT) {
        return elab_error(e, loc, 243,
                          "'axis' must be a compile-time integer, and the first argument a tensor");
    }
    int rank = first->value->rank;
    int axis = (int)(at->integer < 0 ? at->integer + rank : at->integer);
    if (at->integer < -rank || at->integer >= rank) {
        return elab_error(e, loc, 290, "there is no axis %lld in a tensor of rank %d",
                          (long long)at->integer, rank);
    }
    if (!elab_plain(e, loc, first->value)) {
        return &value_poison;
    }
    first->value = move_axis(e, first->value, axis, rank - 1);
    const Value *v = inline_item(e, item, call, &rest, NULL);
    return v->kind == V_TENSOR && v->rank == rank ? move_axis(e, v, rank - 1, axis) : v;
}

/* torch.cat(...), nn.functional.relu(...): the name of a library in front, which nothing here has.
 * NULL: it is no such call. */
static const Value *call_of_module(Elab *e, const Ast *callee) {
    const Ast *root = callee;
    while (root->kind == AST_DOT) {
        root = root->kid[0];
    }
    const char *name = callee->name;
    if (root->kind != AST_NAME || scope_find(e->scope, root->name) ||
        file_find(e->scope->file, root->name) || !foreign_is_module(root->name)) {
        return NULL;
    }
    const char *whole = str_printf(e->arena, "%s.%s", root->name, name);
    if (!elab_first_in_body(e, 242, whole)) {
        return &value_poison;
    }
    elab_error(e, callee->loc, 242, "unknown op or layer '%s'", whole);
    const char *module = modules_with(e, name);
    if (file_find(e->scope->file, name) || prelude_has(name)) {
        diag_hint(&e->c->diag, "it is called by its plain name: %s(...)", name);
    } else if (module) {
        diag_hint(&e->c->diag, "'%s' is in the library: 'use %s;', and called by its plain name",
                  name, module);
    } else if (!elab_hint_foreign(e, name)) {
        Nearest n = nearest_start(name);
        nearest_file(&n, e->scope->file);
        prelude_nearest(&n);
        elab_hint_nearest(e, &n);
    }
    return &value_poison;
}

/* f.columns(...), replay.push(...) */
static const Value *call_method(Elab *e, const Ast *call) {
    const Ast *callee = call->kid[0];
    const Value *module = call_of_module(e, callee);
    if (module) {
        return module;
    }
    Item *ring = ring_named(e, callee->kid[0]);
    if (ring) {
        return ring_call(e, ring, call);
    }
    const Value *v = elab_expr(e, callee->kid[0]);
    if (!elab_ok(v)) {
        return v;
    }
    elab_error(e, callee->loc, 244, "%s has no '%s' to call", value_kind_text(v), callee->name);
    if (!elab_hint_foreign(e, callee->name) && v->kind == V_TENSOR) {
        diag_hint(&e->c->diag, "ops are called by their names: %s(x)", callee->name);
    }
    return &value_poison;
}

const Value *call_eval(Elab *e, const Ast *call, const Value *piped) {
    const Ast *callee = call->kid[0];
    Arguments args = {0};
    call_arguments(e, call->kid[1], piped, call->loc, &args);
    bool is_part;
    Instance *part = part_find(e, call, &args, &is_part);
    if (is_part) {
        bool ok = part && call_evaluate(e, &args);
        return ok ? call_instance(e, part, call, &args) : &value_poison;
    }
    if (callee->kind == AST_DOT) {
        return call_method(e, call);
    }
    if (callee->kind != AST_NAME && callee->kind != AST_PATH) {
        elab_error(e, callee->loc, 245, "only a name can be called");
        diag_hint(&e->c->diag, "a product needs its '*'");
        return &value_poison;
    }
    const ScopeName *bound = scope_find(e->scope, callee->name);
    if (bound && bound->value && bound->value->kind == V_INSTANCE) {
        return call_evaluate(e, &args) ? call_instance(e, bound->value->instance, call, &args)
                                       : &value_poison;
    }
    Item *item = file_find(e->scope->file, callee->name);
    if (item && call_is_callable(item)) {
        if (!call_evaluate(e, &args)) {
            if (!has_axis(item, &args)) {
                call_check_settings(e, item, &args);
            }
            return &value_poison;
        }
        return has_axis(item, &args) ? call_along(e, item, call, &args)
                                     : inline_item(e, item, call, &args, NULL);
    }
    if (item && model_copy_is(e, item)) {
        Instance *copy = model_copy_instance(e, item, callee->loc);
        return copy && call_evaluate(e, &args) ? call_instance(e, copy, call, &args)
                                               : &value_poison;
    }
    if (prelude_has(callee->name)) {
        if (call->flags & AST_FROZEN) {
            return elab_error(e, call->loc, 246, "'%s' has no parameters to freeze", callee->name);
        }
        return prelude_call(e, callee->name, call, &args);
    }
    return call_unknown(e, callee);
}

const Value *call_of_poison(Elab *e, const Ast *call, const Value *piped) {
    const Ast *callee = call->kid[0];
    const Item *item = callee->kind == AST_NAME && !scope_find(e->scope, callee->name)
                           ? file_find(e->scope->file, callee->name)
                           : NULL;
    return item && call_is_callable(item) ? call_eval(e, call, piped) : piped;
}

bool call_ensure_model(Elab *e, Item *model, Loc loc) {
    if (model->used || model->failed) {
        return !model->failed;
    }
    if (!call_is_concrete(model)) {
        model->failed = true;
        elab_error(e, loc, 726,
                   "what '%s' is made of is known once it is called, since its signature leaves "
                   "extents or settings open",
                   model->name);
        diag_hint(&e->c->diag, "call it in front of this, or in an entry or a train");
        return false;
    }
    return call_alone(e, model, loc, false, false);
}

bool call_is_concrete(const Item *item) {
    const Ast *params = item->ast->kid[0];
    for (int i = 0; params && i < params->nkid; i++) {
        const Ast *param = params->kid[i], *type = param->kid[0];
        if (param->kid[2]) {
            continue; /* it has a default, which a call may leave to it */
        }
        if (call_is_setting(type)) {
            return false;
        }
        for (int k = 0; k < type->nkid; k++) {
            const Ast *axis = type->kid[k];
            bool variable = axis->kind == AST_NAME && dims_is_variable(item->file, axis->name);
            if (variable || axis->kind == AST_PACK) {
                return false;
            }
        }
    }
    return true;
}

bool call_alone(Elab *e, Item *item, Loc loc, bool train, bool dropped) {
    const Ast *params = item->ast->kid[0];
    Arguments args = {0};
    EntryScope *entry = e->entry;
    Scope *scope = e->scope;
    Frame *frame = e->frame;
    LoopScope *loop = e->loop;
    IndexNotation *index = notation_save(e);
    EntryScope scratch = {.name = item->name, .train = train, .dropped = dropped};
    Region *before = graph_enter(e->g, region_new(e->g, NULL));
    e->entry = &scratch;
    e->scope = scope_new(e->scratch, NULL, item->file);
    e->loop = NULL;
    Frame top = {0};
    top.draw_owner = &top;
    top.draw_path = item->name;
    if (item->kind == AST_LAYER) { /* what it owns lies somewhere */
        top.path = item->name;
        top.file = "";
        top.names = &top;
    }
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
            const Value *v = value_tensor(e->scratch, node_slot(e->g, slot), rank, dim);
            int64_t lo, hi;
            if (p->kid[1] && dims_range(e, p->kid[1], &lo, &hi)) {
                v = value_ranged(e->scratch, v, lo, hi);
            }
            Argument arg = {.name = p->name, .loc = p->loc, .value = v};
            VEC_PUSH(e->arena, &args, arg);
        }
    }
    if (ok) {
        Ast call = {.kind = AST_CALL, .loc = loc};
        ok = elab_ok(inline_item(e, item, &call, &args, NULL));
    }
    graph_leave(e->g, before);
    e->entry = entry;
    e->scope = scope;
    e->frame = frame;
    e->loop = loop;
    notation_restore(e, index);
    return ok;
}
