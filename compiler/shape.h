/* shape: the type of a node from its operands and attributes (column `shape` of the op table). */
#ifndef MDLC_COMPILER_SHAPE_H
#define MDLC_COMPILER_SHAPE_H

#include "compiler/graph.h"

/* `given` is the type the caller states, for the ops whose rows say "type". BUGs on misuse: the
 * elaborator has turned every user mistake into a message before. */
Type shape_infer(OpCode op, Node *const *in, int nin, const Attr *attr, const Region *body,
                 Type given);
/* The same, where misuse is the user's: sets `fault` to what is wrong, or to NULL. */
Type shape_check(OpCode op, Node *const *in, int nin, const Attr *attr, const Region *body,
                 Type given, const char **fault);

#endif
