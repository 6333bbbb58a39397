/* order: a portfolio of step orders; the one with the lowest liveness peak wins.
 *
 * Each list (the entry's, then each loop's body) is ordered by itself; a loop is one item of the list
 * around it. Dependencies come from the Access lists: reads after writes, writes after reads, writes
 * after writes, while writers of different parts of one Buf commute. Two kinds of wishes are added where
 * they close no cycle: the readers of an old value come before the step that makes the next one, so
 * that it can take its place, and what a train writes comes after the check of its loss.
 * Needs lists in any legal order; gives legal orders, STEP_CHECK, numbers; changes no values. */
#include "passes/order.h"

#include <string.h>

typedef VEC(int) Ints;

typedef struct {
    Buf *buf;
    int64_t size;     /* in the arena; 0 when its value is made in its destination */
    Ints read, write; /* items */
    bool local;       /* declared in this list: comes and goes with it */
    bool kept;        /* lives to the end of the list: a copy to its destination reads it there */
} Use;

typedef struct {
    Step *step;
    Ints succ, touch; /* items; uses that are local */
    int npred;
    int64_t inner; /* peak inside a loop's body */
    bool update;   /* all that it makes ends in parameters and states */
    int stamp;
} Item;

typedef struct {
    Arena *arena;
    ProgramEntry *e;
    Step *loop; /* whose list it is */
    StepList *list;
    Item *item;
    int n;
    VEC(Use) use;
    int *use_of; /* by Buf.id, -1 */
    int stamp;
} Sched;

/* ---- dependencies --------------------------------------------------------------------------- */

