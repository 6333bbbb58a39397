#!/usr/bin/env python3
"""An adapter file of peft for samples/lora.mdl; run from the root with PyTorch and peft.

    python3 tests/parity/peft_files.py BASE.st X.npy ADAPTER.st OUT.npy

puts adapters of random weights beside the net of BASE.st, and writes the file that peft saves and
what the net gives of X. tests/parity/peft_adapter.safetensors and peft_out.npy were made so, with peft
0.21.2, of the weights that the sample begins with at --seed 1 (suites/lora.sh).
"""
import os
import shutil
import sys
import tempfile

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F

LAYERS = ["fc1", "fc2", "head"]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.head = nn.Linear(64, 128), nn.Linear(128, 128), nn.Linear(128, 10)

    def forward(self, x):
        return self.head(F.gelu(self.fc2(F.gelu(self.fc1(x)))))


def main(base, rows, adapter, out):
    torch.manual_seed(7)
    net = Net()
    net.load_state_dict({k: v for k, v in load_file(base).items() if k.split(".")[0] in LAYERS})
    x = torch.from_numpy(np.load(rows))
    model = get_peft_model(net, LoraConfig(r=4, lora_alpha=4, target_modules=LAYERS))
    for name, value in model.named_parameters():
        if "lora_B" in name:
            nn.init.normal_(value, std=0.2)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        shutil.copyfile(os.path.join(folder, "adapter_model.safetensors"), adapter)
    np.save(out, model(x).detach().numpy())


if __name__ == "__main__":
    main(*sys.argv[1:])
