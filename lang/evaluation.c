/* evaluation: masked sums over the rows in use, and what is made of them at the end. */
#include "lang/evaluation.h"

#include "lang/arith.h"
#include "lang/entry.h"
#include "lang/fold.h"
#include "lang/init.h"
#include "lang/notation.h"
#include "lang/stmt.h"
#include "lang/training.h"

/* The most numbers of one fold over the batch that a host keeps: a confusion of 64 classes. */
#define MOST_SUMS 4096

typedef struct {
    Node *node; /* in the evaluation's region */
    Slot *slot; /* input of the end entry */
} RowSum;

struct Evaluation {
    Entry *end;
    Slot *rows;
    const Item *batch; /* the declared dim of the batch, if it has one */
    VEC(RowSum) sum;
};

const char *evaluation_of_few(const Elab *e) {
    return !e->entry              ? NULL
           : e->entry->evaluation ? "an evaluation"
           : e->entry->passes     ? "an entry of a phase"
                                  : NULL;
}

Region *evaluation_end_region(Elab *e) {
    return e->entry->evaluation->end->region;
}

Region *evaluation_enter(Elab *e, const Value *v) {
    return v->kind == V_TENSOR && v->end ? graph_enter(e->g, evaluation_end_region(e)) : NULL;
}

const Value *evaluation_leave(Elab *e, const Value *v, Region *before, const Value *r) {
    if (v->kind != V_TENSOR || !v->end) {
        return r;
    }
    graph_leave(e->g, before);
    if (!r || r->kind != V_TENSOR || r->end) {
        return r;
    }
    Value *marked = ARENA_NEW(e->scratch, Value);
    *marked = *r;
    marked->end = true;
    return marked;
}

static Dim axis_dim(const Value *v, int i) {
    return i < v->nspan ? v->span[i]->extent : v->dim[i - v->nspan];
}

static bool has_rows(Elab *e, const Value *v) {
    for (int i = 0; i < v->nspan + v->rank; i++) {
        if (evaluation_masks(e, axis_dim(v, i))) {
            return true;
        }
    }
    return false;
}

const Value *evaluation_at_end(Elab *e, Loc loc, const Value *v) {
    if (v->end || !elab_ok(v)) {
        return v;
    }
    if (!has_rows(e, v)) {
        Node *node = init_transplant(e, v->node, evaluation_end_region(e), true);
        if (node) {
            Value *r = ARENA_NEW(e->scratch, Value);
            *r = *value_with(e->scratch, v, node);
            r->end = true;
            return r;
        }
    }
    elab_error(e, loc, 554,
               "a fold over the batch meets single rows or other values of one batch here; an "
               "evaluation over several batches knows it only at the end");
    diag_hint(&e->c->diag,
              "write it with outermost folds, for example sum(y^2) - sum(y)^2 / count(y)");
    return &value_poison;
}

bool evaluation_masks(Elab *e, Dim dim) {
    const Evaluation *ev = e->entry ? e->entry->evaluation : NULL;
    return (ev && (dim.batch != 0 || (dim.name && dim.name == ev->batch))) ||
           (e->entry && e->entry->passes && dim.batch != 0);
}

void evaluation_divided(Elab *e, Loc loc, const Value *a, const Value *b) {
    const Evaluation *ev = e->entry ? e->entry->evaluation : NULL;
    if (ev && ev->batch && elab_ok(a) && a->end && b->kind == V_INT && b->dim_of == ev->batch) {
        elab_warn(e, loc, 641,
                  "over held-out rows this fold runs over all of them, but it is divided by the "
                  "%lld rows of one batch",
                  (long long)b->integer);
        diag_hint(&e->c->diag, "mean(x), or sum(x) / count(y) for a y with one element a row");
    }
}

/* The input of the end entry for the sum of `node` over all batches. */
static Slot *sum_slot(Elab *e, Node *node, Elem elem, Loc loc) {
    Evaluation *ev = e->entry->evaluation;
    for (int i = 0; i < ev->sum.count; i++) {
        if (ev->sum.at[i].node == node && ev->sum.at[i].slot->type.elem == elem) {
            return ev->sum.at[i].slot;
        }
    }
    const char *name = str_printf(e->arena, "sum%d", ev->sum.count);
    Slot *slot = ARENA_NEW(e->arena, Slot);
    slot->kind = SLOT_INPUT;
    slot->name = slot->file_name = slot->c_name = name;
    slot->type = *node->type;
    slot->type.elem = elem;
    slot->entry = ev->end;
    slot->loc = loc;
    slot->index = ev->end->input.count;
    VEC_PUSH(e->arena, &ev->end->input, slot);
    entry_out(e, OUT_SUM, name, NULL, node, loc);
    RowSum sum = {node, slot};
    VEC_PUSH(e->arena, &ev->sum, sum);
    return slot;
}

