/* what_if: what changes of a model would do to its memory and work.
 *
 * Nothing is estimated: each change is made, in the text of the model or in the options, and the
 * result is planned as a report of its own, whose JSON is read. Looked at is the train with the
 * largest arena. Its batch is the dimension that gives twice the rows when it is doubled. The curve
 * is what budgets give, from the least that is found to what the program takes without one, as far
 * as no other plan takes neither more bytes nor more FLOPs.
 * Contract: needs a model file, gives text, JSON or a page on Compile.out, writes no file. */
#include "compiler/driver/what_if.h"

#include "compiler/driver/files.h"
#include "compiler/driver/page.h"
#include "compiler/driver/pipeline.h"
#include "compiler/json_read.h"
#include "emit/json.h"
#include "lang/ast.h"

#include <stdlib.h>
#include <string.h>

enum {
    STEPS_OF_CURVE = 8000, /* planned for it in all: a search is slow where there are many */
    CURVE = 8,             /* budgets of the curve that keep the bits, */
    CURVE_ROUNDING = 4,    /* and that do not */
    LARGEST_BITS = 30      /* of a batch that is tried */
};

typedef struct {
    int code;
    int64_t total;      /* bytes that it declares, or would need; 0: it is no program */
    const Json *report; /* NULL: the budget is not met, or it is no program */
} Planned;

/* A plan that is shown. */
typedef struct {
    const char *change;
    bool fits, known; /* known: it has the numbers below */
    int64_t total, arena, flops, predicted;
    int64_t budget; /* of the curve */
    bool rounding;
    Text text; /* of the curve: the JSON of its report */
} Shown;

typedef VEC(Shown) ShownList;

typedef struct {
    Compile *c;
    const char *text;
    size_t length;
    const Ast *file;  /* its tree */
    const char *name; /* of the train */
    const Ast *train; /* NULL: there is none */
    const char *dim;  /* of its batch; NULL: it was not found */
    int64_t batch, rows, steps;
    ShownList change, curve;
    Shown base, largest;
} WhatIf;

/* --- plans ------------------------------------------------------------------------------------ */

/* The report of a text under options, in the arena of `c`, its JSON as text too (or NULL); messages
 * go nowhere. */
static Planned plan_as(Compile *c, const Options *opt, const char *text, size_t length,
                       Text *as_text) {
    Planned planned = {0};
    Compile own = {.opt = *opt};
    char *said = NULL, *printed = NULL;
    size_t nsaid = 0, nprinted = 0;
    FILE *messages = open_memstream(&said, &nsaid), *out = open_memstream(&printed, &nprinted);
    if (!messages || !out) {
        BUG("no memory for a stream");
    }
    diag_open(&own.diag, &own.arena, messages);
    own.out = out;
    own.opt.report = REPORT_JSON;
    own.opt.stats = false;
    planned.code = pipeline_text(&own, text, length);
    planned.total = own.total_bytes;
    arena_free(&own.arena);
    fclose(messages);
    fclose(out);
    if (planned.code == EXIT_OK) {
        const char *fault;
        size_t at;
        planned.report = json_read(&c->arena, printed, nprinted, &fault, &at);
    }
    if (planned.report && as_text) {
        text_addn(as_text, printed, nprinted);
    }
    free(said);
    free(printed);
    return planned;
}

static Planned plan(Compile *c, const Options *opt, const char *text, size_t length) {
    return plan_as(c, opt, text, length, NULL);
}

static const Json *train_of(const WhatIf *w, const Json *report) {
    const Json *entries = json_member(report, "entries");
    for (const Json *e = entries ? entries->first : NULL; e; e = e->next) {
        const char *kind = json_text_of(e, "kind"), *name = json_text_of(e, "name");
        if (kind && name && str_eq(kind, "train") && str_eq(name, w->name)) {
            return e;
        }
    }
    return NULL;
}

static Shown shown(const WhatIf *w, const char *change, Planned planned) {
    const Json *train = train_of(w, planned.report);
    Shown s = {.change = change, .fits = planned.code == EXIT_OK, .total = planned.total};
    s.known = json_whole(train, "arena_bytes", &s.arena) && json_whole(train, "flops", &s.flops) &&
              json_whole(train, "predicted_ns", &s.predicted);
    return s;
}

