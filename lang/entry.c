/* entry: what entry points share, `entry` items and tests. */
#include "lang/entry.h"

#include "lang/accumulate.h"
#include "lang/arith.h"
#include "lang/data.h"
#include "lang/dims.h"
#include "lang/expr.h"
#include "lang/feed.h"
#include "lang/normalise.h"
#include "lang/params.h"
#include "lang/phase.h"
#include "lang/ring.h"
#include "lang/stmt.h"

#include <string.h>

EntryScope *entry_open(Elab *e, EntryKind kind, const char *name, const Ast *ast) {
    EntryScope *scope = ARENA_NEW(e->arena, EntryScope);
    Entry *entry = ARENA_NEW(e->arena, Entry);
    entry->kind = kind;
    entry->name = name;
    entry->doc = ast->doc;
    entry->region = region_new(e->g, NULL);
    entry->dataset = -1;
    entry->steps = entry->epochs = entry->budget = -1;
    entry->budget_loc = entry->loc = ast->loc;
    scope->entry = entry;
    scope->name = name;
    scope->train = kind == ENTRY_TRAIN;
    Frame *frame = ARENA_NEW(e->scratch, Frame);
    frame->draw_owner = frame;
    frame->names = frame;
    frame->draw_path = name;
    e->entry = scope;
    e->frame = frame;
    e->scope = scope_new(e->scratch, NULL, e->root);
    e->loop = NULL;
    e->index = NULL;
    graph_enter(e->g, entry->region);
    return scope;
}

void entry_close(Elab *e) {
    Entry *entry = e->entry->entry;
    if (entry->kind != ENTRY_TEST || entry->out.count > 0) {
        VEC_PUSH(e->arena, &e->module->entry, entry);
    }
    e->entry = NULL;
    e->frame = NULL;
    e->scope = NULL;
    if (e->rebind.count > 0) {
        e->rebind.count = 0;
        e->stamp++;
    }
    graph_enter(e->g, NULL);
}

void entry_out(Elab *e, OutRole role, const char *name, Slot *slot, Node *node, Loc loc) {
    Entry *entry = e->entry->entry;
    region_result(entry->region, graph_import(e->g, node));
    EntryOut out = {.name = name, .role = role, .slot = slot, .loc = loc};
    VEC_PUSH(e->arena, &entry->out, out);
}

Slot *entry_input_slot(Elab *e, const char *name, Type type, Loc loc) {
    Slot *slot = ARENA_NEW(e->arena, Slot);
    slot->kind = SLOT_INPUT;
    slot->name = slot->file_name = slot->c_name = name;
    slot->type = type;
    slot->entry = e->entry->entry;
    slot->loc = loc;
    slot->index = e->entry->entry->input.count;
    VEC_PUSH(e->arena, &e->entry->entry->input, slot);
    return slot;
}

/* What an input is in the body; `parts`: the slot holds one value for each micro-batch. */
static Node *input_node(Elab *e, Slot *slot, bool parts) {
    return parts ? accumulate_slice(e, slot) : node_slot(e->g, slot);
}

/* `node`: what the name stands for, the input or what is computed of it. */
static void bind_input(Elab *e, const char *name, Loc loc, const Slot *slot, Node *node, int rank,
                       const Dim *dim) {
    const Value *v = value_tensor(e->scratch, node, rank, dim);
    if (slot->lo < slot->hi) {
        v = value_ranged(e->scratch, v, slot->lo, slot->hi);
    }
    if (scope_find_here(e->scope, name)) {
        elab_error(e, loc, 501,
                   "'%s' is declared twice: inputs and fields of the data set have "
                   "names of their own",
                   name);
        return;
    }
    scope_add(e->scratch, e->scope, name, loc, BIND_ARGUMENT, v);
}

/* The rows of a ring, whose numbers are what is given. */
static void bind_rows(Elab *e, const Item *ring, Node *at, Dim rows, Loc loc) {
    const char *name;
    const Value *v;
    for (int k = 0; (v = ring_rows_at(e, ring, k, at, rows, &name)) != NULL; k++) {
        scope_add(e->scratch, e->scope, name, loc, BIND_ARGUMENT, v);
    }
}

