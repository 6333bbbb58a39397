/* compiled: model files as lowered and planned Programs, in process. */
#ifndef MDLC_TESTS_COMPILED_H
#define MDLC_TESTS_COMPILED_H

#include "compiler/program.h"
#include "dumped.h"

/* The lowered Program of a model file; NULL when it does not compile. `m` owns it, see
 * dumped_done. */
Program *compiled_program(Dumped *m, const char *path, int threads, bool openblas);
/* The same of a text. */
Program *compiled_text(Dumped *m, const char *text, int threads);
/* The same for another machine of four threads. */
Program *compiled_target(Dumped *m, const char *text, const struct Target *target);
/* Plans it, without a budget. */
void compiled_plan(Program *p);
/* The Buf of the slot of that name; a test that has none ends there. */
Buf *compiled_slot(const Program *p, const char *name);

#endif
