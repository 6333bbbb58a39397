/* unused: lines of the runtime that define what nobody uses. */
#ifndef MDLC_EMIT_UNUSED_H
#define MDLC_EMIT_UNUSED_H

#include "compiler/base.h"
#include "compiler/embed.h"

/* A macro, or an enumerator with its value, among others: lines [from, end) of its file. */
typedef struct {
    const char *name; /* not terminated */
    size_t length;
    size_t from, end;
    bool used;
} Part;

typedef VEC(Part) PartList;

/* The parts in lines [from, end). Each can be left out without a change of the others. */
void unused_parts(Arena *arena, const Embed *file, size_t from, size_t end, PartList *parts);
/* Which of the lines [from, end) fall away: those of parts that are not used, and conditions around
 * nothing else. Indexed by the number of the line less `from`. */
bool *unused_lines(Arena *arena, const Embed *file, size_t from, size_t end, const PartList *parts);

#endif
