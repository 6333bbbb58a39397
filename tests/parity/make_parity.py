#!/usr/bin/env python3
"""Writes what tests/suites/parity.sh compares with, from PyTorch.

The files are in the repository; this script says how they came about. Run from the root, with
PyTorch and NumPy installed: python3 tests/parity/make_parity.py. A new row is one line of a table
below.

steps.mdl          a train for each row of OPTIMIZERS and NETS, from the weights in steps.safetensors
ROW_1.safetensors  the weights after one step of that row, ROW_10.safetensors after ten; of the row ema the
                   averages, under their names in checkpoints
losses.txt         a line for each row: its name, then the loss before each of the ten updates
functions.mdl      values and gradients of every row of FUNCTIONS and LAYERS at the numbers and with the
                   weights of functions.safetensors; the cotangent of a result r is cos(3 r + 1)
functions.txt      a line for each result: its name, then all its numbers
rates.mdl          a metric for each row of SCHEDULES
rates.txt          a line for each row: its name, then the rate of each update, for a peak of 1
initial.mdl        the largest and the root mean square value of each parameter of INITIAL as it is drawn
initial.txt        a line for each: its name and the two, over 50 modules; of normal draws, whose largest
                   value is not bounded, twice the second

Rows come from PyTorch in single precision. What it lacks (Lion, LAMB, LARS, the focal loss, metrics) or
computes in bfloat16 (Muon) is written here from its formula and computed in double precision.
"""
import copy
import json
import math
import os
import struct

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler as rates

