#!/usr/bin/env python3
"""A peer of tests/bench/turns.py: one training step of PyTorch, eager and compiled, or one prediction.

    torch_bench.py digits|mlp|dqn|wide|lenet|lenet5|resnet|mobile|unet|lstm|gpt|gpt2|gpt2long|mse THREADS fit|predict

With DEVICE=cuda on a graphics processor, in f32 throughout (no TF32), where a step ends when the device has.
With PRECISION=bf16 or f16 under autocast, in f16 with a GradScaler.

Prints the names of what it can time in one line; then for each of them that it reads the median time of
a step over a second, in microseconds.
"""
import itertools
import math
import os
import sys
import time

case, threads, predicts = sys.argv[1], int(sys.argv[2]), sys.argv[3:] == ["predict"]
os.environ["OMP_NUM_THREADS"] = str(threads)

import torch  # noqa: E402  (reads OMP_NUM_THREADS when it is loaded)
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

LETTERS = 50257 if case in ("gpt2", "gpt2long") else 65
TEXTS = {"lstm": (32, 129), "gpt": (12, 65), "gpt2": (4, 65), "gpt2long": (1, 1025)}  # batch, letters
SECONDS, BATCHES = 1.0, 4 if case == "mse" and not predicts else 64  # batches take turns, see step.c
DEVICE = os.environ.get("DEVICE", "cpu")
HALF = {"bf16": torch.bfloat16, "f16": torch.float16}.get(os.environ.get("PRECISION", "f32"))
torch.set_num_threads(threads)
torch.set_default_device(DEVICE)
torch.backends.cudnn.allow_tf32 = False
torch.manual_seed(0)


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.head = nn.Linear(64, 128), nn.Linear(128, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = F.dropout(F.gelu(self.fc1(x)), 0.1, self.training)
        x = F.dropout(F.gelu(self.fc2(x)), 0.1, self.training)
        return self.head(x)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(784, 512), nn.Linear(512, 512), nn.Linear(512, 10)

    def forward(self, x):
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


class Lenet(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))


class Lenet5(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


class Two(nn.Sequential):
    def __init__(self, c, out):
        super().__init__(nn.Conv2d(c, out, 3, padding=1), nn.GroupNorm(8, out), nn.ReLU(),
                         nn.Conv2d(out, out, 3, padding=1), nn.GroupNorm(8, out), nn.ReLU())


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.mid = Two(3, 32), Two(32, 64), Two(64, 128)
        self.up2, self.up1, self.head = Two(192, 64), Two(96, 32), nn.Conv2d(32, 3, 1)

    def forward(self, x):
        a = self.down1(x.view(-1, 3, 64, 64))
        b = self.down2(F.max_pool2d(a, 2))
        c = self.mid(F.max_pool2d(b, 2))
        d = self.up2(torch.cat((F.interpolate(c, scale_factor=2), b), 1))
        return self.head(self.up1(torch.cat((F.interpolate(d, scale_factor=2), a), 1)))


class Unit(nn.Module):
    def __init__(self, c, out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(c, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.short = nn.Sequential() if stride == 1 and c == out else nn.Sequential(
            nn.Conv2d(c, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.short(x))


class Resnet(nn.Sequential):
    def __init__(self):
        layers, c = [nn.Unflatten(1, (3, 32, 32)), nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()], 16
        for out, stride in ((16, 1), (32, 2), (64, 2)):
            for i in range(3):
                layers.append(Unit(c, out, stride if i == 0 else 1))
                c = out
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Mobile(nn.Sequential):
    def __init__(self):
        layers, c = [nn.Unflatten(1, (3, 32, 32)), nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()], 64
        for out, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1)):
            layers += [nn.Conv2d(c, c, 3, stride, 1, groups=c, bias=False), nn.BatchNorm2d(c), nn.ReLU(),
                       nn.Conv2d(c, out, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU()]
            c = out
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 10))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.rnn, self.head = nn.Embedding(LETTERS, 256), nn.LSTM(256, 256, batch_first=True), nn.Linear(256, LETTERS)

    def forward(self, tok):
        return self.head(self.rnn(self.table(tok))[0])


class Block(nn.Module):
    def __init__(self, c, heads, gelu):
        super().__init__()
        self.heads, self.gelu = heads, gelu
        self.ln1, self.attn, self.proj = nn.LayerNorm(c), nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.ln2, self.up, self.down = nn.LayerNorm(c), nn.Linear(c, 4 * c), nn.Linear(4 * c, c)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in self.attn(self.ln1(x)).split(c, 2))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(o.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate=self.gelu))


class Gpt(nn.Module):
    def __init__(self, c=128, length=64, layers=4, heads=4, gelu="tanh"):
        super().__init__()
        self.table, self.place = nn.Embedding(LETTERS, c), nn.Parameter(0.02 * torch.randn(length, c))
        if LETTERS > 65:  # as GPT-2 begins: with larger words most probabilities would be subnormal
            nn.init.normal_(self.table.weight, std=0.02)
        self.blocks, self.ln = nn.Sequential(*(Block(c, heads, gelu) for _ in range(layers))), nn.LayerNorm(c)

    def forward(self, tok):
        return F.linear(self.ln(self.blocks(self.table(tok) + self.place)), self.table.weight)


class Chain(nn.Sequential):
    def __init__(self, *widths):
        layers = [nn.Linear(widths[0], widths[1])]
        for i in range(1, len(widths) - 1):
            layers += [nn.ReLU(), nn.Linear(widths[i], widths[i + 1])]
        super().__init__(*layers)


