/* modules: files and their items. The library is part of the compiler: `nn` is lang/nn.mdl, its
 * part `nn.losses` is lang/nn/losses.mdl. Any other module is a file NAME.mdl beside the file that
 * uses it. */
#include "lang/modules.h"

#include "compiler/embed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static File *file_new(Elab *e, const char *name, const char *path, const Ast *ast, bool library) {
    File *file = ARENA_NEW(e->arena, File);
    file->name = name;
    file->path = path;
    file->library = library;
    file->ast = (Ast *)ast;
    VEC_PUSH(e->arena, &e->file, file);
    return file;
}

static void add_item(Elab *e, File *file, AstKind kind, Ast *ast) {
    const Item *old = file_find_own(file, ast->name);
    if (old) {
        elab_error(e, ast->name_loc, 269, "'%s' is declared twice in this file", ast->name);
        diag_note(&e->c->diag, old->loc, "the first is here");
        return;
    }
    Item *item = ARENA_NEW(e->arena, Item);
    item->kind = kind;
    item->name = ast->name;
    item->loc = ast->name_loc;
    item->ast = ast;
    item->file = file;
    item->order = file->item.count;
    VEC_PUSH(e->arena, &file->item, item);
    names_push(e->arena, &file->names, item->name);
}

static bool upper_case(const char *name) {
    return name[0] >= 'A' && name[0] <= 'Z';
}

static void load(Elab *e, File *file, const Ast *use);

static void add_items(Elab *e, File *file) {
    file->loading = true;
    for (int i = 0; i < file->ast->nkid; i++) {
        Ast *ast = file->ast->kid[i];
        switch (ast->kind) {
        case AST_USE: load(e, file, ast); break;
        case AST_DIMS:
        case AST_CONSTS:
            for (int k = 0; k < ast->nkid; k++) {
                Ast *def = ast->kid[k];
                if (ast->kind == AST_DIMS && !upper_case(def->name)) {
                    elab_error(e, def->name_loc, 200,
                               "the name of a dim starts with an upper-case "
                               "letter; lower-case names are dim variables");
                } else if (ast->kind == AST_DIMS && def->kid[0]) {
                    elab_error(e, def->loc, 258, "a dim is one number; 'const' makes a table");
                } else {
                    add_item(e, file, ast->kind, def);
                }
            }
            break;
        case AST_OP:
        case AST_LAYER:
        case AST_MODEL:
        case AST_OPTIMIZER:
        case AST_DATASET:
        case AST_TRAIN:
        case AST_ENTRY:
        case AST_STATE:
        case AST_RING: add_item(e, file, ast->kind, ast); break;
        default: break;
        }
    }
    file->loading = false;
}

/* --- finding --------------------------------------------------------------------------------- */

static char *dotted_path(Elab *e, const char *name) {
    char *path = str_dup(e->arena, name);
    for (char *p = path; *p; p++) {
        if (*p == '.') {
            *p = '/';
        }
    }
    return path;
}

static const char *embedded_text(Elab *e, const char *name, size_t *length) {
    const char *wanted = str_printf(e->arena, "lang/%s.mdl", name);
    for (size_t i = 0; i < nembeds; i++) {
        if (str_eq(embeds[i].name, wanted)) {
            Text text = {.arena = e->arena};
            text_add(&text, "");
            for (size_t k = 0; k < embeds[i].count; k++) {
                text_add(&text, embeds[i].lines[k]);
                text_add(&text, "\n");
            }
            *length = text.len;
            return text.at;
        }
    }
    return NULL;
}

static bool declares(const char *line, const char *name) {
    static const char *const words[] = {"op ", "layer ", "optimizer "};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i]);
        if (strncmp(line, words[i], n) == 0 && strncmp(line + n, name, length) == 0 &&
            line[n + length] == '(') {
            return true;
        }
    }
    return false;
}

/* lang/nn.mdl, lang/nn/losses.mdl */
static bool is_module(const Embed *embed) {
    size_t length = strlen(embed->name);
    return strncmp(embed->name, "lang/", 5) == 0 && length > 9 &&
           strcmp(embed->name + length - 4, ".mdl") == 0;
}

const char *modules_with(Elab *e, const char *name) {
    for (size_t i = 0; i < nembeds; i++) {
        for (size_t k = 0; is_module(&embeds[i]) && k < embeds[i].count; k++) {
            if (declares(embeds[i].lines[k], name)) {
                return str_ndup(e->arena, embeds[i].name + 5, strcspn(embeds[i].name + 5, "/."));
            }
        }
    }
    return NULL;
}

