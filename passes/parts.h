/* parts: what is made of each row of a batch by itself is made for some of the rows at a time. See
 * parts.c and docs/decisions/0055-parts-of-a-batch.md. */
#ifndef MDLC_PASSES_PARTS_H
#define MDLC_PASSES_PARTS_H

#include "passes/grad.h"

typedef struct {
    int64_t rows, parts; /* of inputs; a divisor of them */
    bool light;          /* they end in front of products whose weights are large beside values */
} PartsPlan;

/* Needs a region at STAGE_BUILT or later; gives one of that stage, in which what is made of inputs
 * of so many rows, each by itself, is made in so many parts of them; changes no values. */
Region *pass_parts(Graph *g, const Region *region, PartsPlan plan);
/* Is there anything that it would make so, and if light, other than it would without? */
bool parts_applies(const Region *region, PartsPlan plan);

/* The same at STAGE_BUILT for loops that keep the carries of segments of turns alone, by their text
 * or by `plan`: what is made of their stacks, each turn by itself, is made in their bodies where
 * that takes fewer bytes. */
Region *pass_turns(Graph *g, const Region *region, const GradPlan *plan);
/* Are there such loops? */
bool turns_applies(const Region *region, const GradPlan *plan);

#endif
