#!/usr/bin/env python3
"""The PyTorch twin of tests/bench/chargpt.mdl, run by tests/bench/chargpt.sh.

    chargpt.py init FILE                      writes the weights both begin with (safetensors)
    chargpt.py train FILE TEXT STEPS THREADS  trains from them; prints seconds, processor seconds of the
                                              steps, loss of the held-out windows, peak of memory in MB

Windows, their order, what is held out, rates, decay and clip are those of the model. Attention is
PyTorch's fused one.
"""
import json
import math
import os
import resource
import struct
import sys
import time

if sys.argv[1] == "train":
    os.environ["OMP_NUM_THREADS"] = sys.argv[5]

import numpy as np  # noqa: E402
import torch  # noqa: E402  (reads OMP_NUM_THREADS when it is loaded)
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

B, T, V, C, H, L = 12, 256, 128, 384, 6, 6
PEAK, WARMUP, DECAY, CLIP, EVERY = 1e-3, 20, 0.1, 1.0, 10
PARTS = {"ln1": "ln1", "attn": "attention.attn", "proj": "attention.proj", "ln2": "ln2", "up": "up", "down": "down"}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.attn, self.proj = nn.LayerNorm(C), nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.ln2, self.up, self.down = nn.LayerNorm(C), nn.Linear(C, 4 * C), nn.Linear(4 * C, C)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, H, c // H).transpose(1, 2) for part in self.attn(self.ln1(x)).split(c, 2))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(o.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(V, C), nn.Parameter(0.02 * torch.randn(T, C))
        self.blocks, self.lnf = nn.ModuleList(Block() for _ in range(L)), nn.LayerNorm(C)
        self.head = nn.Linear(C, V, bias=False)

    def forward(self, tok):
        x = self.wte(tok) + self.wpe
        for block in self.blocks:
            x = block(x)
        return self.head(self.lnf(x))

    def tensors(self):
        """By the names of the model, whose blocks share one tensor: lists of the parameters in it."""
        named = {"wte.weight": self.wte.weight, "wpe": self.wpe, "lnf.weight": self.lnf.weight,
                 "lnf.bias": self.lnf.bias, "head.weight": self.head.weight}
        for ours, theirs in PARTS.items():
            for end in ("weight", "bias"):
                named[f"block.{theirs}.{end}"] = [getattr(getattr(b, ours), end) for b in self.blocks]
        return named


def init(path):
    torch.manual_seed(0)
    net = Gpt()
    nn.init.normal_(net.wte.weight, std=0.02)
    header, data = {}, b""
    for name, value in net.tensors().items():
        value = torch.stack(value) if isinstance(value, list) else value
        raw = np.ascontiguousarray(value.detach().numpy(), dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


def load(net, path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    with torch.no_grad():
        for name, into in net.tensors().items():
            begin, end = header[name]["data_offsets"]
            value = torch.from_numpy(np.frombuffer(data[begin:end], dtype="<f4").reshape(header[name]["shape"]).copy())
            for target, source in zip(into, value) if isinstance(into, list) else [(into, value)]:
                target.copy_(source)


def rate(step, steps):
    done = min(max((step - 1 - WARMUP) / max(1, steps - WARMUP), 0), 1)
    return PEAK * min(1, step / WARMUP) * math.cos(math.pi / 2 * done) ** 2


def train(path, text, steps, threads):
    torch.set_num_threads(threads)
    net = Gpt()
    load(net, path)
    with open(text, "rb") as file:
        letters = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).long()
    rows = (len(letters) - 1) // T
    windows = torch.stack([letters[i * T:i * T + T + 1] for i in range(rows)])
    held = torch.arange(rows) % EVERY == EVERY - 1
    rest, held = windows[~held], windows[held]

    def loss_of(batch, reduction="mean"):
        return F.cross_entropy(net(batch[:, :-1]).reshape(-1, V), batch[:, 1:].reshape(-1), reduction=reduction)

    optimizer = torch.optim.AdamW(net.parameters(), lr=PEAK, weight_decay=DECAY, fused=True)
    begun, used = time.monotonic(), time.process_time()
    for step in range(1, steps + 1):
        first = (step - 1) % (len(rest) // B) * B
        optimizer.param_groups[0]["lr"] = rate(step, steps)
        optimizer.zero_grad(set_to_none=True)
        loss_of(rest[first:first + B]).backward()
        nn.utils.clip_grad_norm_(net.parameters(), CLIP)
        optimizer.step()
    took, used = time.monotonic() - begun, time.process_time() - used
    with torch.no_grad():
        loss = sum(loss_of(held[i:i + B], "sum").item() for i in range(0, len(held), B)) / (len(held) * T)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{took:.1f} {used:.1f} {loss:.4f} {peak:.0f}")


if sys.argv[1] == "init":
    init(sys.argv[2])
else:
    train(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
