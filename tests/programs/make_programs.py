#!/usr/bin/env python3
"""Writes what tests/suites/programs.sh compares with: the numbers of PyTorch twins of the programs here.

The files are in the repository; this script says how they came about. Run from the root, with PyTorch
and NumPy installed:

    python3 tests/programs/make_programs.py [NAME...]

NAME.mdl           a program as somebody writes it who comes from PyTorch
NAME.csv           its rows, where it does not read those of samples/data or text.txt; made up by TABLES
NAME.safetensors   the weights both begin with, drawn by PyTorch in single precision
NAME.txt           a line for each number that a step reports (loss, metrics, the norm of each gradient):
                   TRAIN.NAME, then its value in each step; for the results of the entry `probe`, which
                   is called after the last step, probe.NAME, then all elements

A twin is a function of the same name in one of the files twins_*.py: plain PyTorch, which is given a
`Twin` to report to. It runs in double precision, which gives the numbers, and in single: where that alone
is further off than the tolerances of the suite, the numbers would say little, and this script ends.
"""
import importlib
import json
import os
import re
import struct
import sys
from collections import OrderedDict

import numpy as np
import torch
from torch import nn

FOLDER = "tests/programs/"
STEPS = 5
FIRST, LATER = 1e-5, 1e-4  # tolerances of the suite

# Rows and columns of the tables: a number n is a column of 0..n-1, f one of numbers in -1..1.
TABLES = {
    "ppo": (40, ["f"] * 4 + [3, "f", "f", "f"]),
    "dqn": (40, ["f"] * 4 + [2, "f"] + ["f"] * 4 + [2]),
    "a2c": (15, ["f"] * 21 + [3] * 6 + ["f"] * 6),
    "factor": (60, [7, 6, "f", 2]),
    "sets": (40, ["f"] * 15 + [6, "f"]),
}


class Twin:
    """What a twin reports to. With `dtype` the precision of this run."""

    def __init__(self, name, dtype):
        self.name, self.dtype, self.rows, self.weights, self.keys = name, dtype, {}, {}, {}

    def models(self, rename=None, several=False, **modules):
        """The modules in this precision, in the order given. Their values become the file of weights,
        under the names that mdlc gives them: with the model's in front where there are several.
        `rename(name)` gives the path in the program for a name in the module; paths that are equal
        are the layers of a `repeat`, whose norm is one."""
        for model, module in modules.items():
            prefix = model + "." if several or len(modules) > 1 else ""
            for name, value in module.state_dict().items():
                if value.is_floating_point():
                    self.weights[prefix + name] = value.detach().clone().float()
            module.to(self.dtype)
            for name, parameter in module.named_parameters():
                path = rename(name) if rename else name
                self.keys[parameter] = ("grad_" + model + "." + path).replace(".", "_")
        return modules[next(iter(modules))] if len(modules) == 1 else tuple(modules.values())

    def add(self, name, value):
        self.rows.setdefault(name, []).append(float(torch.as_tensor(value).detach()))

    def report(self, train, loss, *optimizers, **metrics):
        """One step: its loss, metrics, and the norms of the gradients of what the optimizers update."""
        self.add(train + ".loss", loss)
        for name, value in metrics.items():
            self.add(f"{train}.{name}", value)
        squares = {}
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                for p in group["params"]:
                    squares.setdefault(self.keys[p], []).append((p.grad.double() ** 2).sum())
        for name, parts in squares.items():
            self.add(f"{train}.{name}", sum(parts).sqrt())

    def update(self, train, loss, *optimizers, clip=None, **metrics):
        """The usual step: gradients, report, clip, move."""
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        self.report(train, loss, *optimizers, **metrics)
        if clip:
            clip([p for o in optimizers for g in o.param_groups for p in g["params"]])
        for optimizer in optimizers:
            optimizer.step()

    def probe(self, **results):
        for name, value in results.items():
            self.rows["probe." + name] = [float(v) for v in value.detach().flatten()]

    # ---- data: five batches in the order of the file ---------------------------------------------

    def table(self, path):
        with open(path) as file:
            lines = file.read().split()
        if not re.match(r"[-0-9.]", lines[0]):
            del lines[0]
        return torch.tensor([[float(v) for v in line.split(",")] for line in lines], dtype=torch.float64)

    def batches(self, rows, size):
        return [rows[i * size:(i + 1) * size] for i in range(STEPS)]

    def digits(self, size):
        """Batches (pictures [size, 64] in 0..1, labels)."""
        rows = self.table("samples/data/digits.csv")
        return [(b[:, :64].to(self.dtype) / 16, b[:, 64].long()) for b in self.batches(rows, size)]

    def diabetes(self, size):
        """Batches (ten standardized columns, target)."""
        rows = self.table("samples/data/diabetes.csv")
        return [(b[:, :10].to(self.dtype), b[:, 10].to(self.dtype)) for b in self.batches(rows, size)]

    def columns(self, size):
        """Batches of the rows of NAME.csv."""
        return [b.to(self.dtype) for b in self.batches(self.table(FOLDER + self.name + ".csv"), size)]

    def chars(self, size, length):
        """Batches of windows of a text (characters, the next characters)."""
        with open(FOLDER + "text.txt", "rb") as file:
            text = torch.tensor(list(file.read(STEPS * size * length + 1)))
        here = text[:-1].reshape(-1, length)
        following = text[1:].reshape(-1, length)
        return list(zip(self.batches(here, size), self.batches(following, size)))

    def stream(self, size, length):
        """Batches of the same text, each of whose rows goes on where it ended in the batch before."""
        with open(FOLDER + "text.txt", "rb") as file:
            text = torch.tensor(list(file.read()))
        each = (len(text) - 1) // length // size * length
        rows = [torch.stack([text[b * each + first:][:each] for b in range(size)]) for first in (0, 1)]
        return [tuple(r[:, i * length:(i + 1) * length] for r in rows) for i in range(STEPS)]


