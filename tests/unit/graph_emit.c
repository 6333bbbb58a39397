/* graph_emit: cases as emitted C, many in one program, and their values; see graph_oracle.h.
 *
 * NUMBER.c holds the module as `mdlc --no-main` prints it and a function that drives it: memory
 * with guard bytes behind each region, init, every entry in turn, twice; a poisoned arena before
 * each call. NUMBER.data holds the inputs, NUMBER.want what must come out, NUMBER.got what did. */
#include "graph_oracle.h"

#include "emit/module.h"
#include "passes/check.h"
#include "passes/lower/lower.h"
#include "passes/plan/plan.h"
#include "passes/schedule/schedule.h"
#include "runtime/half.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- writing ---------------------------------------------------------------------------------- */

/* One element in the bytes that the emitted program has for it. */
static size_t put_element(Elem elem, Num x, unsigned char *to) {
    float f = (float)x.f;
    switch (elem) {
    case TY_F32: memcpy(to, &f, 4); return 4;
    case TY_F64: memcpy(to, &x.f, 8); return 8;
    case TY_F16:
    case TY_BF16: {
        uint16_t bits = elem == TY_F16 ? md_to_f16(f) : md_to_bf16(f);
        memcpy(to, &bits, sizeof bits);
        return sizeof bits;
    }
    default: { /* little-endian or not: narrow by value */
        int64_t i = x.i;
        int32_t w = (int32_t)i;
        int16_t h = (int16_t)i;
        int8_t b = (int8_t)i;
        size_t n = elem_bytes(elem);
        memcpy(to, n == 8 ? (void *)&i : n == 4 ? (void *)&w : n == 2 ? (void *)&h : (void *)&b, n);
        return n;
    }
    }
}

static Num get_element(Elem elem, const unsigned char *from) {
    Num x;
    float f;
    int64_t i = 0;
    uint32_t w;
    uint16_t h;
    switch (elem) {
    case TY_F32: memcpy(&f, from, 4); return (x.f = (double)f, x);
    case TY_F64: memcpy(&x.f, from, 8); return x;
    case TY_F16:
    case TY_BF16:
        memcpy(&h, from, 2);
        return (x.f = (double)(elem == TY_F16 ? md_from_f16(h) : md_from_bf16(h)), x);
    case TY_I64: memcpy(&i, from, 8); break;
    case TY_I32:
    case TY_U32:
        memcpy(&w, from, 4);
        i = elem == TY_I32 ? (int64_t)(int32_t)w : (int64_t)w;
        break;
    case TY_I16:
    case TY_U16:
        memcpy(&h, from, 2);
        i = elem == TY_I16 ? (int64_t)(int16_t)h : (int64_t)h;
        break;
    case TY_I8: i = (int8_t)from[0]; break;
    default: i = from[0]; break;
    }
    x.i = i;
    return x;
}

static bool write_data(const GraphCase *c, Arena *arena, const char *path) {
    size_t bytes = 0, at = 0;
    for (int i = 0; i < c->input.count; i++) {
        bytes += (size_t)type_bytes(c->input.at[i].slot->type);
    }
    unsigned char *data = ARENA_ARRAY(arena, unsigned char, bytes + 8);
    for (int i = 0; i < c->input.count; i++) {
        Type t = c->input.at[i].slot->type;
        for (int64_t k = 0; k < type_count(t); k++) {
            double x = c->input.at[i].data[k];
            Num n = elem_is_float(t.elem) ? (Num){.f = x} : (Num){.i = (int64_t)x};
            at += put_element(t.elem, n, data + at);
        }
    }
    return file_write(path, data, at);
}

