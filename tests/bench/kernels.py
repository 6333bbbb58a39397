"""Kernels beside the machine's limit: `kernels.py MDLC CC FLAGS FOLDER [NAME...]`.

Each row is a small train whose layer `kernel` is measured by its own profile (`mdlc --profile`), where it
stands: between layers that read and write what it does, behind them in memory. The limit is that of
profiles: FLOPs that are needed over the rate of multiply-adds, or bytes that must move once over that of
memory, whichever takes longer.

Functions of rows and attention are entries instead, called by ops.c. Their limit is the rate at which memory
is copied, for what must be read and written once, forward and backward; that of attention the rate of
multiply-adds, half of them where it is causal, and beside it stands PyTorch's fused attention where this
Python has PyTorch, in turn. Without NAMEs all tables.
"""
import json
import os
import subprocess
import sys
import time

try:
    import torch
except ImportError:
    torch = None

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
                (16, 256, 64, 16, 1, 1, 0), (64, 16, 32, 14, 5, 1, 2), (32, 32, 32, 28, 5, 1, 2), (8, 32, 64, 28, 7, 2, 3),
                # the last layers of a ResNet-18
                (16, 512, 512, 7, 3, 1, 1), (64, 512, 512, 4, 3, 1, 1)]
# the same along three axes
VOLUMES = [(4, 16, 16, 32, 3, 1, 1), (4, 16, 32, 16, 3, 1, 1), (4, 16, 32, 32, 3, 2, 1), (4, 32, 32, 16, 3, 1, 1), (2, 32, 64, 32, 3, 2, 1),
           (4, 32, 64, 16, 3, 1, 1), (2, 64, 64, 16, 3, 1, 1), (2, 64, 64, 32, 3, 1, 1), (4, 64, 128, 16, 3, 2, 1), (4, 8, 16, 32, 3, 1, 1),
           (4, 32, 32, 16, 2, 2, 0), (4, 64, 64, 16, 1, 1, 0), (8, 128, 128, 8, 3, 1, 1)]
# batch, channels, side, kernel, stride
DEPTHWISE = [(32, 64, 32, 3, 1), (32, 128, 16, 3, 1), (32, 128, 32, 3, 2), (32, 256, 16, 3, 1), (32, 256, 8, 3, 1),
             (16, 32, 56, 3, 1), (16, 96, 56, 3, 2), (16, 144, 28, 3, 1), (16, 64, 28, 5, 1), (8, 512, 14, 3, 1)]
# rows, columns
ROWS = [(16384, 768), (131072, 96), (256, 50257)]
# what is made of them in a model, the same as an op
FUNCTIONS = [("softmax", "softmax(x)"), ("layernorm", "ln: layernorm(x)"), ("rmsnorm", "ln: rmsnorm(x)"), ("gelu", "gelu(x)"),
             ("gelu_tanh", "gelu_tanh(x)"), ("silu", "silu(x)")]
# batch, heads, words, width of a head
ATTENTION = [(32, 8, 64, 32), (32, 4, 64, 64), (16, 4, 128, 64), (8, 4, 256, 64), (4, 4, 512, 64), (2, 4, 1024, 64), (1, 4, 2048, 64)]


def program(body):
    return f"use nn;\n{body}\ntrain fit() of net {{\n    loss mean(net() * net());\n    optimizer sgd(lr = 1e-6);\n    steps 1;\n}}\n"


def products():
    for m, n, k in PRODUCTS:
        yield f"{m} x {n} x {k}", f"""
model net() -> [{m}, 8] {{
    param rows: [{m}, 32] ~ normal(0, 1);
    return rows |> before: linear({k}) |> relu |> kernel: linear({n}, use_bias = false) |> relu |> behind: linear(8);
}}"""


