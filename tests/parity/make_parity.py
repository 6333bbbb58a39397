#!/usr/bin/env python3
"""Writes what tests/suites/parity.sh compares with: ten steps of the digits net in PyTorch.

The files are in the repository; this script says how they came about. Run from the root, with
PyTorch installed: python3 tests/parity/make_parity.py

The net is 64-128-128-10 with gelu by erf and without dropout; batch i holds the rows 128*i and on
of samples/data/digits.csv, pixels over 16. tests/parity/parity.mdl is the same in .mdl.

init.safetensors        the weights before the first step: PyTorch's default draw times 2.5, so that the
                        clip acts in some steps and in others not
NAME_1.safetensors      after one step, NAME_10.safetensors after ten
losses.csv              step, then the loss of each NAME before that step's update
    sgd     lr 0.1, momentum 0.9, nesterov, decay 5e-4
    adam    lr 1e-3, coupled decay 1e-3
    adamw   lr 3e-3 as a cosine over 10 steps with a warm-up of 3 ((k + 1) / 3), decay 0.01,
            label smoothing 0.1, gradients clipped to norm 1
"""
import json
import math
import struct

import numpy as np
import torch
from torch import nn

FOLDER = "tests/parity/"
BATCH, STEPS, WARMUP = 128, 10, 3


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = np.ascontiguousarray(tensor.detach().numpy(), dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.head = nn.Linear(64, 128), nn.Linear(128, 128), nn.Linear(128, 10)

    def forward(self, x):
        gelu = nn.functional.gelu
        return self.head(gelu(self.fc2(gelu(self.fc1(x)))))


def cosine(k):
    if k < WARMUP:
        return (k + 1) / WARMUP
    return (1 + math.cos(math.pi * min(1, (k - WARMUP) / (STEPS - WARMUP)))) / 2


def run(name, start, make_optimizer, smoothing=0.0, clip=None, schedule=None):
    net = Net()
    net.load_state_dict(start)
    optimizer = make_optimizer(net.parameters())
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule) if schedule else None
    losses = []
    for i in range(STEPS):
        rows = slice(BATCH * i, BATCH * (i + 1))
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows], label_smoothing=smoothing)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), clip or math.inf)
        optimizer.step()
        if scheduler:
            scheduler.step()
        losses.append(loss.item())
        print(f"{name} step {i + 1} loss {losses[-1]:.7f} gradient norm {norm:.4f}")
        if i + 1 in (1, STEPS):
            write_safetensors(f"{FOLDER}{name}_{i + 1}.safetensors", net.state_dict())
    return losses


torch.set_num_threads(1)
torch.manual_seed(2)
table = np.loadtxt("samples/data/digits.csv", delimiter=",")
x = torch.tensor(table[:, :64] / 16, dtype=torch.float32)
y = torch.tensor(table[:, 64], dtype=torch.int64)
start = {name: 2.5 * value for name, value in Net().state_dict().items()}
write_safetensors(FOLDER + "init.safetensors", start)

columns = {
    "sgd": run("sgd", start, lambda p: torch.optim.SGD(
        p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)),
    "adam": run("adam", start, lambda p: torch.optim.Adam(p, lr=1e-3, weight_decay=1e-3)),
    "adamw": run("adamw", start, lambda p: torch.optim.AdamW(p, lr=3e-3, weight_decay=0.01),
                 smoothing=0.1, clip=1.0, schedule=cosine),
}
with open(FOLDER + "losses.csv", "w", newline="\n") as out:
    out.write("step," + ",".join(columns) + "\n")
    for i, row in enumerate(zip(*columns.values())):
        out.write(f"{i + 1}," + ",".join(f"{v:.9g}" for v in row) + "\n")