/* Plans a changed text, and adds what it gives where that is a program. */
static void try_text(WhatIf *w, const char *change, const Options *opt, const Text *text) {
    Planned planned = plan(w->c, opt, text ? text->at : w->text, text ? text->len : w->length);
    if (planned.total > 0) {
        Shown s = shown(w, change, planned);
        VEC_PUSH(&w->c->arena, &w->change, s);
    }
}

/* --- the model -------------------------------------------------------------------------------- */

/* The train of the report with the largest arena. */
static void find_train(WhatIf *w, const Json *report) {
    const Json *entries = json_member(report, "entries");
    int64_t most = -1, arena;
    for (const Json *e = entries ? entries->first : NULL; e; e = e->next) {
        const char *kind = json_text_of(e, "kind");
        if (kind && str_eq(kind, "train") && json_whole(e, "arena_bytes", &arena) && arena > most) {
            most = arena;
            w->name = json_text_of(e, "name");
        }
    }
    for (int i = 0; w->name && i < w->file->nkid; i++) {
        const Ast *item = w->file->kid[i];
        w->train = item->kind == AST_TRAIN && str_eq(item->name, w->name) ? item : w->train;
    }
}

/* A clause of the train; NULL: it has none of that name. */
static const Ast *clause(const Ast *train, const char *name) {
    const Ast *block = train->kid[train->nkid - 1];
    for (int i = 0; block && i < block->nkid; i++) {
        const Ast *s = block->kid[i];
        if (s->kind == AST_CLAUSE && str_eq(s->name, name)) {
            return s;
        }
    }
    return NULL;
}

static bool has_budget(const WhatIf *w) {
    bool has = w->c->opt.budget >= 0;
    for (int i = 0; i < w->file->nkid; i++) {
        const Ast *item = w->file->kid[i];
        has = has || (item->kind == AST_TRAIN && clause(item, "budget"));
    }
    return has;
}

/* The text of the model with `more` in the place of a construct, or in front of it. */
static Text edited(const WhatIf *w, Loc at, bool replace, const char *more) {
    Text text = {.arena = &w->c->arena};
    size_t behind = at.at + (replace ? at.len : 0);
    text_addn(&text, w->text, at.at);
    text_add(&text, more);
    text_addn(&text, w->text + behind, w->length - behind);
    return text;
}

/* The options with a dimension set. */
static Options with_dim(const WhatIf *w, const char *name, int64_t value) {
    Options opt = w->c->opt;
    Override *all = ARENA_ARRAY(&w->c->arena, Override, opt.noverride + 1);
    int n = 0;
    for (int i = 0; i < opt.noverride; i++) {
        if (!str_eq(opt.override[i].name, name)) {
            all[n++] = opt.override[i];
        }
    }
    all[n].name = name;
    all[n++].value = str_printf(&w->c->arena, "%lld", (long long)value);
    opt.override = all;
    opt.noverride = n;
    return opt;
}

/* What the dimension is: as -D says, or as it stands in the text; 0: that is no number. */
static int64_t dim_value(const WhatIf *w, const Ast *def) {
    const Ast *init = def->kid[def->nkid - 1];
    double value = init && init->kind == AST_NUMBER ? init->number : 0;
    for (int i = 0; i < w->c->opt.noverride; i++) {
        if (str_eq(w->c->opt.override[i].name, def->name)) {
            value = strtod(w->c->opt.override[i].value, NULL);
        }
    }
    return value >= 1 && value < 1 << LARGEST_BITS ? (int64_t)value : 0;
}

/* The rows of a call: those of its data, or the first extent of what the caller gives, where all of
 * that has the same; 0: not known. */
static int64_t rows_of(const Json *train) {
    int64_t rows;
    if (json_whole(train, "rows", &rows)) {
        return rows;
    }
    const Json *inputs = json_member(train, "inputs");
    for (const Json *in = inputs ? inputs->first : NULL; in; in = in->next) {
        const Json *shape = json_member(in, "shape"), *extent = shape ? shape->first : NULL;
        if (extent && rows != 0 && rows != extent->value) {
            return 0;
        }
        rows = extent ? extent->value : rows;
    }
    return rows;
}

/* Is it the batch? With twice of it the train takes twice the rows. */
static bool is_batch(WhatIf *w, const char *name, int64_t value) {
    Options opt = with_dim(w, name, 2 * value);
    opt.budget = INT64_MAX;
    Planned twice = plan(w->c, &opt, w->text, w->length);
    return rows_of(train_of(w, twice.report)) == 2 * w->rows;
}

