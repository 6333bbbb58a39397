/* stmt: statements of bodies. */
#ifndef MDLC_LANG_STMT_H
#define MDLC_LANG_STMT_H

#include "lang/context.h"

void stmt_block(Elab *e, const Ast *block);
void stmt_one(Elab *e, const Ast *ast);
/* Binds a new name in the current scope; an error if it has a value already. */
bool stmt_bind(Elab *e, const char *name, Loc loc, const Value *v);
/* Names what `ast` would have named, as poison. */
void stmt_poison(Elab *e, const Ast *ast);
/* Attributes: known ones are hints, others warn. */
void stmt_attributes(Elab *e, const Ast *ast);
bool stmt_has_attribute(const Ast *ast, const char *name);
/* Attr.checkpoint of the loop that the statement makes. */
int64_t stmt_checkpoint(Elab *e, const Ast *ast, bool ends_itself);
/* Brings `next` to the type and shape of what it replaces, `name`; NULL after an error. */
const Value *stmt_like(Elab *e, const Value *old, const Value *next, const char *name, Loc loc);

#endif