FOLDER = "tests/parity/"
BATCH, STEPS = 8, 10


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = np.ascontiguousarray(tensor.detach().numpy(), dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(FOLDER + path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


def write_lines(path, rows):
    with open(FOLDER + path, "w", newline="\n") as out:
        for name, numbers in rows:
            out.write(" ".join([name] + [f"{float(v):.8g}" for v in numbers]) + "\n")


def write_text(path, text):
    with open(FOLDER + path, "w", newline="\n") as out:
        out.write("/// Written by make_parity.py.\nuse nn;\n\n" + text)


# ---- optimizers that PyTorch lacks, in double ---------------------------------------------------


class Formula(torch.optim.Optimizer):
    """move(p, g, state, t) gives the new p; `state` is a dict that starts empty."""

    double = True

    def __init__(self, params, move, **options):
        super().__init__(params, options)
        self.move, self.t = move, 0

    @torch.no_grad()
    def step(self):
        self.t += 1
        for group in self.param_groups:
            options = {k: v for k, v in group.items() if k != "params"}
            for p in group["params"]:
                p.copy_(self.move(p.clone(), p.grad, self.state[p], self.t, **options))


def lion(p, g, s, t, lr, beta1=0.9, beta2=0.99, decay=0.0):
    m = s.get("m", torch.zeros_like(p))
    s["m"] = beta2 * m + (1 - beta2) * g
    return p * (1 - lr * decay) - lr * torch.sign(beta1 * m + (1 - beta1) * g)


def lamb(p, g, s, t, lr, beta1=0.9, beta2=0.999, eps=1e-6, decay=0.0):
    m = s["m"] = beta1 * s.get("m", torch.zeros_like(p)) + (1 - beta1) * g
    v = s["v"] = beta2 * s.get("v", torch.zeros_like(p)) + (1 - beta2) * g * g
    u = (m / (1 - beta1**t)) / (torch.sqrt(v / (1 - beta2**t)) + eps) + decay * p
    pn, un = p.norm().item(), u.norm().item()
    return p - lr * (pn / un if pn > 0 and un > 0 else 1) * u


def lars(p, g, s, t, lr, momentum=0.9, decay=0.0, trust=1e-3, eps=1e-8):
    pn, gn = p.norm().item(), g.norm().item()
    r = trust * pn / (gn + decay * pn + eps) if pn > 0 and gn > 0 else 1
    b = s["b"] = momentum * s.get("b", torch.zeros_like(p)) + lr * r * (g + decay * p)
    return p - b


def muon(p, g, s, t, lr, momentum=0.95, decay=0.0, nesterov=True, rounds=5):
    if p.dim() != 2:
        return p - lr * g
    b = s["b"] = momentum * s.get("b", torch.zeros_like(p)) + g
    u = g + momentum * b if nesterov else b
    x = u.T if p.shape[0] > p.shape[1] else u
    x = x / (x.norm() + 1e-7)
    for _ in range(rounds):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    x = x.T if p.shape[0] > p.shape[1] else x
    return p * (1 - lr * decay) - lr * math.sqrt(max(1, p.shape[0] / p.shape[1])) * x


def check_muon():
    """The formula against PyTorch's, whose bfloat16 leaves two or three digits."""
    for shape in (6, 4), (4, 6):
        torch.manual_seed(1)
        ours, theirs = nn.Parameter(torch.zeros(shape, dtype=torch.float64)), nn.Parameter(torch.zeros(shape))
        pair = Formula([ours], muon, lr=0.1), torch.optim.Muon([theirs], lr=0.1, weight_decay=0.0)
        for _ in range(3):
            gradient = torch.randn(shape)
            ours.grad, theirs.grad = gradient.double(), gradient
            for optimizer in pair:
                optimizer.step()
        off = ((ours - theirs).norm() / ours.norm()).item()
        assert off < 0.02, off


def formula(move, **options):
    return lambda p: Formula(p, move, **options)


O = torch.optim
AVERAGE = 0.8  # of the row that keeps a moving average, which is what is compared
# Name, clauses of the train, optimizer; rates are large so that the moves are as large as the weights.
OPTIMIZERS = [
    ("sgd", "sgd(lr = 0.5)", lambda p: O.SGD(p, lr=0.5)),
    ("sgd_momentum", "sgd(lr = 0.2, momentum = 0.9, dampening = 0.3, decay = 0.02)",
     lambda p: O.SGD(p, lr=0.2, momentum=0.9, dampening=0.3, weight_decay=0.02)),
    ("sgd_nesterov", "sgd(lr = 0.2, momentum = 0.9, nesterov = true, decay = 0.02)",
     lambda p: O.SGD(p, lr=0.2, momentum=0.9, nesterov=True, weight_decay=0.02)),
    ("adam", "adam(lr = 0.05)", lambda p: O.Adam(p, lr=0.05)),
    ("adam_decay", "adam(lr = 0.05, beta1 = 0.8, beta2 = 0.95, eps = 1e-4, decay = 0.05)",
     lambda p: O.Adam(p, lr=0.05, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.05)),
    ("adam_amsgrad", "adam(lr = 0.05, beta2 = 0.6, amsgrad = true)",
     lambda p: O.Adam(p, lr=0.05, betas=(0.9, 0.6), amsgrad=True)),
    ("adamw", "adamw(lr = 0.05, decay = 0.3)", lambda p: O.AdamW(p, lr=0.05, weight_decay=0.3)),
    ("adamw_amsgrad", "adamw(lr = 0.05, beta2 = 0.6, decay = 0.3, amsgrad = true)",
     lambda p: O.AdamW(p, lr=0.05, betas=(0.9, 0.6), weight_decay=0.3, amsgrad=True)),
    ("rmsprop", "rmsprop(lr = 0.02)", lambda p: O.RMSprop(p, lr=0.02)),
    ("rmsprop_momentum", "rmsprop(lr = 0.02, alpha = 0.9, momentum = 0.8, decay = 0.05)",
     lambda p: O.RMSprop(p, lr=0.02, alpha=0.9, momentum=0.8, weight_decay=0.05)),
    ("rmsprop_centered", "rmsprop(lr = 0.02, alpha = 0.9, eps = 1e-3, centered = true)",
     lambda p: O.RMSprop(p, lr=0.02, alpha=0.9, eps=1e-3, centered=True)),
    ("rmsprop_both", "rmsprop(lr = 0.02, eps = 1e-3, momentum = 0.9, centered = true)",
     lambda p: O.RMSprop(p, lr=0.02, eps=1e-3, momentum=0.9, centered=True)),
    ("adagrad", "adagrad(lr = 0.1)", lambda p: O.Adagrad(p, lr=0.1)),
    ("adagrad_decay", "adagrad(lr = 0.1, lr_decay = 0.1, decay = 0.05, initial = 0.1, eps = 1e-3)",
     lambda p: O.Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.05,
                         initial_accumulator_value=0.1, eps=1e-3)),
    ("adafactor", "adafactor(lr = 0.3)", lambda p: O.Adafactor(p, lr=0.3, eps=(1e-7, 1e-3))),
    ("adafactor_decay", "adafactor(lr = 0.9, beta2_decay = -0.5, eps1 = 1e-5, eps2 = 0.5, d = 1.2, decay = 0.2)",
     lambda p: O.Adafactor(p, lr=0.9, beta2_decay=-0.5, eps=(1e-5, 0.5), d=1.2, weight_decay=0.2)),
    ("lion", "lion(lr = 0.02)", formula(lion, lr=0.02)),
    ("lion_decay", "lion(lr = 0.02, beta1 = 0.8, beta2 = 0.9, decay = 0.5)",
     formula(lion, lr=0.02, beta1=0.8, beta2=0.9, decay=0.5)),
    ("lamb", "lamb(lr = 0.1)", formula(lamb, lr=0.1)),
    ("lamb_decay", "lamb(lr = 0.1, beta1 = 0.8, beta2 = 0.95, decay = 0.3)",
     formula(lamb, lr=0.1, beta1=0.8, beta2=0.95, decay=0.3)),
    ("lars", "lars(lr = 0.5, trust = 0.3)", formula(lars, lr=0.5, trust=0.3)),
    ("lars_decay", "lars(lr = 0.5, momentum = 0.7, trust = 0.3, decay = 0.1)",
     formula(lars, lr=0.5, momentum=0.7, trust=0.3, decay=0.1)),
    ("muon", "muon(lr = 0.1) on rank == 2; optimizer sgd(lr = 0.1)", formula(muon, lr=0.1)),
    ("muon_plain", "muon(lr = 0.1, momentum = 0.8, decay = 0.3, nesterov = false, rounds = 3) on rank == 2; "
     "optimizer sgd(lr = 0.1)", formula(muon, lr=0.1, momentum=0.8, decay=0.3, nesterov=False, rounds=3)),
    ("ema", f"sgd(lr = 0.5); ema avg = {AVERAGE}", lambda p: O.SGD(p, lr=0.5)),
    ("clip_norm", "sgd(lr = 0.5, momentum = 0.9); clip norm(0.3)", lambda p: O.SGD(p, lr=0.5, momentum=0.9)),
    ("clip_value", "sgd(lr = 0.5, momentum = 0.9); clip value(0.02)", lambda p: O.SGD(p, lr=0.5, momentum=0.9)),
    ("schedule", "adamw(lr = cosine(0.1, warmup = 3, total = 10), decay = 0.1); clip norm(0.3)",
     lambda p: O.AdamW(p, lr=0.1, weight_decay=0.1)),
]
# Micro-batches of half the rows, whose labels 3 do not count: their losses' mean, or the loss of all.
IGNORED, HALF = 3, BATCH // 2
ACCUMULATE = [("accumulate", ""), ("accumulate_torch", ", torch_compat = true")]
CLIPS = {"clip_norm": lambda p: nn.utils.clip_grad_norm_(p, 0.3),
         "schedule": lambda p: nn.utils.clip_grad_norm_(p, 0.3),
         "clip_value": lambda p: nn.utils.clip_grad_value_(p, 0.02)}
RATES = {"schedule": lambda k: (k + 1) / 3 if k < 3 else (1 + math.cos(math.pi * (k - 3) / 7)) / 2}


class Flat(nn.Module):
    """Pixels 20 to 27 of a digit."""

    def __init__(self):
        super().__init__()
        self.fc, self.head = nn.Linear(8, 6), nn.Linear(6, 10)

    def forward(self, x):
        return self.head(torch.tanh(self.fc(x)))


class Normed(nn.Module):
    """Batch statistics in training, with the running ones kept."""

    def __init__(self):
        super().__init__()
        self.fc, self.bn, self.ln, self.head = nn.Linear(8, 6), nn.BatchNorm1d(6), nn.LayerNorm(6), nn.Linear(6, 10)

    def forward(self, x):
        return self.head(self.ln(F.gelu(self.bn(self.fc(x)))))


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.deep = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 3, groups=2, dilation=1)
        self.norm, self.head = nn.GroupNorm(2, 4), nn.Linear(4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x.view(-1, 1, 8, 8)))), 2)
        return self.head(F.silu(self.deep(x)).mean((2, 3)))


class Rows(nn.Module):
    """The rows of a digit as a sequence."""

    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)
        self.gru, self.lstm, self.head = nn.GRU(8, 4, batch_first=True), nn.LSTM(4, 3, batch_first=True), nn.Linear(3, 10)

    def forward(self, x):
        x = x.view(-1, 8, 8)
        x = x + self.attn(x, x, x, need_weights=False)[0]
        return self.head(self.lstm(self.gru(x)[0])[0][:, -1])


