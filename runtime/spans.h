/* SPDX-License-Identifier: 0BSD */
/* spans: which parts of the memory a phase of a run has.
 *
 * The regions are one mapping in which every tensor has its place, whatever the phase. Pages that
 * only other phases need are closed: they are given back to the system and cannot be touched. So
 * the bound of a run is that of its largest phase; the rest is address space alone. What is saved
 * while its phase is over, or has not begun, comes out of a file (spill.h). Needs log.h, gives exit
 * codes, takes no memory of its own. */
#ifndef MD_SPANS_H
#define MD_SPANS_H

#include "runtime/log.h"

/* if: spans */
/* Is a stretch open while what begins with a phase is made, for a run that goes on in phase `on`?
 * Beside it lie the numbers, which are there all the time, and what was made before and goes on: no
 * more than the phase has itself. */
MD_COLD int md_span_open(const md_model *m, const md_span *s, int phase, int on) {
    int always = s->first == 0 && s->last == m->arena_count - 1;
    int before = s->first < phase && phase <= on && on <= s->last;
    return s->first <= s->last && (s->first == phase || always || before);
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

/* Goes through the pages of a phase in the order of their addresses (`on` not -1: of what is made
 * in it for a run that goes on there); gives their bytes, 0 where a change fails. */
MD_COLD size_t md_phase_pages(const md_run *r, int phase, int on, int act) {
    const md_model *m = r->model;
    const md_memory *memory = &r->regions.memory;
    char *const base[] = {(char *)memory->params, (char *)memory->state, (char *)memory->io,
                          (char *)memory->arena};
    size_t page = md_page(), bytes = 0;
    char *at = r->regions.base, *end = at + r->regions.mapped;
    int done = 1;
    for (int i = 0; i < m->span_count + 2 && done; i++) {
        md_span s = {i == m->span_count ? MD_IO : MD_ARENA, 0, m->io_bytes, 0, 0};
        s.end = i > m->span_count ? m->arenas[phase] : s.end;
        s = i < m->span_count ? m->spans[i] : s;
        int there = on < 0 ? md_span_there(&s, phase) : md_span_open(m, &s, phase, on);
        if (s.begin == s.end || (i < m->span_count && !there)) {
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
    md_room room = {0, 0, m->arenas[phase], 0};
    for (int i = 0; i < m->span_count; i++) {
        const md_span *s = &m->spans[i];
        size_t bytes = md_span_there(s, phase) ? s->end - s->begin : 0;
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
        if (md_span_there(s, before) && !md_span_there(s, after)) {
            size_t begin = md_round_up(s->begin, page), end = s->end / page * page;
            bytes += end > begin ? end - begin : 0;
        }
    }
    return bytes;
}

/* Closes what is not of the phase, then opens what is. */
MD_COLD int md_phase_open(md_run *r, int phase, int on) {
    if (md_phase_pages(r, phase, on, MD_CLOSE_PAGES) == 0 ||
        md_phase_pages(r, phase, on, MD_OPEN_PAGES) == 0) {
        return md_fail(&r->message, MD_EXIT_MEMORY, "no memory for phase %d: %s", phase + 1,
                       strerror(errno));
    }
    return MD_EXIT_OK;
}

/* Will it be saved? */
MD_COLD int md_span_kept(const md_run *r, const md_tensor *t) {
    const md_options *o = &r->options;
    int weights = (o->save != NULL || o->best != NULL) && md_kind_in(t, MD_SAVE_PARAMS) &&
                  md_slice_any(o->save_only, t);
    return weights || (o->checkpoint != NULL && md_kind_in(t, MD_SAVE_ALL | MD_SAVE_RINGS));
}

/* Puts into the file what will be saved of what is there up to phase `last`, or one behind it but
 * not `end`; with `first` of what begins in that one alone, with -1 of all. */
MD_COLD int md_span_spill(md_run *r, int first, int last, int end) {
    int rc = MD_EXIT_OK;
    for (size_t i = 0; i < r->model->tensor_count && r->regions.spill && rc == MD_EXIT_OK; i++) {
        const md_tensor *t = &r->model->tensors[i];
        const md_span *s = md_span_of(r->model, t);
        int asked = s != NULL && s->first <= s->last && (first < 0 || s->first == first) &&
                    s->last >= last && s->last < end;
        rc = asked && md_span_kept(r, t) ? md_spill_tensor(&r->regions, t, &r->message) : rc;
    }
    return rc;
}

/* Is there anything that md_span_spill would put into the file, of those that begin in a phase? */
MD_COLD int md_span_waits(const md_run *r, int phase) {
    int waits = 0;
    for (size_t i = 0; i < r->model->tensor_count && !waits; i++) {
        const md_span *s = md_span_of(r->model, &r->model->tensors[i]);
        waits = s != NULL && s->first == phase && md_span_kept(r, &r->model->tensors[i]);
    }
    return waits;
}

/* The phase behind the one at hand: what is over goes, then what begins is taken. */
MD_COLD int md_phase_enter(md_run *r) {
    int before = r->regions.phase, phase = before + 1;
    size_t given = md_phase_given(r, before, phase), taken = md_phase_given(r, phase, before);
    int rc = md_span_spill(r, -1, before, phase);
    rc = rc == MD_EXIT_OK ? md_phase_open(r, phase, -1) : rc;
    r->regions.phase = phase;
    if (rc == MD_EXIT_OK && (given > 0 || taken > 0)) {
        md_log_phase(r, given, taken);
    }
    return rc;
}

/* Is anything saved that is not there in all phases? */
MD_COLD int md_spill_needed(const md_run *r) {
    int kept = 0;
    for (size_t i = 0; i < r->model->tensor_count && !kept; i++) {
        const md_span *s = md_span_of(r->model, &r->model->tensors[i]);
        kept = s != NULL && (s->first > 0 || s->last < r->model->arena_count - 1) &&
               md_span_kept(r, &r->model->tensors[i]);
    }
    return kept;
}

/* Opens the file that this takes, if memory may go by phases; where nothing that is saved is a file
 * with a folder there is none. */
MD_COLD int md_spill_setup(md_run *r) {
    const char *const paths[] = {r->options.checkpoint, r->options.save, r->options.best};
    int kept = r->options.phases && md_spill_needed(r), rc = MD_EXIT_OK;
    for (size_t i = 0; i < sizeof paths / sizeof *paths && kept && r->regions.spill == 0; i++) {
        if (paths[i] != NULL && rc == MD_EXIT_OK) {
            rc = md_spill_open(&r->regions, &r->out, paths[i], &r->message);
        }
    }
    return rc;
}

/* Does memory go by phases? Then the bound of the run is that of the largest. What is saved without
 * such a file is in memory all the time. */
MD_COLD void md_phases_plan(md_run *r) {
    const md_model *m = r->model;
    int info = r->options.command == MD_RUN_INFO && m->phase_count > 0;
    r->regions.phased = (r->options.phases || info) && m->span_count > 0 &&
                        (r->regions.spill > 0 || !md_spill_needed(r));
    for (int k = 0; r->regions.phased && k < m->arena_count; k++) {
        md_room room = md_phase_room(r, k);
        size_t pages = md_phase_pages(r, k, -1, MD_COUNT_PAGES);
        r->room = k == 0 || room.total > r->room.total ? room : r->room;
        r->regions.bound = k == 0 || pages > r->regions.bound ? pages : r->regions.bound;
    }
}

/* What is in memory in each phase, behind the table of the largest. */
MD_COLD void md_log_phases(md_run *r) {
    const md_model *m = r->model;
    int json = r->options.log == MD_LOG_JSON;
    for (int k = 0; r->regions.phased && k < m->arena_count && r->options.log != MD_LOG_NONE; k++) {
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

/* What the run declares. */
MD_COLD void md_memory_plan(md_run *r) {
    const md_model *m = r->model;
    r->room.params = m->params_bytes;
    r->room.state = m->state_bytes;
    r->room.arena = m->arena_bytes;
    r->room.total = r->regions.total;
    md_phases_plan(r);
    r->regions.total = r->room.total;
}
/* end: spans */

/* Takes all of it, unless that goes by phases. */
MD_COLD int md_memory_take(md_run *r) {
    /* if: spans */
    int rc = md_spill_setup(r);
    if (rc == MD_EXIT_OK) {
        md_memory_plan(r);
    }
    if (rc != MD_EXIT_OK || r->regions.phased) {
        return rc;
    }
    /* end: spans */
    md_touch_write(r->regions.base, r->regions.mapped);
    return MD_EXIT_OK;
}

#endif
