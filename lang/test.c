/* test: expectations become the results of entries that only the evaluator runs. `gradcheck(fit) <
 * t` is no expression: the test driver compares the train's gradients with differences. */
#include "lang/test.h"

#include "lang/arith.h"
#include "lang/entry.h"
#include "lang/expr.h"
#include "lang/stmt.h"
#include "lang/train.h"

static const Ast *gradcheck_call(const Ast *ast) {
    bool is = ast->kind == AST_CALL && ast->kid[0]->kind == AST_NAME &&
              str_eq(ast->kid[0]->name, "gradcheck");
    return is ? ast : NULL;
}

static bool contains_gradcheck(const Ast *ast) {
    if (!ast) {
        return false;
    }
    if (gradcheck_call(ast)) {
        return true;
    }
    for (int i = 0; i < ast->nkid; i++) {
        if (contains_gradcheck(ast->kid[i])) {
            return true;
        }
    }
    return false;
}

static void gradcheck(Elab *e, const Ast *test, const Ast *expect) {
    const Ast *call =
        expect->kind == AST_BINARY && expect->op == AO_LT ? gradcheck_call(expect->kid[0]) : NULL;
    if (!call || !call->kid[1] || call->kid[1]->nkid != 1 ||
        call->kid[1]->kid[0]->kind != AST_NAME) {
        elab_error(e, expect->loc, 560,
                   "a gradient check is written: expect gradcheck(fit) < 1e-5;");
        return;
    }
    const char *name = call->kid[1]->kid[0]->name;
    e->scope = scope_new(e->scratch, NULL, e->root);
    const Value *limit = elab_expr(e, expect->kid[1]);
    e->scope = NULL;
    if (!elab_ok(limit)) {
        return;
    }
    if (!value_is_number(limit)) {
        elab_error(e, expect->kid[1]->loc, 561,
                   "the limit of a gradient check is a compile-time number");
        return;
    }
    Nearest n = nearest_start(name);
    for (int i = 0; i < e->module->entry.count; i++) {
        Entry *train = e->module->entry.at[i];
        if (train->kind != ENTRY_TRAIN) {
            continue;
        }
        if (str_eq(train->name, name)) {
            train_gradcheck(e, file_find(e->root, name)->ast, train, test->text,
                            value_number(limit), expect->loc);
            return;
        }
        nearest_add(&n, train->name);
    }
    elab_error(e, call->kid[1]->loc, 562, "unknown train '%s'", name);
    elab_hint_nearest(e, &n);
}

void test_expect(Elab *e, const Ast *clause) {
    const Ast *args = clause->kid[0];
    if (!args || args->nkid != 1) {
        elab_error(e, clause->loc, 564, "'expect' takes one condition");
        return;
    }
    const Ast *expect = args->kid[0];
    if (contains_gradcheck(expect)) {
        VEC_PUSH(e->arena, &e->entry->gradcheck, expect);
        return;
    }
    const Value *v = elab_expr(e, expect);
    if (!elab_ok(v)) {
        elab_explained(e);
        return;
    }
    bool is =
        v->kind == V_BOOL || (v->kind == V_TENSOR && value_elem(v) == TY_BOOL && v->rank == 0);
    if (!is) {
        elab_error(e, expect->loc, 565, "'expect' needs a scalar condition, found %s",
                   value_text(e->arena, v));
        return;
    }
    v = arith_lift(e, expect->loc, v);
    entry_out(e, OUT_EXPECT, "expect", NULL, v->node, expect->loc);
}

void test_item(Elab *e, const Ast *ast) {
    EntryScope *scope = entry_open(e, ENTRY_TEST, ast->text, ast);
    stmt_block(e, ast->kid[0]);
    entry_limits(e);
    entry_close(e);
    for (int i = 0; i < scope->gradcheck.count; i++) { /* entries of their own */
        gradcheck(e, ast, scope->gradcheck.at[i]);
    }
}
