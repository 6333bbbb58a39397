#!/usr/bin/env python3
"""Writes the second table that tests/suites/parity.sh compares with, from PyTorch: layers with all their
settings. Run from the root, with PyTorch and NumPy installed: python3 tests/parity/make_layers.py. A new
row is one line of a table below.

layers.mdl          values and gradients of every row of VALUES and LAYERS at the numbers and with the weights
                    of layers.safetensors; the cotangent of a result r is cos(3 r + 1)
layers.txt          a line for each result: its name, then all its numbers
layers_3.safetensors weights and states after three steps of SGD of the modules of MOVES, in training mode

What PyTorch lacks (rotary positions, ALiBi) is written here from its formula.
"""
import json
import math
import struct

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

FOLDER = "tests/parity/"
torch.set_num_threads(1)
torch.manual_seed(11)
# The numbers that rows may use; `n` are lengths and `keep` is made of `k`.
G = {
    "image": torch.randn(2, 4, 5, 6), "line": torch.randn(2, 4, 7), "cube": torch.randn(2, 4, 3, 4, 5),
    "seq": torch.randn(3, 5, 4), "memory": torch.randn(3, 6, 4), "wide": torch.randn(3, 6, 5),
    "q": torch.randn(2, 4, 5, 6), "k": torch.randn(2, 2, 7, 6), "v": torch.randn(2, 2, 7, 3),
    "h": torch.randn(4, 3, 3), "c": torch.randn(4, 3, 3), "x": torch.randn(6, 4),
    "volume": torch.randn(1, 8, 4, 3, 5, generator=torch.Generator().manual_seed(12)),
}
LENGTHS = torch.tensor([5, 2, 3])
KEEP = torch.tensor([[True, True, False, True, False], [True] * 5, [True, False, True, True, True]])
KEEP_MEMORY = torch.tensor([[True, False, True, True, True, True], [True] * 6, [True, True, True, False, False, False]])
PREPARED = """    n[b < 3] = select(b == 0, 5, select(b == 1, 2, 3));
    keep[b < 3, i < 5] = not (b == 0 and (i == 2 or i == 4)) and not (b == 2 and i == 1);
    keep_memory[b < 3, i < 6] = not (b == 0 and i == 1) and not (b == 2 and i > 2);
"""