# Name, module, columns, body of the model.
NETS = [
    ("flat", Flat, (20, 28), "x |> fc: linear(6) |> tanh |> head: linear(10)"),
    ("normed", Normed, (20, 28),
     "x |> fc: linear(6) |> bn: batchnorm |> gelu |> ln: layernorm |> head: linear(10)"),
    ("conv", Conv, (0, 64),
     "(x as [8, 1, 8, 8]) |> conv: conv2d(4, 3, pad = 1) |> norm: group_norm(2) |> relu |> maxpool(2)\n"
     "        |> deep: conv2d(4, 3, groups = 2) |> silu |> global_avgpool |> head: linear(10)"),
    ("rows", Rows, (0, 64), None),
]
ROWS = """    s = x as [8, 8, 8];
    y = s + (attn: multihead_attention(s, 2)) |> gru: gru(4) |> lstm: lstm(3);
    return y[:, 7, :] |> head: linear(10);
"""


def weights(name, net):
    return {f"{name}.{k}": v.clone() for k, v in net.state_dict().items() if "num_batches" not in k}


def loss_of(name, net, x, y):
    if name == "accumulate":
        return F.cross_entropy(net(x), y, ignore_index=IGNORED)
    if name == "accumulate_torch":
        parts = [F.cross_entropy(net(x[k:k + HALF]), y[k:k + HALF], ignore_index=IGNORED) for k in (0, HALF)]
        return sum(parts) / len(parts)
    return F.cross_entropy(net(x), y)


def run(name, net_name, net, make_optimizer, x, y):
    optimizer = make_optimizer(net.parameters())
    dtype = torch.float64 if getattr(optimizer, "double", False) else torch.float32
    net.to(dtype)
    scheduler = rates.LambdaLR(optimizer, RATES[name]) if name in RATES else None
    average = torch.optim.swa_utils.AveragedModel(
        copy.deepcopy(net), multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(AVERAGE)) if name == "ema" else None
    if average:
        average.n_averaged.fill_(1)  # it begins with the initial weights
    losses = []
    for i in range(STEPS):
        rows = slice(BATCH * i, BATCH * (i + 1))
        optimizer.zero_grad()
        loss = loss_of(name, net, x[rows].to(dtype), y[rows])
        loss.backward()
        if name in CLIPS:
            CLIPS[name](net.parameters())
        optimizer.step()
        if scheduler:
            scheduler.step()
        if average:
            average.update_parameters(net)
        losses.append(loss.item())
        if i + 1 in (1, STEPS):
            kept = weights("mdlc.avg", average.module) if average else weights(net_name, net)
            write_safetensors(f"{name}_{i + 1}.safetensors", kept)
    print(f"{name}: loss {losses[0]:.5f} .. {losses[-1]:.5f}")
    return losses


def steps():
    table = torch.tensor(np.loadtxt("samples/data/digits.csv", delimiter=",", max_rows=BATCH * STEPS))
    y = table[:, 64].long()
    text = f"dim B = {BATCH}, K = 10;\nstate avg = flat;\n\n"
    trains, losses, first_weights = "", [], {}
    for name, module, (first, end), body in NETS:
        torch.manual_seed(3)
        net = module()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.mul_(1.5)
        first_weights.update(weights(name, net))
        start = {k: v.clone() for k, v in net.state_dict().items()}
        columns = f"{first}..{end}"
        text += (f"dataset digits_{name} {{\n    file f = \"samples/data/digits.csv\";\n"
                 f"    x: f32[{end - first}] = f.columns({columns}) / 16;\n"
                 f"    y: u8 in 0..K = f.column(64);\n    shuffle false;\n}}\n"
                 f"model {name}(x: [B, {end - first}]) -> [B, K] {{\n"
                 + (ROWS if body is None else f"    return {body};\n") + "}\n\n")
        x = (table[:, first:end] / 16).float()
        rows = OPTIMIZERS if name == "flat" else [(name, "sgd(lr = 0.3, momentum = 0.9)",
                                                   lambda p: O.SGD(p, lr=0.3, momentum=0.9))]
        for row, clauses, make_optimizer in rows:
            net = module()
            net.load_state_dict(start)
            losses.append((row, run(row, name, net, make_optimizer, x, y)))
            trains += (f"train fit_{row} of {name} on digits_{name}[B] {{ "
                       f"loss mean(cross_entropy({name}(x), y)); optimizer {clauses}; steps {STEPS}; }}\n")
        for row, switch in ACCUMULATE if name == "flat" else []:
            net = module()
            net.load_state_dict(start)
            losses.append((row, run(row, name, net, lambda p: O.SGD(p, lr=0.5, momentum=0.9), x, y)))
            trains += (f"train fit_{row} of {name} on digits_{name}[B] at B = {HALF} {{ "
                       f"loss cross_entropy_ignore({name}(x), y, ignore = {IGNORED}); "
                       f"optimizer sgd(lr = 0.5, momentum = 0.9); accumulate {BATCH // HALF}{switch}; steps {STEPS}; }}\n")
    write_safetensors("steps.safetensors", first_weights)
    write_text("steps.mdl", text + trains)
    write_lines("losses.txt", losses)


# ---- values and gradients -----------------------------------------------------------------------

torch.manual_seed(5)
G = {  # the numbers that rows may use
    "x": torch.randn(6, 4), "t": torch.randn(6, 4), "z": torch.randn(6, 4), "s": torch.sign(torch.randn(6)),
    "label": torch.tensor([0.0, 3, 1, 2, 3, 1]), "image": torch.randn(2, 4, 5, 3),
    "line": torch.randn(2, 4, 7), "q": torch.randn(2, 3, 4), "k": torch.randn(2, 5, 4), "v": torch.randn(2, 5, 2),
    "h": torch.randn(6, 3), "c": torch.randn(6, 3),
}
# Of so small a spread that an eps of 1e-5 is most of the result.
G.update({"small": 1e-3 * G["x"], "small_image": 1e-3 * G["image"]})


def focal(x, y, alpha=0.25, gamma=2.0):
    p = torch.sigmoid(x)
    loss = F.binary_cross_entropy_with_logits(x, y, reduction="none")
    loss = loss * (1 - (p * y + (1 - p) * (1 - y)))**gamma
    return loss * (alpha * y + (1 - alpha) * (1 - y)) if alpha >= 0 else loss


def weighted(**options):
    return lambda g: F.cross_entropy(g["x"], g["y"], weight=torch.tensor([1, 2, 0.5, 3], dtype=g["x"].dtype), **options)


def auc(score, y):
    pairs = [(a > b) + 0.5 * (a == b) for a, yes in zip(score, y) if yes for b, no in zip(score, y) if not no]
    return sum(float(p) for p in pairs) / len(pairs)


def f1(said, y):
    p, r = (said & y).sum() / said.sum(), (said & y).sum() / y.sum()
    return 2 * p * r / (p + r)


