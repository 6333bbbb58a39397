/* ode: differential equations with a fixed number of steps. */
#ifndef MDLC_LANG_ODE_H
#define MDLC_LANG_ODE_H

#include "lang/context.h"

void ode_statement(Elab *e, const Ast *ast);
/* y' = e; in the body of one. */
void ode_derivative(Elab *e, const Ast *ast);

#endif
