/* text_meaning: a random text from its tree, and what it means: one element at a time, in double,
 * by loops over all indices. Shares nothing with the compiler. See random_text.h. */
#include "random_text.h"

#include <math.h>
#include <string.h>

/* ---- text ----------------------------------------------------------------------------------- */

/* From loose to tight, as docs/language.md has it. */
enum { ANY, OR, AND, NOT, COMPARE, ADD, FOLD, MULTIPLY, NEGATE, POWER, TIGHT };

static const struct {
    const char *op;
    int level;
} levels[] = {{"or", OR},      {"and", AND},    {"<", COMPARE},  {">", COMPARE}, {"<=", COMPARE},
              {">=", COMPARE}, {"==", COMPARE}, {"!=", COMPARE}, {"+", ADD},     {"-", ADD},
              {"*", MULTIPLY}, {"/", MULTIPLY}, {"%", MULTIPLY}, {"^", POWER}};

static int level_of(const Sx *e) {
    if (e->kind == SX_NUM && e->number < 0) {
        return NEGATE;
    }
    if (e->kind == SX_CALL) {
        return str_eq(e->op, "not") ? NOT : str_eq(e->op, "-") ? NEGATE : TIGHT;
    }
    if (e->kind == SX_FOLD) {
        return FOLD;
    }
    for (size_t i = 0; e->kind == SX_BIN && i < sizeof levels / sizeof *levels; i++) {
        if (str_eq(levels[i].op, e->op)) {
            return levels[i].level;
        }
    }
    return TIGHT;
}

static const char *index_name(RandomText *r, int index) {
    return str_printf(r->arena, "%c%d", index < 0 ? 't' : "ijkbe"[index % 5],
                      index < 0 ? -1 - index : index);
}

static void number_text(const Sx *e, Text *out) {
    text_printf(out, e->type == RT_FLOAT && e->number == floor(e->number) ? "%.1f" : "%.9g",
                e->number);
}

static void print(RandomText *r, const Sx *e, int least, Text *out);

static void place_text(RandomText *r, const RtPlace *p, Text *out) {
    if (p->value) {
        print(r, p->value, ANY, out);
        return;
    }
    bool first = true;
    for (int i = 0; i < p->nterm; i++) {
        int64_t by = p->term[i].by;
        text_add(out, by < 0 ? (first ? "-" : " - ") : first ? "" : " + ");
        if (by != 1 && by != -1) {
            text_printf(out, "%lld*", (long long)(by < 0 ? -by : by));
        }
        text_add(out, index_name(r, p->term[i].index));
        first = false;
    }
    if (first) {
        text_printf(out, "%lld", (long long)p->add);
    } else if (p->add != 0) {
        text_printf(out, " %c %lld", p->add < 0 ? '-' : '+',
                    (long long)(p->add < 0 ? -p->add : p->add));
    }
}

static void access_text(RandomText *r, const Sx *e, Text *out) {
    text_add(out, e->var->name);
    for (int i = 0; i < e->var->rank; i++) {
        text_add(out, i ? ", " : "[");
        place_text(r, &e->place[i], out);
    }
    text_add(out, e->var->rank ? "]" : "");
    static const char *const borders[] = {"", "", " else edge", " else wrap"};
    text_add(out, borders[e->border]);
    if (e->border == RT_NUMBER) {
        text_printf(out, " else %.9g", e->number);
    }
}

static void list_text(RandomText *r, const Sx *e, int n, Text *out) {
    for (int i = 0; i < n; i++) {
        text_add(out, i ? ", " : "(");
        print(r, e->kid[i], ANY, out);
    }
    text_add(out, ")");
}