static void find_batch(WhatIf *w, const Json *report) {
    w->rows = rows_of(train_of(w, report));
    if (w->rows == 0) {
        return;
    }
    for (int i = 0; i < w->file->nkid && !w->dim; i++) {
        const Ast *dims = w->file->kid[i];
        for (int k = 0; dims->kind == AST_DIMS && k < dims->nkid && !w->dim; k++) {
            int64_t value = dim_value(w, dims->kid[k]);
            if (value > 0 && w->rows % value == 0 && is_batch(w, dims->kid[k]->name, value)) {
                w->dim = dims->kid[k]->name;
                w->batch = value;
            }
        }
    }
}

/* --- changes ---------------------------------------------------------------------------------- */

static void try_batches(WhatIf *w) {
    Arena *arena = &w->c->arena;
    const int64_t tried[] = {w->batch / 2, 2 * w->batch};
    for (int i = w->batch % 2 == 0 ? 0 : 1; i < 2; i++) {
        Options opt = with_dim(w, w->dim, tried[i]);
        try_text(w, str_printf(arena, "-D %s=%lld", w->dim, (long long)tried[i]), &opt, NULL);
    }
    const Ast *optimizer = clause(w->train, "optimizer");
    if (optimizer && !clause(w->train, "accumulate") && w->batch % 2 == 0) {
        Options opt = with_dim(w, w->dim, w->batch / 2);
        Text text = edited(w, optimizer->loc, false, "accumulate 2; ");
        try_text(w,
                 str_printf(arena, "accumulate 2; -D %s=%lld: the same rows in two parts", w->dim,
                            (long long)(w->batch / 2)),
                 &opt, &text);
    }
}

static void try_changes(WhatIf *w) {
    const Options *now = &w->c->opt;
    const Ast *clip = clause(w->train, "clip"), *optimizer = clause(w->train, "optimizer");
    if (w->dim) {
        try_batches(w);
    }
    if (clip) {
        Text text = edited(w, clip->loc, true, "");
        try_text(w, "without clip", now, &text);
    }
    if (optimizer) {
        Text text = edited(w, optimizer->loc, true, "optimizer sgd(lr = 0.1);");
        try_text(w, "optimizer sgd(lr = 0.1): no slots", now, &text);
    }
    if (!clause(w->train, "precision") && now->half == TY_ERROR && !now->target) {
        Options opt = *now;
        opt.float_type = TY_F32;
        opt.half = TY_BF16;
        try_text(w, "--precision=bf16", &opt, NULL);
        opt.no_master = true;
        try_text(w, "--precision='bf16(master=false)'", &opt, NULL);
    }
    if (now->threads > 1) {
        Options opt = *now;
        opt.threads = 1;
        try_text(w, "--threads=1", &opt, NULL);
    }
}

/* The most of the batch that the budget allows. */
static void find_largest(WhatIf *w) {
    int64_t fits = 0, above = 0;
    for (int64_t n = w->batch; n < INT64_C(1) << LARGEST_BITS && above == 0; n *= 2) {
        Options opt = with_dim(w, w->dim, n);
        Planned planned = plan(w->c, &opt, w->text, w->length);
        if (planned.code != EXIT_OK && planned.code != EXIT_BUDGET) {
            return; /* other shapes depend on it */
        }
        fits = planned.code == EXIT_OK ? n : fits;
        above = planned.code == EXIT_OK ? 0 : n;
    }
    while (above - fits > 1) {
        int64_t n = fits + (above - fits) / 2;
        Options opt = with_dim(w, w->dim, n);
        bool good = plan(w->c, &opt, w->text, w->length).code == EXIT_OK;
        fits = good ? n : fits;
        above = good ? above : n;
    }
    if (fits > 0 && above > 0) {
        Options opt = with_dim(w, w->dim, fits);
        const char *change = str_printf(&w->c->arena, "-D %s=%lld", w->dim, (long long)fits);
        w->largest = shown(w, change, plan(w->c, &opt, w->text, w->length));
    }
}

/* --- the curve -------------------------------------------------------------------------------- */

