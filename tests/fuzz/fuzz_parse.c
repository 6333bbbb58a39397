/* The parser and the formatter: a text that parses is laid out as a text with the same tree, and
 * that one as itself; what does not parse has a message. */
#include "fuzz.h"

#include "lang/ast.h"
#include "lang/fmt.h"

#include <stdlib.h>
#include <string.h>

static char *dump(Compile *c, const Ast *ast) {
    char *text;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    ast_dump(ast, out);
    fclose(out);
    char *copy = str_ndup(&c->arena, text, n);
    free(text);
    return copy;
}

static void laid_out(Compile *c, const Ast *ast, uint32_t source) {
    char *text = fmt_source(c, &c->arena, source);
    if (!text || c->diag.errors)
        fuzz_finding("parses, but is not laid out");
    uint32_t again = diag_add_source(&c->diag, "again.mdl", text, strlen(text));
    const Ast *other = parse_file(c, &c->arena, again);
    if (c->diag.errors)
        fuzz_finding("the laid out text does not parse:\n%s", text);
    if (!str_eq(dump(c, ast), dump(c, other)))
        fuzz_finding("the laid out text has another tree:\n%s", text);
    char *second = fmt_source(c, &c->arena, again);
    if (!str_eq(text, second))
        fuzz_finding("laid out twice:\n%s\nis not the same as once:\n%s", second, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Fuzz f;
    fuzz_open(&f, data, size);
    uint32_t source = diag_add_source(&f.c.diag, "fuzz.mdl", f.text, f.length);
    const Ast *ast = parse_file(&f.c, &f.c.arena, source);
    if (f.c.diag.errors == 0)
        laid_out(&f.c, ast, source);
    fuzz_close(&f);
    return 0;
}