/* The sum of all batches, as the end entry sees it: numbers in the type of the program, what has
 * axes in doubles, which is how a host keeps it. */
static Node *sum_at_end(Elab *e, Node *node, Loc loc) {
    Slot *slot = sum_slot(e, node, node->type->rank > 0 ? TY_F64 : e->g->float_type, loc);
    Region *before = graph_enter(e->g, evaluation_end_region(e));
    Node *r = node_cast(e->g, node_slot(e->g, slot), e->g->float_type);
    graph_leave(e->g, before);
    return r;
}

/* The end entry has no inputs but sums, so it gets the mean of the scalar over all rows: products
 * and sums of a number of 32 bits are exact in doubles, and so is the quotient. */
Node *evaluation_scalar(Elab *e, Slot *slot) {
    Graph *g = e->g;
    Evaluation *ev = e->entry->evaluation;
    const Elem elem = slot->type.elem;
    const bool exact = elem_is_float(elem) || (elem_is_int(elem) && elem_bytes(elem) <= 4);
    if (!ev || slot == ev->rows || slot->entry != e->entry->entry || slot->type.rank > 0 ||
        !exact) {
        return NULL;
    }
    Region *before = graph_enter(g, slot->entry->region);
    Node *rows = node_cast(g, node_slot(g, ev->rows), TY_F64);
    Node *part = node_map2(g, OP_MUL, node_cast(g, node_slot(g, slot), TY_F64), rows);
    Slot *total = sum_slot(e, part, TY_F64, slot->loc);
    Slot *all = sum_slot(e, rows, TY_F64, slot->loc);
    graph_leave(g, before);
    return node_cast(g, node_map2(g, OP_DIV, node_slot(g, total), node_slot(g, all)), elem);
}

/* The sum over `axes`, among them that of the rows, which has `factor` elements of each: of each
 * row by itself first, so that the order of terms is that of rows however many are made at once
 * (docs/decisions/0055-parts-of-a-batch.md). Integers are added up in 32 bits. */
static Node *sum_of_rows(Elab *e, Node *x, uint32_t axes, int row_axis, int64_t factor) {
    Graph *g = e->g;
    const uint32_t behind = ~0u << (row_axis + 1);
    x = elem_is_int(x->type->elem) ? node_cast(g, x, TY_I32) : x;
    if (factor > 1) {
        Type apart = *x->type;
        for (int i = apart.rank++; i > row_axis + 1; i--) {
            apart.dim[i] = apart.dim[i - 1];
        }
        apart.dim[row_axis] /= factor;
        apart.dim[row_axis + 1] = factor;
        x = node_reshape(g, x, apart.rank, apart.dim);
        axes = (axes & ~behind) | (axes & behind) << 1 | 1u << (row_axis + 1);
    }
    int row = 0;
    for (int i = 0; i < row_axis; i++) {
        row += !(axes >> i & 1);
    }
    Node *each = node_fold(g, OP_SUM, x, axes & ~(1u << row_axis));
    Type index = *each->type;
    index.elem = TY_I32;
    Node *inside =
        node_map2(g, OP_LT, node_iota(g, index, row), node_slot(g, e->entry->evaluation->rows));
    Node *masked = node_select(g, inside, each, node_const(g, each->type->elem, 0));
    return node_fold(g, OP_SUM, masked, 1u << row);
}

