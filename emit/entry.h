/* entry: the functions of an emitted file that run the steps of an entry. */
#ifndef MDLC_EMIT_ENTRY_H
#define MDLC_EMIT_ENTRY_H

#include "emit/printer.h"
#include "emit/sections.h"
#include "emit/write.h"

void entry_tables(const Emit *e, Text *out); /* compile-time numbers */
/* Functions that entries share: range checks of inputs. */
void entry_helpers(const Emit *e, Text *out);
/* A function of the API: init, train, evaluation, entry; in front of it what it calls. */
void entry_function(const Emit *e, const Printer *printer, const ProgramEntry *entry,
                    const Sections *sections, Text *out);
/* static void NAME(const void *raw, void *field), for the data reader of `main`. */
void entry_load(const Emit *e, const Printer *printer, const ProgramEntry *entry, Text *out);
/* NAME_eval_add and NAME_eval_end of the API: what sums over batches come to. */
void entry_eval_end(const Emit *e, const Printer *printer, const ProgramEntry *entry, Text *out);

#endif
