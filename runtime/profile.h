/* SPDX-License-Identifier: 0BSD */
/* profile: where the time of a run went, in a program that was compiled with --profile.
 *
 * Before step 0 memory for the notes is taken, with a line of its own in the memory table, and the
 * machine's rates are measured with the threads of the run. At the end there is a table of calls,
 * kernels and layers, and with --profile-trace a file for viewers of Chrome's trace events, of the
 * last MD_PROFILE_EVENTS events. The limit of a call is the larger of the time for the FLOPs of its
 * products and that for the bytes that it moves. Needs log.h and out.h; gives exit codes. */
#ifndef MD_PROFILE_H
#define MD_PROFILE_H

#include "runtime/log.h"
#include "runtime/mark.h"

enum { MD_PROFILE_EVENTS = 32768, MD_PROFILE_ROWS = 16 };
enum { MD_RATE_LEAST = 64 << 20, MD_RATE_MOST = 256 << 20 };

/* ---- setting up ----------------------------------------------------------------------------- */

/* Twice the last cache, where the system says what it is: nothing of it is left there. */
MD_COLD size_t md_profile_memory_size(void) {
    long cache = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
    cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return cache > MD_RATE_MOST / 2    ? (size_t)MD_RATE_MOST
           : cache > MD_RATE_LEAST / 2 ? md_round_up((size_t)cache * 2, 4096)
                                       : (size_t)MD_RATE_LEAST;
}

/* Takes the memory of the notes; once the threads are there. */
MD_COLD int md_profile_setup(md_run *r) {
    const md_model *m = r->model;
    md_block_mem *b = &r->marks;
    if (m->profiled_count == 0) {
        return r->options.trace == NULL
                   ? MD_EXIT_OK
                   : md_fail(&r->message, MD_EXIT_USAGE,
                             "--profile-trace: compile the model with --profile for that");
    }
    size_t sums = 0, rows = (size_t)m->names->kernel_count;
    rows = (size_t)m->names->layer_count > rows ? (size_t)m->names->layer_count : rows;
    for (int i = 0; i < m->profiled_count; i++) {
        size_t count = (size_t)m->profiled[i].count;
        sums += count + 1;
        rows = count > rows ? count : rows;
    }
    size_t events = r->options.trace != NULL ? MD_PROFILE_EVENTS : 0,
           far = md_profile_memory_size();
    b->size = md_round_up(sums * sizeof(md_profile_sum), 64) +
              md_round_up(rows * sizeof(md_profile_row), 64) +
              md_round_up(events * sizeof(md_profile_event), 64) + far;
    b->at = (char *)md_map(b->size);
    if (b->at == NULL) {
        return md_fail(&r->message, MD_EXIT_MEMORY, "no memory for %zu bytes of a profile",
                       b->size);
    }
    md_touch_write(b->at, b->size);
    r->profile.all = (md_profile_sum *)md_take(b, sums * sizeof(md_profile_sum));
    r->profile_rows = (md_profile_row *)md_take(b, rows * sizeof(md_profile_row));
    r->profile.events = (md_profile_event *)md_take(b, events * sizeof(md_profile_event));
    r->profile.room = (int64_t)events;
    char *memory = (char *)md_take(b, far);
    r->rate_bytes = md_rate_bytes(memory, far, r->threads);
    for (int of = 0; of < MD_RATES; of++) {
        int used = 0;
        for (int i = 0; i < m->profiled_count; i++) {
            used |= m->profiled[i].products[of] > 0;
        }
        r->rate_flops[of] = used ? md_rate_flops(of, r->threads) : 0;
    }
    int64_t start = md_nanoseconds();
    for (int i = 0; i < 1000; i++) {
        (void)md_nanoseconds();
    }
    r->rate_clock = (double)(md_nanoseconds() - start) / 1000;
    return r->options.trace != NULL ? md_out_probe(&r->out, r->options.trace, &r->message)
                                    : MD_EXIT_OK;
}

