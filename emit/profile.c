/* profile: see the header. Steps keep their numbers, so that a mark is told by the comment beside
 * its call; names stand once each, in lists. What a step needs comes from emit/calls.c, and what it
 * takes is noted by runtime/mark.h. */
#include "emit/profile.h"

#include "compiler/names.h"
#include "emit/calls.h"
#include "emit/stmts.h"

#include <string.h>

static bool is_timed(const ProgramEntry *entry) {
    EntryKind kind = entry->entry->kind;
    return kind == ENTRY_TRAIN || kind == ENTRY_CALL || kind == ENTRY_EVAL;
}

void profile_member(const Emit *e, Text *out) {
    text_add(out, e->c->opt.profile ? "    md_profile *profile;\n" : "");
}

void profile_after(const Emit *e, const ProgramEntry *entry, const Step *step, const char *indent,
                   Text *out) {
    if (e->c->opt.profile && is_timed(entry) && step->kind != STEP_LOOP) {
        text_printf(out, "%smd_profile_mark(m->profile, %d);\n", indent, step->id);
    }
}

/* The place of the entry among those that are timed; *first: of its notes. */
static int place_of(const Emit *e, const ProgramEntry *entry, int *first) {
    int place = 0;
    *first = 0;
    for (int i = 0; e->p->entry.at[i] != entry; i++) {
        if (is_timed(e->p->entry.at[i])) {
            *first += e->p->entry.at[i]->nstep + 1;
            place++;
        }
    }
    return place;
}

void profile_open(const Emit *e, const ProgramEntry *entry, Text *out) {
    if (e->c->opt.profile) {
        int first, place = place_of(e, entry, &first);
        text_printf(out,
                    "    md_profile *md_notes = ((struct %s *)instance)->profile;\n"
                    "    md_profile_open(md_notes, %d, %d);\n",
                    e->prefix, place, first);
    }
}

void profile_close(const Emit *e, const ProgramEntry *entry, Text *out) {
    if (e->c->opt.profile) {
        text_printf(out, "    md_profile_close(md_notes, %d);\n", entry->nstep);
    }
}

/* What products multiply, as runtime/profiled.h counts. */
enum { OF_F32, OF_F64, OF_BF16, RATES };
static int rate_of(const Step *step) {
    const Tile *tile = step->kernel ? kernel_tile(step->kernel) : NULL;
    return step->wide ? OF_F64 : tile && tile_pairs(tile) ? OF_BF16 : OF_F32;
}

bool profile_has_pairs(const Emit *e) {
    bool has = false;
    for (int i = 0; i < e->p->kernel.count && e->c->opt.profile; i++) {
        const Tile *tile = kernel_tile(e->p->kernel.at[i]);
        has = has || (tile && tile_pairs(tile));
    }
    return has;
}

/* ---- tables --------------------------------------------------------------------------------- */

static int number_of(const Emit *e, NameList *list, const char *name) {
    int k = names_at(list, name);
    if (k < 0) {
        k = list->name.count;
        names_push(e->arena, list, name);
    }
    return k;
}

static void print_names(const Emit *e, const NameList *list, const char *what, Text *out) {
    text_printf(out, "static const char *const %s_profile_%s[] = {\n", e->prefix, what);
    for (int i = 0; i < list->name.count; i++) {
        text_add(out, "    ");
        text_literal(out, list->name.at[i]);
        text_add(out, ",\n");
    }
    text_add(out, "};\n");
}

static void print_steps(const Emit *e, const ProgramEntry *entry, const CallCosts *all,
                        NameList *kernels, NameList *layers, Text *out) {
    text_printf(out,
                "static const md_profiled_step %s_profile_steps[] = {\n"
                "    /* kernel, layer, line, as, part, flops, products, bytes */\n",
                entry->c_name);
    int next = 0;
    for (int i = 0; i < all->at.count; i++, next++) {
        const CallCost *cost = &all->at.at[i];
        for (; next < cost->step->id; next++) {
            text_printf(out, "    {-1, 0, 0, 0, \"\", 0, 0, 0}, /* %d: a loop */\n", next);
        }
        text_printf(out, "    {%d, %d, %d, %d, \"%s\", %lld, %lld, %lld}, /* %d */\n",
                    number_of(e, kernels, cost->name), number_of(e, layers, cost->layer),
                    loc_line_of(e, cost->step->loc), rate_of(cost->step), cost->part,
                    (long long)cost->flops, (long long)cost->products, (long long)cost->bytes,
                    cost->step->id);
    }
    text_add(out, "};\n");
}

/* FLOPs of products by what they multiply. */
static void products_of(const CallCosts *all, int64_t products[RATES]) {
    memset(products, 0, sizeof *products * RATES);
    for (int i = 0; i < all->at.count; i++) {
        const CallCost *cost = &all->at.at[i];
        int64_t *sum = &products[rate_of(cost->step)];
        *sum = count_add(*sum, cost->step->again ? 0 : cost->times, cost->products);
    }
}

void profile_tables(const Emit *e, Text *out) {
    if (!e->c->opt.profile) {
        return;
    }
    NameList kernels = {0}, layers = {0};
    Text rows = {.arena = e->arena};
    names_push(e->arena, &layers, "");
    for (int i = 0; i < e->p->entry.count; i++) {
        const ProgramEntry *entry = e->p->entry.at[i];
        if (!is_timed(entry)) {
            continue;
        }
        CallCosts all = calls_of(e, entry);
        int first;
        int64_t products[RATES];
        (void)place_of(e, entry, &first);
        products_of(&all, products);
        if (all.at.count > 0) {
            print_steps(e, entry, &all, &kernels, &layers, out);
        }
        text_add(&rows, "    {");
        text_literal(&rows, entry->entry->name);
        text_printf(&rows, ", \"%s\", %s, %d, %d, {%lld, %lld, %lld}, %lld},\n",
                    entry->entry->kind == ENTRY_TRAIN  ? "train"
                    : entry->entry->kind == ENTRY_EVAL ? "eval"
                                                       : "entry",
                    all.at.count > 0 ? str_printf(e->arena, "%s_profile_steps", entry->c_name)
                                     : "NULL",
                    all.at.count > 0 ? entry->nstep : 0, first, (long long)products[0],
                    (long long)products[1], (long long)products[2], (long long)all.bytes_once);
    }
    if (kernels.name.count == 0) {
        names_push(e->arena, &kernels, "");
    }
    print_names(e, &kernels, "kernels", out);
    print_names(e, &layers, "layers", out);
    text_printf(
        out,
        "static const md_profile_names %s_profile_names = {%s_profile_kernels, %d,\n"
        "                                                  %s_profile_layers, %d};\n"
        "static const md_profiled %s_profiled[] = {\n"
        "    /* name, kind, steps, count, first, {products, f64, bf16}, bytes_once */\n%s};\n\n",
        e->prefix, e->prefix, kernels.name.count, e->prefix, layers.name.count, e->prefix, rows.at);
}

void profile_descriptor(const Emit *e, Text *out) {
    if (e->c->opt.profile) {
        int count = 0;
        for (int i = 0; i < e->p->entry.count; i++) {
            count += is_timed(e->p->entry.at[i]);
        }
        text_printf(out, "        %s_profiled, %d, &%s_profile_names, &instance.profile,\n",
                    e->prefix, count, e->prefix);
    } else if (e->c->opt.whole_runtime) { /* then the descriptor has these fields */
        text_add(out, "        NULL, 0, NULL, NULL,\n");
    }
}
