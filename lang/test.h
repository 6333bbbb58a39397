/* test: `test "..." { expect ...; }`. */
#ifndef MDLC_LANG_TEST_H
#define MDLC_LANG_TEST_H

#include "lang/context.h"

void test_item(Elab *e, const Ast *ast);
/* An `expect` clause met by the statement walker. */
void test_expect(Elab *e, const Ast *clause);

#endif
