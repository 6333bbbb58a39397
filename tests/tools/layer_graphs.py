"""Writes the layer graphs of tests/data/layers: five nets, forward and backward.

A line is a step: its name, its cost in FLOPs (one picture), the bytes of its result, and the steps
that it reads. What a net reads and its weights are not counted.
usage: layer_graphs.py FOLDER
"""
import sys
from pathlib import Path


class Net:
    def __init__(self, size):
        self.step, self.shape = [], []  # (kind, FLOPs, inputs)
        self.last = self.add("input", 0, (3, size, size))

    def add(self, kind, flops, shape, *ins):
        self.step.append((kind, flops, list(ins)))
        self.shape.append(shape)
        return len(self.step) - 1

    def elements(self, i):
        c, h, w = self.shape[i]
        return c * h * w

    def conv(self, x, out, k=3, stride=1):
        c, h, w = self.shape[x]
        h, w = h // stride, w // stride
        return self.add("conv", 2 * h * w * out * c * k * k, (out, h, w), x)

    def full(self, x, out):
        return self.add("full", 2 * self.elements(x) * out, (out, 1, 1), x)

    def map(self, kind, ins, per=1, shape=None):
        c, h, w = shape or self.shape[ins[0]]
        return self.add(kind, per * c * h * w, (c, h, w), *ins)

    def pool(self, x):
        c, h, w = self.shape[x]
        return self.map("pool", [x], 4, (c, h // 2, w // 2))

    def deconv(self, x, by):
        c, h, w = self.shape[x]
        flops = 2 * h * w * c * c * 4 * by * by
        return self.add("deconv", flops, (c, h * by, w * by), x)


def vgg_body(net, counts):
    x, stages = 0, []
    for channels, count in zip((64, 128, 256, 512, 512), counts):
        for _ in range(count):
            x = net.conv(x, channels)
        x = net.pool(x)
        stages.append(x)
    return stages


def vgg(counts):
    net = Net(224)
    x = vgg_body(net, counts)[-1]
    for out in (4096, 4096, 1000):
        x = net.full(x, out)
    return net, x


def fcn8():
    net = Net(224)
    stages = vgg_body(net, (2, 2, 3, 3, 3))
    x = net.conv(net.conv(net.conv(stages[4], 4096, 7), 4096, 1), 21, 1)
    for stage in (3, 2):
        x = net.deconv(x, 2)
        x = net.map("add", [x, net.conv(stages[stage], 21, 1)])
    return net, net.deconv(x, 8)


def unet():
    net, x, skips = Net(256), 0, []
    for channels in (64, 128, 256, 512):
        x = net.conv(net.conv(x, channels), channels)
        skips.append(x)
        x = net.pool(x)
    x = net.conv(net.conv(x, 1024), 1024)
    for channels in (512, 256, 128, 64):
        _, h, w = net.shape[x]
        x = net.conv(net.map("up", [x], 1, (2 * channels, 2 * h, 2 * w)), channels, 2)
        x = net.map("cat", [skips.pop(), x], 1, (2 * channels, 2 * h, 2 * w))
        x = net.conv(net.conv(x, channels), channels)
    return net, net.conv(x, 2, 1)


def resnet50():
    net = Net(224)

    def normed(x, out, k, stride=1, relu=True):
        x = net.map("norm", [net.conv(x, out, k, stride)], 8)
        return net.map("relu", [x]) if relu else x

    x = net.pool(normed(0, 64, 7, 2))
    for channels, blocks, first in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            stride = first if block == 0 else 1
            y = normed(normed(x, channels, 1), channels, 3, stride)
            y = normed(y, 4 * channels, 1, 1, False)
            short = normed(x, 4 * channels, 1, stride, False) if block == 0 else x
            x = net.map("relu", [net.map("add", [y, short])])
    return net, net.full(net.map("mean", [x], 49, (2048, 1, 1)), 1000)


PRODUCTS = ("conv", "full", "deconv")
BY_OPERAND = PRODUCTS + ("norm", "relu", "pool")  # whose derivative reads what they read,
BY_RESULT = ("conv", "relu", "pool")  # and what they gave: convolutions end in a ReLU


def training(net, last):
    out = [(k, f, 4 * net.elements(i) if i else 0, ins) for i, (k, f, ins) in enumerate(net.step)]
    users = {}
    for i, (_, _, ins) in enumerate(net.step):
        for x in ins:
            users.setdefault(x, []).append(i)
    loss = len(out)
    out.append(("loss", 10 * net.elements(last), 4, [last]))
    back = {None: len(out)}  # by layer: the step that makes the cotangents of what it reads
    out.append(("d_loss", 5 * net.elements(last), 4 * net.elements(last), [last, loss]))
    for i in range(last, 0, -1):
        kind, flops, ins = net.step[i]
        reads = {back[u] for u in users.get(i, [None])}
        reads |= set(ins) if kind in BY_OPERAND else set()
        reads |= {i} if kind in BY_RESULT else set()
        elements = 1 if ins == [0] else sum(net.elements(x) for x in ins)
        back[i] = len(out)
        cost = 2 * flops if kind in PRODUCTS else flops
        out.append(("d_" + kind, cost, 4 * elements, sorted(reads)))
    return out


NETS = {
    "vgg16": lambda: vgg((2, 2, 3, 3, 3)),
    "vgg19": lambda: vgg((2, 2, 4, 4, 4)),
    "fcn8": fcn8,
    "unet": unet,
    "resnet50": resnet50,
}

if __name__ == "__main__":
    for name, make in NETS.items():
        lines = [
            " ".join(str(x) for x in (kind, cost, size, *reads))
            for kind, cost, size, reads in training(*make())
        ]
        Path(sys.argv[1], name + ".txt").write_text("\n".join(lines) + "\n")
