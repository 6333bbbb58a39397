"""Single operations beside PyTorch's on this machine, in turn: `ops.py MDLC CC FLAGS FOLDER THREADS`.

For each row an entry is compiled that computes it of uniform random numbers (integers below their range),
and timed by ops.c; PyTorch runs the same on tensors of the same shapes. Three rounds in turn, the least of
each; the median round counts. bench.sh calls this with the Python that has PyTorch.
"""
import statistics
import subprocess
import sys
import time

import torch

# name, inputs of the entry, its results, the same in PyTorch of the list v
ROWS = [
    ("top_k 1 of 50,000", "x: f32[1, 50_000]", "t = top_k(x, 1); return v = t.values, i = t.indices;",
     lambda v: torch.topk(v[0], 1)),
    ("top_k 40 of 50,000", "x: f32[1, 50_000]", "t = top_k(x, 40); return v = t.values, i = t.indices;",
     lambda v: torch.topk(v[0], 40)),
    ("top_k 100 of 10^6", "x: f32[1, 1_000_000]", "t = top_k(x, 100); return v = t.values, i = t.indices;",
     lambda v: torch.topk(v[0], 100)),
    ("top_k 2 of 1024 x 64", "x: f32[1_024, 64]", "t = top_k(x, 2); return v = t.values, i = t.indices;",
     lambda v: torch.topk(v[0], 2)),
    ("top_k 4 of 64 x 1000", "x: f32[64, 1_000]", "t = top_k(x, 4); return v = t.values, i = t.indices;",
     lambda v: torch.topk(v[0], 4)),
    ("top_k 40 of 64 x 1000", "x: f32[64, 1_000]", "t = top_k(x, 40); return v = t.values, i = t.indices;",
     lambda v: torch.topk(v[0], 40)),
    ("top_k 200 of 64 x 1000", "x: f32[64, 1_000]", "t = top_k(x, 200); return v = t.values, i = t.indices;",
     lambda v: torch.topk(v[0], 200)),
    ("top_k 40 of 32 x 50257", "x: f32[32, 50_257]", "t = top_k(x, 40); return v = t.values, i = t.indices;",
     lambda v: torch.topk(v[0], 40)),
    ("top_k 5000 of 10^6", "x: f32[1, 1_000_000]", "t = top_k(x, 5_000); return v = t.values, i = t.indices;",
     lambda v: torch.topk(v[0], 5000)),
    ("sort 4096 x 4", "x: f32[4_096, 4]", "return v = sort(x), i = argsort(x);",
     lambda v: torch.sort(v[0], stable=True)),
    ("sort 1024 x 16", "x: f32[1_024, 16]", "return v = sort(x), i = argsort(x);",
     lambda v: torch.sort(v[0], stable=True)),
    ("sort 1024 x 64", "x: f32[1_024, 64]", "return v = sort(x), i = argsort(x);",
     lambda v: torch.sort(v[0], stable=True)),
    ("sort 64 x 1000", "x: f32[64, 1_000]", "return v = sort(x), i = argsort(x);",
     lambda v: torch.sort(v[0], stable=True)),
    ("sort 50,000", "x: f32[1, 50_000]", "return v = sort(x), i = argsort(x);",
     lambda v: torch.sort(v[0], stable=True)),
    ("sort 10^6", "x: f32[1, 1_000_000]", "return v = sort(x), i = argsort(x);",
     lambda v: torch.sort(v[0], stable=True)),
    ("segment_sum 10^5 x 32", "x: f32[100_000, 32], i: i32[100_000] in 0..1000", "return segment_sum(x, i, 1000);",
     lambda v: torch.zeros(1000, 32).index_add_(0, v[1], v[0])),
    ("scatter_add 10^6", "x: f32[1_000_000], i: i32[1_000_000] in 0..5000",
     "return scatter_add(zeros([5000]), i, x);", lambda v: torch.zeros(5000).index_add_(0, v[1], v[0])),
]


def inputs_of(text):
    for part in text.split("], "):
        kind, dims = part.split(": ")[1].rstrip("]").split("[")
        most = int(dims.split("..")[1]) if ".." in dims else 0
        shape = [int(n) for n in dims.split("]")[0].replace("_", "").split(",")]
        yield shape, most


def tensor(shape, most):
    return torch.randint(most, shape) if most else torch.rand(shape)


def least_ms(step, seconds=0.3):
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def main(mdlc, cc, flags, folder, threads):
    torch.set_num_threads(int(threads))
    for name, inputs, results, peer in ROWS:
        file = folder + "/ops.mdl"
        with open(file, "w") as out:
            out.write(f"entry go({inputs}) {{ {results} }}\n")
        subprocess.check_call([mdlc, "--no-main", "--prefix", "op", file, "-o", folder + "/op.c", "-H", folder + "/op.h"])
        taken = list(inputs_of(inputs))
        fill = " ".join(f"FILL(given_{t}, {t}, {n}, {most})" for (shape, most), t, n in
                        zip(taken, ("float", "int32_t"), (torch.Size(s).numel() for s, _ in taken)))
        give = ", ".join(f"given_{t}" for _, t in zip(taken, ("float", "int32_t")))
        subprocess.check_call([cc, *flags.split(), "-D_POSIX_C_SOURCE=200809L", "-std=gnu11", "-I" + folder, f"-DFILLED={fill}",
                               f"-DGIVEN={give}", "tests/bench/ops.c", folder + "/op.c", "-lm", "-o", folder + "/op"])
        values = [tensor(*t) for t in taken]
        with torch.no_grad():
            rounds = [(float(subprocess.check_output([folder + "/op"])), least_ms(lambda: peer(values))) for _ in range(3)]
        ours, theirs = (statistics.median(column) for column in zip(*rounds))
        print(f"{name:24} {threads:>7} {ours:11.4f} {theirs:11.4f} {theirs / ours:7.2f}", flush=True)


main(*sys.argv[1:])
