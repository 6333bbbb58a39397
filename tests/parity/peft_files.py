#!/usr/bin/env python3
"""Adapter files of samples/lora.mdl and of peft, both ways; run from the root with PyTorch and peft.

    python3 tests/parity/peft_files.py write BASE.st X.npy ADAPTER.st OUT.npy

puts adapters of random weights beside the net of BASE.st, and writes the file that peft saves and
what the net gives of X. tests/parity/peft_adapter.safetensors and peft_out.npy were made so, with peft
0.21.2, of the weights that the sample begins with at --seed 1 (suites/lora.sh).

    python3 tests/parity/peft_files.py read BASE.st X.npy ADAPTER.st OUT.npy

loads the adapters with peft and says how far OUT is from what the net gives then: status 1 above 1e-5.
"""
import os
import shutil
import sys
import tempfile

import numpy as np
import torch
from peft import LoraConfig, PeftModel, get_peft_model
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


def main(command, base, rows, adapter, out):
    torch.manual_seed(7)
    net = Net()
    net.load_state_dict({k: v for k, v in load_file(base).items() if k.split(".")[0] in LAYERS})
    x = torch.from_numpy(np.load(rows))
    config = LoraConfig(r=4, lora_alpha=4, target_modules=LAYERS)
    with tempfile.TemporaryDirectory() as folder:
        if command == "write":
            model = get_peft_model(net, config)
            for name, value in model.named_parameters():
                if "lora_B" in name:
                    nn.init.normal_(value, std=0.2)
            model.save_pretrained(folder)
            shutil.copyfile(os.path.join(folder, "adapter_model.safetensors"), adapter)
            np.save(out, model(x).detach().numpy())
            return 0
        get_peft_model(Net(), config).save_pretrained(folder)
        shutil.copyfile(adapter, os.path.join(folder, "adapter_model.safetensors"))
        model = PeftModel.from_pretrained(net, folder)
        used = sum(bool(v.abs().max() > 0) for k, v in model.named_parameters() if "lora_B" in k)
        gap = np.abs(model(x).detach().numpy() - np.load(out)).max()
        print(f"{used} adapters, {gap:.2g} apart")
        return int(used != len(LAYERS) or not gap <= 1e-5)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
