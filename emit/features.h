/* features: what of the runtime a model has a use for (runtime files mark what is for each). */
#ifndef MDLC_EMIT_FEATURES_H
#define MDLC_EMIT_FEATURES_H

#include "emit/pieces.h"
#include "emit/write.h"

/* Pieces for a model; whole ones where the command line asks for them. */
Pieces *features_pieces(const Emit *e);

#endif
