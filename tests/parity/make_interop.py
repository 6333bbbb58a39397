#!/usr/bin/env python3
"""Writes what tests/suites/interop.sh loads, from PyTorch: weights as a state_dict has them, inputs and
outputs of samples/pytorch/gpt2.mdl and lenet.mdl at the small sizes below.

The files are in the repository; this script says how they came about. Run from the root, with PyTorch,
NumPy and safetensors installed: python3 tests/parity/make_interop.py.
"""
import math

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

FOLDER = "tests/parity/"
B, T, V, C, H, S, DEPTH = 2, 8, 32, 16, 2, 12, 2
WIDE = 8


class Conv1D(nn.Module):
    """GPT-2's linear layer: its weight is [in, out]."""

    def __init__(self, n, out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n, out) / math.sqrt(n))
        self.bias = nn.Parameter(0.1 * torch.randn(out))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn, self.c_proj = Conv1D(C, 3 * C), Conv1D(C, C)

    def forward(self, x):
        q, k, v = (s.view(B, T, H, C // H).transpose(1, 2) for s in self.c_attn(x).split(C, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(C, 4 * C), Conv1D(4 * C, C)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = nn.LayerNorm(C), Attention(), nn.LayerNorm(C), Mlp()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(V, C), nn.Embedding(S, C)
        self.h = nn.ModuleList(Block() for _ in range(DEPTH))
        self.ln_f = nn.LayerNorm(C)

    def forward(self, tok):
        x = self.wte(tok) + self.wpe(torch.arange(T))
        for block in self.h:
            x = block(x)
        return self.ln_f(x) @ self.wte.weight.T


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                                      nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(nn.Linear(400, WIDE), nn.ReLU(), nn.Linear(WIDE, 84), nn.ReLU(),
                                        nn.Linear(84, 10))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def write(name, net, x):
    with torch.no_grad():
        for p in net.parameters():
            p += 0.02 * torch.randn(p.shape)  # no weight is its usual 0 or 1
        np.save(FOLDER + name + "_out.npy", net(x).numpy())
    save_file({k: v.contiguous() for k, v in net.state_dict().items()}, FOLDER + name + ".safetensors",
              metadata={"format": "pt"})


torch.manual_seed(11)
tok = torch.randint(0, V, (B, T))
np.save(FOLDER + "gpt2_tok.npy", tok.numpy().astype("u1"))
write("gpt2", Gpt2(), tok)
x = torch.rand(2, 1, 28, 28).half().float()
np.save(FOLDER + "lenet_x.npy", x.numpy())
write("lenet", LeNet(), x)
