/* live: lifetimes from Access lists.
 *
 * A Buf lives from its first to its last access, seen in the list that declares it: an access from
 * inside a loop counts for the whole loop, because the next iteration may make it again. What a
 * loop declares lives within one iteration. A root lives as long as all that use its bytes. Needs
 * numbered steps and Buf.storage; gives Buf.first and Buf.last, half-open; changes no values. */
#include "passes/plan/live.h"

enum { LOOP_DEPTH = 64 };

typedef struct {
    const Step *stack[LOOP_DEPTH]; /* enclosing loops, outermost first */
    int depth;
} Walk;

static void range_extend(Buf *buf, int first, int last) {
    if (buf->kind != BUF_TEMP && buf->kind != BUF_WORK) {
        return; /* lives longer than the entry */
    }
    if (buf->first == buf->last) {
        buf->first = first;
        buf->last = last;
        return;
    }
    buf->first = first < buf->first ? first : buf->first;
    buf->last = last > buf->last ? last : buf->last;
}

/* The step of the list that declares `buf` in which `step` lies. */
static const Step *declared_step(const Walk *walk, const Buf *buf, const Step *step) {
    int level = 0;
    if (buf->loop != NULL) {
        while (level < walk->depth && walk->stack[level] != buf->loop) {
            level++;
        }
        if (level == walk->depth) {
            BUG("step %d touches %s outside the loop that declares it", step->id, buf->name);
        }
        level++;
    }
    return level < walk->depth ? walk->stack[level] : step;
}

static void touch(const Walk *walk, Buf *buf, const Step *step) {
    const Step *at = declared_step(walk, buf, step);
    range_extend(buf, at->id, step_end(at));
    if (buf->storage != buf) {
        Buf *root = buf_root(buf);
        at = declared_step(walk, root, step);
        range_extend(root, at->id, step_end(at));
    }
}

static void walk_list(Walk *walk, const StepList *list) {
    for (int i = 0; i < list->count; i++) {
        Step *step = list->at[i];
        if (step->kind == STEP_LOOP) {
            if (walk->depth == LOOP_DEPTH) {
                BUG("loops are nested deeper than %d", LOOP_DEPTH);
            }
            for (int k = 0; k < step->own.count; k++) {
                touch(walk, step->own.at[k].buf, step);
            }
            walk->stack[walk->depth++] = step;
            walk_list(walk, &step->body);
            walk->depth--;
            continue; /* its own list is the union of the body's */
        }
        for (int k = 0; k < step->access.count; k++) {
            touch(walk, step->access.at[k].buf, step);
        }
    }
}

void live_ranges(ProgramEntry *e) {
    for (int i = 0; i < e->buf.count; i++) {
        e->buf.at[i]->first = e->buf.at[i]->last = 0;
    }
    Walk walk = {.depth = 0};
    walk_list(&walk, &e->step);
}
