/* init_presets: default arguments of the initial distributions, without what they are made of. */
#ifndef MDLC_LANG_INIT_PRESETS_H
#define MDLC_LANG_INIT_PRESETS_H

void init_each_preset(void (*visit)(void *ctx, const char *name, const char *param, double preset),
                      void *ctx);

#endif
