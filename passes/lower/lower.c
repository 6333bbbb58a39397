/* lower: Graph -> Program. Regions become lists of steps, LOOP nodes become STEP_LOOP, units of the
 * Fusion become kernels; every value that needs memory gets its home.
 *
 * Homes: a value stored once lives where its first user needs it: in a temporary, in the result
 * that the caller sees, in the slice of a stack that belongs to the iteration. What must end in
 * another storage (a parameter, a state, a carry) lives in a temporary with Buf.final. Contract in
 * lower.h. */
#include "passes/lower/lower.h"

#include "compiler/loop_builder.h"
#include "passes/lower/build.h"
#include "passes/schedule/schedule.h"
#include "passes/sparse.h"
#include "passes/view.h"

#include <string.h>

/* --- steps ------------------------------------------------------------------------------------ */

/* The line of the source that made the node, and its place. */
static void step_text(Lower *l, Step *step, const Node *node) {
    step->op = node->op;
    step->loc = node->loc;
    Text text = {.arena = l->scratch};
    if (node->loc.source < (uint32_t)l->c->diag.sources.count) {
        const Source *source = &l->c->diag.sources.at[node->loc.source];
        size_t begin = node->loc.at, end = node->loc.at;
        while (begin > 0 && source->text[begin - 1] != '\n') {
            begin--;
        }
        while (end < source->length && source->text[end] != '\n') {
            end++;
        }
        while (begin < end && (source->text[begin] == ' ' || source->text[begin] == '\t')) {
            begin++;
        }
        while (end > begin && strchr(" \t\r;", source->text[end - 1])) {
            end--;
        }
        text_addn(&text, source->text + begin, end - begin < 90 ? end - begin : 90);
        step->line = str_dup(l->arena, text.at);
    } else {
        text_printf(&text, "%s", op_info[node->op].name);
    }
    text_add(&text, "  [");
    for (int i = 0; i < node->type->rank; i++) {
        text_printf(&text, "%s%lld", i ? ", " : "", (long long)node->type->dim[i]);
    }
    text_add(&text, "]");
    step->text = str_dup(l->arena, text.at);
}

static const Node *main_atom(const Fusion *f, const Unit *u) {
    for (int i = u->atom.count - 1; i >= 0; i--) {
        const NodeInfo *n = &f->info[u->atom.at[i]->id];
        if (n->stored && u->atom.at[i]->name) {
            return u->atom.at[i];
        }
    }
    return u->atom.at[u->kind == UNIT_PRODUCT ? 0 : u->atom.count - 1];
}

/* A kernel for `unit` (or a copy of `node` into `copy`), as a step at the end of the frame's list.
 */
static void lower_kernel(Frame *f, const Unit *unit, const Node *main, const HomeList *copy) {
    Lower *l = f->l;
    enum { KERNEL_CHUNK = 1024, SCRATCH_CHUNK = 16384 };
    Arena scratch = {.chunk_bytes = SCRATCH_CHUNK}, attempt = {.chunk_bytes = KERNEL_CHUNK};
    WorkBuild b = {.w = {.scratch = &scratch},
                   .l = l,
                   .frame = f,
                   .unit = unit,
                   .attempt = &attempt,
                   .copy = copy};
    unit_build(&b);
    if (b.w.k->body.count == 0) {
        arena_free(&scratch);
        arena_free(&attempt);
        return;
    }
    b.step = step_new(l->p, STEP_KERNEL, main->loc);
    step_text(l, b.step, main);
    name_step(f, unit, main, copy != NULL, b.step);
    int line = 0, col = 0;
    if (main->loc.source < (uint32_t)l->c->diag.sources.count) {
        loc_line(&l->c->diag, main->loc, &line, &col);
        /* The base name: emitted text does not depend on how the model was named. */
        const char *file = loc_file(&l->c->diag, main->loc), *slash = strrchr(file, '/');
        b.step->where = str_printf(l->arena, "%s:%d", slash != NULL ? slash + 1 : file, line);
    }
    b.step->sparse =
        main->op == OP_SCATTER_ADD && l->e->entry->kind == ENTRY_TRAIN && scatter_is_sparse(main);
    kernel_finish(&b);
    if (l->target->sizes) {
        kernel_find_flat(b.w.k);
    }
    if (!program_call(l->p, b.step, b.w.k)) {
        arena_free(&attempt);
    }
    VEC_PUSH(l->p->arena, f->list, b.step);
    arena_free(&scratch);
}