static void inside(RandomText *r, const Sx *e, int level, Text *out) {
    switch (e->kind) {
    case SX_NUM: number_text(e, out); break;
    case SX_VAR: text_add(out, e->var->name); break;
    case SX_AT: access_text(r, e, out); break;
    case SX_INDEX: text_add(out, index_name(r, e->index)); break;
    case SX_SELECT:
        text_add(out, "select");
        list_text(r, e, 3, out);
        break;
    case SX_FOLD:
        for (int i = 0; i < e->nfold; i++) {
            text_printf(out, "%s%s%s", i ? ", " : e->op, i ? "" : "[", index_name(r, e->fold[i]));
            if (e->written[i]) {
                text_printf(out, " < %s", rt_extent(r, r->extent[e->fold[i]]));
            }
        }
        text_add(out, "] ");
        print(r, e->kid[0], FOLD + 1, out);
        break;
    case SX_CALL:
        if (level < TIGHT) {
            text_add(out, str_eq(e->op, "not") ? "not " : "-");
            print(r, e->kid[0], level + (level == NEGATE), out);
        } else {
            text_add(out, e->op);
            list_text(r, e, e->kid[2] ? 3 : e->kid[1] ? 2 : 1, out);
        }
        break;
    case SX_BIN:
        if (level == TIGHT) {
            text_add(out, e->op);
            list_text(r, e, 2, out);
        } else {
            print(r, e->kid[0], level + (level == COMPARE || level == POWER), out);
            text_printf(out, level == POWER ? "%s" : " %s ", e->op);
            print(r, e->kid[1], level + 1, out);
        }
        break;
    }
}

static void print(RandomText *r, const Sx *e, int least, Text *out) {
    int level = level_of(e);
    text_add(out, level < least ? "(" : "");
    inside(r, e, level, out);
    text_add(out, level < least ? ")" : "");
}

void text_type(RandomText *r, const RtVar *v, Text *out) {
    static const char *const kinds[] = {"", "i32", "bool"};
    text_add(out, v->kind == RT_FLOAT && v->rank == 0 ? "f32" : kinds[v->kind]);
    for (int i = 0; i < v->rank; i++) {
        text_printf(out, "%s%s", i ? ", " : "[", rt_extent(r, v->dim[i]));
    }
    text_add(out, v->rank ? "]" : "");
    if (v->kind == RT_INT && v->ranged) {
        text_printf(out, " in %lld..%lld", (long long)v->lo, (long long)v->hi + 1);
    }
}

static void slice_text(RandomText *r, const Stmt *s, Text *out) {
    text_printf(out, "%s[", s->from[0]->name);
    for (int i = 0; i < s->from[0]->rank; i++) {
        int64_t lo = s->cut[i].lo, hi = s->cut[i].hi;
        text_add(out, i ? ", " : "");
        if (lo < 0) {
            text_add(out, index_name(r, (int)lo));
        } else if (hi < lo) {
            text_printf(out, "%lld", (long long)lo);
        } else if (lo == 0 && hi == s->from[0]->dim[i]) {
            text_add(out, ":");
        } else {
            text_printf(out, "%lld..%lld", (long long)lo, (long long)hi);
        }
    }
    text_add(out, "]");
}

static void loop_text(RandomText *r, const Stmt *s, int indent, Text *out) {
    text_printf(out, "%s %s < %lld", s->repeat ? "repeat" : "scan", index_name(r, -1 - s->loop),
                (long long)s->trip);
    for (int i = 0; i < s->carry.count; i++) {
        const RtCarry *c = &s->carry.at[i];
        text_printf(out, "%s%s", i ? ", " : " carry ", c->var->name);
        if (c->start != c->var) {
            text_printf(out, " = %s", c->start->name);
        }
    }
    text_add(out, " {\n");
    text_statements(r, &s->body, indent + 4, out);
    for (int i = 0; i < s->emit.count; i++) {
        const RtEmit *e = &s->emit.at[i];
        text_printf(out, "%*semit %s", indent + 4, "", e->out->name);
        for (int k = 0; e->axis >= 0 && k < e->out->rank; k++) {
            text_add(out, k ? ", " : "[");
            text_add(out, k == e->axis ? index_name(r, -1 - s->loop)
                                       : index_name(r, 1000 + k - (k > e->axis)));
        }
        text_printf(out, "%s = %s", e->axis >= 0 ? "]" : "", e->of->name);
        for (int k = 0; e->axis >= 0 && k < e->of->rank; k++) {
            text_printf(out, "%s%s", k ? ", " : "[", index_name(r, 1000 + k));
        }
        text_add(out, e->axis >= 0 && e->of->rank ? "];\n" : ";\n");
    }
    for (int i = 0; i < s->carry.count; i++) {
        text_printf(out, "%*s%s <- %s;\n", indent + 4, "", s->carry.at[i].var->name,
                    s->carry.at[i].next->name);
    }
    text_printf(out, "%*s}\n", indent, "");
}

