/* SPDX-License-Identifier: 0BSD */
/* plot: `--plot FILE.html`, the curves of a run as one page that needs nothing else.
 *
 * Of each train the loss, the metrics and the further values of its steps, and what its evaluations
 * gave. Of a curve at most MD_PLOT_ROWS points are kept: when they are full every second one goes,
 * and from then on half as many come in. The memory for them is taken before step 0 and has a line
 * of its own. The page is written when the run ends well or is interrupted; of what is not finite
 * there is a gap. Needs log.h; gives exit codes. */
#ifndef MD_PLOT_H
#define MD_PLOT_H

#include "runtime/log.h"

enum { MD_PLOT_WIDE = 560, MD_PLOT_HIGH = 180, MD_PLOT_LEFT = 64, MD_PLOT_TOP = 40 };

/* ---- points --------------------------------------------------------------------------------- */

/* The values of a step that are kept, or of an evaluation, which has no further ones. */
MD_COLD int md_plot_values(const md_entry *e, int evaluation) {
    int n = 1 + e->metric_count + (evaluation ? 0 : e->extra_count);
    return n < MD_PLOT_VALUES ? n : (int)MD_PLOT_VALUES;
}

/* Before step 0. */
MD_COLD int md_plot_setup(md_run *r) {
    for (int mapped = 0; mapped < 2 && r->options.plot != NULL; mapped++) {
        if (mapped && md_block_map(&r->plot, "points to plot", &r->message) != MD_EXIT_OK) {
            return MD_EXIT_MEMORY;
        }
        for (int i = 0; i < 2 * r->task_count; i++) {
            md_curves *c = &r->tasks[i / 2].curves[i % 2];
            c->values = md_plot_values(r->tasks[i / 2].entry, i % 2);
            c->every = 1;
            /* A row more than are kept: the last step always has one. */
            size_t numbers = (size_t)(1 + c->values) * (MD_PLOT_ROWS + 1);
            c->at = (double *)md_take(&r->plot, numbers * sizeof(double));
        }
    }
    return md_out_probe(&r->out, r->options.plot, &r->message);
}

/* What a step of the task gave, or (1) an evaluation. */
MD_FN void md_plot_add(md_run *r, int evaluation) {
    md_curves *c = &r->task->curves[evaluation];
    const double *values = evaluation ? r->task->eval_values : r->task->values;
    if (c->at == NULL || !md_has_values(r->task->entry)) {
        return;
    }
    int64_t row = 1 + c->values;
    if (c->count == MD_PLOT_ROWS) {
        for (int64_t i = 1; i < MD_PLOT_ROWS / 2; i++) {
            memcpy(c->at + i * row, c->at + 2 * i * row, (size_t)row * sizeof(double));
        }
        c->count = MD_PLOT_ROWS / 2;
        c->every *= 2;
    }
    double *to = c->at + c->count * row; /* stays the last one, or makes room for the next */
    to[0] = (double)r->task->step;
    memcpy(to + 1, values, (size_t)c->values * sizeof(double));
    c->last = c->seen++ % c->every != 0;
    c->count += !c->last;
}

/* ---- the page ------------------------------------------------------------------------------- */

/* What stands in the line goes to the page. */
MD_COLD void md_plot_put(md_run *r) {
    (void)md_out_write(&r->out, r->line.at, r->line.used);
}

#define MD_PLOT(r, ...) (md_text_format(md_line(r), __VA_ARGS__), md_plot_put(r))

/* A name between two pieces of the page, as HTML has it. */
MD_COLD void md_plot_name(md_run *r, const char *before, const char *s, const char *behind) {
    static const char marks[] = "<>&\"";
    static const char *const as[] = {"&lt;", "&gt;", "&amp;", "&quot;"};
    MD_PLOT(r, "%s", before);
    for (; *s != 0; s++) {
        const char *mark = strchr(marks, *s);
        MD_PLOT(r, mark != NULL ? "%s" : "%.1s", mark != NULL ? as[mark - marks] : s);
    }
    MD_PLOT(r, "%s", behind);
}

typedef struct md_axis {
    double lo, hi, tick;
    double from, length; /* of its line on the page */
    int powers;          /* the places are those of logarithms */
} md_axis;