def keep():
    b, i, j = torch.meshgrid(torch.arange(2), torch.arange(3), torch.arange(5), indexing="ij")
    return ((i + j + b) % 3 == 1) & (i < 2)


def attention(q, k, v, mask):
    score = (q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])).masked_fill(~mask, -math.inf)
    return torch.softmax(score, -1).nan_to_num(0) @ v


n = {"reduction": "none"}
# Name, text, function of the numbers, which of them get a gradient.
FUNCTIONS = [
    ("relu", "relu(x)", lambda g: F.relu(g["x"]), "x"),
    ("relu6", "relu6(6 * x)", lambda g: F.relu6(6 * g["x"]), "x"),
    ("leaky_relu", "leaky_relu(x)", lambda g: F.leaky_relu(g["x"]), "x"),
    ("elu", "elu(x, 1.3)", lambda g: F.elu(g["x"], 1.3), "x"),
    ("celu", "celu(x, 1.3)", lambda g: F.celu(g["x"], 1.3), "x"),
    ("selu", "selu(x)", lambda g: F.selu(g["x"]), "x"),
    ("gelu", "gelu(x)", lambda g: F.gelu(g["x"]), "x"),
    ("gelu_tanh", "gelu_tanh(x)", lambda g: F.gelu(g["x"], approximate="tanh"), "x"),
    ("sigmoid", "sigmoid(x)", lambda g: torch.sigmoid(g["x"]), "x"),
    ("silu", "silu(x)", lambda g: F.silu(g["x"]), "x"),
    ("mish", "mish(x)", lambda g: F.mish(g["x"]), "x"),
    ("softplus", "softplus(9 * x, beta = 1.5)", lambda g: F.softplus(9 * g["x"], 1.5), "x"),
    ("hardtanh", "hardtanh(x, -0.5, 0.7)", lambda g: F.hardtanh(g["x"], -0.5, 0.7), "x"),
    ("hardsigmoid", "hardsigmoid(3 * x)", lambda g: F.hardsigmoid(3 * g["x"]), "x"),
    ("hardswish", "hardswish(3 * x)", lambda g: F.hardswish(3 * g["x"]), "x"),
    ("softsign", "softsign(x)", lambda g: F.softsign(g["x"]), "x"),
    ("logsigmoid", "logsigmoid(9 * x)", lambda g: F.logsigmoid(9 * g["x"]), "x"),
    ("glu", "glu(x)", lambda g: F.glu(g["x"]), "x"),
    ("softmax", "softmax(x)", lambda g: F.softmax(g["x"], -1), "x"),
    ("softmax_first", "softmax(x, axis = 0)", lambda g: F.softmax(g["x"], 0), "x"),
    ("log_softmax", "log_softmax(9 * x)", lambda g: F.log_softmax(9 * g["x"], -1), "x"),
    ("cross_entropy", "cross_entropy(x, y)", lambda g: F.cross_entropy(g["x"], g["y"], **n), "x"),
    ("cross_entropy_smooth", "cross_entropy(x, y, smooth = 0.2)",
     lambda g: F.cross_entropy(g["x"], g["y"], label_smoothing=0.2, **n), "x"),
    ("cross_entropy_soft", "cross_entropy_soft(x, softmax(t), smooth = 0.2)",
     lambda g: F.cross_entropy(g["x"], F.softmax(g["t"], -1), label_smoothing=0.2, **n), "x t"),
    ("cross_entropy_ignore", "cross_entropy_ignore(x, y, ignore = 3, smooth = 0.2)",
     lambda g: F.cross_entropy(g["x"], g["y"], ignore_index=3, label_smoothing=0.2), "x"),
    ("cross_entropy_weighted", "cross_entropy_weighted(x, y, [1, 2, 0.5, 3])", weighted(), "x"),
    ("cross_entropy_weighted_smooth", "cross_entropy_weighted(x, y, [1, 2, 0.5, 3], ignore = 3, smooth = 0.2)",
     weighted(ignore_index=3, label_smoothing=0.2), "x"),
    ("nll", "nll(x, y)", lambda g: F.nll_loss(g["x"], g["y"], **n), "x"),
    ("kl", "kl(log_softmax(x), softmax(t))",
     lambda g: F.kl_div(F.log_softmax(g["x"], -1), F.softmax(g["t"], -1), **n), "x t"),
    ("kl_zero", "kl(x, relu(t))", lambda g: F.kl_div(g["x"], F.relu(g["t"]), **n), "x"),
    ("kl_log", "kl_log(x, t)", lambda g: F.kl_div(g["x"], g["t"], log_target=True, **n), "x t"),
    ("mse", "mse(x, t)", lambda g: F.mse_loss(g["x"], g["t"], **n), "x t"),
    ("l1", "l1(x, t)", lambda g: F.l1_loss(g["x"], g["t"], **n), "x t"),
    ("smooth_l1", "smooth_l1(x, t, beta = 0.7)", lambda g: F.smooth_l1_loss(g["x"], g["t"], beta=0.7, **n), "x t"),
    ("huber", "huber(x, t, delta = 0.7)", lambda g: F.huber_loss(g["x"], g["t"], delta=0.7, **n), "x t"),
    ("bce", "bce(sigmoid(x), sigmoid(t))",
     lambda g: F.binary_cross_entropy(torch.sigmoid(g["x"]), torch.sigmoid(g["t"]), **n), "x"),
    ("bce_edge", "bce(clamp(x, 0, 1), clamp(t, 0, 1))",
     lambda g: F.binary_cross_entropy(torch.clamp(g["x"], 0, 1), torch.clamp(g["t"], 0, 1), **n), ""),
    ("bce_logits", "bce_logits(3 * x, sigmoid(t))",
     lambda g: F.binary_cross_entropy_with_logits(3 * g["x"], torch.sigmoid(g["t"]), **n), "x t"),
    ("bce_logits_positive", "bce_logits(3 * x, sigmoid(t), positive = 2.5)",
     lambda g: F.binary_cross_entropy_with_logits(3 * g["x"], torch.sigmoid(g["t"]),
                                                  pos_weight=torch.tensor(2.5), **n), "x t"),
    ("focal", "focal(x, f32(t > 0))", lambda g: focal(g["x"], (g["t"] > 0).to(g["x"].dtype)), "x"),
    ("focal_plain", "focal(x, f32(t > 0), alpha = -1, gamma = 1.5)",
     lambda g: focal(g["x"], (g["t"] > 0).to(g["x"].dtype), -1, 1.5), "x"),
    ("hinge_embedding", "hinge_embedding(x, sign(t))",
     lambda g: F.hinge_embedding_loss(g["x"], torch.sign(g["t"]), **n), "x"),
    ("margin_ranking", "margin_ranking(x, z, sign(t), margin = 0.3)",
     lambda g: F.margin_ranking_loss(g["x"], g["z"], torch.sign(g["t"]), margin=0.3, **n), "x z"),
    ("multi_margin", "multi_margin(x, y)", lambda g: F.multi_margin_loss(g["x"], g["y"], **n), "x"),
    ("multi_margin_square", "multi_margin(x, y, power = 2, margin = 0.5)",
     lambda g: F.multi_margin_loss(g["x"], g["y"], p=2, margin=0.5, **n), "x"),
    ("triplet_margin", "triplet_margin(x, t, z)", lambda g: F.triplet_margin_loss(g["x"], g["t"], g["z"], **n), "x t z"),
    ("cosine_embedding", "cosine_embedding(x, t, s, margin = 0.1)",
     lambda g: F.cosine_embedding_loss(g["x"], g["t"], g["s"], margin=0.1, **n), "x t"),
    ("pairwise_distance", "pairwise_distance(x, t)", lambda g: F.pairwise_distance(g["x"], g["t"]), "x t"),
    ("cosine_similarity", "cosine_similarity(x, t)", lambda g: F.cosine_similarity(g["x"], g["t"]), "x t"),
    ("pairwise_distance_eps", "pairwise_distance(x, t, eps = 0.3)",
     lambda g: F.pairwise_distance(g["x"], g["t"], eps=0.3), "x t"),
    ("cosine_similarity_eps", "cosine_similarity(0.4 * x, t, eps = 0.7)",
     lambda g: F.cosine_similarity(0.4 * g["x"], g["t"], eps=0.7), ""),
    ("pairwise_distance_small", "pairwise_distance(0.003 * small, 0.002 * small)",
     lambda g: F.pairwise_distance(0.003 * g["small"], 0.002 * g["small"]), "small"),
    ("triplet_margin_small", "triplet_margin(0.003 * small, 0.002 * small, 0.001 * small)",
     lambda g: F.triplet_margin_loss(0.003 * g["small"], 0.002 * g["small"], 0.001 * g["small"], **n), ""),
    ("cosine_similarity_small", "cosine_similarity(5e-6 * small, t)",
     lambda g: F.cosine_similarity(5e-6 * g["small"], g["t"]), ""),
    ("attend", "attend(q, k, v)", lambda g: F.scaled_dot_product_attention(g["q"], g["k"], g["v"]), "q k v"),
    ("attend_causal", "attend(q, k, v, causal = true)",
     lambda g: F.scaled_dot_product_attention(g["q"], g["k"], g["v"], is_causal=True), "q k v"),
    ("attend_where", "attend_where(q, k, v, keep)", lambda g: attention(g["q"], g["k"], g["v"], keep()), ""),
    ("maxpool", "maxpool(image, 2)", lambda g: F.max_pool2d(g["image"], 2), "image"),
    ("maxpool_pad", "maxpool(image, 3, stride = 2, pad = 1)", lambda g: F.max_pool2d(g["image"], 3, 2, 1), "image"),
    ("avgpool", "avgpool(image, 2)", lambda g: F.avg_pool2d(g["image"], 2), "image"),
    ("avgpool_pad", "avgpool(image, 3, stride = 2, pad = 1)", lambda g: F.avg_pool2d(g["image"], 3, 2, 1), "image"),
    ("maxpool_same", "maxpool(image, 3, stride = 1, pad = 1)", lambda g: F.max_pool2d(g["image"], 3, 1, 1), "image"),
    ("avgpool_same", "avgpool(image, 3, stride = 1, pad = 1)", lambda g: F.avg_pool2d(g["image"], 3, 1, 1), "image"),
    ("adaptive_avgpool", "adaptive_avgpool(image, 3)", lambda g: F.adaptive_avg_pool2d(g["image"], 3), "image"),
    ("global_avgpool", "global_avgpool(image)", lambda g: F.adaptive_avg_pool2d(g["image"], 1).flatten(1), "image"),
    ("instance_norm", "standardized(image, 1e-5)", lambda g: F.instance_norm(g["image"]), "image"),
    ("accuracy", "accuracy(x, y)", lambda g: (g["x"].argmax(-1) == g["y"]).double().mean(), ""),
    ("top_k_accuracy", "top_k_accuracy(x, y, 2)",
     lambda g: (g["x"].topk(2).indices == g["y"][:, None]).any(-1).double().mean(), ""),
    ("confusion", "confusion(x, y)",
     lambda g: torch.bincount(4 * g["y"] + g["x"].argmax(-1), minlength=16).reshape(4, 4).double(), ""),
    ("mae", "mae(x, t)", lambda g: (g["x"] - g["t"]).abs().mean(), ""),
    ("rmse", "rmse(x, t)", lambda g: (g["x"] - g["t"]).pow(2).mean().sqrt(), ""),
    ("r2", "r2(x, t)",
     lambda g: 1 - (g["x"] - g["t"]).pow(2).sum() / (g["t"] - g["t"].mean()).pow(2).sum(), ""),
    ("perplexity", "perplexity(x, y)", lambda g: F.cross_entropy(g["x"], g["y"]).exp(), ""),
    ("precision", "precision(x > 0, t > 0)", lambda g: ((g["x"] > 0) & (g["t"] > 0)).sum() / (g["x"] > 0).sum(), ""),
    ("recall", "recall(x > 0, t > 0)", lambda g: ((g["x"] > 0) & (g["t"] > 0)).sum() / (g["t"] > 0).sum(), ""),
    ("f1", "f1(x > 0, t > 0)", lambda g: f1(g["x"] > 0, g["t"] > 0), ""),
    ("auc", "auc(round(2 * x[:, 0]), t[:, 0] > 0)",
     lambda g: torch.tensor(auc(torch.round(2 * g["x"][:, 0]).tolist(), (g["t"][:, 0] > 0).tolist())), ""),
]
DOUBLE = ("focal", "focal_plain")

