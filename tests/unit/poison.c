/* poison: see the header. */
#include "poison.h"

#include "kernel_walk.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH = 16, OPERANDS = 96, PARAMS = 0, STATE, IO, TEMP, REGIONS };

typedef VEC(int64_t) Counts;
typedef VEC(uint64_t) Digests;

typedef struct {
    const Step *step;
    VEC(Access) access;           /* as meant */
    int64_t stride[OPERANDS];     /* of axis 0, -1: as meant */
    bool *part[OPERANDS];         /* elements that a partial write touches */
    bool may[OPERANDS][OPERANDS]; /* [in][out] */
    VEC(uint64_t) seen;           /* one an operand and turn, of the run with storages of its own */
    int64_t turn;
} Meant;

typedef VEC(Step *) Order;

/* A Buf that a loop reads itself: its last index, or whether it goes on. */
typedef struct {
    const Step *loop;
    const Buf *buf;
    Digests seen;  /* each time that it was read, of the run with storages of its own */
    int64_t nread; /* how often in the planned run */
} Bound;

struct Poison {
    Arena *arena;
    const Program *p;
    const ProgramEntry *e;
    Buf *buf; /* by id, as meant */
    Meant *meant;
    const Step **of; /* whose they are */
    int nmeant;
    VEC(const StepList *) list;
    VEC(Order) order; /* as meant, of each list */
    bool *lasting;    /* by id: reads of its value cannot be counted */
    Digests *ends;    /* by id: its value at the end of each turn of its list */
    VEC(Bound) bound; /* what loops read themselves */
    Counts *reads;    /* by id: how often each of its values is read */
};

typedef struct {
    unsigned char *at;
    int64_t n;
    int64_t from; /* of the Buf, as meant */
} Block;

typedef struct {
    Block block;
    const Buf *buf;
} Stack;
typedef VEC(Stack) Stacks;

typedef struct {
    Poison *x;
    uint64_t seed;
    bool planned;
    unsigned char *region[REGIONS];
    int64_t bytes[REGIONS];
    unsigned char **own;     /* by id: the storage where there is no region */
    unsigned char **initial; /* by id: of slots */
    const Step *loop[DEPTH];
    int64_t index[DEPTH];
    int depth;
    Stacks stacks[DEPTH];
    int64_t *nend;
    int64_t *nread, *nvalue; /* by id: reads of the current value, values before it */
    Arena *arena;
    bool **written; /* by id: elements of a Buf in parts */
    bool *ranged;   /* by id: an input whose range was looked at */
    const char *harm;
} Run;

/* ---- noise ---------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t z = (a ^ b * 0x9e3779b97f4a7c15u) + 0x632be59bd9b4e019u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void noise(unsigned char *at, int64_t n, uint64_t key) {
    uint64_t state = mix(key, 1) | 1;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(at + i, &state, 8);
    }
    state = mix(state, 2);
    memcpy(at + i, &state, (size_t)(n - i));
}

static uint64_t digest(const unsigned char *at, int64_t n) {
    uint64_t hash = (uint64_t)n, word;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        memcpy(&word, at + i, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    word = 0;
    memcpy(&word, at + i, (size_t)(n - i));
    return mix(hash, word);
}

/* ---- what is meant -------------------------------------------------------------------------- */

static Meant *meant_of(const Poison *x, const Step *step) {
    for (int i = 0; i < x->nmeant; i++) {
        if (x->of[i] == step) {
            return &x->meant[i];
        }
    }
    BUG("a step that was not there");
}

typedef struct {
    const Buf *buf;
    bool *part;
} PartWalk;

static void part_touch(void *ctx, const Buf *buf, int64_t place, bool store) {
    PartWalk *w = ctx;
    if (store && buf == w->buf && place >= 0) {
        w->part[place] = true;
    }
}

