"""Trains the model of regress.mdl from Python, as regress.cpp does from C++: its own data, its own loop.

    mdlc --no-main --threads=1 --report=json samples/hosts/regress.mdl -o regress.c >regress.json
    cc -O3 -march=native -shared -fPIC regress.c -lm -o regress.so
    python3 samples/hosts/regress.py regress.so regress.json samples/data/diabetes.csv regress.safetensors
"""
import sys
from array import array

from mdlc_host import Model

BATCH, WIDTH, EPOCHS, EVERY = 32, 10, 20, 5


def read_table(path):
    """Inputs and targets, to train on and held out; every fifth row is held out."""
    train, held = (array("f"), array("f")), (array("f"), array("f"))
    with open(path, encoding="utf-8") as file:
        next(file)  # names of the columns
        for row, line in enumerate(file):
            x, y = held if row % EVERY == EVERY - 1 else train
            values = [float(cell) for cell in line.split(",")]
            x.extend(values[:WIDTH])
            y.append(values[WIDTH] / 100)
    return train, held


def batch(rows, first):
    """A batch from row `first` on, filled up with zeros, and how many rows count."""
    x, y = rows
    used = min(BATCH, len(y) - first)
    return used, {"x": x[first * WIDTH:(first + used) * WIDTH] + array("f", bytes(4 * WIDTH * (BATCH - used))),
                  "y": y[first:first + used] + array("f", bytes(4 * (BATCH - used)))}


def main(library, report, table, weights):
    train, held = read_table(table)
    net = Model(library, report)
    net.init(0)
    for _ in range(EPOCHS):
        for first in range(0, len(train[1]) - BATCH + 1, BATCH):
            net.call("fit", **batch(train, first)[1])
    parts = []
    for first in range(0, len(held[1]), BATCH):
        used, inputs = batch(held, first)
        parts.append(net.call("fit_eval", rows=used, **inputs))
    figures = net.evaluate("fit", parts)
    print(f"{len(held[1])} rows: loss {figures.loss:.8g}, r2 {figures.r2:.8g}")
    net.save(weights)

    second = Model(library, report)
    second.load(weights)
    mine, theirs = net.tensors()["head.weight"], second.tensors()["head.weight"]
    if mine.shape != (1, 16) or mine.tolist() != theirs.tolist():
        raise SystemExit("the loaded weights are others")
    theirs[0, 3] += 1  # into the model's memory
    x = array("f", held[0][:WIDTH])
    if second.call("predict", x=x).y[0] == net.call("predict", x=x).y[0]:
        raise SystemExit("a changed weight changes no answer")


main(*sys.argv[1:])