static const char *read_text(Elab *e, const char *path, size_t *length) {
    FILE *in = fopen(path, "rb");
    if (!in) {
        return NULL;
    }
    Text text = {.arena = e->arena};
    char buffer[4096];
    size_t n;
    text_add(&text, "");
    while (text.len <= SOURCE_LARGEST && (n = fread(buffer, 1, sizeof buffer, in)) > 0) {
        text_addn(&text, buffer, n);
    }
    bool ok = !ferror(in);
    fclose(in);
    *length = text.len;
    return ok ? text.at : NULL;
}

static void unknown_module(Elab *e, const Ast *use, const char *path) {
    elab_error(e, use->loc, 259,
               "there is no module '%s': it is none of the library, and '%s' cannot be "
               "read",
               use->name, path);
    Nearest n = nearest_start(use->name);
    for (size_t i = 0; i < nembeds; i++) {
        if (is_module(&embeds[i])) {
            size_t length = strlen(embeds[i].name);
            char *name = str_ndup(e->arena, embeds[i].name + 5, length - 9);
            for (char *slash = name; (slash = strchr(slash, '/')) != NULL;) {
                *slash = '.';
            }
            nearest_add(&n, name);
        }
    }
    elab_hint_nearest(e, &n);
}

static File *open_module(Elab *e, File *user, const Ast *use) {
    const char *relative = dotted_path(e, use->name), *text, *path = NULL;
    size_t length = 0;
    const char *name = str_printf(e->arena, "<%s>", use->name);
    bool library = true;
    text = embedded_text(e, relative, &length);
    if (!text) {
        const char *slash = user->path ? strrchr(user->path, '/') : NULL;
        int folder = slash ? (int)(slash - user->path + 1) : 0;
        path = str_printf(e->arena, "%.*s%s.mdl", folder, slash ? user->path : "", relative);
        name = path;
        library = false;
        for (int i = 0; i < e->file.count; i++) {
            if (str_eq(e->file.at[i]->path, path)) {
                return e->file.at[i];
            }
        }
        text = read_text(e, path, &length);
        if (!text) {
            unknown_module(e, use, path);
            return NULL;
        }
    }
    for (int i = 0; library && i < e->file.count; i++) {
        if (e->file.at[i]->library && str_eq(e->file.at[i]->name, use->name)) {
            return e->file.at[i];
        }
    }
    uint32_t source = diag_add_source(&e->c->diag, name, text, length);
    const Ast *ast = parse_file(e->c, e->arena, source);
    File *file = file_new(e, use->name, path, ast, library);
    add_items(e, file);
    return file;
}

static bool uses(const File *file, const File *module) {
    for (int i = 0; i < file->use.count; i++) {
        if (file->use.at[i] == module) {
            return true;
        }
    }
    return false;
}

/* The items of one module, unless another one that is in use has declared such a name. The library
 * may grow: what it declares is hidden. */
static bool take(Elab *e, File *file, File *module, const Ast *use) {
    for (int i = 0; i < file->use.count; i++) {
        bool both = file->use.at[i]->library == module->library;
        for (int k = 0; both && k < module->item.count; k++) {
            const Item *mine = module->item.at[k];
            if (file_find_own(file->use.at[i], mine->name)) {
                elab_error(e, use->loc, 261,
                           "'%s' is declared both in module '%s' and in module '%s'", mine->name,
                           file->use.at[i]->name, module->name);
                return false;
            }
        }
    }
    VEC_PUSH(e->arena, &file->use, module);
    return true;
}

static void load(Elab *e, File *file, const Ast *use) {
    File *module = open_module(e, file, use);
    if (!module) {
        return;
    }
    if (module->loading) {
        elab_error(e, use->loc, 260, "module '%s' uses itself, directly or through others",
                   use->name);
        return;
    }
    if (!uses(file, module) && !take(e, file, module, use)) {
        return;
    }
    /* The library is one module in parts: what a part of it uses, it hands on. */
    for (int i = 0; module->library && i < module->use.count; i++) {
        if (!uses(file, module->use.at[i]) && !take(e, file, module->use.at[i], use)) {
            return;
        }
    }
}

File *modules_root(Elab *e, const Ast *ast, const char *path) {
    File *file = file_new(e, path ? path : "", path ? path : "", ast, false);
    add_items(e, file);
    return file;
}
