/* stages: the graph passes, Graph -> Graph, with a verifier behind each. */
#ifndef MDLC_COMPILER_DRIVER_STAGES_H
#define MDLC_COMPILER_DRIVER_STAGES_H

#include "compiler/compile.h"
#include "compiler/graph.h"

/* A place behind the last pass, for stages_run. */
enum { STAGES_END = 1000 };
/* The place behind the pass of that name. */
int stages_behind(const char *name);
int stages_before(const char *name); /* and in front of it */
/* Runs the passes `from` to `to` over all entries; the first of them leaves nothing in the arena
 * `built`. False: a dump was printed and the work ends here; never where it is `silent`. */
bool stages_run(Compile *c, Module *module, Arena *built, int from, int to, bool silent);
void module_verify(const Module *module, GraphStage stage);

/* Names that --dump takes, those of other stages too. */
bool stage_exists(const char *name);
void stages_print(FILE *out);
bool dump_wanted(const Compile *c, const char *stage);

#endif
