#!/usr/bin/env python3
"""Pictures for samples/cnf.mdl, with nothing but the standard library.

    flow_picture.py points PICTURE.png OUT.npy [ROWS]     rows drawn from its dark places
    flow_picture.py show OUT.png DENSITY.npy POINTS.npy   what was learned beside points from it

`points`: a pixel gets points by how dark it is, spread over the pixel; the picture reaches from -2 to 2.
`show`: the density from black to white by its square root, and where the points fall. PNG files are
read and written here: eight bits, no interlace.
"""
import random
import struct
import sys
import zlib

VIEW = 2.5  # `view` of the sample


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(path, rows):
    """Rows of (r, g, b)."""
    raw = b"".join(b"\0" + bytes(v for pixel in row for v in pixel) for row in rows)
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b""))


def paeth(a, b, c):
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]


def read_png(path):
    """Rows of brightness in 0..1."""
    data, at, packed = open(path, "rb").read(), 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
        elif kind == b"IDAT":
            packed += body
        at += 12 + size
    channels = {0: 1, 2: 3, 4: 2, 6: 4}.get(colour)
    if depth != 8 or interlace or not channels:
        sys.exit("%s: eight bits a channel, without a palette and interlace, are read" % path)
    raw, stride, rows, before = zlib.decompress(packed), width * channels, [], bytes(width * channels)
    for y in range(height):
        kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride):
            a = line[x - channels] if x >= channels else 0
            b, c = before[x], before[x - channels] if x >= channels else 0
            line[x] = (line[x] + (0, a, b, (a + b) // 2, paeth(a, b, c))[kind]) & 255
        before = bytes(line)
        colours = channels - (channels in (2, 4))
        rows.append([sum(line[x * channels:x * channels + colours]) / (255 * colours) for x in range(width)])
    return rows


def write_npy(path, rows):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (len(rows), len(rows[0]))
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        for row in rows:
            f.write(struct.pack("<%df" % len(row), *row))


def read_npy(path):
    data = open(path, "rb").read()
    size = struct.unpack("<H", data[8:10])[0]
    head = eval(data[10:10 + size].decode(), {"__builtins__": {}})  # a literal that this program's peers wrote
    n, m = head["shape"]
    values = struct.unpack("<%d%s" % (n * m, {"<f4": "f", "<f8": "d"}[head["descr"]]), data[10 + size:])
    return [values[i * m:(i + 1) * m] for i in range(n)]


def points(picture, out, count=200000):
    rows = read_png(picture)
    height, width = len(rows), len(rows[0])
    cells = [(x, y) for y in range(height) for x in range(width)]
    drawn = random.Random(1)
    chosen = drawn.choices(cells, weights=[1 - rows[y][x] for x, y in cells], k=count)
    scale = 4 / max(width, height)
    write_npy(out, [((x + drawn.random() - width / 2) * scale, (height / 2 - y - drawn.random()) * scale) for x, y in chosen])


def show(out, density, drawn):
    rows, spots = read_npy(density), read_npy(drawn)
    side, top = len(rows), max(max(row) for row in rows)
    zoom = max(1, 384 // side)
    size = side * zoom
    left = [[(min(255, int(255 * (max(rows[i // zoom][j // zoom], 0) / top) ** 0.5)),) * 3 for j in range(size)] for i in range(size)]
    right = [[(255, 255, 255)] * size for _ in range(size)]
    for x, y in spots:
        i, j = int((VIEW - y) / (2 * VIEW) * size), int((x + VIEW) / (2 * VIEW) * size)
        for a, b in ((i, j), (i + 1, j), (i, j + 1), (i + 1, j + 1)):
            if 0 <= a < size and 0 <= b < size:
                right[a][b] = (30, 60, 160)
    write_png(out, [a + [(128, 128, 128)] * 4 + b for a, b in zip(left, right)])


if sys.argv[1] == "points":
    points(sys.argv[2], sys.argv[3], *map(int, sys.argv[4:5]))
else:
    show(*sys.argv[2:5])
