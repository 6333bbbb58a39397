#!/usr/bin/env python3
"""A peer of tests/bench/turns.py: one training step of JAX, the whole of it compiled, or one prediction.

    jax_bench.py digits|mlp|dqn|wide|lenet|lenet5|resnet|lstm|gpt|gpt2|gpt2long|mse THREADS fit|predict

Prints "jax", then for each line that it reads the median time of a step over a second, in
microseconds. Forward, gradients and update are one function under `jit`, whose parameters and slots are
donated: they are updated in place. Images have their channels last, which XLA is fastest with here.
Batches take turns, see step.c; a step ends when its loss is there.
"""
import itertools
import math
import os
import sys
import time

case, threads, predicts = sys.argv[1], int(sys.argv[2]), sys.argv[3:] == ["predict"]
if case in ("mobile", "unet"):  # not written here
    print("-", flush=True)
    sys.exit()
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])  # XLA makes a thread for each
if threads == 1:
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402  (reads its environment when it is loaded)
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

SECONDS, BATCHES = 1.0, 4 if case == "mse" and not predicts else 64
keys = (jax.random.fold_in(jax.random.key(0), i) for i in itertools.count())


# ---- layers ----
def draw(fan_in, *shape):
    bound = 1 / math.sqrt(fan_in)
    return jax.random.uniform(next(keys), shape, minval=-bound, maxval=bound)


def linear_init(n, out):
    return {"w": draw(n, n, out), "b": draw(n, out)}


def linear(p, x):
    return x @ p["w"] + p["b"]


def conv_init(c, out, k, bias):
    p = {"w": draw(c * k * k, k, k, c, out)}
    return {**p, "b": draw(c * k * k, out)} if bias else p


def conv(p, x, pad, stride=1):
    y = lax.conv_general_dilated(x, p["w"], (stride, stride), ((pad, pad), (pad, pad)),
                                 dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y + p["b"] if "b" in p else y


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def norm_init(c):
    return {"scale": jnp.ones(c), "shift": jnp.zeros(c)}


def norm_state(c):
    return {"mean": jnp.zeros(c), "var": jnp.ones(c)}


def norm(p, state, x):
    """Of a batch; gives the running statistics too. Of one row by these."""
    if predicts:
        return (x - state["mean"]) * lax.rsqrt(state["var"] + 1e-5) * p["scale"] + p["shift"], state
    mean, var = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
    n = x.shape[0] * x.shape[1] * x.shape[2]
    running = {"mean": 0.9 * state["mean"] + 0.1 * mean, "var": 0.9 * state["var"] + 0.1 * var * n / (n - 1)}
    return (x - mean) * lax.rsqrt(var + 1e-5) * p["scale"] + p["shift"], lax.stop_gradient(running)


def cross_entropy(logits, y, smooth=0.0):
    goal = jax.nn.one_hot(y, logits.shape[-1]) * (1 - smooth) + smooth / logits.shape[-1]
    return -jnp.mean(jnp.sum(goal * jax.nn.log_softmax(logits), -1))


# ---- nets: parameters, state, loss(parameters, state, x, step) -> (loss, state), shape of x, and
# what is predicted, of (parameters, state, x) ----
def chain(widths):
    return [linear_init(n, out) for n, out in zip(widths, widths[1:])]


def run_chain(p, x):
    for layer in p[:-1]:
        x = jax.nn.relu(linear(layer, x))
    return linear(p[-1], x)


def classes(batch):
    return jnp.arange(batch) % 10


def digits():
    def loss(p, state, x, step):
        for i in range(2):
            x = jax.nn.gelu(linear(p[i], x), approximate=False)
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(1), step), i)
            x = jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0)
        return cross_entropy(linear(p[2], x), classes(128), 0.1), state
    return chain((64, 128, 128, 10)), (), loss, (128, 64), None


def mlp():
    def loss(p, state, x, step):
        return cross_entropy(run_chain(p, x), classes(64)), state
    return chain((784, 512, 512, 10)), (), loss, (64, 784), lambda p, state, x: run_chain(p, x)


def dqn():
    act = jnp.arange(128) % 2

    def loss(p, target, x, step):
        goal = x[:, 8] + 0.99 * (1 - x[:, 9]) * jnp.max(run_chain(target, x[:, 4:8]), 1)
        value = jnp.take_along_axis(run_chain(p, x[:, :4]), act[:, None], 1)[:, 0]
        return jnp.mean((value - lax.stop_gradient(goal)) ** 2), target
    return chain((4, 120, 84, 2)), chain((4, 120, 84, 2)), loss, (128, 10), None


def wide():
    def loss(p, state, x, step):
        return jnp.mean((run_chain(p, x) - 1) ** 2), state
    return chain((4, 8096, 4)), (), loss, (64, 4), lambda p, state, x: run_chain(p, x)


