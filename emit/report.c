/* report: see the header. Numbers are integers of bytes and FLOPs; the JSON is a contract. */
#include "emit/report.h"

#include "compiler/sha256.h"
#include "compiler/version.h"
#include "emit/api.h"
#include "emit/calls.h"
#include "emit/json.h"
#include "emit/layers.h"
#include "emit/live_set.h"
#include "emit/report_api.h"
#include "emit/sweep.h"
#include "emit/uses.h"

#include <stdlib.h>
#include <string.h>

/* ---- JSON ----------------------------------------------------------------------------------- */

static const char *kind_word(EntryKind kind) {
    switch (kind) {
    case ENTRY_INIT: return "init";
    case ENTRY_TRAIN: return "train";
    case ENTRY_EVAL: return "eval";
    case ENTRY_EVAL_END: return "eval_end";
    case ENTRY_LOAD: return "load";
    case ENTRY_TEST: return "test";
    case ENTRY_CALL: break;
    }
    return "entry";
}

/* What has memory of the instance. */
static bool is_shown(const ProgramEntry *entry) {
    EntryKind kind = entry->entry->kind;
    return kind == ENTRY_TRAIN || kind == ENTRY_CALL || kind == ENTRY_EVAL || kind == ENTRY_INIT;
}

/* Which products of an entry that asks for 16 bits multiply in them. */
static const char *rounded_word(const Entry *entry) {
    static const char *const word[] = {[0] = "none",
                                       [ROUND_PRODUCTS] = "products",
                                       [ROUND_CONVOLUTIONS] = "convolutions",
                                       [ROUND_ALL] = "all"};
    return word[entry->rounds];
}

static int64_t nanoseconds(int64_t picoseconds) {
    return picoseconds / 1000 + (picoseconds % 1000 > 0);
}

static void json_calls(const Emit *e, const ProgramEntry *entry, Text *out) {
    CallCosts all = calls_of(e, entry);
    json_number(out, "flops_needed", all.flops);
    json_number(out, "flops_of_products", all.products);
    json_number(out, "bytes_once", all.bytes_once);
    json_number(out, "predicted_ns", nanoseconds(all.predicted));
    json_number(out, "limit_ns", nanoseconds(all.limit));
    text_add(out, ",\n   \"calls\":[");
    for (int i = 0; i < all.at.count; i++) {
        const CallCost *cost = &all.at.at[i];
        text_printf(out, "%s\n    {\"step\":%d,\"name\":", i > 0 ? "," : "", cost->step->id);
        json_string(out, cost->name);
        text_add(out, ",\"layer\":");
        json_string(out, cost->layer);
        text_printf(out, ",\"part\":\"%s\"", cost->part);
        json_number(out, "line", loc_line_of(e, cost->step->loc));
        json_number(out, "times", cost->times);
        json_number(out, "flops_needed", cost->flops);
        json_number(out, "flops_of_products", cost->products);
        json_number(out, "bytes", cost->bytes);
        json_number(out, "predicted_ns", nanoseconds(cost->predicted));
        json_number(out, "limit_ns", nanoseconds(cost->limit));
        text_add(out, "}");
    }
    text_add(out, "]");
}

/* Numbers of the weights that a call may change, and of all that there are. */
static int64_t updated(const Entry *entry) {
    int64_t n = 0;
    for (int k = 0; k < entry->out.count; k++) {
        const EntryOut *out = &entry->out.at[k];
        n += out->role == OUT_WRITE && out->slot->kind == SLOT_PARAM ? type_count(out->slot->type)
                                                                     : 0;
    }
    return n;
}

static int64_t parameters(const Module *module) {
    int64_t n = 0;
    for (int k = 0; k < module->slot.count; k++) {
        const Slot *slot = module->slot.at[k];
        n += slot->kind == SLOT_PARAM ? type_count(slot->type) : 0;
    }
    return n;
}

/* Bytes of the weights that are kept in 16 bits. */
static int64_t short_parameters(const Module *module) {
    int64_t n = 0;
    for (int k = 0; k < module->slot.count; k++) {
        const Slot *slot = module->slot.at[k];
        bool is = slot->kind == SLOT_PARAM && elem_is_half(slot->type.elem);
        n += is ? type_bytes(slot->type) : 0;
    }
    return n;
}

