/* prelude_several: functions of the prelude with any number of tensors. */
#ifndef MDLC_LANG_PRELUDE_SEVERAL_H
#define MDLC_LANG_PRELUDE_SEVERAL_H

#include "lang/call.h"

enum { MOST_ARGUMENTS = 64 };

typedef struct {
    const Value *v[MOST_ARGUMENTS];
    Loc at[MOST_ARGUMENTS];
    int n;
    const Value *axis;
    Loc axis_at;
} Several;

/* An axis of a tensor of that rank, `preset` where arg is NULL; negative ones count from the end.
 * False after an error. */
bool prelude_axis(Elab *e, const char *name, Loc loc, const Value *arg, Loc at, int rank,
                  int preset, int *axis);
/* The tensors and the axis of a call. False after an error. */
bool prelude_several(Elab *e, const char *name, Arguments *args, Several *out);
const Value *prelude_concat(Elab *e, const char *name, Several *s, Loc loc); /* and stack */
const Value *prelude_fold(Elab *e, const char *name, Several *s, Loc loc);

#endif