static void note_step(Poison *x, Step *step) {
    Meant *m = &x->meant[x->nmeant];
    x->of[x->nmeant++] = m->step = step;
    for (int i = 0; i < step->access.count; i++) {
        const Access *a = &step->access.at[i];
        if (i == OPERANDS) {
            BUG("a step of more than %d operands", OPERANDS);
        }
        m->stride[i] = -1;
        VEC_PUSH(x->arena, &m->access, *a);
        bool part = (a->mode & ACCESS_PART) != 0, sliced = a->slice[0] != NULL;
        x->lasting[a->buf->id] |= part || sliced;
        if (step->kind == STEP_KERNEL && part && !sliced) {
            PartWalk w = {a->buf, ARENA_ARRAY(x->arena, bool, type_count(*a->buf->type) + 1)};
            kernel_walk(step->kernel, &step->call, false, part_touch, &w);
            m->part[i] = w.part;
        }
    }
    for (int i = 0; step->kind == STEP_KERNEL && i < step->access.count; i++) {
        for (int k = 0; k < step->access.count; k++) {
            const Buf *in = step->access.at[i].buf, *out = step->access.at[k].buf;
            m->may[i][k] = step->access.at[i].mode == ACCESS_READ &&
                           (step->access.at[k].mode & ACCESS_WRITE) && out->kind != BUF_WORK &&
                           in->kind != BUF_WORK && in->type->elem == out->type->elem &&
                           type_count(*in->type) == type_count(*out->type) &&
                           !kernel_clobbers(step->kernel, &step->call, in, out);
        }
    }
}

static int count_steps(const StepList *list) {
    int n = list->count;
    for (int i = 0; i < list->count; i++) {
        n += count_steps(&list->at[i]->body);
    }
    return n;
}

static void note_list(Poison *x, const StepList *list) {
    Order order = {0};
    for (int i = 0; i < list->count; i++) {
        VEC_PUSH(x->arena, &order, list->at[i]);
    }
    VEC_PUSH(x->arena, &x->list, list);
    VEC_PUSH(x->arena, &x->order, order);
    for (int i = 0; i < list->count; i++) {
        if (list->at[i]->kind == STEP_LOOP) {
            for (int k = 0; k < list->at[i]->own.count; k++) { /* loops count no reads */
                x->lasting[list->at[i]->own.at[k].buf->id] = true;
            }
            note_list(x, &list->at[i]->body);
        } else {
            note_step(x, list->at[i]);
        }
    }
}

Poison *poison_open(Arena *arena, const Program *p, const ProgramEntry *e) {
    Poison *x = ARENA_NEW(arena, Poison);
    *x = (Poison){.arena = arena, .p = p, .e = e};
    x->buf = ARENA_ARRAY(arena, Buf, p->nbuf + 1);
    x->lasting = ARENA_ARRAY(arena, bool, p->nbuf + 1);
    x->ends = ARENA_ARRAY(arena, Digests, p->nbuf + 1);
    x->reads = ARENA_ARRAY(arena, Counts, p->nbuf + 1);
    int nstep = count_steps(&e->step);
    x->meant = ARENA_ARRAY(arena, Meant, nstep + 1);
    x->of = ARENA_ARRAY(arena, const Step *, nstep + 1);
    for (int i = 0; i < p->slot.count + p->table.count + e->buf.count; i++) {
        const Buf *buf = i < p->slot.count ? p->slot.at[i]
                         : i < p->slot.count + p->table.count
                             ? p->table.at[i - p->slot.count]
                             : e->buf.at[i - p->slot.count - p->table.count];
        x->buf[buf->id] = *buf;
    }
    for (int i = 0; i < e->buf.count; i++) {
        x->lasting[e->buf.at[i]->id] |=
            e->buf.at[i]->final != NULL || e->buf.at[i]->kind != BUF_TEMP;
        if (e->buf.at[i]->final != NULL) {
            x->lasting[e->buf.at[i]->final->id] = true;
        }
    }
    note_list(x, &e->step);
    return x;
}

