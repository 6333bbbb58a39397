/* kernel_walk: runs the loops of a kernel and says which element it touches when. No values: an
 * index that is read at run time is a number made of the place in the loops. */
#ifndef MDLC_TESTS_KERNEL_WALK_H
#define MDLC_TESTS_KERNEL_WALK_H

#include "compiler/kernel.h"

/* `place` is an element of what the call passes, or -1: all of them. */
typedef void (*KernelTouch)(void *ctx, const Buf *buf, int64_t place, bool store);

/* `backward`: all loops but folds run from their end. Of a product, what runtime/tile.h allows:
 * what C begins as is loaded, C is stored, the epilogue runs over blocks, A and B are loaded
 * again. */
void kernel_walk(const Kernel *k, const Call *call, bool backward, KernelTouch touch, void *ctx);
/* True when, with `out` in the bytes of `in`, some load of `in` finds what a store of `out` left:
 * found by running the loops forward and backward. */
bool kernel_clobbers(const Kernel *k, const Call *call, const Buf *in, const Buf *out);

#endif
