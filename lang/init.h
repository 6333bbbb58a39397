/* init: initial values: draws of parameters, and constants moved to the INIT entry. */
#ifndef MDLC_LANG_INIT_H
#define MDLC_LANG_INIT_H

#include "lang/context.h"

/* `~ normal(0, 0.02)`: a node of the INIT region. `written` is the shape in the layer, `type` the
 * whole with stacking axes. NULL after an error. */
Node *init_draw(Elab *e, const Ast *call, Type type, int rank, const Dim *written,
                const char *path);
/* `= e`: e is evaluated here and its nodes are made again in the INIT region. */
Node *init_value(Elab *e, const Ast *expr, Type type);
/* Makes `node` again in `region`; NULL if it depends on an input, a parameter or a draw (parameters
 * are allowed with `slots`). */
Node *init_transplant(Elab *e, Node *node, Region *region, bool slots);

#endif