/* A letter for each thing that the driver writes: a status or an item. */
static bool write_order(const GraphCase *c, const char *path) {
    const Module *module = c->module;
    FILE *out = fopen(path, "wb");
    for (int call = 0; out && call < ORACLE_CALLS; call++) {
        for (int e = call == 0 ? 0 : 1; e < module->entry.count; e++) {
            const Entry *entry = module->entry.at[e];
            fputc('s', out);
            for (int k = 0; k < entry->out.count; k++) {
                if (out_is_result(entry->out.at[k].role)) {
                    fputc('i', out);
                }
            }
        }
    }
    for (int i = 0; out && i < module->slot.count; i++) {
        fputc('i', out);
    }
    return out && fputc('s', out) != EOF && fclose(out) == 0;
}

/* For each item: limit, element type, count, numbers. */
static bool write_want(const Trace *want, const char *path) {
    FILE *out = fopen(path, "wb");
    for (int i = 0; out && i < want->item.count; i++) {
        Value v = want->item.at[i];
        int64_t head[2] = {want->stored.at[i], type_count(v.type)};
        fwrite(&want->limit.at[i], sizeof(double), 1, out);
        fwrite(head, sizeof head, 1, out);
        fwrite(v.at, sizeof *v.at, (size_t)head[1], out);
    }
    return out && fclose(out) == 0;
}

static void drive_entry(const GraphCase *c, const ProgramEntry *e, int number, Text *out) {
    const Entry *entry = e->entry;
    const char *name = e->c_name;
    bool results = false;
    text_printf(out, "    memset(arena, 0xff, sizeof arena - 64);\n    {\n");
    for (int k = 0; k < entry->out.count; k++) {
        results = results || out_is_result(entry->out.at[k].role);
    }
    if (entry->input.count > 0) {
        text_printf(out, "        const %s_in in = {", name);
        for (int k = 0; k < entry->input.count; k++) {
            const Slot *slot = entry->input.at[k];
            int at = 0;
            while (c->input.at[at].slot != slot) {
                at++;
            }
            text_printf(out, ".%s = %sg%d_data%d%s", slot->c_name, slot->type.rank ? "" : "*",
                        number, at, k + 1 < entry->input.count ? ", " : "");
        }
        text_add(out, "};\n");
    }
    text_printf(out, "%s        status = %s(&m%s%s);\n",
                results ? str_printf(out->arena, "        %s_out out;\n", name) : "", name,
                entry->input.count > 0 ? ", &in" : "", results ? ", &out" : "");
    text_add(out, "        fwrite(&status, sizeof status, 1, got);\n"
                  "        if (status != 0) {\n            return 0;\n        }\n");
    for (int k = 0; k < entry->out.count; k++) {
        if (out_is_result(entry->out.at[k].role)) {
            Type t = *entry->region->out.at[k]->type;
            t.elem = entry->out.at[k].half != TY_ERROR ? entry->out.at[k].half : t.elem;
            text_printf(out, "        fwrite(%sout.%s, %lld, 1, got);\n", t.rank ? "" : "&",
                        entry->out.at[k].name, (long long)type_bytes(t));
        }
    }
    text_add(out, "    }\n");
}

