"""Twins of programs with loops of their own, states that outlive a step, and derivatives inside."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from make_programs import Pack, chain, right

V = 128


def twice(t):
    """Batch normalisation in a network that one step calls two times: its statistics move twice."""
    disc = t.models(disc=Pack(c1=nn.Conv2d(1, 4, 4, stride=2, padding=1, bias=False), bn=nn.BatchNorm2d(4),
                              fc=nn.Linear(64, 1)))
    optimizer = torch.optim.Adam(disc.parameters(), lr=1e-3, eps=1e-4)

    def call(x):
        return disc.fc(F.leaky_relu(disc.bn(disc.c1(x)), 0.2).flatten(1))[:, 0]

    for x, _ in t.digits(6):
        x = x.reshape(-1, 1, 8, 8)
        real, fake = call(x), call(1 - x)
        loss = F.softplus(-real).mean() + F.softplus(fake).mean()
        t.update("fit", loss, optimizer)
    disc.eval()
    p = torch.sin(torch.arange(64, dtype=t.dtype) / 3) ** 2
    t.probe(out=call(p.reshape(1, 1, 8, 8)))


def stateful(t):
    """A recurrent network whose state goes on from batch to batch."""
    net = t.models(net=Pack(embed=nn.Embedding(V, 6), gru=nn.GRUCell(6, 10), head=nn.Linear(10, V)))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-4)
    h = torch.zeros(4, 10, dtype=t.dtype)
    for tok, tgt in t.chars(4, 8):
        h, losses = h.detach(), []
        for i in range(8):
            h = net.gru(net.embed(tok[:, i]), h)
            losses.append(F.cross_entropy(net.head(h), tgt[:, i]))
        t.update("fit", sum(losses) / 8, optimizer, size=(h ** 2).mean())


def lm_stream(t):
    """Two LSTMs with a tied input gate over a stream; derivatives end where a batch begins."""
    n, h, length = 4, 6, 5

    def cell():
        u = lambda *shape: torch.rand(*shape) * 0.6 - 0.3
        return Pack(wx=u(h, 3, h), wh=u(h, 3, h), bias=torch.stack([torch.ones(h), torch.zeros(h), torch.zeros(h)]))

    net = t.models(rename=lambda name: name.replace("lstm.0.", "lstm.").replace("lstm.1.", "lstm."),
                   lm=Pack(emb=nn.Embedding(V, h), lstm=nn.ModuleList([Pack(cell=cell()), Pack(cell=cell())]),
                           head=nn.Linear(h, V)))
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
    hs, cs = ([torch.zeros(n, h, dtype=t.dtype) for _ in range(2)] for _ in range(2))
    for tok, tgt in t.stream(n, length):
        x = net.emb(tok)
        for l in range(2):
            p, a, c, out = net.lstm[l].cell, hs[l].detach(), cs[l].detach(), []
            for s in range(length):
                g = torch.einsum("bi,igk->bgk", x[:, s], p.wx) + torch.einsum("bj,jgk->bgk", a, p.wh) + p.bias
                f = torch.sigmoid(g[:, 0])
                c = f * c + (1 - f) * torch.tanh(g[:, 1])
                a = torch.sigmoid(g[:, 2]) * torch.tanh(c)
                out.append(a)
            x, hs[l], cs[l] = torch.stack(out, 1), a, c
        loss = F.cross_entropy(net.head(x).reshape(-1, V), tgt.reshape(-1))
        size = (torch.stack(hs) ** 2).mean() + (torch.stack(cs) ** 2).mean()
        t.update("fit", loss, optimizer, clip=lambda p: nn.utils.clip_grad_norm_(p, 0.25), size=size)


def inner(t):
    """Three steps of gradient descent inside of a step, with momentum, and rates that are learned."""
    net = t.models(net=Pack(w=torch.randn(3, 10) / 3, b=torch.zeros(3), rate=torch.full((1,), 0.3)))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, eps=1e-4)
    for x, y in t.diabetes(12):
        label = (y > 100).long() + (y > 180).long()
        w, b, m = net.w, net.b, torch.zeros(3, 10, dtype=t.dtype)
        for _ in range(3):
            l = F.cross_entropy(x[:6] @ w.T + b, label[:6])
            gw, gb = torch.autograd.grad(l, (w, b), create_graph=True)
            m = 0.5 * m + gw
            w, b = w - net.rate * m, b - net.rate * gb
        t.update("fit", F.cross_entropy(x[6:] @ w.T + b, label[6:]), optimizer)


def r1(t):
    """A convolutional critic with pools that overlap and a penalty on its slope at real pictures."""
    net = t.models(net=Pack(c1=nn.Conv2d(1, 4, 3, padding=2, dilation=2), c2=nn.Conv2d(4, 6, 3, stride=2, groups=2),
                            fc=nn.Linear(6, 1)))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, eps=1e-4)
    for x, _ in t.digits(4):
        x = (x + 0.01 * torch.sin(torch.arange(64, dtype=t.dtype))).reshape(-1, 1, 8, 8).requires_grad_()
        h = F.max_pool2d(F.softplus(net.c1(x)), 3, stride=2, padding=1)
        h = F.avg_pool2d(h, 2, stride=1, padding=1)
        s = net.fc(torch.tanh(net.c2(h)).mean((2, 3)))[:, 0]
        slope, = torch.autograd.grad(s.sum(), x, create_graph=True)
        penalty = (slope ** 2).sum((1, 2, 3)).mean()
        t.update("fit", F.softplus(-s).mean() + 5 * penalty, optimizer, penalty=penalty)


def deep(t):
    """Blocks in a loop with batch normalisation, and an average of all weights."""
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(12, 12)
            self.bn = nn.BatchNorm1d(12, momentum=0.3)

        def forward(self, x):
            return x + F.relu(self.bn(self.fc(x)))

    net = t.models(rename=lambda n: n.replace("blocks.0", "block").replace("blocks.1", "block").replace("blocks.2", "block"),
                   net=Pack(stem=nn.Linear(64, 12), blocks=nn.ModuleList([Block() for _ in range(3)]), head=nn.Linear(12, 10)))

    def call(x):
        h = torch.tanh(net.stem(x))
        for b in net.blocks:
            h = b(h)
        return net.head(h)

    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for x, y in t.digits(10):
        t.update("fit", F.cross_entropy(call(x), y), optimizer)
    net.eval()
    t.probe(out=call(torch.sin(torch.arange(64, dtype=t.dtype) / 3)[None] ** 2))


def unrolled(t):
    """Batch normalisation in a recurrence: one layer, six times a step."""
    net = t.models(net=Pack(inp=nn.Linear(10, 8), fc=nn.Linear(8, 8, bias=False), bn=nn.BatchNorm1d(8), out=nn.Linear(8, 1)))

    def call(x):
        u = net.inp(x)
        h = torch.zeros_like(u)
        for _ in range(6):
            h = 0.5 * h + torch.tanh(net.bn(net.fc(h) + u))
        return net.out(h)[:, 0]

    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-4)
    for x, y in t.diabetes(10):
        t.update("fit", F.mse_loss(call(x), y / 100), optimizer)
    net.eval()
    t.probe(out=call(torch.sin(torch.arange(10, dtype=t.dtype))[None]))


def gaussian(t):
    """A Gaussian process: the likelihood of six targets by a Cholesky factor."""
    net = t.models(net=Pack(scale=torch.zeros(10), noise=torch.full((1,), -1.0), size=torch.zeros(1)))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-2, eps=1e-4)
    for x, y in t.diabetes(6):
        z = x * torch.exp(net.scale) / 3
        k = torch.exp(net.size - 0.5 * ((z[:, None] - z[None]) ** 2).sum(-1))
        k = k + torch.exp(net.noise) * torch.eye(6, dtype=t.dtype)
        factor = torch.linalg.cholesky(k)
        a = torch.linalg.solve_triangular(factor, (y / 100 - 1.5)[:, None], upper=False)[:, 0]
        loss = 0.5 * (a ** 2).sum() + torch.log(torch.diagonal(factor)).sum()
        t.update("fit", loss, optimizer)


def sinkhorn(t):
    """Optimal transport between two batches of points, ten rounds in the log domain."""
    net = t.models(net=chain(fc1=nn.Linear(5, 8), a=nn.Tanh(), fc2=nn.Linear(8, 5)))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3, eps=1e-4)
    for x, _ in t.diabetes(8):
        a, b = net(x[:, :5]), x[:, 5:]
        cost = ((a[:, None] - b[None]) ** 2).sum(-1)
        f, g = torch.zeros(8, dtype=t.dtype), torch.zeros(8, dtype=t.dtype)
        for _ in range(10):
            f = -torch.logsumexp(g[None, :] - cost, 1)
            g = -torch.logsumexp(f[:, None] - cost, 0)
        plan = torch.exp(f[:, None] + g[None, :] - cost)
        t.update("fit", (plan * cost).sum() / 8, optimizer, mass=(plan.sum(1) ** 2).mean())


def kalman(t):
    """A Kalman filter over two hidden numbers; its matrices are learned from the likelihood."""
    net = t.models(net=Pack(a=torch.tensor([[0.9, 0.2], [-0.1, 0.8]]), c=torch.tensor([1.0, 0.5]),
                            q=torch.tensor([-1.0, -2.0]), r=torch.tensor([-1.0])))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-2, eps=1e-4)
    for x, _ in t.diabetes(4):
        loss = 0
        for row in range(4):
            m, p = torch.zeros(2, dtype=t.dtype), torch.eye(2, dtype=t.dtype)
            for i in range(10):
                m, p = net.a @ m, net.a @ p @ net.a.T + torch.diag(torch.exp(net.q))
                s = net.c @ p @ net.c + torch.exp(net.r[0])
                gain, d = p @ net.c / s, x[row, i] - net.c @ m
                m, p = m + gain * d, p - torch.outer(gain, net.c @ p)
                loss = loss + 0.5 * (d ** 2 / s + torch.log(s))
        t.update("fit", loss / 40, optimizer)


def flash(t):
    """Attention block by block with a running maximum and sum."""
    net = t.models(net=Pack(embed=nn.Embedding(V, 8), q=nn.Linear(8, 8), k=nn.Linear(8, 8), v=nn.Linear(8, 8), head=nn.Linear(8, V)))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-4)
    for tok, tgt in t.chars(3, 12):
        x = net.embed(tok)
        a = F.scaled_dot_product_attention(net.q(x), net.k(x), net.v(x))
        t.update("fit", F.cross_entropy(net.head(x + a).reshape(-1, V), tgt.reshape(-1)), optimizer)


def tree(t):
    """Words of four characters by one network, sentences of the words by another; a product of gates."""
    net = t.models(net=Pack(embed=nn.Embedding(V, 5), low=nn.GRUCell(5, 6), high=nn.RNNCell(6, 7), gate=nn.Linear(6, 1), head=nn.Linear(7, 6)))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-4)
    for tok, tgt in t.chars(3, 12):
        g, words = torch.zeros(3, 7, dtype=t.dtype), []
        for i in range(3):
            h = torch.zeros(3, 6, dtype=t.dtype)
            for j in range(4):
                h = net.low(net.embed(tok[:, 4 * i + j]), h)
            words.append(h)
            g = net.high(h, g)
        gates = torch.sigmoid(net.gate(torch.stack(words, 1)))[:, :, 0]
        logits = net.head(g * gates.prod(1)[:, None])
        far = torch.flip(torch.cumsum(torch.flip(gates, [1]), 1), [1])
        t.update("fit", F.cross_entropy(logits, tgt[:, -1] % 6) + 0.1 * (far ** 2).mean(), optimizer)


def sharp(t):
    """A penalty on curvature: a product of the Hessian with the gradient."""
    net = t.models(net=Pack(w1=torch.randn(8, 10) / 3, w2=torch.randn(1, 8) / 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=5e-3)
    for x, y in t.diabetes(10):
        l = F.mse_loss((torch.tanh(x @ net.w1.T) @ net.w2.T)[:, 0], y / 100)
        g1, g2 = torch.autograd.grad(l, (net.w1, net.w2), create_graph=True)
        steep = (g1 ** 2).sum() + (g2 ** 2).sum()
        h1, h2 = torch.autograd.grad(steep, (net.w1, net.w2), create_graph=True)
        bent = (h1 ** 2).sum() + (h2 ** 2).sum()
        t.update("fit", l + 0.01 * steep + 1e-5 * bent, optimizer, steep=steep, bent=bent)