void poison_stride(Poison *x, const Step *step, const Buf *buf, int64_t stride) {
    Meant *m = meant_of(x, step);
    for (int i = 0; i < m->access.count; i++) {
        if (m->access.at[i].buf == buf) {
            m->stride[i] = stride;
        }
    }
}

bool poison_may_share(const Poison *x, const Step *step, const Buf *in, const Buf *out) {
    const Meant *m = meant_of(x, step);
    for (int i = 0; i < m->access.count; i++) {
        for (int k = 0; k < m->access.count; k++) {
            if (m->access.at[i].buf == in && m->access.at[k].buf == out) {
                return m->may[i][k];
            }
        }
    }
    return false;
}

/* ---- places --------------------------------------------------------------------------------- */

static bool harm(Run *r, const char *fmt, ...) MDLC_PRINTF(2, 3);
static bool harm(Run *r, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    r->harm = str_vprintf(r->x->arena, fmt, ap);
    va_end(ap);
    return false;
}

static int region_of(const Buf *buf) {
    switch (buf_root(buf)->kind) {
    case BUF_PARAM: return PARAMS;
    case BUF_STATE: return STATE;
    case BUF_INPUT: return buf->offset >= 0 ? IO : -1;
    case BUF_RESULT: return IO;
    case BUF_CONST: return -1;
    case BUF_TEMP:
    case BUF_WORK: break;
    }
    return TEMP;
}

/* The first byte of a Buf; NULL: `n` bytes from `from` on leave its region. */
static unsigned char *place(const Run *r, const Buf *buf, int64_t from, int64_t n) {
    int region = r->planned ? region_of(buf) : -1;
    if (region < 0) {
        return r->own[buf->id] + from;
    }
    int64_t at = buf_root(buf)->offset + from;
    return at >= 0 && at + n <= r->bytes[region] ? r->region[region] + at : NULL;
}

static bool block_of(Run *r, const Meant *m, int k, Block *block) {
    const Access *a = &m->access.at[k];
    const Buf *meant = &r->x->buf[a->buf->id];
    int64_t from = 0, elem = (int64_t)elem_bytes(meant->type->elem);
    block->n = meant->bytes;
    block->from = 0;
    for (int level = 0; level < ACCESS_SLICES && a->slice[level] != NULL; level++) {
        int64_t pitch = meant->stride[level] * elem;
        int64_t stride =
            level == 0 && r->planned && m->stride[k] >= 0 ? m->stride[k] * elem : pitch;
        for (int i = 0; i < r->depth; i++) {
            from += r->loop[i] == a->slice[level] ? r->index[i] * stride : 0;
            block->from += r->loop[i] == a->slice[level] ? r->index[i] * pitch : 0;
        }
        block->n = pitch;
    }
    block->at = place(r, a->buf, from, block->n);
    return block->at != NULL ||
           harm(r, "step %d reaches %s outside of its region", m->step->id, a->buf->name);
}

