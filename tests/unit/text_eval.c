/* text_eval: see the header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "text_eval.h"

#include <string.h>

void text_open(TextEval *t, const char *text) {
    memset(t, 0, sizeof *t);
    dumped_make(&t->m, "text.mdl", text, strlen(text), TY_F64);
    if (t->m.module == NULL) {
        fail_msg("%s", t->m.messages);
    }
    for (int pass = 0; pass < DUMPED_PASSES; pass++) {
        dumped_pass(t->m.module, pass);
    }
    t->ev = eval_open(&t->arena, (EvalOptions){0});
}

void text_close(TextEval *t) {
    arena_free(&t->arena);
    dumped_done(&t->m);
}

Value text_run(TextEval *t, const char *entry, const char *name, const double *const *in) {
    const Entry *e = module_entry(t->m.module, ENTRY_CALL, entry);
    assert_non_null(e);
    for (int i = 0; i < e->input.count; i++) {
        eval_bind(t->ev, e->input.at[i], in[i]);
    }
    Value *out = ARENA_ARRAY(&t->arena, Value, e->region->out.count);
    eval_region(t->ev, e->region, out);
    for (int k = 0; k < e->out.count; k++) {
        const EntryOut *o = &e->out.at[k];
        if (name == NULL ? o->role == OUT_LIMIT : o->name != NULL && str_eq(o->name, name)) {
            return out[k];
        }
    }
    fail_msg("%s gives no %s", entry, name != NULL ? name : "limit");
    return (Value){.nparts = 0};
}

double text_number(TextEval *t, const char *entry, const char *name, double a) {
    const double *in[1] = {&a};
    return value_get(text_run(t, entry, name, in), 0);
}
