/* SPDX-License-Identifier: 0BSD */
/* spans: which parts of the memory a phase of a run has.
 *
 * The regions are one mapping in which every tensor has its place, whatever the phase. Pages that
 * only other phases need are closed: they are given back to the system and cannot be touched. So
 * the bound of a run is that of its largest phase; the rest is address space alone. What will be
 * saved stays, and a run that writes or reads a checkpoint has everything from its start, since a
 * checkpoint holds everything. Needs log.h, gives exit codes, takes no memory of its own. */
#ifndef MD_SPANS_H
#define MD_SPANS_H

#include "runtime/log.h"

/* if: spans */
/* Will some weight of the span be saved? */
MD_COLD int md_span_kept(const md_run *r, const md_span *s) {
    const md_options *o = &r->options;
    int kept = 0;
    for (size_t i = 0; i < r->model->tensor_count && !kept && (o->save || o->best); i++) {
        const md_tensor *t = &r->model->tensors[i];
        kept = t->region == s->region && t->offset >= s->begin && t->offset < s->end &&
               md_kind_in(t, MD_SAVE_PARAMS) && md_slice_any(o->save_only, t);
    }
    return kept;
}

/* Is it there in a phase? -1: in front of the first one of a run that goes on from a checkpoint. */
MD_COLD int md_span_there(const md_run *r, const md_span *s, int phase) {
    int late = s->first > phase && r->options.resume == NULL;
    return !late && (s->last >= phase || md_span_kept(r, s));
}

enum { MD_COUNT_PAGES, MD_CLOSE_PAGES, MD_OPEN_PAGES };

/* Opens pages, or closes them; 0 where that fails. */
MD_COLD int md_pages_change(char *at, size_t bytes, int open) {
    int done = bytes == 0 || mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0;
    if (open) {
        for (size_t i = 0; done && i < bytes; i += 4096) {
            volatile char *byte = at + i;
            *byte = *byte; /* it is resident, whatever it holds */
        }
        return done;
    }
#ifdef MADV_DONTNEED
    done = done && (bytes == 0 || madvise(at, bytes, MADV_DONTNEED) == 0);
#endif
    return done && (bytes == 0 || mprotect(at, bytes, PROT_NONE) == 0);
}

/* Goes through the pages of a phase in the order of their addresses; gives their bytes, 0 where a
 * change fails. */
MD_COLD size_t md_phase_pages(const md_run *r, int phase, int act) {
    const md_model *m = r->model;
    const md_memory *memory = &r->regions.memory;
    char *const base[] = {(char *)memory->params, (char *)memory->state, (char *)memory->io,
                          (char *)memory->arena};
    size_t page = md_page(), bytes = 0;
    char *at = r->regions.base, *end = at + r->regions.mapped;
    int done = 1;
    for (int i = 0; i < m->span_count + 2 && done; i++) {
        md_span s = {i == m->span_count ? MD_IO : MD_ARENA, 0, m->io_bytes, 0, 0};
        s.end = i > m->span_count ? phase < 0 ? m->arena_bytes : m->arenas[phase] : s.end;
        s = i < m->span_count ? m->spans[i] : s;
        if (s.begin == s.end || (i < m->span_count && !md_span_there(r, &s, phase))) {
            continue;
        }
        size_t first = (size_t)(base[s.region] - r->regions.base) + s.begin;
        char *from = r->regions.base + first / page * page;
        char *to = r->regions.base + md_round_up(first + s.end - s.begin, page);
        from = from < at ? at : from; /* a page of two neighbours */
        done = act != MD_CLOSE_PAGES || md_pages_change(at, (size_t)(from - at), 0);
        done = done && (act != MD_OPEN_PAGES || md_pages_change(from, (size_t)(to - from), 1));
        bytes += (size_t)(to - from);
        at = to;
    }
    done = done && (act != MD_CLOSE_PAGES || md_pages_change(at, (size_t)(end - at), 0));
    return done ? bytes : 0;
}

/* What a phase declares. */
MD_COLD md_room md_phase_room(const md_run *r, int phase) {
    const md_model *m = r->model;
    md_room room = {0, 0, phase < 0 ? m->arena_bytes : m->arenas[phase], 0};
    for (int i = 0; i < m->span_count; i++) {
        const md_span *s = &m->spans[i];
        size_t bytes = md_span_there(r, s, phase) ? s->end - s->begin : 0;
        room.params += s->region == MD_PARAMS ? bytes : 0;
        room.state += s->region == MD_STATE ? bytes : 0;
    }
    room.total = room.params + room.state + m->io_bytes + room.arena;
    return room;
}