/* When all else is set up: from here on calls are noted. */
MD_COLD void md_profile_begin(md_run *r) {
    if (r->model->profiled_count > 0) {
        *r->model->profile = &r->profile;
        r->profile_start = md_nanoseconds();
    }
}

/* Unlike the values of a step these were never floats: all of their digits count. */
MD_COLD void md_profile_value(md_text *t, const char *key, double value) {
    md_text_format(t, ",\"%s\":%.12g", key, value);
}

/* ---- tables --------------------------------------------------------------------------------- */

MD_COLD const char *md_profile_as(int of) {
    return of == MD_RATE_OF_F32 ? "f32" : of == MD_RATE_OF_F64 ? "f64" : "bf16";
}

MD_COLD double md_profile_limit(const md_run *r, const int64_t *products, int64_t bytes) {
    double limit = r->rate_bytes > 0 ? (double)bytes / r->rate_bytes : 0, work = 0;
    for (int of = 0; of < MD_RATES; of++) {
        work += products[of] > 0 ? (double)products[of] / r->rate_flops[of] : 0;
    }
    return work > limit ? work : limit;
}

/* What was noted of step number `i` is added to the row. */
MD_COLD void md_profile_add(const md_run *r, const md_profiled *e, int i, md_profile_row *row) {
    const md_profiled_step *step = &e->steps[i];
    const md_profile_sum *sum = &r->profile.all[e->first + i];
    int64_t products[MD_RATES] = {0};
    products[step->as] = step->products;
    row->times += sum->times;
    row->took += sum->took;
    row->flops += (double)sum->times * (double)step->flops;
    row->bytes += (double)sum->times * (double)step->bytes;
    row->limit += (double)sum->times * md_profile_limit(r, products, step->bytes);
}

typedef enum md_profile_by { MD_BY_CALL, MD_BY_KERNEL, MD_BY_LAYER } md_profile_by;

/* The rows of one table, longest first; gives how many there are. */
MD_COLD int md_profile_collect(md_run *r, const md_profiled *e, md_profile_by by) {
    md_profile_row *rows = r->profile_rows;
    const md_profile_names *names = r->model->names;
    int room = by == MD_BY_CALL     ? e->count
               : by == MD_BY_KERNEL ? names->kernel_count
                                    : names->layer_count;
    int count = 0;
    memset(rows, 0, sizeof *rows * (size_t)room);
    for (int i = 0; i < e->count; i++) {
        const md_profiled_step *step = &e->steps[i];
        int of = by == MD_BY_CALL ? i : by == MD_BY_KERNEL ? step->kernel : step->layer;
        if (step->kernel >= 0) {
            md_profile_add(r, e, i, &rows[of]);
            rows[of].of = of;
        }
    }
    for (int i = 0; i < room; i++) {
        if (rows[i].times > 0) {
            rows[count++] = rows[i];
        }
    }
    for (int gap = count / 2; gap > 0; gap /= 2) { /* a shell sort: qsort may allocate */
        for (int i = gap; i < count; i++) {
            md_profile_row row = rows[i];
            int k = i;
            for (; k >= gap && rows[k - gap].took < row.took; k -= gap) {
                rows[k] = rows[k - gap];
            }
            rows[k] = row;
        }
    }
    return count;
}

MD_COLD void md_profile_numbers(md_text *t, const md_profile_row *row, int64_t whole) {
    double seconds = 1e-9 * (double)row->took;
    double per = seconds > 0 ? 1e-9 / seconds : 0;
    md_text_format(t, "  %9lld %11.3f %7.1f %10.2f %9.2f %7.0f   ", (long long)row->times,
                   1e3 * seconds, whole > 0 ? 100 * (double)row->took / (double)whole : 0.0,
                   row->flops * per, row->bytes * per,
                   seconds > 0 ? 100 * row->limit / seconds : 0.0);
}

