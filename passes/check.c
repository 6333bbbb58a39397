/* check: abstract execution of the finished Program. Shares nothing with order, in-place and plan.
 *
 * Every write makes a new token for the value of its Buf. For each region a map says which token
 * each byte holds. A step that reads a Buf must find the token of that Buf's last write in all
 * bytes that it may read; so a clobbered, moved, shrunk or too early read value shows. Copies move
 * tokens; at the end of a list every destination must hold the token of the value meant for it, and
 * every parameter and state that nothing was meant for must hold the token it began with.
 *
 * Loops: two iterations suffice. The first sees what came before the loop. Each later one starts
 * from what an iteration left behind; it addresses the same bytes, but for slices, where it
 * addresses the next position. So the map before iteration k >= 2, seen from what iteration k may
 * touch, is the map before iteration 1 with other token numbers, and the same steps give the same
 * verdict. What slices add is checked for all positions at once: a read demands its token in the
 * positions still to come; a stack that the loop writes shares no byte with another root that the
 * loop touches (check_tracks); and when a loop ends, the positions that the two iterations did not
 * write are filled.
 *
 * Which result of a kernel may lie in the bytes of which operand is read off the kernel's text
 * (check_kernel), and so is what it touches; what lowering says of both must agree.
 *
 * Needs a planned Program, changes nothing. */
#include "passes/check.h"

#include "passes/check_again.h"
#include "passes/check_aside.h"
#include "passes/check_ends.h"
#include "passes/check_kernel.h"
#include "passes/check_loop.h"
#include "passes/check_phases.h"
#include "passes/check_value.h"

#include <string.h>

/* ---- steps ---------------------------------------------------------------------------------- */

/* The text of a kernel, read once. */
static const KernelSites *sites_of(Check *c, const Step *step) {
    const KernelSites **sites = &c->sites[step->kernel->id];
    if (*sites == NULL) {
        *sites = kernel_sites(&c->text, step->kernel);
        c->read++;
    }
    return *sites;
}

/* What lowering says of a kernel, held against its text: the Bufs that it touches, and the pairs
 * that may share storage, whether the plan uses them or not. */
static bool check_text(Check *c, const Step *step) {
    const char *name = step->name != NULL ? step->name : "-";
    if (step->kind != STEP_KERNEL) {
        return step->inplace.count == 0 ||
               check_fail(c, "step %d (%s) is no kernel and names pairs", step->id, name);
    }
    if (step->kernel == NULL) {
        return check_fail(c, "step %d (%s) has no text", step->id, name);
    }
    if (c->proved[step->id]) {
        return true; /* an earlier turn of the loop around it */
    }
    c->proved[step->id] = true;
    const KernelSites *sites = sites_of(c, step);
    const char *fault = kernel_access_fault(sites, step);
    if (fault != NULL) {
        return check_fail(c, "step %d (%s): %s", step->id, name, fault);
    }
    for (int i = 0; i < step->inplace.count; i++) {
        const InplacePair *pair = &step->inplace.at[i];
        fault = kernel_share_fault(sites, &step->call, pair->in, pair->out);
        if (fault != NULL) {
            return check_fail(c, "step %d (%s): the pair (%s over %s) is wrong: %s", step->id, name,
                              pair->out->name, pair->in->name, fault);
        }
    }
    return true;
}

/* Why result `x` of a step must not lie in the bytes of its operand `y`; NULL: it may. */
static const char *share_fault(Check *c, const Step *step, const Access *x, const Access *y) {
    if (step->kind != STEP_KERNEL) {
        return "it is no kernel";
    }
    if (y->mode & ACCESS_WRITE) {
        return "both are written";
    }
    if (x->buf->kind == BUF_WORK) {
        return "a workspace belongs to its step";
    }
    /* Places of both are compared by their indices, so they must begin at one byte. */
    if (x->buf->offset != y->buf->offset) {
        return "they do not begin at the same byte";
    }
    const KernelSites *sites = sites_of(c, step);
    const char *fault = kernel_share_fault(sites, &step->call, y->buf, x->buf);
    return fault != NULL ? fault : kernel_pair_fault(sites, &step->call, y->buf, x->buf);
}

