/* check_aside: loops whose turns run side by side on threads. */
#ifndef MDLC_PASSES_CHECK_ASIDE_H
#define MDLC_PASSES_CHECK_ASIDE_H

#include "passes/check_value.h"

/* Before the first turn: no turn touches what another one writes, and the memory of further threads
 * is theirs; *token: what it holds. True of loops whose turns follow one another. */
bool check_aside_open(Check *c, const Step *loop, int64_t *token);
/* Behind the last one: it is still theirs. */
bool check_aside_close(Check *c, const Step *loop, int64_t token);

#endif
