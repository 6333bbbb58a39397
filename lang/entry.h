/* entry: entry points that are no trains: `entry` items, and what all kinds share. */
#ifndef MDLC_LANG_ENTRY_H
#define MDLC_LANG_ENTRY_H

#include "lang/context.h"

void entry_item(Elab *e, const Ast *ast);

/* Shared by entries, trains and evaluations. */
EntryScope *entry_open(Elab *e, EntryKind kind, const char *name, const Ast *ast);
void entry_close(Elab *e);
/* Inputs for the parameters of an entry or train; false after an error. */
bool entry_inputs(Elab *e, const Ast *params);
/* `at B = 1`. */
bool entry_rebind(Elab *e, const Ast *at);
/* The data set's fields with B rows in front. */
bool entry_data(Elab *e, const Ast *on);
void entry_out(Elab *e, OutRole role, const char *name, Slot *slot, Node *node, Loc loc);
Slot *entry_input_slot(Elab *e, const char *name, Type type, Loc loc);
/* What ends the call with a status: loops that met their maximum. */
void entry_limits(Elab *e);
/* Writes of states, parameters and the call counter, and entry_limits. */
void entry_writes(Elab *e);

#endif
