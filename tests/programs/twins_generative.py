"""Twins of programs that generate, that solve equations, and that derive derivatives."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from make_programs import Pack, chain


def _noise(t, b, n, step):
    """Numbers in -2..2 that both sides can make."""
    i, j = torch.arange(b)[:, None], torch.arange(n)[None, :]
    return ((7 * i + 5 * j + 3 * step) % 17 - 8).to(t.dtype) / 4


def autoencoder(t):
    net = t.models(net=Pack(conv=nn.Conv2d(1, 4, 3, stride=2, padding=1), weight=torch.randn(10, 64) / 8,
                            code=torch.zeros(10), back=torch.zeros(64),
                            up=nn.ConvTranspose2d(4, 1, 4, stride=2, padding=1)))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, eps=1e-6)
    for x, _ in t.digits(6):
        h = torch.tanh(net.conv(x.reshape(-1, 1, 8, 8))).flatten(1)
        z = torch.tanh(h @ net.weight.T + net.code)
        g = torch.tanh(z @ net.weight + net.back)  # the same weights, the other way
        y = torch.sigmoid(net.up(g.reshape(-1, 4, 4, 4))).flatten(1)
        t.update("fit", F.mse_loss(y, x), optimizer, worst=(y - x).abs().max())


def vae(t):
    net = t.models(net=Pack(enc=nn.Linear(64, 20), middle=nn.Linear(20, 4), spread=nn.Linear(20, 4),
                            dec=nn.Linear(4, 20), out=nn.Linear(20, 64)))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, eps=1e-6)
    for step, (x, _) in enumerate(t.digits(8), 1):
        h = F.relu(net.enc(x))
        m, s = net.middle(h), net.spread(h)
        z = m + torch.exp(s / 2) * _noise(t, 8, 4, step)
        y = net.out(F.relu(net.dec(z)))
        rebuilt = F.binary_cross_entropy_with_logits(y, x, reduction="sum") / 8
        apart = -0.5 * (1 + s - m ** 2 - s.exp()).sum() / 8
        t.update("fit", rebuilt + apart, optimizer, rebuilt=rebuilt, apart=apart)


def vae_parts(t):
    """The same with a decoder of blocks, which is also tuned and called by itself."""
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.bn = nn.Linear(12, 12), nn.BatchNorm1d(12, momentum=0.3)

        def forward(self, x):
            return x + F.relu(self.bn(self.fc(x)))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.blocks = nn.Linear(4, 12), nn.ModuleList([Block() for _ in range(3)])
            self.head = nn.Linear(12, 64)

        def forward(self, z):
            h = self.up(z)
            for b in self.blocks:
                h = b(h)
            return self.head(h)

    net = t.models(rename=lambda n: n.replace("blocks.0", "block").replace("blocks.1", "block").replace("blocks.2", "block"),
                   vae=Pack(enc=nn.Linear(64, 12), middle=nn.Linear(12, 4), spread=nn.Linear(12, 4), dec=Decoder()))
    fit = torch.optim.Adam(net.parameters(), lr=2e-3, eps=1e-4)
    tune = torch.optim.SGD(net.dec.head.parameters(), lr=0.1)
    norms = [b.bn for b in net.dec.blocks]
    for step, (x, _) in enumerate(t.digits(8), 1):
        h = F.relu(net.enc(x))
        m, s = net.middle(h), net.spread(h)
        y = net.dec(m + torch.exp(s / 2) * _noise(t, 8, 4, step))
        rebuilt = F.binary_cross_entropy_with_logits(y, x, reduction="sum")
        t.update("fit", (rebuilt - 0.5 * (1 + s - m ** 2 - s.exp()).sum()) / 8, fit)
        for bn in norms:  # what is not tuned only computes its statistics
            bn.track_running_stats = False
        t.update("tune", (net.dec(_noise(t, 8, 4, step)) ** 2).mean() + (net.middle(_noise(t, 8, 12, step)) ** 2).mean(), tune)
        for bn in norms:
            bn.track_running_stats = True
    net.eval()
    z = torch.sin(3 * torch.arange(2, dtype=t.dtype)[:, None] + torch.arange(4, dtype=t.dtype))
    h = net.dec.up(z)
    for b in net.dec.blocks:
        h = b(h)
    t.probe(y=net.dec(z), again=net.dec.head(h), third=net.dec.blocks[2].fc(h))


def gan(t):
    gen, disc = t.models(
        gen=chain(fc1=nn.Linear(6, 16), a1=nn.ReLU(), fc2=nn.Linear(16, 64), a2=nn.Sigmoid()),
        disc=chain(fc1=nn.Linear(64, 16), a1=nn.LeakyReLU(0.2), fc2=nn.Linear(16, 1), flat=nn.Flatten(0)))
    od = torch.optim.Adam(disc.parameters(), lr=1e-3, betas=(0.5, 0.999), eps=1e-5)
    og = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.5, 0.999), eps=1e-5)
    bce = F.binary_cross_entropy_with_logits
    one, zero = torch.ones(6, dtype=t.dtype), torch.zeros(6, dtype=t.dtype)
    for step, (x, _) in enumerate(t.digits(6), 1):
        real, fake = disc(x), disc(gen(_noise(t, 6, 6, step)).detach())
        t.update("d", bce(real, one) + bce(fake, zero), od, size=(real ** 2).mean())
        t.update("g", bce(disc(gen(_noise(t, 6, 6, step))), one), og)


def wgan_gp(t):
    gen, critic = t.models(
        gen=chain(fc1=nn.Linear(5, 14), a1=nn.Tanh(), fc2=nn.Linear(14, 64)),
        critic=chain(fc1=nn.Linear(64, 14), a1=nn.SiLU(), fc2=nn.Linear(14, 12), a2=nn.SiLU(), fc3=nn.Linear(12, 1)))
    oc = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9), eps=1e-5)
    og = torch.optim.RMSprop(gen.parameters(), lr=1e-3, eps=1e-4)
    for step, (x, _) in enumerate(t.digits(6), 1):
        fake = gen(_noise(t, 6, 5, step)).detach()
        mix = (torch.arange(6, dtype=t.dtype)[:, None] + 0.5) / 6
        between = (mix * x + (1 - mix) * fake).requires_grad_()
        slope, = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = ((slope.norm(dim=1) - 1) ** 2).mean()
        loss = critic(fake).mean() - critic(x).mean() + 10 * penalty
        t.update("c", loss, oc, penalty=penalty)
        t.update("g", -critic(gen(_noise(t, 6, 5, step))).mean(), og)


def dcgan(t):
    class Gen(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(5, 32)
            self.bn1 = nn.BatchNorm2d(8)
            self.up1 = nn.ConvTranspose2d(8, 4, 4, stride=2, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(4)
            self.up2 = nn.ConvTranspose2d(4, 1, 4, stride=2, padding=1)

        def forward(self, z):
            h = F.relu(self.bn1(self.fc(z).reshape(-1, 8, 2, 2)))
            return torch.sigmoid(self.up2(F.relu(self.bn2(self.up1(h)))))

    class Disc(nn.Module):
        def __init__(self):
            super().__init__()
            self.c1 = nn.Conv2d(1, 4, 4, stride=2, padding=1)
            self.c2 = nn.Conv2d(4, 8, 4, stride=2, padding=1, bias=False)
            self.bn = nn.BatchNorm2d(8)
            self.fc = nn.Linear(32, 1)

        def forward(self, x):
            h = F.leaky_relu(self.c1(x), 0.2)
            return self.fc(F.leaky_relu(self.bn(self.c2(h)), 0.2).flatten(1))[:, 0]

    gen, disc = t.models(gen=Gen(), disc=Disc())
    od = torch.optim.Adam(disc.parameters(), lr=1e-3, betas=(0.5, 0.999), eps=1e-4)
    og = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.5, 0.999), eps=1e-4)
    for step, (x, _) in enumerate(t.digits(8), 1):
        both = torch.cat([x.reshape(-1, 1, 8, 8), gen(_noise(t, 8, 5, step)).detach()])
        label = (torch.arange(16) < 8).to(t.dtype)
        t.update("d", F.binary_cross_entropy_with_logits(disc(both), label), od)
        for p in disc.parameters():
            p.requires_grad_(False)
        fooled = disc(gen(_noise(t, 8, 5, step)))
        t.update("g", F.softplus(-fooled).mean(), og)
        for p in disc.parameters():
            p.requires_grad_(True)


def ddpm(t):
    net = t.models(net=Pack(time=nn.Linear(8, 16), fc1=nn.Linear(64, 16), fc2=nn.Linear(16, 16), out=nn.Linear(16, 64)))
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, eps=1e-5)
    k = torch.arange(10, dtype=torch.float64)
    kept = (torch.cos((k / 10 + 0.008) / 1.008 * math.pi / 2) ** 2).to(t.dtype)
    for step, (x, _) in enumerate(t.digits(7), 1):
        at = (3 * torch.arange(7) + step) % 10
        eps = _noise(t, 7, 64, step)
        a = kept[at][:, None]
        noisy = a.sqrt() * (2 * x - 1) + (1 - a).sqrt() * eps
        angle = at.to(t.dtype)[:, None] * torch.exp(-torch.arange(4, dtype=t.dtype))
        emb = net.time(torch.cat([torch.sin(angle), torch.cos(angle)], 1))
        h = F.silu(net.fc1(noisy) + emb)
        h = h + F.silu(net.fc2(h) + emb)
        t.update("fit", F.mse_loss(net.out(h), eps), optimizer)


def flow(t):
    class Coupling(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(5, 12)
            self.scale = nn.Linear(12, 5)
            self.shift = nn.Linear(12, 5)

        def forward(self, x):
            a, b = x[:, :5], x[:, 5:]
            h = torch.tanh(self.fc(a))
            s = torch.tanh(self.scale(h))
            return torch.cat([b * torch.exp(s) + self.shift(h), a], 1), s.sum(1)

    net = t.models(rename=lambda n: n.replace("parts.0", "part").replace("parts.1", "part").replace("parts.2", "part"),
                   net=Pack(parts=nn.ModuleList([Coupling() for _ in range(3)])))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, eps=1e-5)
    for x, _ in t.diabetes(12):
        z, total = x, 0
        for part in net.parts:
            z, s = part(z)
            total = total + s
        likely = -0.5 * (z ** 2 + math.log(2 * math.pi)).sum(1) + total
        t.update("fit", -likely.mean(), optimizer)


def vqvae(t):
    net = t.models(net=Pack(enc=nn.Linear(64, 12), book=nn.Embedding(8, 3), dec=nn.Linear(12, 64)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, _ in t.digits(6):
        z = net.enc(x).reshape(6, 4, 3)
        away = ((z[:, :, None, :] - net.book.weight) ** 2).sum(-1)
        q = net.book(away.argmin(-1))
        through = z + (q - z).detach()
        rebuilt = F.mse_loss(net.dec(through.reshape(6, 12)), x)
        loss = rebuilt + F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        t.update("fit", loss, optimizer, rebuilt=rebuilt)


def ode(t):
    net = t.models(net=Pack(inp=nn.Linear(10, 6), f=chain(f1=nn.Linear(7, 10), a=nn.Tanh(), f2=nn.Linear(10, 6)),
                            out=nn.Linear(6, 1)))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-5)

    def field(s, h):
        return net.f(torch.cat([h, torch.full((8, 1), s, dtype=t.dtype)], 1))

    for x, y in t.diabetes(8):
        h = net.inp(x)
        for i in range(4):
            s, d = i / 4, 1 / 4
            k1 = field(s, h)
            k2 = field(s + d / 2, h + d / 2 * k1)
            k3 = field(s + d / 2, h + d / 2 * k2)
            k4 = field(s + d, h + d * k3)
            h = h + d / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        t.update("fit", F.mse_loss(net.out(h)[:, 0], y / 100), optimizer)


def score(t):
    net = t.models(net=chain(fc1=nn.Linear(10, 16), a1=nn.Softplus(), fc2=nn.Linear(16, 12), a2=nn.Tanh(),
                             fc3=nn.Linear(12, 10)))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, eps=1e-5)
    for step, (x, _) in enumerate(t.diabetes(8), 1):
        v = _noise(t, 8, 10, step)
        x.requires_grad_()
        along = (v * net(x)).sum(1)
        slope, = torch.autograd.grad(along.sum(), x, create_graph=True)
        t.update("fit", ((v * slope).sum(1) + 0.5 * along ** 2).mean(), optimizer)


def pinn(t):
    net = t.models(net=chain(fc1=nn.Linear(1, 12), a1=nn.Tanh(), fc2=nn.Linear(12, 12), a2=nn.Tanh(),
                             fc3=nn.Linear(12, 1)))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-5)
    for _ in range(5):
        x = (torch.arange(9, dtype=t.dtype)[:, None] / 4 - 1).requires_grad_()
        u = net(x)
        du, = torch.autograd.grad(u.sum(), x, create_graph=True)
        d2, = torch.autograd.grad(du.sum(), x, create_graph=True)
        residual = ((d2 + u) ** 2).mean()
        border = (u[0, 0] + math.sin(1)) ** 2 + (du[4, 0] - 1) ** 2
        t.update("fit", residual + border, optimizer, residual=residual)


def physics(t):
    """The Hamiltonian of a pendulum from its movement: the field is the gradient of the network."""
    net = t.models(net=chain(fc1=nn.Linear(2, 14), a1=nn.Softplus(), fc2=nn.Linear(14, 1, bias=False)))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3, eps=1e-5)
    for _ in range(5):
        x = _noise(t, 10, 2, 1) / 2
        want = torch.stack([x[:, 1], -torch.sin(x[:, 0])], 1)
        z = x.clone().requires_grad_()
        for i in range(2):  # two Euler steps, through both of which it learns
            g, = torch.autograd.grad(net(z).sum(), z, create_graph=True)
            field = torch.stack([g[:, 1], -g[:, 0]], 1)
            if i == 0:
                first = ((field - want) ** 2).mean()
            z = z + 0.2 * field
        t.update("fit", first + 0.1 * ((z - x) ** 2).mean(), optimizer)
