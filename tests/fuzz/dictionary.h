/* dictionary: every word that means something to the compiler. */
#ifndef MDLC_TESTS_DICTIONARY_H
#define MDLC_TESTS_DICTIONARY_H

#include "mutate.h"

/* Keywords, operators and units of the lexer, ops and their attributes, element types, names of the
 * library; each once, without NUL bytes, in `arena`. */
Words dictionary_make(Arena *arena);

#endif
