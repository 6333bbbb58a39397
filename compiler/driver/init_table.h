/* init_table: what `mdlc init` makes of a table: the target, its kind, the columns that a net can
 * see, and sizes that suit the number of rows. */
#ifndef MDLC_COMPILER_DRIVER_INIT_TABLE_H
#define MDLC_COMPILER_DRIVER_INIT_TABLE_H

#include "compiler/driver/table.h"
#include "compiler/driver/template.h"

/* From the table of Compile.opt.data. Where *template is NULL the table decides which it is. Says
 * what it chose and what is wrong; gives an exit code. */
int init_table(Compile *c, const Embed **template, Fills *fills);
/* The places of templates of tables, as an example. */
void init_table_examples(Compile *c, Fills *fills);

/* init.c: a place and what stands there. */
void init_fill(Compile *c, Fills *fills, const char *name, const char *value);
void init_fill_int(Compile *c, Fills *fills, const char *name, int64_t value);

#endif
