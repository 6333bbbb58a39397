/* ode: differential equations. */
#ifndef MDLC_LANG_ODE_H
#define MDLC_LANG_ODE_H

#include "lang/context.h"

void ode_statement(Elab *e, const Ast *ast);
/* y' = e; in the body of one. */
void ode_derivative(Elab *e, const Ast *ast);
/* A time or a tolerance, `what` in messages: a scalar of the float type; NULL after an error. */
Node *ode_scalar(Elab *e, const Ast *ast, const char *what);

#endif
