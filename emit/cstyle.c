/* cstyle: expressions, indices and names of kernels in C-like languages.
 *
 * Technique: precedence levels decide parentheses; a bound expression prints as its name; integers
 * are computed unsigned and converted back, so that they wrap. Needs a finished kernel; gives text
 * without warnings under -Wall -Wextra -Wpedantic -Wshadow -Wconversion; decides nothing. */
#include "emit/cstyle.h"

#include "emit/narrow.h"
#include "emit/numbers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEVEL_ANY, LEVEL_CHOICE, LEVEL_BITS, LEVEL_COMPARE, LEVEL_SUM, LEVEL_TERM, LEVEL_UNARY };

/* --- names -------------------------------------------------------------------------------------
 */

static bool name_taken(const Style *s, const char *name) {
    if (names_has(&s->used, NULL, name)) {
        return true;
    }
    size_t word = strncmp(name, "site", 4) == 0 ? 4 : name[0] == 'i' ? 1 : 0;
    size_t digits = word > 0 ? strspn(name + word, "0123456789") : 0;
    bool scalar = digits > 0 && name[word + digits] == 0;
    return scalar || name_is_reserved(name);
}

const char *style_name(Style *s, const char *base) {
    const char *name = base;
    while (name_taken(s, name)) {
        int n = names_number(s->out->arena, &s->used, NULL, base);
        name = str_printf(s->out->arena, "%s_%d", base, n);
    }
    names_add(s->out->arena, &s->used, NULL, name);
    return name;
}

const char *style_expr_name(Style *s, const Expr *e, const char *base) {
    const char *name = e->name;
    if (name) {
        const char *dot = strrchr(name, '.');
        name = dot ? dot + 1 : name;
        bool fine = name[0] != 0 && !(name[0] >= '0' && name[0] <= '9') &&
                    strncmp(name, "md_", 3) != 0 && strncmp(name, "MD_", 3) != 0 &&
                    strstr(name, "__") == NULL && name[0] != '_' && !name_is_macro(name);
        for (const char *c = name; *c && fine; c++) {
            fine = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                   (*c >= '0' && *c <= '9') || *c == '_';
        }
        base = fine ? name : base;
    }
    const char *arg = e->kind == EXPR_LOAD ? s->arg[e->arg->id] : "";
    const char *member = strrchr(arg, '.'); /* in an epilogue */
    if (str_eq(base, member ? member + 1 : arg)) {
        base = str_printf(s->out->arena, "%s_value", base); /* the argument has the name */
    }
    return style_name(s, base);
}

Style style_open(Text *out, const Kernel *k) {
    Style s = {.out = out, .k = k};
    s.bound = ARENA_ARRAY(out->arena, const char *, k->expr.count + 1);
    s.axis = ARENA_ARRAY(out->arena, const char *, k->naxis + 1);
    s.arg = ARENA_ARRAY(out->arena, const char *, k->nargs + 1);
    if (k->model) {
        names_add(out->arena, &s.used, NULL, k->model);
    }
    /* What the epilogue of a product is given. */
    static const char *const own[] = {"ctx",   "m0", "rows", "n0",   "cols",
                                      "strip", "ld", "args", "block"};
    for (size_t i = 0; kernel_tile(k) != NULL && i < sizeof own / sizeof *own; i++) {
        names_add(out->arena, &s.used, NULL, own[i]);
    }
    for (int i = 0; i < k->arg.count; i++) {
        s.arg[k->arg.at[i]->id] = style_name(&s, k->arg.at[i]->name);
    }
    for (int i = 0; i < k->naxis; i++) {
        s.axis[i] = style_name(&s, k->axis[i].name);
    }
    return s;
}

void style_indent(Style *s) {
    for (int i = 0; i < s->depth; i++) {
        text_add(s->out, "    ");
    }
}

const char *style_type(Elem elem) {
    return elem == TY_BOOL ? "int" : elem_c_name(elem);
}

/* --- numbers and indices -----------------------------------------------------------------------
 */

static void float_number(Text *out, double value, bool wide) {
    const char *sign = signbit(value) ? "-" : "";
    if (isnan(value) || isinf(value)) {
        text_printf(out, "%s%s%s", sign, wide ? "(double)" : "", isnan(value) ? "NAN" : "INFINITY");
        return;
    }
    char digits[64];
    for (int n = wide ? 15 : 6; n <= 17; n++) {
        snprintf(digits, sizeof digits, "%.*g", n, fabs(value));
        double back = strtod(digits, NULL);
        if (wide ? back == fabs(value) : (float)back == (float)fabs(value)) {
            break;
        }
    }
    text_printf(out, "%s%s%s%s", sign, digits, strpbrk(digits, ".e") ? "" : ".0", wide ? "" : "f");
}