def update_of(loss_of, optimizer, compiled, before=lambda: None):
    """A step on a batch: the loss, in the precision that is asked for, gradients and an update."""
    scaler = torch.amp.GradScaler(DEVICE, enabled=HALF == torch.float16)

    def cast(*batch):
        with torch.autocast(DEVICE, dtype=HALF or torch.bfloat16, enabled=HALF is not None):
            return loss_of(*batch)

    loss = torch.compile(cast) if compiled else cast

    def update(*batch):
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss(*batch)).backward()
        scaler.unscale_(optimizer)
        before()
        scaler.step(optimizer)
        scaler.update()

    return update


def small_step(compiled):
    """The update of a DQN on a batch that is there, or of 4-8096-4."""
    dqn = case == "dqn"
    net, target = (Chain(4, 120, 84, 2), Chain(4, 120, 84, 2)) if dqn else (Chain(4, 8096, 4), None)
    batches = itertools.cycle(torch.rand(BATCHES, 128, 10) if dqn else torch.rand(BATCHES, 64, 4))
    act = torch.arange(128)[:, None] % 2
    optimizer = (torch.optim.Adam(net.parameters(), lr=2.5e-4, fused=True) if dqn
                 else torch.optim.SGD(net.parameters(), lr=1e-4, fused=True))

    def loss_of(x):
        if not dqn:
            return ((net(x) - 1) ** 2).mean()
        with torch.no_grad():
            goal = x[:, 8] + 0.99 * (1 - x[:, 9]) * target(x[:, 4:8]).max(1).values
        return F.mse_loss(net(x[:, :4]).gather(1, act).squeeze(1), goal)

    update = update_of(loss_of, optimizer, compiled)

    def step():
        update(next(batches))

    for _ in range(30):
        step()
    return step


def make_net():
    return {"digits": Digits, "mlp": Mlp, "lenet": Lenet, "lenet5": Lenet5, "resnet": Resnet, "mobile": Mobile,
            "unet": Unet, "lstm": Lstm, "gpt": Gpt, "gpt2": lambda: Gpt(768, 64, 12, 12, "none"),
            "gpt2long": lambda: Gpt(768, 1024, 12, 12, "none"), "mse": lambda: Chain(10000, 10000, 10000),
            "wide": lambda: Chain(4, 8096, 4)}[case]()


def make_prediction(compiled):
    """Of one row at a time, as numbers from 0 to 1 that texts are made of."""
    net = make_net().eval()
    texts = case in TEXTS
    width = {"digits": 64, "wide": 4, "unet": 3 * 64 * 64, "resnet": 3072, "mobile": 3072, "mse": 10000}.get(case, TEXTS.get(case, (1, 784))[1])
    rows = itertools.cycle(torch.rand(BATCHES, 1, width))

    def predict(x):
        return net((x[:, :-1] * LETTERS).long().clamp(0, LETTERS - 1)) if texts else net(x)

    if compiled:
        predict = torch.compile(predict)

    def step():
        with torch.inference_mode():
            predict(next(rows))

    for _ in range(3 if case in ("gpt2long", "mse") else 30):
        step()
    return step


def make_step(compiled):
    if predicts:
        return make_prediction(compiled)
    if case in ("dqn", "wide"):
        return small_step(compiled)
    digits = case == "digits"
    net = make_net()
    images, texts = case in ("resnet", "mobile"), case in TEXTS
    batch, width = {"digits": (128, 64), "lenet5": (128, 784), "unet": (8, 3 * 64 * 64), "mse": (1000, 10000), **TEXTS}.get(
        case, (32, 3072) if images else (64, 784))
    batches, y = itertools.cycle(torch.rand(BATCHES, batch, width)), torch.arange(batch) % 10
    optimizer = (torch.optim.SGD(net.parameters(), lr=0.01, fused=True) if images or case == "mse" else
                 torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4,
                                 fused=True) if case == "lenet5" else
                 torch.optim.AdamW(net.parameters(), lr=3e-3 if digits else 1e-3, weight_decay=0.01, fused=True))
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda k: 0.5 * (1 + math.cos(math.pi * min(1, k / 660)))) if digits else None

    def loss_of(x, y):
        if texts:
            tok = (x * LETTERS).long().clamp(0, LETTERS - 1)
            return F.cross_entropy(net(tok[:, :-1]).flatten(0, 1), tok[:, 1:].flatten())
        if case == "mse":
            return ((net(x) - x) ** 2).mean()
        if case == "unet":
            return ((net(x) - x.view(-1, 3, 64, 64)) ** 2).mean()
        return F.cross_entropy(net(x), y, label_smoothing=0.1 if digits else 0.0)

    update = update_of(loss_of, optimizer, compiled, lambda: digits and torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0))

    def step():
        update(next(batches), y)
        if rate:
            rate.step()

    for _ in range(3 if case in ("gpt2", "gpt2long", "mse") else 30):
        step()
    return step


def median_of(step):
    took, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        step()
        if DEVICE != "cpu":
            torch.cuda.synchronize()
        took.append(time.perf_counter() - start)
    return 1e6 * sorted(took)[len(took) // 2]


steps = {"eager": make_step(False)}
try:
    steps["compiled"] = make_step(True)
except Exception as error:  # no C++ compiler, or a version without inductor
    print(f"torch.compile: {type(error).__name__}: {error}", file=sys.stderr)
print(*steps, flush=True)
for name in sys.stdin:
    print(f"{median_of(steps[name.strip()]):.2f}", flush=True)