MD_COLD void md_profile_name(md_text *t, const md_run *r, const md_profiled *e, md_profile_by by,
                             int of) {
    const md_profile_names *names = r->model->names;
    if (by == MD_BY_LAYER) {
        md_text_add(t, names->layers[of][0] != 0 ? names->layers[of] : "outside of layers");
    } else if (by == MD_BY_KERNEL) {
        md_text_add(t, names->kernels[of]);
    } else {
        const md_profiled_step *step = &e->steps[of];
        md_text_format(t, "%d: %s", of, names->kernels[step->kernel]);
        if (step->layer > 0) {
            md_text_format(t, ", %s", names->layers[step->layer]);
        }
        if (step->line > 0) {
            md_text_format(t, ", line %d", step->line);
        }
    }
}

MD_COLD void md_profile_table(md_run *r, const md_profiled *e, md_profile_by by, const char *head) {
    int count = md_profile_collect(r, e, by);
    int64_t whole = r->profile.all[e->first + e->count].took;
    md_profile_row rest, all;
    memset(&rest, 0, sizeof rest);
    memset(&all, 0, sizeof all);
    md_text_format(md_line(r), "  %9s %11s %7s %10s %9s %7s   %s\n", "count", "ms", "%", "GFLOP/s",
                   "GB/s", "limit %", head);
    md_print(r);
    for (int i = 0; i < count; i++) {
        const md_profile_row *row = &r->profile_rows[i];
        md_profile_row *sums[2] = {&all, i < MD_PROFILE_ROWS ? NULL : &rest};
        for (int k = 0; k < 2; k++) {
            if (sums[k] != NULL) {
                sums[k]->times += row->times;
                sums[k]->took += row->took;
                sums[k]->flops += row->flops;
                sums[k]->bytes += row->bytes;
                sums[k]->limit += row->limit;
            }
        }
        if (i < MD_PROFILE_ROWS) {
            md_text *t = md_line(r);
            md_profile_numbers(t, row, whole);
            md_profile_name(t, r, e, by, row->of);
            md_text_add(t, "\n");
            md_print(r);
        }
    }
    if (rest.times > 0) {
        md_text *t = md_line(r);
        md_profile_numbers(t, &rest, whole);
        md_text_format(t, "%d others\n", count - MD_PROFILE_ROWS);
        md_print(r);
    }
    md_text *t = md_line(r);
    md_profile_numbers(t, &all, whole);
    md_text_add(t, "total\n");
    md_print(r);
}

MD_COLD int64_t md_profile_products(const md_profiled *e) {
    int64_t sum = 0;
    for (int of = 0; of < MD_RATES; of++) {
        sum += e->products[of];
    }
    return sum;
}

MD_COLD double md_profile_entry_limit(const md_run *r, const md_profiled *e) {
    return (double)r->profile.all[e->first + e->count].times *
           md_profile_limit(r, e->products, e->bytes_once);
}

MD_COLD void md_profile_text(md_run *r, const md_profiled *e) {
    const md_profile_sum *calls = &r->profile.all[e->first + e->count];
    double seconds = 1e-9 * (double)calls->took, limit = md_profile_entry_limit(r, e);
    md_text *t = md_line(r);
    md_text_format(t, "profile of %s '%s': %lld calls in %.4g s, %.4g us each\n", e->kind, e->name,
                   (long long)calls->times, seconds, 1e6 * seconds / (double)calls->times);
    md_text_format(t,
                   "  a call needs %.6g MFLOP in products and must move %lld bytes once: at least "
                   "%.4g us here, %.0f %% of its time\n",
                   1e-6 * (double)md_profile_products(e),
                   (long long)e->bytes_once, 1e6 * limit / (double)calls->times,
                   seconds > 0 ? 100 * limit / seconds : 0.0);
    md_print(r);
    md_profile_table(r, e, MD_BY_CALL, "call");
    md_profile_table(r, e, MD_BY_KERNEL, "kernel");
    md_profile_table(r, e, MD_BY_LAYER, "layer");
}

