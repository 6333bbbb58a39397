/* check_kernel: what the text of a kernel says about the storage of its operands. */
#ifndef MDLC_PASSES_CHECK_KERNEL_H
#define MDLC_PASSES_CHECK_KERNEL_H

#include "compiler/kernel.h"

/* The loads and stores of one kernel, in the order in which they run. */
typedef struct KernelSites KernelSites;

KernelSites *kernel_sites(Arena *arena, const Kernel *k);
/* NULL: what the call takes for a result, `out`, may lie in the bytes of the operand `in`, element
 * for element. Otherwise why not. Texts are owned by the arena of the sites. */
const char *kernel_share_fault(const KernelSites *sites, const Call *call, const Buf *in,
                               const Buf *out);
/* NULL: the kernel lets arguments of the call share bytes, none of which is `restrict`. */
const char *kernel_pair_fault(const KernelSites *sites, const Call *call, const Buf *in,
                              const Buf *out);
/* NULL: the step calls the kernel with one Buf of the right kind for each argument, with the loops
 * that stand around it, and says of every Buf that its kernel touches that it does, how, and in
 * which slices. Otherwise the first fault. */
const char *kernel_access_fault(const KernelSites *sites, const Step *step);

#endif
