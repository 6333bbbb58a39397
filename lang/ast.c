/* ast: names of node kinds and operators, and the dump of a tree.
 *
 * A dump has one node a line, indented by its depth, without places. Needs a tree from the parser,
 * whose height is bounded, gives text, changes no values. */
#include "lang/ast.h"

const char *ast_kind_name(AstKind kind) {
    static const char *const names[] = {
#define KIND(NAME, text) [AST_##NAME] = text,
#include "lang/ast.def"
#undef KIND
    };
    if ((unsigned)kind >= AST_KIND_COUNT)
        BUG("no syntax node of kind %d", (int)kind);
    return names[kind];
}

const char *ast_op_name(AstOp op) {
    static const char *const names[] = {
        [AO_NONE] = "", [AO_OR] = "or", [AO_AND] = "and", [AO_NOT] = "not", [AO_LT] = "<",
        [AO_GT] = ">",  [AO_LE] = "<=", [AO_GE] = ">=",   [AO_EQ] = "==",   [AO_NE] = "!=",
        [AO_ADD] = "+", [AO_SUB] = "-", [AO_MUL] = "*",   [AO_DIV] = "/",   [AO_MOD] = "%",
        [AO_NEG] = "-", [AO_POW] = "^",
    };
    if ((unsigned)op > AO_POW)
        BUG("no operator %d", (int)op);
    return names[op];
}

static void text_dump(const char *text, FILE *out) {
    fputs(" \"", out);
    for (const char *p = text; *p; p++) {
        if (*p == '\n')
            fputs("\\n", out);
        else if (*p == '\t')
            fputs("\\t", out);
        else {
            if (*p == '"' || *p == '\\')
                fputc('\\', out);
            fputc(*p, out);
        }
    }
    fputc('"', out);
}

static void node_dump(const Ast *ast, int depth, FILE *out) {
    static const struct {
        unsigned flag;
        const char *word;
    } flags[] = {{AST_DRAW, "~"}, {AST_FROZEN, "frozen"}, {AST_SHAPED, "[]"}};
    fprintf(out, "%*s", 2 * depth, "");
    if (!ast) {
        fputs("-\n", out);
        return;
    }
    fputs(ast_kind_name(ast->kind), out);
    if (ast->op)
        fprintf(out, " %s", ast_op_name(ast->op));
    if (ast->name)
        fprintf(out, " %s", ast->name);
    if (ast->kind == AST_NUMBER || ast->kind == AST_SIZE)
        fprintf(out, " %.17g", ast->number);
    else if (ast->text)
        text_dump(ast->text, out);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (ast->flags & flags[i].flag)
            fprintf(out, " %s", flags[i].word);
    if (ast->doc) {
        fputs(" doc", out);
        text_dump(ast->doc, out);
    }
    fputc('\n', out);
    for (int i = 0; i < ast->nattr; i++)
        node_dump(ast->attr[i], depth + 1, out);
    for (int i = 0; i < ast->nkid; i++)
        node_dump(ast->kid[i], depth + 1, out);
}

void ast_dump(const Ast *ast, FILE *out) {
    node_dump(ast, 0, out);
}
