/* prelude_names: the list of the prelude's functions, without what they are made of. */
#ifndef MDLC_LANG_PRELUDE_NAMES_H
#define MDLC_LANG_PRELUDE_NAMES_H

/* Every function that can be called today, conversions to element types aside. */
void prelude_each(void (*visit)(void *ctx, const char *name), void *ctx);

#endif