class LoRA(nn.Module):
    """peft's lora.Linear in its own words, both factors drawn."""

    def __init__(self, n, out, rank, alpha):
        super().__init__()
        base = nn.Linear(n, out)
        self.weight, self.bias, self.scale = base.weight, base.bias, alpha / rank
        self.lora_a = nn.Parameter(nn.Linear(n, rank, bias=False).weight.detach())
        self.lora_b = nn.Parameter(nn.Linear(rank, out, bias=False).weight.detach())

    def forward(self, x):
        return F.linear(x, self.weight, self.bias) + self.scale * F.linear(F.linear(x, self.lora_a), self.lora_b)


# Name, what is called, of which numbers, module. Entries run in infer mode: eval().
LAYERS = [
    ("linear", "linear(5)", "x", nn.Linear(4, 5)),
    ("bilinear", "bilinear(3)", "x h", nn.Bilinear(4, 3, 3)),
    ("layernorm", "layernorm", "x", nn.LayerNorm(4)),
    ("rmsnorm", "rmsnorm", "x", nn.RMSNorm(4)),
    ("layernorm_eps", "layernorm(eps = 0.3)", "x", nn.LayerNorm(4, eps=0.3)),
    ("rmsnorm_eps", "rmsnorm(eps = 0.3)", "x", nn.RMSNorm(4, eps=0.3)),
    ("batchnorm_eps", "batchnorm(eps = 0.3)", "image", nn.BatchNorm2d(4, eps=0.3)),
    ("batchnorm", "batchnorm", "image", nn.BatchNorm2d(4)),
    ("group_norm_eps", "group_norm(2, eps = 0.3)", "image", nn.GroupNorm(2, 4, eps=0.3)),
    ("instance_norm_eps", "instance_norm(affine = true, eps = 0.3)", "image",
     nn.InstanceNorm2d(4, eps=0.3, affine=True)),
    ("group_norm", "group_norm(2)", "image", nn.GroupNorm(2, 4)),
    ("instance_norm_affine", "instance_norm(affine = true)", "image", nn.InstanceNorm2d(4, affine=True)),
    ("prelu", "prelu", "image", nn.PReLU()),
    ("prelu_channels", "prelu(4)", "image", nn.PReLU(4)),
    ("conv2d", "conv2d(3, 3, stride = 2, pad = 1)", "image", nn.Conv2d(4, 3, 3, 2, 1)),
    ("conv2d_groups", "conv2d(6, 3, pad = 2, dilation = 2, groups = 2, use_bias = false)", "image",
     nn.Conv2d(4, 6, 3, padding=2, dilation=2, groups=2, bias=False)),
    ("conv2d_same", "conv2d(2, 3, pad = 1)", "image", nn.Conv2d(4, 2, 3, padding=1)),
    ("conv1d_same", "conv1d(2, 3, pad = 1)", "line", nn.Conv1d(4, 2, 3, padding=1)),
    ("conv1d", "conv1d(3, 3, stride = 2, pad = 1)", "line", nn.Conv1d(4, 3, 3, 2, 1)),
    ("conv1d_groups", "conv1d(4, 2, pad = 1, dilation = 3, groups = 4)", "line",
     nn.Conv1d(4, 4, 2, padding=1, dilation=3, groups=4)),
    ("conv_transpose2d", "conv_transpose2d(3, 3)", "image", nn.ConvTranspose2d(4, 3, 3)),
    ("conv_transpose2d_stride", "conv_transpose2d(2, 3, stride = 2, pad = 1, grow = 1)", "image",
     nn.ConvTranspose2d(4, 2, 3, 2, 1, output_padding=1)),
    ("rnn_cell", "rnn_cell", "x h", nn.RNNCell(4, 3)),
    ("gru_cell", "gru_cell", "x h", nn.GRUCell(4, 3)),
    ("gru", "gru(3)", "q", nn.GRU(4, 3, batch_first=True)),
    ("lstm", "lstm(3)", "q", nn.LSTM(4, 3, batch_first=True)),
    ("multihead_attention", "multihead_attention(2)", "q", nn.MultiheadAttention(4, 2, batch_first=True)),
    ("multihead_attention_causal", "multihead_attention(2, causal = true)", "q",
     nn.MultiheadAttention(4, 2, batch_first=True)),
    ("cross_attention", "cross_attention(2)", "q k", nn.MultiheadAttention(4, 2, batch_first=True)),
    ("lora", "lora(5, rank = 2, alpha = 3)", "x", LoRA(4, 5, 2, 3)),
]
# The same with the defaults of eps.
SMALL = [
    ("layernorm_small", "layernorm", "small", nn.LayerNorm(4)),
    ("rmsnorm_small", "rmsnorm", "small", nn.RMSNorm(4)),
    ("batchnorm_small", "batchnorm", "small_image", nn.BatchNorm2d(4)),
    ("group_norm_small", "group_norm(2)", "small_image", nn.GroupNorm(2, 4)),
    ("instance_norm_small", "instance_norm", "small_image", nn.InstanceNorm2d(4)),
]