def lenet():
    p = {"c1": conv_init(1, 32, 3, True), "c2": conv_init(32, 64, 3, True), "f": chain((3136, 128, 10))}

    def logits(p, state, x):
        x = pool(jax.nn.relu(conv(p["c1"], x.reshape(-1, 28, 28, 1), 1)))
        x = pool(jax.nn.relu(conv(p["c2"], x, 1)))
        return run_chain(p["f"], x.reshape(-1, 3136))

    def loss(p, state, x, step):
        return cross_entropy(logits(p, state, x), classes(64)), state
    return p, (), loss, (64, 784), logits


def lenet5():
    p = {"c1": conv_init(1, 6, 5, True), "c2": conv_init(6, 16, 5, True), "f": chain((400, 120, 84, 10))}

    def logits(p, state, x):
        x = pool(jax.nn.relu(conv(p["c1"], x.reshape(-1, 28, 28, 1), 2)))
        x = pool(jax.nn.relu(conv(p["c2"], x, 0)))
        return run_chain(p["f"], x.reshape(-1, 400))

    def loss(p, state, x, step):
        return cross_entropy(logits(p, state, x), classes(128)), state
    return p, (), loss, (128, 784), logits


def resnet():
    p, state = {"stem": conv_init(3, 16, 3, False), "head": linear_init(64, 10)}, {"stem": norm_state(16)}
    p["bn"], units, c = norm_init(16), [], 16
    for out, stride in ((16, 1), (32, 2), (64, 2)):
        for i in range(3):
            name, step, short = f"u{len(units)}", stride if i == 0 else 1, c != out
            p[name] = {"c1": conv_init(c, out, 3, False), "n1": norm_init(out),
                       "c2": conv_init(out, out, 3, False), "n2": norm_init(out)}
            state[name] = {"n1": norm_state(out), "n2": norm_state(out)}
            if short:
                p[name].update(cs=conv_init(c, out, 1, False), ns=norm_init(out))
                state[name]["ns"] = norm_state(out)
            units.append((name, step, short))
            c = out

    def logits(p, state, x):
        new = {}
        x, new["stem"] = norm(p["bn"], state["stem"], conv(p["stem"], x.reshape(-1, 32, 32, 3), 1))
        x = jax.nn.relu(x)
        for name, stride, short in units:
            u, s, n = p[name], state[name], {}
            y, n["n1"] = norm(u["n1"], s["n1"], conv(u["c1"], x, 1, stride))
            y, n["n2"] = norm(u["n2"], s["n2"], conv(u["c2"], jax.nn.relu(y), 1))
            if short:
                x, n["ns"] = norm(u["ns"], s["ns"], conv(u["cs"], x, 0, stride))
            x, new[name] = jax.nn.relu(y + x), n
        return linear(p["head"], jnp.mean(x, (1, 2))), new

    def loss(p, state, x, step):
        y, new = logits(p, state, x)
        return cross_entropy(y, classes(32)), new
    return p, state, loss, (32, 3072), lambda p, state, x: logits(p, state, x)[0]


def letters(x, words=65):
    tok = jnp.clip((x * words).astype(jnp.int32), 0, words - 1)
    return tok[:, :-1], tok[:, 1:]


def lstm():
    c = 256
    p = {"table": jax.random.normal(next(keys), (65, c)), "in": linear_init(c, 4 * c), "rec": linear_init(c, 4 * c),
         "head": linear_init(c, 65)}

    def logits(p, tok):
        given = jnp.swapaxes(linear(p["in"], p["table"][tok]), 0, 1)  # of all steps at once

        def turn(carry, gates):
            h, cell = carry
            i, f, g, o = jnp.split(gates + linear(p["rec"], h), 4, -1)
            cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(cell)
            return (h, cell), h

        zero = jnp.zeros((tok.shape[0], c))
        _, h = lax.scan(turn, (zero, zero), given)
        return linear(p["head"], jnp.swapaxes(h, 0, 1))

    def loss(p, state, x, step):
        tok, goal = letters(x)
        return cross_entropy(logits(p, tok), goal), state
    return p, (), loss, (32, 129), lambda p, state, x: logits(p, letters(x)[0])


