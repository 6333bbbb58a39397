/* dump_read_args: literals, words and types of dumped graphs. No expression is evaluated here: each
 * argument is one literal, name or list.
 * Contract: needs trees of the grammar; gives values, or one message; changes nothing else. */
#include "lang/dump_read_args.h"

#include "lang/scope.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t extent_most = (int64_t)1 << 40;

bool dump_error(DumpRead *r, Loc loc, int id, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *text = str_vprintf(r->arena, fmt, ap);
    va_end(ap);
    diag_error(&r->c->diag, loc, id, "%s", text);
    return false;
}

/* --- arguments -------------------------------------------------------------------------------- */

DumpArgs dump_args(DumpRead *r, const Ast *list, Loc loc) {
    int n = list ? list->nkid : 0;
    return (DumpArgs){r, list, ARENA_ARRAY(r->arena, bool, n + 1), loc};
}

bool dump_call(DumpRead *r, const Ast *expr, const char **name, DumpArgs *args) {
    const Ast *callee = expr->kind == AST_CALL && !expr->name && !expr->flags ? expr->kid[0] : NULL;
    bool is = callee && callee->kind == AST_DOT && callee->kid[0]->kind == AST_NAME &&
              str_eq(callee->kid[0]->name, "core");
    if (!is) {
        return dump_error(r, expr->loc, 801, "a dumped graph calls nothing but core.NAME(...)");
    }
    *name = callee->name;
    *args = dump_args(r, expr->kid[1], expr->loc);
    return true;
}

const Ast *dump_next(DumpArgs *args) {
    for (int i = 0; args->list && i < args->list->nkid; i++) {
        if (!args->taken[i] && args->list->kid[i]->kind != AST_ARG) {
            args->taken[i] = true;
            return args->list->kid[i];
        }
    }
    return NULL;
}

const Ast *dump_named(DumpArgs *args, const char *name) {
    for (int i = 0; args->list && i < args->list->nkid; i++) {
        const Ast *arg = args->list->kid[i];
        if (!args->taken[i] && arg->kind == AST_ARG && str_eq(arg->name, name)) {
            args->taken[i] = true;
            return arg->kid[0];
        }
    }
    return NULL;
}

bool dump_done(DumpArgs *args) {
    for (int i = 0; args->list && i < args->list->nkid; i++) {
        const Ast *arg = args->list->kid[i];
        if (!args->taken[i]) {
            return arg->kind == AST_ARG
                       ? dump_error(args->r, arg->loc, 802, "'%s' may not be given here", arg->name)
                       : dump_error(args->r, arg->loc, 816, "this is one argument too many");
        }
    }
    return true;
}

/* --- literals --------------------------------------------------------------------------------- */

/* The number below a sign. */
static const Ast *unsign(const Ast *expr, bool *negative) {
    *negative = expr->kind == AST_UNARY && expr->op == AO_NEG;
    return *negative ? expr->kid[0] : expr;
}

bool dump_int(DumpRead *r, const Ast *expr, int64_t lo, int64_t hi, int64_t *out) {
    bool negative;
    const Ast *leaf = unsign(expr, &negative);
    if (leaf->kind != AST_NUMBER || !(leaf->flags & AST_INTEGER)) {
        return dump_error(r, expr->loc, 803, "an integer is needed here");
    }
    errno = 0;
    uint64_t size = strtoull(leaf->text, NULL, 10);
    uint64_t most = (uint64_t)INT64_MAX + negative;
    bool fits = errno == 0 && size <= most;
    int64_t x = !fits ? 0 : negative ? -(int64_t)(size - (size > 0)) - (size > 0) : (int64_t)size;
    if (!fits || x < lo || x > hi) {
        return dump_error(r, expr->loc, 804, "this integer must be in %lld..%lld", (long long)lo,
                          (long long)hi);
    }
    *out = x;
    return true;
}

bool dump_site(DumpRead *r, const Ast *expr, uint64_t *out) {
    errno = 0;
    if (expr->kind == AST_NUMBER && expr->flags & AST_INTEGER) {
        *out = strtoull(expr->text, NULL, 10);
        if (errno == 0) {
            return true;
        }
    }
    return dump_error(r, expr->loc, 805, "a site is an integer below 2^64");
}

bool dump_number(DumpRead *r, const Ast *expr, double *out) {
    bool negative;
    const Ast *leaf = unsign(expr, &negative);
    double x;
    if (leaf->kind == AST_NUMBER) {
        x = leaf->number;
    } else if (leaf->kind == AST_NAME && str_eq(leaf->name, "inf")) {
        x = INFINITY;
    } else if (leaf->kind == AST_NAME && str_eq(leaf->name, "nan")) {
        x = NAN;
    } else {
        return dump_error(r, expr->loc, 806, "a number is needed here");
    }
    *out = copysign(x, negative ? -1.0 : 1.0);
    return true;
}

