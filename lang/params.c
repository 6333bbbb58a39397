/* params: what lives between calls. A parameter is made where it is first met and found again by
 * its path; inside `repeat` it is stored stacked, and a body sees the slice of its iteration.
 *
 * A state is threaded through the calls of an entry in program order: each textual call and each
 * iteration sees what the one before wrote. In a `scan` that is a carry, in a `repeat` a stack.
 * What an evaluation or a test leaves in it is forgotten. */
#include "lang/params.h"

#include "lang/call.h"
#include "lang/dims.h"
#include "lang/evaluation.h"
#include "lang/expr.h"
#include "lang/half.h"
#include "lang/init.h"
#include "lang/loop.h"
#include "lang/model_copy.h"
#include "lang/naming.h"
#include "lang/notation.h"
#include "lang/part.h"
#include "lang/precision.h"
#include "lang/stmt.h"
#include "lang/train.h"

#include <string.h>

void params_start(Elab *e) {
    e->init = ARENA_NEW(e->arena, Entry);
    e->init->kind = ENTRY_INIT;
    e->init->name = "init";
    e->init->region = region_new(e->g, NULL);
    e->init->dataset = -1;
    e->init->steps = e->init->epochs = e->init->budget = -1;
    e->init->loc = LOC_NONE;
    e->seed = elab_counter(e, "seed", "seed", TY_I64, 0, NULL, LOC_NONE);
}

void params_add(Elab *e, Parameter *p) {
    VEC_PUSH(e->arena, &e->param, p);
    names_push(e->arena, &e->params, p->slot->name);
}

Parameter *params_find(const Elab *e, const char *path) {
    int i = names_at(&e->params, path);
    return i >= 0 ? e->param.at[i] : NULL;
}

bool params_under(const char *path, const char *prefix) {
    size_t n = strlen(prefix);
    return strncmp(path, prefix, n) == 0 && (path[n] == '\0' || path[n] == '.');
}

const char *params_file_name(Elab *e, const char *path) {
    const char *dot = strchr(path, '.');
    return e->nmodel == 1 && dot && !model_copy_original(e, path) ? dot + 1 : path;
}

/* The `repeat` loops that stack what frame `f` declares under `loop`, outermost first. */
static int stacking_loops(Frame *f, LoopScope *loop, LoopScope **out) {
    LoopScope *found[MD_RANK];
    int n = 0;
    while (f) {
        for (; loop != f->call_loop; loop = loop->up) {
            if (loop->repeat && n < MD_RANK) {
                found[n++] = loop;
            }
        }
        if (f->root) {
            break;
        }
        if (f->instance) {
            loop = f->instance->loop;
            f = f->instance->frame;
        } else {
            f = f->up;
        }
    }
    for (int i = 0; i < n; i++) {
        out[i] = found[n - 1 - i];
    }
    return n;
}

/* `part` (or NULL): the body belongs to an iteration of loops that are further outside. */
static Type stacked_type(Elem elem, const Instance *part, LoopScope *const *loop, int nloop,
                         int rank, const Dim *dim) {
    Type t = {.elem = elem};
    for (int i = 0; part && i < part->nindex; i++) {
        t.dim[t.rank++] = part->trip[i];
    }
    for (int i = 0; i < nloop; i++) {
        t.dim[t.rank++] = loop[i]->trip.size;
    }
    for (int i = 0; i < rank; i++) {
        t.dim[t.rank++] = dim[i].size;
    }
    return t;
}

bool params_stackable(Elab *e, Loc loc, LoopScope *const *loop, int nloop, int rank,
                      const Dim *dim) {
    if (nloop + rank > MD_RANK) {
        elab_error(e, loc, 412,
                   nloop > 0 ? "stacked by the loops around it this has %d axes; a tensor has at "
                               "most %d"
                             : "this has %d axes; a tensor has at most %d",
                   nloop + rank, MD_RANK);
        return false;
    }
    Dim all[MD_RANK];
    Value like = {.rank = nloop + rank, .dim = all};
    for (int i = 0; i < like.rank; i++) {
        all[i] = i < nloop ? loop[i]->trip : dim[i - nloop];
    }
    return dims_possible(e, loc, &like);
}

