/* ring: `ring replay[10_000] { obs: f32[4]; act: i32 in 0..2; }` keeps the last rows that were
 * pushed, one state tensor [capacity, ...] a field, and counts all pushes. A push writes its rows
 * behind the last one when the call ends, in place; what the same call reads is as it was before.
 * A sample draws rows with equal chances and with replacement, by the counter generator; an entry
 * that samples n rows is refused by a status until so many were pushed. */
#include "lang/ring.h"

#include "lang/arith.h"
#include "lang/call.h"
#include "lang/dims.h"
#include "lang/draw.h"
#include "lang/entry.h"
#include "lang/expr.h"
#include "lang/half.h"
#include "lang/init.h"
#include "lang/notation.h"
#include "lang/params.h"

#include <string.h>

/* Indices are drawn as floats of 24 bits. */
enum { ROWS_MOST = 1 << 24 };

typedef struct {
    const char *name;
    const Ast *ast;
    Slot *slot;
    int rank; /* of a row */
    Dim dim[MD_RANK];
} Field;

struct Ring {
    const char *name;
    int64_t capacity;
    Slot *cursor; /* rows pushed so far */
    VEC(Field) field;
};

Item *ring_named(const Elab *e, const Ast *name) {
    if (name->kind != AST_NAME || scope_find(e->scope, name->name)) {
        return NULL;
    }
    Item *item = file_find(e->scope->file, name->name);
    return item && item->kind == AST_RING ? item : NULL;
}

/* --- declaration ----------------------------------------------------------------------------- */

static bool add_field(Elab *e, Ring *ring, const Ast *ast) {
    Field f = {.name = ast->name, .ast = ast};
    Elem elem;
    Dim rows[MD_RANK + 1] = {{.size = ring->capacity}};
    bool taken = str_eq(f.name, "count") || str_eq(f.name, "push") || str_eq(f.name, "sample");
    for (int i = 0; i < ring->field.count; i++) {
        taken = taken || str_eq(ring->field.at[i].name, f.name);
    }
    if (taken) {
        elab_error(e, ast->loc, 482, "'%s.%s' has another meaning already", ring->name, f.name);
        return false;
    }
    if (!dims_elem(e, ast->kid[0], &elem) || !dims_eval_type(e, ast->kid[0], &f.rank, f.dim)) {
        return false;
    }
    memcpy(rows + 1, f.dim, sizeof *f.dim * (size_t)f.rank);
    if (!params_stackable(e, ast->kid[0]->loc, NULL, 0, f.rank + 1, rows)) {
        return false;
    }
    Type type = dims_type(elem == TY_ERROR ? TY_I32 : elem, f.rank + 1, rows);
    f.slot = elab_state_slot(e, STATE_RING, str_printf(e->arena, "%s.%s", ring->name, f.name), type,
                             NULL, ast->loc);
    f.slot->cursor = ring->cursor;
    f.slot->doc = ast->doc;
    if (ast->kid[1] && !dims_elem_range(e, ast->kid[1], type.elem, &f.slot->lo, &f.slot->hi)) {
        return false;
    }
    Region *before = graph_enter(e->g, e->init->region);
    double first = f.slot->lo < f.slot->hi ? (double)f.slot->lo : 0;
    Type value = slot_value_type(f.slot);
    Node *node = node_const(e->g, value.elem, first);
    params_set_initial(e, f.slot, node_broadcast_to(e->g, node, value));
    graph_leave(e->g, before);
    VEC_PUSH(e->arena, &ring->field, f);
    return true;
}

static Ring *declare(Elab *e, Item *item) {
    const Ast *ast = item->ast;
    Ring *ring = ARENA_NEW(e->arena, Ring);
    ring->name = item->name;
    if (!elab_int(e, ast->kid[0], "the capacity of a ring", &ring->capacity)) {
        return NULL;
    }
    if (ring->capacity < 1 || ring->capacity > ROWS_MOST) {
        elab_error(e, ast->kid[0]->loc, 483, "a ring holds 1 to 2^24 rows, found %lld",
                   (long long)ring->capacity);
        return NULL;
    }
    ring->cursor = elab_state_slot(e, STATE_RING, str_printf(e->arena, "%s.count", item->name),
                                   type_scalar(TY_I64), NULL, item->loc);
    Region *before = graph_enter(e->g, e->init->region);
    params_set_initial(e, ring->cursor, node_int(e->g, TY_I64, 0));
    graph_leave(e->g, before);
    bool ok = true;
    for (int i = 1; i < ast->nkid; i++) {
        ok = add_field(e, ring, ast->kid[i]) && ok;
    }
    if (ok && ring->field.count == 0) {
        elab_error(e, item->loc, 484, "ring '%s' has no fields", item->name);
        return NULL;
    }
    return ok ? ring : NULL;
}

