/* einsum: products of whole tensors as NumPy spells them, einsum("bij,bjk->bik", a, b) and matmul.
 *
 * Each letter is an index; what follows is the sum of a product over those that the result has not,
 * as in index notation. '...' are the axes in front, which meet from the right; an extent 1 there
 * repeats. A letter twice for one tensor is its diagonal. Needs elaborated arguments, gives a
 * value, or poison after an error. */
#include "lang/einsum.h"

#include "lang/access_axis.h"
#include "lang/arith.h"
#include "lang/dims.h"
#include "lang/evaluation.h"
#include "lang/fold.h"
#include "lang/notation.h"

#include <ctype.h>
#include <string.h>

enum {
    LETTERS = 128,
    CODES = LETTERS + MD_RANK
}; /* code LETTERS + k: k-th axis of '...' from right */

typedef struct {
    int code[MD_RANK + 1], n; /* '...' may stand for no axis */
    bool ellipsis;
} Letters;

typedef struct {
    Elab *e;
    Loc loc;
    const Several *s;
    int first;       /* the operands begin at this argument */
    int used[CODES]; /* in so many places of operands */
    Index *index[CODES];
    struct {
        int operand, axis;
    } from[CODES];       /* whose extent the index has */
    int nindex, leading; /* most axes that '...' stands for */
} Einsum;

static bool malformed(const Einsum *m, const char *what) {
    elab_error(m->e, m->loc, 668, "the formula of 'einsum' %s", what);
    diag_hint(&m->e->c->diag, "einsum(\"bij,bjk->bik\", a, b): a letter for each axis of a tensor, "
                              "then those of the result");
    return false;
}

static bool too_many(const Einsum *m) {
    return malformed(m, "names more axes than a tensor may have");
}

/* Reads letters and '...' up to a comma, an arrow or the end. */
static bool read_term(const Einsum *m, const char **text, Letters *out) {
    const char *s = *text;
    *out = (Letters){.n = 0};
    for (; *s != 0 && *s != ',' && strncmp(s, "->", 2) != 0; s++) {
        if (*s == ' ') {
            continue;
        }
        bool dots = strncmp(s, "...", 3) == 0;
        if (!dots && !isalpha((unsigned char)*s)) {
            int more = 1; /* a whole character of UTF-8 */
            while (((unsigned char)s[more] & 0xc0) == 0x80) {
                more++;
            }
            return malformed(m, str_printf(m->e->arena, "has a '%.*s'", more, s));
        }
        if (dots && out->ellipsis) {
            return malformed(m, "has '...' twice for one tensor");
        }
        if (out->n == MD_RANK + 1) {
            return too_many(m);
        }
        out->code[out->n++] = dots ? LETTERS : *s;
        out->ellipsis = out->ellipsis || dots;
        s += dots ? 2 : 0;
    }
    *text = s;
    return true;
}

/* '...' becomes `count` axes. */
static bool spread(const Einsum *m, Letters *t, int count) {
    int n = 0, code[2 * MD_RANK];
    for (int i = 0; i < t->n; i++) {
        for (int k = count - 1; t->code[i] == LETTERS && t->ellipsis && k >= 0; k--) {
            code[n++] = LETTERS + k;
        }
        if (t->code[i] != LETTERS) {
            code[n++] = t->code[i];
        }
    }
    if (n > MD_RANK) {
        return too_many(m);
    }
    memcpy(t->code, code, sizeof *code * (size_t)n);
    t->n = n;
    return true;
}

static const char *code_name(const Einsum *m, int code) {
    return code < LETTERS ? str_printf(m->e->arena, "%c", code) : "...";
}

static bool no_tensor(const Einsum *m, Loc at, const char *found) {
    elab_error(m->e, at, 670, "'%s' multiplies whole tensors, found %s",
               m->first > 0 ? "einsum" : "matmul", found);
    return false;
}

