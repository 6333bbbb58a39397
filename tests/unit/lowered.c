#include "lowered.h"

#include "emit/printer.h"
#include "passes/check.h"
#include "passes/lower/lower.h"
#include "passes/plan/plan.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void lowered_open(Lowered *l, Compile *c) {
    *l = (Lowered){.c = c};
    l->text.arena = l->main.arena = &l->arena;
    text_add(&l->text, "#include \"runtime/half.h\"\n#include \"runtime/sort.h\"\n"
                       "#include \"runtime/rng.h\"\n"
                       "#include \"runtime/scalar.h\"\n"
                       "#include \"runtime/tile_kernel.h\"\n#define MD_TILE_REAL 64\n"
                       "#include \"runtime/tile_kernel.h\"\n"
                       "#include <stdio.h>\n#include <stdlib.h>\n\n"
                       "static double next_input(void) {\n"
                       "    static double at[4096];\n"
                       "    static size_t count, next;\n"
                       "    if (next == count) {\n"
                       "        count = fread(at, sizeof *at, sizeof at / sizeof *at, stdin);\n"
                       "        next = 0;\n"
                       "        if (count == 0) {\n            exit(1);\n        }\n"
                       "    }\n    return at[next++];\n}\n\n");
}

Program *lowered_program(Lowered *l, Region *region, Slot *const *slot, int nslot) {
    Module *module = ARENA_NEW(&l->arena, Module);
    module->arena = &l->arena;
    module->graph = region->graph;
    module->name = str_printf(&l->arena, "c%d", l->program.count);
    Entry *entry = ARENA_NEW(&l->arena, Entry);
    entry->kind = ENTRY_CALL;
    entry->name = "run";
    entry->region = region;
    for (int i = 0; i < nslot; i++) {
        VEC_PUSH(&l->arena, &entry->input, slot[i]);
    }
    for (int i = 0; i < region->out.count; i++) {
        EntryOut out = {
            .name = str_printf(&l->arena, "out%d", i), .role = OUT_RESULT, .loc = LOC_NONE};
        VEC_PUSH(&l->arena, &entry->out, out);
    }
    VEC_PUSH(&l->arena, &module->entry, entry);
    Program *p = pass_lower(l->c, &l->arena, module);
    program_names(p);
    return p;
}

static bool planned(const Program *p) {
    return p->total_bytes > 0;
}

void lowered_plan(Lowered *l, Program *p) {
    pass_plan(p, false, -1);
    const char *fault = check_program(&l->arena, p);
    if (fault) {
        program_dump(p, stdout);
        BUG("the memory plan is wrong: %s", fault);
    }
}

/* The storage of a Buf as a local name. */
static void print_buf(Text *out, const Program *p, const Buf *b) {
    const char *type = elem_c_name(b->type->elem);
    const Buf *root = buf_root(b);
    bool placed = root->kind == BUF_TEMP || root->kind == BUF_WORK || root->kind == BUF_RESULT;
    if (planned(p) && placed) {
        text_printf(out, "    %s *%s = (%s *)(void *)(%s + %lld);\n", type, b->name, type,
                    root->kind == BUF_RESULT ? "io" : "arena", (long long)root->offset);
    } else {
        int64_t n = buf_extent(b) / (int64_t)elem_bytes(b->type->elem);
        text_printf(out, "    static %s %s[%lld];\n", type, b->name, (long long)(n > 0 ? n : 1));
    }
    text_printf(out, "    (void)%s;\n", b->name);
}

/* A scalar that the step touches itself: in a loop around it may be the slice of a stack. */
static const char *scalar_at(Lowered *l, const Step *step, const Buf *buf) {
    Text at = {.arena = &l->arena};
    const AccessList *touch = step_touches(step);
    text_printf(&at, "%s[0", buf->name);
    for (int i = 0; i < touch->count; i++) {
        const Access *a = &touch->at[i];
        for (int k = 0; a->buf == buf && k < ACCESS_SLICES && a->slice[k] != NULL; k++) {
            text_printf(&at, " + i%d * %lld", a->slice[k]->index, (long long)buf->stride[k]);
        }
    }
    text_add(&at, "]");
    return at.at;
}

