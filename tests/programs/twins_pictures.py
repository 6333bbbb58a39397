"""Twins of programs that read pictures."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler

from make_programs import Pack, chain, right


def mlp(t):
    net = t.models(net=chain(fc1=nn.Linear(64, 24), a1=nn.GELU(), fc2=nn.Linear(24, 16), a2=nn.GELU(),
                              head=nn.Linear(16, 10)))
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.01)
    for x, y in t.digits(16):
        logits = net(x)
        loss = F.cross_entropy(logits, y)
        t.update("fit", loss, optimizer, acc=right(logits, y))


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
        t.update("fit", loss, optimizer, acc=right(logits, y))


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
        t.update("fit", loss, optimizer)
    net.eval()
    i = torch.arange(64, dtype=t.dtype)
    x = (torch.sin(i / 3) ** 2).expand(2, 64) * torch.tensor([[1.0], [0.5]], dtype=t.dtype)
    t.probe(logits=net(x.reshape(2, 1, 8, 8)))


def vgg(t):
    def conv(n, out):
        return nn.Conv2d(n, out, 3, padding=1)

    net = t.models(vgg=chain(c1=conv(1, 4), a1=nn.ReLU(), c2=conv(4, 4), a2=nn.ReLU(), p1=nn.MaxPool2d(2),
                             c3=conv(4, 8), a3=nn.ReLU(), c4=conv(8, 8), a4=nn.ReLU(), p2=nn.MaxPool2d(2),
                             flat=nn.Flatten(), fc1=nn.Linear(32, 16), a5=nn.ReLU(), fc2=nn.Linear(16, 10)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = lr_scheduler.MultiStepLR(optimizer, [2, 4], gamma=0.5)
    for x, y in t.digits(8):
        t.update("fit", F.cross_entropy(net(x.reshape(-1, 1, 8, 8)), y), optimizer)
        schedule.step()


def mobile(t):
    class Separable(nn.Module):
        def __init__(self, n, out, stride=1):
            super().__init__()
            self.depth = nn.Conv2d(n, n, 3, stride, 1, groups=n, bias=False)
            self.point = nn.Conv2d(n, out, 1)

        def forward(self, x):
            return F.hardswish(self.point(F.hardswish(self.depth(x))))

    net = t.models(mobile=Pack(stem=nn.Conv2d(1, 6, 3, padding=1), s1=Separable(6, 8), s2=Separable(8, 12, 2),
                               fc=nn.Linear(12, 10)))
    optimizer = torch.optim.RMSprop(net.parameters(), lr=2e-3, alpha=0.9, eps=1e-3, momentum=0.9)
    for x, y in t.digits(8):
        h = F.relu6(net.stem(x.reshape(-1, 1, 8, 8)))
        h = F.avg_pool2d(net.s2(net.s1(h)), 4).flatten(1)
        t.update("fit", F.cross_entropy(net.fc(h), y), optimizer)


def unet(t):
    net = t.models(unet=Pack(d1=nn.Conv2d(1, 4, 3, padding=1), d2=nn.Conv2d(4, 8, 3, padding=1),
                             mid=nn.Conv2d(8, 8, 3, padding=1), up=nn.ConvTranspose2d(8, 4, 2, stride=2),
                             u1=nn.Conv2d(12, 8, 3, padding=1),
                             up2=nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1),
                             u2=nn.Conv2d(8, 4, 3, padding=1), out=nn.Conv2d(4, 1, 1)))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for x, _ in t.digits(4):
        x = x.reshape(-1, 1, 8, 8)
        mask = (x > 0.5).to(t.dtype)
        noisy = x * 0.5 + 0.25 * torch.flip(x, [3])
        a = F.relu(net.d1(noisy))
        b = F.relu(net.d2(F.max_pool2d(a, 2)))
        c = F.relu(net.mid(F.max_pool2d(b, 2)))
        u = F.relu(net.u1(torch.cat([net.up(c), b], 1)))
        v = F.relu(net.u2(torch.cat([net.up2(u), a], 1)))
        logits = net.out(v)
        p = torch.sigmoid(logits)
        dice = (2 * (p * mask).sum((1, 2, 3)) + 1) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)
        bce = F.binary_cross_entropy_with_logits(logits, mask)
        t.update("fit", bce + (1 - dice).mean(), optimizer, dice=dice.mean())


def normnet(t):
    net = t.models(net=Pack(c1=nn.Conv2d(1, 8, 3, padding=1), n1=nn.GroupNorm(4, 8), c2=nn.Conv2d(8, 8, 3, 2, 1),
                            n2=nn.InstanceNorm2d(8, affine=True), c3=nn.Conv2d(8, 8, 3, padding=2, dilation=2),
                            n3=nn.GroupNorm(1, 8), fc=nn.Linear(8, 10)))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, eps=1e-4, amsgrad=True)
    for x, y in t.digits(6):
        h = F.silu(net.n1(net.c1(x.reshape(-1, 1, 8, 8))))
        g = F.silu(net.n2(net.c2(h)))
        g = g + F.silu(net.n3(net.c3(g)))
        t.update("fit", F.cross_entropy(net.fc(g.mean((2, 3))), y), optimizer,
                 clip=lambda p: nn.utils.clip_grad_value_(p, 0.05))


def siamese(t):
    net = t.models(tower=chain(fc1=nn.Linear(64, 20), a1=nn.LeakyReLU(0.1), fc2=nn.Linear(20, 8)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    for x, y in t.digits(12):
        e = net(x)
        a, p, n = e[0:4], e[4:8], e[8:12]
        same = (y[0:4] == y[4:8]).to(t.dtype)
        d = F.pairwise_distance(a, p)
        contrast = same * d ** 2 + (1 - same) * F.relu(1.5 - d) ** 2
        loss = contrast.mean() + F.triplet_margin_loss(a, p, n, margin=1.0)
        t.update("fit", loss, optimizer, distance=d.mean())


def infonce(t):
    net = t.models(encoder=chain(fc1=nn.Linear(64, 24), a1=nn.ReLU(), fc2=nn.Linear(24, 8)))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for x, _ in t.digits(8):
        shifted = torch.roll(x.reshape(-1, 8, 8), 1, 2)
        shifted[:, :, 0] = 0
        a = F.normalize(net(x), eps=1e-12)
        b = F.normalize(net(shifted.reshape(-1, 64)), eps=1e-12)
        s = a @ b.T / 0.2
        label = torch.arange(8)
        loss = (F.cross_entropy(s, label) + F.cross_entropy(s.T, label)) / 2
        t.update("fit", loss, optimizer, top=right(s, label))


def distill(t):
    teacher, student = t.models(
        teacher=chain(fc1=nn.Linear(64, 32), a1=nn.ReLU(), fc2=nn.Linear(32, 10)),
        student=chain(fc1=nn.Linear(64, 8), a1=nn.ReLU(), fc2=nn.Linear(8, 10)))
    optimizer = torch.optim.Adam(student.parameters(), lr=2e-3)
    for x, y in t.digits(10):
        with torch.no_grad():
            goal = F.softmax(teacher(x) / 3, -1)
        logits = student(x)
        soft = F.kl_div(F.log_softmax(logits / 3, -1), goal, reduction="batchmean") * 9
        loss = 0.7 * soft + 0.3 * F.cross_entropy(logits, y)
        t.update("fit", loss, optimizer, soft=soft)


def multitask(t):
    net = t.models(net=Pack(trunk=nn.Linear(64, 20), digit=nn.Linear(20, 10), parity=nn.Linear(20, 1),
                            sigma=torch.zeros(2)))
    optimizer = torch.optim.Adam([{"params": [net.sigma], "lr": 1e-1}, {"params": net.trunk.parameters()},
                                  {"params": net.digit.parameters()}, {"params": net.parity.parameters()}], lr=2e-3)
    for x, y in t.digits(8):
        h = torch.tanh(net.trunk(x))
        first = F.cross_entropy(net.digit(h), y)
        second = F.binary_cross_entropy_with_logits(net.parity(h).squeeze(1), (y % 2).to(t.dtype))
        loss = torch.exp(-net.sigma[0]) * first + torch.exp(-net.sigma[1]) * second + net.sigma.sum()
        t.update("fit", loss, optimizer, first=first, second=second)


def focal(t):
    net = t.models(net=chain(fc1=nn.Linear(64, 16), a1=nn.Mish(), fc2=nn.Linear(16, 1)))
    optimizer = torch.optim.Adagrad(net.parameters(), lr=2e-2, eps=1e-4)
    for x, y in t.digits(16):
        z = net(x).squeeze(1)
        target = (y == 1).to(t.dtype)
        p = torch.sigmoid(z)
        ce = F.binary_cross_entropy_with_logits(z, target, reduction="none")
        hit = p * target + (1 - p) * (1 - target)
        alpha = 0.25 * target + 0.75 * (1 - target)
        said = z > 0
        both = (said & (target == 1)).sum()
        t.update("fit", (alpha * ce * (1 - hit) ** 2).mean(), optimizer, found=both / max(1, (target == 1).sum()))


def recipe(t):
    net, average = (chain(fc1=nn.Linear(64, 20), a1=nn.ReLU(), head=nn.Linear(20, 10)) for _ in range(2))
    t.models(net=net)
    average.load_state_dict(net.state_dict())
    average.to(t.dtype)
    optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3, eps=1e-6, weight_decay=0.05)
    warmup, total = 2, 5
    half = lr_scheduler.LambdaLR(optimizer, lambda k: min(1, (k + 1) / warmup) * (
        0.1 + 0.9 * (1 + torch.cos(torch.tensor(torch.pi * max(0, k - warmup) / (total - warmup),
                                                dtype=torch.float64)).item()) / 2))
    for x, y in t.digits(12):
        mixed = 0.7 * x + 0.3 * torch.flip(x, [0])
        label = F.one_hot(y, 10).to(t.dtype)
        goal = 0.7 * label + 0.3 * torch.flip(label, [0])
        loss = F.cross_entropy(net(mixed), goal, label_smoothing=0.1)
        t.update("fit", loss, optimizer, averaged=F.cross_entropy(average(x), y),
                 clip=lambda p: nn.utils.clip_grad_norm_(p, 0.3))
        half.step()
        with torch.no_grad():
            for a, p in zip(average.parameters(), net.parameters()):
                a += 0.2 * (p - a)


def hyper(t):
    net = t.models(net=Pack(code=nn.Embedding(2, 4), make=nn.Linear(4, 8 * 16 + 8), stem=nn.Linear(64, 16),
                            head=nn.Linear(8, 10)))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for x, y in t.digits(6):
        w = net.make(net.code((x.sum(1) > 20).long()))
        weight, bias = w[:, :128].reshape(-1, 8, 16), w[:, 128:]
        h = torch.tanh(net.stem(x))
        h = torch.tanh(torch.bmm(weight, h[:, :, None])[:, :, 0] + bias)
        t.update("fit", F.cross_entropy(net.head(h), y), optimizer)


def maml(t):
    net = t.models(net=Pack(w1=torch.randn(12, 64) / 8, b1=torch.zeros(12), w2=torch.randn(10, 12) / 4,
                            b2=torch.zeros(10)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def forward(x, w1, b1, w2, b2):
        return torch.tanh(x @ w1.T + b1) @ w2.T + b2

    for x, y in t.digits(12):
        weights = [net.w1, net.b1, net.w2, net.b2]
        inner = F.cross_entropy(forward(x[:6], *weights), y[:6])
        grads = torch.autograd.grad(inner, weights, create_graph=True)
        fast = [w - 0.5 * g for w, g in zip(weights, grads)]
        outer = F.cross_entropy(forward(x[6:], *fast), y[6:])
        t.update("fit", outer, optimizer, inner=inner)


def vit(t):
    class Block(nn.Module):
        def __init__(self, c, heads):
            super().__init__()
            self.ln1 = nn.LayerNorm(c)
            self.attn = nn.MultiheadAttention(c, heads, batch_first=True)
            self.ln2 = nn.LayerNorm(c)
            self.up = nn.Linear(c, 2 * c)
            self.down = nn.Linear(2 * c, c)

        def forward(self, x):
            h = self.ln1(x)
            x = x + self.attn(h, h, h, need_weights=False)[0]
            return x + self.down(F.gelu(self.up(self.ln2(x))))

    net = t.models(rename=lambda n: n.replace("blocks.0", "block").replace("blocks.1", "block"), vit=Pack(
        patch=nn.Linear(4, 12), cls=0.1 * torch.randn(12), place=0.1 * torch.randn(17, 12),
        blocks=nn.ModuleList([Block(12, 3), Block(12, 3)]), norm=nn.LayerNorm(12), head=nn.Linear(12, 10)))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, eps=1e-6)
    for x, y in t.digits(5):
        patches = x.reshape(-1, 4, 2, 4, 2).permute(0, 1, 3, 2, 4).reshape(-1, 16, 4)
        h = torch.cat([net.cls.expand(len(x), 1, 12), net.patch(patches)], 1) + net.place
        for block in net.blocks:
            h = block(h)
        logits = net.head(net.norm(h)[:, 0])
        t.update("fit", F.cross_entropy(logits, y), optimizer, acc=right(logits, y))


def squeeze(t):
    net = t.models(net=Pack(conv=nn.Conv2d(1, 6, 3, padding=1), act=nn.PReLU(6), fc1=nn.Linear(6, 3),
                            fc2=nn.Linear(3, 6), act2=nn.PReLU(), head=nn.Linear(54, 10)))
    optimizer = torch.optim.Adagrad(net.parameters(), lr=1e-2, lr_decay=0.1, eps=1e-4)
    for x, y in t.digits(6):
        h = net.act(net.conv(x.reshape(-1, 1, 8, 8)))
        gate = torch.sigmoid(net.fc2(F.elu(net.fc1(h.mean((2, 3))))))
        h = net.act2(h * gate[:, :, None, None])
        h = F.adaptive_avg_pool2d(h, 3).flatten(1)
        t.update("fit", F.cross_entropy(net.head(h), y), optimizer)