static void add_budget(WhatIf *w, int64_t budget, bool rounding) {
    Options opt = w->c->opt;
    Text text = {.arena = &w->c->arena};
    opt.budget = budget;
    opt.rounding = rounding;
    Shown s = shown(w, "", plan_as(w->c, &opt, w->text, w->length, &text));
    s.budget = budget;
    s.rounding = rounding;
    s.text = text;
    if (s.known) {
        VEC_PUSH(&w->c->arena, &w->curve, s);
    }
}

/* By bytes, then by FLOPs, what keeps the bits first. */
static int by_total(const void *a, const void *b) {
    const Shown *x = a, *y = b;
    return x->total != y->total   ? (x->total < y->total ? -1 : 1)
           : x->flops != y->flops ? (x->flops < y->flops ? -1 : 1)
                                  : (int)x->rounding - (int)y->rounding;
}

static void find_curve(WhatIf *w) {
    const int64_t within = STEPS_OF_CURVE / (w->steps > 0 ? w->steps : 1);
    int64_t most = 0;
    for (int rounding = 0; rounding < 2; rounding++) {
        Options opt = w->c->opt;
        opt.budget = INT64_MAX;
        opt.rounding = rounding > 0;
        most = most > 0 ? most : plan(w->c, &opt, w->text, w->length).total;
        opt.budget = 1;
        int64_t least = plan(w->c, &opt, w->text, w->length).total;
        const int usual = rounding > 0 ? CURVE_ROUNDING : CURVE;
        const int count = within < usual ? (int)within + 1 : usual;
        for (int k = 0; k < count && least < most; k++) {
            add_budget(w, least + (most - least) / count * k, rounding > 0);
        }
    }
    add_budget(w, most, false);
    ShownList all = w->curve;
    w->curve = (ShownList){0};
    qsort(all.at, (size_t)all.count, sizeof *all.at, by_total);
    /* What keeps the bits is hidden by nothing that does not. */
    int64_t fewest[2] = {INT64_MAX, INT64_MAX};
    for (int i = 0; i < all.count; i++) {
        const Shown *s = &all.at[i];
        if (s->flops < fewest[s->rounding]) {
            VEC_PUSH(&w->c->arena, &w->curve, *s);
            fewest[true] = s->flops < fewest[true] ? s->flops : fewest[true];
            fewest[false] = s->rounding ? fewest[false] : s->flops;
        }
    }
}

/* --- what is printed -------------------------------------------------------------------------- */

static void print_row(const WhatIf *w, const Shown *s, Text *out) {
    text_printf(out, "  %14lld %+14lld", (long long)s->total,
                (long long)(s->total - w->base.total));
    if (s->known) {
        double more = 100.0 * (double)(s->flops - w->base.flops);
        text_printf(out, " %15lld %+7.1f %% %14.1f", (long long)s->flops,
                    w->base.flops > 0 ? more / (double)w->base.flops : 0,
                    1e-3 * (double)s->predicted);
    } else {
        text_printf(out, " %15s %9s %14s", "-", "-", "-");
    }
    text_printf(out, "  %s%s\n", s->change, s->fits ? "" : ": over the budget");
}

static void print_text(WhatIf *w, Text *out) {
    static const char head[] =
        "           total         change           FLOPs    change   predicted us\n";
    if (!w->train) {
        text_add(out, "\nwhat if: the program trains nothing that could be changed\n");
        return;
    }
    text_printf(out, "\nwhat if: each change of '%s' by itself, planned\n%s", w->name, head);
    print_row(w, &w->base, out);
    for (int i = 0; i < w->change.count; i++) {
        print_row(w, &w->change.at[i], out);
    }
    if (w->largest.total > 0) {
        text_printf(out, "the largest batch within the budget\n%s", head);
        print_row(w, &w->largest, out);
    }
    text_printf(out, "less memory for more work: what budgets give\n%s", head);
    for (int i = 0; i < w->curve.count; i++) {
        Shown s = w->curve.at[i];
        s.change = str_printf(&w->c->arena, "--budget=%s%lld%s%s", s.rounding ? "'" : "",
                              (long long)s.total, s.rounding ? ", rounding'" : "",
                              i + 1 == w->curve.count ? ", or none" : "");
        print_row(w, &s, out);
    }
}

