/* whole: a text through the whole compiler, see fuzz.h. */
#include "fuzz.h"

#include "compiler/driver/pipeline.h"

#include <string.h>

/* The exit code. Needs `f` open; ends its streams. */
static int compile(Fuzz *f) {
    int code = pipeline_text(&f->c, f->text, f->length);
    fuzz_ended(f);
    bool errors = f->c.diag.errors > 0;
    bool fits = code == EXIT_OK       ? !errors
                : code == EXIT_SOURCE ? errors
                                      : code == EXIT_BUDGET && f->nmessage > 0;
    if (!fits)
        fuzz_finding("status %d with %d errors:\n%s", code, f->c.diag.errors, f->messages);
    if (code == EXIT_OK && f->nprinted == 0)
        fuzz_finding("no error and no text");
    return code;
}

static void set_options(Options *opt, uint64_t choice) {
    opt->float_type = choice & 1 ? TY_F64 : TY_F32;
    opt->no_main = (choice & 2) != 0;
    opt->openblas = (choice & 4) != 0;
    opt->threads = choice & 8 ? 1 : 64;
    opt->report = choice & 16 ? REPORT_JSON : REPORT_TEXT;
    opt->stats = (choice & 32) != 0;
    if (choice & 64) { /* one of the two goes to standard output */
        opt->header = opt->output;
        opt->output = NULL;
    }
}

static void check_same(const Fuzz *first, const uint8_t *data, size_t size) {
    Fuzz again;
    fuzz_open(&again, data, size);
    /* Other addresses: nothing may be ordered by them. */
    again.c.arena.chunk_bytes = 4096;
    compile(&again);
    if (first->nprinted != again.nprinted ||
        memcmp(first->printed, again.printed, first->nprinted) != 0)
        fuzz_finding("the second text is not the first:\n%s", again.printed);
    fuzz_close(&again);
}

static void check_options(const uint8_t *data, size_t size, uint64_t choice) {
    Fuzz other;
    fuzz_open(&other, data, size);
    set_options(&other.c.opt, choice);
    compile(&other);
    fuzz_close(&other);
}

void fuzz_whole(const uint8_t *data, size_t size) {
    Fuzz f;
    fuzz_open(&f, data, size);
    bool good = compile(&f) == EXIT_OK;
    uint64_t choice = hash_bytes(HASH_START, data, size) >> 32;
    if (good && choice % 4 == 0)
        check_same(&f, data, size);
    else if (good && choice % 4 == 1)
        check_options(data, size, choice / 4);
    fuzz_close(&f);
}