static int use_find(Sched *s, Buf *buf) {
    if (s->use_of[buf->id] < 0) {
        Use use = {.buf = buf};
        use.local = (buf->kind == BUF_TEMP || buf->kind == BUF_WORK) && buf->loop == s->loop;
        use.size = use.local ? align_up(buf->bytes, MD_ALIGN) : 0;
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
    s->item[to].npred++;
}

static bool reaches(Sched *s, int from, int to) {
    Ints stack = {0};
    s->stamp++;
    VEC_PUSH(s->arena, &stack, from);
    s->item[from].stamp = s->stamp;
    while (stack.count > 0) {
        int at = stack.at[--stack.count];
        if (at == to) {
            return true;
        }
        for (int i = 0; i < s->item[at].succ.count; i++) {
            int next = s->item[at].succ.at[i];
            if (s->item[next].stamp != s->stamp) {
                s->item[next].stamp = s->stamp;
                VEC_PUSH(s->arena, &stack, next);
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
            }
        }
    }
}

static bool is_slot(const Buf *buf) {
    return buf->kind == BUF_PARAM || buf->kind == BUF_STATE;
}

/* Lets the next value of a destination come after all readers of the old one, and of a parameter or
 * state after the check too. Where that is impossible a copy will be made at the end of the list. */
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

/* ---- simulation ----------------------------------------------------------------------------- */

/* What is live while items are taken one after the other. */
typedef struct {
    int64_t live, peak;
    int *left; /* touches to come, by use */
    bool *born;
} Sim;

static void sim_open(const Sched *s, Sim *sim) {
    sim->live = sim->peak = 0;
    memset(sim->left, 0, sizeof *sim->left * (size_t)s->use.count);
    memset(sim->born, 0, sizeof *sim->born * (size_t)s->use.count);
    for (int i = 0; i < s->n; i++) {
        for (int k = 0; k < s->item[i].touch.count; k++) {
            sim->left[s->item[i].touch.at[k]]++;
        }
    }
    for (int u = 0; u < s->use.count; u++) {
        sim->left[u] += s->use.at[u].kept;
    }
}

/* Bytes that the item adds while it runs, and bytes that are gone when it has run. */
static void sim_effect(const Sched *s, const Sim *sim, int i, int64_t *adds, int64_t *frees) {
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
    for (int k = 0; k < item->step->inplace.count; k++) {
        int in = s->use_of[item->step->inplace.at[k].in->id];
        int out = s->use_of[item->step->inplace.at[k].out->id];
        if (in >= 0 && out >= 0 && sim->left[in] == 1 && sim->born[in] && !sim->born[out] &&
            s->use.at[in].size == s->use.at[out].size && s->use.at[out].local) {
            *adds -= s->use.at[out].size;
            *frees -= s->use.at[in].size;
        }
    }
}

static void sim_take(const Sched *s, Sim *sim, int i) {
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

static int64_t sim_peak(const Sched *s, Sim *sim, const int *order) {
    sim_open(s, sim);
    for (int i = 0; i < s->n; i++) {
        sim_take(s, sim, order[i]);
    }
    return sim->peak;
}

/* ---- orders --------------------------------------------------------------------------------- */

typedef enum { RULE_LOWERED, RULE_UPDATE, RULE_PEAK, RULE_FREED, RULE_UPDATE_FREED, RULES } Rule;

/* Smaller is sooner; compared in turn, the lowered position last. */
typedef struct {
    int64_t a, b, c;
} Key;

static Key rule_key(const Sched *s, const Sim *sim, Rule rule, int i) {
    int64_t adds = 0, frees = 0;
    sim_effect(s, sim, i, &adds, &frees);
    int64_t late = !s->item[i].update;
    switch (rule) {
    case RULE_UPDATE: return (Key){late, i, 0};
    case RULE_PEAK: return (Key){adds, adds - frees, i};
    case RULE_FREED: return (Key){adds - frees, adds, i};
    case RULE_UPDATE_FREED: return (Key){late && adds > frees, late, i};
    case RULE_LOWERED:
    case RULES: break;
    }
    return (Key){i, 0, 0};
}

static bool key_less(Key x, Key y) {
    return x.a != y.a ? x.a < y.a : x.b != y.b ? x.b < y.b : x.c < y.c;
}

/* Takes, of the items whose predecessors are done, the best by the rule. */
static void order_greedy(const Sched *s, Sim *sim, Rule rule, int *left, int *ready, int *order) {
    int nready = 0, done = 0;
    sim_open(s, sim);
    for (int i = 0; i < s->n; i++) {
        left[i] = s->item[i].npred;
        if (left[i] == 0) {
            ready[nready++] = i;
        }
    }
    while (nready > 0) {
        int best = 0;
        Key key = rule_key(s, sim, rule, ready[0]);
        for (int k = 1; k < nready; k++) {
            Key other = rule_key(s, sim, rule, ready[k]);
            if (key_less(other, key)) {
                key = other;
                best = k;
            }
        }
        int i = ready[best];
        ready[best] = ready[--nready];
        sim_take(s, sim, i);
        order[done++] = i;
        for (int k = 0; k < s->item[i].succ.count; k++) {
            if (--left[s->item[i].succ.at[k]] == 0) {
                ready[nready++] = s->item[i].succ.at[k];
            }
        }
    }
    if (done != s->n) {
        BUG("%s: the steps depend on each other in a circle", s->e->entry->name);
    }
}

typedef struct {
    const Sched *s;
    Ints *pred;
    int64_t *need; /* memory to make the subtree of an item */
    bool *done;
    int *order;
    int count;
} Post;

static void post_visit(Post *post, int i) {
    /* Depth is the longest chain of steps; an explicit stack keeps deep models off the C stack. */
    VEC(int) stack = {0};
    Arena *arena = post->s->arena;
    VEC_PUSH(arena, &stack, i);
    while (stack.count > 0) {
        int at = stack.at[stack.count - 1];
        int next = -1;
        for (int k = 0; !post->done[at] && k < post->pred[at].count; k++) {
            int pred = post->pred[at].at[k];
            if (!post->done[pred] && (next < 0 || post->need[pred] > post->need[next])) {
                next = pred;
            }
        }
        if (next >= 0) {
            VEC_PUSH(arena, &stack, next);
            continue;
        }
        stack.count--;
        if (!post->done[at]) {
            post->done[at] = true;
            post->order[post->count++] = at;
        }
    }
}

/* Post-order from the sinks, the operand with the largest subtree first. */
static void order_post(const Sched *s, const int *legal, bool last_sink_first, int *order) {
    Post post = {.s = s, .order = order};
    post.pred = ARENA_ARRAY(s->arena, Ints, s->n + 1);
    post.need = ARENA_ARRAY(s->arena, int64_t, s->n + 1);
    post.done = ARENA_ARRAY(s->arena, bool, s->n + 1);
    for (int k = 0; k < s->n; k++) {
        int i = legal[k];
        int64_t makes = s->item[i].inner;
        for (int t = 0; t < s->item[i].touch.count; t++) {
            const Use *use = &s->use.at[s->item[i].touch.at[t]];
            makes += use->write.count > 0 && use->write.at[0] == i ? use->size : 0;
        }
        int64_t most = 0;
        for (int t = 0; t < post.pred[i].count; t++) {
            int64_t need = post.need[post.pred[i].at[t]];
            most = need > most ? need : most;
        }
        post.need[i] = most + makes;
        for (int t = 0; t < s->item[i].succ.count; t++) {
            VEC_PUSH(s->arena, &post.pred[s->item[i].succ.at[t]], i);
        }
    }
    for (int k = 0; k < s->n; k++) {
        int i = last_sink_first ? s->n - 1 - k : k;
        if (s->item[i].succ.count == 0) {
            post_visit(&post, i);
        }
    }
}

/* ---- lists ---------------------------------------------------------------------------------- */

static int64_t order_list(Program *p, ProgramEntry *e, Step *loop, StepList *list, Arena *arena,
                          const char **name) {
    Sched s = {.arena = arena, .e = e, .loop = loop, .list = list, .n = list->count};
    s.item = ARENA_ARRAY(arena, Item, s.n + 1);
    s.use_of = ARENA_ARRAY(arena, int, p->nbuf + 1);
    for (int i = 0; i < p->nbuf; i++) {
        s.use_of[i] = -1;
    }
    for (int i = 0; i < s.n; i++) {
        const char *inner_name;
        Step *step = list->at[i];
        if (step->kind == STEP_LOOP) {
            s.item[i].inner = order_list(p, e, step, &step->body, arena, &inner_name);
        }
    }
    build_items(&s);
    add_wishes(&s);
    Sim sim = {.left = ARENA_ARRAY(arena, int, s.use.count + 1),
               .born = ARENA_ARRAY(arena, bool, s.use.count + 1)};
    int *left = ARENA_ARRAY(arena, int, s.n + 1), *ready = ARENA_ARRAY(arena, int, s.n + 1);
    int *order = ARENA_ARRAY(arena, int, s.n + 1), *best = ARENA_ARRAY(arena, int, s.n + 1);
    int *legal = ARENA_ARRAY(arena, int, s.n + 1);
    mark_updates(&s);
    static const char *const names[RULES + 2] = {
        "as lowered",   "updates first",          "least peak first",
        "most freed",   "updates, most freed",    "post-order, first sink first",
        "post-order, last sink first",
    };
    int64_t lowest = INT64_MAX;
    for (int k = 0; k < RULES + 2; k++) {
        if (k < RULES) {
            order_greedy(&s, &sim, (Rule)k, left, ready, order);
        } else {
            order_post(&s, legal, k == RULES + 1, order);
        }
        int64_t peak = sim_peak(&s, &sim, order);
        if (peak < lowest) {
            lowest = peak;
            memcpy(best, order, sizeof *best * (size_t)s.n);
            *name = names[k];
        }
        if (k == RULE_LOWERED) {
            memcpy(legal, order, sizeof *legal * (size_t)s.n);
        }
    }
    for (int i = 0; i < s.n; i++) {
        list->at[i] = s.item[best[i]].step;
    }
    return lowest;
}

/* ---- the check of the loss ------------------------------------------------------------------ */

static Buf *value_of_result(const ProgramEntry *e, Buf *result) {
    for (int i = 0; i < e->buf.count; i++) {
        if (e->buf.at[i]->dest == result) {
            return e->buf.at[i];
        }
    }
    return result;
}

static void add_check(Program *p, ProgramEntry *e) {
    Step *check = NULL;
    int after = -1;
    for (int i = 0; i < e->buf.count; i++) {
        Buf *buf = e->buf.at[i];
        if (buf->kind != BUF_RESULT || !elem_is_float(buf->type.elem)) {
            continue;
        }
        const EntryOut *out = &e->entry->out.at[buf->out];
        if (out->role != OUT_LOSS && out->role != OUT_GRAD_NORM) {
            continue;
        }
        if (check == NULL) {
            check = step_new(p, STEP_CHECK, out->loc);
        }
        Buf *value = value_of_result(e, buf);
        step_access(p, check, value, ACCESS_READ);
        for (int k = 0; k < e->step.count; k++) {
            const Access *access = step_find(e->step.at[k], value);
            if (access != NULL && (access->mode & ACCESS_WRITE) != 0 && k > after) {
                after = k;
            }
        }
    }
    if (check == NULL) {
        return;
    }
    VEC_PUSH(p->arena, &e->step, check);
    for (int k = e->step.count - 1; k > after + 1; k--) {
        e->step.at[k] = e->step.at[k - 1];
    }
    e->step.at[after + 1] = check;
}

/* Notes where each step stands, and makes the Access list of every loop the union of its body's, carries included: the body makes
 * their next values, so who reads one behind the loop comes behind the loop. */
static void complete_loops(Program *p, const StepList *list) {
    for (int i = 0; i < list->count; i++) {
        list->at[i]->lowered = i;
        if (list->at[i]->kind == STEP_LOOP) {
            complete_loops(p, &list->at[i]->body);
            step_access_body(p, list->at[i]);
        }
    }
}

void pass_order(Program *p, ProgramEntry *e) {
    Arena scratch = {0};
    for (int i = 0; i < e->buf.count; i++) {
        const Buf *buf = e->buf.at[i];
        if (buf->dest != NULL && buf->loop != NULL) {
            step_access(p, buf->loop, buf->dest, ACCESS_READ | ACCESS_WRITE);
        }
    }
    if (e->entry->kind == ENTRY_TRAIN) {
        add_check(p, e);
    }
    complete_loops(p, &e->step);
    order_list(p, e, NULL, &e->step, &scratch, &e->order_name);
    program_number(e);
    arena_free(&scratch);
}
