/* node: constructors of the syntax tree and the two entry points of the parser.
 *
 * Nodes copy their kids into the arena of the tree; lists that grow while the grammar runs live in
 * scratch memory. Needs a source of the Compile, gives its tree and messages, looks nothing up. */
#include "parse.h"

#include "lang/scan.h"

Ast *node_make(Parse *ps, AstKind kind, Loc loc, Ast *const *kid, int nkid) {
    Ast *node = ARENA_NEW(ps->arena, Ast);
    *node = (Ast){.kind = kind, .loc = loc, .name_loc = loc, .nkid = nkid, .height = 1};
    if (nkid)
        node->kid = ARENA_ARRAY(ps->arena, Ast *, nkid);
    for (int i = 0; i < nkid; i++) {
        node->kid[i] = kid[i];
        if (kid[i] && kid[i]->height >= node->height)
            node->height = kid[i]->height + 1;
    }
    if (node->height > AST_HEIGHT) {
        scan_stop(ps, 120, loc,
                  str_printf(&ps->scratch, "nested too deeply: more than %d levels", AST_HEIGHT));
        node->kind = AST_ERROR;
        node->nkid = 0;
        node->height = 1;
    }
    return node;
}

Ast *node_of_list(Parse *ps, AstKind kind, Loc loc, Ast *first, const AstList *list) {
    if (!first)
        return node_make(ps, kind, loc, list ? list->at : NULL, list ? list->count : 0);
    AstList all = {0};
    list_add(ps, &all, first);
    for (int i = 0; list && i < list->count; i++)
        list_add(ps, &all, list->at[i]);
    return node_make(ps, kind, loc, all.at, all.count);
}

Ast *node_named(Ast *node, const Ast *word) {
    node->name = word->name;
    node->name_loc = word->loc;
    return node;
}

Ast *node_flag(Ast *node, unsigned flags) {
    node->flags |= flags;
    return node;
}

static void path_text(Text *text, const Ast *path) {
    if (path->kind == AST_DOT) {
        path_text(text, path->kid[0]);
        text_add(text, ".");
    }
    text_add(text, path->name ? path->name : "");
}

Ast *node_path(Parse *ps, AstKind kind, Loc loc, const Ast *path, Ast *args) {
    Ast *node = args ? node_make(ps, kind, loc, &args, 1) : node_make(ps, kind, loc, NULL, 0);
    Text text = {.arena = ps->arena};
    path_text(&text, path);
    node->name = text.at;
    node->name_loc = path->loc;
    return node;
}

Ast *node_doc(Parse *ps, Ast *node, const AstList *attrs) {
    node->doc = scan_doc(ps, node->loc.at);
    if (attrs) {
        const Ast *holder = node_of_list(ps, AST_ERROR, node->loc, NULL, attrs);
        node->attr = holder->kid;
        node->nattr = holder->nkid;
        if (!node->doc)
            node->doc = scan_doc(ps, attrs->at[0]->loc.at);
    }
    return node;
}

AstList *list_add(Parse *ps, AstList *list, Ast *item) {
    if (!list)
        list = ARENA_NEW(&ps->scratch, AstList);
    VEC_PUSH(&ps->scratch, list, item);
    return list;
}

AstList *list_make(Parse *ps, Ast *first) {
    return list_add(ps, NULL, first);
}

static void parse_run(Parse *ps, Compile *c, Arena *arena, uint32_t source, int start) {
    *ps = (Parse){.c = c, .arena = arena, .source = source};
    scan_open(ps, start);
    mdl_parse(ps);
}

Ast *parse_file(Compile *c, Arena *arena, uint32_t source) {
    Parse ps;
    parse_run(&ps, c, arena, source, T_START_FILE);
    Loc all = {source, 0, (uint32_t)c->diag.sources.at[source].length, 0};
    Ast *file = node_of_list(&ps, AST_FILE, all, NULL, &ps.items);
    arena_free(&ps.scratch);
    return file;
}

Ast *parse_expr(Compile *c, Arena *arena, uint32_t source) {
    Parse ps;
    int errors = c->diag.errors;
    parse_run(&ps, c, arena, source, T_START_EXPR);
    arena_free(&ps.scratch);
    return c->diag.errors == errors ? ps.expr : NULL;
}