/* What lies in the arena when. */
static void json_buffers(const Emit *e, const ProgramEntry *entry, Text *out) {
    const Uses uses = uses_of(e, entry);
    bool first = true;
    text_add(out, ",\n   \"buffers\":[");
    for (int i = 0; i < entry->buf.count; i++) {
        const Buf *buf = entry->buf.at[i];
        if (!buf_owns_arena(buf)) {
            continue;
        }
        text_add(out, first ? "\n    {\"name\":" : ",\n    {\"name\":");
        first = false;
        json_string(out, buf->label != NULL ? buf->label : buf->name);
        json_number(out, "line", loc_line_of(e, buf->loc));
        json_shape(out, *buf->type);
        json_number(out, "offset", buf->offset);
        json_number(out, "bytes", arena_room(entry, buf->bytes));
        json_number(out, "first", buf->first);
        json_number(out, "last", buf->last - 1);
        text_printf(out, ",\"kept\":%s,\"workspace\":%s", uses.at[buf->id].saved ? "true" : "false",
                    buf->kind == BUF_WORK ? "true" : "false");
        json_text(out, "layer", use_layer(&uses, buf));
        json_text(out, "role", use_role(&uses, buf));
        json_text(out, "why", use_why(&uses, buf));
        text_add(out, "}");
    }
    text_add(out, "]");
}

static void json_entry(const Emit *e, const ProgramEntry *entry, Text *out) {
    text_add(out, "{\"name\":");
    json_string(out, entry->entry->name);
    text_printf(out, ",\"kind\":\"%s\"", kind_word(entry->entry->kind));
    if (entry->entry->kind == ENTRY_TRAIN) {
        json_number(out, "updated", updated(entry->entry));
    }
    json_number(out, "arena_bytes", entry->arena_bytes);
    json_number(out, "lower_bound_bytes", entry->lower_bound_bytes);
    json_number(out, "further_thread_bytes", thread_adds(e, entry, e->c->opt.threads));
    json_number(out, "flops", entry->flops);
    json_number(out, "bytes_moved", entry->bytes_moved);
    json_number(out, "steps", entry->nstep);
    json_number(out, "steps_again", entry->steps_again);
    json_number(out, "flops_again", entry->flops_again);
    json_number(out, "flops_more", entry->entry->flops_more);
    json_number(out, "parts", entry->entry->parts > 1 ? entry->entry->parts : 1);
    SweepList sweeps = sweeps_of(e, entry);
    text_add(out, sweeps.count > 0 ? ",\"sparse_gradients\":[" : "");
    for (int i = 0; i < sweeps.count; i++) {
        text_add(out, i > 0 ? ",{\"layer\":" : "{\"layer\":");
        json_string(out, sweeps.at[i].path);
        json_number(out, "table_bytes", sweeps.at[i].table_bytes);
        json_number(out, "swept_bytes", sweeps.at[i].bytes);
        text_add(out, "}");
    }
    text_add(out, sweeps.count > 0 ? "]" : "");
    if (entry->entry->half != TY_ERROR) {
        text_printf(out, ",\"precision\":\"%s\",\"rounded\":\"%s\"", elem_name(entry->entry->half),
                    rounded_word(entry->entry));
    }
    HalfRows halves = layers_halves(e, entry);
    text_add(out, halves.count > 0 ? ",\"halves\":[" : "");
    for (int i = 0; i < halves.count; i++) {
        text_add(out, i > 0 ? ",{\"layer\":" : "{\"layer\":");
        json_string(out, halves.at[i].path);
        json_number(out, "bytes", halves.at[i].bytes);
        json_number(out, "kept_bytes", halves.at[i].kept);
        text_add(out, "}");
    }
    text_add(out, halves.count > 0 ? "]" : "");
    text_add(out, ",\"order\":");
    json_string(out, entry->order_name != NULL ? entry->order_name : "as lowered");
    const Step *step = step_at(entry, entry->peak_step);
    text_printf(out, ",\n   \"peak\":{\"step\":%d,\"op\":", entry->peak_step);
    json_string(out, step != NULL ? step_word(step) : "none");
    json_number(out, "line", step != NULL ? loc_line_of(e, step->loc) : 0);
    text_add(out, ",\"live\":[");
    LiveSet set = live_set(e, entry);
    for (int i = 0; i < set.count; i++) {
        text_printf(out, "%s\n    {\"name\":", i > 0 ? "," : "");
        json_string(out, set.at[i].name);
        json_number(out, "line", loc_line_of(e, set.at[i].buf->loc));
        json_shape(out, *set.at[i].buf->type);
        json_number(out, "bytes", set.at[i].bytes);
        json_text(out, "layer", set.at[i].layer);
        json_text(out, "role", set.at[i].role);
        json_text(out, "why", set.at[i].why);
        text_add(out, "}");
    }
    text_add(out, "]}");
    json_buffers(e, entry, out);
    json_calls(e, entry, out);
    report_api_entry(e, entry, out);
    text_add(out, "}");
}

