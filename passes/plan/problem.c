/* problem: see the header. Dependencies come from the Access lists: reads after writes, writes
 * after reads, writes after writes, while writers of different parts of one Buf commute. Two kinds
 * of wishes are added where they close no circle: the readers of an old value come before the step
 * that makes the next one, so that it can take its place, and what a train writes comes after the
 * check of its loss. */
#include "passes/plan/problem.h"

#include "compiler/times.h"
#include "passes/plan/live.h"
#include "passes/plan/storage.h"

#include <string.h>

/* The time of a step in bytes moved: memory or arithmetic, whichever takes longer, and the call. An
 * integer, so that all hosts find the same plan. */
static int64_t step_cost(const Step *step) {
    enum { FLOPS_A_BYTE = 8, CALL = 4096 };
    int64_t work = count_add(step->flops, step->dear, DEAR_FLOPS) / FLOPS_A_BYTE;
    return count_add(CALL, 1, work > step->bytes_moved ? work : step->bytes_moved);
}

int64_t problem_cost(const StepList *list) {
    int64_t cost = 0;
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        bool loop = step->kind == STEP_LOOP;
        cost = count_add(cost, loop ? step->trip : 1,
                         loop ? problem_cost(&step->body) : step_cost(step));
    }
    return cost;
}

/* ---- dependencies --------------------------------------------------------------------------- */

bool problem_declares(const Problem *s, const Buf *buf) {
    return (buf->kind == BUF_TEMP || buf->kind == BUF_WORK) && buf->loop == s->loop;
}

static int use_find(Problem *s, Buf *buf) {
    if (s->use_of[buf->id] < 0) {
        Use use = {.buf = buf, .next = -1};
        use.local = problem_declares(s, buf);
        use.size = use.local ? arena_room(s->shared->e, buf->bytes) : 0;
        s->use_of[buf->id] = s->use.count;
        if (use.local) {
            s->shared->local[buf->id] = s->use.count;
        }
        VEC_PUSH(s->arena, &s->use, use);
    }
    return s->use_of[buf->id];
}

static void add_edge(Problem *s, int from, int to) {
    Item *item = &s->item[from];
    if (from == to || (item->succ.count > 0 && item->succ.at[item->succ.count - 1] == to)) {
        return;
    }
    VEC_PUSH(s->arena, &item->succ, to);
    VEC_PUSH(s->arena, &s->item[to].pred, from);
}

static bool reaches(Problem *s, int from, int to) {
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

static void add_edges(Problem *s, const Ints *from, int to) {
    for (int i = 0; i < from->count; i++) {
        add_edge(s, from->at[i], to);
    }
}

static void build_items(Problem *s) {
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
                if (access->buf->kind != BUF_WORK) {
                    VEC_PUSH(s->arena, &item->reads, u);
                }
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
                VEC_PUSH(s->arena, &item->makes, (access->mode & ACCESS_WRITE) != 0);
                s->use.at[u].touches++;
            }
        }
    }
}

/* Pairs of which both come and go with the list and lie alike: those of the step, and of all that a
 * loop runs. */
static void note_pairs(Problem *s, Item *item, const Step *step) {
    for (int i = 0; i < step->body.count; i++) {
        note_pairs(s, item, step->body.at[i]);
    }
    for (int k = 0; k < step->inplace.count; k++) {
        const Buf *in = problem_made_in(s->shared, step->inplace.at[k].in);
        int from = s->use_of[in->id], to = s->use_of[step->inplace.at[k].out->id];
        if (from >= 0 && to >= 0 && s->use.at[from].local && s->use.at[to].local &&
            s->use.at[from].size > 0 && s->use.at[to].size == s->use.at[from].size &&
            s->use.at[from].buf->kind == BUF_TEMP && s->use.at[to].buf->kind == BUF_TEMP &&
            layouts_agree(s->use.at[from].buf, s->use.at[to].buf)) {
            VEC_PUSH(s->arena, &item->over, from);
            VEC_PUSH(s->arena, &item->over, to);
        }
    }
}

/* Makes local values alone, each whole and by itself, and no destination's. */
static bool is_pure(const Problem *s, int i) {
    const Step *step = s->item[i].step;
    bool pure = step->kind == STEP_KERNEL;
    for (int k = 0; pure && k < step->access.count; k++) {
        const Access *access = &step->access.at[k];
        if (!(access->mode & ACCESS_WRITE) || access->buf->kind == BUF_WORK) {
            continue;
        }
        const Use *use = &s->use.at[s->use_of[access->buf->id]];
        pure = use->local && access->buf->kind == BUF_TEMP && access->buf->final == NULL &&
               access->mode == ACCESS_WRITE && use->write.count == 1;
    }
    return pure;
}

