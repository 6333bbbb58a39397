"""Twins of programs that read tables: regression, recommendation, graphs, reinforcement learning."""
import math
import re

import torch
from torch import nn
from torch.nn import functional as F

from make_programs import Pack, chain, right


def ppo(t):
    net = t.models(net=Pack(body=nn.Linear(4, 16), policy=nn.Linear(16, 3), value=nn.Linear(16, 1)))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-5)
    for row in t.columns(8):
        obs, act, old, advantage, goal = row[:, :4], row[:, 4].long(), row[:, 5] / 2 - 1, row[:, 6], row[:, 7]
        h = torch.tanh(net.body(obs))
        lp = F.log_softmax(net.policy(h), -1)
        advantage = (advantage - advantage.mean()) / (advantage.std(unbiased=False) + 1e-8)
        ratio = torch.exp(lp.gather(1, act[:, None])[:, 0] - old)
        gain = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        entropy = -(lp.exp() * lp).sum(1).mean()
        worth = 0.5 * F.mse_loss(net.value(h)[:, 0], goal)
        t.update("fit", -gain.mean() + worth - 0.01 * entropy, optimizer, entropy=entropy,
                 clip=lambda p: nn.utils.clip_grad_norm_(p, 0.5))


def dqn(t):
    def make():
        return chain(fc1=nn.Linear(4, 16), a1=nn.ReLU(), fc2=nn.Linear(16, 2))
    q, target = make(), make()
    t.models(q=q)
    target.load_state_dict(q.state_dict())
    target.to(t.dtype)
    optimizer = torch.optim.Adam(q.parameters(), lr=5e-3, eps=1e-5)
    for row in t.columns(8):
        obs, act, reward, after, done = row[:, :4], row[:, 4].long(), row[:, 5], row[:, 6:10], row[:, 10]
        with torch.no_grad():
            best = q(after).argmax(1)
            goal = reward + 0.9 * (1 - done) * target(after).gather(1, best[:, None])[:, 0]
            old = {k: v.clone() for k, v in q.state_dict().items()}
        value = q(obs).gather(1, act[:, None])[:, 0]
        t.update("fit", F.smooth_l1_loss(value, goal, beta=0.5), optimizer, goal=(goal ** 2).mean())
        with torch.no_grad():  # by the weights before the update, as the program does
            for k, p in target.state_dict().items():
                p += 0.3 * (old[k] - p)


def a2c(t):
    net = t.models(net=Pack(gru=nn.GRU(3, 8, batch_first=True), policy=nn.Linear(8, 3), value=nn.Linear(8, 1)))
    optimizer = torch.optim.RMSprop(net.parameters(), lr=2e-3, alpha=0.95, eps=1e-3, centered=True)
    for row in t.columns(3):
        obs, act, reward = row[:, :21].reshape(3, 7, 3), row[:, 21:27].long(), row[:, 27:33]
        h = net.gru(obs)[0]
        value = net.value(h)[:, :, 0]
        lp = F.log_softmax(net.policy(h[:, :6]), -1)
        a, advantages = 0, []
        for i in reversed(range(6)):
            delta = reward[:, i] + 0.9 * value[:, i + 1].detach() - value[:, i].detach()
            a = delta + 0.9 * 0.95 * a
            advantages.insert(0, a)
        advantage = torch.stack(advantages, 1)
        goal = advantage + value[:, :6].detach()
        actor = -(lp.gather(2, act[:, :, None])[:, :, 0] * advantage).mean()
        critic = ((value[:, :6] - goal) ** 2).mean()
        entropy = -(lp.exp() * lp).sum(-1).mean()
        t.update("fit", actor + 0.5 * critic - 0.02 * entropy, optimizer, critic=critic)


def robust(t):
    net = t.models(net=chain(fc1=nn.Linear(10, 12), a1=nn.SELU(), fc2=nn.Linear(12, 1)))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3, weight_decay=1e-3, eps=1e-5)
    every = t.table("samples/data/diabetes.csv")[:, 10]
    mean, std = every.mean(), every.std(unbiased=False)
    for x, y in t.diabetes(12):
        z = (y - mean.to(t.dtype)) / std.to(t.dtype)
        said = net(x)[:, 0]
        t.update("fit", F.huber_loss(said, z, delta=0.7), optimizer, mae=(said - z).abs().mean())


