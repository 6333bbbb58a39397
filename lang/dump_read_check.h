/* dump_read_check: what elaboration promises about slots, data sets and entries, of dumps. */
#ifndef MDLC_LANG_DUMP_READ_CHECK_H
#define MDLC_LANG_DUMP_READ_CHECK_H

#include "lang/dump_read_args.h"

/* Each gives false after an error. */
bool dump_check_slot(DumpRead *r, const Slot *slot);
bool dump_check_data(DumpRead *r, const DataSet *set);
bool dump_check_phases(DumpRead *r);
bool dump_check_entry(DumpRead *r, int number);

#endif
