/* ode_adapt: an `ode` whose steps go by an estimate of their error. */
#ifndef MDLC_LANG_ODE_ADAPT_H
#define MDLC_LANG_ODE_ADAPT_H

#include "lang/ode_step.h"

typedef struct {
    Node *rtol, *atol;
    Node *first; /* NULL: chosen */
    int64_t max; /* attempts */
    double part[3]; /* pcoeff, icoeff, dcoeff */
} Control;

/* `tsit5(rtol = r, atol = a, max = n)`; false after an error. */
bool adapt_read(Elab *e, const Ast *ast, const Method *m, Control *c);
/* May the body stand there? It may run once more than the attempts, so it has no draws and writes
 * no states. */
bool adapt_field(Elab *e, const Ast *ast, const LoopScope *body, const Field *field, bool draws);
/* end: the carries at the time `to`. `rest` as for field_slopes. */
void adapt_solve(Elab *e, const Ast *ast, const Method *m, const Control *c, const Field *field,
                 Node *from, Node *to, Node *const *start, Node **rest, Node **end);

#endif
