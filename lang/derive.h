/* derive: derivatives in the source: grad, vjp, stop_gradient. */
#ifndef MDLC_LANG_DERIVE_H
#define MDLC_LANG_DERIVE_H

#include "lang/context.h"

const Value *derive_call(Elab *e, const char *name, const Value *const *v, int n, Loc loc);
/* The nodes of a value's region to which a derivative flows back from it. */
/* Is the value made of a derivative? */
bool derive_used(Elab *e, const Node *value);
typedef struct {
    Region *region;
    int count;
    bool *mark; /* by node id */
} Upstream;
Upstream derive_upstream(Elab *e, Node *value);
/* `point` is a node of that region or of an enclosing one. */
bool upstream_has(Elab *e, const Upstream *u, Node *point);

#endif
