/* Dumps: a module's text, as built and after each pass, is read again as the same module. */
#include "fuzz.h"

#include "tests/unit/dumped.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Arena arena = {0};
    Dumped m;
    dumped_make(&m, "fuzz.mdl", (const char *)data, size, TY_F32);
    if (m.module) {
        const char *fault = dumped_stages_fault(&arena, m.module);
        if (fault)
            fuzz_finding("%s", fault);
    }
    dumped_done(&m);
    arena_free(&arena);
    return 0;
}
