/* version: of the compiler, in messages and in what it emits. */
#ifndef MDLC_COMPILER_VERSION_H
#define MDLC_COMPILER_VERSION_H

#define MDLC_VERSION "0.1.0"

#endif