def between(layer, axes, b, c, o, side, k, stride, pad):
    after = ", ".join([str((side + 2 * pad - k) // stride + 1)] * axes)
    yield f"{b} x {c} x {side}^{axes}, {o} {'x'.join([str(k)] * axes)} / {stride}", f"""
model net() -> [{b}, 8, {after}] {{
    param image: [{b}, 8, {", ".join([str(side)] * axes)}] ~ normal(0, 1);
    return image |> before: {layer}({c}, k = 3, pad = 1) |> relu
        |> kernel: {layer}({o}, k = {k}, stride = {stride}, pad = {pad}, use_bias = false) |> relu |> behind: {layer}(8, k = 3, pad = 1);
}}"""


def convolutions():
    for shape in CONVOLUTIONS:
        yield from between("conv2d", 2, *shape)


def volumes():
    for shape in VOLUMES:
        yield from between("conv3d", 3, *shape)


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


def called(mdlc, cc, flags, folder, text, sizes):
    """Compiles entry `go` of `text` with float inputs of such sizes; gives the program."""
    path = os.path.join(folder, "op")
    with open(path + ".mdl", "w") as out:
        out.write("use nn;\n" + text)
    subprocess.check_call([mdlc, "--no-main", "--prefix", "op", path + ".mdl", "-o", path + ".c", "-H", path + ".h"])
    names = [f"in{i}" for i in range(len(sizes))]
    fill = " ".join(f"FILL({name}, float, {size}, 0)" for name, size in zip(names, sizes))
    program = f"{path}-{abs(hash(text)):x}"
    subprocess.check_call([cc, *flags.split(), "-D_POSIX_C_SOURCE=200809L", "-std=gnu11", "-I" + folder, f"-DFILLED={fill}",
                           "-DGIVEN=" + ", ".join(names), "tests/bench/ops.c", path + ".c", "-lm", "-o", program])
    return program


def limits(cc, flags, folder):
    """GFLOP/s and GB/s on as many threads as there are."""
    path = os.path.join(folder, "limit")
    subprocess.check_call([cc, *flags.split(), "-D_POSIX_C_SOURCE=200809L", "-I.", "tests/bench/limit.c", "-o", path, "-lm"])
    return [float(word) for word in subprocess.check_output([path], text=True).split()]


def milliseconds(program):
    """The median of three."""
    return sorted(float(subprocess.check_output([program])) for _ in range(3))[1]


def rows(mdlc, cc, flags, folder, threads):
    print(f"{'rows':34} threads   forward ms   backward ms   of copying: forward   backward   (GB/s)")
    for m, n in ROWS:
        for name, text in FUNCTIONS:
            shape = f"[{m}, {n}]"
            net = f"model net(x: {shape}) -> {shape} {{ return {text}; }}\n"
            weights = [w for w in ("weight", "bias") if "ln:" in text and (w, name) != ("bias", "rmsnorm")]
            results = "".join(f", d_{w} = vjp(y, net.ln.{w}, d)" for w in weights)
            forward = called(mdlc, cc, flags, folder, net + f"entry go(x: f32{shape}) {{ return net(x); }}\n", [m * n])
            back = called(mdlc, cc, flags, folder, net + f"entry go(x: f32{shape}, d: f32{shape}) {{ y = net(x); "
                          f"return dx = vjp(y, x, d){results}; }}\n", [m * n, m * n])
            rate = limits(cc, flags, folder)[1]
            taken = milliseconds(forward), milliseconds(back)
            share = [4e-6 * m * n * times / rate / ms for times, ms in zip((2, 3), taken)]
            print(f"{f'{name} {m} x {n}':34} {threads:>7} {taken[0]:12.3f} {taken[1]:13.3f} {share[0]:21.2f} {share[1]:10.2f}   "
                  f"({rate:.0f})", flush=True)


def fused(b, h, t, d, causal, backward):
    """Milliseconds of PyTorch's fused attention, the least of those in 0.3 s."""
    if torch is None:
        return float("nan")
    q, k, v, u = (torch.rand(b, h, t, d, requires_grad=backward) for _ in range(4))

    def step():
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        if backward:
            torch.autograd.grad(y, (q, k, v), u)

    best, end = float("inf"), time.perf_counter() + 0.3
    while time.perf_counter() < end:
        start = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def attention(mdlc, cc, flags, folder, threads):
    if torch is not None and threads != "all":
        torch.set_num_threads(int(threads))
    print(f"{'attention':34} threads   forward ms   fused ms   ratio   share   with backward ms   fused ms   ratio   share   (GFLOP/s)")
    for b, h, t, d in ATTENTION:
        for causal in (False, True):
            size, shape = b * h * t * d, f"f32[{b}, {h}, {t}, {d}]"
            y = f"attend(q, k, v, causal = {str(causal).lower()})"
            inputs = ", ".join(f"{name}: {shape}" for name in "qkv")
            forward = called(mdlc, cc, flags, folder, f"entry go({inputs}) {{ return {y}; }}\n", [size] * 3)
            both = called(mdlc, cc, flags, folder, f"entry go({inputs}, u: {shape}) {{ y = {y}; return y = y, "
                          + ", ".join(f"d_{name} = vjp(y, {name}, u)" for name in "qkv") + "; }\n", [size] * 4)
            rate = limits(cc, flags, folder)[0]
            turns = [[milliseconds(forward), fused(b, h, t, d, causal, False), milliseconds(both), fused(b, h, t, d, causal, True)]
                     for _ in range(3)]
            mine, theirs, mine_both, theirs_both = (sorted(column)[1] for column in zip(*turns))
            flops = 4e-6 * size * t * (0.5 if causal else 1) / rate
            print(f"{f'{b} x {h} x {t} x {d}' + (' causal' if causal else ''):34} {threads:>7} {mine:12.3f} {theirs:10.3f} "
                  f"{theirs / mine:7.2f} {flops / mine:7.2f} {mine_both:18.3f} {theirs_both:10.3f} {theirs_both / mine_both:7.2f} "
                  f"{3 * flops / mine_both:7.2f}   ({rate:.0f})", flush=True)


TABLES = {"products": products, "convolutions": convolutions, "volumes": volumes, "depthwise": depthwise}
OTHERS = {"rows": rows, "attention": attention}


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
    for table in names or [*TABLES, *OTHERS]:
        if table in OTHERS:
            OTHERS[table](mdlc, cc, flags, folder, threads)
            continue
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