def apply(name, module, inputs):
    if name == "cross_attention":
        return module(inputs[0], inputs[1], inputs[1], need_weights=False)[0]
    if name.startswith("multihead"):
        mask = torch.triu(torch.ones(3, 3, dtype=torch.bool), 1) if name.endswith("causal") else None
        return module(inputs[0], inputs[0], inputs[0], need_weights=False, attn_mask=mask)[0]
    result = module(*inputs)
    return result[0] if isinstance(result, tuple) else result


def functions():
    given, models, lines, results, kept = "", "", "", [], {}
    shape = lambda v: "[" + ", ".join(str(d) for d in v.shape) + "]"

    def add(name, text, value, numbers, variables):
        nonlocal lines
        lines += f"    r_{name} = {text};\n"
        results.append((name, f"r_{name}"))
        lists.append((name, value.detach().flatten()))
        if variables:
            cotangent = torch.cos(3 * value.detach() + 1)
            gradients = torch.autograd.grad(value, [numbers[v] for v in variables], cotangent)
            for v, gradient in zip(variables, gradients):
                results.append((f"{name}_{v}", f"vjp(r_{name}, {v}, cos(3 * r_{name} + 1))"))
                lists.append((f"{name}_{v}", gradient.flatten()))

    lists = []
    for name, value in G.items():
        given += f"    param {name}: {shape(value)} = 0;\n"
        kept[f"given.{name}"] = value
    for name, text, function, variables in FUNCTIONS:
        dtype = torch.float64 if name in DOUBLE else torch.float32
        numbers = {k: v.to(dtype).requires_grad_() for k, v in G.items()}
        add(name, text, function({**numbers, "y": G["label"].long()}), numbers, variables.split())

    def add_layer(name, call, variables, module):
        nonlocal models
        module.eval()
        with torch.no_grad():  # norms start as ones and zeros, which shows nothing
            for key, value in module.state_dict().items():
                if value.dtype == torch.float32:
                    value.add_(0.3 * torch.rand(value.shape))
                    if name == "batchnorm_small" and key == "running_var":
                        value.mul_(1e-6)
                    kept[f"m_{name}.l.{key}"] = value
        used = variables.split()
        numbers = {k: G[k].clone().requires_grad_() for k in used}
        value = apply(name, module, list(numbers.values()))
        signature = ", ".join(f"{k}: {shape(G[k])}" for k in used)
        inner = call if "(" in call else call + "()"
        arguments = inner.replace("(", "(" + ", ".join(used) + (", " if inner[-2] != "(" else ""), 1)
        models += f"model m_{name}({signature}) {{ return l: {arguments}; }}\n"
        add(name, f"m_{name}({', '.join(used)})", value, numbers, used)

    for row in LAYERS:
        add_layer(*row)
    numbers = {k: G[k] for k in "xhc"}
    cell = nn.LSTMCell(4, 3)
    kept.update({f"m_lstm_cell.l.{k}": v for k, v in cell.state_dict().items()})
    h, c = cell(G["x"], (G["h"], G["c"]))
    models += "model m_lstm_cell(x: [6, 4], h: [6, 3], c: [6, 3]) {\n    h1, c1 = l: lstm_cell(x, h, c);\n    return h = h1, c = c1;\n}\n"
    lines += "    r_lstm_h, r_lstm_c = m_lstm_cell(x, h, c);\n"
    results.extend([("lstm_h", "r_lstm_h"), ("lstm_c", "r_lstm_c")])
    lists.extend([("lstm_h", h.detach().flatten()), ("lstm_c", c.detach().flatten())])
    index = G["label"].long()
    table = nn.Embedding(4, 3, padding_idx=1)
    kept["m_embedding.l.weight"] = table.weight.detach()
    models += "model m_embedding(i: i32[6] in 0..4) { return i |> l: embedding(4, 3, padding = 1); }\n"
    add("embedding", "m_embedding(y)", table(index), {}, [])
    for row in SMALL:
        add_layer(*row)

    entry = "".join(f"    {k} = given.{k};\n" for k in G)
    entry += "    y = clamp(i32(label), 0, 3);\n"
    entry += "    keep[b < 2, i < 3, j < 5] = (i + j + b) % 3 == 1 and i < 2;\n"
    returned = ",\n        ".join(f"{name} = {text}" for name, text in results)
    write_text("functions.mdl", f"model given() {{\n{given}    return sum(x);\n}}\n{models}\nentry values() {{\n{entry}{lines}"
               f"    return\n        {returned};\n}}\n")
    write_safetensors("functions.safetensors", kept)
    write_lines("functions.txt", lists)


