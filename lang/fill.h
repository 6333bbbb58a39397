/* fill: trains that make the rows of their own rings. */
#ifndef MDLC_LANG_FILL_H
#define MDLC_LANG_FILL_H

#include "lang/context.h"

/* Does the train at hand sample a ring to which it pushes, rows that do not come from there? */
bool fill_wanted(Elab *e);
/* The entry that makes its pushes while rows are missing. `train`: its scope, closed or not. */
void fill_entry(Elab *e, const Ast *ast, Entry *entry, const EntryScope *train);

#endif
