/* report: what a Program needs and why, for people and for programs; counts; the budget. */
#ifndef MDLC_EMIT_REPORT_H
#define MDLC_EMIT_REPORT_H

#include "compiler/compile.h"
#include "compiler/program.h"

void emit_report(Text *out, Compile *c, const Program *p, const Source *source, bool json);
void emit_stats(FILE *out, const Program *p); /* "name: number" lines */
/* Compares the total with --budget or the budgets of the trains. EXIT_OK, or messages with the live
 * set at the peak, the least possible total and a way out, and EXIT_BUDGET. */
int budget_check(Compile *c, const Program *p);

#endif