# ---- schedules ----------------------------------------------------------------------------------


def lambdas(f):
    return lambda o: rates.LambdaLR(o, f)


def observed(k):
    """What the plateau rows see: falls, stays, jumps."""
    return max(1 - 0.1 * k, 0.55) + 0.03 * (k % 3)


PLATEAU = ("max(1 - 0.1 * k, 0.55) + 0.03 * f32((step - 1) % 3)")
# Name, text, scheduler; 24 updates.
SCHEDULES = [
    ("constant", "constant(1.0)", lambda o: rates.ConstantLR(o, factor=1.0)),
    ("constant_warmup", "constant(1.0, warmup = 4)", lambda o: rates.LinearLR(o, 0.25, 1.0, 3)),
    ("linear_factor", "linear_factor(1.0)", lambda o: rates.LinearLR(o)),
    ("linear_factor_down", "linear_factor(1.0, start = 1, end = 0.2, total = 20)",
     lambda o: rates.LinearLR(o, 1.0, 0.2, 20)),
    ("linear_decay", "linear_decay(1.0, floor = 0.2, total = 20)", lambda o: rates.LinearLR(o, 1.0, 0.2, 20)),
    ("cosine", "cosine(1.0, floor = 0.1)", lambda o: rates.CosineAnnealingLR(o, 24, 0.1)),
    ("cosine_warmup", "cosine(1.0, warmup = 5)", lambdas(
        lambda k: (k + 1) / 5 if k < 5 else 0.5 * (1 + math.cos(math.pi * (k - 5) / 19)))),
    ("cosine_hf", "cosine_hf(1.0, warmup = 5)", lambdas(
        lambda k: k / 5 if k < 5 else max(0.0, 0.5 * (1 + math.cos(math.pi * (k - 5) / 19))))),
    ("cosine_restarts", "cosine_restarts(1.0, every = 7, floor = 0.05)",
     lambda o: rates.CosineAnnealingWarmRestarts(o, 7, 1, 0.05)),
    ("cosine_restarts_grow", "cosine_restarts(1.0, every = 3, grow = 2)",
     lambda o: rates.CosineAnnealingWarmRestarts(o, 3, 2)),
    ("exponential", "exponential(1.0, 0.9)", lambda o: rates.ExponentialLR(o, 0.9)),
    ("exponential_each", "exponential(1.0, 0.9, every = 0)", lambda o: rates.ExponentialLR(o, 0.9)),
    ("exponential_steps", "exponential(1.0, 0.5, every = 5)", lambda o: rates.StepLR(o, 5, 0.5)),
    ("steps_at", "steps_at(1.0, 0.3, [4, 9, 17])", lambda o: rates.MultiStepLR(o, [4, 9, 17], 0.3)),
    ("polynomial", "polynomial(1.0, power = 2, total = 20)", lambda o: rates.PolynomialLR(o, 20, 2.0)),
    ("inverse_sqrt", "inverse_sqrt(1.0, warmup = 4)", lambdas(
        lambda k: (k + 1) / 4 if k < 4 else math.sqrt(4 / (k + 1)))),
    ("one_cycle", "one_cycle(1.0)", lambda o: rates.OneCycleLR(o, 1.0, total_steps=24)),
    ("one_cycle_half", "one_cycle(1.0, up = 0.5, start = 5, end = 20)",
     lambda o: rates.OneCycleLR(o, 1.0, total_steps=24, pct_start=0.5, div_factor=5, final_div_factor=20)),
    ("wsd", "wsd(1.0, warmup = 4, decay = 8, floor = 0.1)", lambdas(
        lambda k: (k + 1) / 4 if k < 4 else 1 if k < 16 else 1 - 0.9 * (k - 16) / 8)),
    ("plateau", f"plateau({PLATEAU}, factor = 0.5, patience = 1, cooldown = 2, floor = 0.2)",
     lambda o: rates.ReduceLROnPlateau(o, factor=0.5, patience=1, cooldown=2, min_lr=0.2)),
    ("plateau_every", f"plateau({PLATEAU}, factor = 0.5, patience = 0, every = 3)",
     lambda o: rates.ReduceLROnPlateau(o, factor=0.5, patience=0)),
]
UPDATES = 24


