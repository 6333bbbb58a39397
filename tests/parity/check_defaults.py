#!/usr/bin/env python3
"""Compares tests/library/defaults.txt with PyTorch: each argument of column PYTORCH has the value that ours
has, or the one that is written there with a reason. Run from the root, with PyTorch installed."""
import inspect

import torch
from torch import nn
from torch.optim import lr_scheduler

rows = 0
for line in open("tests/library/defaults.txt"):
    if line[0] == "#":
        continue
    ours, _, _, theirs, reason = (part.strip() for part in line.rstrip("\n").split("|"))
    expected = ours.split(" ", 2)[2]
    if theirs == "-":
        assert reason, line
        continue
    if "=" in theirs:
        assert reason, line
        theirs, expected = theirs.split(" = ")
    path, parameter = theirs.rsplit(".", 1)
    parameter, _, place = parameter.partition("[")
    function = nn.init if path.startswith("init.") else next(
        getattr(m, path) for m in (nn, torch.optim, lr_scheduler) if hasattr(m, path))
    if function is nn.init:
        function = getattr(nn.init, path[5:])
    value = inspect.signature(function).parameters[parameter].default
    value = value[int(place[:-1])] if place else value
    assert value == eval(expected, {"true": True, "false": False}), (line, value)