static void print_loop_head(Lowered *l, const Step *s) {
    const long long end = (long long)s->trip - 1;
    Text *out = &l->text;
    text_printf(out, "int64_t i%d, end%d = %lld;\n", s->index, s->index, end);
    if (s->last != NULL) {
        const char *last = scalar_at(l, s, s->last);
        text_printf(out, "    end%d = %s < %lld ? %s : %lld;\n", s->index, last, end, last, end);
    }
    text_printf(out,
                s->reverse ? "    for (i%d = end%d; i%d >= 0" : "    for (i%d = 0; i%d <= end%d",
                s->index, s->index, s->index);
    text_printf(out, "%s%s; i%d%s) {\n", s->go != NULL ? " && " : "",
                s->go != NULL ? scalar_at(l, s, s->go) : "", s->index, s->reverse ? "--" : "++");
}

/* The slices behind the last index become zeros. */
static void print_clear(Lowered *l, const Step *s) {
    const long long slice = (long long)s->dst->stride[0];
    const char *last = scalar_at(l, s, s->src);
    if (step_find(s, s->dst)->slice[0] != NULL) {
        BUG("a slice of a stack is cleared");
    }
    text_printf(&l->text,
                "for (int64_t k = (%s + 1) * %lld; k < %lld; k++) {\n        %s[k] = 0;\n    }\n",
                last, slice, slice * (long long)s->dst->type->dim[0], s->dst->name);
}

static void print_list(Lowered *l, const Program *p, const StepList *list, const Step *loop) {
    Text *out = &l->text;
    for (int i = 0; i < list->count; i++) {
        const Step *s = list->at[i];
        text_add(out, "    ");
        if (s->kind == STEP_LOOP) {
            print_loop_head(l, s);
            print_list(l, p, &s->body, s);
            text_add(out, "    }\n");
            if (s->made != NULL) {
                text_printf(out, "    %s = (int32_t)(i%d - 1);\n", scalar_at(l, s, s->made),
                            s->index);
            }
        } else if (s->kind == STEP_CLEAR) {
            print_clear(l, s);
        } else if (s->kind == STEP_COPY) {
            text_printf(out, "memcpy(%s, %s, %lld);\n", s->dst->name, s->src->name,
                        (long long)s->src->bytes);
        } else if (s->kind == STEP_KERNEL) {
            const Emit emit = {.arena = &l->arena, .p = p}; /* numbers are written out */
            printer_c.call(out, &emit, s);
            text_add(out, "\n");
        }
    }
    const ProgramEntry *e = p->entry.at[0];
    for (int i = 0; i < e->buf.count && !planned(p); i++) {
        const Buf *b = e->buf.at[i];
        if (b->final && b->loop == loop) {
            text_printf(out, "    memcpy(%s, %s, %lld);\n", b->final->name, b->name,
                        (long long)b->bytes);
        }
    }
}

static void print_kernel(void *ctx, Step *step, int depth) {
    Lowered *l = ctx;
    (void)depth;
    if (step->kind == STEP_KERNEL && !l->printed[step->kernel->id]) {
        l->printed[step->kernel->id] = true;
        printer_c.kernel(&l->text, &l->products, step);
        text_add(&l->text, "\n");
    }
}