static void json_plan(const Shown *s, Text *out) {
    text_printf(out, "\"total\":%lld,\"fits\":%s", (long long)s->total, s->fits ? "true" : "false");
    if (s->known) {
        json_number(out, "arena", s->arena);
        json_number(out, "flops", s->flops);
        json_number(out, "predicted_ns", s->predicted);
    }
}

static void print_json(const WhatIf *w, Text *out) {
    if (!w->train) {
        text_add(out, ",\n \"what_if\":null}\n");
        return;
    }
    text_add(out, ",\n \"what_if\":{\"train\":");
    json_string(out, w->name);
    text_add(out, ",\"changes\":[");
    for (int i = 0; i < w->change.count; i++) {
        text_add(out, i > 0 ? ",\n  {\"change\":" : "\n  {\"change\":");
        json_string(out, w->change.at[i].change);
        text_add(out, ",");
        json_plan(&w->change.at[i], out);
        text_add(out, "}");
    }
    text_add(out, "]");
    if (w->largest.total > 0) {
        text_add(out, ",\n  \"largest_batch\":{\"change\":");
        json_string(out, w->largest.change);
        text_add(out, ",");
        json_plan(&w->largest, out);
        text_add(out, "}");
    }
    text_add(out, ",\n  \"curve\":[");
    for (int i = 0; i < w->curve.count; i++) {
        const Shown *s = &w->curve.at[i];
        text_printf(out, "%s\n  {\"budget\":%lld,\"rounding\":%s,", i > 0 ? "," : "",
                    (long long)s->total, s->rounding ? "true" : "false");
        json_plan(s, out);
        text_add(out, "}");
    }
    text_add(out, "]}}\n");
}

/* The page of the JSON report, with the plans of the curve. */
static void print_page(WhatIf *w, const Text *report, Text *out) {
    Text plans = {.arena = &w->c->arena};
    text_add(&plans, "[");
    for (int i = 0; i < w->curve.count; i++) {
        const Shown *s = &w->curve.at[i];
        text_printf(&plans, "%s{\"label\":\"budget %lld%s\",\"report\":", i > 0 ? "," : "",
                    (long long)s->total, s->rounding ? ", rounding" : "");
        text_addn(&plans, s->text.at, s->text.len);
        text_add(&plans, "}");
    }
    text_add(&plans, "]");
    page_print(report, &plans, out);
}

/* The report itself, as it is printed; messages as always. */
static int report_text(Compile *c, const char *text, size_t length, Text *to) {
    char *printed = NULL;
    size_t n = 0;
    FILE *out = c->out, *own = open_memstream(&printed, &n);
    if (!own) {
        BUG("no memory for a stream");
    }
    c->out = own;
    int code = pipeline_text(c, text, length);
    c->out = out;
    fclose(own);
    text_addn(to, printed, n);
    free(printed);
    return code;
}

int what_if_run(Compile *c) {
    Text text = {.arena = &c->arena}, out = {.arena = &c->arena}, page = {.arena = &c->arena};
    const bool html = c->opt.report == REPORT_HTML;
    c->opt.report = html ? REPORT_JSON : c->opt.report;
    int code = files_read(c, &text);
    code = code == EXIT_OK ? report_text(c, text.at, text.len, &out) : code;
    if (code != EXIT_OK) {
        return code;
    }
    WhatIf w = {.c = c, .text = text.at, .length = text.len};
    Compile parser = {0};
    diag_open(&parser.diag, &parser.arena, c->diag.out);
    w.file = parse_file(&parser, &c->arena,
                        diag_add_source(&parser.diag, c->opt.input, text.at, text.len));
    Planned now = plan(c, &c->opt, text.at, text.len);
    find_train(&w, now.report);
    if (w.train) {
        w.base = shown(&w, "as it is", now);
        (void)json_whole(train_of(&w, now.report), "steps", &w.steps);
        find_batch(&w, now.report);
        try_changes(&w);
        if (w.dim && has_budget(&w)) {
            find_largest(&w);
        }
        find_curve(&w);
    }
    if (c->opt.report == REPORT_JSON) {
        out.len -= strlen("}\n");
        print_json(&w, &out);
    } else {
        print_text(&w, &out);
    }
    if (html) {
        print_page(&w, &out, &page);
    }
    const Text *printed = html ? &page : &out;
    fwrite(printed->at, 1, printed->len, c->out);
    arena_free(&parser.arena);
    return EXIT_OK;
}