/* With 'accumulate' an input has one more axis in front. */
static bool room_for_parts(Elab *e, int rank, const Dim *dim, Loc loc) {
    Dim all[MD_RANK] = {{.size = e->entry->entry->accumulate}};
    Value like = {.rank = rank + 1, .dim = all};
    if (rank + 1 > MD_RANK) {
        elab_error(e, loc, 496,
                   "with 'accumulate' an input has one more axis in front, but a tensor has at "
                   "most %d",
                   MD_RANK);
        return false;
    }
    memcpy(all + 1, dim, sizeof *dim * (size_t)rank);
    return dims_possible(e, loc, &like);
}

/* `lr: real = 3e-3` of a train: a scalar that lives between calls. */
static bool hyper_parameter(Elab *e, const Ast *param) {
    const Value *v = param->kid[2] ? elab_expr(e, param->kid[2]) : NULL;
    if (!v || (elab_ok(v) && !value_is_number(v))) {
        elab_error(e, param->loc, 502,
                   "hyper-parameter '%s' needs a compile-time number: '%s: real = "
                   "...'",
                   param->name, param->name);
        return false;
    }
    if (!elab_ok(v)) {
        return false;
    }
    Entry *train = e->entry->train_entry;
    const char *path = str_printf(e->arena, "%s.%s", train->name, param->name);
    Slot *slot =
        elab_counter(e, param->name, path, e->g->float_type, value_number(v), train, param->loc);
    slot->doc = param->doc;
    scope_add(e->scratch, e->scope, param->name, param->name_loc, BIND_ARGUMENT,
              value_scalar(e->scratch, node_slot(e->g, slot)));
    return true;
}

static const int64_t MOST_WHOLE = (int64_t)1 << 53;

/* `t: f32 = 0.8`: what a program takes that is told nothing; a host's call has it in the header. */
static bool default_value(Elab *e, const Ast *param, Slot *slot) {
    const Value *v = elab_expr(e, param->kid[2]);
    if (!elab_ok(v)) {
        return false;
    }
    slot->optional = true;
    slot->initial = value_is_number(v) ? value_number(v) : v->truth;
    /* It is kept as a double, which must not be another whole number. */
    const bool wide = v->kind == V_INT && (v->integer > MOST_WHOLE || v->integer < -MOST_WHOLE);
    bool kind = slot->type.elem == TY_BOOL ? v->kind == V_BOOL : value_is_number(v);
    kind = kind && !(wide && elem_is_int(slot->type.elem));
    if (kind && slot_takes(slot, slot->initial)) {
        return true;
    }
    elab_error(e, param->kid[2]->loc, 500, "%s is no value of input '%s', which is %s%s",
               v->kind == V_TENSOR ? "a value of the run" : value_text(e->scratch, v), param->name,
               elem_name(slot->type.elem),
               slot->lo < slot->hi ? str_printf(e->scratch, " in %lld..%lld", (long long)slot->lo,
                                                (long long)slot->hi)
                                   : "");
    return false;
}