static int64_t row_bytes(const DataSet *set) {
    int64_t bytes = 0;
    for (int i = 0; i < set->field.count; i++) {
        bytes += type_bytes(set->field.at[i].type);
    }
    return bytes;
}

/* What a phase takes over of the one before it: of what is in memory all that was there then. */
static int64_t handed_over(const Program *p, int phase) {
    int64_t bytes = 0;
    for (int i = 0; i < p->slot.count; i++) {
        const Buf *slot = p->slot.at[i];
        bool stays = slot->begins < phase && slot->ends >= phase;
        bytes += stays ? align_up(slot->bytes, MD_ALIGN) : 0;
    }
    return bytes;
}

/* Names of the entries of a phase, in the order in which they are called. */
static void phase_entries(const Program *p, int phase, const char *quote, Text *out) {
    int n = 0;
    for (int i = 0; i < p->module->phase.count; i++) {
        const PhaseEntry *one = &p->module->phase.at[i];
        if (one->phase == phase) {
            text_printf(out, "%s%s%s%s", n++ > 0 ? ", " : "", quote, one->name, quote);
        }
    }
}

static void json_phases(const Emit *e, Text *out) {
    const Program *p = e->p;
    text_add(out, " \"phases\":[");
    for (int k = 0; k < p->phase.count; k++) {
        const PhaseNeed *need = &p->phase.at[k];
        text_add(out, k > 0 ? ",\n  {\"entries\":[" : "\n  {\"entries\":[");
        phase_entries(p, k, "\"", out);
        text_add(out, "]");
        json_number(out, "params", need->params);
        json_number(out, "state", need->state);
        json_number(out, "io", p->io_bytes);
        json_number(out, "arena", need->arena);
        json_number(out, "total", need->total);
        json_number(out, "handed_over", handed_over(p, k));
        text_add(out, "}");
    }
    text_add(out, "],\n");
}

