/* flags: what a C compiler is told about an emitted program. The one place for it: header comments
 * (emit/module.c) and `mdlc flags` print the same text. */
#ifndef MDLC_COMPILER_FLAGS_H
#define MDLC_COMPILER_FLAGS_H

#include "compiler/base.h"

/* Compilers that take the same options. */
typedef enum { CC_GNU, CC_TCC, CC_NVCC } CcFamily;

/* What a program is built for, by the name after --for=. */
typedef struct Machine {
    const char *name;
    const char *gnu;  /* option of gcc and clang; "": none */
    const char *nvcc; /* NULL: this is no machine of nvcc, nor of tcc */
    bool pairs;       /* it multiplies bfloat16 in pairs, faster than floats */
} Machine;

extern const Machine machines[]; /* the first is this machine, the second any */
extern const int nmachines;

/* Names for messages: "native, generic, ...". */
void flags_machine_names(Text *out);
extern const char flags_compiler_names[];

const Machine *flags_machine(const char *name); /* NULL: there is none of that name */
/* Does it multiply bfloat16 in pairs? Of this machine its processor is asked; NULL: any machine. */
bool flags_pairs(const Machine *machine);
/* The family of a compiler by its name: "clang", "/usr/bin/aarch64-linux-gnu-gcc-12". False: it is
 * none that is known. */
bool flags_family(const char *compiler, CcFamily *family);
/* Does the family build for that machine? */
bool flags_fit(CcFamily family, const Machine *machine);

/* "-O3 -march=native ...", and "-lm" with what stands before it. */
void flags_compile(Text *out, CcFamily family, const Machine *machine);
void flags_libraries(Text *out, bool openblas);

#endif