static bool input(Elab *e, const Ast *param) {
    const Ast *type = param->kid[0];
    Elem elem;
    int rank = 0;
    Dim dim[MD_RANK];
    if (!dims_elem(e, type, &elem) || !dims_eval_type(e, type, &rank, dim)) {
        return false;
    }
    if (elem == TY_ERROR && !(type->flags & AST_SHAPED)) {
        elab_error(e, type->loc, 503,
                   "inputs are run-time values; write i32 for a run-time integer, or "
                   "'const' for a compile-time one");
        return false;
    }
    if (elem_is_half(elem) && rank == 0) {
        elab_error(e, type->loc, 688, "input '%s' is one number, which is given in f32, not %s",
                   param->name, elem_name(elem));
        return false;
    }
    if (param->kid[2] && rank > 0) {
        elab_error(e, param->kid[2]->loc, 504,
                   "input '%s' may have no default value: only a number may", param->name);
        return false;
    }
    /* Beside a data set, what a caller gives is the same for all micro-batches. */
    bool parts = rank > 0 && e->entry->entry->dataset < 0 && accumulate_running(e->entry);
    if (parts) {
        accumulate_batch(e, &dim[0]);
    }
    Type own = dims_type(elem == TY_ERROR ? TY_I32 : elem, rank, dim);
    if (parts && !room_for_parts(e, rank, dim, param->loc)) {
        return false;
    }
    for (int i = 0; i < e->entry->entry->input.count; i++) {
        if (str_eq(e->entry->entry->input.at[i]->name, param->name) &&
            !scope_find_here(e->scope, param->name)) {
            elab_error(e, param->name_loc, 501,
                       "'%s' is declared twice: inputs and fields of the data set have names of "
                       "their own",
                       param->name);
            return false;
        }
    }
    Slot *slot =
        entry_input_slot(e, param->name, parts ? accumulate_stacked(e, own) : own, param->loc);
    slot->doc = param->doc;
    if (param->kid[1]) {
        if (!dims_elem_range(e, param->kid[1], slot->type.elem, &slot->lo, &slot->hi)) {
            return false;
        }
    }
    if (param->kid[2] && !default_value(e, param, slot)) {
        return false;
    }
    bind_input(e, param->name, param->name_loc, slot, input_node(e, slot, parts), rank, dim);
    return true;
}

bool entry_inputs(Elab *e, const Ast *params) {
    bool ok = true;
    for (int i = 0; params && i < params->nkid; i++) {
        const Ast *param = params->kid[i], *type = param->kid[0];
        bool real = type->name && str_eq(type->name, "real") && !(type->flags & AST_SHAPED);
        ok = (real && e->entry->train_entry ? hyper_parameter(e, param) : input(e, param)) && ok;
    }
    return ok;
}

static void hint_dims(Elab *e, const char *name) {
    Nearest n = nearest_start(name);
    for (int i = 0; i < e->root->item.count; i++) {
        if (e->root->item.at[i]->kind == AST_DIMS) {
            nearest_add(&n, e->root->item.at[i]->name);
        }
    }
    elab_hint_nearest(e, &n);
}

bool entry_rebind(Elab *e, const Ast *at) {
    bool ok = true;
    for (int i = 0; at && i < at->nkid; i++) {
        const Ast *def = at->kid[i];
        const Item *item = file_find(e->root, def->name);
        if (!item || item->kind != AST_DIMS) {
            elab_error(e, def->loc, 506, "'at' sets a declared dim; '%s' is none", def->name);
            hint_dims(e, def->name);
            ok = false;
            continue;
        }
        Dim dim;
        bool twice = false;
        for (int k = 0; k < e->rebind.count; k++) {
            twice = twice || e->rebind.at[k].item == item;
        }
        if (twice) {
            elab_error(e, def->loc, 505, "'at' sets dim '%s' twice", def->name);
            ok = false;
            continue;
        }
        if (!dims_eval(e, def->kid[1], &dim)) {
            ok = false;
            continue;
        }
        if (dim.size < 1) {
            elab_error(e, def->loc, 507, "'at' gives dim '%s' the extent %lld; it must be positive",
                       def->name, (long long)dim.size);
            ok = false;
            continue;
        }
        Rebind r = {item, {.size = dim.size, .name = item}, def->loc};
        VEC_PUSH(e->arena, &e->rebind, r);
    }
    e->stamp++;
    return ok;
}