static void report_json(const Emit *e, Text *out) {
    const Program *p = e->p;
    const Options *opt = &e->c->opt;
    char hash[SHA256_TEXT];
    sha256_text(e->source->text, e->source->length, hash);
    text_add(out, "{\"version\":1,\"model\":");
    json_string(out, p->prefix);
    text_printf(out, ",\"source_sha256\":\"%s\",\"compiler\":\"%s\",\n", hash, MDLC_VERSION);
    text_printf(out,
                " \"options\":{\"threads\":%d,\"precision\":\"%s\",\"blas\":\"%s\",\"main\":%s,"
                "\"checks\":\"%s\",\"define\":{",
                opt->threads, elem_name(opt->half != TY_ERROR ? opt->half : opt->float_type),
                opt->openblas ? "openblas" : "builtin", opt->no_main ? "false" : "true",
                opt->canary && opt->nan ? "canary,nan"
                : opt->canary           ? "canary"
                : opt->nan              ? "nan"
                                        : "none");
    for (int i = 0; i < opt->noverride; i++) {
        text_add(out, i > 0 ? "," : "");
        json_string(out, opt->override[i].name);
        text_add(out, ":");
        json_string(out, opt->override[i].value);
    }
    text_printf(
        out,
        "}},\n "
        "\"regions\":{\"params\":%lld,\"state\":%lld,\"io\":%lld,\"arena\":%lld,\"total\":%lld,"
        "\"apart\":%lld,\"params_in_16_bits\":%lld},\n",
        (long long)p->params_bytes, (long long)p->state_bytes, (long long)p->io_bytes,
        (long long)p->arena_bytes, (long long)p->total_bytes, (long long)program_whole_bytes(p),
        (long long)short_parameters(p->module));
    json_phases(e, out);
    text_printf(out, " \"stack_per_thread\":%lld,\"threads\":%d,\"data_row_bytes\":{",
                (long long)p->stack_bytes, opt->threads);
    for (int i = 0; i < p->module->dataset.count; i++) {
        text_add(out, i > 0 ? "," : "");
        json_string(out, p->module->dataset.at[i].name);
        text_printf(out, ":%lld", (long long)row_bytes(&p->module->dataset.at[i]));
    }
    text_add(out, "},\n \"entries\":[");
    bool first = true;
    for (int i = 0; i < p->entry.count; i++) {
        if (is_shown(p->entry.at[i])) {
            text_add(out, first ? "\n  " : ",\n  ");
            json_entry(e, p->entry.at[i], out);
            first = false;
        }
    }
    text_add(out, "],\n \"tensors\":[");
    for (int i = 0; i < p->slot.count; i++) {
        const Buf *buf = p->slot.at[i];
        text_add(out, i > 0 ? ",\n  {\"name\":" : "\n  {\"name\":");
        json_string(out, buf->slot->file_name);
        text_printf(out, ",\"dtype\":\"%s\",\"shape\":[", elem_name(buf->type->elem));
        for (int k = 0; k < buf->type->rank; k++) {
            text_printf(out, "%s%lld", k > 0 ? "," : "", (long long)buf->type->dim[k]);
        }
        text_printf(out, "],\"region\":\"%s\"", buf->kind == BUF_PARAM ? "params" : "state");
        json_number(out, "offset", buf->offset);
        json_number(out, "bytes", buf->bytes);
        if (p->phase.count > 0) {
            text_printf(out, ",\"phases\":[%d,%d]", buf->begins + 1, buf->ends + 1);
        }
        if (buf->slot->split > 0) {
            json_number(out, "split", buf->slot->split);
        }
        text_add(out, buf->slot->transposed ? ",\"transposed\":true" : "");
        text_printf(out, ",\"trainable\":%s}",
                    buf->slot->trainable && !buf->slot->frozen ? "true" : "false");
    }
    text_add(out, "],\n");
    report_api(e, out);
    text_add(out, "}\n");
}

/* ---- text ----------------------------------------------------------------------------------- */

static void print_live(const Emit *e, const ProgramEntry *entry, int most, Text *out) {
    LiveSet set = live_set(e, entry);
    int64_t rest = 0;
    for (int i = 0; i < set.count; i++) {
        const LiveItem *item = &set.at[i];
        if (i >= most) {
            rest += item->bytes;
            continue;
        }
        text_printf(out, "    %12lld  %-20s %s", (long long)item->bytes, item->name,
                    elem_name(item->buf->type->elem));
        text_shape(out, *item->buf->type);
        int line = loc_line_of(e, item->buf->loc);
        if (line > 0) {
            text_printf(out, " line %d", line);
        }
        text_printf(out, *item->layer ? ", %s" : "%s", item->layer);
        text_printf(out, "; %s\n", item->why);
    }
    if (set.count > most) {
        text_printf(out, "    %12lld  in %d smaller ones\n", (long long)rest, set.count - most);
    }
}

static int by_predicted(const void *a, const void *b) {
    const CallCost *x = a, *y = b;
    double tx = (double)x->predicted * (double)x->times;
    double ty = (double)y->predicted * (double)y->times;
    return tx != ty ? (tx > ty ? -1 : 1) : x->step->id - y->step->id;
}

