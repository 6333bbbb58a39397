/* eval_call: folds, contractions, gathers and random draws of the evaluator; see eval.h. */
#include "compiler/eval_rule.h"
#include "runtime/rng.h"

#include <math.h>
#include <string.h>

/* --- folds ------------------------------------------------------------------------------------ */

/* For each element of the operand, in order, the element of the result that it goes to. */
static void fold_each(EvalCall *c, void (*each)(EvalCall *c, Num *to, Num x)) {
    Type from = c->in[0].type;
    int64_t kept[MD_RANK], stride[MD_RANK], index[MD_RANK] = {0};
    value_strides(c->type, kept);
    for (int i = 0, k = 0; i < from.rank; i++) {
        stride[i] = c->attr->axes >> i & 1 ? 0 : kept[k++];
    }
    const Num *in = c->in[0].at;
    if (type_count(from) == 0) {
        return;
    }
    do {
        Num *to = c->result.at;
        for (int i = 0; i < from.rank; i++) {
            to += index[i] * stride[i];
        }
        each(c, to, *in++);
    } while (value_step(index, from.dim, from.rank));
}

static void fill(EvalCall *c, double f, int64_t i) {
    Num *out = eval_out(c);
    int64_t n = type_count(c->type);
    for (int64_t k = 0; k < n; k++) {
        if (elem_is_float(c->type.elem)) {
            out[k].f = f;
        } else {
            out[k].i = i;
        }
    }
}

static void each_sum(EvalCall *c, Num *to, Num x) {
    if (elem_is_float(c->type.elem)) {
        to->f += x.f;
    } else {
        to->i = num_wrap(c->type.elem, (int64_t)((uint64_t)to->i + (uint64_t)x.i));
    }
}

static void each_prod(EvalCall *c, Num *to, Num x) {
    if (elem_is_float(c->type.elem)) {
        to->f *= x.f;
    } else {
        to->i = num_wrap(c->type.elem, (int64_t)((uint64_t)to->i * (uint64_t)x.i));
    }
}

static void each_max(EvalCall *c, Num *to, Num x) {
    if (elem_is_float(c->type.elem)) {
        to->f = isnan(x.f) || x.f > to->f ? x.f : to->f;
    } else {
        to->i = x.i > to->i ? x.i : to->i;
    }
}

static void each_min(EvalCall *c, Num *to, Num x) {
    if (elem_is_float(c->type.elem)) {
        to->f = isnan(x.f) || x.f < to->f ? x.f : to->f;
    } else {
        to->i = x.i < to->i ? x.i : to->i;
    }
}

void eval_sum(EvalCall *c) {
    fill(c, 0, 0);
    fold_each(c, each_sum);
}

void eval_prod(EvalCall *c) {
    fill(c, 1, 1);
    fold_each(c, each_prod);
}

void eval_fmax(EvalCall *c) {
    fill(c, -INFINITY, INT64_MIN);
    fold_each(c, each_max);
}

void eval_fmin(EvalCall *c) {
    fill(c, INFINITY, INT64_MAX);
    fold_each(c, each_min);
}

/* An axis of a row-major value: element i of line (o, j) is at (o * n + i) * inner + j. */
typedef struct {
    int64_t outer, n, inner;
} Lines;

static Lines lines_along(Type type, int axis) {
    Lines l = {1, type.dim[axis], 1};
    for (int i = 0; i < type.rank; i++) {
        if (i < axis) {
            l.outer *= type.dim[i];
        } else if (i > axis) {
            l.inner *= type.dim[i];
        }
    }
    return l;
}

static void arg_fold(EvalCall *c, bool largest) {
    Num *out = eval_out(c);
    bool is_float = elem_is_float(c->in[0].type.elem);
    Lines l = lines_along(c->in[0].type, c->attr->axis);
    for (int64_t o = 0; o < l.outer; o++) {
        for (int64_t j = 0; j < l.inner; j++) {
            const Num *x = c->in[0].at + o * l.n * l.inner + j;
            int64_t best = 0;
            bool number = !is_float || !isnan(x[0].f); /* a NaN is the extreme, and equals none */
            for (int64_t i = 1; i < l.n && number; i++) {
                Num a = x[i * l.inner], b = x[best * l.inner];
                number = !is_float || !isnan(a.f);
                bool above = is_float ? a.f > b.f : a.i > b.i,
                     below = is_float ? a.f < b.f : a.i < b.i;
                if (largest ? above : below) {
                    best = i;
                }
            }
            out[o * l.inner + j].i = number ? best : 0;
        }
    }
}

