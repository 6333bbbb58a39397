/* bind: which expressions of a block get a name.
 *
 * A value is bound where it is used more than once, where a deeper loop would compute it again, and
 * where a choice would hide a load. Needs the roots of a nest; gives LET statements in front of
 * their uses; changes no values. */
#include "passes/schedule/schedule.h"

#include <string.h>

AxisSet root_axes(const Root *root) {
    return root->index->axes | root->value->axes;
}

AxisSet axes_with(AxisSet set, const int *axis, int n) {
    for (int i = 0; i < n; i++) {
        set |= (AxisSet)1 << axis[i];
    }
    return set;
}

AxisSet turns_with(AxisSet set, const Turns *turns) {
    for (int i = 0; i < turns->n; i++) {
        set |= (AxisSet)1 << turns->at[i].axis;
    }
    return set;
}

/* Loads under a choice are bound in front of it: a C compiler may not make a load that the source
 * makes only sometimes, and then cannot vectorise; ours are always inside. */
static void force_loads(KernelBuild *b, const Expr *e) {
    if (b->forced[e->id]) {
        return;
    }
    b->forced[e->id] = true;
    for (int i = 0; e->kind == EXPR_MAP && e->axes != 0 && i < e->nkid; i++) {
        force_loads(b, e->kid[i]);
    }
}

static void count_use(KernelBuild *b, const Expr *e) {
    if (b->uses[e->id]++ > 0) {
        return;
    }
    for (int i = 1; e->kind == EXPR_MAP && e->op == OP_SELECT && i < e->nin; i++) {
        force_loads(b, e->in[i]);
    }
    for (int i = 0; i < e->nkid; i++) {
        count_use(b, e->kid[i]);
    }
}

static void count_root(KernelBuild *b, const Root *root) {
    const Expr *kid[MD_RANK];
    int n = index_kids(root->index, kid, 0, MD_RANK);
    for (int i = 0; i < n; i++) {
        count_use(b, kid[i]);
    }
    count_use(b, root->value);
}

/* Room for expressions that scheduling itself makes: loads of kept rows. */
void bind_room(KernelBuild *b) {
    if (b->nbound >= b->k->expr.count) {
        return;
    }
    int n = b->k->expr.count + 64;
    b->bound = arena_grow(b->scratch, b->bound, sizeof *b->bound * (size_t)b->nbound,
                          sizeof *b->bound * (size_t)n);
    b->uses = arena_grow(b->scratch, b->uses, sizeof *b->uses * (size_t)b->nbound,
                         sizeof *b->uses * (size_t)n);
    b->forced = arena_grow(b->scratch, b->forced, sizeof *b->forced * (size_t)b->nbound,
                           sizeof *b->forced * (size_t)n);
    memset(b->forced + b->nbound, 0, sizeof *b->forced * (size_t)(n - b->nbound));
    memset(b->bound + b->nbound, 0, sizeof *b->bound * (size_t)(n - b->nbound));
    memset(b->uses + b->nbound, 0, sizeof *b->uses * (size_t)(n - b->nbound));
    b->nbound = n;
}

void nest_open(KernelBuild *b, const RootList *roots) {
    b->nbound = 0;
    b->bound = NULL;
    b->uses = NULL;
    b->forced = NULL;
    bind_room(b);
    for (int i = 0; i < b->k->body.count; i++) { /* of an earlier nest: still in sight */
        const Stmt *s = b->k->body.at[i];
        if (s->kind == STMT_LET) {
            b->bound[s->expr->id] = true;
        }
    }
    bind_uses(b, roots);
}

void bind_uses(KernelBuild *b, const RootList *roots) {
    bind_room(b);
    memset(b->uses, 0, sizeof *b->uses * (size_t)b->nbound);
    for (int i = 0; i < roots->count; i++) {
        count_root(b, &roots->at[i]);
    }
}

bool roots_at(KernelBuild *b, const RootList *roots, int axis, const Index *place, RootList *to) {
    ExprAt x = expr_at_open(b->k, b->scratch, axis, place);
    for (int i = 0; i < roots->count; i++) {
        Root root = roots->at[i];
        const Expr *kid[MD_RANK];
        root.value = root.named || index_kids(root.index, kid, 0, MD_RANK) > 0
                         ? NULL
                         : expr_at(&x, root.value);
        if (!root.value) {
            return false;
        }
        root.index = index_subst(&b->k->index, root.index, axis, x.place);
        VEC_PUSH(b->scratch, to, root);
    }
    return true;
}

bool expr_is_plain(const Expr *e) {
    return e->kind == EXPR_CONST || e->kind == EXPR_INDEX;
}

/* What is not known before the loops: folds, and what the kernel itself writes. */
static bool comes_late(const KernelBuild *b, const Expr *e, bool *seen) {
    if (seen[e->id] || b->bound[e->id]) {
        return false;
    }
    seen[e->id] = true;
    for (int i = 0; i < e->nkid; i++) {
        if (comes_late(b, e->kid[i], seen)) {
            return true;
        }
    }
    return e->kind == EXPR_FOLD || (e->kind == EXPR_LOAD && (e->arg->mode & ACCESS_WRITE) != 0);
}

void bind_expr(Binder *x, const Expr *e, bool deeper) {
    KernelBuild *b = x->b;
    if (b->bound[e->id] || expr_is_plain(e)) {
        return;
    }
    bool here = (e->axes & ~x->scope) == 0;
    bool wanted = here && !e->term &&
                  (deeper || b->uses[e->id] > 1 || e->kind == EXPR_KEY ||
                   (b->forced[e->id] && e->kind == EXPR_LOAD && e->nin == 0));
    if (x->seen[e->id] && !wanted) {
        return;
    }
    if (here && x->early && comes_late(b, e, ARENA_ARRAY(b->scratch, bool, b->nbound))) {
        wanted = false;
    } else if (e->kind == EXPR_FOLD && here) {
        BUG("a fold is used before its loop");
    }
    x->seen[e->id] = true;
    for (int i = 0; i < e->nkid; i++) {
        bind_expr(x, e->kid[i], !here);
    }
    if (wanted) {
        stmt_let(b->k, x->list, e, NULL);
        b->bound[e->id] = true;
        if (x->made) {
            VEC_PUSH(b->scratch, x->made, e);
        }
    }
}

Binder bind_open(KernelBuild *b, StmtList *list, AxisSet scope, ExprList *made) {
    bind_room(b);
    return (Binder){b, list, scope, ARENA_ARRAY(b->scratch, bool, b->nbound), made, false};
}

void bind_root(Binder *x, const Root *root) {
    const Expr *kid[MD_RANK];
    int n = index_kids(root->index, kid, 0, MD_RANK);
    bool deeper = (root_axes(root) & ~x->scope) != 0;
    for (int i = 0; i < n; i++) {
        bind_expr(x, kid[i], deeper);
    }
    bind_expr(x, root->value, deeper);
}

void bind_end(KernelBuild *b, const ExprList *made) {
    for (int i = 0; i < made->count; i++) {
        b->bound[made->at[i]->id] = false;
    }
}

Arg *kernel_work(KernelBuild *b, Type type, int threads, const char *name) {
    return kernel_arg(b->k, work_buf(b->work, type, threads, name), ACCESS_READ | ACCESS_WRITE);
}

Arg *kernel_row(KernelBuild *b, Type type, const char *name) {
    Arg *arg = kernel_work(b, type, b->k->threads, name);
    const Buf *buf = kernel_buf(b->k, arg);
    arg->thread = true;
    arg->part = buf->type->dim[buf->type->rank - 1];
    return arg;
}
