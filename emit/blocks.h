/* blocks: loops that the threads of a block of a graphics processor share, inside of one iteration
 * of the loop that is launched. */
#ifndef MDLC_EMIT_BLOCKS_H
#define MDLC_EMIT_BLOCKS_H

#include "emit/cstyle.h"

/* All threads have come here, and see what the others have written. Nothing where none share. */
void block_meet(Style *s);

/* Opens the innermost loop of a FOR or FOLD: "for (int64_t j = first; j < end; j++) {", or every
 * so many of them for each thread where those of the block share it. Gives how many share, which
 * is for block_shared_end when the loop is closed. */
int block_loop(Style *s, const Stmt *st, const char *name, const char *first, const char *end);
void block_loop_end(Style *s, int shared);

/* What the threads have of a fold becomes the fold, in all of them. */
void block_fold(Style *s, const Stmt *st, const char *const *place, int shared);

#endif
