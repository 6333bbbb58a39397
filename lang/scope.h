/* scope: files, their items, and the names of bodies. */
#ifndef MDLC_LANG_SCOPE_H
#define MDLC_LANG_SCOPE_H

#include "compiler/names.h"
#include "lang/ast.h"
#include "lang/value.h"

typedef struct File File;
typedef struct Ring Ring;

/* A named thing at the top level of a file. */
struct Item {
    AstKind kind; /* of the declaration: AST_DIMS for a dim, AST_CONSTS for a const, AST_OP, ... */
    const char *name;
    Loc loc;  /* of the name */
    Ast *ast; /* the DEF of a dim or const, else the item */
    File *file;
    int order; /* in its file */
    /* dims and constants: the value under the rebinding of the entry at hand */
    const Value *value;
    Region *home; /* of its nodes: nothing else is in there, and they read nothing else */
    int stamp;
    bool busy;          /* it is being elaborated */
    int adjoints;       /* of its own being elaborated, one inside of the other */
    bool used;          /* a model: its parameters exist */
    bool called;        /* an op, layer, model or optimizer, rightly or not */
    bool failed;        /* it has an error that was reported */
    bool deep;          /* it was on the way to a call that is nested too deep */
    Instance *instance; /* a state that copies a model: once it was met */
    Ring *ring;         /* of a ring: once it was met */
    /* a layer or model: does its text declare parameters? */
    enum { PARAMETERS_UNKNOWN, PARAMETERS_NONE, PARAMETERS_SOME } parameters;
    /* an op, layer or model: does its text take derivatives, or call what does? */
    enum { DERIVES_UNKNOWN, DERIVES_NOT, DERIVES } derives;
};

struct File {
    const char *name; /* module name, or path as given */
    const char *path;
    bool library;
    bool loading;
    Ast *ast;
    VEC(Item *) item;
    NameList names; /* of them */
    VEC(File *) use;
};

typedef enum {
    BIND_VALUE,
    BIND_ARGUMENT,
    BIND_DIM_VARIABLE,
    BIND_CARRY,
    BIND_FLOW,       /* a carry of an ode; `ref`: what is known of it */
    BIND_STATE,      /* a state slot: `ref` is its StateSlot */
    BIND_PARAMETER,  /* of a layer */
    BIND_UPDATED,    /* `p` of an optimizer */
    BIND_MICRO_BATCH /* behind the loop of `accumulate`: a value of one turn */
} BindKind;

typedef struct {
    const char *name;
    Loc loc;
    BindKind kind;
    const Value *value; /* of a state that is set: what it was then */
    const Value *next;  /* after `<-` */
    Loc next_loc;
    bool told; /* that it is read after its `<-` */
    void *ref;
    const Ast *range; /* of a carry: what its next value must be in, or NULL */
} ScopeName;

typedef struct Scope Scope;
struct Scope {
    Scope *up; /* NULL: the outermost of a body; then come the items of the file */
    File *file;
    VEC(ScopeName *) name;
    NameList names; /* of them */
};

Scope *scope_new(Arena *arena, Scope *up, File *file);
ScopeName *scope_add(Arena *arena, Scope *scope, const char *name, Loc loc, BindKind kind,
                     const Value *value);
ScopeName *scope_find_here(const Scope *scope, const char *name);
ScopeName *scope_find(const Scope *scope, const char *name);
/* Own items first, then those of used modules. */
Item *file_find(const File *file, const char *name);
Item *file_find_own(const File *file, const char *name);

const char *item_text(Arena *arena, const Item *item); /* "an op" */

/* Collects the candidate nearest to a name that was not found. */
typedef struct {
    const char *name, *best;
    int distance, limit;
} Nearest;
Nearest nearest_start(const char *name);
void nearest_add(Nearest *n, const char *candidate);
void nearest_scope(Nearest *n, const Scope *scope);
void nearest_file(Nearest *n, const File *file);

#endif
