/* random_conv: convolutions, their adjoints, pools and what is stretched, with whatever windows,
 * steps, borders and groups, for random models; see random_model.h. Values stay small: at most as
 * many elements a sample as ELEMENTS says. */
#include "random_model.h"

enum { ELEMENTS = 640, LONG = 12 }; /* of a sample; of an axis */

/* One axis of a window: k places, `dilation` apart, begun every `stride`, with a border. */
typedef struct {
    int64_t k, stride, pad, dilation, grow;
} Window;

static int64_t span(const Window *w) {
    return w->dilation * (w->k - 1) + 1;
}

/* How many windows fit into n places; 0: none, or too many. */
static int64_t windows(const Window *w, int64_t n) {
    const int64_t room = n + 2 * w->pad - span(w);
    const int64_t count = room < 0 ? 0 : room / w->stride + 1;
    return count > LONG ? 0 : count;
}

/* What their adjoint makes of n places. */
static int64_t stretched(const Window *w, int64_t n) {
    const int64_t count = (n - 1) * w->stride - 2 * w->pad + span(w) + w->grow;
    return count < 1 || count > LONG ? 0 : count;
}

static Window window(RandomText *r, bool adjoint) {
    Window w = {.k = 1 + rt_below(r, rt_chance(r, 15) ? 5 : 4),
                .stride = rt_chance(r, 55) ? 1 : 2 + (rt_chance(r, 25) ? 1 : 0),
                .dilation = rt_chance(r, 80) ? 1 : 2};
    w.pad = rt_chance(r, 40) ? 0 : rt_below(r, w.k);
    w.grow = adjoint && w.stride > 1 && rt_chance(r, 30) ? rt_below(r, w.stride) : 0;
    return w;
}

/* name = A, or name = [A, B]; nothing where both are what goes without saying. */
static const char *listed(RandomText *r, const char *name, int64_t a, int64_t b, int64_t unsaid) {
    if (a == unsaid && b == unsaid) {
        return "";
    }
    return a == b ? str_printf(r->arena, ", %s = %lld", name, (long long)a)
                  : str_printf(r->arena, ", %s = [%lld, %lld]", name, (long long)a, (long long)b);
}

static const char *steps(RandomText *r, const Window *h, const Window *w) {
    return str_printf(r->arena, "%s%s%s%s", listed(r, "stride", h->stride, w->stride, 1),
                      listed(r, "pad", h->pad, w->pad, 0),
                      listed(r, "dilation", h->dilation, w->dilation, 1),
                      listed(r, "grow", h->grow, w->grow, 0));
}

/* Groups that divide both, one for each channel among them, and the channels behind them. */
static int64_t grouped(RandomText *r, int64_t channels, int64_t *out) {
    *out = 1 + rt_below(r, 8);
    if (rt_chance(r, 25)) {
        *out = channels * (rt_chance(r, 75) ? 1 : 2);
        return channels;
    }
    if (channels % 2 == 0 && rt_chance(r, 30)) {
        *out += *out % 2;
        return 2;
    }
    return 1;
}

static const char *unbiased(RandomText *r) {
    return rt_chance(r, 30) ? ", use_bias = false" : "";
}

/* Of another border than zeros; what goes round or is mirrored is shorter than the axis. */
static const char *border(RandomText *r, const Window *w, int64_t n) {
    if (w->pad == 0 || w->pad >= n || rt_chance(r, 80)) {
        return "";
    }
    static const char *const mode[] = {"reflect", "replicate", "circular"};
    return str_printf(r->arena, ", mode = \"%s\"", mode[rt_below(r, 3)]);
}

static bool taken(Chain *c, int64_t channels, int64_t lines, int64_t places) {
    if (lines < 1 || places < 1 || channels * lines * places > ELEMENTS) {
        return false;
    }
    c->dim[0] = channels;
    c->dim[1] = lines;
    c->dim[2] = places;
    return true;
}

