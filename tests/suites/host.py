"""What samples/hosts/mdlc_host.py takes and refuses: host.py LIBRARY REPORT FOLDER, for host.mdl. With numpy,
where it is there, its arrays too; the last line says which."""
import json
import os
import resource
import signal
import sys
from array import array

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../samples/hosts"))
from mdlc_host import Error, Model  # noqa: E402

library, report, folder = sys.argv[1:]
net = Model(library, report)


def refuses(kind, text, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        assert text in str(error), f"{error!r}, not {text!r}"
        return error
    raise AssertionError(f"no {kind.__name__} with {text!r}")


good = {"f": array("f", range(6)), "d": array("d", [0.1, 2]), "a": array("b", [-1, 1]), "b": array("i", [1, 2, 3]),
        "c": b"\x07\x08", "e": array("q", [2**40, -1]), "g": memoryview(b"\1\0").cast("?"), "n": -5, "w": 200, "r": 0.5}


def right(**inputs):
    out = net.call("all", **inputs)
    assert out.f.tolist() == [[0, 0.5, 1], [1.5, 2, 2.5]] and out.d.tolist() == [1.1, 3] and out.total == 201, out
    assert out.c.tolist() == [7, 8] and out.e.tolist() == [2**40 + 1, 0] and out.g.tolist() == [True, False], out


def wrong(kind, text, **inputs):
    return refuses(kind, text, net.call, "all", **{**good, **inputs})


net.init(2**64 - 1)
right(**good)
# Of the model's shape, and read-only ones: bytes, and views of what could be written.
shaped = memoryview(good["f"]).cast("B").cast("f", [2, 3])
right(**{**good, "f": shaped})
right(**{**good, "f": memoryview(bytes(good["f"])).cast("f"), "b": memoryview(good["b"]).toreadonly()})
# What does not lie dense is copied.
right(**{**good, "f": memoryview(array("f", [v for k in range(6) for v in (k, 99)]))[::2]})
right(**{**good, "e": memoryview(array("q", [-1, 2**40]))[::-1], "g": bytes([1, 0])})
# Other element types, also of the same size.
wrong(TypeError, "all: input f: expected f32 [2, 3], given f64 [3]", f=array("d", range(3)))
wrong(TypeError, "all: input f: expected f32 [2, 3], given i32 [6]", f=array("i", range(6)))
wrong(TypeError, "all: input f: expected f32 [2, 3], given u8 [24]", f=bytes(24))
wrong(TypeError, "all: input b: expected i32 [3], given u32 [3]", b=array("I", [1, 2, 3]))
wrong(TypeError, "all: input c: expected u8 [2], given i8 [2]", c=array("b", [1, 2]))
wrong(TypeError, "all: input c: expected u8 [2], given bool [2]", c=good["g"])
wrong(TypeError, "all: input g: expected bool [2], given i8 [2]", g=array("b", [1, 0]))
wrong(TypeError, "all: input f: expected an array of f32 [2, 3], given list", f=[1.0] * 6)
wrong(TypeError, "all: input n: expected a number of i32, given float", n=1.5)
wrong(TypeError, "all: input r: expected a number of f32, given str", r="1")
# Other shapes, also with as many elements.
wrong(ValueError, "all: input f: expected the shape [2, 3], given [5]", f=array("f", range(5)))
wrong(ValueError, "all: input f: expected the shape [2, 3], given [3, 2]",
      f=memoryview(good["f"]).cast("B").cast("f", [3, 2]))
# Numbers that do not fit, and integers outside the range that the source declares.
wrong(ValueError, "all: input w is 256, expected at least 0 and less than 256", w=256)
wrong(ValueError, "all: input n is -2147483649, expected at least -2147483648", n=-2**31 - 1)
wrong(ValueError, "all: input r is 1e+39, too large for f32", r=1e39)
wrong(ValueError, "all: input b: element 1 is 4, expected at least 0 and less than 4", b=array("i", [0, 4, 1]))
wrong(ValueError, "all: input b: element 2 is -1, expected at least 0", b=array("i", [0, 1, -1]))
wrong(ValueError, "all: input g: element 0 is 2, expected at least 0 and less than 2", g=bytes([2, 0]))
# Names.
refuses(TypeError, "all needs the input r: f32 []", net.call, "all", **{k: v for k, v in good.items() if k != "r"})
wrong(TypeError, "all has no input q; it has: f, d, a, b, c, e, g, n, w, r", q=1)
refuses(TypeError, "the model has no entry 'al'; there are: init, all, run, some, fit", net.call, "al")
refuses(TypeError, "run takes no rows; evaluations do", net.call, "run", rows=1, x=array("f", [1, 2]))
right(**good)
for seed in (-1, 2**64):
    refuses(ValueError, "a number of 64 bits", net.init, seed)
# Scalars that stay.
first, at_rate = net.call("fit", x=array("f", [1, 2])), net.tensors()["w"].tolist()
assert isinstance(first.loss, float) and first.lr == 0.5, first
net.init(2**64 - 1)
net.set("fit", "lr", 0)
net.call("fit", x=array("f", [1, 2]))
assert net.tensors()["w"].tolist() == [1, 1] != at_rate, at_rate
refuses(TypeError, "fit has no scalar rate; it has: steps, lr", net.set, "fit", "rate", 1)
refuses(TypeError, "fit: scalar lr: expected a number of f32", net.set, "fit", "lr", None)
# A report of another model.
with open(report, encoding="utf-8") as file:
    said = json.load(file)
for tensor in said["tensors"]:
    tensor["offset"] += 64
refuses(ValueError, "of different models", Model, library, said)
said["api"]["functions"]["tensors"]["name"] = "none_tensors"
refuses(ValueError, "the library has no none_tensors", Model, library, said)
said["version"] = 2
refuses(ValueError, "version 2", Model, library, said)
# What the model refuses, in its words.
error = refuses(Error, "some: called too early", net.call, "some")
assert (error.code, error.name) == (11, "HOST_ERR_STATE")
refuses(Error, "save: ", net.save, os.path.join(folder, "x"), what=77)
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
other = Model(library, report)
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
refuses(Error, "load: ", other.load, path)

try:
    import numpy
except ImportError:
    print("without numpy")
    sys.exit()
array_of = numpy.arange(6, dtype="f4").reshape(2, 3)
right(**{**good, "f": array_of, "e": numpy.array([2**40, -1]), "g": numpy.array([True, False])})
array_of.flags.writeable = False
right(**{**good, "f": array_of})
right(**{**good, "f": numpy.asfortranarray(array_of), "n": numpy.int16(-5)})
wrong(TypeError, "all: input f: expected f32 [2, 3], given f64 [6]", f=numpy.arange(6.0))
wrong(TypeError, "all: input f: expected f32 [2, 3], given elements '>f' [6]", f=numpy.arange(6, dtype=">f4"))
wrong(ValueError, "all: input f: expected the shape [2, 3], given [3, 2]", f=numpy.arange(6, dtype="f4").reshape(2, 3).T)
wrong(TypeError, "all: input b: expected i32 [3], given f32 [3]", b=numpy.ones(3, "f4"))
assert numpy.asarray(net.call("all", **good).f).shape == (2, 3)
print("with numpy")
