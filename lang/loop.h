/* loop: repeat and scan. */
#ifndef MDLC_LANG_LOOP_H
#define MDLC_LANG_LOOP_H

#include "lang/context.h"

void loop_statement(Elab *e, const Ast *ast);
void loop_emit_statement(Elab *e, const Ast *ast);
/* The slice of `stack` (leading axis = iterations) that this iteration sees; `stack` belongs to the
 * region around the loop. */
Node *loop_slice(LoopScope *loop, Node *stack);
/* Opens a loop over `trip` without source text (stacked optimizer updates). */
LoopScope *loop_scope_open(Elab *e, Dim trip, bool repeat);
Node *loop_scope_close(Elab *e, LoopScope *loop);

#endif