static Ring *ring_of(Elab *e, Item *item) {
    if (!item->ring && !item->failed) {
        Scope *scope = e->scope;
        Frame *frame = e->frame;
        IndexNotation *index = notation_save(e);
        e->scope = scope_new(e->arena, NULL, item->file);
        e->frame = NULL;
        item->ring = declare(e, item);
        item->failed = !item->ring;
        e->scope = scope;
        e->frame = frame;
        notation_restore(e, index);
    }
    return item->ring;
}

void ring_item(Elab *e, Item *item) {
    ring_of(e, item);
}

bool ring_declared(Elab *e, Item *item) {
    return ring_of(e, item) != NULL;
}

int64_t ring_capacity(const Item *item) {
    return item->ring->capacity;
}

Slot *ring_cursor(const Item *item) {
    return item->ring->cursor;
}

/* --- pushing --------------------------------------------------------------------------------- */

/* The last batch of an entry that goes through a data set may have few rows: what it pushes is one
 * row that none of them is part of, or the rows of the batch. */
static bool pushes_batch(Elab *e, const Value *v, int lead, Loc loc, const char *what) {
    for (int i = 0; e->entry->passes && i < v->rank; i++) {
        if (v->dim[i].batch != (lead == 1 && i == 0)) {
            elab_error(e, loc, 646,
                       "the batch of '%s' may have fewer rows at the end of the data, so %s takes "
                       "one row that is apart from them, or the rows of the batch along the "
                       "leading axis",
                       e->entry->name, what);
            return false;
        }
    }
    return true;
}

/* Rows of one field: one, or `*rows` along a leading axis that all fields have. */
static Node *rows_of(Elab *e, const Field *f, const Argument *arg, int64_t *rows) {
    const char *what = str_printf(e->arena, "'%s' of the ring", f->name);
    const Value *v = arith_tensor(e, arg->loc, arg->value, slot_value_type(f->slot).elem);
    if (!elab_ok(v) || !elab_plain(e, arg->loc, v) ||
        !dims_within(e, f->ast->kid[1], arg->value, arg->loc, what)) {
        return NULL;
    }
    int lead = v->kind == V_TENSOR ? v->rank - f->rank : -1;
    bool fits = (lead == 0 || lead == 1) && v->nspan == 0 &&
                half_fits(v, f->slot->type.elem);
    for (int i = 0; fits && i < f->rank; i++) {
        fits = dims_agree(v->dim[lead + i], f->dim[i]);
    }
    int64_t n = fits && lead == 1 ? v->dim[0].size : 1;
    if (!fits || (*rows > 0 && n != *rows)) {
        elab_error(
            e, arg->loc, 485, "%s takes %s, or several such rows, as many for each field; found %s",
            what,
            str_printf(e->arena, "%s%s", elem_name(f->slot->type.elem),
                       f->rank ? shape_text(e->arena, f->rank, f->dim) : ""),
            value_text(e->arena, v));
        half_hint(e, v, f->slot->type.elem);
        return NULL;
    }
    if (!pushes_batch(e, v, lead, arg->loc, what)) {
        return NULL;
    }
    *rows = n;
    Type type = f->slot->type;
    type.dim[0] = n;
    return lead == 1 ? v->node : node_reshape(e->g, v->node, type.rank, type.dim);
}

static bool may_push(Elab *e, const Ring *ring, Loc loc) {
    EntryKind kind = e->entry && e->entry->entry ? e->entry->entry->kind : ENTRY_INIT;
    if (e->loop || e->frame->item ||
        (kind != ENTRY_CALL && kind != ENTRY_TRAIN && kind != ENTRY_EVAL && kind != ENTRY_TEST)) {
        elab_error(e, loc, 486,
                   "rows are pushed by an entry or a train itself, outside of loops; several at "
                   "once have a leading axis");
        return false;
    }
    int data = e->entry->entry->dataset;
    if (data >= 0 && e->module->dataset.at[data].cursor == ring->cursor) {
        elab_error(e, loc, 647, "'%s' takes its rows from '%s' and may not push to it",
                   e->entry->name, ring->name);
        return false;
    }
    for (int i = 0; i < e->entry->push.count; i++) {
        if (e->entry->push.at[i].slot->cursor == ring->cursor) {
            elab_error(e, loc, 487, "'%s' is pushed to twice in one call", ring->name);
            diag_hint(&e->c->diag, "several rows go together: fields with a leading axis");
            return false;
        }
    }
    return true;
}

