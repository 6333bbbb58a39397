/* made: data sets without a file, `file f = synthetic(1000);`. */
#ifndef MDLC_LANG_MADE_H
#define MDLC_LANG_MADE_H

#include "lang/context.h"

/* Is it `synthetic(...)`? */
bool made_is(const Ast *expr);
/* Takes rows and seed from `synthetic(1000, seed = 3)`. */
bool made_file(Elab *e, DataFile *file, const Ast *call);
/* Opens the entry that makes a row of the field, with `f.row` and draws by row in scope. */
void made_open(Elab *e, const DataSet *set, DataField *f, const Ast *ast, int rank,
               const Dim *dim);

#endif
