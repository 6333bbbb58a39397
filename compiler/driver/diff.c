/* diff: two JSON reports beside each other: what of the bound has grown, and whose it is.
 *
 * Numbers of the same name are pairs: of regions, phases, entries (by kind and name), of what is
 * live at the peak of an entry, of tensors. What only one report has is compared with nothing.
 * Contract: needs reports of version 1 (docs/report.md), gives text or JSON, writes no file. */
#include "compiler/driver/diff.h"

#include "compiler/json_read.h"
#include "emit/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { REPORT_LARGEST = 256 << 20 };

typedef struct {
    const char *section, *name;
    bool had, has; /* the first report has the number, the second one does */
    int64_t before, after;
} Row;

/* An object of a list that has a name. */
typedef struct {
    const char *kind, *name; /* kind: of entries, else "" */
    int nth;                 /* among those of the same kind and name */
    const Json *object;
} Named;

typedef struct {
    Named *at;
    int count, capacity;
    Named **sorted; /* by by_name */
} NamedList;

typedef struct {
    Compile *c;
    const Json *before, *after;
    VEC(Row) row; /* what differs, and the total */
} Diff;

/* Numbers of a report count something: what is below 0 is none of them. */
static bool count_of(const Json *object, const char *key, int64_t *count) {
    bool is = json_whole(object, key, count) && *count >= 0;
    *count = is ? *count : 0;
    return is;
}

/* --- files ------------------------------------------------------------------------------------ */

static int bad_report(const Compile *c, const char *path, const char *why) {
    fprintf(c->diag.out, "mdlc: '%s' is no report of mdlc: %s\n", path, why);
    fprintf(c->diag.out, "'mdlc report --format=json FILE.mdl' prints one\n");
    return EXIT_FILE;
}

static int report_read(Compile *c, const char *path, const Json **report) {
    FILE *in = fopen(path, "rb");
    Text text = {.arena = &c->arena};
    char block[65536];
    size_t n = 0;
    text_add(&text, "");
    while (in && text.len <= REPORT_LARGEST && (n = fread(block, 1, sizeof block, in)) > 0) {
        text_addn(&text, block, n);
    }
    if (!in || ferror(in)) {
        fprintf(c->diag.out, "mdlc: cannot %s '%s': %s\n", in ? "read" : "open", path,
                strerror(errno));
    }
    bool unread = !in || ferror(in);
    if (in) {
        fclose(in);
    }
    if (unread) {
        return EXIT_FILE;
    }
    if (text.len > REPORT_LARGEST) {
        return bad_report(c, path, "it has more than 256 MiB");
    }
    const char *fault;
    size_t at;
    *report = json_read(&c->arena, text.at, text.len, &fault, &at);
    int64_t version, total;
    if (!*report) {
        return bad_report(c, path, str_printf(&c->arena, "byte %zu: %s", at, fault));
    }
    if (!json_whole(*report, "version", &version)) {
        return bad_report(c, path, "it has no 'version'");
    }
    if (version != 1) {
        return bad_report(c, path,
                          str_printf(&c->arena, "its version is %lld, and this mdlc reads 1",
                                     (long long)version));
    }
    if (!count_of(json_member(*report, "regions"), "total", &total)) {
        return bad_report(c, path, "it has no 'regions.total'");
    }
    return EXIT_OK;
}

/* --- pairs ------------------------------------------------------------------------------------ */

/* Adds the pair if its numbers differ, or `always`. */
static void add_row(Diff *d, Row row, bool always) {
    bool differs = row.had != row.has || row.before != row.after;
    if ((row.had || row.has) && (differs || always)) {
        VEC_PUSH(&d->c->arena, &d->row, row);
    }
}

static void pair(Diff *d, const char *section, const char *name, const char *key, const Json *a,
                 const Json *b, bool always) {
    Row row = {.section = section, .name = name};
    row.had = count_of(a, key, &row.before);
    row.has = count_of(b, key, &row.after);
    add_row(d, row, always);
}

/* By kind, name and place among those of one kind and name. */
static int by_name(const void *a, const void *b) {
    const Named *x = *(const Named *const *)a, *y = *(const Named *const *)b;
    int kind = strcmp(x->kind, y->kind), name = kind ? kind : strcmp(x->name, y->name);
    return name ? name : (x->nth > y->nth) - (x->nth < y->nth);
}

