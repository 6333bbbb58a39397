/* draw: random numbers as a pure function of (seed, step or call, site, loop indices). */
#ifndef MDLC_LANG_DRAW_H
#define MDLC_LANG_DRAW_H

#include "lang/context.h"

/* Raw uniform or normal numbers of the build's float type at the next site of the body at hand. */
Node *draw_node(Elab *e, Loc loc, Dist dist, int rank, const Dim *dim);
/* Whether b - a is more than an f32 holds, though both are finite: then a number of a..b is
 * u * b + (1 - u) * a and not a + u * (b - a). */
bool draw_is_wide(double a, double b);

#endif