int lowered_add(Lowered *l, Program *p, double *const *data) {
    int id = l->program.count;
    VEC_PUSH(&l->arena, &l->program, p);
    const ProgramEntry *e = p->entry.at[0];
    Text *out = &l->text;
    l->printed = ARENA_ARRAY(&l->arena, bool, p->kernel.count + 1);
    l->products = (Products){.arena = &l->arena}; /* names are those of one program */
    steps_visit(&e->step, print_kernel, l);
    text_printf(out, "static void run_%d(void) {\n", id);
    text_add(out, "    static struct { md_pace pace; } instance, *const m = &instance;\n"
                  "    (void)m;\n");
    if (planned(p)) {
        text_printf(out,
                    "    static double arena_at[%lld], io_at[%lld];\n"
                    "    unsigned char *arena = (unsigned char *)arena_at;\n"
                    "    unsigned char *io = (unsigned char *)io_at;\n"
                    "    memset(arena, 0xff, sizeof arena_at);\n    (void)io;\n",
                    (long long)(p->arena_bytes / 8 + 8), (long long)(p->io_bytes / 8 + 8));
    }
    for (int i = 0; i < p->table.count + e->buf.count; i++) {
        const Buf *b = i < p->table.count ? p->table.at[i] : e->buf.at[i - p->table.count];
        int64_t n = buf_extent(b) / (int64_t)elem_bytes(b->type->elem);
        print_buf(out, p, b);
        const double *from = b->data;
        for (int k = 0; k < e->entry->input.count; k++) {
            if (e->entry->input.at[k] == b->slot) {
                from = data[k];
            }
        }
        if (b->kind == BUF_INPUT || b->kind == BUF_CONST) {
            /* A compiler would take longer to read numbers as text than to compile all the rest. */
            for (int64_t k = 0; k < n; k++) {
                VEC_PUSH(&l->arena, &l->input, k < type_count(*b->type) ? from[k] : 0);
            }
            text_printf(out,
                        "    for (int k = 0; k < %lld; k++) {\n"
                        "        %s[k] = (%s)next_input();\n    }\n",
                        (long long)n, b->name, elem_c_name(b->type->elem));
        } else if (!planned(p)) {
            /* What is read before it is written shows. */
            text_printf(out, "    memset(%s, 0x%s, sizeof %s);\n", b->name,
                        elem_is_float(b->type->elem) ? "ff" : "00", b->name);
        }
    }
    print_list(l, p, &e->step, NULL);
    for (int i = 0; i < e->buf.count; i++) {
        const Buf *b = e->buf.at[i];
        if (b->kind == BUF_RESULT) {
            text_printf(out,
                        "    for (int k = 0; k < %lld; k++) {\n"
                        "        double x = (double)%s[k];\n"
                        "        fwrite(&x, sizeof x, 1, stdout);\n    }\n",
                        (long long)type_count(*b->type), b->name);
        }
    }
    text_add(out, "}\n\n");
    text_printf(&l->main, "    run_%d();\n", id);
    return id;
}

static bool command(const char *text) {
    return system(text) == 0;
}

static bool write_file(const char *path, const void *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    bool ok = file != NULL && fwrite(bytes, 1, n, file) == n;
    return file != NULL && fclose(file) == 0 && ok;
}

bool lowered_run(Lowered *l, const char *flags) {
    char dir[SCRATCH_PATH];
    if (!scratch_make(dir, "lowered")) {
        return false;
    }
    Text *out = &l->text;
    text_printf(out, "int main(void) {\n%s    return 0;\n}\n", l->main.at ? l->main.at : "");
    if (!write_file(str_printf(&l->arena, "%s/x.c", dir), out->at, out->len) ||
        !write_file(str_printf(&l->arena, "%s/in", dir), l->input.at,
                    (size_t)l->input.count * sizeof *l->input.at)) {
        return false;
    }
    const char *cc = getenv("CC") ? getenv("CC") : "cc";
    bool ok = command(str_printf(&l->arena, "%s -I. %s %s/x.c -lm -o %s/x", cc, flags, dir, dir)) &&
              command(str_printf(&l->arena, "%s/x < %s/in > %s/out", dir, dir, dir));
    FILE *file = ok ? fopen(str_printf(&l->arena, "%s/out", dir), "rb") : NULL;
    for (int i = 0; ok && i < l->program.count; i++) {
        const Region *region = l->program.at[i]->entry.at[0]->entry->region;
        double **result = ARENA_ARRAY(&l->arena, double *, region->out.count);
        for (int k = 0; k < region->out.count && ok; k++) {
            size_t n = (size_t)type_count(*region->out.at[k]->type);
            result[k] = ARENA_ARRAY(&l->arena, double, n + 1);
            ok = fread(result[k], sizeof **result, n, file) == n;
        }
        VEC_PUSH(&l->arena, &l->result, result);
    }
    if (file) {
        fclose(file);
    }
    if (ok && !getenv("MDLC_KEEP")) {
        ok = scratch_remove(dir);
    } else {
        printf("kept %s\n", dir);
    }
    return ok;
}

void lowered_close(Lowered *l) {
    arena_free(&l->arena);
}
