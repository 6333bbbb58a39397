/* naming: what parameters and layer states are called in files, and `@name`. */
#ifndef MDLC_LANG_NAMING_H
#define MDLC_LANG_NAMING_H

#include "lang/context.h"

/* `@name` before a statement, while the statement runs. */
struct Naming {
    Loc loc;
    const char *text; /* NULL: it is wrong, and that was said */
    bool transpose, says_transpose;
    bool whole, says_whole; /* nothing that is around it stands in front of the text */
    bool inside;            /* it names a call, and with it what is declared there */
    int taken;              /* calls and declarations that it named */
    int turned;             /* tensors that it transposes */
    Naming *up;             /* one around it that transposes too */
    int errors;             /* so far: what is wrong may have named nothing */
};

/* Reads the `@name` of a statement into e->naming (NULL: it has none); gives the one before. */
Naming *naming_open(Elab *e, const Ast *statement);
void naming_close(Elab *e, Naming *before);
/* The error about a `@name` where nothing can be named. */
void naming_refuse(Elab *e, const Ast *ast);
/* Where a model, and what `up` calls or makes by the name `segment`, lives in files. */
void naming_root(const Elab *e, Frame *frame, const char *model);
void naming_call(Elab *e, const Frame *up, Item *item, const char *segment, const char **file,
                 Naming **turn);
/* Names the slot that the body at hand declares as `name`. */
void naming_slot(Elab *e, Slot *slot, const char *name, Loc loc);
/* No two tensors of a file may have one name. */
void naming_finish(Elab *e);

#endif
