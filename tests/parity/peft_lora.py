#!/usr/bin/env python3
"""Adapters of emitted programs against Hugging Face's peft, for tests/suites/lora.sh.

names                              writes tests/parity/lora_names.txt: a line for each tensor that peft saves for the
                                   nets below, with the net in front and its shape behind. The file is in the
                                   repository; this is how it came about.
read NET BASE FOLDER X OUT         loads BASE into the net and the adapters of FOLDER through peft, and compares what it
                                   gives for X with OUT
write NET BASE FOLDER X OUT [TYPE] gives the net adapters of random numbers, of element type TYPE, lets peft save them
                                   to FOLDER, and writes what the net gives for X to OUT

Run from the root, with torch, peft, transformers, safetensors and NumPy installed.
"""
import sys

import numpy as np
import peft
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn.functional import gelu
from transformers.pytorch_utils import Conv1D

WITHIN = 1e-5


class Lora(nn.Module):
    """The model of samples/lora.mdl."""
    config = {"r": 4, "lora_alpha": 4, "target_modules": ["fc1", "fc2", "head"]}

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.head = nn.Linear(64, 128), nn.Linear(128, 128), nn.Linear(128, 10)

    def forward(self, x):
        return self.head(gelu(self.fc2(gelu(self.fc1(x)))))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(64, 16), Conv1D(16, 64)

    def forward(self, x):
        return x + self.c_proj(gelu(self.c_fc(x)))


class Adapters(nn.Module):
    """The model of tests/suites/adapters.mdl."""
    config = {"r": 3, "lora_alpha": 12, "rank_pattern": {"c_proj": 5}, "target_modules": ["c_fc", "c_proj", "head"]}

    def __init__(self):
        super().__init__()
        self.h, self.head = nn.ModuleList(Block() for _ in range(2)), nn.Linear(16, 10)

    def forward(self, x):
        for block in self.h:
            x = block(x)
        return self.head(x)


NETS = {"lora": Lora, "adapters": Adapters}


def adapted(net):
    return peft.get_peft_model(net, peft.LoraConfig(**net.config))


def based(name, base):
    net = NETS[name]()
    net.load_state_dict(load_file(base))
    return net


def given(model, x):
    with torch.no_grad():
        return model.eval()(torch.from_numpy(np.load(x))).numpy()


def names():
    with open("tests/parity/lora_names.txt", "w", newline="\n") as out:
        for name, net in NETS.items():
            for tensor, value in sorted(peft.get_peft_model_state_dict(adapted(net())).items()):
                print(name, tensor, *value.shape, file=out)


def read(name, base, folder, x, out):
    # Twice: as one call, and with what peft says of names that it does not know or lacks.
    model = peft.PeftModel.from_pretrained(based(name, base), folder)
    plain = adapted(based(name, base))
    said = peft.set_peft_model_state_dict(plain, peft.load_peft_weights(folder, device="cpu"))
    wrong = said.unexpected_keys + [key for key in said.missing_keys if "lora_" in key]
    if wrong:
        raise SystemExit(f"peft does not know, or lacks: {wrong}")
    want = np.load(out)
    for loaded in model, plain:
        got = given(loaded, x)
        with loaded.disable_adapter():
            without = given(loaded, x)
        off, moved = abs(got - want).max(), abs(got - without).max()
        print(f"{name}: off by {off:.2g}, adapters add {moved:.2g}, largest {abs(got).max():.3g}")
        if not off <= WITHIN * max(1, abs(want).max()) or not moved > 1000 * off:
            raise SystemExit("the outputs differ, or adapters add nothing")


def write(name, base, folder, x, out, kind="float32"):
    model = adapted(based(name, base))
    torch.manual_seed(5)
    for tensor, value in model.named_parameters():
        if "lora_" in tensor:
            # What the file can hold, computed with in single precision: as the program does that reads it.
            value.data = (0.3 * torch.randn(value.shape)).to(getattr(torch, kind)).float()
    np.save(out, given(model, x))
    for tensor, value in model.named_parameters():
        if "lora_" in tensor:
            value.data = value.data.to(getattr(torch, kind))
    model.save_pretrained(folder)


{"names": names, "read": read, "write": write}[sys.argv[1]](*sys.argv[2:])
