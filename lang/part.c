/* part: `vae.dec(z)` calls the layer that the model calls under that path, with its parameters and
 * states, as an instance made by `new` would be called.
 *
 * Technique: each call of a layer in a model's body is noted by its path, with what it was given of
 * numbers, words and bools, and the `repeat` loops that stack its parameters. Such notes hold for
 * one binding of dims and one mode; where they are missing the model is elaborated by itself, and
 * where its signature leaves extents or settings open those of another call are taken. A part that
 * stands in loops takes an index for each, and its parameters are picked by them. */
#include "lang/part.h"

#include "lang/expr.h"
#include "lang/loop.h"
#include "lang/model_copy.h"
#include "lang/naming.h"
#include "lang/params.h"

#include <string.h>

/* A setting of the layer: the value that all calls gave it, or NULL where they differ or it is a
 * value of the run. */
struct ModelPart {
    const char *path, *file;
    Item *item;
    Naming *turn;
    bool train;
    int stamp, nloop;
    Dim trip[MD_RANK];
    VEC(Given) given;
};

/* --- what a model says ------------------------------------------------------------------------ */

/* A number, word, bool or list that outlives the elaboration at hand; NULL: it belongs to the run.
 */
static const Value *lasting(Elab *e, const Value *v) {
    Value *copy = ARENA_NEW(e->lasting, Value);
    *copy = *v;
    switch (v->kind) {
    case V_INT:
    case V_REAL:
    case V_BOOL: return copy;
    case V_STRING: copy->text = str_dup(e->arena, v->text); return copy;
    case V_LIST:
        copy->item = ARENA_ARRAY(e->lasting, const Value *, v->count + 1);
        for (int i = 0; i < v->count; i++) {
            copy->item[i] = lasting(e, v->item[i]);
            if (!copy->item[i]) {
                return NULL;
            }
        }
        return copy;
    default: return NULL;
    }
}

static bool same_setting(const Value *a, const Value *b) {
    if (!a || !b || a->kind != b->kind) {
        return false;
    }
    switch (a->kind) {
    case V_INT: return a->integer == b->integer;
    case V_REAL: return a->real == b->real;
    case V_BOOL: return a->truth == b->truth;
    case V_STRING: return str_eq(a->text, b->text);
    case V_LIST:
        for (int i = 0; i < a->count; i++) {
            if (a->count != b->count || !same_setting(a->item[i], b->item[i])) {
                return false;
            }
        }
        return a->count == b->count;
    default: return false;
    }
}

static ModelPart *noted(Elab *e, const char *path, bool train) {
    for (int i = e->part.count - 1; i >= 0; i--) {
        ModelPart *p = e->part.at[i];
        if (p->train == train && p->stamp == e->stamp && str_eq(p->path, path)) {
            return p;
        }
    }
    return NULL;
}

/* The model that owns what the frame declares, or NULL; `*loops`: the trips of the `repeat` loops
 * between the two, innermost first. */
static const Item *model_around(const Frame *f, const LoopScope *loop, Dim *trip, int *nloop) {
    *nloop = 0;
    while (f) {
        for (; loop != f->call_loop; loop = loop->up) {
            if (loop->repeat && *nloop < MD_RANK) {
                trip[(*nloop)++] = loop->trip;
            }
        }
        if (f->root) {
            return f->item;
        }
        if (f->instance && f->instance->part) {
            return NULL;
        }
        loop = f->instance ? f->instance->loop : loop;
        f = f->instance ? f->instance->frame : f->up;
    }
    return NULL;
}

void part_note(Elab *e, const Item *item, const Frame *frame) {
    Dim trip[MD_RANK];
    int nloop;
    bool named = frame->names == frame && frame->path;
    const Item *model = named && e->entry ? model_around(frame, e->loop, trip, &nloop) : NULL;
    if (!model || item->kind != AST_LAYER || model_copy_original(e, frame->path)) {
        return;
    }
    ModelPart *p = noted(e, frame->path, e->entry->train);
    bool again = p != NULL;
    if (!again) {
        p = ARENA_NEW(e->arena, ModelPart);
        p->path = frame->path;
        p->file = frame->file;
        p->item = frame->instance ? frame->instance->item : file_find(item->file, item->name);
        p->train = e->entry->train;
        p->stamp = e->stamp;
        p->nloop = nloop;
        for (int i = 0; i < nloop; i++) {
            p->trip[i] = trip[nloop - 1 - i];
        }
        if (frame->turn) {
            p->turn = ARENA_NEW(e->arena, Naming);
            *p->turn = *frame->turn;
            p->turn->up = NULL;
        }
        VEC_PUSH(e->arena, &e->part, p);
    }
    const Ast *params = item->ast->kid[0];
    for (int i = 0, k = 0; params && i < params->nkid; i++) {
        const Ast *param = params->kid[i];
        if (!call_is_setting(param->kid[0])) {
            continue;
        }
        const Value *v = lasting(e, scope_find_here(e->scope, param->name)->value);
        if (!again) {
            Given given = {param->name, v};
            VEC_PUSH(e->arena, &p->given, given);
        } else if (!same_setting(p->given.at[k].value, v)) {
            p->given.at[k].value = NULL;
        }
        k++;
    }
}

