#!/usr/bin/env python3
"""Times one training step of an emitted program and of its peers, or one prediction, which take turns.

    turns.py NET THREADS WHAT PROGRAM [TORCH_PYTHON [JAX_PYTHON [BESIDE]]]

PROGRAM prints the median time of a step in microseconds (tests/bench/step.c); the peers are
torch_bench.py and jax_bench.py, each run by its Python, `-` for none. All of them are set up first;
pauses let the threads of one come to rest before another is timed. Prints one line of microseconds,
medians over the rounds: mdlc, eager, compiled, JAX; nan for what is not there. BESIDE is one more program as PROGRAM,
whose time stands at the end. WHAT is fit or predict.
"""
import math
import os
import subprocess
import sys
import time

ROUNDS, SECONDS = 5, 1.0
net, threads, what, program = sys.argv[1:5]
os.environ["OMP_NUM_THREADS"] = threads
here = os.path.dirname(os.path.abspath(__file__))


class Peer:
    def __init__(self, python, script):
        self.process = subprocess.Popen([python, os.path.join(here, script), net, threads, what], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.names = self.process.stdout.readline().split()
        if not self.names:
            sys.exit(f"turns: {script} of '{net}' with {python} does not run")
        if self.names == ["-"]:  # it has no such net
            self.names = []

    def time(self, name):
        print(name, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


scripts = ("torch_bench.py", "jax_bench.py")
peers = [Peer(python, script) for python, script in zip(sys.argv[5:7], scripts) if python != "-"]
programs = {"mdlc": program, **({"beside": sys.argv[7]} if len(sys.argv) > 7 else {})}
times = {name: [] for name in ("mdlc", "eager", "compiled", "jax", *list(programs)[1:])}
for _ in range(ROUNDS):
    for peer in peers:
        for name in peer.names:
            times[name].append(peer.time(name))
            time.sleep(0.3)
    for name, path in programs.items():
        run = subprocess.run([path, str(SECONDS)], check=True, text=True, stdout=subprocess.PIPE)
        times[name].append(float(run.stdout))
        time.sleep(0.1)
for peer in peers:
    peer.process.stdin.close()
    peer.process.wait()
print(*(f"{sorted(values)[len(values) // 2] if values else math.nan:.2f}" for values in times.values()))
