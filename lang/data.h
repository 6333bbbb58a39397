/* data: data set items. */
#ifndef MDLC_LANG_DATA_H
#define MDLC_LANG_DATA_H

#include "lang/context.h"

/* Elaborates the item once; -1 after an error, else its number in the module. */
int data_set(Elab *e, Item *item);
bool data_has_part(const DataSet *set, int part);

#endif
