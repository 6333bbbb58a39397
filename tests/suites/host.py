"""What samples/hosts/mdlc_host.py takes and refuses: host.py LIBRARY HEADER FOLDER, for host.mdl. With numpy,
where it is there, its arrays too; the last line says which."""
import os
import resource
import signal
import sys
from array import array

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../samples/hosts"))
from mdlc_host import Model  # noqa: E402

library, header, folder = sys.argv[1:]
net = Model(library, header, "host")


def refuses(kind, text, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        assert text in str(error), f"{error!r}, not {text!r}"
    else:
        raise AssertionError(f"no {kind.__name__} with {text!r}")


good = {"f": array("f", range(6)), "d": array("d", [0.1, 2]), "a": array("b", [-1, 1]), "b": array("i", [1, 2, 3]),
        "c": b"\x07\x08", "e": array("q", [2**40, -1]), "g": memoryview(b"\1\0").cast("?"), "n": -5, "w": 200, "r": 0.5}


def right(**inputs):
    out = net.call("all", **inputs)
    assert out.f[0:6] == [0, 0.5, 1, 1.5, 2, 2.5] and out.d[0:2] == [1.1, 3] and out.total == 201, out.f[0:6]
    assert out.c[0:2] == [7, 8] and out.e[0:2] == [2**40 + 1, 0] and out.g[0:2] == [True, False]


net.init(2**64 - 1)
right(**good)
# Read-only ones: bytes, and views of what could be written.
right(**{**good, "f": memoryview(bytes(good["f"])).cast("f"), "b": memoryview(good["b"]).toreadonly()})
# Other element types, also of the same size.
refuses(TypeError, "f: elements 'd' of 8 bytes, not float", net.call, "all", **{**good, "f": array("d", range(3))})
refuses(TypeError, "f: elements 'i' of 4 bytes, not float", net.call, "all", **{**good, "f": array("i", range(6))})
refuses(TypeError, "f: elements 'B' of 1 bytes, not float", net.call, "all", **{**good, "f": bytes(24)})
refuses(TypeError, "b: elements 'I' of 4 bytes, not int", net.call, "all", **{**good, "b": array("I", [1, 2, 3])})
refuses(TypeError, "c: elements 'b' of 1 bytes, not ubyte", net.call, "all", **{**good, "c": array("b", [1, 2])})
refuses(TypeError, "g: elements 'b' of 1 bytes, not ubyte", net.call, "all", **{**good, "g": array("b", [1, 0])})
refuses(ValueError, "f: 20 bytes, not 24", net.call, "all", **{**good, "f": array("f", range(5))})
refuses(ValueError, "f: does not lie dense", net.call, "all", **{**good, "f": memoryview(array("f", range(12)))[::2]})
refuses(ValueError, "w: 256 is no ubyte", net.call, "all", **{**good, "w": 256})
refuses(TypeError, "all needs the input r", net.call, "all", **{k: v for k, v in good.items() if k != "r"})
refuses(TypeError, "all has no input q", net.call, "all", q=1, **good)
for seed in (-1, 2**64):
    refuses(ValueError, "a number of 64 bits", net.init, seed)
# What the model refuses, in its words.
refuses(RuntimeError, "some: ", net.call, "some")
refuses(RuntimeError, "save: ", net.save, os.path.join(folder, "x"), what=77)
assert not os.path.exists(os.path.join(folder, "x"))

# Saved as a whole or not at all.
path, link = os.path.join(folder, "weights"), os.path.join(folder, "link")
net.save(path)
os.chmod(path, 0o640)
os.symlink("weights", link)
before = open(path, "rb").read()
net.tensors()["w"][0] = 5
net.save(link)
assert os.path.islink(link) and os.stat(path).st_mode & 0o777 == 0o640 and open(path, "rb").read() != before
other = Model(library, header, "host")
other.load(path)
assert other.tensors()["w"].tolist() == [5, 1]
before = open(path, "rb").read()
net.tensors()["w"][0] = 6
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
refuses(OSError, "File too large", net.save, path)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert open(path, "rb").read() == before and sorted(os.listdir(folder)) == ["link", "weights"], os.listdir(folder)
with open(path, "wb") as file:
    file.write(before[:40])
refuses(RuntimeError, "load: ", other.load, path)

try:
    import numpy
except ImportError:
    print("without numpy")
    sys.exit()
array_of = numpy.arange(6, dtype="f4").reshape(2, 3)
right(**{**good, "f": array_of, "e": numpy.array([2**40, -1]), "g": numpy.array([True, False])})
array_of.flags.writeable = False
right(**{**good, "f": array_of})
refuses(TypeError, "f: elements 'd'", net.call, "all", **{**good, "f": numpy.arange(6.0)})
refuses(TypeError, "f: elements '>f'", net.call, "all", **{**good, "f": numpy.arange(6, dtype=">f4")})
refuses(ValueError, "f: does not lie dense", net.call, "all", **{**good, "f": numpy.arange(6, dtype="f4").reshape(3, 2).T})
refuses(TypeError, "b: elements 'f'", net.call, "all", **{**good, "b": numpy.ones(3, "f4")})
print("with numpy")
