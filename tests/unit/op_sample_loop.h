/* op_sample_loop: LOOP nodes for op_sample. */
#ifndef MDLC_TESTS_OP_SAMPLE_LOOP_H
#define MDLC_TESTS_OP_SAMPLE_LOOP_H

#include "op_sample.h"

/* A result of a loop over fresh slots, or NULL when there is no variant of that number. */
Node *sample_loop_build(Sample *s, int variant);

#endif
