/* init_table: see the header. Sizes follow from the number of rows to train on alone: a sixteenth
 * of them is the width, a tenth the batch, and epochs are as many as make some 660 updates. */
#define _GNU_SOURCE
#include "compiler/driver/init_table.h"

#include "emit/write.h"
#include "runtime/csv.h"

enum {
    HELD = 5,       /* each fifth row is held out ... */
    ROWS_HELD = 10, /* ... where there are so many */
    UPDATES = 660,
    MOST_PARTS = 64,  /* the most runs of columns: each is a field */
    COLUMNS_SAID = 24 /* the most columns that comments name one by one */
};

/* Columns that stand side by side and are all numbers. */
typedef struct {
    int first, count;
} Part;

typedef struct {
    Compile *c;
    Fills *fills;
    Table t;
    VEC(Part) part;
    int features;
    bool classes; /* else a number */
    int first;    /* class: 0 or 1 */
} Choice;

/* A line about the table. */
static int refuse(Choice *ch, int code, const char *message) {
    fprintf(ch->c->diag.out, "mdlc: %s: %s\n", ch->t.path, message);
    return code;
}

static void tell(Choice *ch, const char *message) {
    (void)refuse(ch, EXIT_OK, message);
}

static bool is_constant(const TableColumn *column) {
    return column->low == column->high;
}

/* "'Smith' in line 2 is no number" */
static const char *why_not(Choice *ch, const TableColumn *column) {
    Arena *arena = &ch->c->arena;
    long long line = (long long)column->wrong_line;
    md_number n;
    if (!column->wrong[0]) {
        return str_printf(arena, "the cell in line %lld is empty", line);
    }
    return str_printf(arena, "%s in line %lld is %s", table_shown(arena, column->wrong), line,
                      md_parse_value(column->wrong, &n) ? "too large for f32" : "no number");
}

/* Rows to learn from, and something beside the target. */
static int check_size(Choice *ch) {
    const Table *t = &ch->t;
    const TableColumn *first = &t->column[0];
    if (t->columns == 1 && first->wrong && strpbrk(first->wrong, ";\t")) {
        return refuse(ch, EXIT_SOURCE,
                      "one column alone, with ';' or tabs inside: cells are separated by commas");
    }
    if (t->columns == 1) {
        return refuse(ch, EXIT_SOURCE,
                      "one column alone: a model needs at least one to learn from, and its "
                      "target");
    }
    if (t->rows < 2) {
        return refuse(ch, EXIT_SOURCE,
                      t->rows == 0 ? "a header and no rows"
                                   : "one row alone: a model learns from at least two");
    }
    return EXIT_OK;
}

/* Emitted programs take the first row for a header where a column that they read has a name. */
static int check_header(Choice *ch) {
    const Table *t = &ch->t;
    bool numbers = false, shows = false;
    for (int i = 0; i < t->columns; i++) {
        const TableColumn *column = &t->column[i];
        numbers = numbers || !column->wrong;
        shows = shows || (!column->wrong && column->name && md_csv_is_name(column->name));
    }
    bool good = t->header ? shows || !numbers : !t->odd_header;
    return good ? EXIT_OK
                : refuse(ch, EXIT_SOURCE,
                         "the first line is no row of numbers, and no name in it that stands above "
                         "numbers starts with a letter or '_', by which a program knows a header");
}

/* ---- the target ------------------------------------------------------------------------------ */

/* Labels of a class: integers from 0 or 1, at most 256 kinds. */
static bool could_be_classes(const TableColumn *y) {
    return y->whole && (y->low == 0 || y->low == 1) && y->high > y->low &&
           y->high - y->low < TABLE_CLASSES;
}

/* They are, if all of them are there and few: a count may begin at 0 too. */
static bool looks_like_classes(const Table *t) {
    const TableColumn *y = &t->column[t->target];
    if (!could_be_classes(y)) {
        return false;
    }
    int64_t kinds = (int64_t)(y->high - y->low) + 1;
    for (int64_t k = 0; k < kinds; k++) {
        if (!t->seen[(int64_t)y->low + k]) {
            return false;
        }
    }
    return kinds <= 2 || 50 * kinds <= t->rows || (kinds <= 20 && 3 * kinds <= t->rows);
}

