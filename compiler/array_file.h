/* array_file: .npy arrays for `mdlc run`. */
#ifndef MDLC_COMPILER_ARRAY_FILE_H
#define MDLC_COMPILER_ARRAY_FILE_H

#include "compiler/base.h"
#include "compiler/type.h"

/* Reads all of the file as doubles. On failure returns false with one message in *message. */
bool array_file_read(Arena *arena, const char *path, Type *type, double **data,
                     const char **message);

#endif
