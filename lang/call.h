/* call: ops, layers, models and instances are inlined at each call. */
#ifndef MDLC_LANG_CALL_H
#define MDLC_LANG_CALL_H

#include "lang/context.h"

/* `piped` is the first argument of a stage of `|>`, or NULL. */
const Value *call_eval(Elab *e, const Ast *call, const Value *piped);
/* A stage behind one that has an error: of an op or layer the numbers and words are looked at. */
const Value *call_of_poison(Elab *e, const Ast *call, const Value *piped);
/* `f = new layer(...)`. */
const Value *call_new(Elab *e, const Ast *ast, const char *name);
/* Calls item with values: (p, g) of an optimizer and its written arguments. */
typedef struct {
    const char *name; /* NULL: positional */
    Loc loc;
    const Value *value;
    const Ast *ast; /* not yet evaluated, or NULL */
} Argument;
typedef VEC(Argument) Arguments;
enum { CALL_PARAMS = 64 };

/* The written arguments, a piped one in front; then their values (false after an error). */
void call_arguments(Elab *e, const Ast *args, const Value *piped, Loc loc, Arguments *out);
bool call_evaluate(Elab *e, Arguments *args);
/* Which argument each parameter gets; `only_numbers` (new): positional ones go to int, real and
 * bool parameters. */
bool call_match(Elab *e, const Item *item, const Arguments *args, bool only_numbers,
                const Argument **out);
/* Is a parameter of this type known when compiling: int, int2, int3, real, bool, text? */
bool call_is_setting(const Ast *type);
/* Says what is wrong with the numbers and words of a call that is not made for another reason. */
void call_check_settings(Elab *e, const Item *item, const Arguments *args);
int call_parameter(const Ast *params, const char *name); /* its place, or -1 */
/* An op along the last axis of its first argument, which takes `axis = n` for another one. */
bool call_works_along(const Item *item);
/* Enters the body of `item` with its parameters bound: a new scope and frame are in force. False
 * after an error (nothing to leave then). */
bool call_enter(Elab *e, Item *item, Arguments *args, Loc loc, Frame *frame);
void call_leave(Elab *e, Frame *frame, Scope *before);
/* The error about a name that cannot be called. */
const Value *call_unknown(Elab *e, const Ast *callee);
/* Is every argument of a call known from the signature alone? */
bool call_is_concrete(const Item *item);
/* One call of a model, op or layer with inputs of the declared types, outside of all entries; false
 * after an error. `dropped`: to see whether it is right, not for what it makes. */
bool call_alone(Elab *e, Item *item, Loc loc, bool train, bool dropped);
/* One parameter set of a model, made if no entry has made it yet: for paths into it. */
bool call_ensure_model(Elab *e, Item *model, Loc loc);
/* Adds a path segment to the frame; an error if it is taken. */
bool call_segment(Elab *e, Frame *frame, const char *name, Loc loc, const char *what);
bool call_is_callable(const Item *item);

#endif
