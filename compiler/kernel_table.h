/* kernel_table: which kernels of a program are one. */
#ifndef MDLC_COMPILER_KERNEL_TABLE_H
#define MDLC_COMPILER_KERNEL_TABLE_H

#include "compiler/kernel.h"

typedef struct KernelTable KernelTable;

KernelTable *kernel_table_new(Arena *arena);
/* The kernel whose text is that of the finished `k`, names, layers, draw sites and loops of the
 * call aside; *call is then written for it. Else `k` itself, which is found from now on. */
Kernel *kernel_table_put(KernelTable *t, Kernel *k, Call *call);

#endif