bool entry_data(Elab *e, const Ast *on) {
    Item *item = file_find(e->root, on->name);
    bool ring = item && item->kind == AST_RING;
    if (!item || (item->kind != AST_DATASET && !ring)) {
        elab_error(e, on->loc, 508,
                   item ? "'%s' is no data set and no ring" : "unknown data set '%s'", on->name);
        Nearest n = nearest_start(on->name);
        for (int i = 0; i < e->root->item.count; i++) {
            AstKind kind = e->root->item.at[i]->kind;
            if (kind == AST_DATASET || kind == AST_RING) {
                nearest_add(&n, e->root->item.at[i]->name);
            }
        }
        elab_hint_nearest(e, &n);
        return false;
    }
    int number = ring ? feed_set(e, item) : data_set(e, item);
    Dim rows;
    if (number < 0 || !dims_eval(e, on->kid[0], &rows)) {
        return false;
    }
    if (rows.size < 1) {
        elab_error(e, on->kid[0]->loc, 509, "a batch has at least one row, found %lld",
                   (long long)rows.size);
        return false;
    }
    rows.batch = e->entry->evaluation || e->entry->passes ? 1 : 0;
    bool parts = accumulate_running(e->entry);
    accumulate_batch(e, &rows);
    const DataSet *set = &e->module->dataset.at[number];
    e->entry->entry->dataset = number;
    e->entry->entry->rows = parts ? rows.size * e->entry->entry->accumulate : rows.size;
    if (ring) {
        if (rows.size > ring_capacity(item)) {
            elab_error(e, on->kid[0]->loc, 489, "'%s' holds %lld rows, never %lld", item->name,
                       (long long)ring_capacity(item), (long long)rows.size);
            return false;
        }
        Type own = dims_type(TY_I32, 1, &rows);
        Slot *slot =
            entry_input_slot(e, item->name, parts ? accumulate_stacked(e, own) : own, on->loc);
        slot->hi = ring_capacity(item);
        slot->doc = str_printf(e->arena, "Numbers of rows of the ring '%s'.", item->name);
        bind_rows(e, item, input_node(e, slot, parts), rows, on->loc);
        ring_need(e, item, e->entry->passes ? 1 : e->entry->entry->rows, on->loc);
        return true;
    }
    int field = 0;
    const Ast *block = item->ast->kid[0];
    for (int i = 0; i < block->nkid; i++) {
        const Ast *ast = block->kid[i];
        if (ast->kind != AST_DATA_FIELD) {
            continue;
        }
        const DataField *f = &set->field.at[field++];
        Dim dim[MD_RANK] = {rows};
        int rank;
        if (!dims_eval_type(e, ast->kid[0], &rank, dim + 1)) {
            return false;
        }
        if (rank + 1 > MD_RANK ||
            !type_same_shape(dims_type(f->type.elem, rank, dim + 1), f->type)) {
            elab_error(e, on->loc, 510, "field '%s' has another shape under 'at' than its data set",
                       f->name);
            return false;
        }
        if (parts && !room_for_parts(e, rank + 1, dim, on->loc)) {
            return false;
        }
        Type own = dims_type(f->type.elem, rank + 1, dim);
        Slot *slot =
            entry_input_slot(e, f->name, parts ? accumulate_stacked(e, own) : own, ast->loc);
        slot->lo = f->lo;
        slot->hi = f->hi;
        Node *node = normalise_rows(e, f, input_node(e, slot, parts));
        bind_input(e, f->name, ast->name_loc, slot, node, rank + 1, dim);
    }
    return true;
}

void entry_limits(Elab *e) {
    for (int i = 0; i < e->entry->over.count; i++) {
        entry_out(e, OUT_LIMIT, NULL, NULL, e->entry->over.at[i].node, e->entry->over.at[i].loc);
    }
}

/* An assignment says what a state is next, whatever the calls of its layer would have made it. */
static bool is_assigned(const EntryScope *scope, const Slot *slot) {
    bool is = false;
    for (int i = 0; i < scope->write.count; i++) {
        is = is || scope->write.at[i].slot == slot;
    }
    return is;
}

void entry_writes(Elab *e) {
    EntryScope *scope = e->entry;
    for (int i = 0; i < scope->write.count; i++) {
        entry_out(e, OUT_WRITE, NULL, scope->write.at[i].slot, scope->write.at[i].node,
                  scope->write.at[i].loc);
    }
    for (int i = 0; i < scope->state.count; i++) {
        if (scope->state.at[i].written && !is_assigned(scope, scope->state.at[i].slot)) {
            entry_out(e, OUT_WRITE, NULL, scope->state.at[i].slot, scope->state.at[i].value,
                      scope->state.at[i].slot->loc);
        }
    }
    for (int i = 0; i < scope->push.count; i++) {
        const SlotWrite *w = &scope->push.at[i];
        entry_out(e, OUT_PUSH, NULL, w->slot, w->node, w->loc);
    }
    for (int i = 0; i < scope->need.count; i++) {
        const RowNeed *need = &scope->need.at[i];
        entry_out(e, OUT_NEED, NULL, need->cursor, node_int(e->g, TY_I64, need->rows), need->loc);
    }
    entry_limits(e);
    if (scope->calls) {
        Node *next =
            node_map2(e->g, OP_ADD, node_slot(e->g, scope->calls), node_int(e->g, TY_I64, 1));
        entry_out(e, OUT_WRITE, NULL, scope->calls, next, scope->calls->loc);
    }
}