bool dump_flag(DumpRead *r, const Ast *expr, bool *out) {
    *out = expr->kind == AST_NAME && str_eq(expr->name, "true");
    return *out || (expr->kind == AST_NAME && str_eq(expr->name, "false")) ||
           dump_error(r, expr->loc, 807, "true or false is needed here");
}

bool dump_string(DumpRead *r, const Ast *expr, const char **out) {
    *out = expr->kind == AST_STRING ? expr->text : NULL;
    return *out || dump_error(r, expr->loc, 808, "a string is needed here");
}

bool dump_name(DumpRead *r, const Ast *expr, bool dots, const char **out) {
    static const char known[] = ".0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    if (!dump_string(r, expr, out)) {
        return false;
    }
    const char *s = *out;
    bool fits = *s && !strchr("0123456789", *s) && strspn(s, known) == strlen(s);
    return (fits && (dots || !strchr(s, '.'))) ||
           dump_error(r, expr->loc, 809, "\"%s\" is no name", s);
}

bool dump_one_of(DumpRead *r, Loc loc, const char *word, const char *const *words, int *out) {
    Nearest n = nearest_start(word);
    for (int i = 0; words[i]; i++) {
        if (str_eq(words[i], word)) {
            *out = i;
            return true;
        }
        nearest_add(&n, words[i]);
    }
    dump_error(r, loc, 810, "'%s' is not known here", word);
    if (n.best) {
        diag_hint(&r->c->diag, "did you mean '%s'?", n.best);
    }
    return false;
}

bool dump_word(DumpRead *r, const Ast *expr, const char *const *words, int *out) {
    return expr->kind == AST_NAME ? dump_one_of(r, expr->loc, expr->name, words, out)
                                  : dump_error(r, expr->loc, 811, "a word is needed here");
}

/* --- types ------------------------------------------------------------------------------------ */

bool dump_elem(DumpRead *r, const char *name, Loc loc, Elem *out) {
    if (!name || !elem_from_name(name, out)) {
        return dump_error(r, loc, 812, "an element type is needed here");
    }
    return true;
}

bool dump_type(DumpRead *r, const Ast *type, Type *out) {
    *out = (Type){.rank = type->nkid};
    double n = 1;
    if (!dump_elem(r, type->name, type->loc, &out->elem)) {
        return false;
    }
    if (type->nkid > MD_RANK) {
        return dump_error(r, type->loc, 814, "a tensor has at most %d axes", MD_RANK);
    }
    for (int i = 0; i < type->nkid; i++) {
        if (!dump_int(r, type->kid[i], 0, extent_most, &out->dim[i])) {
            return false;
        }
        n *= (double)out->dim[i];
    }
    return n <= 1e13 ||
           dump_error(r, type->loc, 815, "a tensor of %.3g elements is not possible", n);
}

bool dump_range(DumpRead *r, const Ast *range, int64_t *lo, int64_t *hi) {
    *lo = *hi = 0;
    return !range || (dump_int(r, range->kid[0], INT64_MIN, INT64_MAX, lo) &&
                      dump_int(r, range->kid[1], *lo, INT64_MAX, hi));
}

bool dump_value_type(DumpRead *r, const Ast *type, Type *out) {
    return dump_type(r, type, out) &&
           (!elem_is_half(out->elem) ||
            dump_error(r, type->loc, 813, "a value of %s is one of f32; slots and results store it",
                       elem_name(out->elem)));
}

/* --- named arguments -------------------------------------------------------------------------- */

bool dump_named_int(DumpArgs *args, const char *name, int64_t lo, int64_t hi, int64_t *out) {
    const Ast *expr = dump_named(args, name);
    return !expr || dump_int(args->r, expr, lo, hi, out);
}

bool dump_named_flag(DumpArgs *args, const char *name, bool *out) {
    const Ast *expr = dump_named(args, name);
    return !expr || dump_flag(args->r, expr, out);
}

bool dump_named_text(DumpArgs *args, const char *name, const char **out) {
    const Ast *expr = dump_named(args, name);
    return !expr || dump_string(args->r, expr, out);
}

bool dump_named_name(DumpArgs *args, const char *name, bool dots, const char **out) {
    const Ast *expr = dump_named(args, name);
    return !expr || dump_name(args->r, expr, dots, out);
}
