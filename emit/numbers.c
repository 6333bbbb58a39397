/* numbers: see the header.
 *
 * A file whose text is what it was is not compiled again, so of the numbers of a model those stand
 * elsewhere that cost nothing there: how often the outermost loops of a kernel run, and constants
 * of floats. An element of a constant table is read in front of a loop as a constant is. What C
 * compilers make other code of stays: loops of few turns, which they write out, strides, and
 * constants that spare a step. The names have a digit in a place where no name of a model has one.
 * Needs finished kernels; gives text. */
#include "emit/numbers.h"

#include "emit/cstyle.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    NUMBERS_INNER = 64, /* turns of an outermost loop without loops inside, at least, */
    NUMBERS_OUTER = 8   /* and of another one */
};

typedef enum { TABLE_I64, TABLE_F32, TABLE_F64, TABLES } Table;

/* By the Expr.id of a constant, the number of an axis, or -1 - that of the first of several. */
typedef struct {
    Table table;
    int key;
    int64_t whole;
    double real;
} Number;

struct Numbers {
    Arena *arena;
    const char *prefix;
    const Kernel *k;
    AxisSet outer;
    VEC(Number) number;
    Text tables;
};

static const struct {
    const char *type, *name;
    Elem elem;
} kinds[TABLES] = {{"int64_t", "64i", TY_I64}, {"float", "32f", TY_F32}, {"double", "64f", TY_F64}};

Numbers *numbers_new(Arena *arena, const char *prefix) {
    Numbers *n = ARENA_NEW(arena, Numbers);
    n->arena = arena;
    n->prefix = prefix;
    n->tables.arena = arena;
    return n;
}

static bool has_loop(const StmtList *list) {
    for (int i = 0; i < list->count; i++) {
        if (list->at[i]->kind == STMT_FOR || list->at[i]->kind == STMT_FOLD) {
            return true;
        }
    }
    return false;
}

/* The outermost loops of so many turns. */
static AxisSet outermost(const Kernel *k, const StmtList *list) {
    AxisSet axes = 0;
    for (int i = 0; i < list->count; i++) {
        const Stmt *st = list->at[i];
        if (st->kind != STMT_FOR && st->kind != STMT_FOLD) {
            continue;
        }
        const bool fold = st->kind == STMT_FOLD;
        const int axis = fold ? st->axes.at[0] : st->axis;
        const bool inner = !has_loop(&st->body) && (!fold || st->axes.count == 1);
        const int64_t least = inner ? NUMBERS_INNER : NUMBERS_OUTER;
        if (k->axis[axis].extent >= least && st->begin == NULL && !st->unroll) {
            axes |= (AxisSet)1 << axis;
        } else if (st->parallel == 0) {
            axes |= outermost(k, &st->body);
        }
    }
    return axes;
}

void numbers_open(Numbers *n, const Kernel *k) {
    n->k = k;
    n->outer = outermost(k, &k->body);
    n->number.count = 0;
}

static const char *table_name(const Numbers *n, Table table) {
    const char *own = n->k->name + strlen(n->prefix);
    return str_printf(n->arena, "%s_%s%s", n->prefix, kinds[table].name, own);
}

static const char *element(Numbers *n, Number number) {
    int place = 0;
    bool known = false;
    for (int i = 0; i < n->number.count && !known; i++) {
        const Number *other = &n->number.at[i];
        known = other->table == number.table && other->key == number.key;
        place += other->table == number.table && !known;
    }
    if (!known) {
        VEC_PUSH(n->arena, &n->number, number);
    }
    return str_printf(n->arena, "%s[%d]", table_name(n, number.table), place);
}

const char *numbers_extent(Numbers *n, int axis) {
    if (n == NULL || (n->outer >> axis & 1) == 0) {
        return NULL;
    }
    return element(n, (Number){TABLE_I64, axis, n->k->axis[axis].extent, 0});
}

const char *numbers_base(Numbers *n, const Index *index) {
    for (int i = 0; n != NULL && i < index->nterm; i++) {
        const Atom *atom = index->term[i].atom;
        const bool outer = atom->kind == ATOM_AXIS && (n->outer >> atom->number & 1);
        const int64_t range = outer ? index->term[i].mul * n->k->axis[atom->number].extent : 0;
        if (range > 0 && index->base > 0 && index->base % range == 0) {
            const int64_t times = index->base / range * index->term[i].mul;
            const char *turns = numbers_extent(n, atom->number);
            return times == 1 ? turns : str_printf(n->arena, "%s * %" PRId64, turns, times);
        }
    }
    return NULL;
}

const char *numbers_turns(Numbers *n, int axis, int64_t turns) {
    return n == NULL ? NULL : element(n, (Number){TABLE_I64, -1 - axis, turns, 0});
}

/* Written out: what a C compiler may leave out. */
static bool is_plain(double value) {
    const double size = fabs(value);
    return !isfinite(value) || size == 0 || size == 1;
}

const char *numbers_constant(Numbers *n, const Expr *e) {
    if (n == NULL || !elem_is_float(e->elem) || is_plain(e->value)) {
        return NULL;
    }
    const Table table = e->elem == TY_F64 ? TABLE_F64 : TABLE_F32;
    return element(n, (Number){table, e->id, 0, e->value});
}

void numbers_close(Numbers *n, Text *out) {
    for (Table table = 0; table < TABLES; table++) {
        Text list = {.arena = n->arena};
        int count = 0;
        for (int i = 0; i < n->number.count; i++) {
            if (n->number.at[i].table == table) {
                text_add(&list, count == 0 ? "\n    " : count % 8 == 0 ? ",\n    " : ", ");
                style_number(&list, kinds[table].elem, n->number.at[i].real, n->number.at[i].whole);
                count++;
            }
        }
        if (count == 0) {
            continue;
        }
        const char *declared = str_printf(n->arena, "MD_SHARED const %s %s[%d]", kinds[table].type,
                                          table_name(n, table), count);
        text_printf(out, "extern %s;\n", declared);
        text_printf(&n->tables, "extern %s;\n%s = {%s\n};\n", declared, declared, list.at);
    }
}

void numbers_plan(Numbers *n, Text *out, const char *declared, const char *value) {
    text_printf(out, "extern MD_SHARED const %s;\n", declared);
    text_printf(&n->tables, "extern MD_SHARED const %s;\nMD_SHARED const %s = {\n%s\n};\n",
                declared, declared, value);
}

const char *call_number(const Emit *e, int64_t number, const char *what) {
    enum { ACROSS = 12 };
    NumberTable *table = e->table;
    if (table == NULL) {
        return str_printf(e->arena, "%" PRId64, number);
    }
    const bool begins = what != NULL || table->column == 0;
    text_printf(&table->list, "%s%s%" PRId64 ",", begins && table->count > 0 ? "\n" : "",
                begins ? "    " : " ", number);
    if (what != NULL) {
        text_add(&table->list, " /* ");
        text_comment(&table->list, what);
        text_add(&table->list, " */");
    }
    table->column = what != NULL ? 0 : (table->column + 1) % ACROSS;
    return str_printf(e->arena, "n_[%d]", table->count++);
}

const Text *numbers_tables(const Numbers *n) {
    return &n->tables;
}
