#!/usr/bin/env python3
"""A peer of samples/cnf.mdl: one training step of the same flow in PyTorch, the solver's loop written out.

    cnf_torch.py WIDTH BATCH THREADS [eager|compiled]

Two blocks of ten steps of Tsit5; exact trace by one product with the Jacobian for each unit vector;
AdamW, fused. `compiled`: slopes and trace of a stage are one function of torch.compile. Prints the median
time of a step in microseconds, for each line that it reads.
"""
import math
import os
import sys
import time

width, batch, threads = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
kind = sys.argv[4] if len(sys.argv) > 4 else "eager"
os.environ["OMP_NUM_THREADS"] = str(threads)

import torch  # noqa: E402
from torch import nn  # noqa: E402

sys.dont_write_bytecode = True  # nothing is left in the tree
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import tsit5  # noqa: E402

SECONDS, UNTIL, STEPS, BLOCKS = 2.0, 0.5, 10, 2
torch.set_num_threads(threads)
torch.manual_seed(0)


class Squash(nn.Module):
    def __init__(self, n, out):
        super().__init__()
        self.w1 = nn.Linear(n, out)
        self.w2 = nn.Parameter(0.1 * torch.randn(out))
        self.b2 = nn.Parameter(torch.zeros(out))
        self.w3 = nn.Parameter(0.1 * torch.randn(out))

    def forward(self, y, t):
        return self.w1(y) * torch.sigmoid(self.w2 * t + self.b2) + self.w3 * t


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.ModuleList([Squash(2, width), Squash(width, width), Squash(width, width), Squash(width, 2)])

    def forward(self, y, t):
        for layer in self.layer[:-1]:
            y = torch.tanh(layer(y, t))
        return self.layer[-1](y, t)


unit = [torch.eye(2)[i].expand(batch, 2) for i in range(2)]


def slopes_eager(field, y, t):
    """The adjoint of y is a value of the graph, as that of a loss would be."""
    f = field(y, t)
    trace = sum(torch.autograd.grad(f, y, unit[i], create_graph=True)[0][:, i] for i in range(2))
    return f, trace


def slopes_transformed(field, y, t):
    f, back = torch.func.vjp(lambda v: field(v, t), y)
    return f, sum(back(unit[i])[0][:, i] for i in range(2))


if kind == "compiled":
    compiled = torch.compile(slopes_transformed, dynamic=False)
    times = {}  # a tensor each: another float would be another compile

    def slopes(field, y, t):
        return compiled(field, y, times.setdefault(t, torch.tensor(t)))
else:
    def slopes(field, y, t):
        return slopes_eager(field, y if y.requires_grad else y.requires_grad_(), t)


def solve(field, y, d):
    h = -UNTIL / STEPS
    for n in range(STEPS):
        y, d = tsit5.step(lambda v, t: slopes(field, v, t), y, d, UNTIL + n * h, h)
    return y, d


fields = nn.ModuleList([Field() for _ in range(BLOCKS)])
optimizer = torch.optim.AdamW(fields.parameters(), lr=1e-3, weight_decay=1e-5, fused=True)


def update(k, noise):
    angle = math.pi / 4 * k
    y, d = 1.5 * torch.stack([torch.cos(angle), torch.sin(angle)], 1) + noise, torch.zeros(batch)
    for field in fields:
        y, d = solve(field, y, d)
    loss = torch.mean(math.log(2 * math.pi) + 0.5 * (y * y).sum(1) - d)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss


data = [(torch.randint(0, 8, (batch,)).float(), 0.2 * torch.randn(batch, 2)) for _ in range(16)]
for k in range(3):
    update(*data[k])
print("torch", flush=True)
for line in sys.stdin:
    spent, start, k = [], time.perf_counter(), 0
    while time.perf_counter() - start < SECONDS or k < 3:
        begin = time.perf_counter()
        update(*data[k % 16])
        spent.append(time.perf_counter() - begin)
        k += 1
    print("%.1f" % (1e6 * sorted(spent)[len(spent) // 2]), flush=True)