/* The axis `axis` of an operand, where its index has another extent already. */
static bool differs(const Einsum *m, int operand, int axis, int code) {
    Arena *arena = m->e->arena;
    const Value *v = m->s->v[operand], *other = m->s->v[m->from[code].operand];
    const char *what = code >= LETTERS  ? "an axis in front ('...')"
                       : m->first == 0 ? "the axis that 'matmul' sums over"
                                       : str_printf(arena, "index '%c'", code);
    elab_error(m->e, m->s->at[operand], 669,
               "%s has the extent %s here, in axis %d of %s, and %s before, in axis %d of %s", what,
               dim_text(arena, v->dim[axis]), axis, shape_text(arena, v->rank, v->dim),
               dim_text(arena, m->index[code]->extent), m->from[code].axis,
               shape_text(arena, other->rank, other->dim));
    elab_note_dim(m->e, m->index[code]->extent);
    elab_note_dim(m->e, v->dim[axis]);
    return false;
}

/* The axes of one operand as indices; extents 1 under '...' stay out where others are longer. */
static bool bind_axes(Einsum *m, int operand, Letters *t) {
    const Value *v = m->s->v[operand];
    if (v->kind != V_TENSOR || v->nspan > 0) {
        return no_tensor(m, m->s->at[operand],
                         v->kind == V_TENSOR ? "an element in index notation" : value_kind_text(v));
    }
    int count = v->rank - (t->n - (t->ellipsis ? 1 : 0));
    if (count < 0 || (count > 0 && !t->ellipsis)) {
        return malformed(m, str_printf(m->e->arena, "has %d letters for the tensor %s",
                                       t->n - (t->ellipsis ? 1 : 0),
                                       shape_text(m->e->arena, v->rank, v->dim)));
    }
    m->leading = t->ellipsis && count > m->leading ? count : m->leading;
    if (!spread(m, t, count)) {
        return false;
    }
    for (int i = 0; i < t->n; i++) {
        int code = t->code[i];
        m->used[code]++;
        Index *ix = m->index[code];
        bool repeats = ix && code >= LETTERS && ix->extent.size == 1;
        bool repeated = code >= LETTERS && v->dim[i].size == 1;
        if (!ix) {
            ix = m->index[code] = ARENA_NEW(m->e->scratch, Index);
            *ix = (Index){.name = code_name(m, code),
                          .loc = m->s->at[operand],
                          .seq = m->nindex++,
                          .known = true};
            repeats = true;
        }
        if (repeats) {
            ix->extent = v->dim[i];
            m->from[code].operand = operand;
            m->from[code].axis = i;
        } else if (!repeated && !dims_agree(ix->extent, v->dim[i])) {
            return differs(m, operand, i, code);
        } else if (!repeated) {
            ix->extent = dims_join(ix->extent, v->dim[i]);
        }
    }
    return true;
}

/* An operand as a scalar that spans its indices, made where the tensor lives. */
static const Value *operand_of(const Einsum *m, int operand, const Letters *t) {
    const Value *v = m->s->v[operand];
    Access a = {.e = m->e, .node = v->node};
    int64_t dim[MD_RANK];
    for (int i = 0; i < t->n; i++) {
        Index *ix = m->index[t->code[i]];
        if (v->dim[i].size == ix->extent.size) {
            dim[a.rank] = v->dim[i].size;
            a.label[a.rank++].ix = ix;
        }
    }
    Region *before = evaluation_enter(m->e, v);
    if (a.rank < v->rank) {
        a.node = node_reshape(m->e->g, v->node, a.rank, dim);
    }
    axis_diagonals(&a);
    Value *r = ARENA_NEW(m->e->scratch, Value);
    *r = (Value){.kind = V_TENSOR, .node = a.node, .ranged = v->ranged, .lo = v->lo, .hi = v->hi};
    Index **span = value_axes(m->e->scratch, r, a.rank, 0).span;
    r->nspan = a.rank;
    for (int i = 0; i < a.rank; i++) {
        span[i] = a.label[i].ix;
    }
    return evaluation_leave(m->e, v, before, r);
}

/* Without an arrow: '...' and the letters that stand once, in alphabetical order. */
static bool implied(const Einsum *m, Letters *out) {
    *out = (Letters){.n = 0};
    for (int k = m->leading - 1; k >= 0; k--) {
        out->code[out->n++] = LETTERS + k;
    }
    for (int c = 0; c < LETTERS; c++) {
        if (m->used[c] == 1 && out->n == MD_RANK) {
            return too_many(m);
        }
        if (m->used[c] == 1) {
            out->code[out->n++] = c;
        }
    }
    return true;
}