/* What lies between `lo` and `hi`, and ends on ticks of 1, 2 or 5 times a power of ten. */
MD_COLD md_axis md_axis_make(double lo, double hi, int ticks, double from, double length) {
    md_axis a;
    double most = fmax(fabs(lo), fabs(hi));
    double off = hi - lo > 1e-9 * most ? 0 : most == 0 ? 1 : most / 10;
    double rough = (hi + off - (lo - off)) / ticks;
    double ten = pow(10, floor(log10(rough)));
    a.powers = 0;
    a.from = from;
    a.length = length;
    a.tick = rough <= ten       ? ten
             : rough <= 2 * ten ? 2 * ten
             : rough <= 5 * ten ? 5 * ten
                                : 10 * ten;
    a.lo = floor((lo - off) / a.tick) * a.tick;
    a.hi = ceil((hi + off) / a.tick) * a.tick;
    return a;
}

/* A number that has a place: neither so large nor so small that axes would lose their digits. */
MD_COLD double md_plot_number(double value) {
    return !(fabs(value) < 1e200) ? (double)NAN : fabs(value) < 1e-200 ? 0 : value;
}

MD_COLD double md_axis_place(const md_axis *a, double place) {
    return a->from + a->length * (place - a->lo) / (a->hi - a->lo);
}

/* The two axes of one value: of its steps and, where it is evaluated, its evaluations. 0: there is
 * no finite one. Losses and metrics of several orders of magnitude have powers of ten. */
MD_COLD int md_plot_axes(const md_task *k, int column, md_axis *x, md_axis *y) {
    double at[2] = {INFINITY, -INFINITY}, value[2] = {INFINITY, -INFINITY};
    for (int part = 0; part < 2; part++) {
        const md_curves *c = &k->curves[part];
        for (int64_t i = 0; i < c->count + c->last && column < c->values; i++) {
            const double *row = c->at + i * (1 + c->values);
            double number = md_plot_number(row[1 + column]);
            if (!isnan(number)) {
                at[0] = fmin(at[0], row[0]);
                at[1] = fmax(at[1], row[0]);
                value[0] = fmin(value[0], number);
                value[1] = fmax(value[1], number);
            }
        }
    }
    if (!(at[0] <= at[1])) {
        return 0;
    }
    *x = md_axis_make(at[0] < at[1] / 10 ? 0 : at[0], at[1], 6, MD_PLOT_LEFT, MD_PLOT_WIDE);
    x->lo = at[0] < at[1] / 10 ? 0 : fmax(x->lo, at[0] < at[1] ? at[0] : x->lo);
    x->hi = at[0] < at[1] ? at[1] : x->hi;
    x->tick = fmax(x->tick, 1);
    int powers = column <= k->entry->metric_count && value[0] > 0 && value[1] / value[0] > 1000;
    *y = md_axis_make(powers ? floor(log10(value[0])) : value[0],
                      powers ? ceil(log10(value[1])) : value[1], 5, MD_PLOT_TOP + MD_PLOT_HIGH,
                      -MD_PLOT_HIGH);
    y->powers = powers;
    return 1;
}

/* Lines and numbers of the axes. */
MD_COLD void md_plot_ticks(md_run *r, const md_axis *x, const md_axis *y) {
    for (int i = 0; y->lo + i * y->tick < y->hi + y->tick / 2; i++) {
        double t = y->lo + i * y->tick;
        double shown = y->powers ? pow(10, t) : md_shown(rint(t / y->tick) * y->tick);
        double at = md_axis_place(y, t);
        MD_PLOT(r,
                "<path class=\"grid\" d=\"M%d %.1fh%d\"/><text x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">%.6g</text>\n",
                MD_PLOT_LEFT, at, MD_PLOT_WIDE, MD_PLOT_LEFT - 8, at + 4, shown);
    }
    for (double i = ceil(x->lo / x->tick); i * x->tick <= x->hi; i++) {
        MD_PLOT(r, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.10g</text>\n",
                md_axis_place(x, i * x->tick), MD_PLOT_TOP + MD_PLOT_HIGH + 18, i * x->tick);
    }
    MD_PLOT(r, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n",
            MD_PLOT_LEFT + MD_PLOT_WIDE / 2, MD_PLOT_TOP + MD_PLOT_HIGH + 38);
}

