/* work: the kernel of a unit.
 *
 * A Work is made on flat index spaces; where an index then holds a quotient of an axis, the axis
 * gets digits and all is made again, so that loads come out affine wherever they can be. What no
 * schedule takes as a product is made again as loops. Needs a Fusion and homes for what it stores;
 * gives the statements of one kernel; changes no values beyond the order of sums. */
#include "passes/lower/build.h"
#include "passes/schedule/schedule.h"

#include <string.h>

bool make_loop(WorkBuild *b) {
    (void)b;
    BUG("a loop is no kernel");
}

/* Column `lower` of the table, of ops that are `made` by kernels of their own. */
#define MAKE_inline(rule) NULL
#define MAKE_either(rule) make_##rule
#define MAKE_kernel(rule) make_##rule
static bool (*const rules[OP_COUNT])(WorkBuild *b) = {
#define OP(NAME, name, nin, cls, shape, eval, vjp, lower, made, sample, cost, spelling)            \
    [OP_##NAME] = MAKE_##made(lower),
#include "compiler/op.def"
#undef OP
};

/* True when all must be made again with more digits. */
static bool make(WorkBuild *b) {
    switch (b->unit->kind) {
    case UNIT_NEST: return make_nest(b);
    case UNIT_COLUMN: return make_column(b);
    case UNIT_TOTAL: return make_total(b);
    default: return rules[b->unit->atom.at[0]->op](b);
    }
}

/* Initialisation runs once, and its shapes grow with the depth of `repeat`, on which the text must
 * not depend: it stays on one thread. What has no instance may run before the threads of the run
 * are there and counted, as when the rows of a file are checked. */
static int entry_threads(const Lower *l) {
    EntryKind kind = l->e->entry->kind;
    bool alone = kind == ENTRY_INIT || kind == ENTRY_LOAD || kind == ENTRY_EVAL_END;
    return alone ? 1 : l->c->opt.threads;
}

/* A turn that runs beside others has one thread. */
int frame_threads(const Frame *f) {
    const Lower *l = f->l;
    bool aside = false;
    for (; f != NULL; f = f->up) {
        aside = aside || (f->loop != NULL && f->loop->rest != NULL);
    }
    return aside ? 1 : entry_threads(l);
}

static void work_open(WorkBuild *b) {
    arena_free(b->attempt);
    Kernel *k = kernel_new(b->attempt, frame_threads(b->frame));
    k->model = b->l->p->prefix;
    k->index.tables = b->w.scratch;
    b->w.k = k;
    b->w.part.count = 0;
    b->w.library = b->l->c->opt.openblas;
    values_open(&b->v, k, b->w.scratch);
    b->v.stored = kernel_stored;
    b->v.ctx = b;
    b->at = b->frame;
    b->touch.count = 0;
    b->nwork = 0;
    b->known = b->elsewhere = b->again = false;
    b->strip = NULL;
    b->staged = false;
    b->w.in_place = b->w.refused = false;
    memset(b->own_copy, 0, sizeof b->own_copy);
    b->first_space = 0;
}

/* What a loop hands to the next one sample by sample takes no more than one for each thread. */
static void join_loops(WorkBuild *b) {
    Kernel *k = b->w.k;
    for (int i = 0; i < k->arg.count; i++) {
        Arg *arg = k->arg.at[i];
        const int64_t slice = loops_join(k, b->w.scratch, arg);
        if (slice == 0) {
            continue;
        }
        Buf *buf = kernel_buf(k, arg);
        const int64_t line = MD_ALIGN / (int64_t)elem_bytes(arg->elem);
        arg->thread = true;
        arg->part = align_up(slice, line);
        b->copied -= b->copied >= buf->bytes ? buf->bytes : 0;
        buf_set_type(b->l->p, buf,
                     (Type){.elem = arg->elem, .rank = 2, .dim = {k->threads, arg->part}});
        buf->bytes = type_bytes(*buf->type);
        buf->per_thread = k->threads;
    }
}

void unit_build(WorkBuild *b) {
    for (;;) {
        do {
            work_open(b);
        } while (make(b) || b->again);
        bool done = work_schedule(&b->w, b->l->target);
        if (b->again) { /* what follows a product is made while it is scheduled */
            continue;
        }
        if (b->w.refused) {
            b->copies = true;
            b->radix.count = 0; /* copies have spaces of their own */
            continue;
        }
        if (done && b->nwork < b->work.count) {
            BUG("a kernel changed its workspaces");
        }
        if (done) {
            join_loops(b);
            if (b->l->target->thread_row) {
                loops_end_early(b->w.k, b->w.scratch);
            }
            return;
        }
        if (b->staged) {
            b->declined = true;
            b->radix.count = 0;
            continue;
        }
        if (b->loops || b->unit->kind != UNIT_PRODUCT) {
            BUG("a kernel without a schedule");
        }
        b->loops = true;
        b->radix.count = 0; /* the spaces of a product mean nothing to loops */
    }
}
