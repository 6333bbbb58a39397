#!/usr/bin/env python3
"""A peer of samples/cnf.mdl: one training step of the same flow in JAX, the whole of it compiled.

    cnf_jax.py WIDTH BATCH THREADS [none|step|diffrax]

Two blocks of ten steps of Tsit5 as a `lax.scan`, with `jax.checkpoint` around a step or nothing kept back, or by
Diffrax with its adjoint of as many checkpoints; exact trace by one vjp for each unit vector; AdamW. Parameters and slots are donated. Prints the median
time of a step in microseconds, for each line that it reads.
"""
import itertools
import os
import sys
import time

width, batch, threads = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
policy = sys.argv[4] if len(sys.argv) > 4 else "step"
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
if threads == 1:
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

sys.dont_write_bytecode = True  # nothing is left in the tree
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import tsit5  # noqa: E402

SECONDS, UNTIL, STEPS, BLOCKS = 2.0, 0.5, 10, 2
keys = (jax.random.fold_in(jax.random.key(0), i) for i in itertools.count())


def squash_init(n, out):
    bound = 1 / n**0.5
    return {
        "w": jax.random.uniform(next(keys), (n, out), minval=-bound, maxval=bound),
        "b": jax.random.uniform(next(keys), (out,), minval=-bound, maxval=bound),
        "w2": 0.1 * jax.random.normal(next(keys), (out,)),
        "b2": jnp.zeros(out),
        "w3": 0.1 * jax.random.normal(next(keys), (out,)),
    }


def field(p, y, t):
    for i, q in enumerate(p):
        y = (y @ q["w"] + q["b"]) * jax.nn.sigmoid(q["w2"] * t + q["b2"]) + q["w3"] * t
        y = jnp.tanh(y) if i < len(p) - 1 else y
    return y


def slopes(p, y, t):
    f, back = jax.vjp(lambda v: field(p, v, t), y)
    trace = sum(back(jnp.zeros_like(f).at[:, i].set(1.0))[0][:, i] for i in range(2))
    return f, trace


def solve(p, y, d):
    h = -UNTIL / STEPS

    def step(carry, n):
        return tsit5.step(lambda v, t: slopes(p, v, t), *carry, UNTIL + n * h, h), None

    body = jax.checkpoint(step) if policy == "step" else step
    return lax.scan(body, (y, d), jnp.arange(STEPS, dtype=jnp.float32))[0]


if policy == "diffrax":
    import diffrax

    def solve(p, y, d):  # noqa: F811
        term = diffrax.ODETerm(lambda t, carry, p: slopes(p, carry[0], t))
        adjoint = diffrax.RecursiveCheckpointAdjoint(checkpoints=STEPS)
        by = diffrax.diffeqsolve(term, diffrax.Tsit5(), UNTIL, 0.0, -UNTIL / STEPS, (y, d), args=p, adjoint=adjoint, max_steps=STEPS + 1)
        return by.ys[0][0], by.ys[1][0]


def loss(params, x):
    y, d = x, jnp.zeros(batch)
    for p in params:
        y, d = solve(p, y, d)
    return jnp.mean(jnp.log(2 * jnp.pi) + 0.5 * jnp.sum(y * y, axis=1) - d)


def update(state, k, noise):
    params, m, v, n = state
    angle = jnp.pi / 4 * k
    x = 1.5 * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1) + noise
    value, g = jax.value_and_grad(loss)(params, x)
    n = n + 1
    m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
    v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
    params = jax.tree.map(
        lambda p, a, b: p - 1e-3 * (1e-5 * p + a / (1 - 0.9**n) / (jnp.sqrt(b / (1 - 0.999**n)) + 1e-8)), params, m, v)
    return (params, m, v, n), value


params = [[squash_init(2, width), squash_init(width, width), squash_init(width, width), squash_init(width, 2)] for _ in range(BLOCKS)]
state = (params, jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params), jnp.float32(0))
run = jax.jit(update, donate_argnums=0)
data = [(jax.random.randint(next(keys), (batch,), 0, 8).astype(jnp.float32), 0.2 * jax.random.normal(next(keys), (batch, 2))) for _ in range(16)]
for k in range(3):
    state, value = run(state, *data[k])
value.block_until_ready()
print("jax", flush=True)
for line in sys.stdin:
    times, start, k = [], time.perf_counter(), 0
    while time.perf_counter() - start < SECONDS:
        begin = time.perf_counter()
        state, value = run(state, *data[k % 16])
        value.block_until_ready()
        times.append(time.perf_counter() - begin)
        k += 1
    print("%.1f" % (1e6 * sorted(times)[len(times) // 2]), flush=True)