static bool is_slot(const Buf *buf) {
    return buf->kind == BUF_PARAM || buf->kind == BUF_STATE;
}

static int64_t bytes_as_made(const void *ctx, const Buf *buf) {
    return problem_made_in(ctx, buf)->id;
}

/* Once all readers of the old value come before those who write the new one: a parameter and a
 * state are written in the list of the entry alone, as is a result; a carry in its loop's. */
static bool can_be_made_in(const Problem *s, const Use *use, const Buf *dest) {
    const Buf *buf = use->buf;
    bool carry = dest->kind == BUF_TEMP;
    if (!layouts_agree(buf, dest) || carry != (buf->loop != NULL) ||
        (carry && buf->loop->up != dest->loop)) {
        return false;
    }
    const Bytes bytes = {bytes_as_made, s->shared};
    bool yields = true;
    for (int k = 0; k < use->write.count; k++) {
        const Step *step = s->item[use->write.at[k]].step;
        yields = yields && step_yields(&bytes, step, bytes_as_made(s->shared, dest), buf, 0);
    }
    return yields;
}

/* Lets the next value of a destination come after all readers of the old one, and of a parameter
 * or state after the check too. Where that is impossible a copy will be made at the end of the
 * list. */
static void add_wishes(Problem *s) {
    int check = -1;
    for (int i = 0; i < s->n; i++) {
        check = s->item[i].step->kind == STEP_CHECK ? i : check;
    }
    for (int i = 0; i < s->n && step_refuses(s->item[i].step); i++) { /* they stand first */
        for (int k = i + 1; k < s->n; k++) {
            add_edge(s, i, k);
        }
    }
    for (int i = 0; check >= 0 && i < s->n; i++) {
        if (s->item[i].step->kind == STEP_PUSH) {
            add_edge(s, check, i); /* what is checked is computed without it */
        }
    }
    for (int u = 0; u < s->use.count; u++) {
        Use *use = &s->use.at[u];
        Buf *dest = use->buf->final;
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
        taken = taken && can_be_made_in(s, use, dest);
        if (taken) {
            use->size = 0;
            s->shared->made_in[use->buf->id] = dest;
            if (dest->kind == BUF_TEMP) {
                Gap gap = {s->use_of[dest->id], u};
                VEC_PUSH(s->arena, &s->gap, gap);
            }
        } else {
            use->kept = true;
        }
        if (taken && s->use_of[dest->id] >= 0) {
            s->use.at[s->use_of[dest->id]].next = u;
        }
    }
}

/* In the body of a loop that makes the next value of a parameter or a state slice by slice: what
 * reads the old slice comes first, so that the new one can take its bytes. */
static void wish_slices(Problem *s, int64_t above) {
    for (int u = 0; u < s->use.count; u++) {
        const Use *next = &s->use.at[u];
        const Buf *dest = next->buf->final;
        int old = dest != NULL && !next->local ? s->use_of[dest->id] : -1;
        if (old >= 0 && next->buf->bytes <= above) {
            Gap slice = {old, u};
            VEC_PUSH(s->arena, &s->slice, slice);
            continue;
        }
        for (int k = 0; old >= 0 && k < next->write.count; k++) {
            for (int r = 0; r < s->use.at[old].read.count; r++) {
                int reader = s->use.at[old].read.at[r], writer = next->write.at[k];
                if (reader != writer && !reaches(s, writer, reader)) {
                    add_edge(s, reader, writer);
                }
            }
        }
    }
}

/* Marks what serves updates alone, from the end: every result goes to a parameter or a state, or to
 * steps that are marked already. The list is in a legal order here. */
