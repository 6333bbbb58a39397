/* normalise: `x: f32[64] = standardize(f.columns(0..64));`, mean and deviation of each element over
 * the rows to train on, or `minmax`. The constants are two states of the field's shape, kept in
 * weights files like the statistics of a layer, so that an evaluation of loaded weights uses what
 * the training used; a third says from how many rows they come. The program fills them before the
 * first step unless a file did; until then the count is 0. The rows in a train are
 * `(x - centre) / spread`. Contract: gives nodes over the states; changes no other field. */
#include "lang/normalise.h"

#include "lang/expr.h"
#include "lang/params.h"

#include <string.h>

/* By DataField.norm. */
static const struct {
    const char *name, *centre, *spread;
} rules[] = {
    [NORM_NONE] = {"", "", ""},
    [NORM_STANDARDIZE] = {"standardize", "mean", "std"},
    [NORM_MINMAX] = {"minmax", "low", "range"},
};
enum { NRULE = sizeof rules / sizeof *rules };

static int64_t rule_of(const Elab *e, const Ast *call) {
    const Ast *name = call && call->kind == AST_CALL ? call->kid[0] : NULL;
    if (!name || name->kind != AST_NAME || file_find(e->scope->file, name->name)) {
        return NORM_NONE; /* an op of the file hides the rule */
    }
    for (int64_t i = 1; i < NRULE; i++) {
        if (str_eq(rules[i].name, name->name)) {
            return i;
        }
    }
    return NORM_NONE;
}

static const Ast *rule_within(const Elab *e, const Ast *ast) {
    const Ast *found = rule_of(e, ast) != NORM_NONE ? ast : NULL;
    for (int i = 0; ast && !found && i < ast->nkid; i++) {
        found = rule_within(e, ast->kid[i]);
    }
    return found;
}

const Ast *normalise_take(Elab *e, DataField *f, const Ast *expr) {
    bool piped = expr->kind == AST_PIPE;
    const Ast *call = piped ? expr->kid[1] : expr, *args;
    f->norm = rule_of(e, call);
    if (f->norm != NORM_NONE) {
        const char *name = rules[f->norm].name;
        args = call->kid[1];
        int given = args ? args->nkid : 0;
        if (given != !piped || (given == 1 && args->kid[0]->kind == AST_ARG)) {
            elab_error(e, call->loc, 396, "'%s' takes the expression of the field alone: %s(e)",
                       name, name);
            return NULL;
        }
        if (!elem_is_float(f->type.elem)) {
            elab_error(e, call->loc, 397, "'%s' gives fractions, but field '%s' is %s", name,
                       f->name, type_text(e->arena, f->type));
            return NULL;
        }
        if (elem_is_half(f->type.elem)) {
            elab_error(e, call->loc, 689, "'%s' gives f32, but field '%s' is %s", name, f->name,
                       type_text(e->arena, f->type));
            return NULL;
        }
        expr = piped ? expr->kid[0] : args->kid[0];
    }
    const Ast *inner = rule_within(e, expr);
    if (inner) {
        elab_error(e, inner->loc, 398,
                   "'%s' stands around the whole expression of a field; its constants are known "
                   "only when all rows are read",
                   inner->kid[0]->name);
        return NULL;
    }
    return expr;
}

static Slot *constant_state(Elab *e, const DataSet *set, const DataField *f, const char *name,
                            Type type, Node *initial) {
    const char *path = str_printf(e->arena, "%s.%s.%s", set->name, f->name, name);
    Slot *slot = elab_state_slot(e, STATE_LAYER, path, type, NULL, f->loc);
    slot->file_name = str_printf(e->arena, "data.%s", path);
    params_set_initial(e, slot, initial);
    return slot;
}

void normalise_states(Elab *e, const DataSet *set, DataField *f) {
    if (f->norm == NORM_NONE) {
        return;
    }
    Region *before = graph_enter(e->g, e->init->region);
    f->centre =
        constant_state(e, set, f, rules[f->norm].centre, f->type, node_full(e->g, f->type, 0));
    f->spread =
        constant_state(e, set, f, rules[f->norm].spread, f->type, node_full(e->g, f->type, 1));
    f->known = constant_state(e, set, f, "count", type_scalar(TY_I64), node_int(e->g, TY_I64, 0));
    graph_leave(e->g, before);
}

Node *normalise_rows(Elab *e, const DataField *f, Node *rows) {
    if (f->norm == NORM_NONE) {
        return rows;
    }
    Type type = *rows->type;
    Node *centre = node_broadcast(e->g, node_slot(e->g, f->centre), 1, type.rank, type.dim);
    Node *spread = node_broadcast(e->g, node_slot(e->g, f->spread), 1, type.rank, type.dim);
    return node_map2(e->g, OP_DIV, node_map2(e->g, OP_SUB, rows, centre), spread);
}

const Value *normalise_constant(Elab *e, const Ast *ast) {
    const Ast *field = ast->kid[0], *set = field->kind == AST_DOT ? field->kid[0] : NULL;
    if (!set || set->kind != AST_NAME || scope_find(e->scope, set->name)) {
        return NULL;
    }
    const Item *item = file_find(e->scope->file, set->name);
    if (!item || item->kind != AST_DATASET) {
        return NULL;
    }
    const char *path = str_printf(e->arena, "%s.%s.%s", set->name, field->name, ast->name);
    const Value *v = params_at(e, path);
    if (v) {
        return elab_outside_adjoint(e, ast->loc, path) ? v : &value_poison;
    }
    elab_error(e, ast->loc, 399, "there is no constant '%s'", path);
    Nearest n = nearest_start(path);
    for (int i = 0; i < e->state.count; i++) {
        if (params_under(e->state.at[i]->name, set->name)) {
            nearest_add(&n, e->state.at[i]->name);
        }
    }
    elab_hint_nearest(e, &n);
    return &value_poison;
}
