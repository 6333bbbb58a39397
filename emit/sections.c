/* sections: see the header.
 *
 * The text of a section has no number that follows from a size: where its memory lies, strides,
 * turns of its loops and lengths of calls are elements of a table, which stands in the file of -o.
 * So with another batch the calls of a program are the text that they were, too. It calls kernels
 * as the entry would, one after the other, and ends no call. Needs a checked Program; gives
 * text. */
#include "emit/sections.h"

#include "emit/api.h"
#include "emit/numbers.h"
#include "emit/steps.h"
#include "emit/trace.h"

#include <string.h>

/* What --checks and --profile print around a step is about the entry. */
bool sections_wanted(const Emit *e) {
    const Options *opt = &e->c->opt;
    return !opt->nan && !opt->canary && !opt->profile;
}

void sections_frame(const Locals *names, Text *out) {
    const Emit *e = names->e;
    if (names->calls) {
        text_printf(
            out, "    const md_frame frame_ = {m->params, m->state, m->io, m->arena, %s, %s};\n",
            trace_notes(e) > 0 ? "m->trace" : "NULL", api_has_team(e->p) ? "&m->pace" : "NULL");
    }
}

static void print_section(const Emit *e, const Printer *printer, const ProgramEntry *entry,
                          const Step *turns, const StepList *section, const Sections *to,
                          Text *out) {
    Emit own = *e;
    NumberTable table = {.list = {.arena = e->arena}};
    own.sections = false;
    own.table = &table;
    Locals names = locals_section(&own, printer, entry, turns, section);
    const char *name = section_name(&names, section->at[0]);
    const char *begin = str_printf(e->arena, "static void %s(", name);
    Words words = {0};
    Text lines = {.arena = e->arena};
    section_arguments(&names, true, &words);
    locals_ports(&names, &lines);
    locals_slots(&names, &lines);
    locals_temps(&names, NULL, &lines);
    if (turns != NULL) {
        locals_temps(&names, turns, &lines);
    }
    text_add(&lines, "\n");
    steps_print(&names, printer, section, 1, &lines);
    const char *numbers = str_printf(e->arena, "%s_64i%s", e->prefix, name + strlen(e->prefix));

    Chunk chunk = {.from = out->len, .calls = true};
    numbers_plan(to->numbers, out, str_printf(e->arena, "int64_t %s[%d]", numbers, table.count),
                 table.list.at);
    text_printf(out, "\n/* Steps of %s, from %d on. */\nMD_LIST\n", entry->c_name,
                section->at[0]->id);
    words_print(out, begin, &words, (int)strlen(begin));
    text_printf(out, ") {\n    const int64_t *const n_ = %s;\n%s}\n\n", numbers, lines.at);
    chunk.end = out->len;
    VEC_PUSH(e->arena, to->chunks, chunk);
    arena_free(&names.scratch);
}

static void print_list(const Emit *e, const Printer *printer, const ProgramEntry *entry,
                       const Step *turns, const StepList *list, const Sections *to, Text *out) {
    for (int i = 0; i < list->count;) {
        const int count = section_steps(e, list, i);
        if (count > 0) {
            const StepList section = {.at = list->at + i, .count = count};
            print_section(e, printer, entry, turns, &section, to, out);
        }
        i += count > 0 ? count : 1;
    }
}

void sections_print(const Emit *e, const Printer *printer, const ProgramEntry *entry,
                    const Sections *to, Text *out) {
    for (int i = 0; i < entry->step.count; i++) {
        const Step *step = entry->step.at[i];
        if (step->rest != NULL) {
            print_list(e, printer, entry, step, &step->body, to, out);
        }
    }
    print_list(e, printer, entry, NULL, &entry->step, to, out);
}
