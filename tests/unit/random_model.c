/* random_model: a model of layers of the library and one of its own, a train of it with whatever
 * clauses, second sets and states, and entries; see random_text.h. What these must give only the
 * evaluator says: derivatives meet difference quotients where the model is smooth. */
#include "random_model.h"

#include <string.h>

static const char *pick(RandomText *r, const char *const *words, int n) {
    return words[rt_below(r, n)];
}
#define PICK(r, ...)                                                                               \
    pick((r), (const char *const[]){__VA_ARGS__},                                                  \
         (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

/* h5 = h4 |> TEXT; a `%` in the text is a label of its own. */
void rt_stage(Chain *c, const char *text) {
    text_printf(&c->body, "%*sh%d = h%d |> ", c->indent, "", c->n + 1, c->n);
    for (const char *at = text; *at; at++) {
        text_printf(&c->body, *at == '%' ? "l%d" : "%c", *at == '%' ? c->n : *at);
    }
    text_add(&c->body, ";\n");
    c->n++;
}

void rt_numbered(Chain *c, const char *fmt, int64_t n) {
    rt_stage(c, str_printf(c->r->arena, fmt, (long long)n));
}

static void activation(Chain *c) {
    rt_stage(c, c->r->smooth ? PICK(c->r, "tanh", "sigmoid", "gelu", "gelu_tanh", "silu",
                                    "softplus", "mish", "softmax", "logsigmoid", "dropout(0.25)")
                             : PICK(c->r, "relu", "leaky_relu(0.125)", "elu", "selu", "relu6",
                                    "celu(1.5)", "hardtanh", "hardsigmoid", "hardswish", "softsign",
                                    "%: prelu", "gaussian_noise(0.125)", "dropout"));
}

/* Layers along the last axis, of any rank; they keep the shape. */
static void along_last(Chain *c) {
    switch (rt_below(c->r, 6)) {
    case 0: rt_stage(c, "%: layernorm"); break;
    case 1: rt_stage(c, "%: rmsnorm(eps = 1e-5)"); break;
    case 2: rt_stage(c, "%: own"); break;
    case 3: rt_numbered(c, "%%: lora(%lld, rank = 2)", c->dim[c->rank - 1]); break;
    case 4: rt_numbered(c, "%%: linear(%lld, use_bias = false)", c->dim[c->rank - 1]); break;
    default: rt_numbered(c, "%%: linear(out = %lld)", c->dim[c->rank - 1]); break;
    }
}

static void widen(Chain *c) {
    int64_t n = 2 + rt_below(c->r, 5);
    rt_numbered(c, "%%: linear(%lld)", n);
    c->dim[c->rank - 1] = n;
}

/* repeat 2 carry h4 { ... h4 <- h4 + 0.5 * h6; } with layers of its own for each turn. */
static void looped(Chain *c) {
    int before = c->n, inside = c->n;
    const char *kind = rt_chance(c->r, 60) ? "repeat" : "scan";
    text_printf(&c->body, "%*s%s%s %lld carry g%d = h%d {\n", c->indent, "",
                rt_chance(c->r, 20) ? "@checkpoint " : "", kind, (long long)(1 + rt_below(c->r, 3)),
                before, before);
    c->indent += 4;
    c->depth++;
    c->n++;
    text_printf(&c->body, "%*sh%d = g%d;\n", c->indent, "", c->n, before);
    inside = c->n;
    along_last(c);
    activation(c);
    text_printf(&c->body, "%*sg%d <- %sh%d;\n", c->indent, "", before,
                rt_chance(c->r, 50) ? str_printf(c->r->arena, "h%d + 0.5 * ", inside) : "", c->n);
    c->indent -= 4;
    c->depth--;
    text_printf(&c->body, "%*s}\n%*sh%d = g%d;\n", c->indent, "", c->indent, "", c->n + 1, before);
    c->n++;
}

static void rows(Chain *c) {
    switch (rt_below(c->r, 7)) {
    case 0: rt_stage(c, "%: batchnorm"); break;
    case 1: rt_numbered(c, "%%: group_norm(%lld)", c->dim[0] % 2 == 0 ? 2 : 1); break;
    case 2: { /* a layer around */
        int from = c->n;
        along_last(c);
        activation(c);
        text_printf(&c->body, "%*sh%d = h%d + h%d;\n", c->indent, "", c->n + 1, from, c->n);
        c->n++;
        break;
    }
    case 3: looped(c); break;
    case 4: widen(c); break;
    default: along_last(c); break;
    }
}

static void sequence(Chain *c) {
    int64_t n;
    switch (rt_below(c->r, 8)) {
    case 0:
    case 1:
        n = 2 + rt_below(c->r, 4);
        rt_numbered(c, rt_chance(c->r, 50) ? "%%: lstm(%lld)" : "%%: gru(%lld)", n);
        c->dim[1] = n;
        break;
    case 2:
        rt_numbered(c,
                    rt_chance(c->r, 50) ? "%%: multihead_attention(%lld)"
                                        : "%%: multihead_attention(%lld, causal = true)",
                    c->dim[1] % 2 == 0 ? 2 : 1);
        break;
    case 3: rt_along(c); break;
    case 4:
        text_printf(&c->body, "%*sh%d[b, i, j] = h%d[b, j, i];\n", c->indent, "", c->n + 1, c->n);
        n = c->dim[0];
        c->dim[0] = c->dim[1];
        c->dim[1] = n;
        c->n++;
        break;
    case 5: looped(c); break;
    case 6: widen(c); break;
    default: along_last(c); break;
    }
}

/* A convolution along three axes, the channels being places. */
static void volume(Chain *c, int64_t out, int64_t k, int64_t stride, int64_t pad) {
    text_printf(&c->body, "%*sh%d = (h%d as [N, 1, %lld, %lld, %lld]) |> ", c->indent, "", c->n + 1,
                c->n, (long long)c->dim[0], (long long)c->dim[1], (long long)c->dim[2]);
    text_printf(&c->body, "l%d: conv3d(%lld, %lld, stride = %lld, pad = %lld);\n", c->n,
                (long long)out, (long long)k, (long long)stride, (long long)pad);
    for (int i = 0; i < 3; i++) {
        c->dim[i] = (c->dim[i] + 2 * pad - k) / stride + 1;
    }
    c->dim[0] *= out;
    text_printf(&c->body, "%*sh%d = h%d as [N, %lld, %lld, %lld];\n", c->indent, "", c->n + 2,
                c->n + 1, (long long)c->dim[0], (long long)c->dim[1], (long long)c->dim[2]);
    c->n += 2;
}

static void image(Chain *c) {
    const int64_t k = 1 + rt_below(c->r, 3), stride = 1 + rt_below(c->r, 2);
    const int64_t pad = rt_below(c->r, 2), out = 1 + rt_below(c->r, 2);
    const bool fits = c->dim[0] + 2 * pad >= k && c->dim[1] + 2 * pad >= k &&
                      c->dim[2] + 2 * pad >= k && c->dim[0] <= 4;
    switch (rt_below(c->r, 8)) {
    case 0:
        rt_stage(c, rt_chance(c->r, 50) ? "%: batchnorm" : "%: instance_norm(affine = true)");
        break;
    case 1: rt_numbered(c, "%%: group_norm(%lld)", c->dim[0] % 2 == 0 ? 2 : 1); break;
    case 2: fits ? volume(c, out, k, stride, pad) : rt_picture(c); break;
    default: rt_picture(c); break;
    }
}

/* The model; gives the type of its input. */
static const char *model(RandomText *r) {
    static const int64_t sizes[] = {3, 4, 5, 6, 8};
    Chain c = {.r = r, .body = {.arena = r->arena}, .indent = 4};
    const char *type;
    text_add(&c.body, "    h0 = x;\n");
    switch (rt_below(r, 4)) {
    case 0:
        c.rank = 1;
        c.dim[0] = sizes[rt_below(r, 5)];
        type = str_printf(r->arena, "[N, %lld]", (long long)c.dim[0]);
        break;
    case 1:
        c.rank = 2;
        c.dim[0] = 2 + rt_below(r, 3);
        c.dim[1] = sizes[rt_below(r, 5)];
        type = str_printf(r->arena, "[N, %lld, %lld]", (long long)c.dim[0], (long long)c.dim[1]);
        break;
    case 2:
        c.rank = 3;
        c.dim[0] = 1 + rt_below(r, 6);
        c.dim[1] = 3 + rt_below(r, 6);
        c.dim[2] = 3 + rt_below(r, 6);
        type = str_printf(r->arena, "[N, %lld, %lld, %lld]", (long long)c.dim[0],
                          (long long)c.dim[1], (long long)c.dim[2]);
        break;
    default: {
        int64_t v = 3 + rt_below(r, 5);
        c.rank = 2;
        c.dim[0] = 2 + rt_below(r, 3);
        c.dim[1] = sizes[rt_below(r, 5)];
        type = str_printf(r->arena, "i32[N, %lld] in 0..%lld", (long long)c.dim[0], (long long)v);
        rt_stage(&c, str_printf(r->arena, "%%: embedding(%lld, %lld)", (long long)v,
                                (long long)c.dim[1]));
        break;
    }
    }
    for (int i = 0, n = 1 + (int)rt_below(r, 4); i < n; i++) {
        c.rank == 1 ? rows(&c) : c.rank == 2 ? sequence(&c) : image(&c);
        if (rt_chance(r, 50)) {
            activation(&c);
        }
    }
    if (c.rank == 3) {
        rt_stage(&c, "global_avgpool");
    } else if (c.rank == 2) {
        text_printf(
            &c.body, "    h%d[b, j] = %s;\n", c.n + 1,
            str_printf(r->arena, rt_chance(r, 50) ? "mean[t] h%d[b, t, j]" : "h%d[b, 0, j]", c.n));
        c.n++;
    }
    text_printf(&r->text,
                "model net(x: %s) -> [N, C] {\n%s    return h%d |> head: linear(out = C);\n}\n\n",
                type, c.body.at, c.n);
    return type;
}

static void optimizer(RandomText *r) {
    static const char *const plain[] = {
        "sgd(lr = 0.125)",
        "sgd(lr = %s, momentum = 0.5, nesterov = true, dampening = 0)",
        "adam(lr = %s)",
        "adamw(lr = %s, decay = 0.125)",
        "adam(lr = 0.125, amsgrad = true)",
        "rmsprop(lr = %s, momentum = 0.5, centered = true)",
        "adagrad(lr = %s, initial = 0.125)",
        "adafactor(lr = %s)",
        "lars(lr = %s, trust = 0.5)",
        "lamb(lr = %s)",
        "sgd(lr = %s, decay = 0.125)"};
    const char *rate = PICK(r, "0.0625", "cosine(0.125, warmup = 2)", "linear_decay(0.125)",
                            "one_cycle(0.125)", "steps_at(0.125, 0.5, [1, 3])", "rate",
                            "exponential(0.125, 0.5)", "0.125 / f32(step)");
    const char *kind = str_printf(r->arena, pick(r, plain, 11), rate);
    if (rt_chance(r, 20)) {
        text_printf(&r->text,
                    "    optimizer muon(lr = 0.125) on rank == 2 and not under(net.head);\n");
    }
    text_printf(&r->text, "    optimizer %s;\n", kind);
}

static void train(RandomText *r, const char *type) {
    bool average = rt_chance(r, 40), state = rt_chance(r, 40);
    Elem given = type[0] == '[' ? rt_half(r, 25) : TY_ERROR;
    Elem kept = state ? rt_half(r, 40) : TY_ERROR;
    if (given != TY_ERROR) {
        type = str_printf(r->arena, "%s%s", elem_name(given), type);
    }
    if (average) {
        text_add(&r->text, "state avg = net;\n");
    }
    if (state) {
        text_printf(&r->text, "state seen: %s[C] = 0.5;\n",
                    kept == TY_ERROR ? "" : elem_name(kept));
    }
    text_printf(&r->text, "train fit(x: %s, y: i32[N] in 0..4, rate: real = 0.125) of net {\n",
                type);
    text_add(&r->text, "    out = net(x);\n");
    text_printf(
        &r->text, "    loss %s;\n",
        r->smooth
            ? PICK(r, "mean(cross_entropy(out, y))", "mean(cross_entropy(out, y, smooth = 0.125))",
                   "mean(mse(out, onehot(y, C)))", "mean(nll(log_softmax(out), y))",
                   "mean(bce_logits(out, onehot(y, C)))", "sum(focal(out, onehot(y, C))) / N",
                   "mean(kl(log_softmax(out), softmax(2 * onehot(y, C))))")
            : PICK(r, "mean(huber(out, onehot(y, C)))", "mean(multi_margin(out, y))",
                   "mean(smooth_l1(out, onehot(y, C), beta = 0.5))", "mean(l1(out, onehot(y, C)))",
                   "mean(hinge(out, 2 * onehot(y, C) - 1))"));
    if (rt_chance(r, 50)) {
        text_add(&r->text, "    metric acc = accuracy(out, y);\n");
    }
    if (rt_chance(r, 25)) {
        text_add(&r->text, "    metric gradients;\n");
    }
    optimizer(r);
    if (rt_chance(r, 40)) {
        text_add(&r->text, rt_chance(r, 70) ? "    clip norm(0.5);\n" : "    clip value(0.25);\n");
    }
    if (average) {
        text_add(&r->text,
                 rt_chance(r, 50) ? "    ema avg = 0.75;\n" : "    avg <- lerp(avg, net, 0.25);\n");
    }
    if (state) {
        text_printf(&r->text, "    m[j] = mean[b] out[b, j];\n    seen <- %s(0.5 * seen + m);\n",
                    kept == TY_ERROR ? "" : elem_name(kept));
    }
    if (r->elem == TY_F32 && rt_chance(r, 50)) {
        text_printf(&r->text, "    precision %s;\n",
                    PICK(r, "bf16", "f16, always", "bf16(master = true), always",
                         "bf16(master = false)", "bf16(master = false), always"));
    }
    if (rt_chance(r, 20)) {
        text_add(&r->text, "    freeze net.head.bias;\n");
    }
    text_add(&r->text, "    steps 5;\n}\n\n");
    if (r->smooth) {
        text_add(&r->text, "test \"gradients\" { expect gradcheck(fit) < 1e-5; }\n\n");
    }
    text_printf(&r->text,
                "entry predict(x: %s)%s {\n    out = net(x);\n    return out = out, p = "
                "softmax(out), best = argmax(out)%s%s;\n}\n\n",
                type, rt_chance(r, 40) ? " at N = 2" : "", average ? ", slow = avg(x)" : "",
                state ? ", seen = seen" : "");
    if (rt_chance(r, 20)) {
        text_add(&r->text, "entry shrink() { net.head.weight <- 0.75 * net.head.weight; }\n\n");
    }
    if (average && rt_chance(r, 50)) {
        text_add(&r->text, "entry sync(tau: f32) { avg <- lerp(avg, net, tau); }\n\n");
    }
}

void rt_model(RandomText *r) {
    r->smooth = rt_chance(r, 60);
    text_add(&r->text, "dim N = 6;\n\n"
                       "layer own(x: [..., n]) -> [..., n] {\n"
                       "    param w: [n, n] ~ normal(0, 0.5);\n"
                       "    param scale: [n] = 1;\n");
    text_printf(&r->text, "    y[..., i] = %s;\n    return y;\n}\n\n",
                PICK(r, "scale[i] * sum[j] w[i, j] * x[..., j]",
                     "tanh(sum[j] w[i, j] * x[..., j]) + scale[i] * x[..., i]",
                     "scale[i] * x[..., i] + 0.25 * mean[j] w[j, i] * x[..., j]^2",
                     "scale[i] * (x[..., i] - mean[j] x[..., j]) + w[i, i]"));
    const char *type = model(r);
    train(r, type);
    r->smooth = false;
}
