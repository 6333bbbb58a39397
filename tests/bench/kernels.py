"""Kernels beside the machine's limit: `kernels.py MDLC CC FLAGS FOLDER [NAME...]`.

Each row is a small train whose layer `kernel` is measured by its own profile (`mdlc --profile`), where it
stands: between layers that read and write what it does, behind them in memory. The limit is that of
profiles: FLOPs that are needed over the rate of multiply-adds, or bytes that must move once over that of
memory, whichever takes longer. Without NAMEs all tables: products, convolutions, depthwise.
"""
import json
import os
import subprocess
import sys

# m, n, k: rows of the batch, columns, sum
PRODUCTS = [(64, 512, 784), (64, 512, 512), (64, 2048, 512), (64, 512, 2048), (128, 128, 128), (128, 1024, 256),
            (256, 256, 256), (256, 768, 768), (256, 2304, 768), (256, 3072, 768), (256, 768, 3072), (512, 512, 512),
            (768, 128, 128), (768, 384, 128), (768, 512, 128), (768, 128, 512), (1000, 1000, 1000), (1024, 1024, 1024),
            (1536, 384, 384), (2048, 256, 1024)]
# batch, channels in and out, side, kernel, stride, padding
CONVOLUTIONS = [(64, 32, 64, 14, 3, 1, 1), (64, 16, 16, 32, 3, 1, 1), (32, 16, 32, 32, 3, 2, 1), (32, 32, 32, 16, 3, 1, 1),
                (32, 32, 64, 16, 3, 2, 1), (32, 64, 64, 8, 3, 1, 1), (32, 64, 64, 16, 3, 1, 1), (16, 64, 64, 32, 3, 1, 1),
                (16, 64, 128, 32, 3, 2, 1), (16, 128, 128, 16, 3, 1, 1), (8, 128, 256, 16, 3, 2, 1), (8, 256, 256, 8, 3, 1, 1),
                (8, 64, 64, 56, 3, 1, 1), (4, 128, 128, 28, 3, 1, 1), (32, 64, 64, 16, 1, 1, 0), (16, 64, 256, 16, 1, 1, 0),
                (16, 256, 64, 16, 1, 1, 0), (64, 16, 32, 14, 5, 1, 2), (32, 32, 32, 28, 5, 1, 2), (8, 32, 64, 28, 7, 2, 3)]
# batch, channels, side, kernel, stride
DEPTHWISE = [(32, 64, 32, 3, 1), (32, 128, 16, 3, 1), (32, 128, 32, 3, 2), (32, 256, 16, 3, 1), (32, 256, 8, 3, 1),
             (16, 32, 56, 3, 1), (16, 96, 56, 3, 2), (16, 144, 28, 3, 1), (16, 64, 28, 5, 1), (8, 512, 14, 3, 1)]


def program(body):
    return f"use nn;\n{body}\ntrain fit() of net {{\n    loss mean(net() * net());\n    optimizer sgd(lr = 1e-6);\n    steps 1;\n}}\n"


def products():
    for m, n, k in PRODUCTS:
        yield f"{m} x {n} x {k}", f"""
model net() -> [{m}, 8] {{
    param rows: [{m}, 32] ~ normal(0, 1);
    return rows |> before: linear({k}) |> relu |> kernel: linear({n}, use_bias = false) |> relu |> behind: linear(8);
}}"""


def convolutions():
    for b, c, o, side, k, stride, pad in CONVOLUTIONS:
        after = (side + 2 * pad - k) // stride + 1
        yield f"{b} x {c} x {side}^2, {o} {k}x{k} / {stride}", f"""
model net() -> [{b}, 8, {after}, {after}] {{
    param image: [{b}, 8, {side}, {side}] ~ normal(0, 1);
    return image |> before: conv2d({c}, k = 3, pad = 1) |> relu
        |> kernel: conv2d({o}, k = {k}, stride = {stride}, pad = {pad}, use_bias = false) |> relu |> behind: conv2d(8, k = 3, pad = 1);
}}"""


def depthwise():
    for b, c, side, k, stride in DEPTHWISE:
        after = (side + k // 2 * 2 - k) // stride + 1
        yield f"{b} x {c} x {side}^2, {k}x{k} / {stride}", f"""
model net() -> [{b}, 8, {after}, {after}] {{
    param image: [{b}, 8, {side}, {side}] ~ normal(0, 1);
    return image |> before: conv2d({c}, k = 3, pad = 1) |> relu
        |> kernel: conv2d({c}, k = {k}, stride = {stride}, pad = {k // 2}, groups = {c}, use_bias = false) |> relu
        |> behind: conv2d(8, k = 3, pad = 1);
}}"""


TABLES = {"products": products, "convolutions": convolutions, "depthwise": depthwise}


def calls_of(mdlc, cc, flags, folder, body):
    """The calls of layer net.kernel, as the profile of the program says."""
    path = os.path.join(folder, "kernel")
    with open(path + ".mdl", "w") as out:
        out.write(program(body))
    subprocess.check_call([mdlc, "--profile", path + ".mdl", "-o", path + ".c"])
    subprocess.check_call([cc, *flags.split(), path + ".c", "-o", path, "-lm"])
    steps = 3
    while True:
        lines = subprocess.check_output([path, "--steps", str(steps), "--log", "json"], text=True).splitlines()
        events = [json.loads(line) for line in lines if '"event":"profile' in line]
        rate = next(e for e in events if e["event"] == "profile")
        calls = [e for e in events if e["event"] == "profile_call" and e["layer"] == "net.kernel"]
        if steps > 3:
            return rate, calls
        steps = max(20, min(3000, int(0.6 / sum(c["seconds"] / c["count"] for c in calls))))


def role(call):
    if call["part"] == "forward":
        return "forward"
    return "by weights" if "_weight_" in call["kernel"] or call["part"] == "update" else "by input"


def main(mdlc, cc, flags, folder, *names):
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    for table in names or TABLES:
        print(f"{table:34} threads   forward   by input   by weights   of the limit (GFLOP/s, GB/s)")
        for name, body in TABLES[table]():
            rate, calls = calls_of(mdlc, cc, flags, folder, body)
            shares = []
            for what in ("forward", "by input", "by weights"):
                mine = [c for c in calls if role(c) == what]
                taken = sum(c["seconds"] for c in mine)
                shares.append(sum(c["limit_seconds"] for c in mine) / taken if taken else float("nan"))
            print(f"{name:34} {threads:>7} {shares[0]:9.2f} {shares[1]:10.2f} {shares[2]:12.2f}   "
                  f"({rate['f32_flops_per_second'] / 1e9:.0f}, {rate['bytes_per_second'] / 1e9:.0f})", flush=True)


main(*sys.argv[1:])
