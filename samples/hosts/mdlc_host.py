"""An emitted model from Python, by ctypes alone. The compiler's report says what there is to call:

    mdlc --no-main --report=json NET.mdl -o NET.c > NET.json
    cc -O3 -march=native -shared -fPIC NET.c -lm -o NET.so

    net = Model("NET.so", "NET.json")
    net.init(0)
    out = net.call("fit", x=array("f", ...), y=...)     # out.loss, out.acc, ...
    net.tensors()["fc1.weight"][0, 3]                   # memoryviews into the model's memory

Inputs, results and tensors have the buffer protocol, as array.array and numpy arrays have
(numpy.asarray makes one of a memoryview without a copy). An input has the elements and the shape of
the model, or is flat with all its elements; it may be read-only. What does not lie dense in C order is
copied. Whatever does not fit is refused before the model is called: TypeError for a name, a dtype or
what is no array, ValueError for a shape, a range or a number that does not fit. What the model itself
refuses is an Error with its `code` and the name of it."""
import ctypes as c
import json
import math
import os
import sys
import tempfile

TYPES = {"float": c.c_float, "double": c.c_double, "char": c.c_char, "unsigned char": c.c_ubyte, "int": c.c_int,
         "unsigned": c.c_uint, "size_t": c.c_size_t, "md_dtype": c.c_int, "md_region": c.c_int, "md_kind": c.c_int,
         **{f"{u}int{n}_t": getattr(c, f"c_{u}int{n}") for u in ("", "u") for n in (8, 16, 32, 64)}}
# Letters of the struct module: what memoryviews call the dtypes of the report. There is none for bf16.
LETTERS = {"bool": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
           "f16": "e", "f32": "f", "f64": "d"}
KINDS = {**dict.fromkeys("efd", "f"), **dict.fromkeys("bhilqn", "i"), **dict.fromkeys("BHILQN", "u")}
WRITE = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_size_t)
READ = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_uint64, c.c_void_p, c.c_size_t)


class Error(RuntimeError):
    """A function of the model returned a code."""

    def __init__(self, text, code, name):
        super().__init__(text)
        self.code, self.name = code, name  # 9, "NET_ERR_RANGE"


class Result:
    """What a call gave: numbers, and memoryviews of the model's memory that the next call overwrites."""

    def __repr__(self):
        return "Result(" + ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if k != "_struct") + ")"


def dtype_of(view):
    """The dtype of a memoryview's elements, in the words of the report."""
    native = view.format.lstrip("@=<" if sys.byteorder == "little" else "@=>!")
    if native == "?":
        return "bool"
    return KINDS[native] + str(8 * view.itemsize) if native in KINDS else f"elements '{view.format}'"


def integers_of(dtype):
    """The range of an integer dtype, the end excluded; None: it is no integer."""
    if dtype == "bool":
        return 0, 2
    bits = int(dtype[1:])
    return {"f": None, "i": (-2**(bits - 1), 2**(bits - 1)), "u": (0, 2**bits)}[dtype[0]]


def in_range(where, value, lo, hi):
    if not lo <= value < hi:
        raise ValueError(f"{where} is {value}, expected at least {lo} and less than {hi}")


def checked_array(where, field, value):
    """The bytes of an input as ctypes takes them: a view, or a copy where none will do."""
    try:
        view = memoryview(value)
    except TypeError:
        raise TypeError(f"{where}: expected an array of {field['dtype']} {field['shape']}, "
                        f"given {type(value).__name__}") from None
    dtype, shape = dtype_of(view), list(view.shape or ())
    if dtype != field["dtype"] and (dtype, field["dtype"]) != ("u8", "bool"):
        raise TypeError(f"{where}: expected {field['dtype']} {field['shape']}, given {dtype} {shape}")
    if shape != field["shape"] and shape != [math.prod(field["shape"])]:
        raise ValueError(f"{where}: expected the shape {field['shape']}, given {shape}")
    lo, hi = field.get("range", (0, 2) if field["dtype"] == "bool" else (0, 0))
    dense = view if view.c_contiguous else memoryview(view.tobytes())
    if lo != hi and view.nbytes > 0:
        flat = dense.cast("B").cast(view.format.lstrip("@=<>!"))
        if not lo <= min(flat) <= max(flat) < hi:
            at = next(i for i, element in enumerate(flat) if not lo <= element < hi)
            in_range(f"{where}: element {at}", flat[at], lo, hi)
    if view.nbytes == 0:
        return (c.c_char * 1)()
    room = c.c_char * view.nbytes
    return room.from_buffer_copy(dense) if dense.readonly else room.from_buffer(dense)