/* What the target is: by the template, else by its values. */
static int choose_kind(Choice *ch, const Embed **template) {
    const TableColumn *y = &ch->t.column[ch->t.target];
    Arena *arena = &ch->c->arena;
    const char *name = table_column_name(arena, &ch->t, ch->t.target);
    if (y->wrong) {
        return refuse(ch, EXIT_SOURCE,
                      str_printf(arena,
                                 "%s is what the model should say, but %s; write classes as 0, 1, "
                                 "2 and so on, or name another column by --target",
                                 name, why_not(ch, y)));
    }
    if (is_constant(y)) {
        return refuse(ch, EXIT_SOURCE,
                      str_printf(arena,
                                 "%s is what the model should say, but it is %g in every row; name "
                                 "another column by --target",
                                 name, (double)y->low));
    }
    if (*template == template_find("classifier") && !could_be_classes(y)) {
        return refuse(ch, EXIT_SOURCE,
                      str_printf(arena,
                                 "%s holds %s %g to %g; classes are integers from 0 or 1, at most "
                                 "%d of them; 'mdlc init regression' takes it as a number",
                                 name, y->whole ? "integers from" : "numbers from", (double)y->low,
                                 (double)y->high, TABLE_CLASSES));
    }
    ch->classes =
        *template ? *template == template_find("classifier") : looks_like_classes(&ch->t);
    ch->first = ch->classes ? (int)y->low : 0;
    *template = template_find(ch->classes ? "classifier" : "regression");
    return EXIT_OK;
}

/* ---- columns --------------------------------------------------------------------------------- */

static void add_column(Choice *ch, int i) {
    Part *last = ch->part.count ? &ch->part.at[ch->part.count - 1] : NULL;
    if (last && last->first + last->count == i) {
        last->count++;
    } else {
        const Part part = {i, 1};
        VEC_PUSH(&ch->c->arena, &ch->part, part);
    }
    ch->features++;
}

/* Columns that are the same in every row stay where they stand between others, so that one field
 * reads them all; standardize makes them 0. */
static void drop_constant_parts(Choice *ch) {
    int kept = 0;
    for (int i = 0; i < ch->part.count; i++) {
        const Part part = ch->part.at[i];
        bool varies = false;
        for (int k = 0; k < part.count; k++) {
            varies = varies || !is_constant(&ch->t.column[part.first + k]);
        }
        ch->features -= varies ? 0 : part.count;
        ch->part.at[kept] = part;
        kept += varies;
    }
    ch->part.count = kept;
}

static int choose_columns(Choice *ch) {
    const Table *t = &ch->t;
    int varying = 0, bad = -1;
    for (int i = 0; i < t->columns; i++) {
        if (i == t->target) {
            continue;
        }
        if (t->column[i].wrong) {
            bad = bad < 0 ? i : bad;
            continue;
        }
        add_column(ch, i);
        varying += !is_constant(&t->column[i]);
    }
    Arena *arena = &ch->c->arena;
    if (varying == 0) {
        const char *cause = bad < 0
                                ? "all others are the same in every row"
                                : str_printf(arena, "in %s %s", table_column_name(arena, t, bad),
                                             why_not(ch, &t->column[bad]));
        return refuse(ch, EXIT_SOURCE,
                      str_printf(arena, "no column beside the target teaches anything: %s", cause));
    }
    drop_constant_parts(ch);
    if (ch->part.count > MOST_PARTS) {
        return refuse(ch, EXIT_SOURCE,
                      str_printf(arena,
                                 "the columns of numbers stand in %d groups, with others in "
                                 "between; at most %d can be read: sort the columns",
                                 ch->part.count, MOST_PARTS));
    }
    return EXIT_OK;
}

/* ---- what is said of them -------------------------------------------------------------------- */

/* In the model columns count from 0, as f.column does. */
static const char *column_note(Choice *ch, int i) {
    const char *name = ch->t.column[i].name;
    return str_printf(&ch->c->arena, "%d%s%s", i, name ? " " : "",
                      name ? table_shown(&ch->c->arena, name) : "");
}

