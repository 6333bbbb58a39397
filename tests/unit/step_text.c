/* step_text: see the header. */
#include "step_text.h"

/* Offset and number of the elements that an access touches. */
static const Index *block_index(Kernel *k, const Access *access, int64_t *count) {
    const Index *at = index_const(&k->index, 0);
    *count = type_count(*access->buf->type);
    for (int i = 0; i < ACCESS_SLICES && access->slice[i] != NULL; i++) {
        const Index *loop = kernel_loop_index(k, access->slice[i]);
        *count = access->buf->stride[i];
        at = index_add(&k->index, at, index_scale(&k->index, loop, *count));
    }
    return at;
}

/* The sum of one operand, in a loop in `list`. */
static const Expr *whole_operand(Kernel *k, StmtList *list, const Access *access) {
    int64_t count;
    const Index *at = block_index(k, access, &count);
    int axis = kernel_axis(k, count, "w");
    at = index_add(&k->index, at, kernel_axis_index(k, axis));
    const Arg *arg = kernel_arg(k, access->buf, ACCESS_READ);
    const Expr *load = expr_load(k, arg, at, NULL);
    const Expr *fold = expr_fold(k, OP_SUM, load->elem, load, (AxisSet)1 << axis);
    Stmt *s = stmt_fold(k, list, axis);
    VEC_PUSH(k->arena, &s->fold, fold);
    return fold;
}

void step_written(const Step *step, const Access *out, int64_t count, int64_t *from, int64_t *to) {
    bool half = (out->mode & ACCESS_PART) && out->slice[0] == NULL;
    *from = half && step->index > 0 ? count / 2 : 0;
    *to = half && step->index == 0 ? count / 2 : count;
}

static void write_result(Kernel *k, const Step *step, const Access *out) {
    int64_t count;
    const Index *at = block_index(k, out, &count);
    int64_t from, to;
    step_written(step, out, count, &from, &to);
    at = index_offset(&k->index, at, from);
    int axis = kernel_axis(k, to - from, "i");
    Stmt *loop = stmt_for(k, &k->body, axis);
    const Expr *sum = expr_const(k, out->buf->type->elem, 1);
    for (int i = 0; i < step->access.count; i++) {
        const Access *in = &step->access.at[i];
        if (!(in->mode & ACCESS_READ) || in->buf == out->buf) {
            continue;
        }
        int64_t n;
        const Expr *value;
        if (step_pairs(step, in->buf, out->buf)) {
            const Index *place = block_index(k, in, &n);
            place = index_add(&k->index, place, kernel_axis_index(k, axis));
            value = expr_load(k, kernel_arg(k, in->buf, ACCESS_READ), place, NULL);
        } else {
            value = whole_operand(k, &loop->body, in);
        }
        const Expr *both[2] = {sum, value};
        sum = expr_map(k, OP_ADD, sum->elem, both, 2);
    }
    at = index_add(&k->index, at, kernel_axis_index(k, axis));
    stmt_store(k, &loop->body, kernel_arg(k, out->buf, ACCESS_WRITE), at, sum);
}

void step_text(Program *p, Step *step) {
    Kernel *k = kernel_new(p->arena, 1);
    for (int i = 0; i < step->access.count; i++) { /* workspaces are written first */
        if (step->access.at[i].buf->kind == BUF_WORK) {
            write_result(k, &(Step){.access.count = 0}, &step->access.at[i]);
        }
    }
    for (int i = 0; i < step->access.count; i++) {
        if ((step->access.at[i].mode & ACCESS_WRITE) && step->access.at[i].buf->kind != BUF_WORK) {
            write_result(k, step, &step->access.at[i]);
        }
    }
    for (int i = 0; i < step->inplace.count; i++) {
        const Arg *in = kernel_arg(k, step->inplace.at[i].in, ACCESS_READ);
        const Arg *out = kernel_arg(k, step->inplace.at[i].out, ACCESS_WRITE);
        VEC_PUSH(k->arena, &k->pair, ((ArgPair){in->id, out->id}));
    }
    k->id = p->kernel.count;
    k->ncall = 1;
    VEC_PUSH(p->arena, &p->kernel, k);
    step->kernel = k;
    step->call = k->call;
    step->lowered_call = call_hash(&step->call);
}

static void text_visit(void *ctx, Step *step, int depth) {
    (void)depth;
    if (step->kind == STEP_KERNEL) {
        step_text(ctx, step);
    }
}

void entry_text(Program *p, ProgramEntry *e) {
    steps_visit(&e->step, text_visit, p);
}
