#!/usr/bin/env python3
"""Writes samples/data/lines.npy: rows of text from this repository, for samples/mail.mdl.

u8 [N, 1 + 96]: what the row is from (0 a page of docs, 1 C, 2 a model), then 96 bytes of it from the
beginning of a line on, 0 behind its end. The file is in the repository; this script says how it came
about. Run from the root: python3 tests/tools/make_lines.py
"""
import glob
import random
import struct

LENGTH, EACH = 96, 400
drawn, rows = random.Random(1), []
for label, pattern in enumerate(("docs/*.md", "compiler/*.c", "lang/nn/*.mdl")):
    places = []
    for path in sorted(glob.glob(pattern)):
        text = open(path, "rb").read()
        starts = [0] + [i + 1 for i, c in enumerate(text) if c == 10]
        places += [text[i:i + LENGTH] for i in starts if len(text[i:i + LENGTH].strip()) > 40]
    rows += [bytes([label]) + t.ljust(LENGTH, b"\0") for t in drawn.sample(places, EACH)]
drawn.shuffle(rows)
head = "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d), }" % (len(rows), 1 + LENGTH)
head += " " * (117 - len(head)) + "\n"
with open("samples/data/lines.npy", "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + b"".join(rows))
