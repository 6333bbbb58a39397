/* steps: the lines of a function that are its steps: calls of kernels, loops around them, what may
 * end the call. */
#ifndef MDLC_EMIT_STEPS_H
#define MDLC_EMIT_STEPS_H

#include "emit/locals.h"

/* A list of them, `depth` blocks deep. */
void steps_print(Locals *names, const Printer *printer, const StepList *list, int depth, Text *out);
/* The name of the function of a loop whose turns run side by side; no kernel's ends so. */
const char *turns_name(const Locals *names, const Step *loop);

#endif