def schedules():
    rows, metrics = [], {"fit": "", "apart": ""}  # plateau has one set of states
    for name, text, make in SCHEDULES:
        optimizer = O.SGD([nn.Parameter(torch.zeros(1))], lr=1.0, momentum=0.9)
        scheduler = make(optimizer)
        values = []
        for k in range(UPDATES):
            values.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            if name == "plateau_every":
                if k % 3 == 2:
                    scheduler.step(sum(observed(j) for j in (k - 2, k - 1, k)) / 3)
            elif name == "plateau":
                scheduler.step(observed(k))
            elif name != "one_cycle" and name != "one_cycle_half" or k + 1 < UPDATES:
                scheduler.step()
        rows.append((name, values))
        metrics["apart" if name == "plateau_every" else "fit"] += f"    metric {name}_ = {text};\n"
    write_lines("rates.txt", rows)
    trains = "".join(f"train {name} of held {{\n    k = f32(step - 1);\n    loss held();\n{text}"
                     f"    optimizer sgd(lr = 0.1);\n    steps {UPDATES};\n}}\n" for name, text in metrics.items())
    write_text("rates.mdl", "model held() -> f32 {\n    param p: [2] = 1;\n    return sum(p);\n}\n" + trains)


# ---- initial values -----------------------------------------------------------------------------

# Name, layer of the library, PyTorch's module, bounded or not. The inputs are those of initial().
INITIAL = [
    ("linear", "linear(x, 300)", lambda: nn.Linear(40, 300), True),
    ("bilinear", "bilinear(x, x, 60)", lambda: nn.Bilinear(40, 40, 60), True),
    ("embedding", "embedding(i, 100, 50)", lambda: nn.Embedding(100, 50), False),
    ("embedding_padding", "embedding(i, 100, 50, padding = 3)", lambda: nn.Embedding(100, 50, padding_idx=3), False),
    ("layernorm", "layernorm(x)", lambda: nn.LayerNorm(40), True),
    ("rmsnorm", "rmsnorm(x)", lambda: nn.RMSNorm(40), True),
    ("batchnorm", "batchnorm(x)", lambda: nn.BatchNorm1d(40), True),
    ("group_norm", "group_norm(m, 2)", lambda: nn.GroupNorm(2, 6), True),
    ("instance_norm", "instance_norm(m, affine = true)", lambda: nn.InstanceNorm2d(6, affine=True), True),
    ("prelu", "prelu(x)", lambda: nn.PReLU(), True),
    ("conv2d", "conv2d(m, 128, 3)", lambda: nn.Conv2d(6, 128, 3), True),
    ("conv2d_groups", "conv2d(m, 128, 3, groups = 2)", lambda: nn.Conv2d(6, 128, 3, groups=2), True),
    ("conv1d", "conv1d(q, 128, 3)", lambda: nn.Conv1d(6, 128, 3), True),
    ("conv_transpose2d", "conv_transpose2d(m, 128, 3)", lambda: nn.ConvTranspose2d(6, 128, 3), True),
    ("rnn_cell", "rnn_cell(x, h)", lambda: nn.RNNCell(40, 200), True),
    ("gru_cell", "gru_cell(x, h)", lambda: nn.GRUCell(40, 200), True),
    ("lstm", "lstm(q, 100)", lambda: nn.LSTM(12, 100), True),
    ("gru", "gru(q, 100)", lambda: nn.GRU(12, 100), True),
    ("attention", "multihead_attention(t, 4)", lambda: nn.MultiheadAttention(40, 4), True),
]


def drawn(call):
    """A module whose one parameter a function of torch.nn.init draws."""
    module = nn.Module()
    module.weight = nn.Parameter(torch.empty(160, 90))
    call(module.weight)
    return module


# The initialisers behind `~`, each of a parameter [160, 90].
DRAWS = [
    ("kaiming_uniform", "kaiming_uniform()", lambda w: nn.init.kaiming_uniform_(w, nonlinearity="relu"), True),
    ("kaiming_normal", "kaiming_normal()", lambda w: nn.init.kaiming_normal_(w, nonlinearity="relu"), False),
    ("kaiming_tanh", "kaiming_uniform(gain = 5/3)", lambda w: nn.init.kaiming_uniform_(w, nonlinearity="tanh"), True),
    ("xavier_uniform", "xavier_uniform()", lambda w: nn.init.xavier_uniform_(w), True),
    ("xavier_normal", "xavier_normal(gain = 3/4)", lambda w: nn.init.xavier_normal_(w, 0.75), False),
    ("trunc_normal", "trunc_normal(std = 1)", lambda w: nn.init.trunc_normal_(w), True),
    ("trunc_small", "trunc_normal(std = 0.02)", lambda w: nn.init.trunc_normal_(w, std=0.02), False),
]


def initial():
    torch.manual_seed(0)
    rows, made, calls, results = [], "", "", []
    for name, text, call, bounded in DRAWS:
        made += f"layer {name}_layer(x: [b, 90]) -> [b, 160] {{\n    param weight: [160, 90] ~ {text};\n" \
                "    y[b, o] = sum[k] x[b, k] * weight[o, k];\n    return y;\n}\n"
    table = [row[:1] + (row[1], row[2], row[3]) for row in INITIAL]
    table += [(name, f"{name}_layer(d)", lambda call=call: drawn(call), bounded) for name, _, call, bounded in DRAWS]
    for name, text, make, bounded in table:
        kept = {}
        for _ in range(50):
            for path, value in make().named_parameters():
                kept.setdefault(path, []).append(value.detach().flatten().double())
        calls += f"    y_{name} = {name}: {text};\n"
        for path, values in kept.items():
            whole, key = torch.cat(values), f"{name}_{path.replace('.', '_')}"
            rms = math.sqrt(float((whole ** 2).mean()))
            rows.append((key, [float(whole.abs().max()) if bounded else 2 * rms, rms]))
            first = f"max(abs(net.{name}.{path}))" if bounded else f"2 * sqrt(mean(net.{name}.{path}^2))"
            results.append(f"        {key} = pair({first}, sqrt(mean(net.{name}.{path}^2)))")
    write_lines("initial.txt", rows)
    write_text("initial.mdl", made + """
op pair(a: f32, b: f32) -> [2] { r[k < 2] = select(k == 0, a, b); return r; }
model net(x: [2, 40], d: [2, 90], i: int[2] in 0..100, m: [2, 6, 8, 8], q: [2, 6, 12], h: [2, 200], t: [2, 3, 40]) -> f32 {
""" + calls + "    return " + " + ".join(f"mean(y_{row[0]})" for row in table) + ";\n}\nentry initial() {\n    return\n"
               + ",\n".join(results) + ";\n}\n")


torch.set_num_threads(1)
if hasattr(torch.optim, "Muon"):
    check_muon()
os.makedirs(FOLDER, exist_ok=True)
steps()
functions()
schedules()
initial()
