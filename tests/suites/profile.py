"""Holds the profile of a run to the report of its model: profile.py REPORT.json RUN.log TRACE.json [KIND...]

Counts, FLOPs and bytes of every call; sums of times; limits from the rates that the run has measured;
that the events of the trace nest and leave no gap; and that products multiply these KINDs (f32, f64,
bf16), if any are given. Says what is wrong and exits 1.
"""
import json
import sys

REPORT, LOG, TRACE, *KINDS = sys.argv[1:]
report = json.load(open(REPORT))
lines = [json.loads(line) for line in open(LOG) if line.startswith("{")]
trace = json.load(open(TRACE))


def expect(true, what):
    if not true:
        print(what)
        sys.exit(1)


def near(a, b, most=1e-4):
    return abs(a - b) <= most * max(abs(a), abs(b), 1e-300)


head = [line for line in lines if line["event"] == "profile"]
expect(len(head) == 1, "one line for the machine")
head = head[0]
wide = report["options"]["precision"] == "f64"
rates = {kind: head[kind + "_flops_per_second"] for kind in ("f32", "f64", "bf16")}
expect(wide or rates["f64"] == 0, "a rate of f64 that nothing is multiplied in")
bytes_rate = head["bytes_per_second"]
expect(bytes_rate > 0, "no rate of memory")
entries = [line for line in lines if line["event"] == "profile_entry"]
expect(entries, "nothing was timed")
seconds, events, seen = 0, 0, set()
for entry in entries:
    key = entry["entry"], entry["kind"]
    model = [e for e in report["entries"] if (e["name"], e["kind"]) == key]
    expect(len(model) == 1, f"{key} is not in the report")
    model = model[0]
    calls = [line for line in lines if line["event"] == "profile_call" and (line["entry"], line["kind"]) == key]
    expect({c["step"] for c in calls} == {c["step"] for c in model["calls"]}, f"{key}: other steps")
    needed = {}
    for call in calls:
        cost = [c for c in model["calls"] if c["step"] == call["step"]][0]
        where = f"{key}, step {call['step']}"
        for mine, theirs in (("kernel", "name"), ("layer", "layer"), ("part", "part"), ("line", "line")):
            expect(call[mine] == cost[theirs], f"{where}: {mine}")
        expect(call["count"] == entry["calls"] * cost["times"], f"{where}: count")
        expect(call["flops"] == call["count"] * cost["flops_needed"], f"{where}: FLOPs")
        expect(call["bytes"] == call["count"] * cost["bytes"], f"{where}: bytes")
        kind = call.get("multiplies")
        expect((kind is None) == (cost["flops_of_products"] == 0), f"{where}: products of {kind}")
        expect(kind is None or (kind == "f64") == wide, f"{where}: products of {kind}")
        work = cost["flops_of_products"] / rates[kind] if kind else 0
        needed[kind] = needed.get(kind, 0) + cost["flops_of_products"] * cost["times"]
        least = max(work, cost["bytes"] / bytes_rate)
        expect(near(call["limit_seconds"], call["count"] * least), f"{where}: limit")
        events += call["count"]
    expect([c["seconds"] for c in calls] == sorted((c["seconds"] for c in calls), reverse=True), f"{key}: not by time")
    expect(sum(c["seconds"] for c in calls) <= entry["seconds"] * (1 + 1e-9), f"{key}: its steps take longer than it does")
    for field in ("flops_of_products", "bytes_once"):
        expect(entry[field] == model[field], f"{key}: {field}")
    expect(sum(needed.values()) == entry["flops_of_products"], f"{key}: FLOPs of its calls")
    least = max(sum(n / rates[kind] for kind, n in needed.items() if kind), entry["bytes_once"] / bytes_rate)
    seen |= {kind for kind in needed if kind}
    expect(near(entry["limit_seconds"], entry["calls"] * least), f"{key}: limit")
    seconds += entry["seconds"]
    events += entry["calls"]
expect(not KINDS or seen == set(KINDS), f"products multiply {sorted(seen)}")
for kind, rate in rates.items():
    expect(rate > 0 or kind not in seen, f"no rate of {kind}")
    expect(near(trace["otherData"][kind + "_flops_per_second"], rate), f"another rate of {kind} in the trace")
expect(near(seconds, head["seconds_in_calls"]), "seconds in calls")
expect(seconds <= head["seconds"], "calls take longer than the run")

ROOM = 32768
shown = [e for e in trace["traceEvents"] if e["ph"] == "X"]
expect(trace["otherData"]["events_seen"] == events, "events seen")
expect(len(shown) <= ROOM, "more events than there is room for")
expect(events > ROOM or len(shown) == events, "events are missing")


def nanoseconds(us):
    return round(us * 1000)


steps = []
for event in shown:
    start, end = nanoseconds(event["ts"]), nanoseconds(event["ts"]) + nanoseconds(event["dur"])
    expect(start >= 0 and end >= start and event["pid"] == 1 and event["tid"] == 1, "an event out of time")
    if "args" in event:
        expect(not steps or steps[-1][1] == start, "a gap between two steps")
        steps.append((start, end))
        continue
    expect((event["name"], event["cat"]) in {(e["entry"], e["kind"]) for e in entries}, "a call of no entry")
    expect(steps and steps[0][0] == start and steps[-1][1] <= end, "a call without its steps")
    steps = []
expect(not steps, "steps of no call")
print(f"{events} events, {len(shown)} in the trace")
