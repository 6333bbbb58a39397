/* point: the values that derivatives are taken by are values of their own.
 *
 * Values that are computed alike are one node, and what is made of constants is computed when
 * compiling. A derivative by such a value would also go the ways of another name, or miss those
 * that were folded. So what is bound to a name by which the body takes a derivative, or which it
 * hands to an op that may, is marked (OP_POINT): equal to nothing else, and known to no rule. The
 * marks go with the derivatives. Names are found in the text: one too many costs nothing. */
#include "lang/point.h"

#include "lang/call.h"

static bool item_derives(Item *item);

static bool derives(const File *file, const Ast *call) {
    const Ast *callee = call->kind == AST_CALL ? call->kid[0] : NULL;
    if (!callee || callee->kind != AST_NAME) {
        return false;
    }
    if (str_eq(callee->name, "grad") || str_eq(callee->name, "vjp") ||
        str_eq(callee->name, "jvp")) {
        return true;
    }
    Item *item = file_find(file, callee->name);
    return item && call_is_callable(item) && item_derives(item);
}

static bool any_derives(const File *file, const Ast *ast) {
    if (!ast || derives(file, ast)) {
        return ast != NULL;
    }
    for (int i = 0; i < ast->nkid; i++) {
        if (any_derives(file, ast->kid[i])) {
            return true;
        }
    }
    return false;
}

static bool item_derives(Item *item) {
    if (item->derives == DERIVES_UNKNOWN) {
        item->derives = DERIVES_NOT; /* an op that calls itself adds nothing */
        item->derives = any_derives(item->file, item->ast) ? DERIVES : DERIVES_NOT;
    }
    return item->derives == DERIVES;
}

static void add_name(Elab *e, const Ast *ast, NameList *to) {
    ast = ast->kind == AST_ARG ? ast->kid[0] : ast;
    if (ast->kind == AST_NAME && names_at(to, ast->name) < 0) {
        names_push(e->arena, to, ast->name);
    }
}

static void find_names(Elab *e, const File *file, const Ast *ast, NameList *to) {
    if (!ast) {
        return;
    }
    if (derives(file, ast)) {
        for (int i = 0; ast->kid[1] && i < ast->kid[1]->nkid; i++) {
            add_name(e, ast->kid[1]->kid[i], to);
        }
    } else if (ast->kind == AST_PIPE && derives(file, ast->kid[1])) {
        add_name(e, ast->kid[0], to);
    }
    for (int i = 0; i < ast->nkid; i++) {
        find_names(e, file, ast->kid[i], to);
    }
}

/* Entries and trains of a file are looked at as one. */
static const NameList *points_of(Elab *e) {
    const File *file = e->scope->file;
    const Item *item = e->frame ? e->frame->item : NULL;
    const void *body = item ? (const void *)item : file;
    for (int i = e->points.count - 1; i >= 0; i--) {
        if (e->points.at[i].body == body) {
            return &e->points.at[i].name;
        }
    }
    Points points = {.body = body};
    const Ast *ast = item ? item->ast : file->ast;
    for (int i = 0; !item && ast && i < ast->nkid; i++) {
        const Ast *kid = ast->kid[i];
        if (kid && (kid->kind == AST_ENTRY || kid->kind == AST_TRAIN || kid->kind == AST_TEST)) {
            find_names(e, file, kid, &points.name);
        }
    }
    if (item) {
        find_names(e, item->file, ast, &points.name);
    }
    VEC_PUSH(e->arena, &e->points, points);
    return &e->points.at[e->points.count - 1].name;
}

const Value *point_bind(Elab *e, const char *name, const Value *v) {
    const bool fits =
        v->kind == V_TENSOR && v->nspan == 0 && !v->end && elem_is_float(value_elem(v));
    return fits && names_at(points_of(e), name) >= 0
               ? value_with(e->scratch, v, node_point(e->g, v->node, ++e->point))
               : v;
}

/* Made of constants alone. */
static bool is_known(const Node *n) {
    while (n->op == OP_BROADCAST || op_info[n->op].cls == CLASS_VIEW) {
        n = n->in[0];
    }
    return n->op == OP_CONST || n->op == OP_TABLE;
}

const Value *point_given(Elab *e, const char *name, const Value *v) {
    return v->kind == V_TENSOR && is_known(v->node) ? point_bind(e, name, v) : v;
}
