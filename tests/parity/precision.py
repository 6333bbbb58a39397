"""Losses of the PyTorch twin of tests/suites/precision.mdl, in f32 and under autocast to bfloat16.

    program --seed 3 --steps 0 --save init.st; python tests/parity/precision.py init.st > tests/suites/precision.txt
"""
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

B, T, C, H, L = 8, 32, 64, 2, 2
text = torch.tensor(list(open("tests/programs/text.txt", "rb").read()))
tok, tgt = text[: B * T].view(B, T), text[1 : B * T + 1].view(B, T)


def losses(start, half):
    p = {k: v.clone().requires_grad_() for k, v in start.items()}
    rule = torch.optim.AdamW(p.values(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)

    def norm(h, name):
        return F.layer_norm(h, (C,), p[name + ".weight"], p[name + ".bias"])

    def linear(h, name):
        return F.linear(h, p[name + ".weight"], p[name + ".bias"])

    def block(h, at):
        qkv = F.linear(norm(h, at + "ln1"), p[at + "attn.in_proj_weight"], p[at + "attn.in_proj_bias"])
        q, k, v = (x.view(B, T, H, C // H).transpose(1, 2) for x in qkv.split(C, dim=2))
        s = q @ k.transpose(2, 3) / (C // H) ** 0.5
        s = s.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        o = F.softmax(s, -1) @ v
        h = h + linear(o.transpose(1, 2).reshape(B, T, C), at + "attn.out_proj")
        return h + linear(F.gelu(linear(norm(h, at + "ln2"), at + "up"), approximate="tanh"), at + "down")

    for _ in range(50):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            h = 0.3 * p["wte.weight"][tok] + 0.3 * p["wpe.weight"]
            for i in range(L):
                h = block(h, f"h.{i}.")
            logits = F.linear(norm(h, "ln_f"), p["wte.weight"]) / 8
            loss = F.cross_entropy(logits.float().flatten(0, 1), tgt.flatten())
        rule.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(p.values(), 1.0)
        rule.step()
        yield loss.item()


weights = load_file(sys.argv[1])
for row in zip(losses(weights, False), losses(weights, True)):
    print("%.6g %.6g" % row)
