"""Files of NumPy, for suites that need no more of it."""
import struct


def write(path, shape, data, code, kind):
    """`data` by the letter of struct for an element, `kind` as NumPy calls it: "i", "<i4"."""
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    head += " " * (117 - len(head)) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<%d%s" % (len(data), code), *data))