static void lower_copy(Frame *f, const Node *node, const HomeList *to) {
    Unit unit = {.kind = UNIT_NEST, .count = type_count(*node->type)};
    const Node *atom[1] = {node};
    unit.atom.at = atom;
    unit.atom.count = 1;
    lower_kernel(f, &unit, node, to);
}

void lower_copy_to(Frame *f, const Node *node, Home to) {
    HomeList homes = {.at = &to, .count = 1};
    lower_copy(f, node, &homes);
}

/* --- where results go ------------------------------------------------------------------------- */

/* Where a result of a region must be: in a home of its own, or at last in `dest`. */
typedef struct {
    Home home;
    Buf *dest;
} Goal;
typedef VEC(Goal) GoalList;

static void lower_region(Frame *f, const GoalList *goals);

static Home goal_home(Frame *f, const Goal *t, const Node *node) {
    if (!t->dest) {
        return t->home;
    }
    Buf *buf = temp_new(f, node, *t->dest->type, str_printf(f->l->arena, "%s_next", t->dest->name));
    buf->role = str_printf(f->l->arena, "%s_next", t->dest->role);
    buf->final = t->dest;
    return (Home){.buf = buf};
}

/* What the results of LOOP `node` must reach: filled from the results of its region. */
static GoalList *loop_goals(Frame *f, const Node *node, const GoalList *goals) {
    GoalList *list = ARENA_ARRAY(f->l->scratch, GoalList, node->body->out.count + 1);
    for (int k = 0; k < f->region->out.count; k++) {
        const Node *out = f->region->out.at[k];
        for (int i = 0; i < goals[k].count; i++) {
            if (out->op == OP_PICK && out->in[0] == node) {
                VEC_PUSH_FROM(f->l->scratch, &list[out->attr->axis], goals[k].at[i], 1);
            }
        }
    }
    return list;
}

/* The first of the goals that `buf` can become when all is done: which, or -1. */
static void become_goal(const GoalList *t, Buf *buf, int *taken) {
    *taken = -1;
    for (int i = 0; i < t->count && *taken < 0; i++) {
        const Goal *to = &t->at[i];
        Buf *dest = to->dest ? to->dest : to->home.nprefix == 0 ? to->home.buf : NULL;
        if (dest && dest->type->elem == buf->type->elem) {
            buf->final = dest;
            *taken = i;
        }
    }
}

/* Storage of result k of a loop: a stack goes straight to where it is wanted when it can. */
static Home loop_home(Frame *f, const Node *loop, int k, const GoalList *t, int *taken) {
    Type type = *loop->body->out.at[k]->type;
    const Node *out = loop->body->out.at[k];
    if (k >= loop->attr->ncarry && f->halves && halves_hold(f->halves, out)) {
        type.elem = halves_elem(f->halves);
    }
    bool carry = k < loop->attr->ncarry, made = k == loop_made_carry(loop);
    bool sliced = loop_ends_itself(loop->attr) && !carry; /* an access names only so many slices */
    *taken = -1;
    if (!carry) {
        for (int i = type.rank; i > 0; i--) {
            type.dim[i] = type.dim[i - 1];
        }
        type.dim[0] = loop->attr->trip;
        type.rank++;
    }
    for (int i = 0; i < t->count; i++) {
        bool fits = !sliced || t->at[i].home.nprefix < ACCESS_SLICES;
        if ((!carry || made) && !t->at[i].dest && fits) {
            *taken = i;
            return t->at[i].home;
        }
    }
    /* Where a stack ends is what it is stored as; a carry is computed with. */
    for (int i = 0; !carry && i < t->count; i++) {
        if (t->at[i].dest && elem_computed(t->at[i].dest->type->elem) == elem_computed(type.elem)) {
            type.elem = t->at[i].dest->type->elem;
            break;
        }
    }
    Buf *buf = temp_new(f, loop->body->out.at[k], type, result_name(f, loop, k));
    become_goal(t, buf, taken);
    return (Home){.buf = buf};
}

static void sum_steps(Step *loop) {
    for (int i = 0; i < loop->body.count; i++) {
        const Step *step = loop->body.at[i];
        loop->flops = count_add(loop->flops, loop->trip, step->flops);
        loop->dear = count_add(loop->dear, loop->trip, step->dear);
        loop->bytes_moved = count_add(loop->bytes_moved, loop->trip, step->bytes_moved);
    }
}