/* The objects of a list that have names. Several may have the same: buffers of two calls of one
 * layer have. */
static NamedList names_of(Diff *d, const Json *list) {
    NamedList all = {0};
    for (const Json *e = list ? list->first : NULL; e; e = e->next) {
        const char *kind = json_text_of(e, "kind"), *name = json_text_of(e, "name");
        if (name) {
            Named named = {kind ? kind : "", name, all.count, e};
            VEC_PUSH(&d->c->arena, &all, named);
        }
    }
    all.sorted = ARENA_ARRAY(&d->c->arena, Named *, all.count + 1);
    for (int i = 0; i < all.count; i++) {
        all.sorted[i] = &all.at[i];
    }
    qsort(all.sorted, (size_t)all.count, sizeof *all.sorted, by_name);
    for (int i = 0; i < all.count; i++) {
        const Named *last = i > 0 ? all.sorted[i - 1] : NULL;
        Named *own = all.sorted[i];
        bool same = last && str_eq(last->kind, own->kind) && str_eq(last->name, own->name);
        own->nth = same ? last->nth + 1 : 0;
    }
    return all;
}

static const Json *find(const NamedList *all, const Named *like) {
    Named *const *found =
        bsearch(&like, all->sorted, (size_t)all->count, sizeof *all->sorted, by_name);
    return found ? (*found)->object : NULL;
}

/* Calls `each` for the objects of two lists that have one name: those of the second in its order,
 * then what only the first has. */
static void pair_lists(Diff *d, const char *section, const Json *a, const Json *b,
                       void (*each)(Diff *d, const char *section, const Named *name, const Json *a,
                                    const Json *b)) {
    const NamedList had = names_of(d, a), has = names_of(d, b);
    for (int i = 0; i < has.count; i++) {
        each(d, section, &has.at[i], find(&had, &has.at[i]), has.at[i].object);
    }
    for (int i = 0; i < had.count; i++) {
        if (!find(&has, &had.at[i])) {
            each(d, section, &had.at[i], had.at[i].object, NULL);
        }
    }
}

static void pair_bytes(Diff *d, const char *section, const Named *of, const Json *a,
                       const Json *b) {
    pair(d, section, of->name, "bytes", a, b, false);
}

static void pair_entry(Diff *d, const char *what, const Named *of, const Json *a, const Json *b) {
    static const struct {
        const char *key, *name;
    } field[] = {{"arena_bytes", "arena"},
                 {"further_thread_bytes", "each further thread"},
                 {"flops", "FLOPs"},
                 {"flops_again", "FLOPs that run again"},
                 {"flops_more", "FLOPs for the budget"},
                 {"bytes_moved", "bytes moved"},
                 {"predicted_ns", "predicted ns"},
                 {"steps", "steps"}};
    const char *section = str_printf(&d->c->arena, "%s %s", *of->kind ? of->kind : what, of->name);
    for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
        pair(d, section, field[i].name, field[i].key, a, b, false);
    }
    const Json *calls[2] = {json_member(a, "calls"), json_member(b, "calls")};
    Row row = {section, "calls", calls[0] != NULL, calls[1] != NULL, 0, 0};
    row.before = calls[0] ? calls[0]->count : 0;
    row.after = calls[1] ? calls[1]->count : 0;
    add_row(d, row, false);
    const char *peak = str_printf(&d->c->arena, "at the peak of %s", section);
    pair_lists(d, peak, json_member(json_member(a, "peak"), "live"),
               json_member(json_member(b, "peak"), "live"), pair_bytes);
}

static void pair_phases(Diff *d) {
    const Json *a = json_member(d->before, "phases"), *b = json_member(d->after, "phases");
    a = a ? a->first : NULL;
    b = b ? b->first : NULL;
    for (int k = 1; a || b; k++) {
        pair(d, "phases", str_printf(&d->c->arena, "phase %d", k), "total", a, b, false);
        a = a ? a->next : NULL;
        b = b ? b->next : NULL;
    }
}

