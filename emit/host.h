/* host: the tables and adapters by which the generic `main` of the runtime drives a model. */
#ifndef MDLC_EMIT_HOST_H
#define MDLC_EMIT_HOST_H

#include "emit/printer.h"
#include "emit/write.h"

/* Sizes that the runtime must know before its first line. */
void host_sizes(const Emit *e, Text *out);
/* Kernels of rows and sums, adapters, the descriptor, main(). Needs runtime/main.h before. */
void host_print(const Emit *e, const Printer *printer, Text *out);
const char *host_dtype(Elem elem); /* MD_F32 */

/* Is it an entry of the source that stands in a phase? Does a run meet one, or rows of a ring? */
bool host_is_pass(const Program *p, const Entry *entry);
bool host_has_passes(const Program *p);
/* Has a train a scale of its loss? */
bool host_has_scaled(const Program *p);
/* Is a slot a scalar of an entry that --set gives a value? */
bool host_is_hyper(const Slot *slot, const Entry *entry);

#endif
