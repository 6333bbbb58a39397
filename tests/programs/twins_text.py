"""Twins of programs that read text."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from make_programs import Pack, chain, right

V = 128


def charrnn(t):
    net = t.models(rnn=Pack(embed=nn.Embedding(V, 6), cell=nn.RNNCell(6, 12), head=nn.Linear(12, V)))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-4)
    for tok, tgt in t.chars(4, 10):
        h, nll = torch.zeros(4, 12, dtype=t.dtype), 0
        for i in range(10):
            h = net.cell(net.embed(tok[:, i]), h)
            nll = nll + F.cross_entropy(net.head(h), tgt[:, i])
        t.update("fit", nll / 10, optimizer, bits=nll / 10 / math.log(2),
                 clip=lambda p: nn.utils.clip_grad_norm_(p, 0.5))


def lstm_lm(t):
    net = t.models(lm=Pack(embed=nn.Embedding(V, 8), lstm=nn.LSTM(8, 10, batch_first=True), back=nn.Linear(10, 8)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2)
    for tok, tgt in t.chars(4, 8):
        h, _ = net.lstm(net.embed(tok))
        logits = net.back(h) @ net.embed.weight.T
        loss = F.cross_entropy(logits.reshape(-1, V), tgt.reshape(-1))
        t.update("fit", loss, optimizer, perplexity=loss.exp())


def seq2seq(t):
    net = t.models(net=Pack(embed=nn.Embedding(V, 6), encoder=nn.GRU(6, 8, batch_first=True), cell=nn.GRUCell(14, 8),
                            wq=nn.Linear(8, 8, bias=False), head=nn.Linear(16, V)))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, eps=1e-4)
    for tok, _ in t.chars(3, 6):
        length = 2 + tok[:, 0] % 5
        packed = nn.utils.rnn.pack_padded_sequence(net.embed(tok), length, batch_first=True, enforce_sorted=False)
        keys, h = net.encoder(packed)
        keys = nn.utils.rnn.pad_packed_sequence(keys, batch_first=True, total_length=6)[0]
        own = torch.arange(6)[None, :] < length[:, None]
        goal = torch.flip(tok, [1])
        h, context, nll = h[0], torch.zeros(3, 8, dtype=t.dtype), []
        for i in range(6):
            before = goal[:, i - 1] if i else torch.zeros(3, dtype=torch.long)
            h = net.cell(torch.cat([net.embed(before), context], 1), h)
            score = (keys @ net.wq(h)[:, :, None])[:, :, 0].masked_fill(~own, -math.inf)
            score = torch.softmax(score, -1)
            context = (score[:, :, None] * keys).sum(1)
            nll.append(F.cross_entropy(net.head(torch.cat([h, context], 1)), goal[:, i], reduction="none"))
        t.update("fit", (own * torch.stack(nll, 1) / length[:, None]).sum() / 3, optimizer)


def birnn(t):
    net = t.models(net=Pack(embed=nn.Embedding(V, 6), fw=nn.GRU(6, 7, batch_first=True),
                            bw=nn.GRU(6, 7, batch_first=True), head=nn.Linear(14, 5)))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-4)
    for tok, tgt in t.chars(5, 8):
        e = net.embed(tok)
        a = net.fw(e)[0]
        b = torch.flip(net.bw(torch.flip(e, [1]))[0], [1])
        logits = net.head(torch.cat([a, b], -1).amax(1))
        y = tgt[:, -1] % 5
        t.update("fit", F.cross_entropy(logits, y), optimizer, acc=right(logits, y))


def padded(t):
    net = t.models(net=Pack(embed=nn.Embedding(V, 8), q=nn.Linear(8, 8), k=nn.Linear(8, 8), v=nn.Linear(8, 8),
                            o=nn.Linear(8, 8), norm=nn.LayerNorm(8), head=nn.Linear(8, 4)))
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, eps=1e-5)
    for tok, tgt in t.chars(5, 10):
        length = 3 + tok[:, 0] % 7
        keep = torch.arange(10)[None, :] < length[:, None]
        x = net.embed(tok)
        q, k, v = (f(x).reshape(5, 10, 2, 4).transpose(1, 2) for f in (net.q, net.k, net.v))
        s = (q @ k.transpose(2, 3) / 2).masked_fill(~keep[:, None, None, :], -math.inf)
        a = (torch.softmax(s, -1) @ v).transpose(1, 2).reshape(5, 10, 8)
        h = net.norm(x + net.o(a))
        pooled = (h * keep[:, :, None]).sum(1) / length[:, None]
        t.update("fit", F.cross_entropy(net.head(pooled), tgt[:, -1] % 4), optimizer)


def gpt(t):
    class Block(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.ln1 = nn.LayerNorm(c)
            self.attn = nn.MultiheadAttention(c, 2, batch_first=True)
            self.ln2 = nn.LayerNorm(c)
            self.up = nn.Linear(c, 4 * c)
            self.down = nn.Linear(4 * c, c)

        def forward(self, x, mask):
            h = self.ln1(x)
            x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
            return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))

    net = t.models(rename=lambda n: n.replace("h.0", "block").replace("h.1", "block").replace("h.2", "block"), gpt=Pack(
        wte=nn.Embedding(V, 8), wpe=nn.Embedding(8, 8), h=nn.ModuleList([Block(8) for _ in range(3)]),
        ln_f=nn.LayerNorm(8)))
    matrices = [p for p in net.parameters() if p.dim() >= 2]
    others = [p for p in net.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0}],
                                  lr=1e-3, betas=(0.9, 0.95), eps=1e-5)
    mask = torch.triu(torch.full((8, 8), -math.inf, dtype=t.dtype), 1)
    for tok, tgt in t.chars(6, 8):  # three micro-batches of two rows
        h = net.wte(tok) + net.wpe.weight
        for block in net.h:
            h = block(h, mask)
        logits = net.ln_f(h) @ net.wte.weight.T
        loss = F.cross_entropy(logits.reshape(-1, V), tgt.reshape(-1))
        t.update("fit", loss, optimizer, clip=lambda p: nn.utils.clip_grad_norm_(p, 1.0))


def llama(t):
    net = t.models(net=Pack(embed=nn.Embedding(V, 12), n1=nn.RMSNorm(12, eps=1e-5), q=nn.Linear(12, 12, bias=False),
                            kv=nn.Linear(12, 12, bias=False), o=nn.Linear(12, 12, bias=False),
                            n2=nn.RMSNorm(12, eps=1e-5), gate=nn.Linear(12, 16, bias=False),
                            up=nn.Linear(12, 16, bias=False), down=nn.Linear(16, 12, bias=False),
                            n3=nn.RMSNorm(12, eps=1e-5), head=nn.Linear(12, V, bias=False)))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, eps=1e-5)
    place = torch.arange(9, dtype=t.dtype)
    angle = place[:, None] * torch.tensor([1.0, 0.1, 0.01], dtype=torch.float64).to(t.dtype)

    def turn(x):  # [b, h, t, 6]: pairs (i, i + 3)
        a, b = x[..., :3], x[..., 3:]
        c, s = torch.cos(angle), torch.sin(angle)
        return torch.cat([a * c - b * s, b * c + a * s], -1)

    for tok, tgt in t.chars(3, 9):
        x = net.embed(tok)
        h = net.n1(x)
        q = turn(net.q(h).reshape(3, 9, 2, 6).transpose(1, 2))
        kv = net.kv(h).reshape(3, 9, 2, 1, 6)
        k = turn(kv[:, :, 0].transpose(1, 2)).expand(3, 2, 9, 6)
        v = kv[:, :, 1].transpose(1, 2).expand(3, 2, 9, 6)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + net.o(a.transpose(1, 2).reshape(3, 9, 12))
        h = net.n2(x)
        x = x + net.down(F.silu(net.gate(h)) * net.up(h))
        logits = net.head(net.n3(x))
        t.update("fit", F.cross_entropy(logits.reshape(-1, V), tgt.reshape(-1)), optimizer)


def perceiver(t):
    net = t.models(net=Pack(embed=nn.Embedding(V, 8), place=0.1 * torch.randn(12, 8), latent=0.3 * torch.randn(3, 8),
                            read=nn.MultiheadAttention(8, 2, batch_first=True),
                            think=nn.MultiheadAttention(8, 2, batch_first=True), norm=nn.LayerNorm(8),
                            head=nn.Linear(24, 6)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, dampening=0.3)
    for tok, tgt in t.chars(4, 12):
        y = net.embed(tok) + net.place
        z = net.latent.expand(4, 3, 8)
        z = z + net.read(z, y, y, need_weights=False)[0]
        for _ in range(2):  # the same weights twice
            h = net.norm(z)
            z = z + net.think(h, h, h, need_weights=False)[0]
        t.update("fit", F.cross_entropy(net.head(z.reshape(4, 24)), tgt[:, -1] % 6), optimizer)


def moe(t):
    net = t.models(net=Pack(embed=nn.Embedding(V, 8), router=nn.Linear(8, 3, bias=False), w1=torch.randn(3, 10, 8) / 3,
                            w2=torch.randn(3, 8, 10) / 3, head=nn.Linear(8, V)))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, eps=1e-4)
    for tok, tgt in t.chars(4, 6):
        x = net.embed(tok).reshape(-1, 8)
        p = torch.softmax(net.router(x), -1)
        best = p.argmax(-1)
        h = F.relu(torch.einsum("nk,nok->no", x, net.w1[best]))
        y = x + p.gather(1, best[:, None]) * torch.einsum("nk,nok->no", h, net.w2[best])
        share = F.one_hot(best, 3).to(t.dtype).mean(0)
        balance = 3 * (share * p.mean(0)).sum()
        loss = F.cross_entropy(net.head(y), tgt.reshape(-1)) + 0.1 * balance
        t.update("fit", loss, optimizer, balance=balance)


def experts(t):
    net = t.models(net=Pack(embed=nn.Embedding(V, 8), router=nn.Linear(8, 4, bias=False), w1=torch.randn(4, 10, 8) / 3,
                            w2=torch.randn(4, 8, 10) / 3, head=nn.Linear(8, V)))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, eps=1e-4)
    for tok, tgt in t.chars(4, 6):
        x = net.embed(tok).reshape(-1, 8)
        gate, expert = torch.softmax(net.router(x), -1).topk(2, -1)
        hit = F.one_hot(expert.reshape(-1), 4)
        place = ((hit.cumsum(0) - hit) * hit).sum(1).reshape(-1, 2)
        gate = torch.where(place < 9, gate / gate.sum(1, keepdim=True), torch.zeros_like(gate))
        h = F.relu(torch.einsum("nk,ncok->nco", x, net.w1[expert]))
        y = x + (gate[..., None] * torch.einsum("nco,ncko->nck", h, net.w2[expert])).sum(1)
        t.update("fit", F.cross_entropy(net.head(y), tgt.reshape(-1)), optimizer)


def linear_attention(t):
    net = t.models(net=Pack(embed=nn.Embedding(V, 8), qkv=nn.Linear(8, 24), o=nn.Linear(8, 8), head=nn.Linear(8, V)))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, eps=1e-4)
    for tok, tgt in t.chars(3, 8):
        x = net.embed(tok)
        q, k, v = net.qkv(x).reshape(3, 8, 3, 8).unbind(2)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        kv = torch.cumsum(k[:, :, :, None] * v[:, :, None, :], 1)
        z = torch.cumsum(k, 1)
        a = torch.einsum("btd,btde->bte", q, kv) / (q * z).sum(-1, keepdim=True)
        logits = net.head(x + net.o(a))
        t.update("fit", F.cross_entropy(logits.reshape(-1, V), tgt.reshape(-1)), optimizer)


def word2vec(t):
    net = t.models(net=Pack(inner=nn.Embedding(V, 6), outer=nn.Embedding(V, 6)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    for tok, tgt in t.chars(8, 4):
        center, context = tok.reshape(-1), tgt.reshape(-1)
        others = (center[:, None] * 31 + context[:, None] * 7 + torch.arange(5) * 13) % V
        a = net.inner(center)
        near = (a * net.outer(context)).sum(1)
        far = (a[:, None] * net.outer(others)).sum(2)
        loss = -(F.logsigmoid(near) + F.logsigmoid(-far).sum(1)).mean()
        t.update("fit", loss, optimizer)


def wavenet(t):
    class Layer(nn.Module):
        def __init__(self, c, dilation):
            super().__init__()
            self.conv = nn.Conv1d(c, 2 * c, 2, dilation=dilation)
            self.mix = nn.Conv1d(c, c, 1)
            self.dilation = dilation

        def forward(self, x):
            a, b = self.conv(F.pad(x, (self.dilation, 0))).chunk(2, 1)
            h = torch.tanh(a) * torch.sigmoid(b)
            return x + self.mix(h), h

    net = t.models(net=Pack(stem=nn.Conv1d(1, 6, 3, padding=1), l1=Layer(6, 1), l2=Layer(6, 2), l3=Layer(6, 4),
                            fold=nn.Conv1d(6, 4, 4, stride=4, groups=2), head=nn.Linear(16, 6)))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, eps=1e-4)
    for tok, tgt in t.chars(4, 16):
        sound = (tok.to(t.dtype) / 64 - 1)[:, None, :]
        x, skips = net.stem(sound), 0
        for layer in (net.l1, net.l2, net.l3):
            x, skip = layer(x)
            skips = skips + skip
        logits = net.head(F.relu(net.fold(skips + x)).flatten(1))
        t.update("fit", F.cross_entropy(logits, tgt[:, -1] % 6), optimizer)


def ssm(t):
    class Layer(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.a = nn.Parameter(torch.randn(c))
            self.b = nn.Linear(c, c)
            self.step = nn.Linear(c, c)
            self.out = nn.Linear(c, c)

        def forward(self, x):
            h, ys = torch.zeros_like(x[:, 0]), []
            b, step = self.b(x), F.softplus(self.step(x))
            for i in range(x.shape[1]):
                decay = torch.exp(-step[:, i] * F.softplus(self.a))
                h = decay * h + (1 - decay) * b[:, i]
                ys.append(h)
            return x + self.out(torch.stack(ys, 1))

    net = t.models(rename=lambda n: n.replace("layers.0", "layer").replace("layers.1", "layer"), net=Pack(
        embed=nn.Embedding(V, 7), layers=nn.ModuleList([Layer(7), Layer(7)]), head=nn.Linear(7, V)))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, eps=1e-4)
    for tok, tgt in t.chars(3, 9):
        x = net.embed(tok)
        for layer in net.layers:
            x = layer(x)
        t.update("fit", F.cross_entropy(net.head(x).reshape(-1, V), tgt.reshape(-1)), optimizer)


def bag(t):
    net = t.models(net=Pack(embed=nn.Embedding(V, 8, padding_idx=32), fc=nn.Linear(8, 12), head=nn.Linear(12, 6)))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-4)
    for tok, tgt in t.chars(8, 6):
        words = (tok != 32).sum(1)
        h = net.embed(tok).sum(1) / words[:, None]
        logits = net.head(torch.tanh(net.fc(h)))
        y = torch.where(tgt[:, -1] == 32, -100, tgt[:, -1] % 6)
        weight = torch.tensor([1.0, 2.0, 0.5, 1.0, 1.5, 1.0], dtype=t.dtype)
        loss = F.cross_entropy(logits, y, weight=weight)
        t.update("fit", loss, optimizer, plain=F.cross_entropy(logits, y, ignore_index=-100))


def crf(t):
    net = t.models(net=Pack(embed=nn.Embedding(V, 6), gru=nn.GRU(6, 6, batch_first=True), score=nn.Linear(6, 4),
                            change=0.3 * torch.randn(4, 4)))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-4)
    for tok, tgt in t.chars(4, 7):
        u, y = net.score(net.gru(net.embed(tok))[0]), tgt % 4
        path = u.gather(2, y[:, :, None]).sum((1, 2)) + net.change[y[:, :-1], y[:, 1:]].sum(1)
        alpha = u[:, 0]
        for i in range(1, 7):
            alpha = torch.logsumexp(alpha[:, :, None] + net.change, 1) + u[:, i]
        t.update("fit", (torch.logsumexp(alpha, -1) - path).mean(), optimizer)


def bilstm(t):
    net = t.models(net=Pack(embed=nn.Embedding(V, 5), rnn=nn.LSTM(5, 6, 2, batch_first=True, bidirectional=True),
                            head=nn.Linear(36, 4)), rename=lambda n: n.replace("_l1", ""))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-4)
    for tok, tgt in t.chars(5, 9):
        length = 2 + tok[:, 0] % 7
        packed = nn.utils.rnn.pack_padded_sequence(net.embed(tok), length, batch_first=True, enforce_sorted=False)
        y, (h, c) = net.rnn(packed)
        y = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=9)[0]
        ends = (h + c).transpose(0, 1).reshape(5, 24)
        logits = net.head(torch.cat([y.sum(1) / length[:, None], ends], 1))
        t.update("fit", F.cross_entropy(logits, tgt[:, -1] % 4), optimizer)


def translate(t):
    net = t.models(net=Pack(embed=nn.Embedding(V, 8), place=nn.Parameter(torch.randn(7, 8) / 2),
                            core=nn.Transformer(8, 2, 2, 2, 12, dropout=0, batch_first=True),
                            head=nn.Linear(8, V)),
                   rename=lambda n: n.replace("layers.0", "layer").replace("layers.1", "layer"))
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, eps=1e-4)
    i, j, k = torch.meshgrid(torch.arange(4), torch.arange(7), torch.arange(8), indexing="ij")
    kept = ((7 * i + 5 * j + 3 * k) % 10 != 0) / torch.tensor(0.9, dtype=t.dtype)
    causal = torch.triu(torch.ones(7, 7, dtype=torch.bool), 1)
    for tok, _ in t.chars(4, 7):
        length = 3 + tok[:, 0] % 5
        own = torch.arange(7)[None, :] < length[:, None]
        goal = torch.flip(tok, [1])
        before = F.pad(goal[:, :-1], (1, 0))
        x, y = (kept * (net.embed(v) + net.place) for v in (tok, before))
        h = net.core(x, y, tgt_mask=causal, src_key_padding_mask=~own, memory_key_padding_mask=~own)
        nll = F.cross_entropy(net.head(h).flatten(0, 1), goal.flatten(), reduction="none").reshape(4, 7)
        t.update("fit", (own * nll).sum() / own.sum(), optimizer)


def nucleus(t):
    net = t.models(net=Pack(embed=nn.Embedding(V, 7), cell=nn.GRUCell(7, 10), head=nn.Linear(10, V)))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-2, eps=1e-4)
    for tok, tgt in t.chars(6, 8):
        h, seen = torch.zeros(6, 10, dtype=t.dtype), []
        for i in range(8):
            h = net.cell(net.embed(tok[:, i]), h)
            seen.append(h)
        logits = net.head(torch.stack(seen, 1))
        t.update("fit", F.cross_entropy(logits.flatten(0, 1), tgt.flatten()), optimizer)
    c, h, said, first = torch.zeros(3, dtype=torch.long), torch.zeros(3, 10, dtype=t.dtype), [], []
    for i in range(12):
        h = net.cell(net.embed(c), h)
        p = torch.softmax(net.head(h), -1)
        q, place = torch.sort(p, dim=-1, descending=True, stable=True)
        sums = q.cumsum(-1)
        q = torch.where(sums - q < 0.9, q, 0)
        u = 0.5 + 0.5 * torch.sin((17 * torch.arange(3) + 5 * i + 1).to(t.dtype))
        nth = (q.cumsum(-1) <= (u * q.sum(-1))[:, None]).sum(-1)
        c = place[torch.arange(3), nth]
        said.append(c)
        first.append(p.amax(-1))
    t.probe(said=torch.stack(said, 1), first=torch.stack(first, 1))
