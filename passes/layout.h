/* layout: channels lie last from one convolution to the next. */
#ifndef MDLC_PASSES_LAYOUT_H
#define MDLC_PASSES_LAYOUT_H

#include "compiler/graph.h"

/* Needs a region at STAGE_OPTIMISED; gives one with the same values, seen through permutes. */
Region *pass_layout(Graph *g, const Region *region);
/* It has something to do there. */
bool layout_applies(const Region *region);

#endif