MD_COLD void md_profile_json(md_run *r, const md_profiled *e) {
    const md_profile_sum *calls = &r->profile.all[e->first + e->count];
    const md_profile_names *names = r->model->names;
    md_text *t = md_line(r);
    md_text_format(t, "{\"event\":\"profile_entry\",\"entry\":\"%s\",\"kind\":\"%s\"", e->name,
                   e->kind);
    md_json_count(t, "calls", (uint64_t)calls->times);
    md_profile_value(t, "seconds", 1e-9 * (double)calls->took);
    md_json_count(t, "flops_of_products", (uint64_t)md_profile_products(e));
    md_json_count(t, "bytes_once", (uint64_t)e->bytes_once);
    md_profile_value(t, "limit_seconds", md_profile_entry_limit(r, e));
    md_text_add(t, "}\n");
    md_print(r);
    int count = md_profile_collect(r, e, MD_BY_CALL);
    for (int i = 0; i < count; i++) {
        const md_profile_row *row = &r->profile_rows[i];
        const md_profiled_step *step = &e->steps[row->of];
        t = md_line(r);
        md_text_format(t,
                       "{\"event\":\"profile_call\",\"entry\":\"%s\",\"kind\":\"%s\",\"step\":%d,"
                       "\"kernel\":\"%s\",\"layer\":\"%s\",\"part\":\"%s\",\"line\":%d",
                       e->name, e->kind, row->of, names->kernels[step->kernel],
                       names->layers[step->layer], step->part, step->line);
        md_json_count(t, "count", (uint64_t)row->times);
        md_profile_value(t, "seconds", 1e-9 * (double)row->took);
        if (step->products > 0) {
            md_text_format(t, ",\"multiplies\":\"%s\"", md_profile_as(step->as));
        }
        md_json_count(t, "flops", (uint64_t)row->flops);
        md_json_count(t, "bytes", (uint64_t)row->bytes);
        md_profile_value(t, "limit_seconds", row->limit);
        md_text_add(t, "}\n");
        md_print(r);
    }
}

/* ---- the trace ------------------------------------------------------------------------------ */

MD_COLD void md_profile_put(md_run *r, const md_profile_event *event, const char *before) {
    const md_profiled *e = &r->model->profiled[event->entry];
    const md_profile_names *names = r->model->names;
    md_text *t = md_line(r);
    int64_t start = event->start - r->profile_start;
    const char *name = e->name, *category = e->kind, *layer = "";
    if (event->step >= 0) {
        const md_profiled_step *step = &e->steps[event->step];
        name = names->kernels[step->kernel];
        category = step->part[0] != 0 ? step->part : "step";
        layer = names->layers[step->layer];
    }
    md_text_format(t,
                   "%s{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%lld.%03d,"
                   "\"dur\":%lld.%03d,\"pid\":1,\"tid\":1",
                   before, name, category, (long long)(start / 1000), (int)(start % 1000),
                   (long long)(event->took / 1000), (int)(event->took % 1000));
    if (event->step >= 0) {
        md_text_format(t, ",\"args\":{\"step\":%d,\"layer\":\"%s\"}", event->step, layer);
    }
    md_text_add(t, "}");
    (void)md_out_write(&r->out, t->at, t->used);
}

/* Events of calls whose first ones are gone are left out, but where that is all there is. */
MD_COLD int64_t md_profile_oldest(const md_profile *p) {
    int64_t first = p->seen > p->room ? p->seen - p->room : 0;
    for (int64_t i = first; first > 0 && i + 1 < p->seen; i++) {
        if (p->events[i % p->room].step < 0) {
            return i + 1;
        }
    }
    return first;
}

