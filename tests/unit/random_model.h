/* random_model: what the parts of a random model share, see random_text.h. */
#ifndef MDLC_TESTS_RANDOM_MODEL_H
#define MDLC_TESTS_RANDOM_MODEL_H

#include "random_text.h"

/* The value at hand: [N, dim...]. */
typedef struct {
    RandomText *r;
    Text body;
    int rank; /* without the batch */
    int64_t dim[3];
    int n; /* lines so far */
    int indent;
    int depth; /* loops around */
} Chain;

/* h5 = h4 |> TEXT; a `%` in the text is a label of its own. */
void rt_stage(Chain *c, const char *text);

/* The same with a number that the text, a format, asks for. */
void rt_numbered(Chain *c, const char *fmt, int64_t n);

/* A layer that goes along pictures [N, channels, lines, places], or none where it does not fit. */
void rt_picture(Chain *c);

/* A convolution along a sequence [N, channels, places]. */
void rt_along(Chain *c);

#endif