/* On how many threads the turns of a loop run side by side. Builds that look at each call, or note
 * when it ends, have one turn behind the other. */
static int aside_team(const Frame *f, const Attr *a) {
    const Lower *l = f->l;
    const EntryKind kind = l->e->entry->kind;
    const bool watched = l->c->opt.canary || l->c->opt.nan || l->c->opt.profile;
    const bool may = f->up == NULL && (kind == ENTRY_TRAIN || kind == ENTRY_CALL);
    const int most = !may || watched || l->p->device ? 1 : l->c->opt.threads;
    return !a->aside ? 1 : a->trip < most ? (int)a->trip : most;
}

/* Memory for further threads; how much the plan of the body says. */
static void give_rest(Frame *f, Step *step, int team) {
    Lower *l = f->l;
    step->team = team;
    step->rest = buf_new(l->p, l->e, BUF_WORK, type_scalar(TY_U8), "further_threads");
    step->rest->loop = f->loop;
    step->rest->per_thread = team == step->trip ? 0 : team - 1;
    step_set_rest(l->p, step, 0);
    step_own(l->p, step, step->rest, ACCESS_READ | ACCESS_WRITE, NULL, 0);
}

static bool ends_itself(const Node *node) {
    return node->op == OP_LOOP && loop_ends_itself(node->attr);
}

static void lower_loop(Frame *f, const Node *node, const GoalList *goals) {
    Lower *l = f->l;
    const Attr *a = node->attr;
    const Region *body = node->body;
    Step *step = step_new(l->p, STEP_LOOP, node->loc);
    step->trip = a->trip;
    step->reverse = a->reverse;
    step->picks = ends_itself(node) || (a->trip == 1 && region_any(body, ends_itself));
    step_text(l, step, node);
    step->part = part_of(f, node);
    if (a->aside && a->ncarry > 0) {
        BUG("turns side by side hand a value on");
    }
    const int team = aside_team(f, a);
    if (team > 1) {
        give_rest(f, step, team);
    }
    GoalList *wanted = loop_goals(f, node, goals);
    LoopHomes *homes = &f->loops[node->id];
    HomeList *result = homes->result;
    int *taken = ARENA_ARRAY(l->scratch, int, body->out.count + 1), made = loop_made_carry(node);
    bool *copied = ARENA_ARRAY(l->scratch, bool, body->out.count + 1);
    for (int k = 0; k < body->out.count; k++) {
        /* The carry's storage may have been made for the kernel that writes its start. */
        if (result[k].count == 0) {
            Home home = loop_home(f, node, k, &wanted[k], &taken[k]);
            VEC_PUSH_FROM(l->scratch, &result[k], home, 1);
            if (k < a->ncarry && k != made) {
                lower_copy_to(f, node->in[k], home);
            }
            copied[k] = home.buf->final != NULL || wanted[k].count > (taken[k] >= 0);
            continue;
        }
        become_goal(&wanted[k], result[k].at[0].buf, &taken[k]);
    }
    Frame inner = {.l = l,
                   .region = body,
                   .up = f,
                   .halves = f->halves,
                   .node = node,
                   .loop = step,
                   .list = &step->body,
                   .result = result};
    GoalList *to = ARENA_ARRAY(l->scratch, GoalList, body->out.count + 1);
    for (int k = 0; k < body->out.count; k++) {
        Goal t = {.dest = k < a->ncarry ? result[k].at[0].buf : NULL};
        if (k >= a->ncarry) {
            t.home = result[k].at[0];
            t.home.prefix = ARENA_ARRAY(l->scratch, const Step *, t.home.nprefix + 1);
            for (int i = 0; i < t.home.nprefix; i++) {
                t.home.prefix[i] = result[k].at[0].prefix[i];
            }
            t.home.prefix[t.home.nprefix++] = step;
        }
        if (k >= a->ncarry || (k != made && body->out.at[k] != body->param.at[1 + k])) {
            VEC_PUSH_FROM(l->scratch, &to[k], t, 1);
        }
    }
    ends_before(f, node, step);
    VEC_PUSH(l->p->arena, f->list, step);
    lower_region(&inner, to);
    ends_in(f, node, step);
    step_access_body(l->p, step);
    sum_steps(step);
    if (loop_ends_itself(a)) {
        ends_after(f, node, step, copied);
    }
    for (int k = 0; k < body->out.count; k++) {
        for (int i = 0; i < wanted[k].count; i++) {
            if (i != taken[k]) {
                for (int j = 0; j < homes->picks.count; j++) {
                    const Node *n = homes->picks.at[j];
                    if (n->attr->axis == k) {
                        lower_copy_to(f, n, goal_home(f, &wanted[k].at[i], n));
                        break;
                    }
                }
            }
        }
    }
}