/* The calls that are expected to take longest. */
static void print_calls(const Emit *e, const ProgramEntry *entry, int most, Text *out) {
    CallCosts all = calls_of(e, entry);
    if (all.at.count == 0) {
        return;
    }
    text_printf(out,
                "  needed: %lld FLOPs, %lld of them in products; %lld bytes must move once; "
                "predicted %.1f us, %d %% of the limit\n",
                (long long)all.flops, (long long)all.products, (long long)all.bytes_once,
                1e-6 * (double)all.predicted, call_share(all.limit, all.predicted));
    text_add(out, "    step    times          FLOPs          bytes    predicted us  limit\n");
    qsort(all.at.at, (size_t)all.at.count, sizeof *all.at.at, by_predicted);
    for (int i = 0; i < all.at.count && i < most; i++) {
        const CallCost *cost = &all.at.at[i];
        int line = loc_line_of(e, cost->step->loc);
        text_printf(out, "    %4d %8lld %14lld %14lld %15.2f %4d %%  %s", cost->step->id,
                    (long long)cost->times, (long long)cost->flops, (long long)cost->bytes,
                    1e-6 * (double)cost->predicted, call_share(cost->limit, cost->predicted),
                    cost->name);
        text_printf(out, cost->layer[0] != 0 ? ", %s" : "%.0s", cost->layer);
        text_printf(out, line > 0 ? ", line %d\n" : "%.0d\n", line);
    }
    if (all.at.count > most) {
        text_printf(out, "    and %d more; --format=json has all of them\n", all.at.count - most);
    }
}

/* What precision saves, by layer. */
static void print_halves(const Emit *e, const ProgramEntry *entry, Text *out) {
    HalfRows rows = layers_halves(e, entry);
    const Entry *of = entry->entry;
    if (of->half != TY_ERROR && !(of->rounds & ROUND_PRODUCTS) &&
        (of->kind == ENTRY_TRAIN || of->kind == ENTRY_CALL)) {
        text_printf(out,
                    "  precision %s: %s multiply in f32, where 16 bits would make them slower "
                    "('always' has them there, too)\n",
                    elem_name(of->half),
                    of->rounds == 0 ? "all products" : "products that are no convolutions");
    }
    if (rows.count > 0) {
        text_printf(out,
                    "  stored in %s, by layer; f32 would take as many bytes more\n"
                    "           bytes  kept for the backward part\n",
                    entry->entry->half != TY_ERROR ? elem_name(entry->entry->half) : "16 bits");
    }
    for (int i = 0; i < rows.count; i++) {
        text_printf(out, "    %12lld %12lld  %s\n", (long long)rows.at[i].bytes,
                    (long long)rows.at[i].kept, rows.at[i].path);
    }
}

static void print_entry(const Emit *e, const ProgramEntry *entry, Text *out) {
    text_printf(out, "\n%s %s: arena %lld bytes", kind_word(entry->entry->kind), entry->entry->name,
                (long long)entry->arena_bytes);
    text_printf(out,
                " (least possible in this order %lld), %d steps, %lld FLOPs, %lld bytes moved\n",
                (long long)entry->lower_bound_bytes, entry->nstep, (long long)entry->flops,
                (long long)entry->bytes_moved);
    if (entry->entry->kind == ENTRY_TRAIN) {
        text_printf(out, "  updates %lld of %lld weights\n", (long long)updated(entry->entry),
                    (long long)parameters(e->p->module));
    }
    if (entry->steps_again > 0) {
        text_printf(out, "  %d of them run again, %lld FLOPs: ", entry->steps_again,
                    (long long)entry->flops_again);
        if (entry->spared_bytes > 0) {
            text_printf(out, "hardly any time for %lld bytes less\n",
                        (long long)entry->spared_bytes);
        } else {
            text_printf(out, "the budget asks for that\n");
        }
    }
    if (entry->entry->parts > 1) {
        text_printf(out, "  its %lld rows are made in %lld parts: the budget asks for that\n",
                    (long long)entry->entry->rows, (long long)entry->entry->parts);
    }
    if (entry->entry->keep != NULL && entry->entry->flops_more != 0) {
        text_printf(out, "  %lld FLOPs more than without a budget%s\n",
                    (long long)entry->entry->flops_more,
                    entry->entry->parts > 1 ? "" : ": its loops keep less");
    }
    SweepList sweeps = sweeps_of(e, entry);
    for (int i = 0; i < sweeps.count; i++) {
        text_printf(out,
                    "  the gradient of %s is zero but in rows that were looked up; %lld bytes a "
                    "step are for all rows of its table of %lld\n",
                    sweeps.at[i].path, (long long)sweeps.at[i].bytes,
                    (long long)sweeps.at[i].table_bytes);
    }
    print_halves(e, entry, out);
    if (entry->lower_bound_bytes == 0) {
        print_calls(e, entry, 12, out);
        return;
    }
    const Step *step = step_at(entry, entry->peak_step);
    int line = step != NULL ? loc_line_of(e, step->loc) : 0;
    text_printf(out, "  peak at step %d, %s", entry->peak_step,
                step != NULL ? step_word(step) : "none");
    if (line > 0) {
        text_printf(out, ", line %d", line);
    }
    text_printf(out, "; each further thread adds %lld bytes; order: %s\n",
                (long long)thread_adds(e, entry, e->c->opt.threads),
                entry->order_name != NULL ? entry->order_name : "as lowered");
    print_live(e, entry, 12, out);
    print_calls(e, entry, 12, out);
}

