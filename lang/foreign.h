/* foreign: names that people bring from other languages and libraries, and what is written here. */
#ifndef MDLC_LANG_FOREIGN_H
#define MDLC_LANG_FOREIGN_H

#include <stdbool.h>

/* What an example is: a statement of a layer, a clause of a train, an item of a file. */
typedef enum { FOREIGN_BODY, FOREIGN_TRAIN, FOREIGN_ITEM } ForeignPlace;

typedef struct {
    ForeignPlace place;
    const char *names;          /* with blanks around each */
    const char *form, *example; /* in words; in the language */
} Foreign;

/* The rows of foreign.def, `foreign_count` of them. */
extern const Foreign foreign_rows[];
extern const int foreign_count;

/* Is `name` one of the words of `names`, which have blanks around each? */
bool foreign_among(const char *names, const char *name);
/* What to write instead of an op, method, field or operator of this name; NULL: not known. */
const Foreign *foreign_find(const char *name);
/* Is it the name of a library, as the `torch` of torch.cat(...)? */
bool foreign_is_module(const char *name);

typedef struct {
    const char *names;      /* with blanks around each */
    const char *parameters; /* what it may be called here, likewise */
    const char *words;      /* what else there is to say; NULL */
} ForeignArg;

/* The rows of foreign_args.def. */
extern const ForeignArg foreign_args[];
extern const int foreign_arg_count;

/* What an argument of this name is here; NULL: not known. */
const ForeignArg *foreign_arg_find(const char *name);

#endif