static void int_number(Text *out, Elem elem, int64_t value) {
    if (value == INT64_MIN) {
        text_add(out, "INT64_MIN");
    } else if (elem == TY_I32 && value == INT32_MIN) {
        text_add(out, "INT32_MIN");
    } else if (elem == TY_U32) {
        text_printf(out, "%" PRId64 "u", value);
    } else if (value > INT32_MAX || value < INT32_MIN) {
        text_printf(out, "INT64_C(%" PRId64 ")", value);
    } else {
        text_printf(out, "%" PRId64, value);
    }
}

void style_number(Text *out, Elem elem, double value, int64_t ivalue) {
    if (elem_is_float(elem)) {
        float_number(out, value, elem == TY_F64);
    } else {
        int_number(out, elem, elem == TY_BOOL ? value != 0 : ivalue);
    }
}

static void index_level(Style *s, const Index *index, int level);

static void index_atom(Style *s, const Atom *atom) {
    switch (atom->kind) {
    case ATOM_AXIS: text_add(s->out, s->axis[atom->number]); break;
    case ATOM_LOOP: text_printf(s->out, "i%d", atom->number); break;
    case ATOM_VALUE: {
        const Expr *e = atom->value;
        if (e->elem != TY_I64) {
            text_add(s->out, "(int64_t)");
        }
        style_value(s, e, LEVEL_UNARY);
        break;
    }
    case ATOM_DIV:
    case ATOM_MOD:
        if (atom->of->least < 0) {
            text_add(s->out, atom->kind == ATOM_DIV ? "md_idiv(" : "md_irem(");
            index_level(s, atom->of, LEVEL_ANY);
            text_printf(s->out, ", %" PRId64 ")", atom->by);
        } else {
            index_level(s, atom->of, LEVEL_TERM);
            text_printf(s->out, " %s %" PRId64, atom->kind == ATOM_DIV ? "/" : "%", atom->by);
        }
        break;
    }
}

/* A quotient or remainder that prints as an operator. */
static bool is_ratio(const Atom *atom) {
    return (atom->kind == ATOM_DIV || atom->kind == ATOM_MOD) && atom->of->least >= 0;
}

static void index_level(Style *s, const Index *index, int level) {
    int parts = index->nterm + (index->base != 0);
    int own = parts > 1 ? LEVEL_SUM
              : parts == 1 && index->nterm == 1 &&
                      (index->term[0].mul != 1 || is_ratio(index->term[0].atom))
                  ? LEVEL_TERM
                  : LEVEL_UNARY;
    bool minus = index->nterm > 0 ? index->term[0].mul < 0 : index->base < 0;
    bool parens =
        own < level || (own == LEVEL_TERM && level == LEVEL_TERM) || (minus && level > LEVEL_ANY);
    if (parens) {
        text_add(s->out, "(");
    }
    for (int i = 0; i < index->nterm; i++) {
        int64_t mul = index->term[i].mul;
        const Atom *atom = index->term[i].atom;
        if (mul < 0) {
            text_add(s->out, i > 0 ? " - " : "-");
            mul = -mul;
        } else if (i > 0) {
            text_add(s->out, " + ");
        }
        bool wrap = is_ratio(atom) && (mul != 1 || index->term[i].mul < 0);
        if (wrap) {
            text_add(s->out, "(");
        }
        index_atom(s, atom);
        if (wrap) {
            text_add(s->out, ")");
        }
        if (mul != 1) {
            text_printf(s->out, " * %" PRId64, mul);
        }
    }
    if (index->base != 0 || index->nterm == 0) {
        int64_t base = index->base;
        if (index->nterm > 0) {
            text_add(s->out, base < 0 ? " - " : " + ");
            base = base < 0 ? -base : base;
        }
        const char *element = numbers_base(s->numbers, index);
        if (element != NULL) {
            text_add(s->out, element);
        } else {
            text_printf(s->out, "%" PRId64, base);
        }
    }
    if (parens) {
        text_add(s->out, ")");
    }
}

void style_index(Style *s, const Index *index) {
    index_level(s, index, LEVEL_ANY);
}

/* --- expressions -------------------------------------------------------------------------------
 */