static void result_out(Elab *e, const char *name, const Value *v, Loc loc) {
    if (!elab_ok(v)) {
        elab_explained(e);
        return;
    }
    if (v->kind == V_TENSOR || value_is_number(v) || v->kind == V_BOOL) {
        v = arith_lift(e, loc, v);
        entry_out(e, OUT_RESULT, name, NULL, v->node, loc);
        Entry *entry = e->entry->entry;
        entry->out.at[entry->out.count - 1].half = node_half(v->node);
        return;
    }
    elab_error(e, loc, 511, "result '%s' is %s; an entry returns tensors and numbers", name,
               value_kind_text(v));
}

/* The input that says how many rows of the batch are in use; no other input has its name. */
static void rows_in_use(Elab *e, Loc loc) {
    Entry *entry = e->entry->entry;
    const char *name = "rows";
    for (int i = 0; i < entry->input.count; i++) {
        if (str_eq(entry->input.at[i]->name, name)) {
            name = str_printf(e->arena, "%s_", name);
            i = -1;
        }
    }
    Slot *slot = entry_input_slot(e, name, type_scalar(TY_I32), loc);
    slot->doc = "How many rows of the batch are in use: the first ones.";
    slot->lo = 1;
    slot->hi = entry->rows + 1;
    entry->rows_slot = slot;
}

/* An entry of a phase counts its calls, so that a run knows how far it is. */
static void count_calls(Elab *e) {
    Entry *entry = e->entry->entry;
    Slot *done = elab_counter(e, "step", str_printf(e->arena, "%s.step", entry->name), TY_I64, 0,
                              entry, entry->loc);
    Node *next = node_map2(e->g, OP_ADD, node_slot(e->g, done), node_int(e->g, TY_I64, 1));
    entry_out(e, OUT_WRITE, NULL, done, next, entry->loc);
}

void entry_item(Elab *e, const Ast *ast) {
    const Ast *params = ast->kid[0], *of = ast->kid[1], *on = ast->kid[2], *at = ast->kid[3];
    bool phase = phase_names(e, ast->name);
    EntryScope *scope = entry_open(e, ENTRY_CALL, ast->name, ast);
    scope->passes = phase && on;
    if (of) {
        elab_error(e, of->loc, 512, "'of' belongs to a train; an entry may use any model");
    }
    bool ok = entry_rebind(e, at);
    ok = (!on || entry_data(e, on)) && ok;
    ok = entry_inputs(e, params) && ok;
    if (ok && scope->passes) {
        rows_in_use(e, on->loc);
    }
    if (ok) {
        stmt_block(e, ast->kid[4]);
        const Value *r = e->frame->result;
        if (r && phase) {
            elab_error(e, ast->name_loc, 648,
                       "'%s' stands in a phase, where nobody takes what it returns", ast->name);
            diag_hint(&e->c->diag,
                      "push it to a ring, assign it to a state, or leave '%s' out of "
                      "the phases",
                      ast->name);
        } else if (r && r->kind == V_RECORD) {
            for (int i = 0; i < r->count; i++) {
                result_out(e, r->field[i], r->item[i], e->frame->result_loc);
            }
        } else if (r) {
            result_out(e, "out", r, e->frame->result_loc);
        }
        if (!r && scope->write.count == 0 && scope->state.count == 0 && e->errors == 0) {
            elab_warn(e, ast->name_loc, 513, "entry '%s' returns nothing and assigns nothing",
                      ast->name);
        }
        entry_writes(e);
        if (phase) {
            count_calls(e);
        }
    } else {
        elab_explained(e);
    }
    entry_close(e);
}
