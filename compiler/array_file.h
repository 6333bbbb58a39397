/* array_file: .npy arrays for `mdlc run`. */
#ifndef MDLC_COMPILER_ARRAY_FILE_H
#define MDLC_COMPILER_ARRAY_FILE_H

#include "compiler/base.h"
#include "compiler/eval.h"

/* Reads all of the file as elements of one type: integers exact, floats as doubles. On failure, or
 * when an element does not fit, returns false with one message in *message. */
bool array_file_read(Arena *arena, const char *path, Elem elem, Type *type, Num **data,
                     const char **message);

#endif