static void report_columns(Choice *ch) {
    const Table *t = &ch->t;
    Arena *arena = &ch->c->arena;
    int said = 0, constant = 0, left_out = 0, more = 0;
    for (int i = 0; i < t->columns; i++) {
        const TableColumn *column = &t->column[i];
        bool same = !column->wrong && is_constant(column);
        left_out += column->wrong != NULL;
        constant += same;
        if (!column->wrong && !same) {
            continue;
        }
        if (said == 5) {
            more++;
            continue;
        }
        said++;
        const char *name = table_column_name(arena, t, i);
        tell(ch, same ? str_printf(arena, "%s is %g in every row and teaches nothing", name,
                                   (double)column->low)
                      : str_printf(arena, "%s is left out: %s", name, why_not(ch, column)));
    }
    if (more) {
        tell(ch, str_printf(arena, "in all %d columns are left out and %d the same in every row",
                            left_out, constant));
    }
}

static void report_choice(Choice *ch) {
    const Table *t = &ch->t;
    Arena *arena = &ch->c->arena;
    const char *name = table_column_name(arena, t, t->target);
    const char *what = ch->classes
                           ? str_printf(arena, "%d classes",
                                        (int)(t->column[t->target].high - (float)ch->first) + 1)
                           : "a number";
    tell(ch, str_printf(arena, "%lld rows%s; %s is taken for %s, from %d other%s",
                        (long long)t->rows, t->header ? " and a header" : "", name, what,
                        ch->features, ch->features == 1 ? "" : "s"));
    report_columns(ch);
}

static const char *about(Choice *ch) {
    const Table *t = &ch->t;
    Arena *arena = &ch->c->arena;
    Text out = {.arena = arena};
    text_printf(&out, "// Made for %s: %lld rows of %d columns%s. Here columns count from 0.",
                table_shown(arena, path_base(t->path)), (long long)t->rows, t->columns,
                t->header ? ", with a header" : "");
    int said = 0, constant = 0;
    for (int i = 0; i < t->columns; i++) {
        const TableColumn *column = &t->column[i];
        if (column->wrong && said++ < COLUMNS_SAID) {
            text_printf(&out, "\n// Left out is column %s: %s.", column_note(ch, i),
                        why_not(ch, column));
        }
    }
    if (said > COLUMNS_SAID) {
        text_printf(&out, "\n// Left out are %d more.", said - COLUMNS_SAID);
    }
    for (int i = 0; i < t->columns; i++) {
        const TableColumn *column = &t->column[i];
        if (!column->wrong && is_constant(column) && constant++ < COLUMNS_SAID) {
            text_printf(&out, "%s %d",
                        constant == 1
                            ? "\n// Of no use, because it is the same in every row: column"
                            : ", column",
                        i);
        }
    }
    text_add(&out, constant > COLUMNS_SAID ? " and others." : constant ? "." : "");
    return out.at;
}

/* ---- places of the template ------------------------------------------------------------------ */

/* Fields, what joins them in the train, and what does so in an entry that is given raw rows. */
static void fill_columns(Choice *ch) {
    Arena *arena = &ch->c->arena;
    Text fields = {.arena = arena}, gather = {.arena = arena}, normal = {.arena = arena},
         joined = {.arena = arena};
    bool one = ch->part.count == 1;
    int at = 0;
    text_add(&gather, "");
    for (int i = 0; i < ch->part.count; i++) {
        const Part *part = &ch->part.at[i];
        for (int k = 0; ch->t.column && ch->features <= COLUMNS_SAID && k < part->count; k++) {
            const TableColumn *column = &ch->t.column[part->first + k];
            text_printf(&fields, "// %s, %g..%g\n", column_note(ch, part->first + k),
                        (double)column->low, (double)column->high);
        }
        const char *x = one ? "x" : str_printf(arena, "x%d", i + 1);
        const char *z = one ? "z" : str_printf(arena, "z%d", i + 1);
        const char *extent = one ? "N" : str_printf(arena, "%d", part->count);
        text_printf(&fields, "%s: f32[%s] = standardize(f.columns(%d..%d));%s", x, extent,
                    part->first, part->first + part->count, i + 1 < ch->part.count ? "\n" : "");
        if (one) {
            text_add(&normal, "z[b, i] = (x[b, i] - table.x.mean[i]) / table.x.std[i];");
        } else {
            text_printf(&normal,
                        "%s[b, i < %d] = (x[b, i%s] - table.%s.mean[i]) / table.%s.std[i];\n", z,
                        part->count, at ? str_printf(arena, " + %d", at) : "", x, x);
            text_printf(&gather, "%s%s", i ? ", " : "", x);
            text_printf(&joined, "%s%s", i ? ", " : "", z);
        }
        at += part->count;
    }
    if (!one) {
        text_printf(&normal, "z = concat(%s);", joined.at);
    }
    init_fill(ch->c, ch->fills, "fields", fields.at);
    init_fill(ch->c, ch->fills, "gather",
              one ? "" : str_printf(arena, "x = concat(%s);", gather.at));
    init_fill(ch->c, ch->fills, "normal", normal.at);
    init_fill_int(ch->c, ch->fills, "features", ch->features);
}