static void statement(RandomText *r, const Stmt *s, int indent, Text *out) {
    text_printf(out, "%*s", indent, "");
    if (s->kind == ST_LOOP) {
        loop_text(r, s, indent, out);
        return;
    }
    if (s->kind == ST_WHEN) {
        text_printf(out, "when %s {\n", s->op);
        text_statements(r, &s->body, indent + 4, out);
        text_printf(out, "%*s} else {\n%*snothing = nowhere(%lld) |> never;\n%*s}\n", indent, "",
                    indent + 4, "", (long long)rt_below(r, 9), indent, "");
        return;
    }
    text_add(out, s->out->name);
    for (int i = 0; s->kind == ST_INDEX && i < s->out->rank; i++) {
        text_printf(out, "%s%s", i ? ", " : "[", index_name(r, s->index[i]));
        if (s->written[i]) {
            text_printf(out, " < %s", rt_extent(r, s->out->dim[i]));
        }
    }
    text_add(out, s->kind == ST_INDEX ? "] = " : " = ");
    switch (s->kind) {
    case ST_POINT:
    case ST_INDEX: print(r, s->e, ANY, out); break;
    case ST_SLICE: slice_text(r, s, out); break;
    case ST_AS:
        text_printf(out, "%s as [", s->from[0]->name);
        for (int i = 0; i < s->out->rank; i++) {
            text_printf(out, "%s%s", i ? ", " : "", rt_extent(r, s->out->dim[i]));
        }
        text_add(out, "]");
        break;
    case ST_AXES: {
        bool piped = rt_chance(r, 30);
        text_printf(out, piped ? "%s |> %s" : "%s(%s", piped ? s->from[0]->name : s->op,
                    piped ? s->op : s->from[0]->name);
        if (!s->whole) {
            text_printf(out, "%saxis = %d)", piped ? "(" : ", ", s->axis);
        } else {
            text_add(out, piped ? "" : ")");
        }
        break;
    }
    case ST_JOIN:
    case ST_CALL:
        for (int i = 0; i < s->nfrom; i++) {
            text_printf(out, "%s%s", i ? ", " : s->op, i ? "" : "(");
            text_add(out, s->from[i]->name);
        }
        text_printf(out, s->kind == ST_JOIN ? ", axis = %d)" : ")", s->axis);
        break;
    case ST_LOOP:
    case ST_WHEN: break;
    }
    text_add(out, ";\n");
}

void text_statements(RandomText *r, const Stmts *list, int indent, Text *out) {
    for (int i = 0; i < list->count; i++) {
        statement(r, list->at[i], indent, out);
    }
}

/* A parameter's type; with names for its extents, which the rest of the op may use then. */
static void parameter_text(RandomText *r, const RtVar *v, bool named, Text *out) {
    Text type = {.arena = r->arena};
    text_printf(out, "%s: ", v->name);
    text_add(&type, "");
    text_type(r, v, &type);
    if (!named || v->rank == 0) {
        text_add(out, type.at);
        return;
    }
    size_t end = strcspn(type.at, "]");
    text_printf(out, "%.*s", (int)strcspn(type.at, "["), type.at);
    for (int i = 0; i < v->rank; i++) {
        bool small = v->dim[i] < RT_MOST;
        text_printf(out, small ? "%sd%lld" : "%s%lld", i ? ", " : "[", (long long)v->dim[i]);
        if (small) {
            r->variable[v->dim[i]] = true;
        }
    }
    text_add(out, type.at + end);
}

void text_op(RandomText *r, const char *name, const Stmt *call) {
    bool outer[RT_MOST], named = rt_chance(r, 60);
    Text op = {.arena = r->arena};
    memcpy(outer, r->variable, sizeof outer);
    memset(r->variable, 0, sizeof outer);
    text_printf(&op, "op %s", name);
    for (int i = 0; i < call->param.count; i++) {
        text_add(&op, i ? ", " : "(");
        parameter_text(r, call->param.at[i], named, &op);
    }
    text_add(&op, ")");
    if (rt_chance(r, 50) && !call->result->ranged) {
        text_add(&op, " -> ");
        text_type(r, call->result, &op);
    }
    text_add(&op, " {\n");
    text_statements(r, &call->body, 4, &op);
    text_printf(&r->ops, "%s    return %s;\n}\n\n", op.at, call->result->name);
    memcpy(r->variable, outer, sizeof outer);
}