/* --- calls from outside ----------------------------------------------------------------------- */

typedef struct {
    Item *head; /* a model, or a second set of one */
    const char *path;
    VEC(const Ast *) index;
} PartName;

/* Is the callee a path into a model, perhaps with indices? */
static bool read_name(Elab *e, const Ast *ast, PartName *name) {
    if (ast->kind == AST_NAME) {
        Item *item = scope_find(e->scope, ast->name) ? NULL : file_find(e->scope->file, ast->name);
        name->head = item && (item->kind == AST_MODEL || model_copy_is(e, item)) ? item : NULL;
        name->path = ast->name;
        return name->head != NULL;
    }
    if (ast->kind == AST_DOT && read_name(e, ast->kid[0], name)) {
        name->path = str_printf(e->arena, "%s.%s", name->path, ast->name);
        return true;
    }
    if (ast->kind == AST_INDEXED && !ast->kid[2] && read_name(e, ast->kid[0], name)) {
        for (int i = 0; i < ast->kid[1]->nkid; i++) {
            VEC_PUSH(e->scratch, &name->index, ast->kid[1]->kid[i]);
        }
        return true;
    }
    return false;
}

static ModelPart *lookup(Elab *e, Item *model, const char *path, Loc loc) {
    ModelPart *p = noted(e, path, e->entry->train);
    if (!p && call_is_concrete(model) && call_alone(e, model, loc, e->entry->train, true)) {
        p = noted(e, path, e->entry->train);
    }
    for (int i = e->part.count - 1; i >= 0 && !p; i--) { /* of another mode or entry */
        p = str_eq(e->part.at[i]->path, path) ? e->part.at[i] : NULL;
    }
    return p;
}

static void unknown_part(Elab *e, const Ast *callee, const Item *model, const char *path) {
    const Value whole = {.kind = V_PATH};
    elab_error(e, callee->loc, 244, "%s has no '%s' to call", value_kind_text(&whole),
               callee->kind == AST_DOT ? callee->name : path);
    if (callee->kind == AST_DOT && elab_hint_foreign(e, callee->name)) {
        return;
    }
    Nearest n = nearest_start(path);
    for (int i = 0; i < e->part.count; i++) {
        if (params_under(e->part.at[i]->path, model->name)) {
            nearest_add(&n, e->part.at[i]->path);
        }
    }
    elab_hint_nearest(e, &n);
}

/* An index of a part: a number, the index of a loop or an integer of the run with a range. */
static const Value *read_index(Elab *e, const ModelPart *p, const Ast *ast, int i) {
    bool single = ast->kind != AST_COLON && ast->kind != AST_PACK && ast->kind != AST_RANGE_EXPR;
    const Value *v = single ? elab_expr(e, ast) : NULL;
    if (v && !elab_ok(v)) {
        return NULL;
    }
    bool data = v && v->kind == V_TENSOR && v->rank == 0 && v->nspan == 0 &&
                elem_is_int(value_elem(v)) && v->ranged;
    if (!data && !(v && v->kind == V_INT)) {
        elab_error(e, ast->loc, 660,
                   "a part of a 'repeat' is picked by a number, the index of a loop or an integer "
                   "of the run with a range");
        return NULL;
    }
    int64_t lo = data ? v->lo : v->integer, end = data ? v->hi : v->integer + 1;
    if (lo < 0 || end > p->trip[i].size) {
        elab_error(e, ast->loc, 661, "'%s' stands in a 'repeat' of %s, and %s leaves 0..%lld",
                   p->path, dim_text(e->arena, p->trip[i]),
                   data ? str_printf(e->arena, "%lld..%lld", (long long)lo, (long long)end)
                        : str_printf(e->arena, "%lld", (long long)lo),
                   (long long)p->trip[i].size);
        return NULL;
    }
    return v;
}

/* The iteration that the part is picked from; false after an error. */
static bool read_indices(Elab *e, const ModelPart *p, const PartName *name, Loc loc,
                         Instance *instance) {
    if (name->index.count != p->nloop) {
        elab_error(e, loc, 662, "'%s' stands in %d 'repeat', and %d ind%s it", p->path, p->nloop,
                   name->index.count, name->index.count == 1 ? "ex picks" : "ices pick");
        if (p->nloop > 0) {
            diag_hint(&e->c->diag, "one for each loop, the outermost first: %s[%s](...)", p->path,
                      p->nloop == 1 ? "0" : "0, 0");
        }
        return false;
    }
    instance->index = ARENA_ARRAY(e->arena, const Value *, p->nloop + 1);
    instance->nindex = p->nloop;
    for (int i = 0; i < p->nloop; i++) {
        instance->index[i] = read_index(e, p, name->index.at[i], i);
        if (!instance->index[i]) {
            return false;
        }
        instance->trip[i] = p->trip[i].size;
    }
    return true;
}