static void print_region(Text *out, const char *name, int64_t bytes, const char *what) {
    text_printf(out, "  %-8s %14lld  %s\n", name, (long long)bytes, what);
}

static void report_text(const Emit *e, Text *out) {
    const Program *p = e->p;
    if (p->device) {
        text_printf(out, "memory of %s on a device, bytes\n", p->prefix);
    } else {
        text_printf(out, "memory of %s, bytes, for up to %d threads\n", p->prefix,
                    e->c->opt.threads);
    }
    int64_t kept_short = short_parameters(p->module);
    print_region(out, "params", p->params_bytes,
                 kept_short == 0
                     ? "weights"
                     : str_printf(e->arena,
                                  "weights; %lld of it in 16 bits, f32 would take as many more",
                                  (long long)kept_short));
    print_region(out, "state", p->state_bytes, "optimizer slots, states, counters");
    print_region(out, "io", p->io_bytes,
                 e->c->opt.no_main && !p->device ? "results" : "batch staging and results");
    print_region(out, "arena", p->arena_bytes, "scratch, the most of any entry");
    for (int k = 0; k < p->phase.count; k++) {
        const PhaseNeed *need = &p->phase.at[k];
        Text what = {.arena = e->arena};
        phase_entries(p, k, "", &what);
        text_printf(&what, ": params %lld, state %lld, arena %lld", (long long)need->params,
                    (long long)need->state, (long long)need->arena);
        if (k > 0) {
            text_printf(&what, "; %lld handed over", (long long)handed_over(p, k));
        }
        print_region(out, str_printf(e->arena, "phase %d", k + 1), need->total, what.at);
    }
    print_region(out, "total", p->total_bytes, p->phase.count > 0 ? "of the largest phase" : "");
    if (p->phase.count > 0) {
        print_region(out, "apart", program_whole_bytes(p), "with --checkpoint, or entries by name");
    }
    if (p->device) {
        text_printf(out, "  mirror of the results on the host %lld\n",
                    (long long)api_host_bytes(p));
    } else {
        text_printf(out, "  stack of a thread at most %lld\n", (long long)p->stack_bytes);
    }
    for (int i = 0; i < p->module->dataset.count; i++) {
        const DataSet *set = &p->module->dataset.at[i];
        text_printf(out, "  data set %s: %lld bytes a row, beside the total\n", set->name,
                    (long long)row_bytes(set));
    }
    for (int i = 0; i < p->entry.count; i++) {
        if (is_shown(p->entry.at[i])) {
            print_entry(e, p->entry.at[i], out);
        }
    }
}

void emit_report(Text *out, Compile *c, const Program *p, const Source *source, bool json) {
    Emit e = emit_open(c, p, source);
    if (json) {
        report_json(&e, out);
    } else {
        report_text(&e, out);
    }
}

/* ---- counts --------------------------------------------------------------------------------- */

typedef struct {
    int kernels, loops, copies, buffers;
    int64_t flops, bytes_moved;
} Stats;

static void count_step(void *ctx, Step *step, int depth) {
    Stats *stats = ctx;
    (void)depth;
    stats->kernels += step->kind == STEP_KERNEL;
    stats->loops += step->kind == STEP_LOOP;
    stats->copies += step->kind == STEP_COPY;
}

