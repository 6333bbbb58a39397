#!/usr/bin/env python3
"""Makes of the adapters that a program saved the folder that peft reads: the same file as adapter_model.safetensors,
and beside it adapter_config.json, which says how they are scaled and beside which layers they stand.

    ./lora adapt --load base.st --only fc1,fc2,head --save adapter.st --save-only base_model
    python3 samples/pytorch/peft_folder.py adapter.st 4 adapter     # 4: the alpha of the model
    model = peft.PeftModel.from_pretrained(net, "adapter")          # net: a torch module with the weights of base.st

Ranks and layers stand in the file, alpha does not. Needs Python alone. The other way needs nothing: `--with
adapter/adapter_model.safetensors` takes what peft saved, for a model with the rank and alpha of its adapter_config.json.
"""
import collections
import json
import math
import os
import re
import shutil
import sys

NAME = re.compile(r"base_model\.model\.(.+)\.lora_([AB])\.weight")


def read_shapes(path):
    """The shape of each tensor of the file, by its name."""
    with open(path, "rb") as file:
        head = file.read(8)
        size = int.from_bytes(head, "little")
        try:
            header = json.loads(file.read(size) if 8 + size <= os.path.getsize(path) else "")
            return {name: tensor["shape"] for name, tensor in header.items() if name != "__metadata__"}
        except (ValueError, TypeError, KeyError, AttributeError):
            raise ValueError("it is no safetensors file") from None


def read_ranks(path):
    """The rank of each adapted layer, in the order of the file."""
    ranks = {"A": {}, "B": {}}
    for name, shape in read_shapes(path).items():
        match = NAME.fullmatch(name)
        if not match or len(shape) != 2:
            raise ValueError(f"'{name}' is no weight of an adapter: save with --save-only base_model")
        ranks[match[2]][match[1]] = shape[match[2] == "B"]
    if not ranks["A"] or ranks["A"] != ranks["B"]:
        raise ValueError("it has no adapters, or halves of some: each is a lora_A.weight and a lora_B.weight of one rank")
    return ranks["A"]


def config(ranks, alpha):
    usual = collections.Counter(ranks.values()).most_common(1)[0][0]
    return {
        "peft_type": "LORA",
        "r": usual,
        "lora_alpha": alpha,
        "target_modules": list(ranks),
        # peft takes patterns here: the whole path of a layer whose rank is another one.
        "rank_pattern": {"^" + re.escape(layer): r for layer, r in ranks.items() if r != usual},
        "bias": "none",
        "inference_mode": True,
    }


def main():
    if len(sys.argv) != 4:
        raise SystemExit(f"usage: {sys.argv[0]} ADAPTER.safetensors ALPHA FOLDER")
    source, alpha, folder = sys.argv[1:]
    try:
        alpha = float(alpha)
        if not math.isfinite(alpha):
            raise ValueError
    except ValueError:
        raise SystemExit(f"ALPHA is a number, not '{alpha}'") from None
    try:
        ranks = read_ranks(source)
        os.makedirs(folder, exist_ok=True)
        shutil.copyfile(source, os.path.join(folder, "adapter_model.safetensors"))
        with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as out:
            json.dump(config(ranks, int(alpha) if alpha.is_integer() else alpha), out, indent=2)
            out.write("\n")
    except (OSError, ValueError) as fault:
        raise SystemExit(f"{source}: {fault}") from None


main()