def checked_number(where, field, value):
    integers = integers_of(field["dtype"])
    if not hasattr(value, "__index__" if integers else "__float__"):
        raise TypeError(f"{where}: expected a number of {field['dtype']}, given {type(value).__name__}")
    value = value.__index__() if integers else float(value)
    if integers:
        in_range(where, value, *field.get("range", integers))
    elif math.isinf(TYPES[field["type"]](value).value) and not math.isinf(value):
        raise ValueError(f"{where} is {value}, too large for {field['dtype']}")
    return value


def shaped(flat, dtype, shape):
    """Bytes as elements; of a scalar and of what has none in one axis."""
    return flat.cast(LETTERS[dtype], shape) if shape and 0 not in shape else flat.cast(LETTERS[dtype])


class Model:
    def __init__(self, library, report):
        """The library, and the report that was made with it: a path, or what json.load gave."""
        if not isinstance(report, dict):
            with open(report, encoding="utf-8") as file:
                report = json.load(file)
        if report.get("version") != 1 or "api" not in report:
            raise ValueError(f"the report has version {report.get('version')}; this host reads 1, with 'api'")
        self.report, self.api = report, report["api"]
        self.lib = c.CDLL(os.path.abspath(library) if os.path.exists(library) else library)
        if "save" not in self.api["functions"]:
            raise ValueError("the report is of a program for graphics processors; this host calls libraries of C")
        self.structs = {}
        for described in (*self.api["structs"], self.api["memory"], self.api["instance"]):
            self._describe(described["struct"], described["fields"])
        start = len(self.api["prefix"]) + 1
        self.entries = {entry["function"]["name"][start:]: entry for entry in report["entries"]}
        for entry in list(self.entries.values()):
            for owner in (entry, entry.get("end", {"in": None, "out": None})):
                for struct, fields in ((owner.get("in"), "inputs"), (owner["out"], "outputs")):
                    if struct is not None:
                        self._describe(struct, owner[fields])
            if "sums" in entry:
                self._describe(entry["sums"]["struct"], entry["sums"]["fields"])
        self.instance = self.structs[self.api["prefix"]]()
        self.memory, self.regions = self.structs[self.api["memory"]["struct"]](), {}
        for name in self.api["numbers"]["region"]:
            size, align = report["regions"][name], self.api["align"]
            room = c.create_string_buffer(size + align)
            first = -c.addressof(room) % align
            self.regions[name] = memoryview(room).cast("B")[first:first + size]
            setattr(self.memory, name, c.addressof(room) + first)
            setattr(self.memory, name + "_bytes", size)
        self._compare()
        self._must(self.api["functions"]["bind"], self.instance, self.memory)

    def _describe(self, name, fields):
        def c_type(field):
            if field["pointer"]:
                return c.c_char_p if field["type"] == "char" else c.c_void_p
            type_ = TYPES.get(field["type"]) or self.structs[field["type"]]
            return type_ * field["count"] if "count" in field else type_
        self.structs[name] = type(name, (c.Structure,), {"_fields_": [(f["field"], c_type(f)) for f in fields]})

    def _compare(self):
        """Is the report that of this library? Its table of tensors says."""
        numbers = {number: name for name, number in self.api["numbers"]["region"].items()}
        theirs = [(numbers[t.region], t.offset, t.bytes) for t in self._table()]
        if theirs != [(t["region"], t["offset"], t["bytes"]) for t in self.report["tensors"]]:
            raise ValueError("library and report are of different models, or of different options of mdlc")

    def _call(self, function, *arguments):
        """Calls it with structures and numbers in the place of its parameters."""
        try:
            called = getattr(self.lib, function["name"])
        except AttributeError:
            raise ValueError(f"the library has no {function['name']}: the report is of another model") from None
        returns = function["returns"]
        called.restype = {"int": c.c_int, "const char *": c.c_char_p}.get(returns, c.c_void_p)
        given = []
        for parameter, argument in zip(function["parameters"], arguments):
            plain = not parameter["pointer"] and parameter["type"] in TYPES
            given.append(c.byref(argument) if isinstance(argument, c.Structure) else
                         TYPES[parameter["type"]](argument) if plain else argument)
        return called(*given)

    def _must(self, function, *arguments):
        code = self._call(function, *arguments)
        if code != 0:
            name = function["name"][len(self.api["prefix"]) + 1:]
            known = {entry["code"]: entry["name"] for entry in self.api["codes"]}
            text = self._call(self.api["functions"]["strerror"], code).decode()
            raise Error(f"{name}: {text}", code, known.get(code))

    def init(self, seed):
        if not 0 <= seed < 2**64:
            raise ValueError(f"a seed is a number of 64 bits, not {seed}")
        self._must(self.api["functions"]["init"], self.instance, seed)

    def _entry(self, name):
        if name not in self.entries:
            raise TypeError(f"the model has no entry '{name}'; there are: {', '.join(self.entries)}")
        return self.entries[name]

    def _given(self, name, entry, inputs):
        """The *_in structure, and what must live as long as the call."""
        given, kept = self.structs[entry["in"]](), []
        for field in entry["inputs"]:
            if field["name"] not in inputs:
                if field["required"]:
                    raise TypeError(f"{name} needs the input {field['name']}: {field['dtype']} {field['shape']}")
                continue
            where, value = f"{name}: input {field['name']}", inputs[field["name"]]
            if field["pointer"]:
                kept.append(checked_array(where, field, value))
                value = c.addressof(kept[-1])
            else:
                value = checked_number(where, field, value)
            setattr(given, field["field"], value)
        return given, kept

    @staticmethod
    def _taken(entry, struct):
        out = Result()
        out._struct = struct
        for field in entry["outputs"]:
            value = getattr(struct, field["field"])
            if field["pointer"]:
                flat = memoryview((c.c_char * field["bytes"]).from_address(value)).cast("B")
                value = shaped(flat, field["dtype"], field["shape"]).toreadonly()
            setattr(out, field["name"], value)
        return out

    def call(self, entry, rows=None, **inputs):
        """One call of an entry, or of a train's evaluation ("fit_eval") over its first `rows`."""
        name, entry = entry, self._entry(entry)
        unknown = [i for i in inputs if i not in [field["name"] for field in entry["inputs"]]]
        if unknown:
            raise TypeError(f"{name} has no input {', '.join(unknown)}; it has: "
                            f"{', '.join(field['name'] for field in entry['inputs']) or 'none'}")
        arguments, kept, out = [], [], None
        for parameter in entry["function"]["parameters"][1:]:
            if parameter["name"] == "in":
                given, kept = self._given(name, entry, inputs)
                arguments.append(given)
            elif parameter["name"] == "out":
                out = self.structs[entry["out"]]()
                arguments.append(out)
            elif rows is None:
                raise TypeError(f"{name} needs {parameter['name']}")
            else:
                in_range(f"{name}: rows", rows, 1, entry["rows"] + 1)
                arguments.append(rows)
        if rows is not None and entry["kind"] != "eval":
            raise TypeError(f"{name} takes no rows; evaluations do")
        self._must(entry["function"], self.instance, *arguments)
        del kept
        return None if out is None else self._taken(entry, out)

    def evaluate(self, train, parts):
        """Loss and metrics of all rows, from what calls of the train's evaluation gave."""
        entry = self._entry(train + "_eval")
        sums, out = self.structs[entry["sums"]["struct"]](), self.structs[entry["end"]["out"]]()
        for part in parts:
            self._must(entry["add"], sums, part._struct)
        self._must(entry["end"]["function"], self.instance, sums, out)
        return self._taken(entry["end"], out)

    def set(self, entry, name, value):
        """Sets a scalar of an entry that stays: a hyper-parameter, the planned `steps`, the `epoch`."""
        scalars = {scalar["name"]: scalar for scalar in self._entry(entry).get("scalars", [])}
        if name not in scalars:
            raise TypeError(f"{entry} has no scalar {name}; it has: {', '.join(scalars) or 'none'}")
        value = checked_number(f"{entry}: scalar {name}", scalars[name], value)
        self._must(scalars[name]["function"], self.instance, value)

    def _table(self):
        count, tensor = c.c_size_t(), self.structs["md_tensor"]
        first = self._call(self.api["functions"]["tensors"], c.byref(count))
        return (tensor * count.value).from_address(first) if count.value > 0 else []

    def tensors(self):
        """All persistent tensors by name, as memoryviews that write through."""
        dtypes = {number: name for name, number in self.api["numbers"]["dtype"].items()}
        regions = {number: name for name, number in self.api["numbers"]["region"].items()}
        views = {}
        for t in self._table():
            flat = self.regions[regions[t.region]][t.offset:t.offset + t.bytes]
            views[t.name.decode()] = shaped(flat, dtypes[t.dtype], list(t.shape[:t.rank]))
        return views

    def save(self, path, what="params"):
        """Replaces the file as a whole, or leaves it as it was. `what`: params, all, or a number of C."""
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
                what = self.api["numbers"]["save"].get(what, what)
                self._must(self.api["functions"]["save"], self.instance, what, WRITE(write), None)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, os.path.realpath(path))
        except BaseException as error:
            os.unlink(name)
            raise (fault[0] if fault else error)

    def load(self, path):
        with open(path, "rb") as file:
            data = file.read()

        def read(user, offset, to, n):
            c.memmove(to, data[offset:offset + n], min(n, max(0, len(data) - offset)))
            return 0 if offset + n <= len(data) else 1
        self._must(self.api["functions"]["load"], self.instance, READ(read), None)
