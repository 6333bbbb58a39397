/* params: parameters, states and their paths. */
#ifndef MDLC_LANG_PARAMS_H
#define MDLC_LANG_PARAMS_H

#include "lang/context.h"

/* A state as one body sees it: its slot, and the loops that stack it (outermost first). */
typedef struct {
    Slot *slot;
    int rank, nloop;
    Dim dim[MD_RANK];
    LoopScope *loop[MD_RANK];
    const Instance *part; /* the iteration of loops further outside that it belongs to, or NULL */
} StateUse;

void params_start(Elab *e);
/* `param w: [n] ~ ...;` in the body at hand. */
void params_declare(Elab *e, const Ast *param);
/* `state m: [n] = 0;` of a layer or model. */
void params_declare_state(Elab *e, const Ast *state);
const Value *params_state_value(Elab *e, const StateUse *use);
/* The value for the next call or iteration, set at `loc`. */
void params_state_write(Elab *e, const StateUse *use, const Value *next, Loc loc);
/* Carries and stacks of the states that a loop body used; `node` is the finished LOOP. */
void params_loop_closing(LoopScope *loop);
void params_loop_closed(Elab *e, LoopScope *loop, Node *node, Node *const *final);
/* May a tensor be stored once for each iteration of the loops? Says so if not. */
bool params_stackable(Elab *e, Loc loc, LoopScope *const *loop, int nloop, int rank,
                      const Dim *dim);
/* The slot's slice in the iteration at hand of the loops that stack it, outermost first. */
Node *params_slices(Elab *e, Slot *slot, LoopScope *const *loop, int nloop);
/* The error about a state that has no type and is no copy of a model. */
void params_untyped_state(Elab *e, const Ast *state);
/* A state declared at the top level; NULL after an error. */
const StateUse *params_top_state(Elab *e, Item *item, Loc loc);
/* net.fc1.weight, or a longer path of the model. */
const Value *params_by_path(Elab *e, Item *model, const char *path, Loc loc);
const Value *params_of_instance(Elab *e, const Instance *instance, const char *field, Loc loc);
/* Hint: the path of a parameter, or the beginning of one, that is nearest to `path`. */
void params_hint(Elab *e, const char *path);
Parameter *params_find(const Elab *e, const char *path);
void params_add(Elab *e, Parameter *p);
/* Is `path` `prefix` or below it? */
bool params_under(const char *path, const char *prefix);
/* A parameter with its stacking axes. */
const Value *params_whole(Elab *e, const Parameter *p);
/* The name in files: without the model if the file has only one. */
const char *params_file_name(Elab *e, const char *path);
/* The parameter or layer state at a whole path; NULL: there is none. */
const Value *params_at(Elab *e, const char *path);
/* `path <- next;`, with the places of both sides. */
void params_assign(Elab *e, const char *path, const Value *next, Loc loc, Loc right);
/* What a slot holds after this call; false and an error if that is set already. */
bool params_write(Elab *e, Slot *slot, Node *next, Loc loc);
/* Initial value of a slot that is no parameter; NULL: it has none yet. */
Node *params_initial(const Elab *e, const Slot *slot);
void params_set_initial(Elab *e, Slot *slot, Node *node);
/* Orders all slots into the module and completes the INIT entry. */
void params_finish(Elab *e);

#endif