static bool meet(Block a, Block b) {
    return a.n > 0 && b.n > 0 && a.at < b.at + b.n && b.at < a.at + a.n;
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* Parameters of a kernel are restrict but for those of the pairs that it names. */
static bool is_paired(const Step *step, const Buf *in, const Buf *out) {
    const Kernel *k = step->kernel;
    for (int i = 0; i < k->pair.count; i++) {
        if (step->call.buf.at[k->pair.at[i].in] == in &&
            step->call.buf.at[k->pair.at[i].out] == out) {
            return true;
        }
    }
    return false;
}

/* The operand of `buf` that is written is laid over operands that allow it, or over none. */
static bool takes_over(const Meant *m, const Block *block, int out) {
    bool over = false;
    for (int k = 0; k < m->access.count; k++) {
        if (k == out || !meet(block[k], block[out])) {
            continue;
        }
        bool same = block[k].at == block[out].at && block[k].n == block[out].n;
        if (!same || !m->may[k][out] ||
            !is_paired(m->step, m->access.at[k].buf, m->access.at[out].buf)) {
            return false;
        }
        over = true;
    }
    return over;
}

static void fill(const Meant *m, int k, Block block, uint64_t key) {
    if (m->part[k] == NULL) {
        noise(block.at, block.n, key);
        return;
    }
    int64_t elem = (int64_t)elem_bytes(m->access.at[k].buf->type->elem);
    for (int64_t i = 0; i < block.n / elem; i++) {
        if (m->part[k][i]) {
            noise(block.at + i * elem, elem, mix(key, (uint64_t)i));
        }
    }
}

/* A value in parts. By rule the storage is its own from the first part on, the places of parts to
 * come included: all of it must be as it was left when the next part comes. The planned run keeps
 * what that was in the storage of its own. `over`: the first part is laid over an operand, which
 * the step still reads. */
static bool open_part(Run *r, const Meant *m, int k, Block block, bool over, uint64_t key) {
    const Buf *buf = m->access.at[k].buf;
    size_t count = (size_t)block.n / elem_bytes(buf->type->elem);
    bool fresh = r->written[buf->id] == NULL;
    if (fresh) {
        r->written[buf->id] = ARENA_ARRAY(r->arena, bool, (int64_t)count + 1);
    }
    bool *written = r->written[buf->id];
    for (size_t i = 0; i < count; i++) {
        fresh = fresh || (m->part[k][i] && written[i]);
    }
    if (!fresh && memcmp(block.at, r->own[buf->id], (size_t)block.n) != 0) {
        return harm(r, "step %d (%s) writes a part of %s whose other parts are spoiled",
                    m->step->id, m->step->name, buf->name);
    }
    if (fresh) {
        memset(written, 0, count);
        if (!over) {
            noise(block.at, block.n, mix(key, 3));
        }
    }
    for (size_t i = 0; i < count; i++) {
        written[i] = written[i] || m->part[k][i];
    }
    return true;
}

/* The run with storages of its own notes what is read, the planned one compares. */
static bool read_operand(Run *r, Meant *m, int k, Block block) {
    const Buf *buf = m->access.at[k].buf;
    uint64_t *seen = &m->seen.at[m->turn * m->access.count + k];
    uint64_t hash = digest(block.at, block.n);
    r->nread[buf->id]++;
    if (!r->planned) {
        *seen = hash;
        return true;
    }
    return hash == *seen || harm(r, "step %d (%s) reads wrong bytes in %s", m->step->id,
                                 m->step->name != NULL ? m->step->name : "-", buf->name);
}

/* By rule an index that is given is held against its range before anything else reads it. */
static bool looked_at(Run *r, const Step *step, const Buf *buf) {
    bool ranged = buf->kind == BUF_INPUT && input_is_ranged(r->x->e->entry, buf->slot);
    r->ranged[buf->id] |= step->kind == STEP_RANGE;
    return !r->planned || !ranged || r->ranged[buf->id] ||
           harm(r, "step %d reads %s before its range is looked at", step->id, buf->name);
}

/* The value of a Buf ends: written again, or its list is done. */
static void value_ends(Run *r, const Buf *buf) {
    if (!r->planned) {
        VEC_PUSH(r->x->arena, &r->x->reads[buf->id], r->nread[buf->id]);
    }
    r->nvalue[buf->id]++;
    r->nread[buf->id] = 0;
}

static bool slots_untouched(Run *r) {
    for (int i = 0; i < r->x->p->slot.count; i++) {
        const Buf *slot = r->x->p->slot.at[i];
        if (memcmp(place(r, slot, 0, slot->bytes), r->initial[slot->id], (size_t)slot->bytes) !=
            0) {
            return harm(r, "%s changes before the check", slot->name);
        }
    }
    return true;
}

static bool is_dead(const Run *r, const Access *access) {
    const Buf *buf = access->buf;
    const Counts *reads = &r->x->reads[buf->id];
    int64_t value = r->nvalue[buf->id];
    return (access->mode & ACCESS_READ) && !r->x->lasting[buf->id] && value < reads->count &&
           r->nread[buf->id] == reads->at[value];
}

/* Noise where the values that were read for the last time lie, but for what this step has made. */
static void bury(Run *r, const Meant *m, const Block *block) {
    for (int k = 0; k < m->access.count; k++) {
        bool reused = !is_dead(r, &m->access.at[k]);
        for (int i = 0; i < m->access.count; i++) {
            reused = reused || ((m->access.at[i].mode & ACCESS_WRITE) && meet(block[i], block[k]));
        }
        if (!reused) {
            noise(block[k].at, block[k].n, mix(r->seed, 4));
        }
    }
}

/* By rule a stack shares bytes, while its loop runs, with nothing else that the loop touches but
 * for what has the same root. */
static bool stacks_alone(Run *r, const Meant *m, const Block *block) {
    for (int d = 0; d < r->depth; d++) {
        for (int i = 0; i < r->stacks[d].count; i++) {
            const Stack *stack = &r->stacks[d].at[i];
            for (int k = 0; k < m->access.count; k++) {
                const Buf *buf = m->access.at[k].buf;
                if (buf_root(buf) != buf_root(stack->buf) && meet(block[k], stack->block)) {
                    return harm(r, "step %d touches %s in the bytes of the stack %s", m->step->id,
                                buf->name, stack->buf->name);
                }
            }
        }
    }
    return true;
}

/* All that the step is free to write is noise before it reads. */
static bool spoil(Run *r, const Meant *m, const Block *block, uint64_t key) {
    for (int k = 0; k < m->access.count; k++) {
        const Access *a = &m->access.at[k];
        bool over = takes_over(m, block, k);
        if (r->planned && m->part[k] != NULL && !open_part(r, m, k, block[k], over, key)) {
            return false;
        }
        if (((a->mode & ACCESS_WRITE) || a->buf->kind == BUF_WORK) && !over) {
            fill(m, k, block[k], mix(key, 5));
        }
    }
    return true;
}

static bool copy_bytes(Run *r, const Step *step, const Block *block) {
    int src = step->access.at[0].buf == step->src ? 0 : 1;
    if (meet(block[0], block[1])) {
        return harm(r, "step %d copies a place to itself", step->id);
    }
    memcpy(block[1 - src].at, block[src].at, (size_t)block[src].n);
    memmove(r->own[step->dst->id], block[src].at, (size_t)block[src].n);
    return true;
}

static bool write_results(Run *r, const Meant *m, const Block *block, uint64_t key) {
    for (int k = 0; k < m->access.count; k++) {
        const Access *a = &m->access.at[k];
        bool write = (a->mode & ACCESS_WRITE) != 0;
        for (int i = 0; i < k && (write || a->buf->kind == BUF_WORK); i++) {
            if ((m->access.at[i].mode & ACCESS_WRITE) && meet(block[i], block[k])) {
                return harm(r, "step %d writes %s and %s to one place", m->step->id,
                            m->access.at[i].buf->name, a->buf->name);
            }
        }
        if (!write) {
            continue;
        }
        value_ends(r, a->buf);
        fill(m, k, block[k], mix(key, (uint64_t)k + 6));
        if (r->planned) {
            memcpy(r->own[a->buf->id] + block[k].from, block[k].at, (size_t)block[k].n);
        }
    }
    return true;
}

static bool run_step(Run *r, const Step *step) {
    Meant *m = meant_of(r->x, step);
    int number = (int)(m - r->x->meant), n = m->access.count;
    uint64_t key = mix(mix(r->seed, (uint64_t)number + 100), (uint64_t)m->turn);
    Block block[OPERANDS];
    for (int k = 0; k < n && !r->planned; k++) {
        VEC_PUSH(r->x->arena, &m->seen, 0);
    }
    for (int k = 0; k < n; k++) {
        if (!block_of(r, m, k, &block[k])) {
            return false;
        }
    }
    if (r->planned && !stacks_alone(r, m, block)) {
        return false;
    }
    if (step->kind == STEP_KERNEL && !spoil(r, m, block, key)) {
        return false;
    }
    for (int k = 0; k < n; k++) {
        bool reads = (m->access.at[k].mode & ACCESS_READ) && m->access.at[k].buf->kind != BUF_WORK;
        if (reads &&
            (!looked_at(r, step, m->access.at[k].buf) || !read_operand(r, m, k, block[k]))) {
            return false;
        }
    }
    if ((step->kind == STEP_COPY && !copy_bytes(r, step, block)) ||
        (step->kind == STEP_KERNEL && !write_results(r, m, block, key))) {
        return false;
    }
    if (r->planned) {
        bury(r, m, block);
    }
    m->turn++;
    return step->kind != STEP_CHECK || slots_untouched(r);
}

/* By rule values arrive where they are meant to go, whether or not somebody reads them. */
static bool end_list(Run *r, const Step *loop) {
    for (int i = 0; i < r->x->e->buf.count; i++) {
        const Buf *buf = r->x->e->buf.at[i], *meant = &r->x->buf[buf->id], *dest = meant->final;
        if (meant->loop != loop) {
            continue;
        }
        if (dest != NULL) {
            memcpy(r->own[dest->id], r->own[buf->id], (size_t)meant->bytes);
            const unsigned char *at = place(r, dest, 0, meant->bytes);
            if (at == NULL || memcmp(at, r->own[dest->id], (size_t)meant->bytes) != 0) {
                return harm(r, "%s does not arrive in %s", buf->name, dest->name);
            }
        }
        /* What others were moved to ends as the last of them. */
        if (r->x->lasting[buf->id] && meant->kind == BUF_TEMP) {
            uint64_t hash = digest(r->own[buf->id], meant->bytes);
            Digests *ends = &r->x->ends[buf->id];
            if (!r->planned) {
                VEC_PUSH(r->x->arena, ends, hash);
            } else if (hash != ends->at[r->nend[buf->id]]) {
                return harm(r, "%s ends with another value", buf->name);
            }
            r->nend[buf->id]++;
        }
        value_ends(r, buf);
    }
    return true;
}

/* What the loop touches of `buf` itself: in a loop around it may be the slice of a stack. */
static Block own_block(const Run *r, const Step *loop, const Buf *buf) {
    const Buf *meant = &r->x->buf[buf->id], *now = r->planned ? buf : meant;
    const int64_t elem = (int64_t)elem_bytes(meant->type->elem);
    Block block = {.n = meant->bytes};
    int64_t from = 0;
    for (int k = 0; k < loop->own.count; k++) {
        const Access *a = &loop->own.at[k];
        for (int level = 0; a->buf == buf && level < ACCESS_SLICES && a->slice[level]; level++) {
            for (int d = 0; d < r->depth; d++) {
                const int64_t index = r->loop[d] == a->slice[level] ? r->index[d] : 0;
                from += index * now->stride[level] * elem;
                block.from += index * meant->stride[level] * elem;
            }
            block.n = meant->stride[level] * elem;
        }
    }
    block.at = place(r, buf, from, block.n);
    return block;
}

static Bound *bound_of(Poison *x, const Step *loop, const Buf *buf) {
    for (int k = 0; k < x->bound.count; k++) {
        if (x->bound.at[k].loop == loop && x->bound.at[k].buf == buf) {
            return &x->bound.at[k];
        }
    }
    VEC_PUSH(x->arena, &x->bound, ((Bound){.loop = loop, .buf = buf}));
    return &x->bound.at[x->bound.count - 1];
}

/* A loop reads its last index as it begins, and before each turn whether it goes on. */
static bool read_bound(Run *r, const Step *loop, const Buf *buf) {
    if (buf == NULL) {
        return true;
    }
    Bound *bound = bound_of(r->x, loop, buf);
    const Block block = own_block(r, loop, buf);
    const uint64_t hash = block.at != NULL ? digest(block.at, block.n) : 0;
    if (!r->planned) {
        VEC_PUSH(r->x->arena, &bound->seen, hash);
        return true;
    }
    return hash == bound->seen.at[bound->nread++] ||
           harm(r, "loop %d ends by wrong bytes in %s", loop->id, buf->name);
}

/* As it ends it writes how far it went. */
static bool write_made(Run *r, const Step *loop) {
    const Buf *buf = loop->made;
    if (buf == NULL) {
        return true;
    }
    const Block block = own_block(r, loop, buf);
    if (block.at == NULL) {
        return harm(r, "loop %d reaches %s outside of its region", loop->id, buf->name);
    }
    value_ends(r, buf);
    noise(block.at, block.n, mix(mix(r->seed, (uint64_t)buf->id), (uint64_t)r->nvalue[buf->id]));
    if (r->planned) {
        memcpy(r->own[buf->id] + block.from, block.at, (size_t)block.n);
    }
    return true;
}

/* The stacks of which `loop` writes slices. */
static void collect_stacks(Run *r, const Step *loop, const StepList *list, Stacks *stacks) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        if (step->kind == STEP_LOOP) {
            collect_stacks(r, loop, &step->body, stacks);
            continue;
        }
        const Meant *m = meant_of(r->x, step);
        for (int k = 0; k < m->access.count; k++) {
            const Access *a = &m->access.at[k];
            const Buf *meant = &r->x->buf[a->buf->id];
            int64_t from = 0, n = meant->bytes;
            int level = 0;
            for (; level < ACCESS_SLICES && a->slice[level] != NULL && a->slice[level] != loop;
                 level++) {
                n = meant->stride[level] * (int64_t)elem_bytes(meant->type->elem);
                for (int d = 0; d < r->depth; d++) {
                    from += r->loop[d] == a->slice[level] ? r->index[d] * n : 0;
                }
            }
            bool found =
                (a->mode & ACCESS_WRITE) && level < ACCESS_SLICES && a->slice[level] == loop;
            Block block = {.at = found ? place(r, a->buf, from, n) : NULL, .n = n};
            if (block.at != NULL) {
                VEC_PUSH(r->arena, stacks, ((Stack){block, a->buf}));
            }
        }
    }
}