/* --- regions ---------------------------------------------------------------------------------- */

/* The kernels of the operands of a concatenation write their parts of it. */
static void place_parts(Frame *f, const Node *node) {
    HomeList *whole = &f->home[node->id];
    if (whole->count == 0) {
        Home home = {.buf = temp_new(f, node, storage_of(f, node), NULL)};
        VEC_PUSH_FROM(f->l->scratch, whole, home, 1);
    }
    int64_t begin = 0;
    for (int k = 0; k < node->nin; k++) {
        const NodeInfo *n = &f->fusion->info[node->in[k]->id];
        if (n->atom && !n->leaf && !n->again && k < 64 && whole->count == 1) {
            /* Nobody may read a part before all of them are there. */
            if (n->read && f->home[node->in[k]->id].count == 0) {
                Home own = {.buf = temp_new(f, node->in[k], storage_of(f, node->in[k]), NULL)};
                VEC_PUSH_FROM(f->l->scratch, &f->home[node->in[k]->id], own, 1);
            }
            Home part = whole->at[0];
            part.part = true;
            int64_t *at = ARENA_ARRAY(f->l->scratch, int64_t, node->type->rank);
            for (int i = 0; i < node->type->rank; i++) {
                at[i] = (part.at ? part.at[i] : 0) + (i == node->attr->axis ? begin : 0);
            }
            part.at = at;
            VEC_PUSH_FROM(f->l->scratch, &f->home[node->in[k]->id], part, 1);
            f->placed[node->id] |= (uint64_t)1 << k;
        }
        begin += node->in[k]->type->dim[node->attr->axis];
    }
}

/* Homes of what the region stores, results first. */
static void give_homes(Frame *f, const GoalList *goals) {
    for (int k = 0; k < f->region->out.count; k++) {
        const Node *out = f->region->out.at[k];
        for (int i = 0; i < goals[k].count && out->op != OP_PICK; i++) {
            Home home = goal_home(f, &goals[k].at[i], out);
            VEC_PUSH_FROM(f->l->scratch, &f->home[out->id], home, 1);
        }
    }
    for (int i = 0; i < f->region->node.count; i++) {
        const Node *node = f->region->node.at[i];
        if (node->op != OP_LOOP || !f->fusion->info[i].live) {
            continue;
        }
        f->loops[i].result = ARENA_ARRAY(f->l->scratch, HomeList, node->body->out.count + 1);
        for (int k = 0; k < node->attr->ncarry; k++) {
            const Node *start = node->in[k];
            const NodeInfo *n = &f->fusion->info[start->id];
            if (n->leaf || k == loop_made_carry(node)) {
                continue; /* copied in front of the loop, or set by it */
            }
            Home carry = {
                .buf = temp_new(f, node->body->out.at[k], *start->type, result_name(f, node, k))};
            VEC_PUSH_FROM(f->l->scratch, &f->loops[i].result[k], carry, 1);
            if (n->read && f->home[start->id].count == 0) {
                Home own = {.buf = temp_new(f, start, *start->type, NULL)};
                VEC_PUSH_FROM(f->l->scratch, &f->home[start->id], own, 1);
            }
            VEC_PUSH_FROM(f->l->scratch, &f->home[start->id], carry, 1);
        }
    }
    for (int i = f->region->node.count - 1; i >= 0; i--) {
        const Node *node = f->region->node.at[i];
        if (node->op == OP_CONCAT && f->fusion->info[i].stored) {
            place_parts(f, node);
        }
    }
    for (int i = 0; i < f->region->node.count; i++) {
        const Node *node = f->region->node.at[i];
        const NodeInfo *n = &f->fusion->info[i];
        if (n->stored && f->home[i].count == 0 && !n->leaf && node->op != OP_LOOP) {
            Home home = {.buf = temp_new(f, node, storage_of(f, node), NULL)};
            VEC_PUSH_FROM(f->l->scratch, &f->home[i], home, 1);
        }
    }
}

