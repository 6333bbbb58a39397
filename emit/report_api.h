/* report_api: the part of the JSON report that says how a host calls the emitted functions: names,
 * parameters and structures, so that nothing has to read C. docs/report.md describes it. */
#ifndef MDLC_EMIT_REPORT_API_H
#define MDLC_EMIT_REPORT_API_H

#include "emit/write.h"

/* ,"api":{...}: what all entries share. */
void report_api(const Emit *e, Text *out);
/* ,"function":...,"inputs":[...],"outputs":[...] of one entry. */
void report_api_entry(const Emit *e, const ProgramEntry *entry, Text *out);

#endif
