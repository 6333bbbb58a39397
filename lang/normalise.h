/* normalise: fields whose constants are computed from the rows to train on. */
#ifndef MDLC_LANG_NORMALISE_H
#define MDLC_LANG_NORMALISE_H

#include "lang/context.h"

/* Takes `standardize(e)` or `minmax(e)` off the expression of a field: notes it in the field and
 * gives e; any other expression is given back. NULL after an error. */
const Ast *normalise_take(Elab *e, DataField *f, const Ast *expr);
/* The states of the constants of a field that has such a rule; the field is complete. */
void normalise_states(Elab *e, const DataSet *set, DataField *f);
/* The field's rows, `rows` in front, with the constants applied. */
Node *normalise_rows(Elab *e, const DataField *f, Node *rows);
/* `digits.x.mean`: NULL when the path begins with no data set. */
const Value *normalise_constant(Elab *e, const Ast *ast);

#endif
