"""Losses of the PyTorch twins of tests/suites/precision.mdl (gpt) and halves.mdl (mlp, conv): in f32, under
autocast to bfloat16, and under autocast to float16 with a GradScaler; a line a step. Behind them those of
conv with nine seeds (conv1 to conv9).

    precision --seed 3 --steps 0 --save gpt.st
    for seed in 1 2 3 4 5 6 7 8 9; do halves fit --seed $seed --steps 0 --save $seed.st; done
    python tests/parity/precision.py gpt.st 3.st [1-9].st > tests/suites/precision.txt
"""
import json
import sys

import torch
import torch.nn.functional as F

B, T, C, H, L = 8, 32, 64, 2, 2
KINDS = [None, torch.bfloat16, torch.float16]


def load(path):
    data = open(path, "rb").read()
    n = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + n])
    head.pop("__metadata__", None)
    return {
        k: torch.frombuffer(bytearray(data[8 + n + v["data_offsets"][0] : 8 + n + v["data_offsets"][1]]), dtype=torch.float32)
        .reshape(v["shape"]).clone()
        for k, v in head.items()
    }


class Gpt:
    rule = dict(lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)
    clip = 1.0
    text = torch.tensor(list(open("tests/programs/text.txt", "rb").read()))
    tok, tgt = text[: B * T].view(B, T), text[1 : B * T + 1].view(B, T)

    def __init__(self, p):
        self.p = p

    def norm(self, h, name):
        return F.layer_norm(h, (C,), self.p[name + ".weight"], self.p[name + ".bias"])

    def linear(self, h, name):
        return F.linear(h, self.p[name + ".weight"], self.p[name + ".bias"])

    def block(self, h, at):
        qkv = F.linear(self.norm(h, at + "ln1"), self.p[at + "attn.in_proj_weight"], self.p[at + "attn.in_proj_bias"])
        q, k, v = (x.view(B, T, H, C // H).transpose(1, 2) for x in qkv.split(C, dim=2))
        s = q @ k.transpose(2, 3) / (C // H) ** 0.5
        s = s.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        o = F.softmax(s, -1) @ v
        h = h + self.linear(o.transpose(1, 2).reshape(B, T, C), at + "attn.out_proj")
        return h + self.linear(F.gelu(self.linear(self.norm(h, at + "ln2"), at + "up"), approximate="tanh"), at + "down")

    def loss(self, step):
        h = 0.3 * self.p["wte.weight"][self.tok] + 0.3 * self.p["wpe.weight"]
        for i in range(L):
            h = self.block(h, f"h.{i}.")
        logits = F.linear(self.norm(h, "ln_f"), self.p["wte.weight"]) / 8
        return F.cross_entropy(logits.float().flatten(0, 1), self.tgt.flatten())


class Digits:
    rule = dict(lr=1e-3, weight_decay=0.01)
    clip = None
    rows = torch.tensor([[float(v) for v in line.split(",")] for line in open("samples/data/digits.csv")])

    def __init__(self, p):
        self.p = p

    def linear(self, h, name):
        return F.linear(h, self.p[name + ".weight"], self.p[name + ".bias"])

    def conv(self, h, name):
        return F.conv2d(h, self.p[name + ".weight"], self.p[name + ".bias"], padding=1)

    def logits(self, x):
        if "c1.weight" not in self.p:
            return self.linear(F.gelu(self.linear(F.gelu(self.linear(x, "fc1")), "fc2")), "head")
        h = F.max_pool2d(F.relu(self.conv(x.view(-1, 1, 8, 8), "c1")), 2)
        h = F.relu(self.linear(F.relu(self.conv(h, "c2")).flatten(1), "fc1"))
        return self.linear(F.relu(self.linear(h, "fc2")), "fc3")

    def loss(self, step):
        first = step % (len(self.rows) // 128) * 128
        rows = self.rows[first : first + 128]
        return F.cross_entropy(self.logits(rows[:, :64] / 16).float(), rows[:, 64].long())


def losses(kind, start, half):
    p = {k: v.clone().requires_grad_() for k, v in start.items()}
    net = kind(p)
    rule = torch.optim.AdamW(p.values(), **kind.rule)
    scaler = torch.amp.GradScaler("cpu", enabled=half == torch.float16)
    for step in range(50):
        with torch.autocast("cpu", dtype=half or torch.bfloat16, enabled=half is not None):
            loss = net.loss(step)
        rule.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(rule)
        if kind.clip:
            torch.nn.utils.clip_grad_norm_(p.values(), kind.clip)
        scaler.step(rule)
        scaler.update()
        yield loss.item()


def below(prefix, weights):
    return {k[len(prefix) :]: v for k, v in weights.items() if k.startswith(prefix)}


digits = load(sys.argv[2])
for name, kind, weights in (
    ("gpt", Gpt, load(sys.argv[1])),
    ("mlp", Digits, below("mlp.", digits)),
    ("conv", Digits, below("lenet.", digits)),
    *((f"conv{i + 1}", Digits, below("lenet.", load(path))) for i, path in enumerate(sys.argv[3:])),
):
    for row in zip(*(losses(kind, weights, half) for half in KINDS)):
        print(name, "%.6g %.6g %.6g" % row)
