/* text_print: a random text from its tree, see random_text.h. */
#include "random_text.h"

#include <math.h>
#include <string.h>

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
    bool scalar = v->kind == RT_FLOAT && v->rank == 0;
    text_add(out, v->half != TY_ERROR ? elem_name(v->half) : scalar ? "f32" : kinds[v->kind]);
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

/* What stands in front of the carries. */
static void ode_text(RandomText *r, const Stmt *s, Text *out) {
    const RtOde *o = &s->ode;
    text_printf(out, "ode %s from ", s->count->name);
    print(r, o->from, ANY, out);
    text_add(out, " to ");
    print(r, o->to, ANY, out);
    text_printf(out, " using %s(", o->method.name);
    if (o->steps > 0) {
        text_printf(out, "steps = %lld)", (long long)o->steps);
    } else {
        text_printf(out, "rtol = %g, atol = %g, max = %d, first = %g)", o->rtol, o->atol,
                    s->cond ? RT_ATTEMPTS + RT_SEARCH : RT_ATTEMPTS, o->first);
    }
    for (int i = 0; i < o->nat; i++) {
        text_printf(out, o->at[i] == floor(o->at[i]) ? "%s%.1f" : "%s%g", i ? ", " : " at [",
                    o->at[i]);
    }
    text_add(out, o->nat ? "]" : "");
    if (s->cond) {
        text_add(out, " until ");
        print(r, s->cond, ANY, out);
    }
}

static void emit_text(RandomText *r, const Stmt *s, const RtEmit *e, Text *out) {
    text_printf(out, "emit %s", e->out->name);
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

static void loop_text(RandomText *r, const Stmt *s, int indent, Text *out) {
    if (s->form == RT_ODE) {
        ode_text(r, s, out);
    } else if (s->form == RT_WHILE) {
        text_add(out, "while ");
        print(r, s->cond, ANY, out);
        text_printf(out, " max %lld", (long long)s->trip);
    } else {
        text_printf(out, "%s %s < %lld", s->form == RT_REPEAT ? "repeat" : "scan",
                    index_name(r, -1 - s->loop), (long long)s->trip);
    }
    for (int i = 0; i < s->carry.count; i++) {
        const RtCarry *c = &s->carry.at[i];
        text_printf(out, "%s%s = %s", i ? ", " : " carry ", c->var->name, c->start->name);
    }
    if (s->form == RT_WHILE) {
        text_printf(out, ", %s = 0", s->count->name);
    }
    text_add(out, " {\n");
    text_statements(r, &s->body, indent + 4, out);
    for (int i = 0; i < s->emit.count; i++) {
        text_printf(out, "%*s", indent + 4, "");
        emit_text(r, s, &s->emit.at[i], out);
    }
    for (int i = 0; i < s->carry.count; i++) {
        text_printf(out, s->form == RT_ODE ? "%*s%s' = %s;\n" : "%*s%s <- %s;\n", indent + 4, "",
                    s->carry.at[i].var->name, s->carry.at[i].next->name);
    }
    if (s->form == RT_WHILE) {
        text_printf(out, "%*s%s <- %s + 1;\n", indent + 4, "", s->count->name, s->count->name);
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
