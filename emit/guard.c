/* guard: see the header. The Program says where bands are and when a buffer lives; what is done
 * with them is runtime/canary.h. A loop is a step too: what its body hands on comes to life in
 * front of it. Names of locals end in an underscore, which no buffer has. */
#include "emit/guard.h"

static bool guarded(const ProgramEntry *entry) {
    return entry->band_bytes > 0;
}

static int print_table(const ProgramEntry *entry, Text *out) {
    int count = 0;
    for (int i = 0; i < entry->buf.count; i++) {
        const Buf *buf = entry->buf.at[i];
        if (!buf_owns_arena(buf)) {
            continue;
        }
        text_add(out, count++ > 0 ? ""
                                  : "    static const md_band band_[] = {\n"
                                    "        /* name, offset, bytes, first, last, wide */\n");
        text_add(out, "        {");
        text_literal(out, buf->name);
        text_printf(out, ", %lld, %lld, %d, %d, %d},\n", (long long)buf->offset,
                    (long long)buf->bytes, buf->first, buf->last, elem_bytes(buf->type->elem) == 8);
    }
    text_add(out, count > 0 ? "    };\n" : "");
    return count;
}

void guard_open(const ProgramEntry *entry, Text *out) {
    if (!guarded(entry)) {
        return;
    }
    int count = print_table(entry, out);
    text_printf(out,
                "    const md_bands bands_ = {\"%s\", m->arena, %lld, %s, %d, &m->damage};\n"
                "    md_canary_open(&bands_);\n",
                entry->c_name, (long long)entry->arena_bytes, count > 0 ? "band_" : "NULL", count);
}

void guard_before(const ProgramEntry *entry, const Step *step, const char *indent, Text *out) {
    if (guarded(entry)) {
        text_printf(out, "%smd_canary_before(&bands_, %d);\n", indent, step->id);
    }
}

void guard_after(const Emit *e, const ProgramEntry *entry, const Step *step, const char *indent,
                 Text *out) {
    if (guarded(entry)) {
        text_printf(out, "%sif (md_canary_after(&bands_, %d, %d, %d) != MD_OK) {\n", indent,
                    step->id, step_end(step) - 1, step->up != NULL ? step->up->id : -1);
        text_printf(out, "%s    return %s_ERR_CANARY;\n%s}\n", indent, e->upper, indent);
    }
}

void guard_close(const ProgramEntry *entry, const char *indent, Text *out) {
    if (guarded(entry)) {
        text_printf(out, "%smd_canary_close(&bands_);\n", indent);
    }
}
