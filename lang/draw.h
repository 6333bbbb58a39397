/* draw: random numbers as a pure function of (seed, step or call, site, loop indices). */
#ifndef MDLC_LANG_DRAW_H
#define MDLC_LANG_DRAW_H

#include "lang/context.h"

/* Raw uniform or normal numbers of the build's float type at the next site of the body at hand. */
Node *draw_node(Elab *e, Loc loc, Dist dist, int rank, const Dim *dim);

#endif