void eval_argmax(EvalCall *c) {
    arg_fold(c, true);
}
void eval_argmin(EvalCall *c) {
    arg_fold(c, false);
}

void eval_cumsum(EvalCall *c) {
    Num *out = eval_out(c);
    Lines l = lines_along(c->type, c->attr->axis);
    for (int64_t o = 0; o < l.outer; o++) {
        for (int64_t j = 0; j < l.inner; j++) {
            Num total = {.i = 0}; /* also 0.0 */
            for (int64_t i = 0; i < l.n; i++) {
                int64_t at = (o * l.n + (c->attr->reverse ? l.n - 1 - i : i)) * l.inner + j;
                Num before = total;
                each_sum(c, &total, c->in[0].at[at]);
                out[at] = c->attr->exclusive ? before : total;
            }
        }
    }
}

/* --- contractions ----------------------------------------------------------------------------- */

void eval_contract(EvalCall *c) {
    Num *out = eval_out(c);
    const Attr *a = c->attr;
    int64_t sa[3 * MD_RANK] = {0}, sb[3 * MD_RANK] = {0}, extent[3 * MD_RANK] = {0};
    int64_t ta[MD_RANK], tb[MD_RANK];
    Type x = c->in[0].type, y = c->in[1].type;
    value_strides(x, ta);
    value_strides(y, tb);
    for (int i = 0; i < x.rank; i++) {
        sa[a->la[i]] = ta[i];
        extent[a->la[i]] = x.dim[i];
    }
    for (int i = 0; i < y.rank; i++) {
        sb[a->lb[i]] = tb[i];
        extent[a->lb[i]] = y.dim[i];
    }
    int summed[MD_RANK], nsummed = 0;
    for (int i = 0; i < x.rank; i++) {
        bool kept = false;
        for (int k = 0; k < c->type.rank; k++) {
            kept = kept || a->lo_[k] == a->la[i];
        }
        if (!kept) {
            summed[nsummed++] = a->la[i];
        }
    }
    int64_t index[MD_RANK] = {0}, dim[MD_RANK];
    int64_t inner = 1, ia = 0, ib = 0; /* the innermost summed axis, its strides */
    if (nsummed > 0) {
        int label = summed[--nsummed];
        inner = extent[label];
        ia = sa[label];
        ib = sb[label];
    }
    for (int k = 0; k < nsummed; k++) {
        dim[k] = extent[summed[k]];
    }
    if (type_count(x) == 0 || type_count(y) == 0) {
        fill(c, 0, 0);
        return;
    }
    do {
        const Num *p = c->in[0].at, *q = c->in[1].at;
        for (int k = 0; k < c->type.rank; k++) {
            p += index[k] * sa[a->lo_[k]];
            q += index[k] * sb[a->lo_[k]];
        }
        int64_t at[MD_RANK] = {0};
        double total = 0;
        do {
            const Num *u = p, *v = q;
            for (int k = 0; k < nsummed; k++) {
                u += at[k] * sa[summed[k]];
                v += at[k] * sb[summed[k]];
            }
            for (int64_t i = 0; i < inner; i++) {
                total += u[i * ia].f * v[i * ib].f;
            }
        } while (value_step(at, dim, nsummed));
        (out++)->f = total;
    } while (value_step(index, c->type.dim, c->type.rank));
}

/* --- orders ----------------------------------------------------------------------------------- */

/* Does element a stay in front of b, which stands behind it? */
static bool stays(const EvalCall *c, const Num *x, int64_t a, int64_t b) {
    bool down = c->attr->reverse;
    if (!elem_is_float(c->in[0].type.elem)) {
        return down ? x[a].i >= x[b].i : x[a].i <= x[b].i;
    }
    if (isnan(x[a].f) || isnan(x[b].f)) {
        return isnan(x[b].f);
    }
    return down ? x[a].f >= x[b].f : x[a].f <= x[b].f;
}

