/* features: what of the runtime a model has a use for (runtime files mark what is for each). */
#ifndef MDLC_EMIT_FEATURES_H
#define MDLC_EMIT_FEATURES_H

#include "compiler/names.h"
#include "emit/write.h"

/* Adds the names that variant.h asks for of files and entries. */
void features_add(const Emit *e, NameList *features);

/* Do the tables of the program have the fields that are for this feature? With a whole runtime they
 * have all. */
bool features_has(const Emit *e, const char *name);

#endif
