#!/usr/bin/env python3
"""What PyTorch gives of the encoder of tests/unit/programs/10_bert_phases.mdl, from weights that the program wrote.

    python3 tests/parity/make_encoder.py WEIGHTS.st TOK.npy N.npy OUT.npy

tests/parity/encoder_out.npy was made so, in double precision, of the weights of --seed 1 and the texts of
suites/encoder.sh, which has its shapes: six layers, 384 wide, twelve heads, 30,522 words.
"""
import sys

import numpy as np
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

HEADS = 12


def encode(w, tok, n):
    batch, length = tok.shape
    there = torch.arange(length) < n[:, None]

    def linear(x, name, i):
        return F.linear(x, w[f"encoder_block.{name}.weight"][i], w[f"encoder_block.{name}.bias"][i])

    def norm(x, name, *i):
        weight, bias = (w[f"{name}.{part}"][i] for part in ("weight", "bias"))
        return F.layer_norm(x, x.shape[-1:], weight, bias, eps=1e-12)

    x = norm(w["word.weight"][tok] + w["pos"], "ln")
    for i in range(len(w["encoder_block.q.weight"])):
        q, k, v = (linear(x, name, i).view(batch, length, HEADS, -1).transpose(1, 2) for name in "qkv")
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=there[:, None, None, :])
        y = norm(x + linear(o.transpose(1, 2).reshape(x.shape), "o", i), "encoder_block.ln1", i)
        x = norm(y + linear(F.gelu(linear(y, "up", i)), "down", i), "encoder_block.ln2", i)
    return F.normalize((x * there[:, :, None]).sum(1), dim=1)


def main(weights, tok, n, out):
    w = {name[5:]: value.double() for name, value in load_file(weights).items() if name.startswith("bert.")}
    tok, n = (torch.from_numpy(np.load(path).astype(np.int64)) for path in (tok, n))
    np.save(out, encode(w, tok, n).float().numpy())


main(*sys.argv[1:])