/* Runs of 1, 2, 4, ... places are merged, the first one's in front where elements are equal. */
static void order_line(const EvalCall *c, const Num *x, int64_t n, int64_t *at, int64_t *next) {
    for (int64_t i = 0; i < n; i++) {
        at[i] = i;
    }
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * run) {
            int64_t half = begin + run < n ? begin + run : n;
            int64_t end = half + run < n ? half + run : n, i = begin, j = half;
            for (int64_t k = begin; k < end; k++) {
                bool first = j == end || (i < half && stays(c, x, at[i], at[j]));
                next[k] = first ? at[i++] : at[j++];
            }
        }
        memcpy(at, next, sizeof *at * (size_t)n);
    }
}

void eval_order(EvalCall *c) {
    Num *out = eval_out(c);
    int64_t n = c->in[0].type.dim[c->type.rank - 1], most = c->type.dim[c->type.rank - 1];
    int64_t lines = most > 0 ? type_count(c->type) / most : 0;
    Arena scratch = {0};
    int64_t *at = ARENA_ARRAY(&scratch, int64_t, n + 1),
            *next = ARENA_ARRAY(&scratch, int64_t, n + 1);
    for (int64_t l = 0; l < lines; l++) {
        order_line(c, c->in[0].at + l * n, n, at, next);
        for (int64_t k = 0; k < most; k++) {
            (out++)->i = at[k];
        }
    }
    arena_free(&scratch);
}

/* --- gather and scatter ----------------------------------------------------------------------- */

/* The axes [batch, index, rest] of a GATHER's result or a SCATTER_ADD's first operand, multiplied
 * out; n: the extent that the index runs over. */
typedef struct {
    int64_t batch, index, rest, n;
} Picks;

static Picks picks_of(Type whole, Type index, int nbatch) {
    Picks p = {1, 1, 1, whole.dim[nbatch]};
    for (int i = 0; i < index.rank; i++) {
        if (i < nbatch) {
            p.batch *= index.dim[i];
        } else {
            p.index *= index.dim[i];
        }
    }
    for (int i = nbatch + 1; i < whole.rank; i++) {
        p.rest *= whole.dim[i];
    }
    return p;
}

/* An index outside gives zeros, and adds nowhere: programs check indices where data enters, the
 * evaluator only must not read outside. */
void eval_gather(EvalCall *c) {
    Num *out = eval_out(c);
    Picks p = picks_of(c->in[0].type, c->in[1].type, c->attr->batch);
    const Num *index = c->in[1].at;
    for (int64_t b = 0; b < p.batch; b++) {
        for (int64_t i = 0; i < p.index; i++, index++, out += p.rest) {
            if (index->i >= 0 && index->i < p.n) {
                memcpy(out, c->in[0].at + (b * p.n + index->i) * p.rest,
                       sizeof *out * (size_t)p.rest);
            } else {
                memset(out, 0, sizeof *out * (size_t)p.rest);
            }
        }
    }
}

void eval_scatter_add(EvalCall *c) {
    fill(c, 0, 0);
    Picks p = picks_of(c->type, c->in[1].type, c->attr->batch);
    const Num *index = c->in[1].at, *in = c->in[0].at;
    for (int64_t b = 0; b < p.batch; b++) {
        for (int64_t i = 0; i < p.index; i++, index++, in += p.rest) {
            Num *to = c->result.at + (b * p.n + index->i) * p.rest;
            for (int64_t j = 0; index->i >= 0 && index->i < p.n && j < p.rest; j++) {
                each_sum(c, &to[j], in[j]);
            }
        }
    }
}

/* --- random draws ----------------------------------------------------------------------------- */

void eval_random(EvalCall *c) {
    Num *out = eval_out(c);
    int64_t n = type_count(c->type);
    bool wide = c->type.elem == TY_F64;
    md_key key = md_key_make((uint64_t)c->in[0].at->i, c->attr->site, (uint64_t)c->in[1].at->i);
    for (int k = 2; k < c->nin; k++) {
        key = md_key_fold(key, (uint64_t)c->in[k].at->i);
    }
    for (int64_t i = 0; i < n; i++) {
        uint64_t at = (uint64_t)i;
        switch (c->attr->dist) {
        case DIST_BITS: out[i].i = num_wrap(c->type.elem, (int64_t)md_rand_bits(key, at)); break;
        case DIST_UNIFORM:
            out[i].f = wide ? md_rand_uniform_f64(key, at) : (double)md_rand_uniform_f32(key, at);
            break;
        case DIST_NORMAL:
            out[i].f = wide ? md_rand_normal_f64(key, at) : (double)md_rand_normal_f32(key, at);
            break;
        }
    }
}