/* Operands of one step may share bytes only where its text allows it. */
static bool check_operands(Check *c, const Step *step) {
    for (int i = 0; i < step->access.count; i++) {
        const Access *x = &step->access.at[i];
        int64_t xlo, xhi;
        if (check_region(x->buf) < 0 || (!(x->mode & ACCESS_WRITE) && x->buf->kind != BUF_WORK)) {
            continue;
        }
        if (!check_block(c, step, x, &xlo, &xhi)) {
            return false;
        }
        for (int k = 0; k < step->access.count; k++) {
            const Access *y = &step->access.at[k];
            int64_t ylo, yhi;
            if (k == i || check_region(y->buf) != check_region(x->buf)) {
                continue;
            }
            if (!check_block(c, step, y, &ylo, &yhi)) {
                return false;
            }
            if (ylo >= xhi || xlo >= yhi) {
                continue;
            }
            bool same = xlo == ylo && xhi == yhi;
            const char *fault = same ? share_fault(c, step, x, y) : "at different places";
            if (fault != NULL) {
                return check_fail(c, "step %d (%s): %s and %s share bytes: %s", step->id,
                                  step->name != NULL ? step->name : "-", x->buf->name, y->buf->name,
                                  fault);
            }
        }
    }
    return true;
}

/* The recorded lifetime must hold the whole step of the declaring list. */
static bool check_lifetime(Check *c, const Step *step, const Buf *buf) {
    if (buf->kind != BUF_TEMP && buf->kind != BUF_WORK) {
        return true;
    }
    const Step *at = step;
    while (at != NULL && at->up != buf->loop) {
        at = at->up;
    }
    if (at == NULL) {
        return check_fail(c, "step %d touches %s outside the loop that declares it", step->id,
                          buf->name);
    }
    int end = at->id + 1;
    for (const Step *last = at; last->body.count > 0; end = last->id + 1) {
        last = last->body.at[last->body.count - 1];
    }
    if (at->id < buf->first || end > buf->last) {
        return check_fail(c, "step %d touches %s, which lives in %d..%d", step->id, buf->name,
                          buf->first, buf->last);
    }
    return true;
}

static bool slots_intact(Check *c, const Step *check, const char *what) {
    for (int i = 0; i < c->p->slot.count; i++) {
        const Buf *slot = c->p->slot.at[i];
        int64_t token = c->value[slot->id].token;
        int64_t lo = slot->offset, hi = lo + slot->bytes;
        if (c->origin.at[token - 1].step >= 0 ||
            check_other(&c->map[check_region(slot)], lo, hi, token) != token) {
            return check_fail(c, "%s is written before step %d checks %s", slot->name, check->id,
                              what);
        }
    }
    return true;
}

/* An input with a range is an index into something: it is looked at before it is used. */
static bool check_ranged(Check *c, const Buf *buf) {
    bool ranged = buf->kind == BUF_INPUT && input_is_ranged(c->e->entry, buf->slot);
    return !ranged || c->value[buf->id].ranged ||
           check_fail(c, "the range of %s is not looked at before it is used", buf->name);
}

/* Rows go behind those that were there when the entry began, and once: a new value of the ring; 0:
 * they do not. */
static int64_t pushed_token(Check *c, const Step *step) {
    const Value *ring = &c->value[step->dst->id], *cursor = &c->value[step->cursor->id];
    const Access *to = step_find(step, step->dst), *from = step_find(step, step->src);
    if (to == NULL || from == NULL || step_find(step, step->cursor) == NULL ||
        step->src->type->rank == 0 || step->src->type->elem != step->dst->type->elem ||
        step->src->type->dim[0] > step->dst->type->dim[0] ||
        step->src->bytes / step->src->type->dim[0] != step->dst->bytes / step->dst->type->dim[0]) {
        check_fail(c, "step %d pushes no rows of %s", step->id, step->dst->name);
        return 0;
    }
    const Entry *entry = c->e->entry;
    bool part = entry_pushes_used(entry, step->src->type);
    if (part != (step->in_use != NULL) || (part && (step->in_use->slot != entry->rows_slot ||
                                                    step_find(step, step->in_use) == NULL))) {
        check_fail(c, "step %d pushes rows to %s that are not in use", step->id, step->dst->name);
        return 0;
    }
    if (c->origin.at[ring->token - 1].step >= 0 || c->origin.at[cursor->token - 1].step >= 0) {
        check_fail(c, "step %d pushes to %s %s", step->id, step->dst->name,
                   c->origin.at[ring->token - 1].step >= 0 ? "again" : "behind its next cursor");
        return 0;
    }
    return check_token(c, step->dst, step->id);
}