/* The same of a part that is picked from loops (NULL: it is not). */
static Node *slices(Elab *e, Slot *slot, const Instance *part, LoopScope *const *loop, int nloop) {
    LoopScope *outermost = e->loop;
    while (part && outermost && outermost->up) {
        outermost = outermost->up;
    }
    Region *home = part && outermost ? outermost->outer : nloop > 0 ? loop[0]->outer : e->g->region;
    Region *before = graph_enter(e->g, home);
    Node *node = node_slot(e->g, slot);
    graph_leave(e->g, before);
    if (part) {
        before = graph_enter(e->g, nloop > 0 ? loop[0]->outer : e->g->region);
        node = part_pick(e, part, node);
        graph_leave(e->g, before);
    }
    for (int i = 0; i < nloop; i++) {
        node = loop_slice(loop[i], node);
    }
    return node;
}

Node *params_slices(Elab *e, Slot *slot, LoopScope *const *loop, int nloop) {
    return slices(e, slot, NULL, loop, nloop);
}

/* --- parameters ------------------------------------------------------------------------------ */

static const Item *model_of(const Frame *f) {
    while (f && !f->root) {
        f = f->instance ? f->instance->frame : f->up;
    }
    return f ? f->item : NULL;
}

static bool same_shape(Elab *e, const Parameter *p, Type type, const Dim *dim, Loc loc) {
    if (type_same_shape(p->slot->type, type) && elem_computed(p->slot->type.elem) == type.elem) {
        return true;
    }
    elab_error(e, loc, 410, "parameter '%s' has shape %s here, but %s where it was made",
               p->slot->name, shape_text(e->arena, p->rank, dim),
               shape_text(e->arena, p->rank, p->dim));
    for (int i = 0; i < e->rebind.count; i++) {
        diag_note(&e->c->diag, e->rebind.at[i].loc,
                  "'at %s = %lld' sets the dim that its shape depends "
                  "on",
                  e->rebind.at[i].item->name, (long long)e->rebind.at[i].dim.size);
    }
    if (e->rebind.count == 0) {
        diag_hint(&e->c->diag, "the first call settles the shape; all others take inputs like it");
    }
    return false;
}

static Parameter *param_new(Elab *e, const Ast *ast, const char *path, Type type, int nloop,
                            int rank, const Dim *dim) {
    Parameter *p = ARENA_NEW(e->arena, Parameter);
    Slot *slot = ARENA_NEW(e->arena, Slot);
    slot->kind = SLOT_PARAM;
    slot->name = path;
    slot->file_name = path;
    slot->doc = ast->doc;
    slot->type = type;
    slot->stacked = nloop;
    slot->frozen = e->frame->frozen || (ast->flags & AST_FROZEN) != 0;
    slot->loc = ast->loc;
    p->slot = slot;
    p->model = model_of(e->frame);
    p->rank = rank;
    memcpy(p->dim, dim, sizeof *dim * (size_t)rank);
    p->order = e->param.count;
    p->initial = ast->flags & AST_DRAW ? init_draw(e, ast->kid[1], type, rank, dim, path)
                                       : init_value(e, ast->kid[1], type);
    slot->type.elem = precision_stored(e, path, type.elem);
    if (p->initial) { /* rounded here, as copies begin with the same values */
        Region *before = graph_enter(e->g, e->init->region);
        p->initial = half_round(e->g, p->initial, slot->type.elem);
        graph_leave(e->g, before);
    }
    params_add(e, p);
    return p;
}

/* Does a `repeat` of the body at hand stand around this? */
static bool in_repeat(const Elab *e) {
    const LoopScope *loop = e->loop;
    while (loop != e->frame->call_loop && !loop->repeat) {
        loop = loop->up;
    }
    return loop != e->frame->call_loop;
}

