/* Parser and elaborator: what has no error is a module whose regions hold, also after
 * differentiation. */
#include "fuzz.h"

#include "lang/elab.h"
#include "passes/grad.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Fuzz f;
    fuzz_open(&f, data, size);
    Compile *c = &f.c;
    uint32_t source = diag_add_source(&c->diag, "fuzz.mdl", f.text, f.length);
    const Ast *ast = parse_file(c, &c->arena, source);
    Module *module = c->diag.errors ? NULL : elaborate(c, &c->arena, &c->arena, ast);
    for (int i = 0; module && !c->diag.errors && i < module->entry.count; i++) {
        Entry *entry = module->entry.at[i];
        region_verify(entry->region, STAGE_BUILT);
        region_verify(pass_grad(module->graph, entry->region, GRAD_SAVE_CALLS), STAGE_GRAD);
    }
    fuzz_close(&f);
    return 0;
}
