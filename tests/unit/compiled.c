/* compiled: see the header. */
#include "compiled.h"

#include "passes/late.h"
#include "passes/lower/lower.h"
#include "passes/plan/plan.h"

#include <string.h>

static Program *lowered(Dumped *m, int threads, bool openblas) {
    if (m->module == NULL) {
        dumped_done(m);
        return NULL;
    }
    m->c.opt.threads = threads;
    m->c.opt.openblas = openblas;
    m->module->name = "net";
    for (int pass = 0; pass < DUMPED_PASSES; pass++) {
        dumped_pass(m->module, pass);
    }
    if (!m->c.opt.no_main) {
        pass_late(&m->c.arena, m->module);
    }
    Program *p = pass_lower(&m->c, &m->c.arena, m->module);
    for (int i = 0; i < p->entry.count; i++) {
        program_number(p->entry.at[i]);
    }
    program_names(p);
    return p;
}

Program *compiled_program(Dumped *m, const char *path, int threads, bool openblas) {
    Arena arena = {0};
    size_t length;
    const char *text = dumped_file(&arena, path, &length);
    if (text == NULL) {
        return NULL;
    }
    dumped_make(m, path, text, length, TY_F32);
    arena_free(&arena);
    return lowered(m, threads, openblas);
}

Program *compiled_text(Dumped *m, const char *text, int threads) {
    dumped_make(m, "text.mdl", text, strlen(text), TY_F32);
    return lowered(m, threads, false);
}

Program *compiled_target(Dumped *m, const char *text, const struct Target *target) {
    dumped_make(m, "text.mdl", text, strlen(text), TY_F32);
    m->c.opt.target = target;
    return lowered(m, 4, false);
}

void compiled_plan(Program *p) {
    pass_plan(p, true, -1);
}

Buf *compiled_slot(const Program *p, const char *name) {
    for (int i = 0; i < p->slot.count; i++) {
        if (str_eq(p->slot.at[i]->slot->name, name)) {
            return p->slot.at[i];
        }
    }
    BUG("the program has no slot %s", name);
}