void params_declare(Elab *e, const Ast *ast) {
    const Ast *written = ast->kid[0];
    Elem elem;
    int rank;
    Dim dim[MD_RANK];
    const Value *v = &value_poison;
    LoopScope *loop[MD_RANK];
    if (!e->frame->path) {
        elab_error(e, ast->loc, 247, "'param' may stand only in a layer or model");
    } else if (in_repeat(e)) {
        elab_error(e, ast->loc, 248,
                   "'param' may not stand in a 'repeat'; put it into a layer that the loop calls");
    } else if (call_segment(e, e->frame, ast->name, ast->name_loc, "parameter") &&
               dims_elem(e, written, &elem) && dims_eval_type(e, written, &rank, dim)) {
        const char *path = str_printf(e->arena, "%s.%s", e->frame->path, ast->name);
        int nloop = stacking_loops(e->frame, e->loop, loop);
        if (elem == TY_ERROR || !elem_is_float(elem)) {
            elab_error(e, written->loc, 411,
                       "a parameter has float elements; 'state' keeps integers");
        } else if (elem_is_half(elem)) {
            elab_error(e, written->loc, 687,
                       "a parameter is kept in f32, and '%s' is %s; 'precision %s' rounds it for "
                       "products",
                       ast->name, elem_name(elem), elem_name(elem));
            diag_hint(&e->c->diag, "'precision bf16(master = false)' in a train keeps all that it "
                                   "trains in 16 bits");
        } else if (params_stackable(e, written->loc, loop, nloop, rank, dim)) {
            const Instance *part = part_picked(e->frame);
            Type type = stacked_type(elem, part, loop, nloop, rank, dim);
            int stacked = nloop + (part ? part->nindex : 0);
            const char *original = model_copy_original(e, path);
            Parameter *p = params_find(e, path);
            if (!p && original) { /* one that the model has in this mode only */
                p = params_find(e, original);
                p = p ? p : param_new(e, ast, original, type, stacked, rank, dim);
                p = model_copy_parameter(e, p, path);
            } else if (!p) {
                p = param_new(e, ast, path, type, stacked, rank, dim);
            }
            if (!same_shape(e, p, type, dim, ast->loc)) {
                p = NULL;
            } else {
                naming_slot(e, p->slot->copy_of ? p->slot->copy_of : p->slot, ast->name, ast->loc);
            }
            if (p && p->initial) {
                v = value_tensor(e->scratch, slices(e, p->slot, part, loop, nloop), rank, dim);
            }
        }
    }
    scope_add(e->scratch, e->scope, ast->name, ast->name_loc, BIND_PARAMETER, v);
}

const Value *params_whole(Elab *e, const Parameter *p) {
    Dim dim[MD_RANK];
    int rank = p->slot->type.rank;
    for (int i = 0; i < rank; i++) {
        int own = i - p->slot->stacked;
        dim[i] = own >= 0 ? p->dim[own] : (Dim){.size = p->slot->type.dim[i]};
    }
    /* Also where it has been assigned: that takes effect when the call ends, as for calls. */
    return value_tensor(e->scratch, node_slot(e->g, p->slot), rank, dim);
}

static Slot *layer_state(const Elab *e, const char *path) {
    int at = names_at(&e->states, path);
    Slot *slot = at >= 0 ? e->state.at[at] : NULL;
    return slot && (slot->role == STATE_LAYER || slot->role == STATE_COPY) ? slot : NULL;
}

const Value *params_at(Elab *e, const char *path) {
    const Parameter *p = params_find(e, path);
    Slot *slot = p ? NULL : layer_state(e, path);
    if (slot) {
        Dim dim[MD_RANK];
        for (int k = 0; k < slot->type.rank; k++) {
            dim[k] = (Dim){.size = slot->type.dim[k]};
        }
        return value_tensor(e->scratch, node_slot(e->g, slot), slot->type.rank, dim);
    }
    return p ? params_whole(e, p) : NULL;
}