static bool run_list(Run *r, const StepList *list, const Step *loop) {
    Step *const *at = list->at;
    int count = list->count;
    for (int i = 0; i < r->x->list.count && !r->planned; i++) {
        bool meant = r->x->list.at[i] == list;
        at = meant ? r->x->order.at[i].at : at;
        count = meant ? r->x->order.at[i].count : count;
    }
    for (int i = 0; i < count; i++) {
        const Step *step = at[i];
        if (step->kind != STEP_LOOP) {
            if (!run_step(r, step)) {
                return false;
            }
            continue;
        }
        if (r->depth == DEPTH) {
            BUG("loops too deep");
        }
        if (!read_bound(r, step, step->last)) {
            return false;
        }
        int d = r->depth++;
        r->loop[d] = step;
        r->stacks[d].count = 0;
        if (r->planned) {
            collect_stacks(r, step, &step->body, &r->stacks[d]);
        }
        for (int64_t k = 0; k < step->trip; k++) {
            r->index[d] = step->reverse ? step->trip - 1 - k : k;
            if (!read_bound(r, step, step->go) || !run_list(r, &step->body, step)) {
                return false;
            }
        }
        r->depth--;
        if (!write_made(r, step)) {
            return false;
        }
    }
    return end_list(r, loop);
}