def quantile(t):
    net = t.models(net=chain(fc1=nn.Linear(10, 12), a1=nn.ELU(0.5), fc2=nn.Linear(12, 3)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.5)
    level = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64).to(t.dtype)
    for x, y in t.diabetes(12):
        d = y[:, None] / 100 - net(x)
        pinball = torch.max(level * d, (level - 1) * d)
        t.update("fit", pinball.mean(), optimizer, below=(d < 0).to(t.dtype).mean())


def logistic(t):
    net = t.models(net=nn.Linear(10, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 0.9 ** k)
    for x, y in t.diabetes(16):
        target = (y > 140).to(t.dtype)
        z = net(x)[:, 0]
        loss = F.binary_cross_entropy_with_logits(z, target, pos_weight=torch.tensor(1.5, dtype=t.dtype))
        loss = loss + 0.01 * (net.weight ** 2).sum() + 0.005 * net.weight.abs().sum()
        t.update("fit", loss, optimizer, acc=((z > 0) == (target == 1)).to(t.dtype).mean())
        schedule.step()


def factor(t):
    net = t.models(net=Pack(user=nn.Embedding(7, 4), item=nn.Embedding(6, 4), user_bias=nn.Embedding(7, 1),
                            item_bias=nn.Embedding(6, 1), level=torch.zeros(1)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for row in t.columns(12):
        u, i, rating, known = row[:, 0].long(), row[:, 1].long(), row[:, 2], row[:, 3]
        a, b = net.user(u), net.item(i)
        said = (a * b).sum(1) + net.user_bias(u)[:, 0] + net.item_bias(i)[:, 0] + net.level
        error = (known * (said - rating) ** 2).sum() / known.sum()
        small = 0.02 * ((a ** 2).sum(1) + (b ** 2).sum(1)).mean()
        t.update("fit", error + small, optimizer, error=error)


def _graph(t):
    """Twelve nodes: features, labels, and for each its four neighbours, one of them itself."""
    n = torch.arange(12)
    x = torch.sin(n[:, None].to(t.dtype) * (1 + torch.arange(5, dtype=t.dtype)) / 3)
    to = (n[:, None] * torch.tensor([1, 1, 5, 3]) + torch.tensor([0, 1, 2, 7])) % 12
    return x, n % 3, to


def gcn(t):
    net = t.models(net=Pack(g1=nn.Linear(5, 8), g2=nn.Linear(8, 3)))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, weight_decay=5e-4, eps=1e-5)
    x, y, to = _graph(t)
    a = torch.zeros(12, 12, dtype=t.dtype)
    for k in range(4):
        a[torch.arange(12), to[:, k]] = 1
    a = torch.maximum(a, a.T)
    d = a.sum(1).rsqrt()
    a = d[:, None] * a * d[None, :]
    known = torch.arange(12) % 4 != 3
    for _ in range(5):
        logits = a @ net.g2(F.relu(a @ net.g1(x)))
        t.update("fit", F.cross_entropy(logits[known], y[known]), optimizer, acc=right(logits[~known], y[~known]))


def edges(t):
    def round_of(n, out):
        return Pack(edge=nn.Linear(n, out), own=nn.Linear(n, out))

    net = t.models(net=Pack(g1=round_of(5, 8), g2=round_of(8, 3)))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, eps=1e-5)
    x, y, to = _graph(t)
    source, target = torch.arange(12).repeat_interleave(4), to.reshape(-1)
    came = torch.zeros(12, dtype=t.dtype).index_add(0, target, torch.ones(48, dtype=t.dtype)).clamp(min=1)

    def messages(g, h):
        sent = F.relu(g.edge(h[source]))
        s = torch.zeros(12, sent.shape[1], dtype=t.dtype).index_add(0, target, sent)
        return s / came[:, None] + g.own(h)

    for _ in range(5):
        t.update("fit", F.cross_entropy(messages(net.g2, F.relu(messages(net.g1, x))), y), optimizer)


def gat(t):
    net = t.models(net=Pack(w1=nn.Linear(5, 8, bias=False), from1=0.5 * torch.randn(2, 4), to1=0.5 * torch.randn(2, 4),
                            w2=nn.Linear(8, 3)))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, eps=1e-5)
    x, y, to = _graph(t)
    for _ in range(5):
        h = net.w1(x).reshape(12, 2, 4)
        s, r = (h * net.from1).sum(-1), (h * net.to1).sum(-1)
        weight = torch.softmax(F.leaky_relu(s[:, None] + r[to], 0.2), 1)  # node, neighbour, head
        h = F.elu((weight[..., None] * h[to]).sum(1)).reshape(12, 8)
        pooled = h[to].amax(1)  # a second layer without attention
        t.update("fit", F.cross_entropy(net.w2(h + pooled), y), optimizer)


