/* dump_read_args: what the reader of dumped graphs makes of arguments, types and names. */
#ifndef MDLC_LANG_DUMP_READ_ARGS_H
#define MDLC_LANG_DUMP_READ_ARGS_H

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
} DumpRead;

/* Reports; gives false, so that it can be returned. Reading ends with the first error. */
bool dump_error(DumpRead *r, Loc loc, int id, const char *fmt, ...) MDLC_PRINTF(4, 5);

/* The arguments of a call or an attribute; each is taken once, and all must be. */
typedef struct {
    DumpRead *r;
    const Ast *list; /* ARGS or NULL */
    bool *taken;
    Loc loc; /* of the call */
} DumpArgs;
DumpArgs dump_args(DumpRead *r, const Ast *list, Loc loc);
/* `core.NAME(...)`; false after an error. */
bool dump_call(DumpRead *r, const Ast *expr, const char **name, DumpArgs *args);
const Ast *dump_next(DumpArgs *args);                    /* positional; NULL: no more */
const Ast *dump_named(DumpArgs *args, const char *name); /* NULL: not given */
bool dump_done(DumpArgs *args);                          /* an error if an argument is left */

/* False after an error. Integers are inside lo..hi, both included. */
bool dump_int(DumpRead *r, const Ast *expr, int64_t lo, int64_t hi, int64_t *out);
bool dump_site(DumpRead *r, const Ast *expr, uint64_t *out);
bool dump_number(DumpRead *r, const Ast *expr, double *out); /* also inf and nan */
bool dump_flag(DumpRead *r, const Ast *expr, bool *out);
bool dump_string(DumpRead *r, const Ast *expr, const char **out);
/* A string of letters, digits and '_', with dots if they are allowed. */
bool dump_name(DumpRead *r, const Ast *expr, bool dots, const char **out);
/* One of `words`, which end with NULL. */
bool dump_word(DumpRead *r, const Ast *expr, const char *const *words, int *out);
bool dump_one_of(DumpRead *r, Loc loc, const char *word, const char *const *words, int *out);
bool dump_elem(DumpRead *r, const char *name, Loc loc, Elem *out);
bool dump_type(DumpRead *r, const Ast *type, Type *out);
bool dump_value_type(DumpRead *r, const Ast *type, Type *out); /* of what is computed */
bool dump_range(DumpRead *r, const Ast *range, int64_t *lo, int64_t *hi); /* NULL: 0, 0 */

/* What `name = ...` gives, if it is there. */
bool dump_named_int(DumpArgs *args, const char *name, int64_t lo, int64_t hi, int64_t *out);
bool dump_named_flag(DumpArgs *args, const char *name, bool *out);
bool dump_named_text(DumpArgs *args, const char *name, const char **out);
bool dump_named_name(DumpArgs *args, const char *name, bool dots, const char **out);

#endif
