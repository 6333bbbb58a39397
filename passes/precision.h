/* precision: what a train with `precision bf16` or `f16` multiplies in 16 bits. See precision.c. */
#ifndef MDLC_PASSES_PRECISION_H
#define MDLC_PASSES_PRECISION_H

#include "compiler/program.h"

/* Which products of such a region (ROUND_PRODUCTS and so on, 0: none) pay in 16 bits on a machine
 * with such times, in pairs or no faster than floats. */
int64_t precision_pays(const Region *region, Elem half, const MachineTimes *machine);
/* Has the region no roundings of results yet? One that was dumped behind this pass has them, and
 * what differentiation has made of it is not rounded as what stands in front of that. */
bool precision_applies(const Region *region);
/* Needs a region at STAGE_BUILT in which products are CONTRACT nodes; gives one of that stage whose
 * products round what they multiply and what they give. */
Region *pass_precision(Graph *g, const Region *region, Elem half, int64_t rounds);
/* The same for products that differentiation has made, which round what they multiply alone. Needs
 * and gives a region at STAGE_GRAD. */
Region *pass_operands(Graph *g, const Region *region, Elem half, int64_t rounds);

#endif