/* static int drive_3(FILE *data, FILE *got) */
static void drive(const GraphCase *c, const Program *p, int number, Text *out) {
    static const char *const regions[] = {"params", "state", "io", "arena"};
    const int64_t bytes[] = {p->params_bytes, p->state_bytes, p->io_bytes, p->arena_bytes};
    text_add(out, "#include <stdio.h>\n");
    for (int i = 0; i < c->input.count; i++) {
        Type t = c->input.at[i].slot->type;
        text_printf(out, "static %s g%d_data%d[%lld];\n", elem_c_name(t.elem), number, i,
                    (long long)(type_count(t) > 0 ? type_count(t) : 1));
    }
    text_printf(out,
                "static int drive_%d(FILE *data, FILE *got) {\n    int status = data == NULL;\n"
                "    g%d m;\n",
                number, number);
    for (int i = 0; i < 4; i++) {
        text_printf(out, "    static _Alignas(64) unsigned char %s[%lld];\n", regions[i],
                    (long long)bytes[i] + 64);
        text_printf(out, "    memset(%s, 0xa5, sizeof %s);\n", regions[i], regions[i]);
    }
    text_printf(out,
                "    const g%d_memory memory = {params, state, io, arena, sizeof params - 64, "
                "sizeof state - 64,\n        sizeof io - 64, sizeof arena - 64};\n",
                number);
    for (int i = 0; i < c->input.count; i++) {
        text_printf(out,
                    "    status |= fread(g%d_data%d, sizeof *g%d_data%d, %lld, data) != %lld;\n",
                    number, i, number, i, (long long)type_count(c->input.at[i].slot->type),
                    (long long)type_count(c->input.at[i].slot->type));
    }
    text_printf(out,
                "    status |= g%d_bind(&m, &memory) | g%d_init(&m, 1);\n"
                "    fwrite(&status, sizeof status, 1, got);\n",
                number, number);
    for (int call = 0; call < ORACLE_CALLS; call++) {
        for (int e = 1; e < p->entry.count; e++) {
            drive_entry(c, p->entry.at[e], number, out);
        }
    }
    for (int i = 0; i < p->slot.count; i++) {
        const Buf *buf = p->slot.at[i];
        text_printf(out, "    fwrite(%s + %lld, %lld, 1, got);\n",
                    buf->kind == BUF_PARAM ? "params" : "state", (long long)buf->offset,
                    (long long)type_bytes(*buf->type));
    }
    text_add(out, "    status = 0;\n");
    for (int i = 0; i < 4; i++) {
        text_printf(out,
                    "    for (int i = 0; i < 64; i++) {\n"
                    "        status |= %s[sizeof %s - 64 + (size_t)i] != 0xa5;\n    }\n",
                    regions[i], regions[i]);
    }
    text_add(out, "    fwrite(&status, sizeof status, 1, got);\n    return 0;\n}\n");
}

static bool fault(OracleReport *r, const char *check, const char *what) {
    snprintf(r->check, sizeof r->check, "%s", check);
    snprintf(r->what, sizeof r->what, "%s", what);
    return false;
}

/* The texts that places of nodes point into; gives the one of the module. */
static uint32_t add_sources(Diag *diag, const GraphCase *c, const char *name) {
    if (!c->text) {
        return diag_add_source(diag, name, "", 0);
    }
    const Diag *from = &c->text->c.diag;
    for (int i = 0; i < from->sources.count; i++) {
        diag_add_source(diag, name, from->sources.at[i].text, from->sources.at[i].length);
    }
    return c->text->source;
}

bool emit_case(GraphCase *c, Arena *arena, const Trace *want, const OracleOptions *opt,
               OracleReport *r) {
    Compile compile = {.opt = {.budget = -1, .no_main = true, .whole_runtime = true}};
    compile.opt.threads = c->lone ? 1 : 4;
    char *messages;
    size_t nmessages;
    FILE *log = open_memstream(&messages, &nmessages);
    diag_open(&compile.diag, &compile.arena, log);
    char *name = str_printf(arena, "g%d", opt->number);
    compile.opt.input = compile.opt.output = name;
    compile.opt.float_type = c->module->graph->float_type;
    uint32_t source = add_sources(&compile.diag, c, name);
    c->module->name = name;
    Program *p = pass_lower(&compile, &compile.arena, c->module);
    if (compile.diag.errors) {
        fclose(log);
        fault(r, "lower: refused", messages);
        free(messages);
        return false;
    }
    kernels_unread(p);
    kernels_many(p, false);
    pass_plan(p, false, -1);
    program_names(p);
    const char *wrong = check_program(&compile.arena, p);
    bool ok = true;
    if (wrong) {
        ok = fault(r, "plan", wrong);
    } else {
        Text out = {.arena = &compile.arena};
        emit_module(&out, &compile, p, &compile.diag.sources.at[source]);
        drive(c, p, opt->number, &out);
        ok = file_write(str_printf(arena, "%s.c", opt->write), out.at, out.len) &&
             write_data(c, arena, str_printf(arena, "%s.data", opt->write)) &&
             write_order(c, str_printf(arena, "%s.order", opt->write)) &&
             write_want(want, str_printf(arena, "%s.want", opt->write));
        r->calls += ORACLE_CALLS * (p->entry.count - 1);
        if (!ok) {
            fault(r, "files", "cannot be written");
        }
    }
    fclose(log);
    free(messages);
    arena_free(&compile.arena);
    return ok;
}