def rope(x, base=10000.0, first=0, interleaved=False):
    t, d = x.shape[-2:]
    turn = (torch.arange(t).double() + first)[:, None] * base ** (-torch.arange(d // 2).double() * 2 / d)
    co, si = turn.cos().to(x.dtype), turn.sin().to(x.dtype)
    if interleaved:
        z = torch.view_as_complex(x.reshape(*x.shape[:-1], d // 2, 2).contiguous()) * torch.complex(co, si)
        return torch.view_as_real(z).reshape(x.shape)
    a, b = x[..., :d // 2], x[..., d // 2:]
    return torch.cat([a * co - b * si, b * co + a * si], -1)


def slopes(heads):
    """As in the authors' code."""
    def powers(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]
    if math.log2(heads).is_integer():
        return powers(heads)
    low = 2 ** math.floor(math.log2(heads))
    return powers(low) + slopes(2 * low)[0::2][:heads - low]


def alibi(heads, t, s):
    distance = torch.arange(s)[None, :] - torch.arange(t)[:, None]
    return torch.tensor(slopes(heads))[:, None, None] * distance


def sinusoids(t, d):
    angle = torch.arange(t)[:, None] * 10000 ** (-torch.arange(0, d, 2) / d)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


def packed(module, x, states=None):
    y, last = module(pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False), states)
    return pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0], last


def joined(result):
    """All results of a layer, one behind the other."""
    flat = []
    for part in result if isinstance(result, tuple) else (result,):
        flat += [joined(part)] if isinstance(part, tuple) else [part.flatten()]
    return torch.cat(flat)


SDPA = F.scaled_dot_product_attention
# Name, text, function of the numbers, which of them get a gradient.
VALUES = [
    ("maxpool_sides", "maxpool(image, [3, 2], [2, 1], [1, 0])", lambda g: F.max_pool2d(g["image"], (3, 2), (2, 1), (1, 0)), "image"),
    ("maxpool_dilated", "maxpool(image, 2, 1, 1, dilation = [2, 3])", lambda g: F.max_pool2d(g["image"], 2, 1, 1, (2, 3)), "image"),
    ("maxpool_up", "maxpool(image, 2, [2, 4], up = true)", lambda g: F.max_pool2d(g["image"], 2, (2, 4), ceil_mode=True), "image"),
    ("maxpool_up_pad", "maxpool(image, 3, 3, 1, up = true)", lambda g: F.max_pool2d(g["image"], 3, 3, 1, ceil_mode=True), "image"),
    ("maxpool1d", "maxpool1d(line, 3, 2, 1)", lambda g: F.max_pool1d(g["line"], 3, 2, 1), "line"),
    ("maxpool1d_up", "maxpool1d(line, 2, up = true)", lambda g: F.max_pool1d(g["line"], 2, ceil_mode=True), "line"),
    ("maxpool3d", "maxpool3d(cube, [2, 3, 2], 2, 1)", lambda g: F.max_pool3d(g["cube"], (2, 3, 2), 2, 1), "cube"),
    ("avgpool_sides", "avgpool(image, [3, 2], [2, 1], [1, 0])", lambda g: F.avg_pool2d(g["image"], (3, 2), (2, 1), (1, 0)), "image"),
    ("avgpool_inside", "avgpool(image, 3, 2, 1, count_pad = false)", lambda g: F.avg_pool2d(g["image"], 3, 2, 1, count_include_pad=False), "image"),
    ("avgpool_up", "avgpool(image, 3, 2, 1, up = true)", lambda g: F.avg_pool2d(g["image"], 3, 2, 1, ceil_mode=True), "image"),
    ("avgpool_up_inside", "avgpool(image, 2, [2, 4], up = true, count_pad = false)",
     lambda g: F.avg_pool2d(g["image"], 2, (2, 4), ceil_mode=True, count_include_pad=False), "image"),
    ("avgpool1d", "avgpool1d(line, 3, 2, 1)", lambda g: F.avg_pool1d(g["line"], 3, 2, 1), "line"),
    ("avgpool1d_inside", "avgpool1d(line, 3, 2, 1, up = true, count_pad = false)",
     lambda g: F.avg_pool1d(g["line"], 3, 2, 1, True, False), "line"),
    ("avgpool3d", "avgpool3d(cube, 2, [1, 2, 2], [1, 0, 1])", lambda g: F.avg_pool3d(g["cube"], 2, (1, 2, 2), (1, 0, 1)), "cube"),
    ("global_maxpool", "global_maxpool(image)", lambda g: F.adaptive_max_pool2d(g["image"], 1).flatten(1), "image"),
    ("adaptive_avgpool_sides", "adaptive_avgpool(image, [2, 4])", lambda g: F.adaptive_avg_pool2d(g["image"], (2, 4)), "image"),
    ("adaptive_avgpool1d", "adaptive_avgpool1d(line, 3)", lambda g: F.adaptive_avg_pool1d(g["line"], 3), "line"),
    ("adaptive_avgpool3d", "adaptive_avgpool3d(cube, [2, 3, 2])", lambda g: F.adaptive_avg_pool3d(g["cube"], (2, 3, 2)), "cube"),
    ("adaptive_maxpool", "adaptive_maxpool(image, [2, 4])", lambda g: F.adaptive_max_pool2d(g["image"], (2, 4)), "image"),
    ("adaptive_maxpool_even", "adaptive_maxpool(image, [5, 3])", lambda g: F.adaptive_max_pool2d(g["image"], (5, 3)), "image"),
    ("pad_zeros", "pad(line, 2, 3, value = 0.5)", lambda g: F.pad(g["line"], (2, 3), value=0.5), "line"),
    ("pad_reflect", "pad(line, 6, 2, mode = \"reflect\")", lambda g: F.pad(g["line"], (6, 2), "reflect"), "line"),
    ("pad_replicate", "pad(line, 2, 0, mode = \"replicate\")", lambda g: F.pad(g["line"], (2, 0), "replicate"), "line"),
    ("pad_circular", "pad(line, 2, 3, mode = \"circular\")", lambda g: F.pad(g["line"], (2, 3), "circular"), "line"),
    ("pad2d", "pad2d(image, [1, 2], \"reflect\")", lambda g: F.pad(g["image"], (2, 2, 1, 1), "reflect"), "image"),
    ("pad3d", "pad3d(cube, [0, 2, 1], \"replicate\")", lambda g: F.pad(g["cube"], (1, 1, 2, 2, 0, 0), "replicate"), "cube"),
    ("upsample", "upsample(image, [2, 3])", lambda g: F.interpolate(g["image"], scale_factor=(2, 3)), "image"),
    ("upsample_bilinear", "upsample(image, [2, 3], \"bilinear\")",
     lambda g: F.interpolate(g["image"], scale_factor=(2, 3), mode="bilinear"), "image"),
    ("upsample_corners", "upsample(image, 2, \"bilinear\", align_corners = true)",
     lambda g: F.interpolate(g["image"], scale_factor=2, mode="bilinear", align_corners=True), "image"),
    ("resize_nearest", "resize(image, [8, 4])", lambda g: F.interpolate(g["image"], (8, 4)), "image"),
    ("resize_bilinear", "resize(image, [8, 4], \"bilinear\")", lambda g: F.interpolate(g["image"], (8, 4), mode="bilinear"), "image"),
    ("resize_corners", "resize(image, [7, 3], \"bilinear\", true)",
     lambda g: F.interpolate(g["image"], (7, 3), mode="bilinear", align_corners=True), "image"),
    ("upsample_bicubic", "upsample(image, [2, 3], \"bicubic\")",
     lambda g: F.interpolate(g["image"], scale_factor=(2, 3), mode="bicubic"), "image"),
    ("resize_bicubic", "resize(image, [8, 4], \"bicubic\")", lambda g: F.interpolate(g["image"], (8, 4), mode="bicubic"), "image"),
    ("resize_bicubic_corners", "resize(image, [7, 3], \"bicubic\", true)",
     lambda g: F.interpolate(g["image"], (7, 3), mode="bicubic", align_corners=True), "image"),
    ("upsample1d", "upsample1d(line, 3)", lambda g: F.interpolate(g["line"], scale_factor=3), "line"),
    ("upsample1d_linear", "upsample1d(line, 3, \"linear\")", lambda g: F.interpolate(g["line"], scale_factor=3, mode="linear"), "line"),
    ("upsample1d_corners", "upsample1d(line, 3, \"linear\", true)",
     lambda g: F.interpolate(g["line"], scale_factor=3, mode="linear", align_corners=True), "line"),
    ("pixel_shuffle", "pixel_shuffle(image, 2)", lambda g: F.pixel_shuffle(g["image"], 2), "image"),
    ("pixel_unshuffle", "pixel_unshuffle(image[:, :, 0..4, :], 2)", lambda g: F.pixel_unshuffle(g["image"][:, :, :4], 2), "image"),
    ("attend_groups", "attend_heads(q, k, v)", lambda g: SDPA(g["q"], g["k"], g["v"], enable_gqa=True), "q k v"),
    ("attend_groups_causal", "attend_heads(q, k, v, causal = true)",
     lambda g: SDPA(g["q"], g["k"], g["v"], enable_gqa=True, is_causal=True), "q k v"),
    ("attend_alibi", "attend_heads(q, k, v, alibi = true)",
     lambda g: SDPA(g["q"], g["k"], g["v"], attn_mask=alibi(4, 5, 7).to(g["q"].dtype), enable_gqa=True), "q k v"),
    ("attend_alibi_causal", "attend_heads(q, k, v, causal = true, alibi = true)",
     lambda g: SDPA(g["q"], g["k"], g["v"], enable_gqa=True, attn_mask=alibi(4, 5, 7).to(g["q"].dtype).masked_fill(
         ~torch.ones(5, 7, dtype=torch.bool).tril(), -math.inf)), "q k v"),
    ("alibi_slopes", "alibi_slopes(8)", lambda g: torch.tensor(slopes(8)), ""),
    ("alibi_slopes_odd", "alibi_slopes(6)", lambda g: torch.tensor(slopes(6)), ""),
    ("rope", "rope(q)", lambda g: rope(g["q"]), "q"),
    ("rope_interleaved", "rope(q, base = 500, first = 3, interleaved = true)", lambda g: rope(g["q"], 500.0, 3, True), "q"),
    ("sinusoids", "sinusoids(9, 6)", lambda g: sinusoids(9, 6), ""),
]


def weight_norm(module):
    return parametrizations.weight_norm(module)


def spectral_norm(module):
    return parametrizations.spectral_norm(module)


class Grouped(nn.Module):
    """MultiheadAttention with two heads of keys for four of queries, with rotary positions."""

    def __init__(self, rotary):
        super().__init__()
        self.in_proj_weight, self.in_proj_bias = nn.Parameter(torch.randn(8, 4)), nn.Parameter(torch.randn(8))
        self.out_proj, self.rotary = nn.Linear(4, 4), rotary

    def forward(self, x):
        z = F.linear(x, self.in_proj_weight, self.in_proj_bias).unflatten(-1, (-1, 2)).transpose(1, 2)
        q, k, v = z[:, :2], z[:, 2:3], z[:, 3:]
        if self.rotary:
            q, k = rope(q, self.rotary), rope(k, self.rotary)
        return self.out_proj(SDPA(q, k, v, enable_gqa=True, is_causal=True).transpose(1, 2).flatten(2))


def attention(causal=False, keep=None):
    mask = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
    return lambda m, x: m(x, x, x, need_weights=False, attn_mask=mask, key_padding_mask=None if keep is None else ~keep)[0]


def encoder(causal=False, keep=None):
    def run(m, x):
        mask = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
        options = {"mask": mask} if isinstance(m, nn.TransformerEncoder) else {"src_mask": mask}
        return m(x, **options, src_key_padding_mask=None if keep is None else ~keep)
    return run


def decoder(m, x, memory):
    return m(x, memory, tgt_mask=torch.ones(5, 5, dtype=torch.bool).triu(1), memory_key_padding_mask=~KEEP_MEMORY)


def transformer(m, source, x):
    return m(source, x, tgt_mask=torch.ones(5, 5, dtype=torch.bool).triu(1), src_key_padding_mask=~KEEP_MEMORY,
             memory_key_padding_mask=~KEEP_MEMORY)


def states(kind, layers=1, both=False):
    d = 2 if both else 1
    return lambda m, x, h, *c: m(x, (h[:layers * d], c[0][:layers * d]) if kind == "lstm" else h[:layers * d])


call = lambda m, *inputs: m(*inputs)
first = lambda m, *inputs: m(*inputs)[0]
blocks = {"batch_first": True, "dropout": 0.0}
# Name, what is called, of which numbers (`,` separates those that are no variables), module, how it is called.
# The result of a layer that ends in _states is its y, h and c, one behind the other.
LAYERS = [
    ("conv2d_sides", "conv2d(image, 3, [3, 2], stride = [2, 1], pad = [1, 2], dilation = [1, 2])", "image",
     nn.Conv2d(4, 3, (3, 2), (2, 1), (1, 2), (1, 2)), call),
    ("conv2d_reflect", "conv2d(image, 4, 3, pad = [1, 2], groups = 2, mode = \"reflect\")", "image",
     nn.Conv2d(4, 4, 3, padding=(1, 2), groups=2, padding_mode="reflect"), call),
    ("conv2d_replicate", "conv2d(image, 3, 3, stride = 2, pad = 2, mode = \"replicate\")", "image",
     nn.Conv2d(4, 3, 3, 2, 2, padding_mode="replicate"), call),
    ("conv2d_circular", "conv2d(image, 3, [2, 3], pad = [2, 1], dilation = 2, mode = \"circular\")", "image",
     nn.Conv2d(4, 3, (2, 3), padding=(2, 1), dilation=2, padding_mode="circular"), call),
    ("conv2d_weight_norm", "conv2d(image, 3, [2, 3], norm = \"weight\")", "image", weight_norm(nn.Conv2d(4, 3, (2, 3))), call),
    ("conv2d_spectral", "conv2d(image, 3, 2, norm = \"spectral\")", "image", spectral_norm(nn.Conv2d(4, 3, 2)), call),
    ("conv1d_reflect", "conv1d(line, 4, 3, pad = 2, groups = 2, mode = \"reflect\")", "line",
     nn.Conv1d(4, 4, 3, padding=2, groups=2, padding_mode="reflect"), call),
    ("conv1d_circular", "conv1d(line, 3, 3, stride = 2, pad = 2, mode = \"circular\", use_bias = false)", "line",
     nn.Conv1d(4, 3, 3, 2, 2, bias=False, padding_mode="circular"), call),
    ("conv1d_weight_norm", "conv1d(line, 3, 2, norm = \"weight\")", "line", weight_norm(nn.Conv1d(4, 3, 2)), call),
    ("conv3d", "conv3d(cube, 3, 2)", "cube", nn.Conv3d(4, 3, 2), call),
    ("conv3d_sides", "conv3d(cube, 4, [2, 3, 1], stride = [1, 2, 2], pad = [1, 2, 0], dilation = [2, 1, 1], groups = 2)", "cube",
     nn.Conv3d(4, 4, (2, 3, 1), (1, 2, 2), (1, 2, 0), (2, 1, 1), groups=2), call),
    ("conv3d_replicate", "conv3d(cube, 2, 3, pad = 1, mode = \"replicate\")", "cube",
     nn.Conv3d(4, 2, 3, padding=1, padding_mode="replicate"), call),
    ("conv_transpose1d", "conv_transpose1d(line, 3, 3)", "line", nn.ConvTranspose1d(4, 3, 3), call),
    ("conv_transpose1d_groups", "conv_transpose1d(line, 6, 3, stride = 3, pad = 1, grow = 2, groups = 2, dilation = 2)", "line",
     nn.ConvTranspose1d(4, 6, 3, 3, 1, 2, 2, dilation=2), call),
    ("conv_transpose2d_sides", "conv_transpose2d(image, 3, [3, 2], stride = [2, 1], pad = [1, 0], grow = [1, 0], dilation = [1, 2])",
     "image", nn.ConvTranspose2d(4, 3, (3, 2), (2, 1), (1, 0), (1, 0), dilation=(1, 2)), call),
    ("conv_transpose2d_groups", "conv_transpose2d(image, 4, 2, stride = 2, groups = 2)", "image",
     nn.ConvTranspose2d(4, 4, 2, 2, groups=2), call),
    ("conv_transpose3d", "conv_transpose3d(cube, 4, [2, 3, 2], stride = [1, 2, 2], pad = [0, 1, 0], grow = [0, 1, 1], groups = 2)",
     "cube", nn.ConvTranspose3d(4, 4, (2, 3, 2), (1, 2, 2), (0, 1, 0), (0, 1, 1), 2), call),
    ("linear_weight_norm", "linear(x, 3, norm = \"weight\")", "x", weight_norm(nn.Linear(4, 3)), call),
    ("linear_spectral", "linear(x, 3, norm = \"spectral\")", "x", spectral_norm(nn.Linear(4, 3)), call),
    ("layernorm_plain", "layernorm(x, affine = false)", "x", nn.LayerNorm(4, elementwise_affine=False), call),
    ("layernorm_weight", "layernorm(x, use_bias = false)", "x", nn.LayerNorm(4, bias=False), call),
    ("batchnorm_line", "batchnorm(line)", "line", nn.BatchNorm1d(4), call),
    ("batchnorm_cube", "batchnorm(cube)", "cube", nn.BatchNorm3d(4), call),
    ("batchnorm_plain", "batchnorm(image, affine = false)", "image", nn.BatchNorm2d(4, affine=False), call),
    ("batchnorm_untracked", "batchnorm(image, track = false)", "image", nn.BatchNorm2d(4, track_running_stats=False), call),
    ("rnn_states", "rnn_states(seq, 3)", "seq", nn.RNN(4, 3, batch_first=True), call),
    ("rnn_relu_states", "rnn_states(seq, 3, 2, \"relu\", bidirectional = true, h0 = h)", "seq h",
     nn.RNN(4, 3, 2, "relu", batch_first=True, bidirectional=True), states("rnn", 2, True)),
    ("rnn_lengths_states", "rnn_states(seq, 3, 2, bidirectional = true, lengths = n)", "seq,n",
     nn.RNN(4, 3, 2, batch_first=True, bidirectional=True), packed),
    ("rnn", "rnn(seq, 3, 2, use_bias = false)", "seq", nn.RNN(4, 3, 2, bias=False, batch_first=True), first),
    ("gru_states", "gru_states(seq, 3, 3)", "seq", nn.GRU(4, 3, 3, batch_first=True), call),
    ("gru_both_states", "gru_states(seq, 3, 2, bidirectional = true, h0 = h)", "seq h",
     nn.GRU(4, 3, 2, batch_first=True, bidirectional=True), states("gru", 2, True)),
    ("gru_lengths_states", "gru_states(seq, 3, 2, bidirectional = true, lengths = n)", "seq,n",
     nn.GRU(4, 3, 2, batch_first=True, bidirectional=True), packed),
    ("gru_both", "gru(seq, 3, bidirectional = true, use_bias = false)", "seq",
     nn.GRU(4, 3, bias=False, batch_first=True, bidirectional=True), first),
    ("lstm_states", "lstm_states(seq, 3, 3)", "seq", nn.LSTM(4, 3, 3, batch_first=True), call),
    ("lstm_both_states", "lstm_states(seq, 3, 2, bidirectional = true, h0 = h, c0 = c)", "seq h c",
     nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True), states("lstm", 2, True)),
    ("lstm_given_states", "lstm_states(seq, 3, h0 = h[0..1, :, :], c0 = c[0..1, :, :], lengths = n)", "seq h c,n",
     nn.LSTM(4, 3, batch_first=True), lambda m, x, h, c: packed(m, x, (h[:1], c[:1]))),
    ("lstm_lengths_states", "lstm_states(seq, 3, 2, bidirectional = true, lengths = n)", "seq,n",
     nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True), packed),
    ("lstm_both", "lstm(seq, 3, 2, bidirectional = true, use_bias = false)", "seq",
     nn.LSTM(4, 3, 2, bias=False, batch_first=True, bidirectional=True), first),
    ("attention_keep", "multihead_attention(seq, 2, keep = keep)", "seq,keep", nn.MultiheadAttention(4, 2, batch_first=True),
     attention(keep=KEEP)),
    ("attention_keep_causal", "multihead_attention(seq, 2, causal = true, keep = keep)", "seq,keep",
     nn.MultiheadAttention(4, 2, batch_first=True), attention(True, KEEP)),
    ("attention_plain", "multihead_attention(seq, 4, use_bias = false)", "seq",
     nn.MultiheadAttention(4, 4, bias=False, batch_first=True), attention()),
    ("attention_groups", "multihead_attention(seq, 2, causal = true, groups = 1)", "seq", Grouped(0), call),
    ("attention_rotary", "multihead_attention(seq, 2, causal = true, groups = 1, rotary = 100)", "seq", Grouped(100.0), call),
    ("cross_attention_keep", "cross_attention(seq, memory, 2, keep = keep_memory)", "seq memory,keep_memory",
     nn.MultiheadAttention(4, 2, batch_first=True),
     lambda m, x, y: m(x, y, y, need_weights=False, key_padding_mask=~KEEP_MEMORY)[0]),
    ("cross_attention_wide", "cross_attention(seq, wide, 2)", "seq wide",
     nn.MultiheadAttention(4, 2, kdim=5, vdim=5, batch_first=True), lambda m, x, y: m(x, y, y, need_weights=False)[0]),
    ("encoder_layer", "transformer_encoder_layer(seq, 2, 6)", "seq", nn.TransformerEncoderLayer(4, 2, 6, **blocks), call),
    ("encoder_layer_first", "transformer_encoder_layer(seq, 2, 6, activation = \"gelu\", eps = 0.1, norm_first = true, causal = true)",
     "seq", nn.TransformerEncoderLayer(4, 2, 6, activation="gelu", layer_norm_eps=0.1, norm_first=True, **blocks), encoder(True)),
    ("encoder_layer_keep", "transformer_encoder_layer(seq, 2, 6, use_bias = false, keep = keep)", "seq,keep",
     nn.TransformerEncoderLayer(4, 2, 6, bias=False, **blocks), encoder(keep=KEEP)),
    ("decoder_layer", "transformer_decoder_layer(seq, memory, 2, 6, causal = true, keep_memory = keep_memory)",
     "seq memory,keep_memory", nn.TransformerDecoderLayer(4, 2, 6, **blocks), decoder),
    ("decoder_layer_first", "transformer_decoder_layer(seq, memory, 2, 6, activation = \"gelu\", norm_first = true, causal = true, "
     "keep_memory = keep_memory)", "seq memory,keep_memory",
     nn.TransformerDecoderLayer(4, 2, 6, activation="gelu", norm_first=True, **blocks), decoder),
    ("encoder", "transformer_encoder(seq, 3, 2, 6, norm = true, keep = keep)", "seq,keep",
     nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, **blocks), 3, nn.LayerNorm(4), enable_nested_tensor=False),
     encoder(keep=KEEP)),
    ("decoder", "transformer_decoder(seq, memory, 2, 2, 6, norm_first = true, causal = true, keep_memory = keep_memory)",
     "seq memory,keep_memory", nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 6, norm_first=True, **blocks), 2), decoder),
    ("transformer", "transformer(memory, seq, 2, 2, 2, 6, causal = true, keep_source = keep_memory)", "memory seq,keep_memory",
     nn.Transformer(4, 2, 2, 2, 6, batch_first=True, dropout=0.0), transformer),
]
with torch.random.fork_rng():  # what follows draws as without them
    LAYERS += [
        ("conv3d_channels", "conv3d(volume, 9, [2, 3, 2], pad = [1, 1, 0])", "volume",
         nn.Conv3d(8, 9, (2, 3, 2), padding=(1, 1, 0)), call),
        ("conv3d_stride", "conv3d(volume, 8, [3, 2, 2], stride = [1, 2, 2], pad = 1, dilation = [2, 1, 1])", "volume",
         nn.Conv3d(8, 8, (3, 2, 2), (1, 2, 2), 1, (2, 1, 1)), call),
        ("conv3d_depthwise", "conv3d(volume, 8, 3, pad = 1, groups = 8)", "volume", nn.Conv3d(8, 8, 3, padding=1, groups=8), call),
        ("conv_transpose3d_channels", "conv_transpose3d(volume, 8, [2, 3, 2], pad = [0, 1, 1])", "volume",
         nn.ConvTranspose3d(8, 8, (2, 3, 2), padding=(0, 1, 1)), call),
        ("conv2d_same", "conv2d(image, 6, [4, 3], dilation = [1, 2], groups = 2, same = true)", "image",
         nn.Conv2d(4, 6, (4, 3), padding="same", dilation=(1, 2), groups=2), call),
        ("conv2d_same_reflect", "conv2d(image, 3, [2, 5], mode = \"reflect\", same = true)", "image",
         nn.Conv2d(4, 3, (2, 5), padding="same", padding_mode="reflect"), call),
        ("conv1d_same", "conv1d(line, 3, 4, same = true)", "line", nn.Conv1d(4, 3, 4, padding="same"), call),
        ("conv1d_same_circular", "conv1d(line, 3, 3, dilation = 2, mode = \"circular\", same = true)", "line",
         nn.Conv1d(4, 3, 3, padding="same", dilation=2, padding_mode="circular"), call),
        ("conv3d_same", "conv3d(cube, 3, [2, 3, 4], same = true)", "cube", nn.Conv3d(4, 3, (2, 3, 4), padding="same"), call),
        ("conv3d_same_replicate", "conv3d(cube, 2, [3, 2, 2], mode = \"replicate\", same = true)", "cube",
         nn.Conv3d(4, 2, (3, 2, 2), padding="same", padding_mode="replicate"), call),
    ]
