/* page: the report as HTML. See page.c. */
#ifndef MDLC_COMPILER_DRIVER_PAGE_H
#define MDLC_COMPILER_DRIVER_PAGE_H

#include "compiler/base.h"

/* Adds the page of a JSON report; `plans` is a JSON array of objects with `label` and `report`. */
void page_print(const Text *report, const Text *plans, Text *out);

#endif
