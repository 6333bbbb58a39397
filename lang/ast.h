/* ast: the syntax tree, one node type. What each kind holds is written in ast.def. The tree is raw:
 * the parser looks nothing up. */
#ifndef MDLC_LANG_AST_H
#define MDLC_LANG_AST_H

#include "compiler/compile.h"

typedef enum {
#define KIND(NAME, text) AST_##NAME,
#include "lang/ast.def"
#undef KIND
    AST_KIND_COUNT
} AstKind;

typedef enum {
    AO_NONE,
    AO_OR,
    AO_AND,
    AO_NOT,
    AO_LT,
    AO_GT,
    AO_LE,
    AO_GE,
    AO_EQ,
    AO_NE,
    AO_ADD,
    AO_SUB,
    AO_MUL,
    AO_DIV,
    AO_MOD,
    AO_NEG,
    AO_POW
} AstOp;

enum { AST_DRAW = 1, AST_FROZEN = 2, AST_INTEGER = 4, AST_SHAPED = 8, AST_PAREN = 16 };

/* The parser accepts no larger text (bytes), and no deeper tree, so a pass may recurse over it. */
enum { SOURCE_LARGEST = 4 << 20, AST_HEIGHT = 2000 };

typedef struct Ast Ast;
struct Ast {
    AstKind kind;
    AstOp op;
    unsigned flags;
    Loc loc;          /* the whole construct */
    Loc name_loc;     /* of `name` (for BINARY: of the operator) */
    const char *name; /* interned by nobody: compare with str_eq */
    const char *text;
    const char *doc; /* `///` comment lines before an item or param, joined by newlines, or NULL */
    double number;
    const void *value; /* NUMBER: the Value that elaboration has made of it, or NULL */
    Ast **kid;
    int nkid;
    Ast **attr; /* ATTR nodes written before it */
    int nattr;
    int height; /* levels of the tree below and with it; at most AST_HEIGHT */
};

const char *ast_kind_name(AstKind kind);
const char *ast_op_name(AstOp op); /* as written: "<=" */

/* Parses one source of `c->diag`. Always returns a FILE node; errors are in c->diag.
 * The tree lives in `arena`. */
Ast *parse_file(Compile *c, Arena *arena, uint32_t source);
/* Parses one expression, for -D NAME=VALUE. NULL after an error. */
Ast *parse_expr(Compile *c, Arena *arena, uint32_t source);
/* Prints the tree, one node a line, for --dump=ast. */
void ast_dump(const Ast *ast, FILE *out);

#endif