/* ---- entries -------------------------------------------------------------------------------- */

static Run open_run(Poison *x, Arena *arena, uint64_t seed, bool planned) {
    const Program *p = x->p;
    Run r = {.x = x, .seed = seed, .planned = planned, .arena = arena};
    r.written = ARENA_ARRAY(arena, bool *, p->nbuf + 1);
    r.ranged = ARENA_ARRAY(arena, bool, p->nbuf + 1);
    r.bytes[PARAMS] = p->params_bytes;
    r.bytes[STATE] = p->state_bytes;
    r.bytes[IO] = x->e->io_bytes;
    r.bytes[TEMP] = x->e->arena_bytes;
    for (int i = 0; i < REGIONS; i++) {
        r.region[i] = arena_alloc(arena, (size_t)r.bytes[i] + 1);
        noise(r.region[i], r.bytes[i], mix(seed, (uint64_t)i + 7));
    }
    r.own = ARENA_ARRAY(arena, unsigned char *, p->nbuf + 1);
    r.initial = ARENA_ARRAY(arena, unsigned char *, p->nbuf + 1);
    r.nend = ARENA_ARRAY(arena, int64_t, p->nbuf + 1);
    r.nread = ARENA_ARRAY(arena, int64_t, p->nbuf + 1);
    r.nvalue = ARENA_ARRAY(arena, int64_t, p->nbuf + 1);
    for (int id = 0; id < p->nbuf; id++) {
        const Buf *buf = &x->buf[id];
        if (buf->name == NULL) {
            continue; /* of another entry */
        }
        r.own[id] = arena_alloc(arena, (size_t)buf->bytes + 1);
        noise(r.own[id], buf->bytes, mix(seed, (uint64_t)id + 1000));
        r.initial[id] = arena_alloc(arena, (size_t)buf->bytes + 1);
        memcpy(r.initial[id], r.own[id], (size_t)buf->bytes);
    }
    for (int i = 0; planned && i < p->slot.count + x->e->buf.count; i++) {
        const Buf *buf = i < p->slot.count ? p->slot.at[i] : x->e->buf.at[i - p->slot.count];
        bool given = buf->kind == BUF_PARAM || buf->kind == BUF_STATE || buf->kind == BUF_INPUT;
        unsigned char *at = given ? place(&r, buf, 0, buf->bytes) : NULL;
        if (at != NULL) {
            memcpy(at, r.initial[buf->id], (size_t)buf->bytes);
        }
    }
    for (int id = 0; id < p->nbuf && !planned; id++) {
        x->reads[id].count = x->ends[id].count = 0;
    }
    for (int k = 0; k < x->bound.count; k++) {
        x->bound.at[k].seen.count = planned ? x->bound.at[k].seen.count : 0;
        x->bound.at[k].nread = 0;
    }
    for (int i = 0; i < x->nmeant; i++) {
        x->meant[i].turn = 0;
        x->meant[i].seen.count = planned ? x->meant[i].seen.count : 0;
    }
    return r;
}

const char *poison_run(Poison *x, uint64_t seed) {
    Arena arena = {0};
    Run own = open_run(x, &arena, seed, false);
    if (!run_list(&own, &x->e->step, NULL)) {
        BUG("the run with storages of its own: %s", own.harm);
    }
    Run r = open_run(x, &arena, seed, true);
    if (run_list(&r, &x->e->step, NULL)) {
        for (int id = 0; id < x->p->nbuf && r.harm == NULL; id++) {
            const Buf *buf = &x->buf[id];
            bool lasts = buf->name != NULL && (buf->kind == BUF_PARAM || buf->kind == BUF_STATE ||
                                               buf->kind == BUF_RESULT);
            const unsigned char *at = lasts ? place(&r, buf, 0, buf->bytes) : NULL;
            if (lasts && (at == NULL || memcmp(at, own.own[id], (size_t)buf->bytes) != 0)) {
                harm(&r, "%s is wrong at the end", buf->name);
            }
        }
    }
    arena_free(&arena);
    return r.harm;
}
