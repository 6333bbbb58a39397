/* template: texts of models with places to fill, from share/templates. */
#ifndef MDLC_COMPILER_DRIVER_TEMPLATE_H
#define MDLC_COMPILER_DRIVER_TEMPLATE_H

#include "compiler/compile.h"
#include "compiler/embed.h"

#include <stdio.h>

typedef struct {
    const char *name;  /* of a place: {{name}} */
    const char *value; /* several lines too; "": a line with nothing else goes away */
} Fill;
typedef VEC(Fill) Fills;

const Embed *template_find(const char *name); /* NULL: there is none */
/* "classifier, images, ..." */
void template_names(Text *out);
/* A line for each: its name, and what its first line says. */
void template_list(FILE *out);
/* The text with every place filled, in canonical layout. */
const char *template_fill(Arena *arena, const Embed *template, const Fills *fills);
/* The bytes that the program of a text declares. A text that does not compile is a fault. */
int64_t template_bytes(const char *text);

#endif