static void convolved(Chain *c, bool adjoint) {
    RandomText *r = c->r;
    Window w = window(r, adjoint), h = rt_chance(r, 70) ? w : window(r, adjoint);
    const bool same = !adjoint && rt_chance(r, 15);
    if (same) {
        h.stride = w.stride = 1;
        h.pad = w.pad = 0;
    }
    int64_t out, groups = grouped(r, c->dim[0], &out), lines = c->dim[1], places = c->dim[2];
    const bool low = h.pad < lines && w.pad < places;
    const Window *wider = h.pad > w.pad ? &h : &w;
    const char *mode = adjoint || !low ? "" : border(r, wider, lines < places ? lines : places);
    if (!same) {
        lines = adjoint ? stretched(&h, lines) : windows(&h, lines);
        places = adjoint ? stretched(&w, places) : windows(&w, places);
    }
    if (!taken(c, out, lines, places)) {
        return;
    }
    const char *k = h.k == w.k
                        ? str_printf(r->arena, "%lld", (long long)w.k)
                        : str_printf(r->arena, "[%lld, %lld]", (long long)h.k, (long long)w.k);
    rt_stage(c,
             str_printf(r->arena, "%%: conv%s2d(%lld, %s%s%s%s%s%s)", adjoint ? "_transpose" : "",
                        (long long)out, k, steps(r, &h, &w), listed(r, "groups", groups, groups, 1),
                        mode, same ? ", same = true" : "", unbiased(r)));
}

static void pooled(Chain *c) {
    RandomText *r = c->r;
    Window w = {.k = 2 + rt_below(r, 2), .stride = 1 + rt_below(r, 3), .dilation = 1};
    w.pad = rt_chance(r, 70) ? 0 : rt_below(r, w.k / 2 + 1);
    const char *kind = r->smooth || rt_chance(r, 40) ? "avg" : "max";
    if (taken(c, c->dim[0], windows(&w, c->dim[1]), windows(&w, c->dim[2]))) {
        rt_stage(c, str_printf(r->arena, "%spool(%lld, stride = %lld%s)", kind, (long long)w.k,
                               (long long)w.stride, listed(r, "pad", w.pad, w.pad, 0)));
    }
}

static void stretch(Chain *c) {
    static const char *const mode[] = {"", "", ", mode = \"bilinear\""};
    if (c->dim[1] <= LONG / 2 && c->dim[2] <= LONG / 2 &&
        taken(c, c->dim[0], c->dim[1] * 2, c->dim[2] * 2)) {
        rt_stage(c, str_printf(c->r->arena, "upsample(2%s)", mode[rt_below(c->r, 3)]));
    }
}

/* h7 = h5 + h6 |> ...: what keeps its shape, and around it. */
static void around(Chain *c) {
    const int from = c->n;
    const int64_t k = rt_chance(c->r, 50) ? 3 : 1;
    rt_stage(c, str_printf(c->r->arena, "%%: conv2d(%lld, %lld, same = true%s)",
                           (long long)c->dim[0], (long long)k,
                           rt_chance(c->r, 30)
                               ? str_printf(c->r->arena, ", groups = %lld", (long long)c->dim[0])
                               : ""));
    text_printf(&c->body, "%*sh%d = h%d + h%d;\n", c->indent, "", c->n + 1, from, c->n);
    c->n++;
}

void rt_picture(Chain *c) {
    switch (rt_below(c->r, 10)) {
    case 0: pooled(c); break;
    case 1: stretch(c); break;
    case 2: around(c); break;
    case 3:
    case 4: convolved(c, true); break;
    default: convolved(c, false); break;
    }
}

void rt_along(Chain *c) {
    RandomText *r = c->r;
    const bool adjoint = rt_chance(r, 25);
    const Window w = window(r, adjoint);
    int64_t out, groups = grouped(r, c->dim[0], &out);
    const char *mode = adjoint ? "" : border(r, &w, c->dim[1]);
    const int64_t places = adjoint ? stretched(&w, c->dim[1]) : windows(&w, c->dim[1]);
    if (places < 1 || out * places > ELEMENTS) {
        return;
    }
    c->dim[0] = out;
    c->dim[1] = places;
    rt_stage(c,
             str_printf(r->arena, "%%: conv%s1d(%lld, %lld%s%s%s%s)", adjoint ? "_transpose" : "",
                        (long long)out, (long long)w.k, steps(r, &w, &w),
                        listed(r, "groups", groups, groups, 1), mode, unbiased(r)));
}
