/* raw_args: what the reader of dumped graphs makes of arguments, types and names. */
#ifndef MDLC_LANG_RAW_ARGS_H
#define MDLC_LANG_RAW_ARGS_H

#include "compiler/graph.h"
#include "lang/ast.h"

/* An `op` item: the adjoint of one CUSTOM. */
typedef struct {
    const Ast *ast;
    bool used;
} RawBody;

/* A `const` item. */
typedef struct {
    const char *name;
    const double *data;
    int64_t count;
} RawTable;

typedef struct {
    Compile *c;
    Arena *arena;
    Module *module;
    Graph *g;
    const Ast *core; /* use core; */
    VEC(RawBody) body;
    VEC(RawTable) table;
    VEC(const Ast *) entry; /* item k is module entry k */
    VEC(const Ast *) data;  /* item k is module data set k */
    Entry *at;              /* whose region is being read */
    int depth;              /* of bodies */
} Raw;

/* Reports; gives false, so that it can be returned. Reading ends with the first error. */
bool raw_error(Raw *r, Loc loc, int id, const char *fmt, ...) MDLC_PRINTF(4, 5);

/* The arguments of a call or an attribute; each is taken once, and all must be. */
typedef struct {
    Raw *r;
    const Ast *list; /* ARGS or NULL */
    bool *taken;
    Loc loc; /* of the call */
} RawArgs;
RawArgs raw_args(Raw *r, const Ast *list, Loc loc);
/* `core.NAME(...)`; false after an error. */
bool raw_call(Raw *r, const Ast *expr, const char **name, RawArgs *args);
const Ast *raw_next(RawArgs *args);                    /* positional; NULL: no more */
const Ast *raw_named(RawArgs *args, const char *name); /* NULL: not given */
bool raw_done(RawArgs *args);                          /* an error if an argument is left */

/* False after an error. Integers are inside lo..hi, both included. */
bool raw_int(Raw *r, const Ast *expr, int64_t lo, int64_t hi, int64_t *out);
bool raw_site(Raw *r, const Ast *expr, uint64_t *out);
bool raw_number(Raw *r, const Ast *expr, double *out); /* also inf and nan */
bool raw_flag(Raw *r, const Ast *expr, bool *out);
bool raw_string(Raw *r, const Ast *expr, const char **out);
/* A string of letters, digits and '_', with dots if they are allowed. */
bool raw_name(Raw *r, const Ast *expr, bool dots, const char **out);
/* One of `words`, which end with NULL. */
bool raw_word(Raw *r, const Ast *expr, const char *const *words, int *out);
bool raw_one_of(Raw *r, Loc loc, const char *word, const char *const *words, int *out);
bool raw_elem(Raw *r, const char *name, Loc loc, Elem *out);
bool raw_type(Raw *r, const Ast *type, Type *out);
bool raw_range(Raw *r, const Ast *range, int64_t *lo, int64_t *hi); /* NULL: 0, 0 */

/* What `name = ...` gives, if it is there. */
bool raw_named_int(RawArgs *args, const char *name, int64_t lo, int64_t hi, int64_t *out);
bool raw_named_flag(RawArgs *args, const char *name, bool *out);
bool raw_named_text(RawArgs *args, const char *name, const char **out);
bool raw_named_name(RawArgs *args, const char *name, bool dots, const char **out);

#endif