/* Whole pages of weights and slots that are there in one phase and not in another. */
MD_COLD size_t md_phase_given(const md_run *r, int before, int after) {
    size_t page = md_page(), bytes = 0;
    for (int i = 0; i < r->model->span_count; i++) {
        const md_span *s = &r->model->spans[i];
        if (md_span_there(r, s, before) && !md_span_there(r, s, after)) {
            size_t begin = md_round_up(s->begin, page), end = s->end / page * page;
            bytes += end > begin ? end - begin : 0;
        }
    }
    return bytes;
}

/* The phase of the run becomes this one: what is over goes, then what begins is taken. */
MD_COLD int md_phase_enter(md_run *r, int phase) {
    size_t given = md_phase_given(r, r->phase, phase), taken = md_phase_given(r, phase, r->phase);
    if (md_phase_pages(r, phase, MD_CLOSE_PAGES) == 0 ||
        md_phase_pages(r, phase, MD_OPEN_PAGES) == 0) {
        return md_fail(&r->message, MD_EXIT_MEMORY, "no memory for phase %d: %s", phase + 1,
                       strerror(errno));
    }
    r->phase = phase;
    if (given > 0 || taken > 0) {
        md_log_phase(r, given, taken);
    }
    return MD_EXIT_OK;
}

/* Does memory go by phases? Then the bound of the run is that of the largest. */
MD_COLD void md_phases_plan(md_run *r) {
    r->phase = r->options.resume != NULL ? -1 : 0;
    int phases =
        r->options.phases || (r->options.command == MD_RUN_INFO && r->model->phase_count > 0);
    r->phased = phases && r->options.checkpoint == NULL && r->model->span_count > 0;
    for (int k = r->phase; r->phased && k < r->model->arena_count; k++) {
        md_room room = md_phase_room(r, k);
        size_t pages = md_phase_pages(r, k, MD_COUNT_PAGES);
        r->room = k == r->phase || room.total > r->room.total ? room : r->room;
        r->regions.bound = k == r->phase || pages > r->regions.bound ? pages : r->regions.bound;
    }
}

/* What is in memory in each phase, behind the table of the largest. */
MD_COLD void md_log_phases(md_run *r) {
    const md_model *m = r->model;
    int json = r->options.log == MD_LOG_JSON;
    for (int k = 0; r->phased && k < m->arena_count && r->options.log != MD_LOG_NONE; k++) {
        md_room room = md_phase_room(r, k);
        md_text *t = md_line(r);
        char number[40];
        md_text digits = md_text_make(number, sizeof number);
        md_text_grouped(&digits, room.total);
        md_text_format(t, json ? "{\"event\":\"phase\",\"phase\":%d" : "  phase %-4d", k + 1);
        if (json) {
            md_json_count(t, "params", room.params);
            md_json_count(t, "state", room.state);
            md_json_count(t, "io", m->io_bytes);
            md_json_count(t, "arena", room.arena);
            md_json_count(t, "total", room.total);
        } else {
            md_text_format(t, " %16s ", number);
        }
        md_text_add(t, json ? ",\"entries\":[" : "");
        for (int i = 0, n = 0; i < m->phase_count; i++) {
            if (m->phases[i].phase == k) {
                const char *name = m->entries[m->phases[i].entry].name;
                md_text_format(t, json ? "%s\"%s\"" : "%s %s", n++ > 0 ? "," : "", name);
            }
        }
        md_text_add(t, json ? "]}\n" : "\n");
        md_print(r);
    }
}
/* end: spans */

/* What the run declares. */
MD_COLD void md_memory_plan(md_run *r) {
    const md_model *m = r->model;
    r->room.params = m->params_bytes;
    r->room.state = m->state_bytes;
    r->room.arena = m->arena_bytes;
    r->room.total = r->regions.total;
    /* if: spans */
    md_phases_plan(r);
    /* end: spans */
    r->regions.total = r->room.total;
}

/* Takes what the run begins with. */
MD_COLD int md_memory_take(md_run *r) {
    md_memory_plan(r);
    /* if: spans */
    if (r->phased) {
        return md_phase_enter(r, r->phase);
    }
    /* end: spans */
    md_touch_write(r->regions.base, r->regions.mapped);
    return MD_EXIT_OK;
}

#endif
