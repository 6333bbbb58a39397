"""Twins of programs that read pictures."""
from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler


def _chain(**parts):
    return nn.Sequential(OrderedDict(parts))


def _right(logits, y):
    return (logits.argmax(-1) == y).double().mean()


def mlp(t):
    net = t.models(net=_chain(fc1=nn.Linear(64, 24), a1=nn.GELU(), fc2=nn.Linear(24, 16), a2=nn.GELU(),
                              head=nn.Linear(16, 10)))
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.01)
    for x, y in t.digits(16):
        logits = net(x)
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        t.report("fit", loss, optimizer, acc=_right(logits, y))
        optimizer.step()


def lenet(t):
    class LeNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
            self.conv2 = nn.Conv2d(4, 6, 3)
            self.fc1 = nn.Linear(6, 12)
            self.fc2 = nn.Linear(12, 10)

        def forward(self, x):
            h = F.max_pool2d(F.relu(self.conv1(x)), 2)
            h = F.max_pool2d(F.relu(self.conv2(h)), 2)
            return self.fc2(F.relu(self.fc1(h.flatten(1))))

    net = t.models(lenet=LeNet())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for x, y in t.digits(8):
        logits = net(x.reshape(-1, 1, 8, 8))
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        t.report("fit", loss, optimizer, acc=_right(logits, y))
        optimizer.step()


def resnet(t):
    class Block(nn.Module):
        def __init__(self, n, out, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(n, out, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(out)
            self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(out)
            if stride != 1 or n != out:
                self.down = nn.Conv2d(n, out, 1, stride, bias=False)
                self.bn3 = nn.BatchNorm2d(out)
            self.plain = stride == 1 and n == out

        def forward(self, x):
            h = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
            return F.relu(h + (x if self.plain else self.bn3(self.down(x))))

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(1, 4, 3, padding=1, bias=False)
            self.bn = nn.BatchNorm2d(4)
            self.layer1 = Block(4, 4, 1)
            self.layer2 = Block(4, 8, 2)
            self.fc = nn.Linear(8, 10)

        def forward(self, x):
            h = F.relu(self.bn(self.stem(x)))
            return self.fc(self.layer2(self.layer1(h)).mean((2, 3)))

    net = t.models(resnet=ResNet())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
    for x, y in t.digits(6):
        loss = F.cross_entropy(net(x.reshape(-1, 1, 8, 8)), y)
        optimizer.zero_grad()
        loss.backward()
        t.report("fit", loss, optimizer)
        optimizer.step()
    net.eval()
    i = torch.arange(64, dtype=t.dtype)
    x = (torch.sin(i / 3) ** 2).expand(2, 64) * torch.tensor([[1.0], [0.5]], dtype=t.dtype)
    t.probe(logits=net(x.reshape(2, 1, 8, 8)))
