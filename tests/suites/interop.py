"""Opens FILE with the package safetensors: all tensors of REFERENCE are in it with the same type, shape
and bytes, all others are of a checkpoint, and every one can be read. interop.py FILE REFERENCE"""
import sys

import numpy
from safetensors import safe_open

with safe_open(sys.argv[1], framework="np") as file, safe_open(sys.argv[2], framework="np") as reference:
    assert file.metadata()["producer"] == "mdlc"
    for name in reference.keys():
        have, want = file.get_tensor(name), reference.get_tensor(name)
        assert have.dtype == want.dtype and have.shape == want.shape, name
        assert numpy.array_equal(have, want), name
    rest = set(file.keys()) - set(reference.keys())
    assert all(name.startswith("mdlc.") and file.get_tensor(name).nbytes > 0 for name in rest), rest
    print(len(reference.keys()), "weights,", len(rest), "others")
