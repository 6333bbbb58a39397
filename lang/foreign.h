/* foreign: names that people bring from other languages and libraries, and what is written here. */
#ifndef MDLC_LANG_FOREIGN_H
#define MDLC_LANG_FOREIGN_H

/* What to write instead of an op, method, field or operator of this name; NULL: not known. */
const char *foreign_form(const char *name);

#endif
