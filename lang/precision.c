/* precision: which floats a train multiplies in, and which its parameters are kept in.
 *
 * `precision bf16(master = false)` stores all parameters under the paths of its train as bf16. An
 * update is mostly smaller than half of the distance between two of these, so it is rounded by a
 * draw: to either neighbour, as often as makes the mean right (docs/decisions/0064-no-masters.md).
 * What a parameter is stored as is no type of the text, where it stays a float of the build. It is
 * settled before anything is elaborated, since parameters are made by whoever calls a model first.
 * Needs the trees of the trains; gives element types of slots, and roundings of updates. */
#include "lang/precision.h"

#include "lang/draw.h"
#include "lang/half.h"
#include "lang/params.h"
#include "lang/training.h"

#include <string.h>

typedef struct {
    Elem elem;
    bool always, no_master;
} Asked;

/* `bf16` or `bf16(master = false)`. */
static bool read_type(const Ast *expr, Asked *out) {
    const Ast *name = expr->kind == AST_CALL ? expr->kid[0] : expr;
    if (name->kind != AST_NAME || !elem_from_name(name->name, &out->elem) ||
        !elem_is_float(out->elem)) {
        return false;
    }
    if (expr->kind != AST_CALL) {
        return true;
    }
    const Ast *args = expr->kid[1], *arg = args && args->nkid == 1 ? args->kid[0] : NULL;
    const Ast *value = arg && arg->kind == AST_ARG ? arg->kid[0] : NULL;
    if (!value || !str_eq(arg->name, "master") || value->kind != AST_NAME ||
        !elem_is_half(out->elem)) {
        return false;
    }
    out->no_master = str_eq(value->name, "false");
    return out->no_master || str_eq(value->name, "true");
}

/* `precision bf16;`, `precision bf16, always;` */
static bool read_clause(const Ast *clause, Asked *out) {
    const Ast *args = clause->kid[0], *word = args && args->nkid == 2 ? args->kid[1] : NULL;
    *out = (Asked){.elem = TY_ERROR};
    if (!args || args->nkid < 1 || args->nkid > 2 || !read_type(args->kid[0], out)) {
        return false;
    }
    out->always = word && word->kind == AST_NAME && str_eq(word->name, "always");
    return !word || (out->always && elem_is_half(out->elem));
}

/* The clause among the statements of the train, not in those of a `when`. */
static bool find_clause(const Ast *train, Asked *out) {
    const Ast *block = train->kid[4];
    for (int i = 0; block && i < block->nkid; i++) {
        const Ast *clause = block->kid[i];
        if (clause->kind == AST_CLAUSE && str_eq(clause->name, "precision")) {
            return read_clause(clause, out);
        }
    }
    return false;
}

Elem precision_of_build(const Compile *c, const Ast *file) {
    Elem elem = c->opt.float_type;
    for (int i = 0; i < file->nkid && elem == TY_ERROR; i++) {
        Asked asked;
        bool says = file->kid[i]->kind == AST_TRAIN && find_clause(file->kid[i], &asked);
        elem = says && !elem_is_half(asked.elem) ? asked.elem : TY_ERROR;
    }
    return elem == TY_ERROR ? TY_F32 : elem;
}

void precision_start(Elab *e) {
    const Options *opt = &e->c->opt;
    for (int i = 0; i < e->root->ast->nkid; i++) {
        const Ast *ast = e->root->ast->kid[i], *of = ast->kind == AST_TRAIN ? ast->kid[1] : NULL;
        Asked asked = {.no_master = false};
        bool none = of && (opt->float_type != TY_ERROR
                               ? opt->no_master
                               : find_clause(ast, &asked) && asked.no_master &&
                                     asked.elem == TY_BF16 && e->g->float_type == TY_F32);
        for (int k = 0; none && k < of->nkid; k++) {
            VEC_PUSH(e->arena, &e->no_master, of->kid[k]->name);
        }
    }
}

static bool is_noted(const Elab *e, const char *path) {
    bool found = false;
    for (int i = 0; !found && i < e->no_master.count; i++) {
        found = params_under(path, e->no_master.at[i]);
    }
    return found;
}

/* In a `when` it comes too late. */
static void check_noted(Elab *e, const Ast *expr) {
    const Training *t = e->entry->training;
    for (int i = 0; i < t->of.count; i++) {
        if (!is_noted(e, t->of.at[i])) {
            elab_error(e, expr->loc, 721,
                       "what parameters are kept in is settled before any 'when': "
                       "'master = false' stands in the block of the train itself");
            diag_hint(&e->c->diag, "one build can have it by --precision='bf16(master=false)'");
            return;
        }
    }
}

void precision_clause(Elab *e, const Ast *clause) {
    Asked asked;
    const Ast *args = clause->kid[0], *expr = args && args->nkid > 0 ? args->kid[0] : clause;
    Elem build = e->g->float_type;
    if (!read_clause(clause, &asked)) {
        elab_error(e, expr->loc, 549,
                   "'precision' takes a float type: f32, f64, bf16 or f16, and behind the last two "
                   "perhaps the word 'always'");
        diag_hint(&e->c->diag, "bf16(master = false) keeps the parameters in 16 bits, too");
    } else if (asked.elem == TY_F16 && asked.no_master) {
        elab_error(e, expr->loc, 720,
                   "parameters are kept in bf16 or f32: f16 has nothing for weights below 6e-8, "
                   "and coarse steps for small ones");
        diag_hint(&e->c->diag, "precision bf16(master = false);");
    } else if (asked.elem == build || e->c->opt.float_type != TY_ERROR) {
        return; /* the option overrides the clause */
    } else if (!elem_is_half(asked.elem) || build != TY_F32) {
        elab_error(e, expr->loc, 524, "this train wants %s, but the build computes in %s",
                   elem_name(asked.elem), elem_name(build));
        diag_hint(&e->c->diag,
                  "one build computes in one type: that of the first train whose block says one, "
                  "or of --precision, which overrides all");
    } else {
        e->entry->entry->half = asked.elem;
        e->entry->entry->always = asked.always;
        if (asked.no_master) {
            check_noted(e, expr);
        }
    }
}

Elem precision_stored(const Elab *e, const char *path, Elem elem) {
    return elem == TY_F32 && is_noted(e, path) ? TY_BF16 : elem;
}

Node *precision_next(Elab *e, const Parameter *p, Node *next) {
    if (!elem_is_half(p->slot->type.elem)) {
        return next;
    }
    Node *draw = draw_node(e, e->g->loc, DIST_UNIFORM, p->rank, p->dim);
    return draw ? node_map2(e->g, OP_BF16_DRAWN, next, draw) : next;
}
