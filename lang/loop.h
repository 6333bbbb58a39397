/* loop: repeat, scan and while, and what an ode has of them. */
#ifndef MDLC_LANG_LOOP_H
#define MDLC_LANG_LOOP_H

#include "lang/context.h"

typedef struct {
    const char *name;
    Loc loc;
    const Value *start;
    int number;
    const Ast *range; /* that its values keep, or NULL */
    ScopeName *outer; /* `carry x`: the name that goes on */
} CarryVar;
typedef VEC(CarryVar) CarryVars;

/* The names of a loop's `carry` and what they start from; false after an error. */
bool loop_read_carries(Elab *e, const Ast *carry, CarryVars *vars);
/* Behind the loop the name has its final value. */
void loop_bind_result(Elab *e, const CarryVar *var, const Value *v);
/* The error of a loop in too many others. */
void loop_too_deep(Elab *e, const Ast *ast);
void loop_statement(Elab *e, const Ast *ast);
void loop_emit_statement(Elab *e, const Ast *ast);
/* Values like `v`, one an iteration, stacked in front. */
const Value *loop_in_front(Elab *e, const Value *v, Dim trip, Node *stack);
/* The slice of `stack` (leading axis = iterations) that this iteration sees; `stack` belongs to the
 * region around the loop. */
Node *loop_slice(LoopScope *loop, Node *stack);
/* Opens a loop over `trip` without source text (stacked optimizer updates). */
LoopScope *loop_scope_open(Elab *e, Dim trip, bool repeat);
Node *loop_scope_close(Elab *e, LoopScope *loop);
/* The two halves of loop_scope_close, for who runs the body in another way: the LOOP, and what is
 * known behind it. `final`: the last values of the carries, NULL: those of the LOOP itself. */
Node *loop_scope_body(Elab *e, LoopScope *loop);
void loop_scope_after(Elab *e, LoopScope *loop, Node *node, Node *const *final);
/* Notes for the entry that a loop met its maximum where `over`, of the region at hand, is true. */
void loop_note_over(Elab *e, Node *over, Loc loc);
/* Can a status reach the caller from here? Bodies that are looked at by themselves give none, and
 * that is an error; `what` begins its message. */
bool loop_gives_status(Elab *e, Loc loc, const char *what);

#endif
