"""What docs/report.md says of the JSON report, against reports: report.py fields DOC REPORT... compares the
fields of both; report.py program REPORT HEADER writes a C file that refuses to compile, or to end well,
where a report says something else of C than the header does."""
import json
import re
import sys

FUNCTION = ["name", "returns", "declaration", *(f"parameters[].{k}" for k in ("name", "type", "pointer", "declaration"))]
DECLARATION = ["field", "type", "pointer", "declaration"]
# Objects whose keys are names of the model or of C.
OPEN = {"options.define", "data_row_bytes", "api.functions", "api.numbers.dtype", "api.numbers.region",
        "api.numbers.kind", "api.numbers.save"}


def documented(path):
    """Every field that the tables name."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    keys = text[text.index("## Functions, parameters, fields"):text.index("## Entries: how they are called")]
    for name, kind in re.findall(r"^\| `([^`]*)`(?:: \*(\w+)\*)? \|", text[text.index("## The program"):].replace(keys, ""), re.M):
        if kind:
            yield from (f"{name}.{k}" for k in (FUNCTION if kind == "function" else DECLARATION))
        else:
            yield name


def printed(value, path=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from printed(inner, f"{path}.{'*' if path in OPEN else key}" if path else key)
    elif isinstance(value, list):
        for inner in value:
            yield from printed(inner, path + "[]")
        if path.endswith("shape") and not value:
            yield path + "[]"
    else:
        yield path


def fields(document, *reports):
    said, seen = set(documented(document)), set()
    for report in reports:
        with open(report, encoding="utf-8") as file:
            parsed = json.load(file)
        assert parsed["version"] == 1
        seen |= set(printed(parsed))
    seen = {name for name in seen if not name.endswith(".fields[].count")}  # of arrays alone
    for name in sorted(seen - said):
        print(f"{name}: printed, not documented")
    for name in sorted(said - seen):
        print(f"{name}: documented, in no report")
    return said == seen


def functions(report):
    yield from report["api"]["functions"].values()
    for entry in report["entries"]:
        yield entry["function"]
        yield from (entry[k] for k in ("add",) if k in entry)
        yield from (entry[k]["function"] for k in ("end",) if k in entry)
        yield from (scalar["function"] for scalar in entry.get("scalars", []))


def structs(report):
    api = report["api"]
    for one in (api["memory"], api["instance"], *api["structs"]):
        yield one["struct"], one["fields"]
    for entry in report["entries"]:
        if "sums" in entry:
            yield entry["sums"]["struct"], entry["sums"]["fields"]
        for owner in (entry, entry.get("end", {})):
            for key, of in (("in", "inputs"), ("out", "outputs")):
                if owner.get(key):
                    yield owner[key], owner[of]


def program(path, header):
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    print(f'#include "{header}"\n#include <stdio.h>\n#include <string.h>')
    for i, (name, members) in enumerate(structs(report)):
        body = "".join(f" {m['declaration']};" for m in members)
        print(f"struct said_{i} {{{body} }};")
        print(f'_Static_assert(sizeof(struct said_{i}) == sizeof({name}), "{name}");')
        for m in members:
            assert m["declaration"].split("[")[0].endswith((" " if not m["pointer"] else "*") + m["field"]), m
            assert m["declaration"].startswith(("const " if "const " in m["declaration"] else "") + m["type"])
            print(f'_Static_assert(offsetof(struct said_{i}, {m["field"]}) == offsetof({name}, {m["field"]}), "{name}.{m["field"]}");')
            if "shape" in m:
                count = 1
                for extent in m["shape"]:
                    count *= extent
                print(f'_Static_assert(sizeof({m["type"]}) * {count} == {m["bytes"]}, "bytes of {name}.{m["field"]}");')
    for function in functions(report):
        print(f"{function['declaration']};")  # a second prototype must be the same
        said = ", ".join(p["declaration"] for p in function["parameters"])
        space = "" if function["returns"].endswith("*") else " "
        assert function["declaration"] == f"{function['returns']}{space}{function['name']}({said})", function
    api, regions = report["api"], report["regions"]
    upper = api["prefix"].upper()
    facts = {f"{upper}_ALIGN": api["align"], "MD_MAX_RANK": 12}
    facts.update({f"{upper}_{name.upper()}_BYTES": regions[name] for name in ("params", "state", "io", "arena")})
    facts.update({f"MD_{name.upper()}": n for name, n in api["numbers"]["dtype"].items()})
    facts.update({f"MD_{name.upper()}": n for name, n in api["numbers"]["region"].items()})
    facts.update({f"MD_{name.upper()}": n for name, n in api["numbers"]["kind"].items()})
    facts.update({f"{upper}_SAVE_{name.upper()}": n for name, n in api["numbers"]["save"].items()})
    facts.update({code["name"]: code["code"] for code in api["codes"]})
    for name, number in facts.items():
        print(f'_Static_assert({name} == {number}, "{name}");')
    # The callbacks, called as they are declared; the texts of codes; the table of tensors.
    for callback in api["callbacks"]:
        print(f"static {callback['declaration'].replace(callback['name'], 'a_' + callback['name'])} {{")
        print("".join(f" (void){p['name']};" for p in callback["parameters"]) + " return 0; }")
        print(f"static const {callback['name']} is_{callback['name']} = a_{callback['name']};")
    print("int main(void) {\n    size_t count = 0;")
    print("".join(f"    (void)is_{callback['name']};" for callback in api["callbacks"]))
    print(f"    const md_tensor *t = {api['functions']['tensors']['name']}(&count);")
    print(f"    int bad = count != {len(report['tensors'])};")
    for i, tensor in enumerate(report["tensors"]):
        region, dtype = api["numbers"]["region"][tensor["region"]], api["numbers"]["dtype"][tensor["dtype"]]
        print(f"    bad |= t[{i}].offset != {tensor['offset']} || t[{i}].bytes != {tensor['bytes']} || "
              f"(int)t[{i}].region != {region} || (int)t[{i}].dtype != {dtype} || t[{i}].rank != {len(tensor['shape'])} || "
              f"t[{i}].split != {tensor.get('split', 0)} || t[{i}].transposed != {int(tensor.get('transposed', False))};")
    for code in api["codes"]:
        print(f'    bad |= strcmp({api["functions"]["strerror"]["name"]}({code["code"]}), {json.dumps(code["meaning"])}) != 0;')
    print('    return bad;\n}')
    return True


sys.exit(0 if globals()[sys.argv[1]](*sys.argv[2:]) else 1)