const char *const emitted_flags[] = {
    "-std=c11 -O0 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror",
    "-std=c11 -O3 -march=native -fopenmp -ffp-contract=off -fno-math-errno -fno-trapping-math",
    NULL};

/* --- running ---------------------------------------------------------------------------------- */

static int command(Arena *arena, const char *folder, const char *text) {
    int status = system(str_printf(arena, "cd %s && { %s; } >log 2>&1", folder, text));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

enum { NONFINITE = 10 }; /* MD_ERR_NONFINITE of runtime/md.h */

typedef struct {
    const unsigned char *at, *end;
} Bytes;

static bool take(Bytes *b, void *to, size_t n) {
    if ((size_t)(b->end - b->at) < n) {
        return false;
    }
    memcpy(to, b->at, n);
    b->at += n;
    return true;
}

static bool take_status(Bytes *got, int *status) {
    return take(got, status, sizeof *status);
}

/* Compares one item; `what` says how it differs. */
static bool take_item(Bytes *want, Bytes *got, int item, char *what, size_t room) {
    double limit;
    int64_t head[2];
    if (!take(want, &limit, sizeof limit) || !take(want, head, sizeof head)) {
        snprintf(what, room, "item %d is not expected", item);
        return false;
    }
    Elem elem = (Elem)head[0];
    bool same = true;
    for (int64_t i = 0; i < head[1]; i++) {
        Num x, y;
        unsigned char bytes[8];
        if (!take(want, &x, sizeof x) || !take(got, bytes, elem_bytes(elem))) {
            snprintf(what, room, "item %d is short", item);
            return false;
        }
        y = get_element(elem, bytes);
        bool good = limit < 0 ? true : elem_is_float(elem) ? fabs(x.f - y.f) <= limit : x.i == y.i;
        if (!good && same && elem_is_float(elem)) {
            snprintf(what, room, "item %d, element %lld is %.9g, not %.9g; allowed is %g", item,
                     (long long)i, y.f, x.f, limit);
        } else if (!good && same) {
            snprintf(what, room, "item %d, element %lld is %lld, not %lld", item, (long long)i,
                     (long long)y.i, (long long)x.i);
        }
        same = same && good;
    }
    return same;
}

/* Is the loss that comes next no number? Then the call has said so, and done nothing. */
static bool ends_here(Bytes want, int status) {
    double limit;
    int64_t head[2];
    Num x;
    return status == NONFINITE && take(&want, &limit, sizeof limit) &&
           take(&want, head, sizeof head) && take(&want, &x, sizeof x) &&
           elem_is_float((Elem)head[0]) && !isfinite(x.f);
}

static void compare_case(const char *folder, int number, const char *how, OracleReport *r) {
    Arena arena = {0};
    size_t nwant, ngot;
    char *order = dumped_file(&arena, str_printf(&arena, "%s/%d.order", folder, number), &nwant);
    char *want = dumped_file(&arena, str_printf(&arena, "%s/%d.want", folder, number), &nwant);
    char *got = dumped_file(&arena, str_printf(&arena, "%s/%d.got", folder, number), &ngot);
    char what[300] = "";
    bool ok = want && got && order;
    Bytes w = {(const unsigned char *)want, (const unsigned char *)want + nwant};
    Bytes g = {(const unsigned char *)got, (const unsigned char *)got + ngot};
    int item = 0;
    for (const char *at = order; ok && *at; at++) {
        int status = 0;
        if (*at == 's') {
            ok = take_status(&g, &status) && status == 0;
            if (ends_here(w, status)) {
                ok = true;
                break;
            }
            if (!ok) {
                snprintf(what, sizeof what, "status %d before item %d", status, item);
            }
        } else {
            ok = take_item(&w, &g, item++, what, sizeof what);
        }
    }
    if (!ok) {
        snprintf(r->check, sizeof r->check, "emitted: values");
        snprintf(r->what, sizeof r->what, "%s: %s", how, what);
    }
    arena_free(&arena);
}

/* The cases as one program. */
static bool build(Arena *arena, const char *folder, const int *number, int count,
                  const char *flags) {
    Text main = {.arena = arena};
    text_add(&main, "#define MD_TILE_EVERY 1\n");
    for (int i = 0; i < count; i++) {
        text_printf(&main, "#include \"%d.c\"\n", number[i]);
    }
    text_add(&main,
             "#include <stdio.h>\n"
             "static int one(int (*drive)(FILE *, FILE *), const char *in, const char *out) {\n"
             "    FILE *data = fopen(in, \"rb\"), *got = fopen(out, \"wb\");\n"
             "    int bad = !data || !got || drive(data, got);\n"
             "    return (got && fclose(got)) | bad;\n}\n"
             "int main(void) {\n    int bad = 0;\n");
    for (int i = 0; i < count; i++) {
        text_printf(&main, "    bad |= one(drive_%d, \"%d.data\", \"%d.got\");\n", number[i],
                    number[i], number[i]);
    }
    text_add(&main, "    return bad;\n}\n");
    file_write(str_printf(arena, "%s/all.c", folder), main.at, main.len);
    const char *cc = getenv("CC") ? getenv("CC") : "cc";
    return command(arena, folder, str_printf(arena, "%s %s all.c -lm -o all", cc, flags)) == 0;
}

static bool run(Arena *arena, const char *folder, int threads) {
    const char *line =
        str_printf(arena, "OMP_NUM_THREADS=%d OMP_WAIT_POLICY=passive timeout 60 ./all", threads);
    return command(arena, folder, line) == 0;
}

bool emitted_run(const char *folder, const int *number, int count, const char *flags,
                 OracleReport *r) {
    Arena arena = {0};
    const char *bad = !build(&arena, folder, number, count, flags) ? "compile"
                      : !run(&arena, folder, 1)                    ? "run"
                                                                   : NULL;
    for (int i = 0; !bad && i < count; i++) {
        compare_case(folder, number[i], flags, &r[i]);
    }
    bool threads = !bad && strstr(flags, "-fopenmp");
    if (threads) {
        Text keep = {.arena = &arena};
        text_add(&keep, "true");
        for (int i = 0; i < count; i++) {
            text_printf(&keep, " && mv %d.got %d.one", number[i], number[i]);
        }
        command(&arena, folder, keep.at);
        bad = run(&arena, folder, 2) ? NULL : "run";
    }
    for (int i = 0; threads && !bad && i < count; i++) {
        if (command(&arena, folder,
                    str_printf(&arena, "cmp %d.one %d.got", number[i], number[i])) &&
            !r[i].check[0]) {
            fault(&r[i], "emitted: threads", "two threads give other bits than one");
        }
    }
    if (bad && count == 1) {
        size_t n;
        char *log = dumped_file(&arena, str_printf(&arena, "%s/log", folder), &n);
        char *line = log ? strstr(log, "error") : NULL;
        fault(&r[0], str_printf(&arena, "emitted: %s", bad), line ? line : log ? log : "");
    }
    arena_free(&arena);
    return !bad;
}

void emitted_alone(const char *folder, int number, OracleReport *r) {
    for (int i = 0; emitted_flags[i] && !r->check[0]; i++) {
        emitted_run(folder, &number, 1, emitted_flags[i], r);
    }
}