TYPES = {"n": "i32[3]", "keep": "bool[3, 5]", "keep_memory": "bool[3, 6]"}


def shape(v):
    return "[" + ", ".join(str(d) for d in v.shape) + "]"


def functions():
    given, models, lines, results, kept, lists = "", "", "", [], {}, []

    def add(name, text, value, numbers):
        nonlocal lines
        lines += f"    r_{name} = {text};\n"
        results.append((name, f"r_{name}"))
        lists.append((name, value.detach().flatten()))
        if numbers:
            cotangent = torch.cos(3 * value.detach() + 1)
            for v, gradient in zip(numbers, torch.autograd.grad(value, list(numbers.values()), cotangent)):
                results.append((f"{name}_{v}", f"vjp(r_{name}, {v}, cos(3 * r_{name} + 1))"))
                lists.append((f"{name}_{v}", gradient.flatten()))

    for name, value in G.items():
        given += f"    param {name}: {shape(value)} = 0;\n"
        kept[f"given.{name}"] = value
    for name, text, function, variables in VALUES:
        numbers = {k: v.clone().requires_grad_() for k, v in G.items()}
        add(name, text, function(numbers), {v: numbers[v] for v in variables.split()})
    for name, text, used, module, function in LAYERS:
        module.eval()
        with torch.no_grad():  # norms start as ones and zeros, which shows nothing
            for key, value in module.state_dict().items():
                if value.dtype == torch.float32:
                    if not key.endswith(("_u", "_v")):
                        value.add_(0.3 * torch.rand(value.shape))
                    kept[f"m_{name}.l.{key}"] = value
        variables, _, others = used.partition(",")
        variables = variables.split()
        numbers = {k: G[k].clone().requires_grad_() for k in variables}
        result = function(module, *numbers.values())
        signature = ", ".join([f"{k}: {shape(G[k])}" for k in variables] + [f"{k}: {TYPES[k]}" for k in others.split()])
        if name.endswith("_states"):
            parts = [result[0], *(result[1] if isinstance(result[1], tuple) else (result[1],))]
            body = f"r = l: {text};\n    return " + "concat(" + ", ".join(
                f"r.{part} as [{value.numel()}]" for part, value in zip("yhc", parts)) + ");"
            models += f"model m_{name}({signature}) {{\n    {body}\n}}\n"
        else:
            models += f"model m_{name}({signature}) {{ return l: {text}; }}\n"
        add(name, f"m_{name}({', '.join(variables + others.split())})", joined(result), numbers) \
            if name.endswith("_states") else \
            add(name, f"m_{name}({', '.join(variables + others.split())})", result, numbers)
    entry = "".join(f"    {k} = given.{k};\n" for k in G) + PREPARED
    returned = ",\n        ".join(f"{name} = {text}" for name, text in results)
    text = (f"model given() {{\n{given}    return sum(x);\n}}\n{models}\nentry values() {{\n{entry}{lines}"
            f"    return\n        {returned};\n}}\n")
    return text, kept, lists


