/* eval_view: leaves, views and places of the evaluator; see eval.h. A view is a base and a stride
 * for each axis of the result wherever it has no border. */
#include "compiler/eval_rule.h"

#include <string.h>

void eval_cnst(EvalCall *c) {
    Num *out = eval_out(c);
    if (elem_is_float(c->type.elem)) {
        out->f = c->attr->value;
    } else {
        out->i = c->type.elem == TY_BOOL ? c->attr->value != 0 : c->attr->ivalue;
    }
}

void eval_table(EvalCall *c) {
    Num *out = eval_out(c);
    int64_t n = type_count(c->type);
    for (int64_t i = 0; i < n; i++) {
        if (elem_is_float(c->type.elem)) {
            out[i].f = c->attr->data[i];
        } else {
            out[i].i = num_wrap(c->type.elem, (int64_t)c->attr->data[i]);
        }
    }
}

/* Result element (i0, i1, ...) is in[base + sum of i * stride]. */
static void copy_strided(EvalCall *c, int64_t base, const int64_t *stride) {
    Num *out = eval_out(c);
    const Num *in = c->in[0].at;
    int rank = c->type.rank;
    if (type_count(c->type) == 0) {
        return;
    }
    int64_t inner = rank > 0 ? c->type.dim[rank - 1] : 1, step = rank > 0 ? stride[rank - 1] : 0;
    int64_t index[MD_RANK] = {0};
    do {
        int64_t from = base;
        for (int i = 0; i < rank - 1; i++) {
            from += index[i] * stride[i];
        }
        for (int64_t i = 0; i < inner; i++) {
            *out++ = in[from + i * step];
        }
    } while (value_step(index, c->type.dim, rank - 1));
}

void eval_reshape(EvalCall *c) {
    c->result = eval_share(c->ev, c->in[0]);
    c->result.type = c->type;
}

void eval_permute(EvalCall *c) {
    int64_t from[MD_RANK], stride[MD_RANK];
    value_strides(c->in[0].type, from);
    for (int i = 0; i < c->type.rank; i++) {
        stride[i] = from[c->attr->map[i]];
    }
    copy_strided(c, 0, stride);
}

void eval_slice(EvalCall *c) {
    int64_t from[MD_RANK], stride[MD_RANK], base = 0;
    value_strides(c->in[0].type, from);
    for (int i = 0; i < c->type.rank; i++) {
        stride[i] = from[i] * c->attr->step[i];
        base += from[i] * c->attr->lo[i];
    }
    copy_strided(c, base, stride);
}

void eval_broadcast(EvalCall *c) {
    int64_t from[MD_RANK], stride[MD_RANK];
    value_strides(c->in[0].type, from);
    for (int i = 0, k = 0; i < c->type.rank; i++) {
        stride[i] = c->attr->axes >> i & 1 ? 0 : from[k++];
    }
    copy_strided(c, 0, stride);
}

void eval_flip(EvalCall *c) {
    int64_t stride[MD_RANK], base = 0;
    value_strides(c->in[0].type, stride);
    for (int i = 0; i < c->type.rank; i++) {
        if (c->attr->axes >> i & 1) {
            base += stride[i] * (c->type.dim[i] - 1);
            stride[i] = -stride[i];
        }
    }
    copy_strided(c, base, stride);
}

/* Where position `at` of an axis of extent n is read; -1: the border value. */
static int64_t border_at(Border border, int64_t at, int64_t n) {
    if (at >= 0 && at < n) {
        return at;
    }
    if (border == BORDER_EDGE) {
        return at < 0 ? 0 : n - 1;
    }
    return border == BORDER_WRAP ? (at % n + n) % n : -1;
}

static Num border_value(EvalCall *c) {
    Num x;
    if (elem_is_float(c->type.elem)) {
        x.f = c->attr->value;
    } else {
        x.i = num_wrap(c->type.elem, (int64_t)c->attr->value);
    }
    return x;
}

void eval_pad(EvalCall *c) {
    Num *out = eval_out(c), border = border_value(c);
    Type from = c->in[0].type;
    int64_t stride[MD_RANK], index[MD_RANK] = {0};
    value_strides(from, stride);
    if (type_count(c->type) == 0) {
        return;
    }
    do {
        int64_t at = 0;
        bool inside = true;
        for (int i = 0; i < c->type.rank && inside; i++) {
            int64_t x = border_at(c->attr->border, index[i] - c->attr->lo[i], from.dim[i]);
            inside = x >= 0;
            at += x * stride[i];
        }
        *out++ = inside ? c->in[0].at[at] : border;
    } while (value_step(index, c->type.dim, c->type.rank));
}

void eval_window(EvalCall *c) {
    Num *out = eval_out(c), border = border_value(c);
    const Attr *a = c->attr;
    Type from = c->in[0].type;
    int64_t outer = 1, inner = 1, n = from.dim[a->axis];
    for (int i = 0; i < from.rank; i++) {
        if (i < a->axis) {
            outer *= from.dim[i];
        } else if (i > a->axis) {
            inner *= from.dim[i];
        }
    }
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < a->count; i++) {
            for (int64_t k = 0; k < a->taps; k++, out += inner) {
                int64_t at = border_at(a->border, a->s * i + a->d * k - a->p, n);
                for (int64_t j = 0; j < inner; j++) {
                    out[j] = at < 0 ? border : c->in[0].at[(o * n + at) * inner + j];
                }
            }
        }
    }
}

/* The adjoint of eval_window, so it stands beside it: what was read by several is their sum. */
void eval_overlap_add(EvalCall *c) {
    Num *out = eval_out(c);
    const Attr *a = c->attr;
    const Num *in = c->in[0].at;
    bool is_float = elem_is_float(c->type.elem);
    int64_t outer = 1, inner = 1, n = a->taps_n;
    memset(out, 0, sizeof *out * (size_t)type_count(c->type)); /* all bits zero is 0.0 and 0 */
    for (int i = 0; i < c->type.rank; i++) {
        if (i < a->axis) {
            outer *= c->type.dim[i];
        } else if (i > a->axis) {
            inner *= c->type.dim[i];
        }
    }
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < a->count; i++) {
            for (int64_t k = 0; k < a->taps; k++, in += inner) {
                int64_t at = border_at(a->border, a->s * i + a->d * k - a->p, n);
                for (int64_t j = 0; at >= 0 && j < inner; j++) {
                    Num *to = &out[(o * n + at) * inner + j];
                    if (is_float) {
                        to->f += in[j].f;
                    } else {
                        to->i =
                            num_wrap(c->type.elem, (int64_t)((uint64_t)to->i + (uint64_t)in[j].i));
                    }
                }
            }
        }
    }
}

void eval_concat(EvalCall *c) {
    Num *out = eval_out(c);
    int axis = c->attr->axis;
    int64_t outer = 1, row = 1, before = 0;
    for (int i = 0; i < c->type.rank; i++) {
        if (i < axis) {
            outer *= c->type.dim[i];
        } else {
            row *= c->type.dim[i];
        }
    }
    for (int k = 0; k < c->nin; k++) {
        int64_t part = outer > 0 ? type_count(c->in[k].type) / outer : 0;
        for (int64_t o = 0; o < outer; o++) {
            memcpy(out + o * row + before, c->in[k].at + o * part, sizeof *out * (size_t)part);
        }
        before += part;
    }
}
