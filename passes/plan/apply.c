/* apply: see the header. A value that is made again has a Buf of its own, Buf.again says which it
 * equals; what reads it is told in accesses, pairs and calls, also inside loops. */
#include "passes/plan/apply.h"

#include "compiler/kernel.h"

#include <string.h>

typedef struct {
    Program *p;
    const Problem *s;
    const PlanEval *eval;
    Buf **buf; /* by value */
    Buf **now; /* by use: what stands for it at the present call */
} Apply;

static Buf *buf_again(Apply *a, const Buf *of) {
    Buf *buf = buf_new(a->p, a->s->shared->e, of->kind, *of->type, of->name);
    Buf made = *of;
    made.id = buf->id;
    made.name = buf->name;
    made.storage = buf;
    made.again = of;
    *buf = made;
    return buf;
}

/* Where the first call is renamed already, its Bufs are those of values made again. */
static Buf *buf_now(const Apply *a, Buf *buf) {
    const Buf *first = buf_first(buf);
    return problem_declares(a->s, first) ? a->now[a->s->shared->local[first->id]] : buf;
}

/* Says of everything that the step and its body touch which Buf it is now. */
static void step_rename(const Apply *a, Step *step) {
    for (int i = 0; i < step->access.count; i++) {
        step->access.at[i].buf = buf_now(a, step->access.at[i].buf);
    }
    for (int i = 0; i < step->inplace.count; i++) {
        InplacePair *pair = &step->inplace.at[i];
        pair->in = buf_now(a, pair->in);
        pair->out = buf_now(a, pair->out);
    }
    for (int i = 0; i < step->call.buf.count; i++) {
        step->call.buf.at[i] = buf_now(a, step->call.buf.at[i]);
    }
    Buf **own[] = {&step->go,  &step->last,   &step->made,  &step->src,
                   &step->dst, &step->cursor, &step->in_use};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        *own[i] = *own[i] != NULL ? buf_now(a, *own[i]) : NULL;
    }
    for (int i = 0; i < step->own.count; i++) {
        step->own.at[i].buf = buf_now(a, step->own.at[i].buf);
    }
    for (int i = 0; i < step->body.count; i++) {
        step_rename(a, step->body.at[i]);
    }
}

/* The same kernel called again: lists that are changed are its own. */
static Step *step_again(Apply *a, const Step *of) {
    Step *step = step_new(a->p, of->kind, of->loc);
    *step = *of;
    step->again = of;
    memset(&step->access, 0, sizeof step->access);
    memset(&step->inplace, 0, sizeof step->inplace);
    memset(&step->call.buf, 0, sizeof step->call.buf); /* offsets and scalars stay as they are */
    for (int i = 0; i < of->access.count; i++) {
        VEC_PUSH(a->p->arena, &step->access, of->access.at[i]);
    }
    for (int i = 0; i < of->inplace.count; i++) {
        VEC_PUSH(a->p->arena, &step->inplace, of->inplace.at[i]);
    }
    for (int i = 0; i < of->call.buf.count; i++) {
        VEC_PUSH(a->p->arena, &step->call.buf, of->call.buf.at[i]);
    }
    step->kernel->ncall++;
    return step;
}

int64_t copy_bytes(const Buf *buf) {
    return 2 * buf->bytes;
}

static void append_copy(Program *p, StepList *list, Buf *buf) {
    if (!type_same_shape(*buf->type, *buf->final->type) || buf->bytes != buf->final->bytes) {
        BUG("%s cannot become %s: their layouts differ", buf->name, buf->final->name);
    }
    Step *copy = step_new(p, STEP_COPY, buf->loc);
    copy->src = buf;
    copy->dst = buf->final;
    copy->lowered = INT32_MAX; /* ends its list */
    copy->bytes_moved = copy_bytes(buf);
    copy->text = str_printf(p->arena, "%s = %s", buf->final->name, buf->name);
    step_access(p, copy, buf, ACCESS_READ);
    step_access(p, copy, buf->final, ACCESS_WRITE);
    VEC_PUSH(p->arena, list, copy);
    for (Step *loop = buf->loop; loop != NULL; loop = loop->up) {
        step_access_body(p, loop);
    }
}

/* Values that are made again: their Bufs, and workspaces of the calls that make them. */
static void find_bufs(Apply *a) {
    const Problem *s = a->s;
    bool *met = ARENA_ARRAY(s->arena, bool, s->use.count + 1);
    for (int v = 0; v < a->eval->count; v++) {
        int use = a->eval->value[v].use;
        a->buf[v] = met[use] ? buf_again(a, s->use.at[use].buf) : s->use.at[use].buf;
        met[use] = true;
    }
    for (int v = 0; v < a->eval->count; v++) {
        int root = plan_root(a->eval, v);
        if (root != v) {
            a->buf[v]->storage = a->buf[root];
        } else if (a->eval->value[v].in != NULL) {
            a->buf[v]->storage = a->eval->value[v].in;
        }
    }
}

/* Its values are not those that it was lowered with. */
static bool uses_others(const Apply *a, const Item *item) {
    bool others = false;
    for (int k = 0; k < item->touch.count && !others; k++) {
        others = a->now[item->touch.at[k]]->again != NULL;
    }
    return others;
}

void plan_apply(Program *p, const Plan *plan, const PlanEval *eval) {
    const Problem *s = eval->s;
    Apply a = {.p = p, .s = s, .eval = eval};
    a.buf = ARENA_ARRAY(s->arena, Buf *, eval->count + 1);
    a.now = ARENA_ARRAY(s->arena, Buf *, s->use.count + 1);
    find_bufs(&a);
    StepList made = {0};
    int seen = 0;
    for (int c = 0; c < plan->call.count; c++) {
        const Item *item = &s->item[plan->call.at[c]];
        Step *step = eval->place[plan->call.at[c]] < c ? step_again(&a, item->step) : item->step;
        for (int k = 0; k < item->touch.count; k++) {
            int u = item->touch.at[k];
            a.now[u] = a.buf[eval->seen.at[seen++]];
        }
        if (step != item->step || uses_others(&a, item)) {
            step_rename(&a, step);
        }
        VEC_PUSH(p->arena, &made, step);
    }
    *s->list = made;
    for (int u = 0; u < s->use.count; u++) {
        const Use *use = &s->use.at[u];
        if (use->local && s->shared->made_in[use->buf->id] != NULL) {
            use->buf->storage = use->buf->final;
        } else if (use->kept) {
            append_copy(p, s->list, use->buf);
        }
    }
    for (int v = 0; v < eval->count; v++) { /* lists around this one ask whose bytes it has */
        if (eval->value[v].in != NULL) {
            s->shared->made_in[a.buf[v]->id] = eval->value[v].in;
        }
    }
}