# Name, what the model returns of its input [6, 4], module: three steps of SGD in training mode.
MOVES = [
    ("cumulative", "batchnorm(x, cumulative = true)", nn.BatchNorm1d(4, momentum=None)),
    ("spectral_moves", "linear(x, 3, norm = \"spectral\")", spectral_norm(nn.Linear(4, 3))),
    ("weight_moves", "linear(x, 3, norm = \"weight\")", weight_norm(nn.Linear(4, 3))),
]


def moves(kept):
    text, moved, losses = "", {}, []
    names = [f"v_{name}" for name, _, _ in MOVES]
    for name, layer, module in MOVES:
        text += f"model v_{name}(x: [6, 4]) {{ return l: {layer}; }}\n"
        module.train()
        for key, value in module.state_dict().items():
            kept[f"v_{name}.l.{key}"] = value.clone()
    text += "train fit() of " + ", ".join(names) + " {\n    x[i < 6, j < 4] = cos(f32(i + 2 * j) * f32(step));\n    loss "
    text += " + ".join(f"mean({name}(x)^3)" for name in names) + ";\n    optimizer sgd(lr = 0.5);\n    steps 3;\n}\n"
    parameters = [p for _, _, module in MOVES for p in module.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.5)
    i, j = torch.meshgrid(torch.arange(6), torch.arange(4), indexing="ij")
    for step in range(3):
        optimizer.zero_grad()
        x = torch.cos((i + 2 * j).float() * (step + 1))
        loss = sum(module(x).pow(3).mean() for _, _, module in MOVES)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    for name, _, module in MOVES:
        moved.update({f"v_{name}.l.{key}": value for key, value in module.state_dict().items()})
    print("losses", losses)
    return text, moved


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        whole = tensor.dtype == torch.int64
        raw = np.ascontiguousarray(tensor.detach().numpy(), dtype="<i8" if whole else "<f4").tobytes()
        header[name] = {"dtype": "I64" if whole else "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(FOLDER + path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


text, kept, lists = functions()
more, moved = moves(kept)
write_safetensors("layers.safetensors", kept)
write_safetensors("layers_3.safetensors", moved)
with open(FOLDER + "layers.mdl", "w", newline="\n") as out:
    out.write("/// Written by make_layers.py.\nuse nn;\n\n" + text + more)
with open(FOLDER + "layers.txt", "w", newline="\n") as out:
    for name, numbers in lists:
        out.write(" ".join([name] + [f"{float(v):.8g}" for v in numbers]) + "\n")