static const Value *field_mistake(Elab *e, const Ring *ring, Loc loc) {
    Text names = {.arena = e->arena};
    for (int k = 0; k < ring->field.count; k++) {
        text_printf(&names, "%s%s", k ? ", " : "", ring->field.at[k].name);
    }
    return elab_error(e, loc, 488, "'%s.push' takes each of its fields once: %s", ring->name,
                      names.at);
}

static const Value *too_many(Elab *e, const Ring *ring, int64_t rows, Loc loc) {
    return elab_error(e, loc, 489, "'%s' holds %lld rows, never %lld", ring->name,
                      (long long)ring->capacity, (long long)rows);
}

static const Value *push(Elab *e, Ring *ring, const Ast *call, const Arguments *args) {
    if (!may_push(e, ring, call->loc)) {
        return &value_poison;
    }
    const Argument *given[CALL_PARAMS] = {0};
    for (int i = 0; i < args->count; i++) {
        int k = 0;
        while (k < ring->field.count &&
               (args->at[i].name ? !str_eq(ring->field.at[k].name, args->at[i].name) : k != i)) {
            k++;
        }
        if (k == ring->field.count || k >= CALL_PARAMS || given[k]) {
            return field_mistake(e, ring, args->at[i].loc);
        }
        given[k] = &args->at[i];
    }
    int64_t rows = 0;
    for (int k = 0; k < ring->field.count; k++) {
        const Field *f = &ring->field.at[k];
        if (!given[k]) {
            return field_mistake(e, ring, call->loc);
        }
        Node *node = rows_of(e, f, given[k], &rows);
        if (!node) {
            return &value_poison;
        }
        SlotWrite w = {f->slot, node, call->loc};
        VEC_PUSH(e->arena, &e->entry->push, w);
    }
    if (rows > ring->capacity) {
        return too_many(e, ring, rows, call->loc);
    }
    Entry *entry = e->entry->entry;
    bool used = e->entry->passes && rows == entry->rows;
    Node *more = used ? node_cast(e->g, node_slot(e->g, entry->rows_slot), TY_I64)
                      : node_int(e->g, TY_I64, rows);
    params_write(e, ring->cursor,
                 node_map2(e->g, OP_ADD, node_slot(e->g, ring->cursor), more), call->loc);
    return &value_nothing;
}

/* --- reading --------------------------------------------------------------------------------- */

static bool at_run_time(Elab *e, const Ring *ring, Loc loc) {
    if (!e->entry) {
        elab_error(e, loc, 490, "what '%s' holds is not known at compile time", ring->name);
    }
    return e->entry != NULL && elab_outside_adjoint(e, loc, ring->name);
}

/* Rows that are there: i32 in 0..capacity+1. */
static const Value *fill(Elab *e, const Ring *ring, Loc loc) {
    const Value *n = value_scalar(e->arena, node_slot(e->g, ring->cursor));
    n = arith_minmax(e, loc, false, n, value_int(e->arena, ring->capacity));
    return value_ranged(e->arena, arith_cast(e, loc, TY_I32, n), 0, ring->capacity + 1);
}

static void need_rows(Elab *e, const Ring *ring, int64_t rows, Loc loc) {
    for (int i = 0; i < e->entry->need.count; i++) {
        RowNeed *need = &e->entry->need.at[i];
        if (need->cursor == ring->cursor) {
            need->rows = need->rows > rows ? need->rows : rows;
            return;
        }
    }
    RowNeed need = {ring->cursor, rows, loc};
    VEC_PUSH(e->arena, &e->entry->need, need);
}

/* Rows of a field, with its range. */
static const Value *rows_value(Elab *e, const Field *f, Node *node, Dim rows) {
    Dim dim[MD_RANK] = {rows};
    memcpy(dim + 1, f->dim, sizeof *dim * (size_t)f->rank);
    const Value *v = value_tensor(e->arena, node, f->rank + 1, dim);
    bool ranged = f->slot->lo < f->slot->hi;
    return ranged ? value_ranged(e->arena, v, f->slot->lo, f->slot->hi) : v;
}