def lora(t):
    class Lora(nn.Module):
        def __init__(self, n, out, rank):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(out, n) / math.sqrt(n), requires_grad=False)
            self.bias = nn.Parameter(0.1 * torch.randn(out), requires_grad=False)
            self.lora_a = nn.Parameter(torch.randn(rank, n) / math.sqrt(n))
            self.lora_b = nn.Parameter(0.1 * torch.randn(out, rank))

        def forward(self, x):
            return F.linear(x, self.weight, self.bias) + 2 * (x @ self.lora_a.T) @ self.lora_b.T

    net = t.models(net=Pack(base=nn.Linear(10, 12), fc=Lora(12, 12, 2), head=nn.Linear(12, 1)))
    tuned = [net.fc.lora_a, net.fc.lora_b, *net.head.parameters()]
    optimizer = torch.optim.AdamW(tuned, lr=5e-3, eps=1e-5)
    for x, y in t.diabetes(10):
        h = torch.tanh(net.fc(torch.tanh(net.base(x))))
        t.update("fit", F.mse_loss(net.head(h)[:, 0], y / 100), optimizer)
        net.base.zero_grad()


def adapters(t):
    def low(n, out):
        a, b = nn.Linear(n, 4, bias=False), nn.Linear(4, out, bias=False)
        return Pack(lora_A=a, lora_B=b)

    def added(part, x, scale):
        return scale * part.lora_B(part.lora_A(x))

    net = t.models(
        lambda name: re.sub(r"base_model.model.fc(\d).lora_(.).weight", lambda m: "low%s.lora_%s" % (m[1], m[2].lower()), name),
        net=Pack(fc1=nn.Linear(64, 24), fc2=nn.Linear(24, 10), base_model=Pack(model=Pack(fc1=low(64, 24), fc2=low(24, 10)))))
    tuned = net.base_model.model
    for part in (net.fc1, net.fc2):
        part.requires_grad_(False)
    optimizer = torch.optim.AdamW(tuned.parameters(), lr=1e-2, eps=1e-5)
    for x, y in t.digits(16):
        h = F.gelu(net.fc1(x) + added(tuned.fc1, x, 1))
        t.update("fit", F.cross_entropy(net.fc2(h) + added(tuned.fc2, h, 1.5), y), optimizer)


class _Formula(torch.optim.Optimizer):
    """move(p, g, state, step) changes p in place."""

    def __init__(self, params, move):
        super().__init__(params, {})
        self.move, self.count = move, 0

    @torch.no_grad()
    def step(self):
        self.count += 1
        for p in self.param_groups[0]["params"]:
            self.move(p, p.grad, self.state[p], self.count)


def _lion(p, g, state, step):
    m = state.setdefault("m", torch.zeros_like(p))
    p.mul_(1 - 1e-3 * 0.1).sub_(1e-3 * torch.sign(0.9 * m + 0.1 * g))
    m.copy_(0.99 * m + 0.01 * g)


def _muon(p, g, state, step):
    b = state.setdefault("b", torch.zeros_like(p))
    b.copy_(0.95 * b + g)
    u = g + 0.95 * b
    tall = u.shape[0] > u.shape[1]
    x = u.T if tall else u
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
    p.sub_(0.02 * math.sqrt(max(1, u.shape[0] / u.shape[1])) * (x.T if tall else x))


def _lamb(p, g, state, step):
    m, v = (state.setdefault(k, torch.zeros_like(p)) for k in "mv")
    m.copy_(0.9 * m + 0.1 * g)
    v.copy_(0.999 * v + 0.001 * g ** 2)
    u = (m / (1 - 0.9 ** step)) / ((v / (1 - 0.999 ** step)).sqrt() + 1e-6) + 0.01 * p
    p.sub_(0.01 * p.norm() / u.norm() * u)