static const Value *path_value(Elab *e, Item *model, const char *path) {
    const Value *at = params_at(e, path);
    if (at) {
        return at;
    }
    for (int i = 0; i < e->param.count; i++) {
        if (params_under(e->param.at[i]->slot->name, path)) {
            Value *v = ARENA_NEW(e->scratch, Value);
            v->kind = V_PATH;
            v->text = path;
            v->model = model;
            return v;
        }
    }
    return NULL;
}

void params_hint(Elab *e, const char *path) {
    Nearest n = nearest_start(path);
    for (int i = 0; i < e->param.count; i++) {
        const char *name = e->param.at[i]->slot->name;
        for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
            nearest_add(&n, str_ndup(e->arena, name, (size_t)(dot - name)));
        }
        nearest_add(&n, name);
    }
    elab_hint_nearest(e, &n);
}

const Value *params_by_path(Elab *e, Item *model, const char *path, Loc loc) {
    if (!model_copy_ensure(e, model, loc)) {
        return &value_poison;
    }
    const Value *v = path_value(e, model, path);
    if (v) {
        return v;
    }
    if (!elab_first(e, 250, path)) {
        return &value_poison;
    }
    elab_error(e, loc, 250, "'%s' has no parameter or part '%s'", model->name, path);
    params_hint(e, path);
    return &value_poison;
}

const Value *params_of_instance(Elab *e, const Instance *instance, const char *field, Loc loc) {
    const char *path = str_printf(e->arena, "%s.%s", instance->path, field);
    const Parameter *p = params_find(e, path);
    if (!p && instance->failed) {
        e->errors++;
        return &value_poison;
    }
    if (!p) {
        elab_error(e, loc, 251, "'%s' has no parameter '%s'", instance->path, field);
        bool any = false;
        for (int i = 0; i < e->param.count; i++) {
            any = any || params_under(e->param.at[i]->slot->name, instance->path);
        }
        if (any) {
            params_hint(e, path);
        } else {
            diag_hint(&e->c->diag,
                      "an instance gets its parameters with its first call; call it before");
        }
        return &value_poison;
    }
    LoopScope *loop[MD_RANK];
    const Instance *part = part_picked(instance->frame);
    int nloop = stacking_loops(instance->frame, instance->loop, loop);
    Node *node = slices(e, p->slot, part, loop, nloop);
    const Value *whole = params_whole(e, p);
    int stacked = nloop + (part ? part->nindex : 0);
    return value_tensor(e->scratch, node, whole->rank - stacked, whole->dim + stacked);
}

/* --- states ---------------------------------------------------------------------------------- */

void params_set_initial(Elab *e, Slot *slot, Node *node) {
    InitialValue v = {slot, node};
    VEC_PUSH(e->arena, &e->initial, v);
}

Node *params_initial(const Elab *e, const Slot *slot) {
    for (int i = 0; i < e->initial.count; i++) {
        if (e->initial.at[i].slot == slot) {
            return e->initial.at[i].node;
        }
    }
    return NULL;
}

void params_untyped_state(Elab *e, const Ast *ast) {
    if (ast->kid[2]->kind != AST_ERROR) {
        elab_error(e, ast->loc, 266, "state '%s' needs a type: state %s: f32 = ...", ast->name,
                   ast->name);
    }
}