static void binary(Style *s, const char *op, const Expr *a, const Expr *b, int level) {
    style_value(s, a, level);
    text_printf(s->out, " %s ", op);
    style_value(s, b, level + 1);
}

/* Of truth values. C compilers take `!a | b` for a slip. */
static void bits(Style *s, const char *op, const Expr *a, const Expr *b) {
    style_value(s, a, a->op == OP_NOT ? LEVEL_UNARY + 1 : LEVEL_UNARY);
    text_printf(s->out, " %s ", op);
    style_value(s, b, LEVEL_UNARY + 1);
}

static void call(Style *s, const char *name, const Expr *const *in, int nin) {
    text_printf(s->out, "%s(", name);
    for (int i = 0; i < nin; i++) {
        text_add(s->out, i ? ", " : "");
        style_value(s, in[i], LEVEL_ANY);
    }
    text_add(s->out, ")");
}

/* Integer sums and products: formed unsigned, so that they wrap. */
static void wrapping(Style *s, Elem elem, const char *op, const Expr *a, const Expr *b) {
    const char *wide = elem_bytes(elem) == 8 ? "uint64_t" : "uint32_t";
    text_printf(s->out, "(%s)((%s)", elem_c_name(elem), wide);
    if (a) {
        style_value(s, a, LEVEL_UNARY);
    } else {
        text_add(s->out, "0");
    }
    text_printf(s->out, " %s (%s)", op, wide);
    style_value(s, b, LEVEL_UNARY);
    text_add(s->out, ")");
}

/* A function of 64-bit integers, converted back. */
static void int_call(Style *s, Elem elem, const char *name, const Expr *const *in, int nin) {
    text_printf(s->out, "(%s)", elem_c_name(elem));
    call(s, name, in, nin);
}

/* The function of the smaller or larger of two numbers, in words where these fit: through 64 bits C
 * compilers make no vectors of a loop over words. */
static const char *extreme_name(Arena *arena, OpCode op, Elem elem) {
    bool most = op == OP_MAX || op == OP_FMAX, wide = elem == TY_I64 || elem == TY_U32;
    return str_printf(arena, "md_%s%s", most ? "max" : "min",
                      elem == TY_F64        ? ""
                      : elem_is_float(elem) ? "f"
                      : wide                ? "_i64"
                                            : "_i32");
}

static const char *float_function(Arena *arena, const char *name, Elem elem) {
    return str_printf(arena, "%s%s", name, elem == TY_F64 ? "" : "f");
}

/* The constant operand of `op`, and what stands beside it; NULL: there is none. */
static const Expr *beside_constant(const Expr *e, OpCode op, double *value) {
    for (int k = 0; e->kind == EXPR_MAP && e->op == op && k < 2; k++) {
        if (e->in[k]->kind == EXPR_CONST) {
            *value = e->in[k]->value;
            return e->in[!k];
        }
    }
    return NULL;
}

/* min(max(x, a), b) or the other way round, with bounds that i32 holds: a conversion of one step,
 * which vectors have too. */
static bool is_clamped(const Expr *e) {
    double low = -INFINITY, high = INFINITY;
    const Expr *inner = beside_constant(e, OP_MIN, &high);
    inner = inner ? beside_constant(inner, OP_MAX, &low) : NULL;
    if (!inner) {
        inner = beside_constant(e, OP_MAX, &low);
        inner = inner ? beside_constant(inner, OP_MIN, &high) : NULL;
    }
    return inner && low >= -0x1p31 && (float)high < 0x1p31f && low <= high;
}

static void cast(Style *s, Elem elem, const Expr *a) {
    if (elem == TY_BOOL) {
        style_value(s, a, LEVEL_COMPARE + 1);
        text_add(s->out, " != 0");
        return;
    }
    if (elem_is_int(elem) && elem_is_float(a->elem)) { /* C leaves open what does not fit */
        bool near = a->elem == TY_F32 && elem_bytes(elem) <= 4 && is_clamped(a);
        int_call(s, elem, near ? "md_near_i32" : "md_to_i64", &a, 1);
        return;
    }
    if (elem_is_int(elem) && a->elem == TY_BOOL && a->kind != EXPR_LOAD) {
        /* gcc warns where a condition as a number is compared with one like 5 */
        text_add(s->out, "(");
        style_value(s, a, LEVEL_BITS + 1);
        text_add(s->out, " ? 1 : 0)");
        return;
    }
    text_printf(s->out, "(%s)", elem_c_name(elem));
    style_value(s, a, LEVEL_UNARY);
}