/* ---- meaning -------------------------------------------------------------------------------- */

typedef struct {
    Arena *arena;
    const RandomText *r;
    double **at;    /* of a variable, by its number */
    int64_t *index; /* the value of each index */
    int64_t *loop;
} Run;

static int64_t count_of(const RtVar *v) {
    int64_t n = 1;
    for (int i = 0; i < v->rank; i++) {
        n *= v->dim[i];
    }
    return n;
}

static double *room(Run *run, const RtVar *v) {
    return run->at[v->id] = ARENA_ARRAY(run->arena, double, count_of(v));
}

static double element(Run *run, const Sx *e, int64_t at);

static int64_t index_value(const Run *run, int index) {
    return index < 0 ? run->loop[-1 - index] : run->index[index];
}

static double read(Run *run, const Sx *e, int64_t at) {
    int64_t flat = 0;
    for (int i = 0; i < e->var->rank; i++) {
        const RtPlace *p = &e->place[i];
        int64_t n = e->var->dim[i], x = p->value ? (int64_t)element(run, p->value, at) : p->add;
        for (int k = 0; k < p->nterm; k++) {
            x += p->term[k].by * index_value(run, p->term[k].index);
        }
        if ((x < 0 || x >= n) && e->border == RT_NUMBER) {
            return e->number;
        }
        if (x < 0 || x >= n) {
            int64_t wrapped = ((x % n) + n) % n;
            x = e->border == RT_WRAP ? wrapped : x < 0 ? 0 : n - 1;
            if (e->border == RT_NONE) {
                BUG("a random text reads outside of %s", e->var->name);
            }
        }
        flat = flat * n + x;
    }
    return run->at[e->var->id][flat];
}

static double fold(Run *run, const Sx *e, int64_t at) {
    int64_t n[2] = {run->r->extent[e->fold[0]], e->nfold > 1 ? run->r->extent[e->fold[1]] : 1};
    double result = str_eq(e->op, "prod") ? 1 : 0, best = 0;
    for (int64_t i = 0; i < n[0]; i++) {
        for (int64_t k = 0; k < n[1]; k++) {
            run->index[e->fold[0]] = i;
            if (e->nfold > 1) {
                run->index[e->fold[1]] = k;
            }
            double x = element(run, e->kid[0], at);
            bool first = i == 0 && k == 0, max = strstr(e->op, "max") != NULL;
            if (str_eq(e->op, "sum") || str_eq(e->op, "mean")) {
                result += x;
            } else if (str_eq(e->op, "prod")) {
                result *= x;
            } else if (first || (max ? x > best : x < best)) {
                best = x;
                result = e->op[0] == 'a' ? (double)i : x;
            }
        }
    }
    return str_eq(e->op, "mean") ? result / (double)(n[0] * n[1]) : result;
}

static double function(const char *op, double x, double y, double z) {
    switch (op[0]) {
    case '-': return -x;
    case 'a': return fabs(x);
    case 'c': return op[1] == 'o' ? cos(x) : fmin(fmax(x, y), z);
    case 'e': return op[1] == 'r' ? erf(x) : str_eq(op, "exp") ? exp(x) : expm1(x);
    case 'f': return op[1] == '3' ? x : floor(x);
    case 'g': return 0.5 * x * (1 + erf(x / sqrt(2)));
    case 'i': return x; /* a conversion to i32 of what is one */
    case 'l': return str_eq(op, "lerp") ? x + z * (y - x) : str_eq(op, "log1p") ? log1p(x) : log(x);
    case 'n': return x == 0;
    case 'r': return op[1] == 's' ? 1 / sqrt(x) : fmax(x, 0);
    case 's':
        return str_eq(op, "sqrt")      ? sqrt(x)
               : str_eq(op, "sin")     ? sin(x)
               : str_eq(op, "sigmoid") ? 1 / (1 + exp(-x))
               : str_eq(op, "silu")    ? x / (1 + exp(-x))
                                       : (double)((x > 0) - (x < 0)); /* sign */
    case 't': return tanh(x);
    default: BUG("no meaning of %s", op);
    }
}