static void pair_all(Diff *d) {
    static const char *const region[] = {"params", "state", "io", "arena", "apart"};
    const Json *a = json_member(d->before, "regions"), *b = json_member(d->after, "regions");
    pair(d, "memory", "total", "total", a, b, true);
    for (size_t i = 0; i < sizeof region / sizeof *region; i++) {
        pair(d, "memory", region[i], region[i], a, b, false);
    }
    pair(d, "memory", "stack of a thread", "stack_per_thread", d->before, d->after, false);
    pair(d, "memory", "threads", "threads", d->before, d->after, false);
    pair_phases(d);
    pair_lists(d, "entry", json_member(d->before, "entries"), json_member(d->after, "entries"),
               pair_entry);
    pair_lists(d, "tensors", json_member(d->before, "tensors"), json_member(d->after, "tensors"),
               pair_bytes);
}

/* --- what is printed -------------------------------------------------------------------------- */

static void print_share(Text *out, int64_t before, int64_t more) {
    if (before > 0) {
        text_printf(out, "  %+.1f %%", 100.0 * (double)more / (double)before);
    }
}

static void print_text(const Diff *d, Text *out) {
    const char *section = "";
    for (int i = 0; i < d->row.count; i++) {
        const Row *row = &d->row.at[i];
        if (!str_eq(section, row->section)) {
            section = row->section;
            text_printf(out, "%s%s\n", i > 0 ? "\n" : "", section);
        }
        text_printf(out, "  %-32s", row->name);
        text_printf(out, row->had ? " %14lld" : "              -%.0lld", (long long)row->before);
        text_printf(out, row->has ? " %14lld" : "              -%.0lld", (long long)row->after);
        if (row->before != row->after) {
            text_printf(out, " %+14lld", (long long)(row->after - row->before));
            print_share(out, row->before, row->after - row->before);
        }
        text_add(out, "\n");
    }
}

static void json_side(Text *out, const char *key, bool has, int64_t value) {
    if (has) {
        json_number(out, key, value);
    } else {
        text_printf(out, ",\"%s\":null", key);
    }
}

static void print_json(const Diff *d, int64_t allowed, bool grown, Text *out) {
    const Row *total = &d->row.at[0];
    text_add(out, "{\"version\":1");
    json_number(out, "before", total->before);
    json_number(out, "after", total->after);
    json_number(out, "allowed", allowed);
    text_printf(out, ",\"grown\":%s,\"rows\":[", grown ? "true" : "false");
    for (int i = 0; i < d->row.count; i++) {
        const Row *row = &d->row.at[i];
        text_add(out, i > 0 ? ",\n {\"section\":" : "\n {\"section\":");
        json_string(out, row->section);
        json_text(out, "name", row->name);
        json_side(out, "before", row->had, row->before);
        json_side(out, "after", row->has, row->after);
        text_add(out, "}");
    }
    text_add(out, "]}\n");
}

/* The bytes that the total may grow by. */
static int64_t allowed_growth(const Options *opt, int64_t before) {
    double share = opt->growth_share / 100 * (double)before;
    return opt->growth_share >= 0 ? (int64_t)(share < 9e18 ? share : 9e18) : opt->growth;
}

int diff_run(Compile *c) {
    Diff d = {.c = c};
    int code = report_read(c, c->opt.input, &d.before);
    code = code == EXIT_OK ? report_read(c, c->opt.other, &d.after) : code;
    if (code != EXIT_OK) {
        return code;
    }
    pair_all(&d);
    const Row *total = &d.row.at[0];
    const int64_t allowed = allowed_growth(&c->opt, total->before);
    const bool grown = total->after - total->before > allowed;
    Text out = {.arena = &c->arena};
    if (c->opt.report == REPORT_JSON) {
        print_json(&d, allowed, grown, &out);
    } else {
        print_text(&d, &out);
    }
    fwrite(out.at, 1, out.len, c->out);
    if (grown) {
        fprintf(c->diag.out, "mdlc: the total has grown by %lld bytes; --max-growth allows %lld\n",
                (long long)(total->after - total->before), (long long)allowed);
    }
    return grown ? EXIT_SOURCE : EXIT_OK;
}