/* Of what divides, and of an exponent, C compilers make steps of another kind. */
static void written(Style *s, const Expr *e, int level) {
    Numbers *numbers = s->numbers;
    s->numbers = e->kind == EXPR_CONST ? NULL : numbers;
    style_value(s, e, level);
    s->numbers = numbers;
}

/* The spelling of the op table: $0 $1 operands, ~ and @ what is around a function of f32. */
static void spelled(Style *s, const Expr *e) {
    for (const char *p = op_info[e->op].spelling; *p; p++) {
        if (*p == '@' || *p == '~') {
            text_add(s->out, e->in[0]->elem == TY_F64 ? "" : *p == '@' ? "f" : "md_");
        } else if (*p == '$' && p[1] >= '0' && p[1] <= '2') {
            const Expr *in = e->in[*++p - '0'];
            e->op == OP_POW ? written(s, in, LEVEL_ANY) : style_value(s, in, LEVEL_ANY);
        } else {
            text_addn(s->out, p, 1);
        }
    }
}

static void choice(Style *s, const Expr *e) {
    bool narrow = !elem_is_float(e->elem) && elem_bytes(e->elem) < 4 && e->elem != TY_BOOL;
    if (narrow) {
        text_printf(s->out, "(%s)(", elem_c_name(e->elem));
    }
    style_value(s, e->in[0], LEVEL_BITS + 1); /* clang warns of a & b ? c : d */
    text_add(s->out, " ? ");
    style_value(s, e->in[1], LEVEL_CHOICE + 1);
    text_add(s->out, " : ");
    style_value(s, e->in[2], LEVEL_CHOICE + 1);
    if (narrow) {
        text_add(s->out, ")");
    }
}

/* A float, or zero. */
static bool is_kept_or_zero(const Expr *e) {
    return e->kind == EXPR_MAP && e->op == OP_SELECT && elem_is_float(e->elem) &&
           e->in[2]->kind == EXPR_CONST && e->in[2]->value == 0 && !signbit(e->in[2]->value);
}

/* Of what another choice has let through, or of what is rounded to IEEE's half: so many steps
 * behind a branch are no vector. */
static bool keeps_kept(const Expr *e) {
    const Expr *kept = e->kind == EXPR_MAP && e->op == OP_SELECT ? e->in[1] : e;
    bool rounds = kept->kind == EXPR_MAP && kept->op == OP_F16;
    return is_kept_or_zero(e) && (rounds || is_kept_or_zero(kept));
}

static int map_level(const Expr *e) {
    bool is_float = elem_is_float(e->elem);
    switch (e->op) {
    case OP_ADD:
    case OP_SUB: return is_float ? LEVEL_SUM : LEVEL_UNARY;
    case OP_MUL:
    case OP_DIV:
    case OP_RSQRT: return is_float ? LEVEL_TERM : LEVEL_UNARY;
    case OP_SELECT: return keeps_kept(e) ? LEVEL_UNARY : LEVEL_CHOICE;
    case OP_LT:
    case OP_LE:
    case OP_EQ: return LEVEL_COMPARE;
    case OP_AND:
    case OP_OR: return LEVEL_BITS;
    case OP_CAST: return e->elem == TY_BOOL ? LEVEL_COMPARE : LEVEL_UNARY;
    default: return LEVEL_UNARY;
    }
}