/* Settings that the model has no one number for are given by the call. */
static bool settings_known(Elab *e, const ModelPart *p, const Arguments *args, Loc loc,
                           Instance *instance) {
    Arguments all = {0};
    const Argument *match[CALL_PARAMS] = {0};
    for (int i = 0; i < p->given.count; i++) {
        if (p->given.at[i].value) {
            Argument arg = {p->given.at[i].name, loc, p->given.at[i].value, NULL};
            VEC_PUSH(e->scratch, &all, arg);
            VEC_PUSH(e->arena, &instance->given, p->given.at[i]);
        }
    }
    for (int i = 0; i < args->count; i++) {
        VEC_PUSH(e->scratch, &all, args->at[i]);
    }
    if (!call_match(e, p->item, &all, false, match)) {
        return false;
    }
    for (int i = 0; i < p->given.count; i++) {
        const Given *given = &p->given.at[i];
        if (!given->value && !match[call_parameter(p->item->ast->kid[0], given->name)]) {
            elab_error(e, loc, 663,
                       "'%s' is not one number in the model's calls of '%s', so this call gives it",
                       given->name, p->path);
            diag_hint(&e->c->diag, "%s(..., %s = ...)", p->path, given->name);
            return false;
        }
    }
    return true;
}

Instance *part_find(Elab *e, const Ast *call, const Arguments *args, bool *is_part) {
    const Ast *callee = call->kid[0];
    PartName name = {0};
    *is_part = callee->kind != AST_NAME && read_name(e, callee, &name);
    if (!*is_part || !elab_outside_adjoint(e, call->loc, name.path)) {
        return NULL;
    }
    if (!e->entry) {
        elab_error(e, call->loc, 611, "model '%s' is not known at compile time", name.head->name);
        return NULL;
    }
    const char *original = model_copy_original(e, name.path);
    const char *path = original ? original : name.path;
    const char *dot = strchr(path, '.');
    Item *model = file_find(e->root, dot ? str_ndup(e->arena, path, (size_t)(dot - path)) : path);
    if (model->busy) {
        elab_error(e, call->loc, 664, "'%s' is called from its own model", name.path);
        diag_hint(&e->c->diag, "an instance is called any number of times: dec = new layer(...)");
        return NULL;
    }
    if (!model_copy_ensure(e, name.head, call->loc)) {
        return NULL;
    }
    ModelPart *p = dot ? lookup(e, model, path, call->loc) : NULL;
    if (!p) {
        unknown_part(e, callee, model, path);
        return NULL;
    }
    Instance *instance = ARENA_NEW(e->scratch, Instance);
    if (!read_indices(e, p, &name, callee->loc, instance) ||
        !settings_known(e, p, args, call->loc, instance)) {
        return NULL;
    }
    Frame *home = ARENA_NEW(e->scratch, Frame);
    home->root = true;
    home->item = model;
    instance->item = p->item;
    instance->path = name.path;
    instance->file = p->file;
    instance->turn = p->turn;
    instance->loc = call->loc;
    instance->frozen = (call->flags & AST_FROZEN) != 0;
    instance->frame = home;
    instance->part = true;
    return instance;
}

/* --- the iteration of a part ------------------------------------------------------------------ */

const Instance *part_picked(const Frame *f) {
    while (f && !f->root) {
        if (f->instance && f->instance->part) {
            return f->instance->nindex > 0 ? f->instance : NULL;
        }
        f = f->instance ? f->instance->frame : f->up;
    }
    return NULL;
}

static bool encloses(const Region *outer, const Region *inner) {
    while (inner && inner != outer) {
        inner = inner->up;
    }
    return inner != NULL;
}

Node *part_pick(Elab *e, const Instance *part, Node *node) {
    for (int i = 0; i < part->nindex; i++) {
        const Value *at = part->index[i];
        const LoopScope *loop = at->kind == V_TENSOR ? at->loop : NULL;
        if (at->kind == V_INT) {
            Region *before = graph_enter(e->g, node->region);
            node = node_index_axis(e->g, node, 0, at->integer);
            graph_leave(e->g, before);
        } else if (loop && encloses(node->region, loop->outer)) {
            Region *before = graph_enter(e->g, loop->outer);
            node = node_slice_axis(e->g, node, 0, 0, loop->trip.size, 1);
            graph_leave(e->g, before);
            node = loop_xs(loop->builder, node);
        } else {
            node = node_gather(e->g, node, at->node, 0);
        }
    }
    return node;
}