static bool run_step(Check *c, const Step *step) {
    for (int i = 0; i < step->access.count; i++) {
        if (!check_lifetime(c, step, step->access.at[i].buf)) {
            return false;
        }
    }
    if (!check_text(c, step) || !check_operands(c, step) || !check_again_reads(c, step)) {
        return false;
    }
    if (step->kind == STEP_CLEAR) {
        return check_clear(c, step);
    }
    for (int i = 0; i < step->access.count; i++) {
        const Access *access = &step->access.at[i];
        if ((access->mode & ACCESS_READ) && access->buf->kind != BUF_WORK &&
            ((step->kind != STEP_RANGE && !check_ranged(c, access->buf)) ||
             !check_read(c, step, access) || !check_ends_read(c, step, access) ||
             !check_again_equal(c, step, access->buf))) {
            return false;
        }
    }
    int64_t moved = 0;
    if (step->kind == STEP_COPY) {
        if (step->src->bytes != step->dst->bytes || step_find(step, step->src) == NULL ||
            step_find(step, step->dst) == NULL) {
            return check_fail(c, "step %d copies between unequal Bufs", step->id);
        }
        moved = c->value[step->src->id].token;
    }
    if (step->kind == STEP_PUSH && (moved = pushed_token(c, step)) == 0) {
        return false;
    }
    /* Workspaces first: a result that overlaps one would be overwritten by it. */
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < step->access.count; i++) {
            const Access *access = &step->access.at[i];
            if ((access->buf->kind == BUF_WORK) == (pass == 0) &&
                ((access->mode & ACCESS_WRITE) || access->buf->kind == BUF_WORK) &&
                !check_write(c, step, access, moved)) {
                return false;
            }
        }
    }
    check_again_writes(c, step);
    if (step->kind == STEP_RANGE) {
        c->value[step->src->id].ranged = true;
    }
    return step->kind == STEP_CHECK ? slots_intact(c, step, "the loss")
           : step_refuses(step)     ? slots_intact(c, step, "what is given")
                                    : true;
}

/* At the end of a list the values that it makes for destinations are there. */
static bool check_dests(Check *c, const Step *loop) {
    const BufList *declared = check_declared(c, loop);
    for (int i = 0; i < declared->count; i++) {
        const Buf *buf = declared->at[i], *dest = buf->final;
        if (dest == NULL || buf->loop != loop) {
            continue;
        }
        Value *v = &c->value[buf->id], *d = &c->value[dest->id];
        if (v->token == 0 || !check_complete(v)) {
            return check_fail(c, "%s, the next value of %s, is not written", buf->name, dest->name);
        }
        if (dest->bytes != buf->bytes ||
            check_other(&c->map[check_region(dest)], dest->offset, dest->offset + dest->bytes,
                        v->token) != v->token) {
            return check_fail(c, "%s does not arrive in %s", buf->name, dest->name);
        }
        if (!check_ends_whole(c, buf)) {
            return false;
        }
        d->token = v->token;
        d->counts = NULL;
    }
    return true;
}

static bool run_list(Check *c, const StepList *list, const Step *up);

static bool run_loop(Check *c, const Step *loop) {
    if (c->depth == MAX_TURNS) {
        return check_fail(c, "loops are nested deeper than %d", MAX_TURNS);
    }
    int64_t further = 0;
    if (!check_ends_open(c, loop) || !check_aside_open(c, loop, &further)) {
        return false;
    }
    Turn *turn = &c->turn[c->depth++];
    turn->loop = loop;
    for (int64_t k = 0; k < loop->trip && k < 2; k++) {
        turn->turn = k;
        const BufList *declared = check_declared(c, loop);
        for (int i = 0; i < declared->count; i++) {
            if (declared->at[i]->loop == loop) {
                Value *v = &c->value[declared->at[i]->id];
                v->token = 0;
                v->counts = NULL;
                memset(v->part, 0, sizeof v->part);
                for (int w = 0; w < v->writer.count; w++) {
                    v->writer.at[w].seen = false;
                }
            }
        }
        if (!check_ends_turn(c, loop) || !run_list(c, &loop->body, loop) || !check_dests(c, loop)) {
            return false;
        }
    }
    if (!check_ends_turn(c, loop)) {
        return false;
    }
    c->depth--;
    if (loop->trip > 2) {
        check_fill(c, loop, &loop->body);
    }
    return check_tracks(c, loop) && check_ends_close(c, loop) &&
           check_aside_close(c, loop, further);
}

/* What many steps call is read once; of many kernels not all are kept. */
enum { TEXTS_KEPT = 512 };

