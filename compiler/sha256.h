/* sha256: names a source text in emitted files and reports. */
#ifndef MDLC_COMPILER_SHA256_H
#define MDLC_COMPILER_SHA256_H

#include <stddef.h>

enum { SHA256_TEXT = 65 }; /* 64 hexadecimal digits and the end */

void sha256_text(const void *data, size_t bytes, char text[SHA256_TEXT]);

#endif