/* What many places want, as the zeros that optimizers begin with, is made once and copied from the
 * first of them, some places in one kernel: so its text does not grow with them. */
enum { HOMES_MOST = 8 };

static void lower_unit(Frame *f, const Unit *u) {
    int *all = ARENA_ARRAY(f->l->scratch, int, u->atom.count + 1);
    for (int i = 0; i < u->atom.count; i++) {
        HomeList *homes = &f->home[u->atom.at[i]->id];
        all[i] = homes->count;
        homes->count = all[i] < HOMES_MOST ? all[i] : HOMES_MOST;
    }
    lower_kernel(f, u, main_atom(f->fusion, u), NULL);
    for (int i = 0; i < u->atom.count; i++) {
        const Node *node = u->atom.at[i];
        for (int k = HOMES_MOST; k < all[i]; k += HOMES_MOST) {
            int left = all[i] - k;
            HomeList some = {.at = f->home[node->id].at + k,
                             .count = left < HOMES_MOST ? left : HOMES_MOST};
            lower_copy(f, node, &some);
        }
    }
}

static void lower_region(Frame *f, const GoalList *goals) {
    int n = f->region->node.count;
    bool apart = f->l->c->opt.nan && f->l->e->entry->kind == ENTRY_TRAIN;
    f->fusion = pass_fuse(f->l->scratch, f->region, f->up ? NULL : f->l->e->entry->out.at, apart,
                          f->l->c->opt.stored, f->l->target->total_count,
                          target_copies(f->l->target, frame_threads(f)), f->l->target->sums);
    name_gradients(f);
    f->home = ARENA_ARRAY(f->l->scratch, HomeList, n + 1);
    /* Regions without loops or concatenations need no tables of them. */
    for (int i = 0; i < n; i++) {
        Node *node = f->region->node.at[i];
        if (node->op == OP_LOOP && !f->loops) {
            f->loops = ARENA_ARRAY(f->l->scratch, LoopHomes, n + 1);
        } else if (node->op == OP_CONCAT && !f->placed) {
            f->placed = ARENA_ARRAY(f->l->scratch, uint64_t, n + 1);
        } else if (node->op == OP_PICK) {
            VEC_PUSH_FROM(f->l->scratch, &f->loops[node->in[0]->id].picks, node, 2);
        }
    }
    give_homes(f, goals);
    for (int i = 0; i < f->fusion->unit.count; i++) {
        const Unit *u = f->fusion->unit.at[i];
        if (u->kind == UNIT_LOOP) {
            lower_loop(f, u->atom.at[0], goals);
        } else {
            lower_unit(f, u);
        }
    }
}

/* --- entries ---------------------------------------------------------------------------------- */

/* Floats of 16 bits are types of what is stored, never of nodes. */
static void check_types(const Region *region) {
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        if (elem_is_half(node->type->elem)) {
            BUG("lowering of %s", elem_name(node->type->elem));
        }
        if (node->body) {
            check_types(node->body);
        }
    }
}

/* Notes which Bufs the backward part of a train reads of the forward part: what the loss waits for
 * and something else reads, directly or by computing from it again. */
static void mark_saved(const Frame *f) {
    const Region *region = f->region;
    bool *read = ARENA_ARRAY(f->l->scratch, bool, region->node.count + 1);
    for (int i = region->node.count - 1; i >= 0; i--) {
        const Node *node = region->node.at[i];
        const bool pick = node->op == OP_PICK;
        const NodeInfo *n = &f->fusion->info[i];
        /* Of a loop that the loss waits for, stacks are of the forward part too. */
        const bool forward = pick ? f->fusion->info[node->in[0]->id].forward : n->forward;
        const HomeList *homes =
            pick ? &f->loops[node->in[0]->id].result[node->attr->axis] : &f->home[i];
        for (int k = 0; forward && read[i] && k < homes->count; k++) {
            Buf *buf = homes->at[k].buf;
            buf->saved = buf->saved || buf->kind == BUF_TEMP;
        }
        bool through = !pick && homes->count == 0;
        for (int k = 0; n->live && k < node->nin && (!forward || (read[i] && through)); k++) {
            read[node->in[k]->id] = true;
        }
    }
}

/* Are the rows pushed from where a loop carries them? */
static bool pushes_carry(const EntryOut *out, const Node *node) {
    return node->op == OP_PICK && node->attr->axis < node->in[0]->attr->ncarry &&
           node->type->elem == out->slot->type.elem;
}