static void map_text(Style *s, const Expr *e) {
    bool is_float = elem_is_float(e->elem);
    const Expr *const *in = e->in;
    Arena *arena = s->out->arena;
    switch (e->op) {
    case OP_ADD:
        is_float ? binary(s, "+", in[0], in[1], LEVEL_SUM)
                 : wrapping(s, e->elem, "+", in[0], in[1]);
        break;
    case OP_SUB:
        is_float ? binary(s, "-", in[0], in[1], LEVEL_SUM)
                 : wrapping(s, e->elem, "-", in[0], in[1]);
        break;
    case OP_MUL:
        is_float ? binary(s, "*", in[0], in[1], LEVEL_TERM)
                 : wrapping(s, e->elem, "*", in[0], in[1]);
        break;
    case OP_DIV:
        style_value(s, in[0], LEVEL_TERM);
        text_add(s->out, " / ");
        written(s, in[1], LEVEL_TERM + 1);
        break;
    case OP_RSQRT:
        text_printf(s->out, "1.0%s / ", e->elem == TY_F64 ? "" : "f");
        call(s, e->elem == TY_F64 ? "sqrt" : "md_sqrtf", in, 1);
        break;
    case OP_NEG:
        if (is_float) {
            text_add(s->out, "-");
            style_value(s, in[0], LEVEL_UNARY + 1);
        } else {
            wrapping(s, e->elem, "-", NULL, in[0]);
        }
        break;
    case OP_ABS:
        is_float ? call(s, float_function(arena, "fabs", e->elem), in, 1)
                 : int_call(s, e->elem, "md_abs_i64", in, 1);
        break;
    case OP_SIGN:
        is_float ? call(s, float_function(arena, "md_sign", e->elem), in, 1)
                 : int_call(s, e->elem, "md_sign_i64", in, 1);
        break;
    case OP_MIN:
    case OP_MAX: {
        const char *name = extreme_name(arena, e->op, e->elem);
        is_float ? call(s, name, in, 2) : int_call(s, e->elem, name, in, 2);
        break;
    }
    case OP_IDIV: int_call(s, e->elem, "md_idiv", in, 2); break;
    case OP_IREM: int_call(s, e->elem, "md_irem", in, 2); break;
    case OP_SELECT:
        keeps_kept(e) ? call(s, float_function(arena, "md_keep", e->elem), in, 2) : choice(s, e);
        break;
    case OP_LT: binary(s, "<", in[0], in[1], LEVEL_SUM); break;
    case OP_LE: binary(s, "<=", in[0], in[1], LEVEL_SUM); break;
    case OP_EQ: binary(s, "==", in[0], in[1], LEVEL_SUM); break;
    case OP_AND: bits(s, "&", in[0], in[1]); break;
    case OP_OR: bits(s, "|", in[0], in[1]); break;
    case OP_NOT:
        text_add(s->out, "!");
        style_value(s, in[0], LEVEL_UNARY + 1);
        break;
    case OP_CAST: cast(s, e->elem, in[0]); break;
    default: spelled(s, e); break;
    }
}

static void within(Style *s, const Expr *e) {
    const Index *x = e->index;
    bool low = x->least < e->lo, high = x->most >= e->hi;
    if (e->hi == e->lo + 1) {
        index_level(s, x, LEVEL_SUM);
        text_printf(s->out, " == %" PRId64, e->lo);
        return;
    }
    if (low) {
        index_level(s, x, LEVEL_SUM);
        text_printf(s->out, " >= %" PRId64, e->lo);
    }
    if (high) {
        text_add(s->out, low ? " && " : "");
        index_level(s, x, LEVEL_SUM);
        text_printf(s->out, " < %" PRId64, e->hi);
    }
}

/* The bits of IEEE's half where the border is 0: those are chosen, and converted whatever they are,
 * since the steps of a conversion are no vector behind a branch. */
static bool chooses_bits(const Expr *e) {
    const Expr *border = e->nin == 2 ? e->in[1] : NULL;
    return border && e->arg->elem == TY_F16 && border->kind == EXPR_CONST && border->value == 0 &&
           !signbit(border->value);
}

static int expr_level(const Expr *e) {
    switch (e->kind) {
    case EXPR_CONST: return signbit(e->value) || e->ivalue < 0 ? LEVEL_TERM : LEVEL_UNARY + 1;
    case EXPR_INDEX: return LEVEL_UNARY;
    case EXPR_WITHIN: return LEVEL_ANY;
    case EXPR_LOAD: return e->nin == 2 && !chooses_bits(e) ? LEVEL_CHOICE : LEVEL_UNARY + 1;
    case EXPR_MAP: return map_level(e);
    case EXPR_KEY:
    case EXPR_DRAW:
    case EXPR_FOLD: break;
    }
    return LEVEL_UNARY + 1;
}

void style_place(Style *s, const Arg *arg, const Index *index) {
    const char *word = narrow_place(s, arg);
    if (word) {
        text_add(s->out, word);
        return;
    }
    text_printf(s->out, "%s[", s->arg[arg->id]);
    style_index(s, index);
    text_add(s->out, arg->strip ? " - n0]" : "]");
}

const char *style_half(Elem storage) {
    return storage == elem_computed(storage) ? NULL : elem_name(storage);
}

