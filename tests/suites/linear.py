"""What a solver of y' = k A y has to give: prints what is off, nothing if all is well.

    linear.py KIND K FILE STEPS [FILE STEPS ...]   FILE: what the entry `solve` of linear.mdl prints

With several files also how the error falls from the first to the second one.

The tableau is that of tests/tools/tsit5.py; expm is its series.
"""
import math
import os
import sys

sys.dont_write_bytecode = True  # nothing is left in the tree
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from tsit5 import ROWS, WEIGHTS  # noqa: E402

N, T, K = 3, 1.0, float(sys.argv[2])
X = [0.3, -1.2, 0.8]
A = [[math.sin(1 + 2 * i + 5 * j) for j in range(N)] for i in range(N)]


def field(y, k):
    return [k * sum(A[i][j] * y[j] for j in range(N)) for i in range(N)]


def tsit5(x, k, steps):
    y, h = list(x), T / steps
    for _ in range(steps):
        slopes = []
        for row in ROWS:
            slopes.append(field([y[i] + h * sum(w * s[i] for w, s in zip(row, slopes)) for i in range(N)], k))
        y = [y[i] + h * sum(w * s[i] for w, s in zip(WEIGHTS, slopes)) for i in range(N)]
    return y


def expm(x, k):
    total, term = list(x), list(x)
    for n in range(1, 60):
        term = [v * T / n for v in field(term, k)]
        total = [a + b for a, b in zip(total, term)]
    return total


def loss(x, k):
    y = expm(x, k)
    return sum(math.sin(v) for v in y) + (k * T * sum(A[i][i] for i in range(N))) ** 2


def difference(f, h=1e-3):
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def read(path):
    out = {}
    for line in open(path):
        name, _, rest = line.partition("=")
        out[name.split()[0]] = [float(w) for w in rest.replace(",", " ").replace("[", " ").replace("]", " ").split() if w[0] in "-.0123456789in"]
    return out


def off(a, b):
    return max(abs(p - q) for p, q in zip(a, b))


def expect(what, error, bound):
    if not error <= bound:
        print("%s: off by %g, at most %g" % (what, error, bound))


kind, files = sys.argv[1], list(zip(sys.argv[3::2], map(int, sys.argv[4::2])))
tight, exact, errors = kind == "f64", expm(X, K), []
trace = K * T * sum(A[i][i] for i in range(N))
along = [difference(lambda h: expm(X, K + h)[i]) for i in range(N)]
dx = [difference(lambda h: loss([v + h * (i == j) for j, v in enumerate(X)], K)) for i in range(N)]
dk = difference(lambda h: loss(X, K + h))
for path, steps in files:
    got, name = read(path), "%s, %d steps" % (kind, steps)
    errors.append(off(got["y"], exact))
    expect(name + ", trace", abs(got["d"][0] - trace), 1e-13 if tight else 1e-6)
    expect(name + ", the same solver", off(got["y"], tsit5(X, K, steps)), 1e-12 if tight else 1e-6)
    expect(name + ", expm", errors[-1], 1e-6)
    expect(name + ", gradients", max(off(got["dx"], dx), abs(got["dk"][0] - dk)), 1e-6 if tight else 1e-5)
    expect(name + ", along k", off(got["along"], along), 1e-6 if tight else 1e-5)
    expect(name + ", what is kept", got["differ"][0], 0)
if len(errors) > 1:
    order = math.log2(errors[0] / errors[1])
    expect("order %.2f" % order, abs(order - 5), 0.3)
