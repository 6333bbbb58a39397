/* model_copy: second parameter sets of a model, `state target = q;`. */
#ifndef MDLC_LANG_MODEL_COPY_H
#define MDLC_LANG_MODEL_COPY_H

#include "lang/context.h"

/* The model that the item, a state, begins as, or NULL. */
Item *model_copy_of(const Elab *e, const Item *item);
/* Is the item a state that begins as a model? */
bool model_copy_is(const Elab *e, const Item *item);
/* What a call of it calls; NULL after an error. All its parameters exist then. */
Instance *model_copy_instance(Elab *e, Item *item, Loc loc);
/* Are all slots of `head`, a model or a copy of one, there? False after an error. */
bool model_copy_ensure(Elab *e, Item *head, Loc loc);
/* target.fc1.weight -> q.fc1.weight; NULL if the path is in no copy. */
const char *model_copy_original(Elab *e, const char *path);
/* The parameter at `path` in a copy of the model that owns `p`. */
Parameter *model_copy_parameter(Elab *e, Parameter *p, const char *path);
/* The same of a layer's state. */
void model_copy_state(Elab *e, Slot *slot, const char *path);
/* `target <- e;` and `net <- e;`: e is elaborated for each parameter, where the names of models and
 * copies stand for their parameter of the same name. `path` names a model, a copy or a part. */
void model_copy_assign(Elab *e, Item *head, const char *path, const Ast *target, const Ast *right);
/* The value of `path` in such an expression; NULL: there is none at hand. */
const Value *model_copy_each(Elab *e, const Ast *path);
/* `ema avg = 0.999;` and its part of the update, once the next parameters are known. */
void model_copy_ema_clause(Elab *e, Training *t, const Ast *clause);
void model_copy_ema(Elab *e, Training *t);

#endif
