/* check_ends: what check.c asks of loops that end by themselves. */
#ifndef MDLC_PASSES_CHECK_ENDS_H
#define MDLC_PASSES_CHECK_ENDS_H

#include "passes/check_value.h"

/* Before its first turn; each turn, and when it ends; and behind it. False: a fault. */
bool check_ends_open(Check *c, const Step *loop);
bool check_ends_turn(Check *c, const Step *loop);
bool check_ends_close(Check *c, const Step *loop);
/* A read of a stack that was written in part reads of that part. */
bool check_ends_read(Check *c, const Step *step, const Access *access);
/* What is left of the Buf is whole. */
bool check_ends_whole(Check *c, const Buf *buf);
/* Runs a STEP_CLEAR. */
bool check_clear(Check *c, const Step *clear);

#endif
