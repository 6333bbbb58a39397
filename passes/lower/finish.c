/* finish: facts about a finished kernel, read off its statements: which arguments and loop
 * indices it uses, which operand may share storage with which result, operations and bytes.
 * Needs the statements of one kernel; gives Step.access, Step.inplace, flops and bytes; changes no
 * statement. */
#include "passes/lower/build.h"
#include "passes/lower/needed.h"

#include <string.h>

/* One load or store, in textual order: all of one innermost loop have one `loop`. */
typedef struct {
    const Arg *arg;
    const Index *index;
    int loop;
    bool store, add;
} Reach;

typedef struct {
    WorkBuild *b;
    bool *bound; /* by Expr.id */
    int loop;    /* number of the current innermost loop */
    int nloop;
    int64_t times; /* iterations of the current block */
    VEC(Reach) reach;
    bool *arg_used;
    int64_t team;      /* threads that run the current statements side by side, at most */
    int64_t *arg_team; /* by Arg.id: that use it so */
    int64_t *loaded; /* by Arg.id: elements loaded one by one */
    bool *swept;     /* by Arg.id: it is read as a whole too */
    int64_t flops;
    int64_t dear;    /* what functions and draws take beyond it */
    const Tile *sum; /* C is added to: it may begin as the storage of what is added */
} Walk;

static void count_flops(Walk *w, uint32_t owner, int64_t n) {
    Step *step = w->b->step;
    const Program *p = w->b->l->p;
    int layer = module_layer(p->module, (Loc){.owner = owner});
    w->flops = count_add(w->flops, 1, n);
    for (int i = 0; i < step->layer.count; i++) {
        if (step->layer.at[i].layer == layer) {
            step->layer.at[i].flops = count_add(step->layer.at[i].flops, 1, n);
            return;
        }
    }
    LayerFlops part = {layer, n};
    VEC_PUSH_FROM(p->arena, &step->layer, part, 2);
}

static void walk_arg(Walk *w, const Arg *arg) {
    w->arg_used[arg->id] = true;
    w->arg_team[arg->id] = w->team > w->arg_team[arg->id] ? w->team : w->arg_team[arg->id];
}

static void walk_index(Walk *w, const Index *index) {
    for (int i = 0; i < index->nterm; i++) {
        const Atom *atom = index->term[i].atom;
        if (atom->of) {
            walk_index(w, atom->of);
        }
        if (atom->kind == ATOM_LOOP) {
            w->b->w.k->loop.at[atom->number].used = true;
        }
    }
}

/* A change of the sign is part of what comes next. */
static int map_flops(OpCode op) {
    return op == OP_FMA ? 2 : op != OP_NEG;
}

/* Additions that take as long as one number of a draw. */
static int draw_cost(Dist dist) {
    enum { BITS = 14, NORMAL = 80 };
    return dist == DIST_NORMAL ? NORMAL : BITS;
}

static void walk_expr(Walk *w, const Expr *e) {
    if (w->bound[e->id]) {
        return;
    }
    if (e->index) {
        walk_index(w, e->index);
    }
    if (e->kind == EXPR_LOAD) {
        Reach r = {.arg = e->arg, .index = e->index, .loop = w->loop};
        VEC_PUSH(w->b->w.scratch, &w->reach, r);
        walk_arg(w, e->arg);
        w->loaded[e->arg->id] = count_add(w->loaded[e->arg->id], 1, w->times);
    }
    if (e->kind == EXPR_KEY) {
        w->b->w.k->site.at[e->site] = true;
    }
    if (e->kind == EXPR_FOLD) {
        BUG("a fold is used outside of its scope");
    }
    if (e->kind == EXPR_MAP && elem_is_float(e->elem)) {
        const int beyond = op_info[e->op].cost - map_flops(e->op);
        count_flops(w, e->owner, map_flops(e->op) * w->times);
        w->dear = count_add(w->dear, w->times, beyond > 0 ? beyond : 0);
    }
    if (e->kind == EXPR_DRAW) {
        w->dear = count_add(w->dear, w->times, draw_cost(e->dist));
    }
    for (int i = 0; i < e->nkid; i++) {
        walk_expr(w, e->kid[i]);
    }
}