/* One curve: the line, and its values for those who point at it. A point by itself is a dot. */
MD_COLD void md_plot_curve(md_run *r, int part, int column, const md_axis *x, const md_axis *y) {
    const md_curves *c = &r->task->curves[part];
    for (int values = 0; values < 2; values++) {
        int gap = 1;
        MD_PLOT(r, values ? "\" data-values=\"" : "<path class=\"%s\" d=\"",
                part ? "eval" : "train");
        for (int64_t i = 0; i < c->count + c->last; i++) {
            const double *row = c->at + i * (1 + c->values);
            double number = md_plot_number(row[1 + column]);
            if (!isnan(number) && values) {
                md_text *t = md_line(r);
                md_text_format(t, "%.0f,", row[0]);
                md_text_number(t, number);
                md_text_add(t, " ");
                md_plot_put(r);
            } else if (!isnan(number)) {
                MD_PLOT(r, gap ? "M%.1f %.1fh0" : "L%.1f %.1f", md_axis_place(x, row[0]),
                        md_axis_place(y, y->powers ? log10(number) : number));
            }
            gap = isnan(number);
        }
    }
    MD_PLOT(r, "\"/>\n");
}

/* The chart of one value of the task at hand. */
MD_COLD void md_plot_chart(md_run *r, int column) {
    const char *name = md_value_name(r->task->entry, column);
    md_axis x, y;
    if (!md_plot_axes(r->task, column, &x, &y)) {
        return;
    }
    const int evaluated = column < r->task->curves[1].values && r->task->curves[1].seen > 0;
    MD_PLOT(r, "<svg viewBox=\"0 0 640 264\" role=\"img\" data-x=\"%.17g,%.17g\">\n", x.lo, x.hi);
    md_plot_name(r, "<title>", name, " by step</title>\n");
    md_plot_name(r, "<text class=\"name\" x=\"64\" y=\"22\">", name, "</text>\n");
    MD_PLOT(r,
            "<text class=\"said\" x=\"%d\" y=\"22\" text-anchor=\"end\">"
            "<tspan class=\"train\">\342\200\224 train</tspan>%s</text>\n",
            MD_PLOT_LEFT + MD_PLOT_WIDE,
            evaluated ? " <tspan class=\"eval\">\342\200\224 validation</tspan>" : "");
    md_plot_ticks(r, &x, &y);
    for (int part = 0; part <= evaluated; part++) {
        md_plot_curve(r, part, column, &x, &y);
    }
    MD_PLOT(r, "</svg>\n");
}

MD_COLD void md_plot_head(md_run *r) {
    MD_PLOT(r, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
               "<meta name=\"viewport\" content=\"width=device-width\"/>\n");
    md_plot_name(r, "<title>", r->model->name, "</title>\n");
    MD_PLOT(
        r, "<style>\n"
           ":root { color-scheme: light dark; --ink: #1f2328; --dim: #59636e; --grid: #d1d9e0;\n"
           "  --back: #ffffff; --panel: #f6f8fa; --train: #0969da; --eval: #bc4c00 }\n"
           "@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9198a1;\n"
           "  --grid: #3d444d; --back: #0d1117; --panel: #151b23; --train: #4493f8; --eval: "
           "#f0883e } }\n"
           "body { margin: 0 auto; max-width: 1360px; padding: 16px; color: var(--ink);\n"
           "  background: var(--back); font: 15px/1.4 system-ui, sans-serif }\n"
           "section { display: grid; gap: 16px;\n"
           "  grid-template-columns: repeat(auto-fit, minmax(min(100%%, 440px), 1fr)) }\n"
           "h1, h2 { font-size: 20px; margin: 8px 0 } h2 { font-size: 16px }\n"
           "p, svg { color: var(--dim); margin: 0 0 8px }\n"
           "svg { background: var(--panel); border-radius: 8px; width: 100%%; font-size: 13px;\n"
           "  fill: currentColor }\n"
           "path { fill: none; stroke-width: 1.5; stroke-linecap: round; stroke-linejoin: round }\n"
           ".grid { stroke: var(--grid); stroke-width: 1 }\n"
           "path.train { stroke: var(--train) } tspan.train { fill: var(--train) }\n"
           "path.eval { stroke: var(--eval); stroke-width: 2.5 } tspan.eval { fill: var(--eval) }\n"
           ".name { fill: var(--ink); font-weight: 600; font-size: 15px }\n</style>\n"
           "</head>\n<body>\n");
    md_plot_name(r, "<h1>", r->model->name, "</h1>\n");
}