MD_COLD int md_profile_trace(md_run *r) {
    const md_profile *p = &r->profile;
    int rc = md_out_open(&r->out, r->options.trace, &r->message);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    md_text *t = md_line(r);
    md_text_format(t,
                   "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"model\":\"%s\",\"threads\":%d,"
                   "\"f32_flops_per_second\":%.6g,\"f64_flops_per_second\":%.6g,"
                   "\"bf16_flops_per_second\":%.6g,"
                   "\"bytes_per_second\":%.6g,\"events_seen\":%lld},\n\"traceEvents\":[\n"
                   "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,"
                   "\"args\":{\"name\":\"%s\"}}",
                   r->model->name, r->threads, r->rate_flops[0], r->rate_flops[1],
                   r->rate_flops[2], r->rate_bytes, (long long)p->seen, r->model->name);
    (void)md_out_write(&r->out, t->at, t->used);
    for (int64_t i = md_profile_oldest(p); i < p->seen; i++) {
        md_profile_put(r, &p->events[i % p->room], ",\n");
    }
    (void)md_out_write(&r->out, "\n]}\n", 4);
    return md_out_close(&r->out, &r->message);
}

/* ---- the end -------------------------------------------------------------------------------- */

MD_COLD void md_profile_head(md_run *r, double seconds, double inside) {
    md_text *t = md_line(r);
    if (r->options.log == MD_LOG_JSON) {
        md_text_format(t, "{\"event\":\"profile\",\"threads\":%d", r->threads);
        md_profile_value(t, "f32_flops_per_second", r->rate_flops[0]);
        md_profile_value(t, "f64_flops_per_second", r->rate_flops[1]);
        md_profile_value(t, "bf16_flops_per_second", r->rate_flops[2]);
        md_profile_value(t, "bytes_per_second", r->rate_bytes);
        md_profile_value(t, "clock_ns", r->rate_clock);
        md_profile_value(t, "seconds", seconds);
        md_profile_value(t, "seconds_in_calls", inside);
        md_text_add(t, "}\n");
    } else {
        md_text_format(t, "profile: threads %d; multiply-adds", r->threads);
        for (int of = 0; of < MD_RATES; of++) {
            if (r->rate_flops[of] > 0) {
                md_text_format(t, " %.4g GFLOP/s (%s),", 1e-9 * r->rate_flops[of],
                               md_profile_as(of));
            }
        }
        md_text_format(t,
                       " memory %.4g GB/s, measured before step 0\n"
                       "  %.4g s, of it %.4g s in calls; each time holds a reading of the clock, "
                       "%.0f ns\n",
                       1e-9 * r->rate_bytes, seconds, inside, r->rate_clock);
    }
    md_print(r);
}

/* Of a run that ended well, or by a signal; gives its exit code. */
MD_COLD int md_profile_end(md_run *r, int rc) {
    const md_model *m = r->model;
    if (m->profiled_count == 0 || r->profile_start == 0 ||
        (rc != MD_EXIT_OK && rc != 128 + (int)md_signal)) {
        return rc;
    }
    *m->profile = NULL;
    double seconds = 1e-9 * (double)(md_nanoseconds() - r->profile_start), inside = 0;
    for (int i = 0; i < m->profiled_count; i++) {
        const md_profiled *e = &m->profiled[i];
        inside += 1e-9 * (double)r->profile.all[e->first + e->count].took;
    }
    if (r->options.log != MD_LOG_NONE) {
        md_profile_head(r, seconds, inside);
    }
    for (int i = 0; i < m->profiled_count && r->options.log != MD_LOG_NONE; i++) {
        const md_profiled *e = &m->profiled[i];
        if (r->profile.all[e->first + e->count].times == 0) {
            continue;
        }
        if (r->options.log == MD_LOG_JSON) {
            md_profile_json(r, e);
        } else {
            md_profile_text(r, e);
        }
    }
    int written = r->options.trace != NULL ? md_profile_trace(r) : MD_EXIT_OK;
    return rc == MD_EXIT_OK ? written : rc;
}

#endif