static void forget_texts(Check *c) {
    arena_free(&c->text);
    memset(c->sites, 0, sizeof(const KernelSites *) * (size_t)c->p->kernel.count);
    c->read = 0;
}

static bool run_list(Check *c, const StepList *list, const Step *up) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        if (step->kind == STEP_LOOP ? !run_loop(c, step) : !run_step(c, step)) {
            return false;
        }
        if (up == NULL && c->read > TEXTS_KEPT) {
            forget_texts(c);
        }
    }
    return true;
}

/* ---- entries -------------------------------------------------------------------------------- */

/* Depth first, each step knowing the loop around it; *next: one more than the last number. */
static bool check_numbers(Check *c, const StepList *list, const Step *up, int *next) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        if (step->id != (*next)++ || step->up != up) {
            return check_fail(c, "step %d is not numbered in order", step->id);
        }
        if (!check_numbers(c, &step->body, step, next)) {
            return false;
        }
    }
    return true;
}

static void note_declared(Check *c, int steps) {
    c->declared = ARENA_ARRAY(c->arena, BufList, steps + 1);
    for (int i = 0; i < c->e->buf.count; i++) {
        const Buf *buf = c->e->buf.at[i];
        int at = buf->loop != NULL ? 1 + buf->loop->id : 0;
        if (at >= 0 && at <= steps) { /* else it is of no loop of the entry, and nothing runs it */
            VEC_PUSH_FROM(c->arena, &c->declared[at], buf, 2);
        }
    }
}

static void collect_writers(Check *c, const StepList *list) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        collect_writers(c, &step->body);
        const AccessList *touch = step_touches(step);
        for (int k = 0; k < touch->count; k++) {
            const Access *access = &touch->at[k];
            if (access->mode & ACCESS_WRITE) {
                Writer writer = {step, (access->mode & ACCESS_PART) != 0, false};
                VEC_PUSH(c->arena, &c->value[access->buf->id].writer, writer);
            }
        }
    }
}

/* A check of the list reads the value of this result. */
static bool has_check(const ProgramEntry *e, const Buf *result) {
    for (int i = 0; i < e->step.count; i++) {
        const Step *step = e->step.at[i];
        for (int k = 0; step->kind == STEP_CHECK && k < step->access.count; k++) {
            const Buf *buf = step->access.at[k].buf;
            if (buf == result || buf->final == result) {
                return true;
            }
        }
    }
    return false;
}

/* What kernels of a device read before anything else is nobody's place. */
static bool check_status(Check *c) {
    const ProgramEntry *e = c->e;
    int64_t lo = e->status_offset, hi = lo + MD_ALIGN;
    if (c->p->device && (lo < 0 || lo % MD_ALIGN != 0 || hi > e->io_bytes)) {
        return check_fail(c, "there is no place for its status");
    }
    for (int i = 0; c->p->device && i < e->buf.count; i++) {
        const Buf *buf = e->buf.at[i];
        if (check_region(buf) == IO && buf->offset < hi && buf->offset + buf->bytes > lo) {
            return check_fail(c, "%s lies on its status", buf->name);
        }
        if (buf->kind == BUF_INPUT && check_region(buf) != IO) {
            return check_fail(c, "%s lies where kernels do not see it", buf->name);
        }
    }
    return true;
}

static bool open_entry(Check *c) {
    const Program *p = c->p;
    const ProgramEntry *e = c->e;
    EntryKind kind = e->entry->kind;
    bool private_io = kind == ENTRY_LOAD || (kind == ENTRY_EVAL_END && !p->device);
    if (e->arena_bytes > p->arena_bytes || (!private_io && e->io_bytes > p->io_bytes)) {
        return check_fail(c, "it needs more than the regions have");
    }
    if (!check_status(c)) {
        return false;
    }
    memset(c->map, 0, sizeof c->map);
    c->origin.count = c->depth = 0;
    int steps = 0;
    if (!check_numbers(c, &e->step, NULL, &steps)) {
        return false;
    }
    c->proved = ARENA_ARRAY(c->arena, bool, steps + 1);
    c->ends = ARENA_ARRAY(c->arena, Ends, steps + 1);
    note_declared(c, steps);
    for (int i = 0; i < p->slot.count; i++) {
        c->value[p->slot.at[i]->id] = (Value){0};
    }
    for (int i = 0; i < p->table.count; i++) {
        c->value[p->table.at[i]->id] = (Value){0};
    }
    collect_writers(c, &e->step);
    if (!check_again_open(c)) {
        return false;
    }
    for (int i = 0; i < p->slot.count; i++) {
        const Buf *slot = p->slot.at[i];
        int64_t limit = slot->kind == BUF_PARAM ? p->params_bytes : p->state_bytes;
        if (!check_place(c, slot, limit)) {
            return false;
        }
        c->value[slot->id].token = check_token(c, slot, -1);
        check_mark(c->arena, &c->map[check_region(slot)], slot->offset, slot->offset + slot->bytes,
                   c->value[slot->id].token);
    }
    for (int i = 0; i < e->buf.count; i++) {
        const Buf *buf = e->buf.at[i];
        bool temp = buf->kind == BUF_TEMP || buf->kind == BUF_WORK;
        bool used = !temp || buf->first < buf->last;
        int64_t limit[REGIONS] = {p->params_bytes, p->state_bytes, e->io_bytes, e->arena_bytes};
        int region = check_region(buf);
        if (used && !check_place(c, buf, region >= 0 ? limit[region] : 0)) {
            return false;
        }
        if (buf->kind == BUF_INPUT && region == IO) {
            c->value[buf->id].token = check_token(c, buf, -1);
            check_mark(c->arena, &c->map[IO], buf->offset, buf->offset + buf->bytes,
                       c->value[buf->id].token);
        }
    }
    return true;
}