/* Who points at a chart sees the step there and the nearest values. No '<' and no '&': the page is
 * well-formed XML too. */
MD_COLD void md_plot_script(md_run *r) {
    MD_PLOT(
        r,
        "<script>\nfor (const svg of document.querySelectorAll('svg')) {\n"
        "  const [x0, x1] = svg.dataset.x.split(',').map(Number);\n"
        "  const said = svg.querySelector('.said'), legend = said.innerHTML;\n"
        "  const mark = svg.appendChild(svg.querySelector('.grid').cloneNode());\n"
        "  const curves = Array.from(svg.querySelectorAll('[data-values*=\",\"]'), path => ({\n"
        "    kind: path.getAttribute('class'),\n"
        "    at: path.dataset.values.trim().split(' ').map(v => v.split(',')) }));\n"
        "  const hide = () => { said.innerHTML = legend; mark.setAttribute('d', '') };\n"
        "  hide();\n  svg.onmouseleave = hide;\n  svg.onmousemove = event => {\n"
        "    const box = svg.getBoundingClientRect();\n"
        "    const part = ((event.clientX - box.left) * 640 / box.width - %d) / %d;\n"
        "    const step = x0 + Math.min(1, Math.max(0, part)) * (x1 - x0);\n"
        "    const off = point => Math.abs(point[0] - step);\n"
        "    const near = curves.map(c => [c.kind,\n"
        "      c.at.reduce((a, b) => off(a) > off(b) ? b : a)]);\n"
        "    const at = %d + %d * (near[0][1][0] - x0) / (x1 - x0);\n"
        "    mark.setAttribute('d', 'M' + at + ' %dv%d');\n"
        "    said.innerHTML = near.map(([kind, [step, value]]) => '\\x3ctspan class=' + kind +\n"
        "      '>step ' + step + ': ' + Number(value).toPrecision(5) + '\\x3c/tspan>')\n"
        "      .join(' \\u00a0 ');\n  };\n}\n</script>\n</body>\n</html>\n",
        MD_PLOT_LEFT, MD_PLOT_WIDE, MD_PLOT_LEFT, MD_PLOT_WIDE, MD_PLOT_TOP, MD_PLOT_HIGH);
}

/* The page of all trains of the run. One that made no step leaves the file as it is. */
MD_COLD int md_plot_write(md_run *r) {
    int64_t seen = 0;
    for (int i = 0; i < r->task_count; i++) {
        seen += r->tasks[i].curves[0].seen;
    }
    if (seen == 0 || md_out_open(&r->out, r->options.plot, &r->message) != MD_EXIT_OK) {
        return seen == 0 ? MD_EXIT_OK : MD_EXIT_DATA;
    }
    md_plot_head(r);
    for (int i = 0; i < r->task_count; i++) {
        if (r->tasks[i].curves[0].seen == 0) {
            continue; /* its turn did not come */
        }
        md_select(r, i);
        const md_entry *e = r->task->entry;
        int more = 1 + e->metric_count + e->extra_count - r->task->curves[0].values;
        md_plot_name(r, "<h2>", e->name, "</h2>\n");
        md_plot_name(r, "<p>", r->model->source, "");
        MD_PLOT(r, ", %lld steps", (long long)r->task->step);
        if (r->task->per_epoch > 0) {
            MD_PLOT(r, ", %lld epochs", (long long)md_epoch(r));
        }
        if (more > 0) {
            MD_PLOT(r, "; %d further values are not drawn", more);
        }
        MD_PLOT(r, "</p>\n<section>\n");
        for (int column = 0; column < r->task->curves[0].values; column++) {
            md_plot_chart(r, column);
        }
        MD_PLOT(r, "</section>\n");
    }
    md_plot_script(r);
    return md_out_close(&r->out, &r->message);
}

#endif