def gpt(batch=12, words=65, c=128, layers=4, heads=4, approximate=True, length=64):
    def norm_of(p, x):
        mean, var = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
        return (x - mean) * lax.rsqrt(var + 1e-5) * p["scale"] + p["shift"]

    def block(p, x):
        b = x.shape[0]
        qkv = linear(p["attn"], norm_of(p["ln1"], x)).reshape(b, length, 3, heads, c // heads)
        s = jnp.einsum("bihd,bjhd->bhij", qkv[:, :, 0], qkv[:, :, 1]) / math.sqrt(c // heads)
        s = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((length, length), bool)), s, -jnp.inf))
        o = jnp.einsum("bhij,bjhd->bihd", s, qkv[:, :, 2]).reshape(b, length, c)
        x = x + linear(p["proj"], o)
        return x + linear(p["down"], jax.nn.gelu(linear(p["up"], norm_of(p["ln2"], x)), approximate))

    scale = 1 if words == 65 else 0.02  # as GPT-2 begins
    p = {"table": scale * jax.random.normal(next(keys), (words, c)), "place": 0.02 * jax.random.normal(next(keys), (length, c)),
         "ln": norm_init(c)}
    for i in range(layers):
        p[f"b{i}"] = {"ln1": norm_init(c), "attn": linear_init(c, 3 * c), "proj": linear_init(c, c), "ln2": norm_init(c),
                      "up": linear_init(c, 4 * c), "down": linear_init(4 * c, c)}

    def logits(p, tok):
        x = p["table"][tok] + p["place"]
        for i in range(layers):
            x = block(p[f"b{i}"], x)
        return norm_of(p["ln"], x) @ p["table"].T

    def loss(p, state, x, step):
        tok, goal = letters(x, words)
        return cross_entropy(logits(p, tok), goal), state
    return p, (), loss, (batch, length + 1), lambda p, state, x: logits(p, letters(x, words)[0])


def gpt2():
    return gpt(4, 50257, 768, 12, 12, False)


def gpt2long():
    return gpt(1, 50257, 768, 12, 12, False, 1024)


def mse():
    def loss(p, state, x, step):
        return jnp.mean((run_chain(p, x) - x) ** 2), state
    return chain((10000, 10000, 10000)), (), loss, (1000, 10000), lambda p, state, x: run_chain(p, x)


# ---- the step ----
def update(p, g, m, v, step):
    """One tensor by Adam, AdamW or SGD, of LeNet-5 with momentum."""
    if case == "lenet5":
        g = g + 5e-4 * p
        m = 0.9 * m + g
        return p - 0.05 * (g + 0.9 * m), m, v
    if case in ("wide", "resnet", "mse"):
        return p - (1e-4 if case == "wide" else 0.01) * g, m, v
    lr = 2.5e-4 if case == "dqn" else 1e-3
    if case == "digits":
        lr = 3e-3 * 0.5 * (1 + jnp.cos(jnp.pi * jnp.minimum(1.0, step / 660)))
    m, v, t = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g, step + 1.0
    rate = lr / (1 - 0.9 ** t)
    decay = 0.0 if case == "dqn" else 0.01
    return p * (1 - lr * decay) - rate * m / (jnp.sqrt(v / (1 - 0.999 ** t)) + 1e-8), m, v


params, state, loss_of, shape, predict = {"digits": digits, "mlp": mlp, "dqn": dqn, "wide": wide, "lenet": lenet, "lenet5": lenet5,
                                 "resnet": resnet, "lstm": lstm, "gpt": gpt, "gpt2": gpt2, "gpt2long": gpt2long, "mse": mse}[case]()
if predicts and predict is None:
    print("-", flush=True)
    sys.exit()
has_slots = case not in ("wide", "resnet", "mse")


def train(carry, x):
    params, first, second, state, step = carry
    (loss, state), grads = jax.value_and_grad(loss_of, has_aux=True)(params, state, x, step)
    if case == "digits":
        size = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / (size + 1e-6)), grads)
    leaves, tree = jax.tree.flatten(params)
    slots = zip(jax.tree.leaves(first), jax.tree.leaves(second)) if has_slots else itertools.repeat((None, None))
    new = [update(p, g, m, v, step) for p, g, (m, v) in zip(leaves, jax.tree.leaves(grads), slots)]
    parts = [jax.tree.unflatten(tree, part) if has_slots or k == 0 else () for k, part in enumerate(zip(*new))]
    return (*parts, state, step + 1), loss


train = jax.jit(train, donate_argnums=0)
batches = itertools.cycle(list(jax.random.uniform(next(keys), (BATCHES, *shape))))
zeros = (lambda: jax.tree.map(jnp.zeros_like, params)) if has_slots else tuple
if predicts:
    rows = itertools.cycle(list(jax.random.uniform(next(keys), (BATCHES, 1, shape[1]))))
    predict = jax.jit(predict)
else:
    carry = (params, zeros(), zeros(), state, jnp.float32(0))


def step():
    global carry
    if predicts:
        return float(predict(params, state, next(rows)).block_until_ready().ravel()[0])
    carry, loss = train(carry, next(batches))
    return float(loss)


losses = [step() for _ in range(3 if case in ("gpt2", "gpt2long", "mse") else 30)]
if not all(map(math.isfinite, losses)):
    sys.exit(f"jax_bench: the loss of {case} is {losses[-1]}")
print("jax", flush=True)
for _ in sys.stdin:
    took, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        step()
        took.append(time.perf_counter() - start)
    print(f"{1e6 * sorted(took)[len(took) // 2]:.2f}", flush=True)
