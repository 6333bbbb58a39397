/* ode_adapt: an `ode` whose steps go by an estimate of their error. */
#ifndef MDLC_LANG_ODE_ADAPT_H
#define MDLC_LANG_ODE_ADAPT_H

#include "lang/ode_walk.h"

/* `tsit5(rtol = r, atol = a, max = n)`; false after an error. */
bool adapt_read(Elab *e, const Ast *ast, const Method *m, Control *c);
/* May the body stand there? It may run once more than the attempts, so it has no draws and writes
 * no states. */
bool adapt_field(Elab *e, const Ast *ast, const LoopScope *body, const Field *field, bool draws);
/* The size of the first attempt of all, and the rest of the controller. */
void adapt_begin(const Walk *a, Node *from, Node *to, Turn *first);
/* One attempt on the way to `to`: from the carries to their next values. */
void adapt_attempt(const Walk *a, Node *to, const Turn *now, Turn *next);

#endif