static double operation(const char *op, bool whole, double a, double b) {
    double q = floor(a / b);
    switch (op[0]) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    case '/': return a / b;
    case '%': return a - b * q;
    case '^': return pow(a, b);
    case '<': return op[1] ? a <= b : a < b;
    case '>': return op[1] ? a >= b : a > b;
    case '=': return a == b;
    case '!': return a != b;
    case 'a': return a != 0 && b != 0;
    case 'o': return a != 0 || b != 0;
    case 'd': return q;
    case 'm': return (op[1] == 'a') == (a > b) ? a : b;
    default: BUG("no meaning of %s%s", op, whole ? " of integers" : "");
    }
}

static double element(Run *run, const Sx *e, int64_t at) {
    switch (e->kind) {
    case SX_NUM: return e->number;
    case SX_VAR: return run->at[e->var->id][e->var->rank ? at : 0];
    case SX_AT: return read(run, e, at);
    case SX_INDEX: return (double)index_value(run, e->index);
    case SX_FOLD: return fold(run, e, at);
    case SX_SELECT: return element(run, e->kid[element(run, e->kid[0], at) != 0 ? 1 : 2], at);
    case SX_CALL: {
        double x[3] = {0};
        for (int i = 0; i < 3 && e->kid[i]; i++) {
            x[i] = element(run, e->kid[i], at);
        }
        return function(e->op, x[0], x[1], x[2]);
    }
    case SX_BIN:
        return operation(e->op, e->type == RT_INT, element(run, e->kid[0], at),
                         element(run, e->kid[1], at));
    }
    return 0;
}

static void run_index(Run *run, const Stmt *s) {
    double *to = room(run, s->out);
    for (int64_t flat = 0, n = count_of(s->out); flat < n; flat++) {
        int64_t rest = flat;
        for (int i = s->out->rank - 1; i >= 0; i--) {
            run->index[s->index[i]] = rest % s->out->dim[i];
            rest /= s->out->dim[i];
        }
        to[flat] = element(run, s->e, 0);
    }
}

static void run_slice(Run *run, const Stmt *s) {
    double *to = room(run, s->out);
    const double *from = run->at[s->from[0]->id];
    int64_t at[RT_RANK], n = 0;
    for (int64_t flat = 0, all = count_of(s->from[0]); flat < all; flat++) {
        int64_t rest = flat;
        bool in = true;
        for (int i = s->from[0]->rank - 1; i >= 0; i--) {
            at[i] = rest % s->from[0]->dim[i];
            rest /= s->from[0]->dim[i];
            int64_t lo = s->cut[i].lo, hi = s->cut[i].hi;
            lo = lo < 0 ? run->loop[-1 - lo] : lo;
            in = in && at[i] >= lo && at[i] < (s->cut[i].lo < 0 || hi < lo ? lo + 1 : hi);
        }
        if (in) {
            to[n++] = from[flat];
        }
    }
}

/* Along one axis, or over everything as one. */
static void run_axes(Run *run, const Stmt *s) {
    const RtVar *v = s->from[0];
    int64_t outer = 1, inner = 1, n = s->whole ? count_of(v) : v->dim[s->axis];
    for (int i = 0; !s->whole && i < v->rank; i++) {
        *(i < s->axis ? &outer : &inner) *= i == s->axis ? 1 : v->dim[i];
    }
    double *to = room(run, s->out);
    const double *from = run->at[v->id];
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < inner; i++) {
            double sum = 0, product = 1;
            int64_t best = 0;
            for (int64_t k = 0; k < n; k++) {
                int64_t at = (o * n + k) * inner + i, mirror = (o * n + n - 1 - k) * inner + i;
                double x = from[at], most = from[(o * n + best) * inner + i];
                sum += x;
                product *= x;
                bool max = strstr(s->op, "max") != NULL;
                best = (max ? x > most : x < most) ? k : best;
                if (str_eq(s->op, "cumsum")) {
                    to[at] = sum;
                } else if (str_eq(s->op, "flip")) {
                    to[mirror] = x;
                }
            }
            double *one = to + o * inner + i;
            if (str_eq(s->op, "sum") || str_eq(s->op, "mean")) {
                *one = s->op[0] == 's' ? sum : sum / (double)n;
            } else if (str_eq(s->op, "prod")) {
                *one = product;
            } else if (s->op[0] == 'm' || s->op[0] == 'a') {
                *one = s->op[0] == 'a' ? (double)best : from[(o * n + best) * inner + i];
            }
        }
    }
}

