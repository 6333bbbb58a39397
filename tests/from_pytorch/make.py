#!/usr/bin/env python3
"""Writes what tests/suites/from_pytorch.sh compares with: runs the PyTorch programs of
docs/from-pytorch.md. Run from the root, with PyTorch and NumPy installed.

NN.safetensors  the weights that program NN begins with
NN.NAME.npy     its inputs, of the shapes and ranges that the train of the .mdl program declares
losses.txt      a line for each program: its number, then the loss before each of three updates
"""
import re
import json
import struct

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

FOLDER, STEPS = "tests/from_pytorch/", 3


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = np.ascontiguousarray(tensor.detach().numpy(), dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


def inputs_of(model):
    """x: [8, 4] and y: i32[8] in 0..3 of the train, in order."""
    signature = re.search(r"train fit\((.*)\) of", model).group(1)
    found = {}
    for name, kind, shape, most in re.findall(r"(\w+): (i32)?\[([\d, ]+)\](?: in 0\.\.(\d+))?", signature):
        extents = [int(n) for n in shape.split(",")]
        found[name] = torch.randint(0, int(most), extents) if kind else torch.randn(extents)
    return found


page = open("docs/from-pytorch.md").read()
programs = re.findall(r"^## (\d+)\. [^\n]*\n\n```python\n(.*?)```\n\n```mdl\n(.*?)```", page, re.S | re.M)
torch.set_num_threads(1)
rows = []
for number, twin, model in programs:
    torch.manual_seed(int(number))
    names = {"torch": torch, "nn": nn, "F": F}
    exec(twin, names)
    net, inputs, losses = names["net"], inputs_of(model), []
    kept = {k: v.clone() for k, v in net.state_dict().items() if v.dtype == torch.float32}
    write_safetensors(f"{FOLDER}{int(number):02}.safetensors", kept)
    for name, value in inputs.items():
        whole = value.dtype == torch.int64
        np.save(f"{FOLDER}{int(number):02}.{name}.npy", value.numpy().astype("<i4" if whole else "<f4"))
    for _ in range(STEPS):
        names["optimizer"].zero_grad()
        value = names["loss"](*inputs.values())
        value.backward()
        if "clip" in names:
            names["clip"]()
        names["optimizer"].step()
        if "scheduler" in names:
            names["scheduler"].step()
        losses.append(value.item())
    rows.append(f"{int(number):02} " + " ".join(f"{v:.8g}" for v in losses))
with open(FOLDER + "losses.txt", "w", newline="\n") as out:
    out.write("\n".join(rows) + "\n")
print("\n".join(rows))