/* The largest power of two up to `most`, within lo..hi. */
static int64_t power_of_two(int64_t most, int64_t lo, int64_t hi) {
    int64_t n = lo;
    while (2 * n <= most && 2 * n <= hi) {
        n *= 2;
    }
    return n;
}

static void fill_sizes(Choice *ch, int64_t rows, int classes) {
    Compile *c = ch->c;
    bool held = rows >= ROWS_HELD;
    int64_t train = held ? rows - rows / HELD : rows;
    int64_t batch = power_of_two(train / 10 > 8 ? train / 10 : 8, 2, 128);
    while (batch > train) {
        batch /= 2;
    }
    int64_t width = power_of_two(train / 16, 8, 256);
    while (width < classes) {
        width *= 2;
    }
    int64_t each = train / batch, epochs = (UPDATES + each - 1) / each;
    init_fill_int(c, ch->fills, "batch", batch);
    init_fill_int(c, ch->fills, "hidden", width);
    init_fill_int(c, ch->fills, "epochs", epochs < 10 ? 10 : epochs);
    init_fill_int(c, ch->fills, "classes", classes);
    init_fill(c, ch->fills, "holdout",
              held ? "// Each fifth row is held out: the net is judged by rows that it has not "
                     "seen.\nholdout every(5);"
                   : "// Too few rows to hold some out: reports are of rows that it has seen.");
}

static void fill_target(Choice *ch, int column, const char *note) {
    Compile *c = ch->c;
    init_fill_int(c, ch->fills, "target", column);
    init_fill(c, ch->fills, "label",
              str_printf(&c->arena, ch->first ? "u8(f.column(%d) - %d)" : "f.column(%d)", column,
                         ch->first));
    init_fill(c, ch->fills, "first", ch->first ? str_printf(&c->arena, " + %d", ch->first) : "");
    init_fill(c, ch->fills, "target_note", note);
}

void init_table_examples(Compile *c, Fills *fills) {
    Choice ch = {.c = c, .fills = fills, .features = 4};
    const Part part = {0, 4};
    VEC_PUSH(&c->arena, &ch.part, part);
    fill_columns(&ch);
    fill_sizes(&ch, 500, 3);
    fill_target(&ch, 4, "");
}

int init_table(Compile *c, const Embed **template, Fills *fills) {
    Choice ch = {.c = c, .fills = fills, .t = {.path = c->opt.data}};
    int code;
    const char *wrong = table_read(&c->arena, &ch.t, c->opt.column, &code);
    if (wrong) {
        fprintf(c->diag.out, "mdlc: %s\n", wrong);
        return code;
    }
    code = check_size(&ch);
    code = code == EXIT_OK ? check_header(&ch) : code;
    code = code == EXIT_OK ? choose_kind(&ch, template) : code;
    code = code == EXIT_OK ? choose_columns(&ch) : code;
    if (code != EXIT_OK) {
        return code;
    }
    report_choice(&ch);
    const TableColumn *y = &ch.t.column[ch.t.target];
    init_fill(c, fills, "about", about(&ch));
    fill_columns(&ch);
    fill_sizes(&ch, ch.t.rows, ch.classes ? (int)y->high - ch.first + 1 : 0);
    const char *name = y->name ? table_shown(&c->arena, y->name) : "";
    fill_target(&ch, ch.t.target,
                ch.classes ? str_printf(&c->arena, "%s%s", y->name ? "  // " : "", name)
                           : str_printf(&c->arena, "  // %s%s%g..%g", name, y->name ? ", " : "",
                                        (double)y->low, (double)y->high));
    return EXIT_OK;
}