def chain(**parts):
    """A Sequential with names."""
    return nn.Sequential(OrderedDict(parts))


class Pack(nn.Module):
    """Modules and parameters under names, for twins that write out what they compute."""

    def __init__(self, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, nn.Parameter(part) if isinstance(part, torch.Tensor) else part)


def right(logits, y):
    return (logits.argmax(-1) == y).double().mean()


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = np.ascontiguousarray(tensor.numpy(), dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


def write_table(name, rows, columns):
    with open(FOLDER + name + ".csv", "w", newline="\n") as out:
        for i in range(rows):
            cells = []
            for j, kind in enumerate(columns):
                u = (np.sin(12.9898 * (i + 1) + 78.233 * (j + 1)) * 43758.5453) % 1
                cells.append(f"{2 * u - 1:.3f}" if kind == "f" else str(int(u * kind)))
            out.write(",".join(cells) + "\n")


def off(got, want):
    """The relative errors of a row: in the first step, and the largest of the later ones. Of the
    results of `probe`, the Euclidean norm of the difference counts, as later."""
    def error(a, b):
        return abs(a - b) / (abs(b) if abs(b) > 1e-12 else 1)
    return error(got[0], want[0]), max(map(error, got[1:], want[1:]))


def make(name, twin):
    if name in TABLES:
        write_table(name, *TABLES[name])
    exact, single = Twin(name, torch.float64), Twin(name, torch.float32)
    for t in exact, single:
        torch.manual_seed(sum(map(ord, name)))
        twin(t)
    if not all(map(torch.equal, exact.weights.values(), single.weights.values())):
        raise SystemExit(f"{name}: the weights of both precisions differ")
    worst = [0, 0]
    for row, want in exact.rows.items():
        if row.startswith("probe."):
            a, b = np.array(single.rows[row]), np.array(want)
            errors = 0, np.linalg.norm(a - b) / np.linalg.norm(b)
        else:
            errors = off(single.rows[row], want)
            if len(want) != STEPS:
                raise SystemExit(f"{name}: {row} has {len(want)} values")
        for i, limit in enumerate((FIRST, LATER)):
            worst[i] = max(worst[i], errors[i])
            if not errors[i] <= limit:
                print(f"{name}: {row} is off by {errors[i]:.2g} in single precision: {single.rows[row]} for {want}")
    print(f"{name}: PyTorch in single precision is off by {worst[0]:.2g} in the first step, {worst[1]:.2g} later")
    if exact.weights:
        write_safetensors(FOLDER + name + ".safetensors", exact.weights)
    with open(FOLDER + name + ".txt", "w", newline="\n") as out:
        for row, values in exact.rows.items():
            out.write(" ".join([row] + [f"{v:.13g}" for v in values]) + "\n")
    return worst[0] <= FIRST and worst[1] <= LATER


def main(names):
    sys.path.insert(0, FOLDER)
    twins = {}
    for file in sorted(os.listdir(FOLDER)):
        if file.startswith("twins_"):
            module = importlib.import_module(file[:-3])
            twins.update({k: v for k, v in vars(module).items()
                          if getattr(v, "__module__", "") == module.__name__ and k.islower() and not k.startswith("_")})
    missing = [n for n in twins if not os.path.exists(f"{FOLDER}{n}.mdl")]
    if missing:
        print("no program for the twins " + ", ".join(missing))
    torch.set_num_threads(1)
    good = [make(name, twins[name]) for name in names or twins]
    sys.exit(not all(good))


if __name__ == "__main__":
    sys.modules["make_programs"] = sys.modules["__main__"]  # what twins import from here
    main(sys.argv[1:])
