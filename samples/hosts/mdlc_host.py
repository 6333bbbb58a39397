"""An emitted model from Python, by ctypes alone: mdlc --no-main NET.mdl -o NET.c -H NET.h, then
cc -O3 -march=native -shared -fPIC NET.c -lm -o NET.so.

    net = Model("NET.so", "NET.h", "net")
    net.init(0)
    out = net.call("fit", x=array("f", ...), y=...)     # out.loss, out.acc, ...
    net.tensors()["fc1.weight"][0, 3]                   # memoryviews into the model's memory

Inputs and tensors are anything with the buffer protocol, such as array.array or numpy arrays
(numpy.asarray makes one of a memoryview without a copy). Inputs have the element types of the header,
lie dense and in C order, and may be read-only."""
import ctypes as c
import math
import os
import re
import sys
import tempfile

TYPES = {"float": c.c_float, "double": c.c_double, "int": c.c_int, "bool": c.c_bool, "size_t": c.c_size_t,
         **{f"{u}int{n}_t": getattr(c, f"c_{u}int{n}") for u in ("", "u") for n in (8, 16, 32, 64)}}
DTYPES = "?bhiqBHIQ__fd"  # of md_dtype, from 1; memoryview has no f16 and bf16
KINDS = {**dict.fromkeys("fd", "float"), **dict.fromkeys("bhilqn", "int"), **dict.fromkeys("BHILQN", "uint"),
         "?": "bool"}  # of struct's letters, which depend on the machine in their sizes
WRITE = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_size_t)
READ = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_uint64, c.c_void_p, c.c_size_t)


class Tensor(c.Structure):  # md_tensor
    _fields_ = [("name", c.c_char_p), *((n, c.c_int) for n in ("dtype", "region", "kind", "trainable", "rank")),
                ("shape", c.c_int64 * 12), ("offset", c.c_size_t), ("bytes", c.c_size_t),
                ("copy_of", c.c_size_t), ("split", c.c_int), ("transposed", c.c_int),
                ("lo", c.c_int64), ("hi", c.c_int64)]


class Memory(c.Structure):  # md_memory
    _fields_ = [(n, c.c_void_p) for n in ("params", "state", "io", "arena")] + \
               [(n + "_bytes", c.c_size_t) for n in ("params", "state", "io", "arena")]


def flat_bytes(name, value, element, count):
    """The bytes of an input: a view, or a copy where the model's types need a writable object."""
    view = memoryview(value)
    native = view.format.lstrip("@=<" if sys.byteorder == "little" else "@=>!")
    kinds = {KINDS[element._type_]} | ({"bool"} if element is c.c_uint8 else set())  # how headers have bools
    if KINDS.get(native) not in kinds or view.itemsize != c.sizeof(element):
        raise TypeError(f"{name}: elements '{view.format}' of {view.itemsize} bytes, not {element.__name__[2:]}")
    if view.nbytes != count * c.sizeof(element):
        raise ValueError(f"{name}: {view.nbytes} bytes, not {count * c.sizeof(element)}")
    if not view.c_contiguous:
        raise ValueError(f"{name}: does not lie dense in C order")
    room = c.c_char * view.nbytes
    return room.from_buffer_copy(view) if view.readonly else room.from_buffer(view)