static void print_stats(FILE *out, const char *prefix, const char *dot, const Stats *s,
                        int64_t arena, int64_t bound) {
    fprintf(out, "%s%skernels: %d\n%s%sloops: %d\n%s%scopies: %d\n%s%sbuffers: %d\n", prefix, dot,
            s->kernels, prefix, dot, s->loops, prefix, dot, s->copies, prefix, dot, s->buffers);
    fprintf(out, "%s%sarena: %lld\n%s%slower_bound: %lld\n%s%sflops: %lld\n%s%sbytes_moved: %lld\n",
            prefix, dot, (long long)arena, prefix, dot, (long long)bound, prefix, dot,
            (long long)s->flops, prefix, dot, (long long)s->bytes_moved);
}

void emit_stats(FILE *out, const Program *p) {
    Stats all = {0};
    int64_t bound = 0;
    for (int i = 0; i < p->entry.count; i++) {
        const ProgramEntry *entry = p->entry.at[i];
        Stats one = {.flops = entry->flops, .bytes_moved = entry->bytes_moved};
        steps_visit(&entry->step, count_step, &one);
        for (int k = 0; k < entry->buf.count; k++) {
            const Buf *buf = entry->buf.at[k];
            one.buffers += buf_owns_arena(buf);
        }
        all.kernels += one.kernels;
        all.loops += one.loops;
        all.copies += one.copies;
        all.buffers += one.buffers;
        all.flops = count_add(all.flops, 1, one.flops);
        all.bytes_moved = count_add(all.bytes_moved, 1, one.bytes_moved);
        bound = entry->lower_bound_bytes > bound ? entry->lower_bound_bytes : bound;
        if (is_shown(entry)) {
            const char *name = entry->c_name != NULL ? entry->c_name : entry->entry->name;
            print_stats(out, name, ".", &one, entry->arena_bytes, entry->lower_bound_bytes);
            if (entry->entry->half != TY_ERROR) {
                fprintf(out, "%s.rounded: %s\n", name, rounded_word(entry->entry));
            }
        }
    }
    print_stats(out, "", "", &all, p->arena_bytes, bound);
    fprintf(out, "functions: %d\nparams: %lld\nstate: %lld\nio: %lld\ntotal: %lld\n",
            p->kernel.count, (long long)p->params_bytes, (long long)p->state_bytes,
            (long long)p->io_bytes, (long long)p->total_bytes);
}

/* ---- budget --------------------------------------------------------------------------------- */

/* Of one phase, or (-1) of a program without any. */
static int64_t least_of(const Program *p, int phase) {
    int64_t arena = 0;
    for (int i = 0; i < p->entry.count; i++) {
        const ProgramEntry *e = p->entry.at[i];
        bool asked = phase < 0 || entry_in_phase(p, e, phase);
        arena = asked && e->lower_bound_bytes > arena ? e->lower_bound_bytes : arena;
    }
    const PhaseNeed *need = phase < 0 ? NULL : &p->phase.at[phase];
    return arena + (need ? need->total - need->arena : p->total_bytes - p->arena_bytes);
}

static int64_t least_total(const Program *p) {
    int64_t most = p->phase.count == 0 ? least_of(p, -1) : 0;
    for (int k = 0; k < p->phase.count; k++) {
        int64_t least = least_of(p, k);
        most = least > most ? least : most;
    }
    return most;
}

/* The phase that decides what the total is; -1: there is none. */
static int largest_phase(const Program *p) {
    int largest = -1;
    for (int k = 0; k < p->phase.count; k++) {
        bool more = largest < 0 || p->phase.at[k].total > p->phase.at[largest].total;
        largest = more ? k : largest;
    }
    return largest;
}

/* The entry that decides how large the arena is, of that phase. */
static const ProgramEntry *largest(const Program *p) {
    const ProgramEntry *most = NULL;
    int phase = largest_phase(p);
    for (int i = 0; i < p->entry.count; i++) {
        const ProgramEntry *e = p->entry.at[i];
        bool asked = phase < 0 || entry_in_phase(p, e, phase);
        most = asked && (most == NULL || e->arena_bytes > most->arena_bytes) ? e : most;
    }
    return most;
}

