/* foreign: see the header. One table for all places where an unknown name is met; a name of the
 * model, of the library or of the prelude is found before it is looked up here, and this comes
 * before a guess from the spelling. tests/unit/test_foreign.c compiles every example. */
#include "lang/foreign.h"

#include <string.h>

const Foreign foreign_rows[] = {
#define FOREIGN(place, names, form, example) {FOREIGN_##place, names, form, example},
#include "lang/foreign.def"
#undef FOREIGN
};
const int foreign_count = sizeof foreign_rows / sizeof *foreign_rows;

const ForeignArg foreign_args[] = {
#define FOREIGN_ARG(names, parameters, words) {names, parameters, words},
#include "lang/foreign_args.def"
#undef FOREIGN_ARG
};
const int foreign_arg_count = sizeof foreign_args / sizeof *foreign_args;

bool foreign_among(const char *names, const char *name) {
    size_t n = strlen(name);
    for (const char *at = names; n > 0 && (at = strstr(at, name)) != NULL; at++) {
        if (at > names && at[-1] == ' ' && at[n] == ' ') {
            return true;
        }
    }
    return false;
}

const Foreign *foreign_find(const char *name) {
    for (int i = 0; i < foreign_count; i++) {
        if (foreign_among(foreign_rows[i].names, name)) {
            return &foreign_rows[i];
        }
    }
    return NULL;
}

bool foreign_is_module(const char *name) {
    const Foreign *row = foreign_find(name);
    return row != NULL && row == foreign_find("torch");
}

const ForeignArg *foreign_arg_find(const char *name) {
    for (int i = 0; i < foreign_arg_count; i++) {
        if (foreign_among(foreign_args[i].names, name)) {
            return &foreign_args[i];
        }
    }
    return NULL;
}