def zoo(t):
    net = t.models(net=chain(fc1=nn.Linear(10, 12), a1=nn.Tanh(), fc2=nn.Linear(12, 9), a2=nn.Tanh(),
                             fc3=nn.Linear(9, 7), a3=nn.Tanh(), fc4=nn.Linear(7, 1)))
    optimizers = [_Formula([net.fc1.weight, net.fc2.weight], _muon), _Formula([net.fc1.bias, net.fc2.bias], _lion),
                  torch.optim.Adafactor(net.fc3.parameters(), lr=1e-2), _Formula([net.fc4.weight], _lamb),
                  torch.optim.SGD([net.fc4.bias], lr=1e-2, momentum=0.9)]
    for x, y in t.diabetes(14):
        t.update("fit", F.mse_loss(net(x)[:, 0], y / 100), *optimizers)


def mixture(t):
    net = t.models(rename=lambda n: n.replace("mean", "middle"), net=Pack(
        fc=nn.Linear(10, 12), weight=nn.Linear(12, 3), mean=nn.Linear(12, 3), spread=nn.Linear(12, 3)))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-5)
    for x, y in t.diabetes(10):
        h = torch.tanh(net.fc(x))
        s = F.softplus(net.spread(h)) + 0.1
        part = F.log_softmax(net.weight(h), -1) - 0.5 * ((y[:, None] / 100 - net.mean(h)) / s) ** 2 - torch.log(s)
        t.update("fit", -torch.logsumexp(part, -1).mean(), optimizer)


def sets(t):
    net = t.models(net=Pack(phi=nn.Linear(3, 10), rho=nn.Linear(20, 8), out=nn.Linear(8, 1)))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3, eps=1e-5)
    for row in t.columns(8):
        x, size, y = row[:, :15].reshape(8, 5, 3), row[:, 15].long(), row[:, 16]
        h = F.relu(net.phi(x))
        there = (torch.arange(5) < size[:, None])[:, :, None]
        total = torch.where(there, h, 0).sum(1)
        top = torch.where(there, h, 0).amax(1)
        said = net.out(F.relu(net.rho(torch.cat([total, top], 1))))[:, 0]
        t.update("fit", ((said - y) ** 2).mean(), optimizer, rmse=((said - y) ** 2).mean().sqrt())


def machine(t):
    """A factorisation machine with a multi-class hinge."""
    net = t.models(net=Pack(w=nn.Linear(10, 3), v=torch.randn(3, 4, 10) / 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, weight_decay=0.01)
    for x, y in t.diabetes(10):
        a = torch.einsum("ofi,bi->bof", net.v, x)
        b = torch.einsum("ofi,bi->bof", net.v ** 2, x ** 2)
        z = net.w(x) + 0.5 * (a ** 2 - b).sum(-1)
        label = (y > 100).long() + (y > 180).long()
        t.update("fit", F.multi_margin_loss(z, label), optimizer, acc=right(z, label))


def binary(t):
    """Weights of -1 and 1, with a gradient of the program's own, by an optimizer of its own."""
    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.where(x >= 0, 1.0, -1.0).to(x.dtype)

        @staticmethod
        def backward(ctx, u):
            x, = ctx.saved_tensors
            return torch.where(x.abs() <= 1, u, 0)

    def belief(p, g, state, step):
        m, s = (state.setdefault(k, torch.zeros_like(p)) for k in "ms")
        m.copy_(0.9 * m + 0.1 * g)
        s.copy_(0.99 * s + 0.01 * (g - m) ** 2 + 1e-4)
        p.sub_(1e-2 * (m / (1 - 0.9 ** step)) / ((s / (1 - 0.99 ** step)).sqrt() + 1e-4))

    net = t.models(net=Pack(w1=0.5 * torch.randn(12, 10), w2=0.5 * torch.randn(8, 12), out=nn.Linear(8, 1)))
    optimizer = _Formula(net.parameters(), belief)
    for x, y in t.diabetes(10):
        h = torch.tanh(x @ Sign.apply(net.w1).T / 4)
        h = torch.tanh(h @ Sign.apply(net.w2).T / 4)
        t.update("fit", F.mse_loss(net.out(h)[:, 0], y / 100), optimizer)


def pairs(t):
    """Ranking: every pair of a batch, those in the wrong order count."""
    net = t.models(net=chain(fc1=nn.Linear(10, 10), a1=nn.Softsign(), fc2=nn.Linear(10, 1)))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3, eps=1e-5)
    for x, y in t.diabetes(9):
        s = net(x)[:, 0]
        d = s[:, None] - s[None, :]
        above = (y[:, None] > y[None, :]).to(t.dtype)
        loss = (above * F.softplus(-d)).sum() / above.sum()
        t.update("fit", loss, optimizer, order=(above * (d > 0)).sum() / above.sum())