/* Where the loop has what the node picks of it. */
static Buf *carried(const Frame *f, const Node *pick) {
    return f->loops[pick->in[0]->id].result[pick->attr->axis].at[0].buf;
}

/* The rows in `from` into the ring of the output. */
static Step *push_step(Lower *l, const EntryOut *out, Buf *from) {
    Step *step = step_new(l->p, STEP_PUSH, out->loc);
    step->src = from;
    step->dst = slot_buf(l, out->slot);
    step->cursor = slot_buf(l, out->slot->cursor);
    step->bytes_moved = 2 * from->bytes;
    step->text = str_printf(l->p->arena, "push to %s", out->slot->name);
    step_access(l->p, step, step->src, ACCESS_READ);
    step_access(l->p, step, step->cursor, ACCESS_READ);
    if (entry_pushes_used(l->e->entry, from->type)) {
        step->in_use = slot_buf(l, l->e->entry->rows_slot);
        step_access(l->p, step, step->in_use, ACCESS_READ);
    }
    step_access(l->p, step, step->dst, ACCESS_WRITE | ACCESS_PART);
    return step;
}

/* The seed is the caller's; what is drawn reads it from its slot. */
static void seed_step(Lower *l) {
    for (int i = 0; i < l->p->slot.count; i++) {
        Buf *buf = l->p->slot.at[i];
        if (buf->slot->role == STATE_COUNTER && buf->slot->label != NULL &&
            str_eq(buf->slot->label, "seed")) {
            Step *step = step_new(l->p, STEP_SEED, LOC_NONE);
            step->dst = buf;
            step->text = "seed";
            step_access(l->p, step, buf, ACCESS_WRITE);
            VEC_PUSH(l->p->arena, &l->e->step, step);
        }
    }
}

/* What the caller gives is looked at first. */
static void refusal_steps(Lower *l, const Entry *entry) {
    for (int i = 0; i < l->e->buf.count; i++) {
        Buf *buf = l->e->buf.at[i];
        if (buf->kind == BUF_INPUT && input_is_ranged(entry, buf->slot)) {
            Step *step = step_new(l->p, STEP_RANGE, buf->slot->loc);
            step->src = buf;
            step_access(l->p, step, buf, ACCESS_READ);
            VEC_PUSH(l->p->arena, &l->e->step, step);
        }
    }
    for (int k = 0; k < entry->out.count; k++) {
        EntryOut *out = &entry->out.at[k];
        if (out->role == OUT_NEED) {
            Step *step = step_new(l->p, STEP_NEED, out->loc);
            step->cursor = slot_buf(l, out->slot);
            step->least = out->least = entry->region->out.at[k]->attr->ivalue;
            step_access(l->p, step, step->cursor, ACCESS_READ);
            VEC_PUSH(l->p->arena, &l->e->step, step);
        }
    }
}

static bool rounds(const Node *node) {
    return op_gives(node->op) != TY_ERROR;
}

