/* explain: the pages of docs/errors, which are part of the compiler, on standard output. */
#ifndef MDLC_COMPILER_DRIVER_EXPLAIN_H
#define MDLC_COMPILER_DRIVER_EXPLAIN_H

/* Prints the page of a code (E0214, e0214 or 214), or, for NULL, the list of all codes. Gives the
 * exit status; an unknown code is reported on standard error. */
int explain_print(const char *code);

#endif
