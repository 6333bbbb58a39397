/* problem: see the header. Dependencies come from the Access lists: reads after writes, writes
 * after reads, writes after writes, while writers of different parts of one Buf commute. Two kinds
 * of wishes are added where they close no circle: the readers of an old value come before the step
 * that makes the next one, so that it can take its place, and what a train writes comes after the
 * check of its loss. */
#include "passes/plan/problem.h"

#include <string.h>

/* ---- dependencies --------------------------------------------------------------------------- */

/* The order, and with it the emitted text, must not depend on how often a loop runs: a stack counts
 * as if its loops ran twice. */
static int64_t size_of(const Sched *s, const Buf *buf) {
    int64_t slices = s->shared->slices[buf->id];
    return align_up(slices > 2 ? 2 * (buf->bytes / slices) : buf->bytes, MD_ALIGN);
}

static void find_slices(void *ctx, Step *step, int depth) {
    SchedShared *shared = ctx;
    (void)depth;
    for (int i = 0; i < step->access.count; i++) {
        const Access *access = &step->access.at[i];
        int64_t slices = 1;
        for (int k = 0; k < ACCESS_SLICES && access->slice[k]; k++) {
            slices *= access->slice[k]->trip;
        }
        if (slices > shared->slices[access->buf->id]) {
            shared->slices[access->buf->id] = slices;
        }
    }
}

static int use_find(Sched *s, Buf *buf) {
    if (s->use_of[buf->id] < 0) {
        Use use = {.buf = buf};
        use.local = (buf->kind == BUF_TEMP || buf->kind == BUF_WORK) && buf->loop == s->loop;
        use.size = use.local ? size_of(s, buf) : 0;
        s->use_of[buf->id] = s->use.count;
        VEC_PUSH(s->arena, &s->use, use);
    }
    return s->use_of[buf->id];
}

static void add_edge(Sched *s, int from, int to) {
    Item *item = &s->item[from];
    if (from == to || (item->succ.count > 0 && item->succ.at[item->succ.count - 1] == to)) {
        return;
    }
    VEC_PUSH(s->arena, &item->succ, to);
    VEC_PUSH(s->arena, &s->item[to].pred, from);
}

static bool reaches(Sched *s, int from, int to) {
    s->stamp++;
    s->stack.count = 0;
    VEC_PUSH(s->arena, &s->stack, from);
    s->item[from].stamp = s->stamp;
    while (s->stack.count > 0) {
        int at = s->stack.at[--s->stack.count];
        if (at == to) {
            return true;
        }
        for (int i = 0; i < s->item[at].succ.count; i++) {
            int next = s->item[at].succ.at[i];
            if (s->item[next].stamp != s->stamp) {
                s->item[next].stamp = s->stamp;
                VEC_PUSH(s->arena, &s->stack, next);
            }
        }
    }
    return false;
}

static void add_edges(Sched *s, const Ints *from, int to) {
    for (int i = 0; i < from->count; i++) {
        add_edge(s, from->at[i], to);
    }
}

static void build_items(Sched *s) {
    typedef struct {
        Ints read, write; /* since the last whole write */
    } Recent;
    VEC(Recent) recent = {0};
    for (int i = 0; i < s->n; i++) {
        Item *item = &s->item[i];
        item->step = s->list->at[i];
        for (int k = 0; k < item->step->access.count; k++) {
            const Access *access = &item->step->access.at[k];
            int u = use_find(s, access->buf);
            while (recent.count <= u) {
                VEC_PUSH(s->arena, &recent, (Recent){0});
            }
            Recent *r = &recent.at[u];
            if (access->mode & ACCESS_READ) {
                add_edges(s, &r->write, i);
                VEC_PUSH(s->arena, &s->use.at[u].read, i);
            }
            if (access->mode & ACCESS_WRITE) {
                add_edges(s, &r->read, i);
                if (!(access->mode & ACCESS_PART) || r->read.count > 0) {
                    add_edges(s, &r->write, i);
                    r->write.count = r->read.count = 0;
                }
                VEC_PUSH(s->arena, &r->write, i);
                VEC_PUSH(s->arena, &s->use.at[u].write, i);
            }
            if (access->mode & ACCESS_READ) {
                VEC_PUSH(s->arena, &r->read, i);
            }
            if (s->use.at[u].local) {
                VEC_PUSH(s->arena, &item->touch, u);
                s->use.at[u].touches++;
            }
        }
    }
}

/* Pairs of which both come and go with the list. */
static void note_pairs(Sched *s, Item *item) {
    for (int k = 0; k < item->step->inplace.count; k++) {
        int in = s->use_of[item->step->inplace.at[k].in->id];
        int out = s->use_of[item->step->inplace.at[k].out->id];
        if (in >= 0 && out >= 0 && s->use.at[in].local && s->use.at[out].local) {
            VEC_PUSH(s->arena, &item->over, in);
            VEC_PUSH(s->arena, &item->over, out);
        }
    }
}

static bool is_slot(const Buf *buf) {
    return buf->kind == BUF_PARAM || buf->kind == BUF_STATE;
}

/* Lets the next value of a destination come after all readers of the old one, and of a parameter
 * or state after the check too. Where that is impossible a copy will be made at the end of the
 * list. */