static void lower_entry(Compile *c, Program *p, Entry *entry) {
    check_types(entry->region);
    ProgramEntry *e = ARENA_NEW(p->arena, ProgramEntry);
    e->entry = entry;
    e->rounds = region_any(entry->region, rounds);
    VEC_PUSH(p->arena, &p->entry, e);
    Arena scratch = {0};
    Lower l = {.c = c, .p = p, .e = e, .arena = p->arena, .scratch = &scratch};
    l.readers = readers_new(&scratch);
    l.target = target_asked(c->opt.target);
    for (int i = 0; i < entry->input.count; i++) {
        Slot *slot = entry->input.at[i];
        const char *name = slot->c_name ? slot->c_name : slot->name;
        Buf *buf = buf_new(p, e, BUF_INPUT, slot->type, name);
        buf->slot = slot;
        buf->loc = slot->loc;
    }
    GoalList *goals = ARENA_ARRAY(&scratch, GoalList, entry->out.count + 1);
    Buf **rows = ARENA_ARRAY(&scratch, Buf *, entry->out.count + 1); /* that are pushed */
    refusal_steps(&l, entry);
    if (entry->kind == ENTRY_INIT) {
        seed_step(&l);
    }
    for (int k = 0; k < entry->out.count; k++) {
        const EntryOut *out = &entry->out.at[k];
        const Node *node = entry->region->out.at[k];
        Goal t = {.dest = NULL};
        if (out->role == OUT_WRITE) {
            if (type_count(*node->type) == 0 ||
                (node->op == OP_SLOT && node->attr->slot == out->slot)) {
                continue;
            }
            t.dest = slot_buf(&l, out->slot);
        } else if (out->role == OUT_NEED) {
            continue;
        } else if (out->role == OUT_LIMIT) {
            if (node->op == OP_PICK || (node->op == OP_CONST && node->attr->value == 0)) {
                continue; /* read where the loop has it; or it never happens */
            }
            t.home.buf = buf_new(p, e, BUF_TEMP, *node->type, "over");
            t.home.buf->loc = out->loc;
            VEC_PUSH(p->arena, &e->limit, t.home.buf);
        } else if (out->role == OUT_PUSH) {
            if (type_count(*node->type) == 0 || pushes_carry(out, node)) {
                continue; /* rows of a field without elements; read where the loop has them */
            }
            const char *name = str_printf(p->arena, "%s_rows", slot_buf(&l, out->slot)->name);
            Type type = *node->type;
            type.elem = out->slot->type.elem;
            t.home.buf = buf_new(p, e, BUF_TEMP, type, name);
            t.home.buf->loc = out->loc;
            rows[k] = t.home.buf;
        } else {
            Type type = *node->type;
            type.elem = out->half != TY_ERROR ? out->half : type.elem;
            Buf *buf = buf_new(p, e, BUF_RESULT, type, out->name ? out->name : "result");
            buf->out = k;
            buf->label = node->name;
            buf->loc = out->loc;
            t.home.buf = buf;
            if (type_count(*node->type) == 0) {
                continue; /* the caller sees it, and nothing is written */
            }
        }
        VEC_PUSH_FROM(&scratch, &goals[k], t, 1);
    }
    Frame f = {.l = &l, .region = entry->region, .list = &e->step};
    f.halves = entry->rounds != 0 ? halves_new(&scratch, entry->region, entry->half) : NULL;
    lower_region(&f, goals);
    for (int k = 0; k < entry->out.count; k++) {
        const Node *node = entry->region->out.at[k];
        if (entry->out.at[k].role == OUT_LIMIT && node->op == OP_PICK) {
            Buf *buf = carried(&f, node);
            buf->loc = entry->out.at[k].loc; /* where the loop stands */
            VEC_PUSH(p->arena, &e->limit, buf);
        }
    }
    for (int k = 0; k < entry->out.count; k++) {
        const EntryOut *out = &entry->out.at[k];
        const Node *node = entry->region->out.at[k];
        bool read = out->role == OUT_PUSH && pushes_carry(out, node) && type_count(*node->type) > 0;
        Buf *from = read ? carried(&f, node) : rows[k];
        if (from) {
            VEC_PUSH(p->arena, &e->step, push_step(&l, out, from));
        }
    }
    if (entry->kind == ENTRY_TRAIN) {
        mark_saved(&f);
    }
    for (int i = 0; i < e->step.count; i++) {
        e->flops = count_add(e->flops, 1, e->step.at[i]->flops);
        e->dear = count_add(e->dear, 1, e->step.at[i]->dear);
        e->bytes_moved = count_add(e->bytes_moved, 1, e->step.at[i]->bytes_moved);
    }
    arena_free(&scratch);
}

/* No kernel holds a node. */
static void nodes_free(Entry *entry) {
    if (entry->nodes[0].head || entry->nodes[1].head) {
        entry->region = NULL;
    }
    arena_free(&entry->nodes[0]);
    arena_free(&entry->nodes[1]);
}

Program *pass_lower(Compile *c, Arena *arena, Module *module) {
    Program *p = program_new(arena, module);
    p->device = c->opt.target && c->opt.target->device;
    p->times = target_asked(c->opt.target)->step;
    for (int i = 0; i < module->slot.count; i++) {
        Slot *slot = module->slot.at[i];
        const char *dot = strchr(slot->name, '.');
        Buf *buf = buf_new(p, NULL, slot->kind == SLOT_PARAM ? BUF_PARAM : BUF_STATE, slot->type,
                           dot ? dot + 1 : slot->name);
        buf->slot = slot;
        buf->loc = slot->loc;
    }
    for (int i = 0; i < module->entry.count; i++) {
        if (module->entry.at[i]->kind != ENTRY_TEST) {
            lower_entry(c, p, module->entry.at[i]);
            nodes_free(module->entry.at[i]);
        }
    }
    return p;
}
