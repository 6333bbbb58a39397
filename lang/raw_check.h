/* raw_check: what elaboration promises about slots, data sets and entries, of dumped graphs. */
#ifndef MDLC_LANG_RAW_CHECK_H
#define MDLC_LANG_RAW_CHECK_H

#include "lang/raw_args.h"

/* Each gives false after an error. */
bool raw_check_slot(Raw *r, const Slot *slot);
bool raw_check_data(Raw *r, const DataSet *set);
bool raw_check_phases(Raw *r);
bool raw_check_entry(Raw *r, int number);

#endif