static void add_wishes(Sched *s) {
    int check = -1;
    for (int i = 0; i < s->n; i++) {
        check = s->item[i].step->kind == STEP_CHECK ? i : check;
    }
    for (int u = 0; u < s->use.count; u++) {
        Use *use = &s->use.at[u];
        Buf *dest = use->buf->dest;
        if (!use->local || dest == NULL) {
            continue;
        }
        bool taken = true;
        for (int k = 0; k < use->write.count; k++) {
            int writer = use->write.at[k];
            if (is_slot(dest) && check >= 0) {
                if (reaches(s, writer, check)) {
                    taken = false;
                } else {
                    add_edge(s, check, writer);
                }
            }
            int d = s->use_of[dest->id];
            for (int r = 0; d >= 0 && r < s->use.at[d].read.count; r++) {
                int reader = s->use.at[d].read.at[r];
                if (reader == writer) {
                    continue;
                }
                if (reaches(s, writer, reader)) {
                    taken = false;
                } else {
                    add_edge(s, reader, writer);
                }
            }
        }
        if (taken) {
            use->size = 0;
        } else {
            use->kept = true;
        }
    }
}

/* Marks what serves updates alone, from the end: every result goes to a parameter or a state, or to
 * steps that are marked already. The list is in a legal order here. */
static void mark_updates(Sched *s) {
    for (int i = s->n - 1; i >= 0; i--) {
        Item *item = &s->item[i];
        bool any = false, all = true;
        for (int k = 0; k < item->step->access.count; k++) {
            const Access *access = &item->step->access.at[k];
            if (!(access->mode & ACCESS_WRITE) || access->buf->kind == BUF_WORK) {
                continue;
            }
            any = true;
            const Buf *dest = access->buf->dest != NULL ? access->buf->dest : access->buf;
            const Use *use = &s->use.at[s->use_of[access->buf->id]];
            bool serves = is_slot(dest) || use->read.count > 0;
            for (int r = 0; r < use->read.count; r++) {
                serves = serves && (use->read.at[r] == i || s->item[use->read.at[r]].update);
            }
            all = all && serves && dest->kind != BUF_RESULT;
        }
        item->update = any && all;
    }
}

SchedShared sched_shared(Program *p, ProgramEntry *e, Arena *arena) {
    SchedShared shared = {.arena = arena, .nbuf = p->nbuf};
    shared.slices = ARENA_ARRAY(arena, int64_t, p->nbuf + 1);
    steps_visit(&e->step, find_slices, &shared);
    return shared;
}

static int *take_map(SchedShared *shared) {
    if (shared->use_of.count > 0) {
        return shared->use_of.at[--shared->use_of.count];
    }
    int *map = ARENA_ARRAY(shared->arena, int, shared->nbuf + 1);
    for (int i = 0; i < shared->nbuf; i++) {
        map[i] = -1;
    }
    return map;
}

void sched_close(Sched *s) {
    for (int i = 0; i < s->use.count; i++) {
        s->use_of[s->use.at[i].buf->id] = -1;
    }
    VEC_PUSH(s->arena, &s->shared->use_of, s->use_of);
}

Sched sched_open(SchedShared *shared, ProgramEntry *e, Step *loop, StepList *list) {
    Sched s = {.arena = shared->arena,
               .e = e,
               .shared = shared,
               .loop = loop,
               .list = list,
               .n = list->count};
    s.item = ARENA_ARRAY(s.arena, Item, s.n + 1);
    s.use_of = take_map(shared);
    build_items(&s);
    add_wishes(&s);
    mark_updates(&s);
    for (int i = 0; i < s.n; i++) {
        note_pairs(&s, &s.item[i]);
    }
    return s;
}

/* ---- simulation ----------------------------------------------------------------------------- */

Sim sim_new(const Sched *s) {
    return (Sim){.left = ARENA_ARRAY(s->arena, int, s->use.count + 1),
                 .born = ARENA_ARRAY(s->arena, bool, s->use.count + 1)};
}

void sim_open(const Sched *s, Sim *sim) {
    sim->live = sim->peak = 0;
    memset(sim->born, 0, sizeof *sim->born * (size_t)s->use.count);
    for (int u = 0; u < s->use.count; u++) {
        sim->left[u] = s->use.at[u].touches + s->use.at[u].kept;
    }
}

void sim_effect(const Sched *s, const Sim *sim, int i, int64_t *adds, int64_t *frees) {
    const Item *item = &s->item[i];
    *adds = item->inner;
    *frees = item->inner;
    for (int k = 0; k < item->touch.count; k++) {
        int u = item->touch.at[k];
        if (!sim->born[u]) {
            *adds += s->use.at[u].size;
        }
        if (sim->left[u] == 1) {
            *frees += s->use.at[u].size;
        }
    }
    for (int k = 0; k < item->over.count; k += 2) {
        int in = item->over.at[k], out = item->over.at[k + 1];
        if (sim->left[in] == 1 && sim->born[in] && !sim->born[out] &&
            s->use.at[in].size == s->use.at[out].size) {
            *adds -= s->use.at[out].size;
            *frees -= s->use.at[in].size;
        }
    }
}

void sim_take(const Sched *s, Sim *sim, int i) {
    int64_t adds, frees;
    sim_effect(s, sim, i, &adds, &frees);
    sim->peak = sim->live + adds > sim->peak ? sim->live + adds : sim->peak;
    sim->live += adds - frees;
    for (int k = 0; k < s->item[i].touch.count; k++) {
        int u = s->item[i].touch.at[k];
        sim->born[u] = true;
        sim->left[u]--;
    }
}

int64_t sim_peak(const Sched *s, Sim *sim, const int *order) {
    sim_open(s, sim);
    for (int i = 0; i < s->n; i++) {
        sim_take(s, sim, order[i]);
    }
    return sim->peak;
}