/* On average, where the loop ends early. */
static int64_t trip_of(const Kernel *k, int axis, int64_t span, const Index *until) {
    const int64_t extent = k->axis[axis].extent;
    int64_t trip = span > 0 && span < extent ? span : extent;
    if (until) {
        const int64_t least = until->least > 0 ? until->least : 0;
        const int64_t most = until->most < extent ? until->most : extent;
        trip = count_add(0, trip, (least + most + 1) / 2) / extent;
    }
    return trip;
}

static void walk_list(Walk *w, const StmtList *list);
static void unbind_list(Walk *w, const StmtList *list);

/* An operand of a product is read in no order that another could rely on; the result is written in
 * several goes. */
static void walk_operand(Walk *w, const Arg *arg, const Index *at, bool store) {
    if (arg) {
        walk_arg(w, arg);
        w->swept[arg->id] = true;
        Reach r = {.arg = arg, .loop = w->loop, .store = store, .add = store};
        VEC_PUSH(w->b->w.scratch, &w->reach, r);
    }
    if (at) {
        walk_index(w, at);
    }
}

static void walk_tile(Walk *w, const Tile *tile) {
    w->loop = ++w->nloop;
    int64_t times = w->times;
    w->team = w->b->w.k->threads;
    if (tile->halo) {
        walk_arg(w, tile->halo);
        w->times = count_add(0, times, w->b->w.k->axis[tile->batch].extent);
        walk_list(w, &tile->copy);
        unbind_list(w, &tile->copy);
        w->times = times;
        w->loop = ++w->nloop;
    } else {
        walk_operand(w, tile->a, tile->at_a, false);
    }
    walk_operand(w, tile->b, tile->at_b, false);
    walk_operand(w, tile->c, tile->at_c, true);
    if (tile->add) {
        walk_operand(w, tile->add, tile->at_c, false);
        w->sum = tile;
    }
    if (tile->work) {
        walk_arg(w, tile->work); /* no result shares with a workspace */
    }
    if (tile->common) {
        walk_arg(w, tile->common);
    }
    count_flops(w, tile->owner, count_add(0, w->times, tile->flops));
    w->times = count_add(0, w->times, w->b->w.k->axis[tile->batch].extent);
    walk_list(w, &tile->body);
    unbind_list(w, &tile->body);
}

/* A line is one thread's, or all of them share it. */
static int64_t ordering_team(const Kernel *k, const Ordering *order) {
    bool few = order->way != ORDER_LONG && order->rows < k->threads;
    return !order->team ? 1 : few ? order->rows : k->threads;
}

/* Comparisons of places are no FLOPs. */
static void walk_order(Walk *w, const Ordering *order) {
    const int64_t team = ordering_team(w->b->w.k, order);
    w->team = team > w->team ? team : w->team;
    w->loop = ++w->nloop;
    walk_operand(w, order->x, order->at_x, false);
    walk_operand(w, order->out, order->at_out, true);
    walk_arg(w, order->work);
}

