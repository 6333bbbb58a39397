/* check_again: steps that run again, proved to make the same values again. */
#ifndef MDLC_PASSES_CHECK_AGAIN_H
#define MDLC_PASSES_CHECK_AGAIN_H

#include "passes/check_value.h"

/* Which steps of the entry run again, and that Bufs made again are made by those alone. */
bool check_again_open(Check *c);
/* Before a step runs: it is called with what it was lowered with; if it runs again, it is the call
 * that ran first, and every value that it reads is the one that was read then. */
bool check_again_reads(Check *c, const Step *step);
/* When it has run: what it has made again counts as equal to what was made first. */
void check_again_writes(Check *c, const Step *step);
/* The Buf holds the value of another one that a step made again: its present value. */
bool check_again_equal(Check *c, const Step *step, const Buf *buf);

#endif
