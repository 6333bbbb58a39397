/* made: rows that are computed. The fields of `file f = synthetic(n);` are expressions of `f.row`
 * and of draws, which are functions of the file's seed and of the row, so any row can be made at
 * any time and nothing is kept. A draw without a shape has that of the field. Contract: gives a
 * load entry whose raw row is two i64, seed and row. */
#include "lang/made.h"

#include "lang/dims.h"
#include "lang/entry.h"
#include "lang/expr.h"

enum { ROW_NUMBERS = 2 };

bool made_is(const Ast *expr) {
    return expr->kind == AST_CALL && expr->kid[0]->kind == AST_NAME &&
           str_eq(expr->kid[0]->name, "synthetic");
}

bool made_file(Elab *e, DataFile *file, const Ast *call) {
    const Ast *args = call->kid[1];
    int64_t number[ROW_NUMBERS] = {0, 0};
    for (int i = 0; args && i < args->nkid; i++) {
        const Ast *arg = args->kid[i];
        bool seed = arg->kind == AST_ARG && str_eq(arg->name, "seed");
        if (i > 1 || seed != (i == 1) || (i == 0 && arg->kind == AST_ARG)) {
            elab_error(e, arg->loc, 317,
                       "rows without a file are written: file f = synthetic(1000, seed = 1);");
            return false;
        }
        if (!elab_int(e, seed ? arg->kid[0] : arg, seed ? "the seed of a file" : "a number of rows",
                      &number[i])) {
            return false;
        }
    }
    if (number[0] < 1 || number[1] < 0) {
        elab_error(e, call->loc, 318,
                   "a file has at least one row, and its seed is not negative: "
                   "synthetic(1000, seed = 1)");
        return false;
    }
    file->rows = number[0];
    file->seed = number[1];
    return true;
}

void made_open(Elab *e, const DataSet *set, DataField *f, const Ast *ast, int rank,
               const Dim *dim) {
    const int64_t numbers = ROW_NUMBERS;
    const char *name = set->file.at[0].name;
    f->source = FIELD_MADE;
    f->raw = TY_I64;
    f->raw_count = ROW_NUMBERS;
    EntryScope *scope = entry_open(e, ENTRY_LOAD, f->name, ast);
    scope->name = str_printf(e->arena, "%s.%s", set->name, f->name); /* of the draws */
    Slot *slot = entry_input_slot(e, "row", type_make(TY_I64, 1, &numbers), ast->loc);
    for (int i = 0; i < ROW_NUMBERS; i++) {
        scope->row[i] = node_index_axis(e->g, node_slot(e->g, slot), 0, i);
    }
    const Value **extent = ARENA_ARRAY(e->scratch, const Value *, rank);
    for (int i = 0; i < rank; i++) {
        extent[i] = value_dim(e->scratch, dim[i]);
    }
    scope->row_shape = value_list(e->scratch, extent, rank);
    Value *file = ARENA_NEW(e->scratch, Value);
    file->kind = V_RECORD;
    file->count = 1;
    file->field = ARENA_ARRAY(e->scratch, const char *, 1);
    file->item = ARENA_ARRAY(e->scratch, const Value *, 1);
    file->field[0] = "row";
    file->item[0] = value_scalar(e->scratch, scope->row[1]);
    scope_add(e->scratch, e->scope, name, set->file.at[0].loc, BIND_ARGUMENT, file);
}