static void walk_stmt(Walk *w, const Stmt *s) {
    const Kernel *k = w->b->w.k;
    const int64_t times = w->times, team = w->team;
    int loop = w->loop;
    if (s->begin) {
        walk_index(w, s->begin);
    }
    if (s->until) {
        const Expr *kid[MD_RANK];
        int n = index_kids(s->until, kid, 0, MD_RANK);
        walk_index(w, s->until);
        for (int i = 0; i < n; i++) {
            walk_expr(w, kid[i]);
        }
    }
    switch (s->kind) {
    case STMT_FOR:
        w->times = count_add(0, w->times, trip_of(k, s->axis, s->span, s->until));
        w->loop = ++w->nloop;
        w->team = s->parallel > 0 && stmt_team(k, s) > team ? stmt_team(k, s) : team;
        walk_list(w, &s->body);
        break;
    case STMT_LET:
        walk_expr(w, s->as ? s->as : s->expr);
        w->bound[s->expr->id] = true;
        break;
    case STMT_STORE: {
        walk_index(w, s->index);
        const Expr *kid[MD_RANK];
        int n = index_kids(s->index, kid, 0, MD_RANK);
        for (int i = 0; i < n; i++) {
            walk_expr(w, kid[i]);
        }
        walk_expr(w, s->expr);
        Reach r = {s->arg, s->index, w->loop, true, s->add != OP_CONST};
        VEC_PUSH(w->b->w.scratch, &w->reach, r);
        walk_arg(w, s->arg);
        if (s->add != OP_CONST) {
            count_flops(w, s->owner, w->times);
        }
        break;
    }
    case STMT_FOLD:
        for (int i = 0; i < s->axes.count; i++) {
            const int64_t span = i == 0 ? s->span : 0;
            w->times = count_add(0, w->times, trip_of(k, s->axes.at[i], span, s->until));
        }
        w->loop = ++w->nloop;
        walk_list(w, &s->body);
        for (int i = 0; i < s->fold.count; i++) {
            const Expr *e = s->fold.at[i];
            for (int j = 0; j < e->nkid && !s->parts; j++) {
                walk_expr(w, e->kid[j]);
            }
            if (e->index) {
                walk_index(w, e->index);
            }
            count_flops(w, e->owner, w->times);
        }
        for (int i = 0; i < s->body.count; i++) {
            if (s->body.at[i]->kind == STMT_LET) {
                w->bound[s->body.at[i]->expr->id] = false;
            }
        }
        for (int i = 0; i < s->fold.count; i++) {
            w->bound[s->fold.at[i]->id] = true;
        }
        break;
    case STMT_TILE: walk_tile(w, s->tile); break;
    case STMT_ORDER: walk_order(w, s->order); break;
    }
    w->times = times;
    w->team = team;
    w->loop = loop;
}

static void unbind_list(Walk *w, const StmtList *list) {
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        if (s->kind == STMT_LET) {
            w->bound[s->expr->id] = false;
        }
        for (int j = 0; s->kind == STMT_FOLD && j < s->fold.count; j++) {
            w->bound[s->fold.at[j]->id] = false;
        }
    }
}

static void walk_list(Walk *w, const StmtList *list) {
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        walk_stmt(w, s);
        if (s->kind == STMT_FOR) {
            unbind_list(w, &s->body);
        }
    }
}

/* The store of `out` where `load` reads, in a loop and a statement not before it; NULL: there is
 * none. */
static const Reach *store_there(const Walk *w, const Reach *load, const Arg *out) {
    for (int i = 0; i < w->reach.count; i++) {
        const Reach *r = &w->reach.at[i];
        if (r->arg == out && r->store && r->index == load->index && load->loop <= r->loop &&
            load < r) {
            return r;
        }
    }
    return NULL;
}

/* May `out` lie in the bytes of `in`: each element of `in` is read at the place at which that of
 * `out` is written, in a loop and a statement not behind that of the store, and in no other way;
 * all stores of `out`, which never write one element twice, stand in one loop.
 * Both are of one type: C compilers take pointers to different types for pointers to different
 * places, and some then move the load behind the store. */
static bool may_share(const Walk *w, const Arg *in, const Arg *out) {
    const Reach *store = NULL;
    bool read = false;
    for (int i = 0; i < w->reach.count && in->elem == out->elem; i++) {
        const Reach *r = &w->reach.at[i];
        if (r->store && r->arg == out) {
            if (r->add || (store && store->loop != r->loop)) {
                return false;
            }
            store = r;
        }
        if (r->arg == in && (r->store || !store_there(w, r, out))) {
            return false;
        }
        read = read || r->arg == in;
    }
    return read && store;
}

/* Results, workspaces, operands. */
enum { RANKS = 3 };

static int arg_rank(const Arg *arg) {
    if (arg->work) {
        return 1;
    }
    return arg->mode & ACCESS_WRITE ? 0 : 2;
}

/* What the text allows, whoever calls it; and whether this call is of that kind. */
static void add_pair(WorkBuild *b, const Arg *in, const Arg *out) {
    Kernel *k = b->w.k;
    InplacePair pair = {kernel_buf(k, in), kernel_buf(k, out)};
    if (call_same_offset(&k->call, in->id, out->id)) {
        VEC_PUSH_FROM(b->l->p->arena, &b->step->inplace, pair, 2);
    }
    VEC_PUSH_FROM(k->arena, &k->pair, ((ArgPair){in->id, out->id}), 1);
}