/* The slot of a written state, made on first use; NULL after an error. */
static StateUse *state_use(Elab *e, const Ast *ast, StateRole role, const char *path,
                           LoopScope *const *loop, int nloop) {
    StateUse *use = ARENA_NEW(e->arena, StateUse);
    Elem elem;
    if (!ast->kid[0]) {
        params_untyped_state(e, ast);
        return NULL;
    }
    if (!dims_elem(e, ast->kid[0], &elem) ||
        !dims_eval_type(e, ast->kid[0], &use->rank, use->dim)) {
        return NULL;
    }
    if (elem == TY_ERROR) {
        elem = TY_I32;
    }
    if (ast->flags & AST_DRAW) {
        elab_later(e, ast->loc, 253, "a drawn initial value of a state is not supported yet");
        return NULL;
    }
    if (ast->kid[1]) {
        elab_later(e, ast->kid[1]->loc, 254, "a range of a state is not supported yet");
        return NULL;
    }
    if (!params_stackable(e, ast->kid[0]->loc, loop, nloop, use->rank, use->dim)) {
        return NULL;
    }
    const Instance *part = role == STATE_LAYER ? part_picked(e->frame) : NULL;
    Type type = stacked_type(elem, part, loop, nloop, use->rank, use->dim);
    const char *original = model_copy_original(e, path);
    if (original && layer_state(e, original) && !layer_state(e, path)) {
        model_copy_state(e, layer_state(e, original), path);
    }
    use->slot = elab_state_slot(e, original ? STATE_COPY : role, path, type, NULL, ast->loc);
    use->slot->stacked = nloop + (part ? part->nindex : 0);
    if (role == STATE_LAYER) {
        Slot *first = use->slot->copy_of ? use->slot->copy_of : use->slot;
        naming_slot(e, first, ast->name, ast->loc);
    }
    if (!type_equal(use->slot->type, type)) {
        elab_error(e, ast->loc, 413, "state '%s' has another shape here than where it was made",
                   path);
        return NULL;
    }
    if (part && nloop > 0) {
        elab_error(e, ast->loc, 665,
                   "'%s' is stacked by a 'repeat' in a part that is picked from another", path);
        return NULL;
    }
    if (!params_initial(e, use->slot)) {
        Node *node = init_value(e, ast->kid[2], type);
        if (!node) {
            return NULL;
        }
        params_set_initial(e, use->slot, node);
    }
    use->nloop = nloop;
    use->part = part;
    memcpy(use->loop, loop, sizeof *loop * (size_t)nloop);
    return use;
}

void params_declare_state(Elab *e, const Ast *ast) {
    StateUse *use = NULL;
    LoopScope *loop[MD_RANK];
    if (!e->frame->path) {
        elab_error(e, ast->loc, 255,
                   "'state' may stand in a layer, a model, an optimizer or at the top "
                   "level");
    } else if (e->loop != e->frame->call_loop) {
        elab_error(e, ast->loc, 256,
                   "'state' may not stand in a loop; put it into a layer that the loop "
                   "calls");
    } else if (call_segment(e, e->frame, ast->name, ast->name_loc, "state")) {
        int nloop = stacking_loops(e->frame, e->loop, loop);
        use = state_use(e, ast, STATE_LAYER,
                        str_printf(e->arena, "%s.%s", e->frame->path, ast->name), loop, nloop);
    }
    ScopeName *n = scope_add(e->scratch, e->scope, ast->name, ast->name_loc,
                             use ? BIND_STATE : BIND_VALUE, &value_poison);
    n->ref = use;
}

const StateUse *params_top_state(Elab *e, Item *item, Loc loc) {
    if (item->failed) {
        return NULL;
    }
    Scope *scope = e->scope;
    IndexNotation *index = notation_save(e);
    e->scope = scope_new(e->scratch, NULL, item->file);
    LoopScope *none[1] = {NULL};
    const StateUse *use = state_use(e, item->ast, STATE_MODEL, item->name, none, 0);
    e->scope = scope;
    notation_restore(e, index);
    item->failed = !use;
    if (use && !e->entry) {
        elab_error(e, loc, 257, "state '%s' is not known at compile time", item->name);
        return NULL;
    }
    return use;
}

/* --- assignments ----------------------------------------------------------------------------- */

bool params_write(Elab *e, Slot *slot, Node *next, Loc loc) {
    for (int i = 0; i < e->entry->write.count; i++) {
        if (e->entry->write.at[i].slot == slot) {
            elab_error(e, loc, 277, "'%s' is assigned twice", slot->name);
            return false;
        }
    }
    SlotWrite w = {slot, next, loc};
    VEC_PUSH(e->arena, &e->entry->write, w);
    return true;
}

