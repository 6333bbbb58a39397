/* precision: what a train with `precision bf16` or `f16` multiplies in 16 bits. See precision.c. */
#ifndef MDLC_PASSES_PRECISION_H
#define MDLC_PASSES_PRECISION_H

#include "compiler/graph.h"

/* Needs a region at STAGE_BUILT in which products are CONTRACT nodes; gives one of that stage whose
 * products round what they multiply and what they give. */
Region *pass_precision(Graph *g, const Region *region, Elem half);
/* The same for products that differentiation has made, which round what they multiply alone. Needs
 * and gives a region at STAGE_GRAD. */
Region *pass_operands(Graph *g, const Region *region, Elem half);

#endif