static const Value *sample(Elab *e, Ring *ring, const Ast *call, const Arguments *args) {
    const Value *n = args->count == 1 && !args->at[0].name ? args->at[0].value : NULL;
    if (!n || n->kind != V_INT || n->integer < 1) {
        return elab_error(e, call->loc, 491, "'%s.sample(n)' takes the number of rows, known now",
                          ring->name);
    }
    Dim rows = value_to_dim(n);
    if (rows.size > ring->capacity) {
        return too_many(e, ring, rows.size, call->loc);
    }
    if (!at_run_time(e, ring, call->loc)) {
        return &value_poison;
    }
    if (e->entry->entry->kind == ENTRY_TEST && !e->entry->entry->gradcheck) {
        return elab_error(e, call->loc, 675,
                          "a test begins with empty rings, so there is nothing to sample from '%s'",
                          ring->name);
    }
    need_rows(e, ring, rows.size, call->loc);
    Node *drawn = draw_node(e, call->loc, DIST_UNIFORM, 1, &rows);
    if (!drawn) {
        return &value_poison;
    }
    /* u * fill may round up to fill. */
    const Value *u = value_tensor(e->arena, drawn, 1, &rows), *count = fill(e, ring, call->loc);
    const Value *most = arith_binary(e, call->loc, AO_SUB, count, value_int(e->arena, 1));
    const Value *at = arith_cast(
        e, call->loc, TY_I32,
        arith_binary(e, call->loc, AO_MUL, u, arith_cast(e, call->loc, e->g->float_type, count)));
    /* An empty ring has no rows, but a check of derivatives may ask for them: then the first. */
    at = arith_minmax(e, call->loc, true, arith_minmax(e, call->loc, false, at, most),
                      value_int(e->arena, 0));
    Value *r = ARENA_NEW(e->arena, Value);
    r->kind = V_RECORD;
    r->count = ring->field.count;
    r->item = ARENA_ARRAY(e->arena, const Value *, r->count);
    r->field = ARENA_ARRAY(e->arena, const char *, r->count);
    for (int k = 0; k < r->count; k++) {
        const Field *f = &ring->field.at[k];
        Node *node = node_gather(e->g, node_slot(e->g, f->slot), at->node, 0);
        r->field[k] = f->name;
        r->item[k] = rows_value(e, f, node, rows);
    }
    return r;
}

const Value *ring_rows_at(Elab *e, const Item *item, int k, Node *at, Dim rows, const char **name) {
    if (k >= item->ring->field.count) {
        return NULL;
    }
    const Field *f = &item->ring->field.at[k];
    *name = f->name;
    return rows_value(e, f, node_gather(e->g, node_slot(e->g, f->slot), at, 0), rows);
}

void ring_need(Elab *e, const Item *item, int64_t rows, Loc loc) {
    need_rows(e, item->ring, rows, loc);
}

const Value *ring_field(Elab *e, Item *item, const Ast *dot) {
    Ring *ring = ring_of(e, item);
    if (!ring) {
        return &value_poison;
    }
    if (!at_run_time(e, ring, dot->loc)) {
        return &value_poison;
    }
    if (str_eq(dot->name, "count")) {
        return fill(e, ring, dot->loc);
    }
    Nearest n = nearest_start(dot->name);
    nearest_add(&n, "count");
    for (int k = 0; k < ring->field.count; k++) {
        const Field *f = &ring->field.at[k];
        if (str_eq(f->name, dot->name)) {
            return rows_value(e, f, node_slot(e->g, f->slot), (Dim){.size = ring->capacity});
        }
        nearest_add(&n, f->name);
    }
    elab_error(e, dot->name_loc, 492, "ring '%s' has no field '%s'", ring->name, dot->name);
    elab_hint_nearest(e, &n);
    return &value_poison;
}

const Value *ring_call(Elab *e, Item *item, const Ast *call) {
    const char *method = call->kid[0]->name;
    Ring *ring = ring_of(e, item);
    Arguments args = {0};
    call_arguments(e, call->kid[1], NULL, call->loc, &args);
    if (!ring || !call_evaluate(e, &args)) {
        return &value_poison;
    }
    if (str_eq(method, "push")) {
        return push(e, ring, call, &args);
    }
    if (str_eq(method, "sample")) {
        return sample(e, ring, call, &args);
    }
    return elab_error(e, call->kid[0]->name_loc, 493,
                      "a ring has push(...), sample(n) and count; '%s' is none of them", method);
}
