/* layers: what each layer of a model costs, for `info` and the reports. */
#ifndef MDLC_EMIT_LAYERS_H
#define MDLC_EMIT_LAYERS_H

#include "emit/write.h"

/* The table of md_layer that `info` prints; gives the number of its rows. */
int layers_print(const Emit *e, Text *out);

#endif