void params_assign(Elab *e, const char *path, const Value *next, Loc loc, Loc right) {
    Parameter *p = params_find(e, path);
    Slot *slot = p ? p->slot : layer_state(e, path);
    if (!slot) {
        elab_error(e, loc, 284, "'%s' is no parameter", path);
        return;
    }
    EntryKind kind = e->entry && e->entry->entry ? e->entry->entry->kind : ENTRY_INIT;
    bool train = slot->role == STATE_COPY && e->entry && e->entry->training;
    if (e->loop || (kind != ENTRY_CALL && !train)) {
        elab_error(e, loc, 276, "a parameter is assigned only in an 'entry', outside of loops");
        return;
    }
    next =
        half_next(e, slot, next, stmt_like(e, params_at(e, path), next, path, right), path, right);
    if (next && kind != ENTRY_EVAL) {
        params_write(e, slot, next->node, loc);
    }
}

static StateValue *entry_state(Elab *e, Slot *slot) {
    for (int i = 0; i < e->entry->state.count; i++) {
        if (e->entry->state.at[i].slot == slot) {
            return &e->entry->state.at[i];
        }
    }
    StateValue v = {.slot = slot, .value = node_slot(e->g, slot)};
    VEC_PUSH(e->arena, &e->entry->state, v);
    return &e->entry->state.at[e->entry->state.count - 1];
}

static bool is_stacking(const StateUse *use, const LoopScope *loop) {
    for (int i = 0; i < use->nloop; i++) {
        if (use->loop[i] == loop) {
            return true;
        }
    }
    return false;
}

/* The state inside `loop`, which becomes a carry or a stack of the loop on first use. */
static LoopState *loop_state(Elab *e, const StateUse *use, LoopScope *loop) {
    for (int i = 0; i < loop->state.count; i++) {
        if (loop->state.at[i].slot == use->slot) {
            return &loop->state.at[i];
        }
    }
    Region *before = graph_enter(e->g, loop->outer);
    Node *outer = loop->up ? loop_state(e, use, loop->up)->value : entry_state(e, use->slot)->value;
    graph_leave(e->g, before);
    LoopState s = {.slot = use->slot, .stacked = is_stacking(use, loop)};
    if (s.stacked) {
        s.value = loop_xs(loop->builder, outer);
    } else {
        s.number = loop_carry(loop->builder, outer);
        s.value = loop_carry_value(loop->builder, s.number);
    }
    VEC_PUSH(e->arena, &loop->state, s);
    return &loop->state.at[loop->state.count - 1];
}

const Value *params_state_value(Elab *e, const StateUse *use) {
    e->entry->state_uses++;
    Node *node = e->loop ? loop_state(e, use, e->loop)->value : entry_state(e, use->slot)->value;
    node = use->part ? part_pick(e, use->part, node) : node;
    return value_tensor(e->scratch, node, use->rank, use->dim);
}

void params_state_write(Elab *e, const StateUse *use, const Value *next, Loc loc) {
    if (!train_writes_state(e, use->slot)) {
        return;
    }
    if (use->part) {
        elab_error(e, loc, 666,
                   "'%s' has a value for each iteration of a 'repeat', and a part that is picked "
                   "from it sets none",
                   use->slot->name);
        diag_hint(&e->c->diag, "call the model, or call the part in an entry that only reads it");
        return;
    }
    e->entry->state_moves += e->entry->by_mode == 0;
    if (e->loop) {
        LoopState *s = loop_state(e, use, e->loop);
        s->value = next->node;
        s->written = true;
    } else {
        StateValue *s = entry_state(e, use->slot);
        s->value = next->node;
        s->written = true;
    }
}