/* A Buf of another entry holds nothing. */
static void forget_entry(Check *c) {
    for (int i = 0; i < c->e->buf.count; i++) {
        c->value[c->e->buf.at[i]->id] = (Value){0};
    }
}

/* What says that a loop met its maximum is looked at. */
static bool check_limits(Check *c) {
    for (int i = 0; i < c->e->limit.count; i++) {
        bool read = false;
        for (int k = 0; k < c->e->step.count; k++) {
            const Step *step = c->e->step.at[k];
            read = read || (step->kind == STEP_CHECK && step_find(step, c->e->limit.at[i]) != NULL);
        }
        if (!read) {
            return check_fail(c, "nothing looks at %s, by which a loop met its maximum",
                              c->e->limit.at[i]->name);
        }
    }
    return true;
}

static bool close_entry(Check *c) {
    if (!check_limits(c)) {
        return false;
    }
    for (int i = 0; i < c->p->slot.count; i++) {
        const Buf *slot = c->p->slot.at[i];
        int64_t token = c->value[slot->id].token;
        if (check_other(&c->map[check_region(slot)], slot->offset, slot->offset + slot->bytes,
                        token) != token) {
            return check_fail(c, "%s is overwritten", slot->name);
        }
    }
    for (int i = 0; i < c->e->buf.count; i++) {
        const Buf *buf = c->e->buf.at[i];
        if (!check_ranged(c, buf)) {
            return false;
        }
        if (buf->kind != BUF_RESULT || buf->bytes == 0) {
            continue;
        }
        int64_t token = c->value[buf->id].token;
        if (token == 0 ||
            check_other(&c->map[IO], buf->offset, buf->offset + buf->bytes, token) != token) {
            return check_fail(c, "the result %s is not there at the end", buf->name);
        }
        if (!check_ends_whole(c, buf)) {
            return false;
        }
        bool loss = c->e->entry->kind == ENTRY_TRAIN && elem_is_float(buf->type->elem) &&
                    buf->out >= 0 && c->e->entry->out.at[buf->out].role == OUT_LOSS;
        if (loss && !has_check(c->e, buf)) {
            return check_fail(c, "the loss is not checked");
        }
    }
    return true;
}

const char *check_program(Arena *scratch, const Program *p) {
    Check c = {.arena = scratch, .p = p};
    c.value = ARENA_ARRAY(scratch, Value, p->nbuf + 1);
    c.sites = ARENA_ARRAY(scratch, const KernelSites *, p->kernel.count + 1);
    if (p->params_bytes % 64 != 0 || p->state_bytes % 64 != 0 || p->io_bytes % 64 != 0 ||
        p->arena_bytes % 64 != 0) {
        return "the totals do not add up";
    }
    const char *phases = check_phases(scratch, p);
    if (phases) {
        return phases;
    }
    for (int i = 0; i < p->entry.count; i++) {
        c.e = p->entry.at[i];
        if (!open_entry(&c) || !check_order(&c, &c.e->step, 0) || !run_list(&c, &c.e->step, NULL) ||
            !check_dests(&c, NULL) || !close_entry(&c)) {
            arena_free(&c.text);
            return c.fault;
        }
        forget_entry(&c);
    }
    arena_free(&c.text);
    return NULL;
}
