/* einsum: products of whole tensors as NumPy spells them. */
#ifndef MDLC_LANG_EINSUM_H
#define MDLC_LANG_EINSUM_H

#include "lang/prelude_several.h"

/* The formula is the first argument. */
const Value *einsum_call(Elab *e, const Several *s, Loc loc);
const Value *einsum_matmul(Elab *e, const Several *s, Loc loc);

#endif