/* Of a table whose rows data picks, and of a stack of which a turn reads its own part that is no
 * slice of memory, not all is read. */
static void set_loaded(WorkBuild *b, const Walk *w) {
    for (int i = 0; i < b->w.k->arg.count; i++) {
        const Arg *arg = b->w.k->arg.at[i];
        if (w->loaded[arg->id] == 0 || w->swept[arg->id]) {
            continue;
        }
        const Buf *buf = kernel_buf(b->w.k, arg);
        const int64_t bytes = count_add(0, w->loaded[arg->id], (int64_t)elem_bytes(arg->elem));
        for (int k = 0; k < b->step->access.count; k++) {
            Access *access = &b->step->access.at[k];
            if (access->buf == buf && access->mode == ACCESS_READ && bytes < access_bytes(access)) {
                access->most = bytes;
            }
        }
    }
}

static void set_accesses(WorkBuild *b, const Walk *w) {
    Step *step = b->step;
    Program *p = b->l->p;
    for (int i = 0; i < b->touch.count; i++) {
        const Touch *t = &b->touch.at[i];
        int n = 0;
        while (n < ACCESS_SLICES && t->slice[n]) {
            n++;
        }
        /* What it writes it reads back only: values never change, so nothing is read and replaced.
         */
        bool back = t->mode == ACCESS_READ && (t->arg->mode & ACCESS_WRITE) != 0;
        if (w->arg_used[t->arg->id] && !t->arg->work && !back) {
            step_access_slice(p, step, kernel_buf(b->w.k, t->arg), t->mode, t->slice, n);
        }
    }
    for (int i = 0; i < b->w.k->arg.count; i++) {
        const Arg *arg = b->w.k->arg.at[i];
        if (w->arg_used[arg->id] && !arg->strip && arg->work) {
            step_access(p, step, kernel_buf(b->w.k, arg), ACCESS_READ | ACCESS_WRITE);
        }
    }
    set_loaded(b, w);
    for (int i = 0; i < step->access.count; i++) {
        const Access *access = &step->access.at[i];
        step->bytes_moved =
            count_add(step->bytes_moved, access->buf->kind != BUF_WORK, access_needs(access));
    }
    step->bytes_moved = count_add(step->bytes_moved, 2, b->copied);
    if (w->sum) {
        add_pair(b, w->sum->add, w->sum->c);
    }
    for (int i = 0; i < b->w.k->arg.count; i++) {
        for (int j = 0; j < b->w.k->arg.count; j++) {
            const Arg *in = b->w.k->arg.at[i], *out = b->w.k->arg.at[j];
            if (i != j && !in->strip && !out->strip && arg_rank(in) == 2 && arg_rank(out) == 0 &&
                may_share(w, in, out)) {
                add_pair(b, in, out);
            }
        }
    }
}

/* A workspace with a row for each thread was made before the loops around it were known. */
static void trim_rows(WorkBuild *b, const Walk *w) {
    for (int i = 0; i < b->w.k->arg.count; i++) {
        const Arg *arg = b->w.k->arg.at[i];
        const int64_t team = w->arg_team[arg->id] > 1 ? w->arg_team[arg->id] : 1;
        Buf *buf = kernel_buf(b->w.k, arg);
        if (arg->thread && team < buf->per_thread) {
            buf->bytes = buf->bytes / buf->per_thread * team;
            Type type = *buf->type;
            type.dim[0] = team;
            buf_set_type(b->l->p, buf, type);
            buf->per_thread = 0; /* further threads have nothing to do here */
        }
    }
}

/* Drops the arguments that nothing uses and numbers the others as they are passed, those behind
 * them that are no parameters. */