static void run_join(Run *run, const Stmt *s) {
    double *to = room(run, s->out);
    int64_t outer = 1, n = 0;
    for (int i = 0; i < s->axis; i++) {
        outer *= s->out->dim[i];
    }
    for (int64_t o = 0; o < outer; o++) {
        for (int k = 0; k < s->nfrom; k++) {
            int64_t part = count_of(s->from[k]) / outer;
            memcpy(to + n, run->at[s->from[k]->id] + o * part, sizeof *to * (size_t)part);
            n += part;
        }
    }
}

static void run_list(Run *run, const Stmts *list);

static void run_loop(Run *run, const Stmt *s) {
    for (int i = 0; i < s->carry.count; i++) {
        run->at[s->carry.at[i].var->id] = run->at[s->carry.at[i].start->id];
    }
    double *stack[8];
    for (int i = 0; i < s->emit.count; i++) {
        stack[i] = room(run, s->emit.at[i].out);
    }
    for (int64_t t = 0; t < s->trip; t++) {
        run->loop[s->loop] = t;
        run_list(run, &s->body);
        for (int i = 0; i < s->emit.count; i++) {
            const RtEmit *e = &s->emit.at[i];
            int64_t inner = 1, n = count_of(e->of);
            for (int k = e->axis < 0 ? 0 : e->axis; k < e->of->rank; k++) {
                inner *= e->of->dim[k];
            }
            for (int64_t at = 0; at < n; at++) {
                stack[i][(at / inner * s->trip + t) * inner + at % inner] = run->at[e->of->id][at];
            }
        }
        double *next[8];
        for (int i = 0; i < s->carry.count; i++) {
            next[i] = run->at[s->carry.at[i].next->id];
        }
        for (int i = 0; i < s->carry.count; i++) {
            run->at[s->carry.at[i].var->id] = next[i];
        }
    }
}

static void run_list(Run *run, const Stmts *list) {
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        switch (s->kind) {
        case ST_POINT: {
            double *to = room(run, s->out);
            for (int64_t at = 0, n = count_of(s->out); at < n; at++) {
                to[at] = element(run, s->e, at);
            }
            break;
        }
        case ST_INDEX: run_index(run, s); break;
        case ST_SLICE: run_slice(run, s); break;
        case ST_AS: run->at[s->out->id] = run->at[s->from[0]->id]; break;
        case ST_AXES: run_axes(run, s); break;
        case ST_JOIN: run_join(run, s); break;
        case ST_LOOP: run_loop(run, s); break;
        case ST_WHEN: run_list(run, &s->body); break;
        case ST_CALL:
            for (int k = 0; k < s->nfrom; k++) {
                run->at[s->param.at[k]->id] = run->at[s->from[k]->id];
            }
            run_list(run, &s->body);
            run->at[s->out->id] = run->at[s->result->id];
            break;
        }
    }
}

double **text_meaning(Arena *arena, const RandomText *r, const RtEntry *entry,
                      const double *const *input) {
    Run run = {.arena = arena, .r = r};
    run.at = ARENA_ARRAY(arena, double *, r->nvar + 1);
    run.index = ARENA_ARRAY(arena, int64_t, r->nindex + 1);
    run.loop = ARENA_ARRAY(arena, int64_t, r->nloop + 1);
    for (int i = 0; i < entry->input.count; i++) {
        double *at = room(&run, entry->input.at[i]);
        memcpy(at, input[i], sizeof *at * (size_t)count_of(entry->input.at[i]));
    }
    run_list(&run, &entry->body);
    double **result = ARENA_ARRAY(arena, double *, entry->result.count + 1);
    for (int i = 0; i < entry->result.count; i++) {
        result[i] = run.at[entry->result.at[i]->id];
    }
    return result;
}
