"""The least work that repetitions must cost: a lower bound by mixed integer programming (SciPy).

usage: layer_optima.py FILE.txt TENTHS SECONDS, TENTHS of the peak without repetition

Stage t ends with the first run of step t. S[t, i]: the result of step i lives as stage t begins;
R[t, i]: step i runs again in stage t. What a step reads lives or has run in its stage; when step t
runs, its operands, its result and what lives as the next stage begins must fit. What lives while
other steps run again is left out, so the optimum is a lower bound of what any plan costs; a plan of
that cost proves that it is the least.
"""
import sys

import numpy as np
import scipy.sparse as sparse
from scipy.optimize import Bounds, LinearConstraint, milp

lines = [line.split() for line in open(sys.argv[1])]
count = len(lines)
cost, size = ([float(line[k]) for line in lines] for k in (1, 2))
reads = [[int(x) for x in line[3:]] for line in lines]
last = list(range(count))
for t in range(count):
    for x in reads[t]:
        last[x] = t
peak = max(size[t] + sum(size[i] for i in range(t) if last[i] >= t) for t in range(count))
limit = int(peak) // 10 * int(sys.argv[2])

# what can be asked for from stage t on: all that steps from there on are made of
asked = [set() for _ in range(count + 1)]
made_of = set()
for t in reversed(range(count)):
    more = list(reads[t])
    while more:
        x = more.pop()
        if x not in made_of:
            made_of.add(x)
            more += reads[x]
    asked[t] = {x for x in made_of if x < t}

number = {}
for t in range(1, count):
    for i in sorted(asked[t]):
        number["S", t, i] = len(number)
        number["R", t, i] = len(number)
terms, low, high = [], [], []


def require(term, least, most):
    terms.append(term)
    low.append(least)
    high.append(most)


for t in range(1, count):
    for i in asked[t]:
        lives, runs = number["S", t, i], number["R", t, i]
        if i in reads[t]:
            require({lives: 1, runs: 1}, 1, np.inf)
        if i < t - 1:
            require({lives: 1, number["S", t - 1, i]: -1, number["R", t - 1, i]: -1}, -np.inf, 0)
        for x in reads[i]:
            require({runs: 1, number["S", t, x]: -1, number["R", t, x]: -1}, -np.inf, 0)
    room = limit - size[t] - sum(size[x] for x in reads[t])
    if room < 0:
        sys.exit("step %d does not fit" % t)
    behind = {
        number["S", t + 1, i]: size[i] / 1e6
        for i in asked[t + 1]
        if i != t and i not in reads[t] and size[i] > 0
    }
    if behind:
        require(behind, -np.inf, room / 1e6)

matrix = sparse.lil_matrix((len(terms), len(number)))
for k, term in enumerate(terms):
    for j, value in term.items():
        matrix[k, j] = value
work, whole = np.zeros(len(number)), np.zeros(len(number))
for (kind, _, i), j in number.items():
    work[j] = 100 * cost[i] / sum(cost) if kind == "R" else 0
    whole[j] = kind == "S" and size[i] > 0  # the others are whole where these are
found = milp(
    work,
    constraints=LinearConstraint(matrix.tocsr(), low, high),
    integrality=whole,
    bounds=Bounds(0, 1),
    options={"time_limit": float(sys.argv[3]), "mip_rel_gap": 1e-6},
)
print("at least %.6f %% more, status %d" % (found.mip_dual_bound, found.status))
