/* embed: texts that are part of the compiler: the standard library and the runtime pieces.
 *
 * The tables are generated at build time by runtime/embed.c from the .mdl files of lang/ and the
 * files of runtime/; one string a line, because C11 promises no more than 4095 characters in a
 * literal. */
#ifndef MDLC_COMPILER_EMBED_H
#define MDLC_COMPILER_EMBED_H

#include <stddef.h>

typedef struct {
    const char *name;         /* path from the root: "lang/nn.mdl", "runtime/csv.c" */
    const char *const *lines; /* without the line ends */
    size_t count;
} Embed;

extern const Embed embeds[]; /* sorted by name */
extern const size_t nembeds;

#endif