static void order_args(Kernel *k, const Walk *w) {
    VEC(Arg *) all = {0};
    VEC(Buf *) buf = {0};
    int *id = ARENA_ARRAY(k->arena, int, k->nargs + 1), count = 0; /* new, by old */
    for (int rank = 0; rank <= RANKS; rank++) {
        for (int i = 0; i < k->arg.count; i++) {
            Arg *arg = k->arg.at[i];
            if ((w->arg_used[arg->id] && !arg->strip ? arg_rank(arg) : RANKS) == rank) {
                id[arg->id] = all.count;
                VEC_PUSH_FROM(k->arena, &all, arg, k->arg.count);
                VEC_PUSH_FROM(k->arena, &buf, kernel_buf(k, arg), k->arg.count);
                count += rank < RANKS;
            }
        }
    }
    for (int i = 0; i < all.count; i++) {
        all.at[i]->id = i;
    }
    for (int i = 0; i < k->pair.count; i++) {
        ArgPair *pair = &k->pair.at[i];
        *pair = (ArgPair){id[pair->in], id[pair->out]};
    }
    int offsets = 0;
    for (int i = 0; i < k->call.offset.count; i++) {
        Offset o = k->call.offset.at[i];
        o.arg = id[o.arg];
        k->call.offset.at[offsets] = o;
        offsets += o.arg < count;
    }
    k->call.offset.count = offsets;
    k->arg.at = all.at;
    k->arg.count = count;
    k->arg.capacity = all.capacity;
    k->call.buf.at = buf.at;
    k->call.buf.count = buf.count;
    k->call.buf.capacity = buf.capacity;
}

/* The most threads that ever run a part of these statements. */
static int64_t most_team(const Kernel *k, const StmtList *list) {
    int64_t most = 1;
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        int64_t team = s->kind == STMT_ORDER                    ? ordering_team(k, s->order)
                       : s->kind == STMT_FOR && s->parallel > 0 ? stmt_team(k, s)
                                                                : most_team(k, &s->body);
        most = team > most ? team : most;
    }
    return most;
}

/* A product by a tile says by itself how many threads it may have. */
static int64_t kernel_team(const Kernel *k) {
    const Tile *tile = kernel_tile(k);
    int64_t team = most_team(k, &k->body);
    return tile && tile->team ? k->threads : team;
}

/* What products compute outside of their operands is no part of what is needed. */
static void count_products(WorkBuild *b) {
    Step *step = b->step;
    step->products = step->borders = 0;
    for (int i = 0; i < b->unit->atom.count; i++) {
        const Node *node = b->unit->atom.at[i];
        if (node->op == OP_CONTRACT && elem_is_float(node->type->elem)) {
            const Band band = product_band(node, b->l->readers);
            const Tile *tile = kernel_tile(b->w.k);
            int64_t extent[3 * MD_RANK];
            contract_labels(node, extent);
            int64_t done = product_flops_all(node);
            Band border[BORDERS_MOST] = {{0}};
            if (tile && tile->banded > 1) {
                product_borders(node, border);
                done = band_part(&border[tile->banded - 2], extent, done);
            } else if (tile && tile->banded == 1) {
                done = band_part(&band, extent, done);
            }
            int64_t needed = band_part(&band, extent, product_flops_needed(node));
            step->products = count_add(step->products, 1, needed);
            step->borders = count_add(step->borders, 1, done > needed ? done - needed : 0);
            step->wide = step->wide || node->type->elem == TY_F64;
        }
    }
    step->borders = step->borders < step->flops ? step->borders : step->flops;
}

void kernel_finish(WorkBuild *b) {
    Kernel *k = b->w.k;
    Walk w = {.b = b, .times = 1, .team = 1};
    w.bound = ARENA_ARRAY(b->w.scratch, bool, k->expr.count + 1);
    w.arg_used = ARENA_ARRAY(b->w.scratch, bool, k->nargs + 1);
    w.arg_team = ARENA_ARRAY(b->w.scratch, int64_t, k->nargs + 1);
    w.loaded = ARENA_ARRAY(b->w.scratch, int64_t, k->nargs + 1);
    w.swept = ARENA_ARRAY(b->w.scratch, bool, k->nargs + 1);
    for (int i = 0; i < k->loop.count; i++) {
        k->loop.at[i].used = false;
    }
    for (int i = 0; i < k->site.count; i++) {
        k->site.at[i] = false;
    }
    walk_list(&w, &k->body);
    b->step->flops = w.flops;
    b->step->dear = w.dear;
    count_products(b);
    b->step->team = (int)kernel_team(k);
    trim_rows(b, &w);
    set_accesses(b, &w);
    order_args(k, &w);
}