static void load(Style *s, const Expr *e) {
    const char *half = style_half(e->arg->elem);
    if (chooses_bits(e)) {
        text_printf(s->out, "md_from_%s((uint16_t)(", half);
        style_value(s, e->in[0], LEVEL_BITS + 1);
        text_add(s->out, " ? ");
        style_place(s, e->arg, e->index);
        text_add(s->out, " : 0))");
        return;
    }
    if (e->nin == 2) {
        style_value(s, e->in[0], LEVEL_BITS + 1);
        text_add(s->out, " ? ");
    }
    if (half) {
        text_printf(s->out, "md_from_%s(", half);
    }
    style_place(s, e->arg, e->index);
    text_add(s->out, half ? ")" : "");
    if (e->nin == 2) {
        text_add(s->out, " : ");
        style_value(s, e->in[1], LEVEL_CHOICE + 1);
    }
}

static void key(Style *s, const Expr *e) {
    for (int i = 2; i < e->nin; i++) {
        text_add(s->out, "md_key_fold(");
    }
    text_add(s->out, "md_key_make((uint64_t)");
    style_value(s, e->in[0], LEVEL_UNARY);
    text_printf(s->out, ", site%d, (uint64_t)", e->site);
    style_value(s, e->in[1], LEVEL_UNARY);
    text_add(s->out, ")");
    for (int i = 2; i < e->nin; i++) {
        text_add(s->out, ", (uint64_t)");
        style_value(s, e->in[i], LEVEL_UNARY);
        text_add(s->out, ")");
    }
}

static void draw(Style *s, const Expr *e) {
    const char *wide = e->elem == TY_F64 ? "f64" : "f32";
    switch (e->dist) {
    case DIST_BITS: text_add(s->out, "md_rand_bits("); break;
    case DIST_UNIFORM: text_printf(s->out, "md_rand_uniform_%s(", wide); break;
    case DIST_NORMAL: text_printf(s->out, "md_rand_normal_%s(", wide); break;
    }
    style_value(s, e->in[0], LEVEL_ANY);
    text_add(s->out, ", (uint64_t)");
    index_level(s, e->index, LEVEL_UNARY);
    text_add(s->out, ")");
}

static void constant(Style *s, const Expr *e) {
    const char *element = numbers_constant(s->numbers, e);
    if (element != NULL) {
        text_add(s->out, element);
    } else {
        style_number(s->out, e->elem, e->value, e->ivalue);
    }
}

void style_value(Style *s, const Expr *e, int level) {
    if (s->bound[e->id]) {
        text_add(s->out, s->bound[e->id]);
        return;
    }
    bool parens = expr_level(e) < level;
    if (parens) {
        text_add(s->out, "(");
    }
    switch (e->kind) {
    case EXPR_CONST: constant(s, e); break;
    case EXPR_INDEX:
        text_printf(s->out, "(%s)", elem_c_name(e->elem));
        index_level(s, e->index, LEVEL_UNARY);
        break;
    case EXPR_WITHIN: within(s, e); break;
    case EXPR_LOAD: load(s, e); break;
    case EXPR_MAP: map_text(s, e); break;
    case EXPR_KEY: key(s, e); break;
    case EXPR_DRAW: draw(s, e); break;
    case EXPR_FOLD: BUG("a fold is printed outside of its loop");
    }
    if (parens) {
        text_add(s->out, ")");
    }
}

void style_expr(Style *s, const Expr *e) {
    style_value(s, e, LEVEL_ANY);
}

void style_combine(Style *s, OpCode op, Elem elem, const char *a, const char *b) {
    bool is_float = elem_is_float(elem);
    const char *type = elem_c_name(elem);
    const char *wide = elem_bytes(elem) == 8 ? "uint64_t" : "uint32_t";
    switch (op) {
    case OP_SUM:
    case OP_ADD:
    case OP_PROD:
    case OP_MUL: {
        const char *sign = op == OP_SUM || op == OP_ADD ? "+" : "*";
        if (is_float) {
            text_printf(s->out, "%s %s= %s;", a, sign, b);
        } else {
            text_printf(s->out, "%s = (%s)((%s)%s %s (%s)(%s));", a, type, wide, a, sign, wide, b);
        }
        break;
    }
    default:
        text_printf(s->out, "%s = ", a);
        if (!is_float) {
            text_printf(s->out, "(%s)", type);
        }
        text_printf(s->out, "%s(%s, %s);", extreme_name(s->out->arena, op, elem), b, a);
        break;
    }
}

const char *style_fold_word(OpCode op) {
    switch (op) {
    case OP_PROD: return "product";
    case OP_FMAX: return "most";
    case OP_FMIN: return "least";
    case OP_ARGMAX:
    case OP_ARGMIN: return "where";
    default: return "sum";
    }
}