void params_loop_closing(LoopScope *loop) {
    for (int i = 0; i < loop->state.count; i++) {
        LoopState *s = &loop->state.at[i];
        if (!s->stacked) {
            loop_next(loop->builder, s->number, s->value);
        } else if (s->written) {
            s->number = loop_emit(loop->builder, s->value);
        }
    }
}

void params_loop_closed(Elab *e, LoopScope *loop, Node *node, Node *const *final) {
    for (int i = 0; i < loop->state.count; i++) {
        const LoopState *s = &loop->state.at[i];
        if (!s->written) {
            continue;
        }
        Node *value = s->stacked ? loop_stack(e->g, node, s->number)
                      : final    ? final[s->number]
                                 : loop_final(e->g, node, s->number);
        if (loop->up) {
            for (int k = 0; k < loop->up->state.count; k++) {
                if (loop->up->state.at[k].slot == s->slot) {
                    loop->up->state.at[k].value = value;
                    loop->up->state.at[k].written = true;
                }
            }
        } else {
            StateValue *outer = entry_state(e, s->slot);
            outer->value = value;
            outer->written = true;
        }
    }
}

/* --- the end --------------------------------------------------------------------------------- */

static int model_order(const Parameter *p) {
    return p->model ? p->model->order : -1;
}

static bool param_before(const Parameter *a, const Parameter *b) {
    int x = model_order(a), y = model_order(b);
    return x != y ? x < y : a->order < b->order;
}

static void init_write(Elab *e, Slot *slot, Node *node) {
    if (node->region != e->init->region) {
        BUG("the initial value of '%s' is not in the init region", slot->name);
    }
    region_result(e->init->region, node);
    EntryOut out = {.role = OUT_WRITE, .slot = slot, .loc = slot->loc};
    VEC_PUSH(e->arena, &e->init->out, out);
}

static void add_slot(Elab *e, Slot *slot) {
    slot->index = e->module->slot.count;
    VEC_PUSH(e->arena, &e->module->slot, slot);
}

/* Layer states, optimizer slots, counters, states of the model, copies, rings, in this order. */
static void write_states(Elab *e) {
    /* By state: the first of its initial values, 1 + k; by initial value: the next one. */
    int *first = ARENA_ARRAY(e->arena, int, e->state.count + 1);
    int *next = ARENA_ARRAY(e->arena, int, e->initial.count + 1);
    for (int i = 0; i < e->state.count; i++) {
        e->state.at[i]->index = i; /* until it gets its own */
    }
    for (int k = e->initial.count - 1; k >= 0; k--) {
        int i = e->initial.at[k].slot->index;
        next[k] = first[i];
        first[i] = 1 + k;
    }
    for (StateRole role = STATE_LAYER; role <= STATE_RING; role++) {
        for (int i = 0; i < e->state.count; i++) {
            Slot *slot = e->state.at[i];
            if (slot->role != role) {
                continue;
            }
            add_slot(e, slot);
            if (role == STATE_COUNTER && slot != e->seed) {
                init_write(e, slot, node_const(e->g, slot->type.elem, slot->initial));
            }
            for (int k = first[i]; k > 0; k = next[k - 1]) {
                init_write(e, slot, e->initial.at[k - 1].node);
            }
        }
    }
}

void params_finish(Elab *e) {
    for (int i = 1; i < e->param.count; i++) { /* stable, by declaration of the model */
        for (int k = i; k > 0 && param_before(e->param.at[k], e->param.at[k - 1]); k--) {
            Parameter *swap = e->param.at[k];
            e->param.at[k] = e->param.at[k - 1];
            e->param.at[k - 1] = swap;
        }
    }
    Region *before = graph_enter(e->g, e->init->region);
    for (int i = 0; i < e->param.count; i++) {
        const Parameter *p = e->param.at[i];
        if (p->slot->kind == SLOT_PARAM) {
            add_slot(e, p->slot);
            if (p->initial) {
                init_write(e, p->slot, p->initial);
            }
        }
    }
    write_states(e);
    graph_leave(e->g, before);
}
