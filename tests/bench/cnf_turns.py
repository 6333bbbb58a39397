#!/usr/bin/env python3
"""Times a training step of samples/cnf.mdl and of its peers, which take turns.

    cnf_turns.py WIDTH BATCH THREADS TURNS PROGRAM JAX_PYTHON TORCH_PYTHON

PROGRAM is the emitted program; the peers are cnf_jax.py (its scan, and Diffrax) and cnf_torch.py (eager, and
with compiled slopes), each by its Python, `-` for none. All of them are set up first. Prints one line of
milliseconds, medians over the turns: mdlc, scan, Diffrax, eager, compiled; nan for what is not there.
"""
import json
import math
import os
import subprocess
import sys
import time

width, batch, threads, turns, program, jax, torch = sys.argv[1:8]
here = os.path.dirname(os.path.abspath(__file__))


def start(python, script, kind):
    if python == "-":
        return None
    peer = subprocess.Popen([python, os.path.join(here, script), width, batch, threads, kind], text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if not peer.stdout.readline():
        print(f"cnf_turns: {script} {kind} with {python} does not run", file=sys.stderr)
        return None
    return peer


def theirs(peer):
    if peer is None:
        return math.nan
    peer.stdin.write("\n")
    peer.stdin.flush()
    return float(peer.stdout.readline()) / 1000


def seconds(steps):
    said = subprocess.run([program, "--steps", str(steps), "--threads", threads, "--log", "json", "--log-every", "1000"],
                          text=True, stdout=subprocess.PIPE, check=True).stdout
    return next(event["seconds"] for event in map(json.loads, said.splitlines()) if event.get("event") == "end")


def ours():
    """Two runs of unlike lengths: what begins and ends a run is in both."""
    short = seconds(40)
    return 1000 * (seconds(120) - short) / 80


peers = [start(jax, "cnf_jax.py", "step"), start(jax, "cnf_jax.py", "diffrax"),
         start(torch, "cnf_torch.py", "eager"), start(torch, "cnf_torch.py", "compiled")]
times = [[] for _ in range(1 + len(peers))]
for _ in range(int(turns)):
    times[0].append(ours())
    for row, peer in zip(times[1:], peers):
        row.append(theirs(peer))
        time.sleep(0.2)  # its threads come to rest
for peer in peers:
    if peer is not None:
        peer.stdin.close()
print(" ".join("%.2f" % sorted(row)[len(row) // 2] for row in times))