const Value *evaluation_fold(Elab *e, const char *name, const Value *v, uint32_t axes, Loc loc) {
    Graph *g = e->g;
    Evaluation *ev = e->entry->evaluation;
    int rank = v->node->type->rank, row_axis = -1;
    int64_t factor = 0, rest = 1, kept = 1;
    if (!ev) {
        elab_error(e, loc, 645,
                   "the batch of '%s' may have fewer rows at the end of the data, so folds over it "
                   "are not defined",
                   e->entry->name);
        diag_hint(&e->c->diag, "what is computed of each row by itself is");
        return &value_poison;
    }
    if (!str_eq(name, "sum") && !str_eq(name, "mean")) {
        return elab_error(e, loc, 555,
                          "'%s' over the batch is not defined in an evaluation over several "
                          "batches; sums and means are",
                          name);
    }
    for (int i = 0; i < rank; i++) {
        Dim dim = axis_dim(v, i);
        bool rows = evaluation_masks(e, dim);
        if (rows && (row_axis >= 0 || dim.batch == BATCH_LOST)) {
            return elab_error(e, loc, 556,
                              "the rows of the batch cannot be told apart here, which an "
                              "evaluation on fewer rows needs");
        }
        if (rows) {
            row_axis = i;
            factor = dim.batch > 0 ? dim.batch : 1;
        } else {
            *(axes >> i & 1 ? &rest : &kept) *= dim.size;
        }
    }
    const bool apart = factor > 1 && rank == MD_RANK;
    if (e->loop || v->end || kept > MOST_SUMS || apart ||
        !(axes >> (row_axis < 0 ? 0 : row_axis) & 1)) {
        elab_error(
            e, loc, 557,
            "an evaluation over several batches keeps up to %d numbers a fold over the batch, "
            "but this one %s",
            MOST_SUMS,
            e->loop  ? "stands in a loop"
            : v->end ? "is over what is known at the end"
            : apart  ? "has too many axes to tell rows apart"
                     : "leaves more");
        diag_hint(&e->c->diag, apart ? "join axes before the fold: x as [n, m]"
                                     : "fold over everything: mean(x)");
        return &value_poison;
    }
    const bool integer = elem_is_int(v->node->type->elem);
    Node *sum = sum_of_rows(e, v->node, axes, row_axis, factor);
    if (integer) {
        sum = node_cast(g, sum, g->float_type);
    }
    Node *rows = str_eq(name, "mean")
                     ? sum_at_end(e, node_cast(g, node_slot(g, ev->rows), g->float_type), loc)
                     : NULL;
    Node *total = sum_at_end(e, sum, loc);
    Region *before = graph_enter(g, ev->end->region);
    if (rows) {
        Node *per_row = node_const(g, g->float_type, (double)(rest * factor));
        total = node_map2(g, OP_DIV, total, node_map2(g, OP_MUL, rows, per_row));
    } else if (integer) {
        total = node_cast(g, total, TY_I32);
    }
    graph_leave(g, before);
    Value *r = fold_left(e, v, axes, total);
    r->end = true;
    return r;
}

static void end_out(Elab *e, OutRole role, const char *name, const Value *v, Loc loc) {
    Evaluation *ev = e->entry->evaluation;
    if (!v || !elab_ok(v)) {
        return;
    }
    v = evaluation_at_end(e, loc, v);
    if (!elab_ok(v)) {
        return;
    }
    region_result(ev->end->region, v->node);
    EntryOut out = {.name = name, .role = role, .loc = loc};
    VEC_PUSH(e->arena, &ev->end->out, out);
}

void evaluation_entry(Elab *e, const Ast *ast, Entry *train) {
    const Ast *params = ast->kid[0], *on = ast->kid[2], *at = ast->kid[3];
    Training t = {.ast = ast};
    Evaluation ev = {0};
    EntryScope *scope = entry_open(e, ENTRY_EVAL, ast->name, ast);
    scope->evaluation = &ev;
    scope->entry->train = train;
    train_counters(e, &t, train);
    ev.end = ARENA_NEW(e->arena, Entry);
    *ev.end = (Entry){.kind = ENTRY_EVAL_END,
                      .name = ast->name,
                      .region = region_new(e->g, NULL),
                      .dataset = -1,
                      .steps = -1,
                      .epochs = -1,
                      .budget = -1,
                      .train = train,
                      .budget_loc = ast->loc,
                      .loc = ast->loc};
    int errors = e->errors;
    if (train_read_of(e, &t, ast->kid[1], ast) && entry_rebind(e, at) && entry_data(e, on) &&
        entry_inputs(e, params)) {
        const Slot *field = scope->entry->input.count > 0 ? scope->entry->input.at[0] : NULL;
        const ScopeName *first = field ? scope_find_here(e->scope, field->name) : NULL;
        ev.batch = first && first->value->rank > 0 ? first->value->dim[0].name : NULL;
        ev.rows = entry_input_slot(e, "rows", type_scalar(TY_I32), ast->loc);
        ev.rows->lo = 1;
        ev.rows->hi = scope->entry->rows + 1;
        scope->entry->rows_slot = ev.rows;
        stmt_block(e, ast->kid[4]);
        end_out(e, OUT_LOSS, "loss", t.loss, t.loss_loc);
        if (t.loss && !elab_ok(t.loss) && e->errors == errors) {
            elab_error(e, t.loss_loc, 499,
                       "the loss of '%s' takes a derivative of a fold over the batch, which an "
                       "evaluation over several batches does not have",
                       ast->name);
            diag_hint(&e->c->diag, "vjp(v, x, u) of a value of each row");
        }
        for (int i = 0; i < t.metric.count; i++) {
            if (t.metric.at[i].derived) {
                continue;
            }
            end_out(e, OUT_METRIC, t.metric.at[i].name, t.metric.at[i].value, t.metric.at[i].loc);
        }
    }
    entry_limits(e);
    if (e->errors != errors) {
        diag_note(&e->c->diag, ast->loc, "this concerns the evaluation of '%s' on held-out rows",
                  ast->name);
    }
    entry_close(e);
    VEC_PUSH(e->arena, &e->module->entry, ev.end);
}
