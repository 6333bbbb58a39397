"""near.py WIDE NEAR COUNT: the COUNT tensors of 16 bits in the weights NEAR are those of WIDE, in f32, to the
nearest, ties to even."""
import json
import struct
import sys


def read(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    first = {k: (v["dtype"], [8 + n + at for at in v["data_offsets"]]) for k, v in head.items() if k != "__metadata__"}
    return {k: (kind, data[begin:end]) for k, (kind, (begin, end)) in first.items()}


def nearest(kind, bits):
    if kind == "BF16":
        return bits + 0x7FFF + (bits >> 16 & 1) >> 16
    return struct.unpack("<H", struct.pack("<e", struct.unpack("<f", struct.pack("<I", bits))[0]))[0]


wide, near = read(sys.argv[1]), read(sys.argv[2])
seen = 0
for name, (kind, data) in near.items():
    if kind not in ("BF16", "F16"):
        continue
    seen += 1
    for (bits,), (half,) in zip(struct.iter_unpack("<I", wide[name][1]), struct.iter_unpack("<H", data), strict=True):
        if nearest(kind, bits) != half:
            sys.exit("%s: %08x became %04x" % (name, bits, half))
if seen != int(sys.argv[3]):
    sys.exit("%d tensors of 16 bits" % seen)