static void mark_updates(Problem *s) {
    for (int i = s->n - 1; i >= 0; i--) {
        Item *item = &s->item[i];
        bool any = false, all = true;
        for (int k = 0; k < item->step->access.count; k++) {
            const Access *access = &item->step->access.at[k];
            if (!(access->mode & ACCESS_WRITE) || access->buf->kind == BUF_WORK) {
                continue;
            }
            any = true;
            const Buf *dest = access->buf->final != NULL ? access->buf->final : access->buf;
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

const Buf *problem_made_in(const ProblemShared *shared, const Buf *buf) {
    while (shared->made_in[buf->id] != NULL) {
        buf = shared->made_in[buf->id];
    }
    return buf;
}

ProblemShared problem_shared(Program *p, ProgramEntry *e, Arena *arena) {
    return (ProblemShared){.arena = arena,
                           .e = e,
                           .nbuf = p->nbuf,
                           .local = ARENA_ARRAY(arena, int, p->nbuf + 1),
                           .made_in = ARENA_ARRAY(arena, Buf *, p->nbuf + 1)};
}

static int *take_map(ProblemShared *shared) {
    if (shared->use_of.count > 0) {
        return shared->use_of.at[--shared->use_of.count];
    }
    int *map = ARENA_ARRAY(shared->arena, int, shared->nbuf + 1);
    for (int i = 0; i < shared->nbuf; i++) {
        map[i] = -1;
    }
    return map;
}

static void put_map(Problem *s) {
    for (int i = 0; i < s->use.count; i++) {
        s->use_of[s->use.at[i].buf->id] = -1;
    }
    VEC_PUSH(s->arena, &s->shared->use_of, s->use_of);
    s->use_of = NULL;
}

int64_t problem_lost(const Problem *s, const int *place) {
    int64_t lost = 0;
    for (int i = 0; i < s->slice.count; i++) {
        const Use *old = &s->use.at[s->slice.at[i].old], *next = &s->use.at[s->slice.at[i].next];
        bool late = false;
        for (int r = 0; r < old->read.count; r++) {
            for (int k = 0; k < next->write.count; k++) {
                late = late || place[old->read.at[r]] > place[next->write.at[k]];
            }
        }
        lost += late ? arena_room(s->shared->e, next->buf->bytes) : 0;
    }
    return lost;
}

Problem *problem_open(ProblemShared *shared, Step *loop, StepList *list, int64_t above) {
    Problem *s = ARENA_NEW(shared->arena, Problem);
    *s = (Problem){.arena = shared->arena, .shared = shared, .loop = loop, .list = list};
    s->n = list->count;
    s->item = ARENA_ARRAY(s->arena, Item, s->n + 1);
    s->use_of = take_map(shared);
    build_items(s);
    add_wishes(s);
    wish_slices(s, above);
    mark_updates(s);
    for (int i = 0; i < s->n; i++) {
        note_pairs(s, &s->item[i], s->item[i].step);
        s->item[i].pure = is_pure(s, i);
        s->item[i].cost = step_cost(s->item[i].step);
    }
    put_map(s);
    return s;
}

void problem_by_time(Problem *s, const StepTimes *times, int64_t far_share) {
    for (int i = 0; i < s->n; i++) {
        s->item[i].cost = step_time(times, far_share, s->item[i].step);
    }
}

int64_t problem_outside(const Problem *s) {
    int64_t bytes = 0;
    for (int u = 0; u < s->use.count; u++) {
        const Use *use = &s->use.at[u];
        bytes = count_add(bytes, !use->local, use->buf->bytes);
    }
    return bytes;
}

void problem_look_inside(Problem *s) {
    ProgramEntry *e = s->shared->e;
    program_number(e);
    live_ranges(e);
    for (int i = 0; i < s->n; i++) {
        s->item[i].span = step_end(s->item[i].step) - s->item[i].step->id;
    }
    for (int k = 0; k < e->buf.count; k++) {
        const Buf *buf = e->buf.at[k];
        const Step *loop = buf_owns_arena(buf) ? buf->loop : NULL;
        while (loop != NULL && loop->up != NULL) {
            loop = loop->up;
        }
        for (int i = 0; loop != NULL && i < s->n; i++) {
            if (s->item[i].step == loop) {
                Inside one = {i, buf->first - loop->id, buf->last - loop->id,
                              arena_room(e, buf->bytes)};
                VEC_PUSH(s->arena, &s->inside, one);
            }
        }
    }
}

/* ---- simulation ----------------------------------------------------------------------------- */

Sim sim_new(const Problem *s) {
    return (Sim){.left = ARENA_ARRAY(s->arena, int, s->use.count + 1),
                 .born = ARENA_ARRAY(s->arena, bool, s->use.count + 1)};
}

void sim_open(const Problem *s, Sim *sim) {
    sim->live = sim->peak = 0;
    memset(sim->born, 0, sizeof *sim->born * (size_t)s->use.count);
    for (int u = 0; u < s->use.count; u++) {
        sim->left[u] = s->use.at[u].touches + s->use.at[u].kept;
    }
}

void sim_effect(const Problem *s, const Sim *sim, int i, int64_t *adds, int64_t *frees) {
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

void sim_take(const Problem *s, Sim *sim, int i) {
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
