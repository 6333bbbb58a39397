/* part: layers of a model, called from outside of it: vae.dec(z). */
#ifndef MDLC_LANG_PART_H
#define MDLC_LANG_PART_H

#include "lang/call.h"

/* Notes how a model calls the layer whose body was just entered, for calls from outside. */
void part_note(Elab *e, const Item *item, const Frame *frame);
/* What `net.dec` or `net.block[2].up`, the callee of `call`, stands for: an instance that has the
 * numbers and words that the model gave its layer. `args` are the written arguments. NULL with
 * `*is_part` false: the callee is no part of a model, and nothing was said; NULL with it true: a
 * message says why it cannot be called. */
Instance *part_find(Elab *e, const Ast *call, const Arguments *args, bool *is_part);
/* The instance of a part that the body at hand is called through, picked from a `repeat`; NULL. */
const Instance *part_picked(const Frame *frame);
/* `node`, which begins with the axes of the loops that the part stands in, in its iteration. */
Node *part_pick(Elab *e, const Instance *part, Node *node);

#endif