class Model:
    def __init__(self, library, header, prefix):
        self.lib, self.prefix = c.CDLL(str(library)), prefix
        text = open(header, encoding="utf-8").read()
        self.size = {n: int(v) for n, v in re.findall(rf"#define {prefix.upper()}_(\w+) (\d+)", text)}
        self.structs = {name: self._struct(body) for name, body in
                        re.findall(rf"typedef struct {prefix}_(\w+) \{{\n(.*?)\}}", text, re.S)}
        self.instance, self.memory, self.regions = c.create_string_buffer(1024), Memory(), []
        for name in ("params", "state", "io", "arena"):
            size, align = self.size[name.upper() + "_BYTES"], self.size["ALIGN"]
            room = c.create_string_buffer(size + align)
            start = -c.addressof(room) % align
            self.regions.append(memoryview(room).cast("B")[start:start + size])
            setattr(self.memory, name, c.addressof(room) + start)
            setattr(self.memory, name + "_bytes", size)
        self._must("bind", c.byref(self.memory))

    @staticmethod
    def _struct(body):  # fields, and the number of elements of those that are pointers
        fields, counts = [], {}
        for kind, star, name, shape in re.findall(r"(\w+) (\*?)(\w+);(?: /\* \[([\d, ]*)\] \*/)?", body):
            fields.append((name, c.POINTER(TYPES[kind]) if star else TYPES[kind]))
            if star:
                counts[name] = math.prod(map(int, shape.split(",")))
        return type("Struct", (c.Structure,), {"_fields_": fields, "counts": counts})

    def _function(self, name):
        function = getattr(self.lib, f"{self.prefix}_{name}")
        function.restype = c.c_int
        return function

    def _must(self, name, *arguments, first=None):
        code = self._function(name)(self.instance if first is None else first, *arguments)
        if code != 0:
            text = getattr(self.lib, f"{self.prefix}_strerror")
            text.restype = c.c_char_p
            raise RuntimeError(f"{name}: {text(c.c_int(code)).decode()}")

    def init(self, seed):
        if not 0 <= seed < 2**64:
            raise ValueError(f"a seed is a number of 64 bits, not {seed}")
        self._must("init", c.c_uint64(seed))

    def call(self, entry, rows=None, **inputs):
        """One call of an entry; `rows` for an evaluation. Gives the *_out struct; what it points to lies in
        the model's memory until the next call."""
        arguments, kept = [], []
        kind = self.structs.get(re.sub("_eval$", "", entry) + "_in")
        if kind is not None:
            given = kind()
            for name, type_ in kind._fields_:
                if name not in inputs:
                    raise TypeError(f"{entry} needs the input {name}")
                value = inputs.pop(name)
                if name in kind.counts:
                    kept.append(flat_bytes(name, value, type_._type_, kind.counts[name]))
                    setattr(given, name, c.cast(kept[-1], type_))
                    continue
                setattr(given, name, value)
                if isinstance(getattr(given, name), int) and getattr(given, name) != value:
                    raise ValueError(f"{name}: {value} is no {type_.__name__[2:]}")
            arguments.append(c.byref(given))
        if inputs:
            raise TypeError(f"{entry} has no input {', '.join(inputs)}")
        if rows is not None:
            arguments.append(c.c_int64(rows))
        out = self.structs[entry + "_out"]() if entry + "_out" in self.structs else None
        self._must(entry, *arguments, *([c.byref(out)] if out is not None else []))
        return out

    def evaluate(self, train, parts):
        """Loss and metrics of all rows, from what calls of the train's evaluation gave."""
        sums, out = self.structs[train + "_eval_sums"](), self.structs[train + "_eval_end_out"]()
        for part in parts:
            self._must(train + "_eval_add", c.byref(part), first=c.byref(sums))
        self._must(train + "_eval_end", c.byref(sums), c.byref(out))
        return out

    def tensors(self):
        """All persistent tensors by name, as memoryviews that write through."""
        count = c.c_size_t()
        table = self._function("tensors")
        table.restype = c.POINTER(Tensor)
        first, views = table(c.byref(count)), {}
        for t in first[:count.value]:
            flat = self.regions[t.region][t.offset:t.offset + t.bytes].cast(DTYPES[t.dtype - 1])
            views[t.name.decode()] = flat.cast("B").cast(flat.format, list(t.shape[:t.rank])) if t.rank else flat
        return views

    def save(self, path, what=3):  # 3: MD_SAVE_PARAMS
        """Replaces the file as a whole, or leaves it as it was."""
        handle, name = tempfile.mkstemp(dir=os.path.dirname(os.path.realpath(path)), prefix=".save-")
        fault = []

        def write(user, data, n):
            try:
                file.write(c.string_at(data, n))
                return 0
            except OSError as error:  # no exception passes through C
                fault.append(error)
                return 1
        try:
            with open(handle, "wb") as file:
                mask = os.umask(0)
                os.umask(mask)
                os.chmod(name, os.stat(path).st_mode & 0o7777 if os.path.exists(path) else 0o666 & ~mask)
                self._must("save", c.c_uint(what), WRITE(write), None)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, os.path.realpath(path))
        except BaseException as error:
            os.unlink(name)
            raise (fault[0] if fault else error)

    def load(self, path):
        data = open(path, "rb").read()

        def read(user, offset, to, n):
            c.memmove(to, data[offset:offset + n], min(n, max(0, len(data) - offset)))
            return 0 if offset + n <= len(data) else 1
        self._must("load", READ(read), None)
