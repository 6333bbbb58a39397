/* parts: what is made of each row of a batch by itself is made for some of the rows at a time. See
 * parts.c and docs/decisions/0055-parts-of-a-batch.md. */
#ifndef MDLC_PASSES_PARTS_H
#define MDLC_PASSES_PARTS_H

#include "passes/grad.h"

/* Needs a region at STAGE_BUILT or later; gives one of that stage, in which what is made of inputs
 * of `rows` rows, each by itself, is made in `parts` parts of them, a divisor of `rows`; changes no
 * values. */
Region *pass_parts(Graph *g, const Region *region, int64_t rows, int64_t parts);
/* Is there anything that it would make so? */
bool parts_applies(const Region *region, int64_t rows);

/* The same at STAGE_BUILT for loops that keep the carries of segments of turns alone, by their text
 * or by `plan`: what is made of their stacks, each turn by itself, is made in their bodies where
 * that takes fewer bytes. */
Region *pass_turns(Graph *g, const Region *region, const GradPlan *plan);
/* Are there such loops? */
bool turns_applies(const Region *region, const GradPlan *plan);

#endif