/* Where the entry that needs most begins in the text, or the first one that stands there. */
static Loc entry_loc(const Program *p, const ProgramEntry *most) {
    const Entry *entry = most->entry->train ? most->entry->train : most->entry;
    for (int i = 0; entry->kind != ENTRY_TRAIN && entry->kind != ENTRY_CALL; i++) {
        if (i == p->entry.count) {
            return LOC_NONE;
        }
        entry = p->entry.at[i]->entry;
    }
    return entry->loc;
}

/* `loc`: of the budget, LOC_NONE where it is that of the command line. */
static void budget_message(Compile *c, const Program *p, int64_t budget, Loc loc) {
    Emit e = emit_open(c, p, &c->diag.sources.at[0]);
    const ProgramEntry *entry = largest(p);
    bool option = c->opt.budget >= 0;
    diag_error(&c->diag, option ? entry_loc(p, entry) : loc, 601,
               "needs %lld bytes, %lld more than %s%lld", (long long)p->total_bytes,
               (long long)(p->total_bytes - budget), option ? "--budget=" : "the budget of ",
               (long long)budget);
    int phase = largest_phase(p);
    PhaseNeed need = {p->params_bytes, p->state_bytes, p->arena_bytes, p->total_bytes};
    if (phase >= 0) {
        need = p->phase.at[phase];
    }
    diag_note(&c->diag, LOC_NONE, "params %lld, state %lld, io %lld, arena %lld bytes%s",
              (long long)need.params, (long long)need.state, (long long)p->io_bytes,
              (long long)need.arena,
              phase < 0 ? "" : str_printf(e.arena, " in phase %d, the largest", phase + 1));
    diag_note(&c->diag, LOC_NONE, "the least possible total in this order of steps is %lld bytes",
              (long long)least_total(p));
    if (entry->steps_again > 0) {
        diag_note(&c->diag, LOC_NONE, "%d steps of '%s' run again already to need no more",
                  entry->steps_again, entry->entry->name);
    }
    LiveSet set = live_set(&e, entry);
    for (int i = 0; i < set.count && i < 8; i++) {
        const LiveItem *item = &set.at[i];
        Text shape = {.arena = e.arena};
        text_shape(&shape, *item->buf->type);
        diag_note(&c->diag, item->buf->loc, "at the peak of '%s': %lld bytes for %s %s%s, %s",
                  entry->entry->name, (long long)item->bytes, item->name,
                  elem_name(item->buf->type->elem), shape.at, item->why);
    }
    if (c->rounded_bytes > 0 && c->rounded_bytes <= budget) {
        diag_hint(&c->diag,
                  "'budget %lld, rounding;' fits, in %lld bytes: sums are made in another order, "
                  "and may be rounded otherwise",
                  (long long)budget, (long long)c->rounded_bytes);
    }
    int64_t adds = thread_adds(&e, entry, c->opt.threads), over = p->total_bytes - budget;
    int64_t scaled = p->io_bytes + need.arena, fixed = need.params + need.state;
    if (adds > 0 && over <= adds * (c->opt.threads - 1)) {
        diag_hint(&c->diag, "--threads=%lld fits: each thread takes %lld bytes of the arena",
                  (long long)(c->opt.threads - (over + adds - 1) / adds), (long long)adds);
    } else if (entry->entry->rows > 1 && budget > fixed && scaled > 0) {
        diag_hint(&c->diag,
                  "io and arena may take %lld bytes; a batch of fewer than %lld rows makes them "
                  "smaller",
                  (long long)(budget - fixed), (long long)entry->entry->rows);
    }
}

int budget_check(Compile *c, const Program *p) {
    if (c->opt.budget >= 0) {
        if (p->total_bytes > c->opt.budget) {
            budget_message(c, p, c->opt.budget, LOC_NONE);
            return EXIT_BUDGET;
        }
        return EXIT_OK;
    }
    for (int i = 0; i < p->entry.count; i++) {
        const Entry *entry = p->entry.at[i]->entry;
        if (entry->kind == ENTRY_TRAIN && entry->budget >= 0 && p->total_bytes > entry->budget) {
            budget_message(c, p, entry->budget, entry->budget_loc);
            return EXIT_BUDGET;
        }
    }
    return EXIT_OK;
}