static bool read_result(const Einsum *m, const char *text, Letters *out) {
    if (*text == 0) {
        return implied(m, out);
    }
    text += 2;
    if (!read_term(m, &text, out)) {
        return false;
    }
    if (*text != 0) {
        return malformed(m, "has more than one result");
    }
    if (!spread(m, out, m->leading)) {
        return false;
    }
    for (int i = 0; i < out->n; i++) {
        bool twice = false;
        for (int k = 0; k < i; k++) {
            twice = twice || out->code[k] == out->code[i];
        }
        if (twice || !m->index[out->code[i]]) {
            return malformed(m, str_printf(m->e->arena,
                                           twice ? "has '%s' twice in its result"
                                                 : "has '%s' in its result alone",
                                           code_name(m, out->code[i])));
        }
    }
    return true;
}

static const Value *product(Einsum *m, const char *text) {
    const Value *v[MOST_ARGUMENTS];
    Letters *term = ARENA_ARRAY(m->e->scratch, Letters, MOST_ARGUMENTS), result;
    int n = m->s->n - m->first;
    for (int i = 0; i < n; i++) {
        if (!read_term(m, &text, &term[i]) || !bind_axes(m, m->first + i, &term[i])) {
            return &value_poison;
        }
        bool more = *text == ',';
        text += more ? 1 : 0;
        if (more != (i + 1 < n)) {
            malformed(m, str_printf(m->e->arena, "names %s tensors than are given (%d)",
                                    more ? "more" : "fewer", n));
            return &value_poison;
        }
    }
    if (!read_result(m, text, &result)) {
        return &value_poison;
    }
    Index *folded[CODES], *kept[MD_RANK];
    int nfolded = 0;
    for (int c = 0; c < CODES; c++) {
        bool out = false;
        for (int i = 0; i < result.n; i++) {
            out = out || result.code[i] == c;
        }
        if (m->index[c] && !out) {
            folded[nfolded++] = m->index[c];
        }
    }
    for (int i = 0; i < n; i++) {
        v[i] = operand_of(m, m->first + i, &term[i]);
    }
    const Value *sum = fold_product(m->e, v, n, folded, nfolded, m->loc);
    if (!elab_ok(sum)) {
        return sum;
    }
    Value *r = ARENA_NEW(m->e->scratch, Value);
    *r = (Value){.kind = V_TENSOR, .ranged = sum->ranged, .lo = sum->lo, .hi = sum->hi};
    Dim *dim = value_axes(m->e->scratch, r, 0, result.n).dim;
    r->rank = result.n;
    for (int i = 0; i < result.n; i++) {
        kept[i] = m->index[result.code[i]];
        dim[i] = kept[i]->extent;
    }
    return notation_axes(m->e, sum, r, kept);
}

const Value *einsum_call(Elab *e, const Several *s, Loc loc) {
    Einsum m = {.e = e, .loc = loc, .s = s, .first = 1};
    if (s->n < 2 || s->v[0]->kind != V_STRING) {
        malformed(&m, "is its first argument, in front of its tensors");
        return &value_poison;
    }
    return s->axis && !no_tensor(&m, s->axis_at, "an axis") ? &value_poison
                                                            : product(&m, s->v[0]->text);
}

const Value *einsum_matmul(Elab *e, const Several *s, Loc loc) {
    Einsum m = {.e = e, .loc = loc, .s = s};
    const char *found = s->n == 2 ? NULL : str_printf(e->arena, "%d of them", s->n);
    Loc at = loc;
    for (int i = 0; i < s->n && !found; i++) {
        if (s->v[i]->kind != V_TENSOR || s->v[i]->rank == 0) {
            found = value_text(e->arena, s->v[i]);
            at = s->at[i];
        }
    }
    if (found || s->axis) {
        (void)no_tensor(&m, found ? at : s->axis_at, found ? found : "an axis");
        return &value_poison;
    }
    bool row = s->v[0]->rank == 1, column = s->v[1]->rank == 1;
    return product(&m, row && column ? "k,k->"
                       : row         ? "k,...kj->...j"
                       : column      ? "...ik,k->...i"
                                     : "...ik,...kj->...ij");
}
