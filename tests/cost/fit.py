#!/usr/bin/env python3
"""Fits the figures of a machine file to the measured calls of one or more machines.

    tests/cost/fit.py bazel-bin/tests/cost/predict plans/machines/4xH200.json 4xH200 ROUNDS FIELD...
    tests/cost/fit.py bazel-bin/tests/cost/predict copy.json 2xH100:half ROUNDS FIELD...

Least squares of the logarithms, by Gauss-Newton steps: a prediction for each figure that is 15 %
larger gives the slopes. Calls that are far off count less. Then ROUNDS times some figures by a few
percent. Rewrites the file after each step that makes it better; FIELDs are such as
nvlink.latency_ns, and all others stay. With ":half" every second size is fitted, and what becomes
of the others is printed: that is how much the figures hold for.
"""
import copy
import json
import math
import random
import subprocess
import sys
import tempfile

STEP = 0.15
NEWTON, TRIALS = 20, 30
HALF, OTHER_HALF = ":half", ":other-half"


def half_of(call):
    """Which half a call belongs to: sizes take turns."""
    return (int(call.split()[2]).bit_length() - 1) % 2


def predictions(tool, names, machines):
    half = {HALF: 0, OTHER_HALF: 1}.get(":" + names.rpartition(":")[2])
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i, machine in enumerate(machines):
            paths.append(f"{folder}/{i}.json")
            write(machine, paths[-1])
        text = subprocess.run([tool, "tests/cost", "plans", names.split(":")[0], *paths], check=True,
                              capture_output=True, text=True).stdout
    rows = [line.split("\t") for line in text.splitlines()]
    rows = [r for r in rows if half is None or half_of(r[0]) == half]
    return [r[0] for r in rows], [[float(x) for x in r[1:]] for r in rows]


def is_near(predicted, measured):
    return abs(predicted / measured - 1) <= 0.15


def loss(measured, predicted):
    """What lies within 10 % is near enough: calls that are timed again differ by as much."""
    off = [abs(math.log(p / m)) for m, p in zip(measured, predicted)]
    far = sum(not is_near(p, m) for m, p in zip(measured, predicted))
    return (2 * sum(max(0, min(o, 0.5) - 0.1) for o in off) + far / 2) / len(off)


def solve(a, b):
    """The solution of a x = b by elimination."""
    n = len(b)
    rows = [a[i][:] + [b[i]] for i in range(n)]
    for i in range(n):
        best = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[best] = rows[best], rows[i]
        for r in range(n):
            if r != i and rows[i][i] != 0:
                f = rows[r][i] / rows[i][i]
                rows[r] = [x - f * y for x, y in zip(rows[r], rows[i])]
    return [rows[i][n] / rows[i][i] if rows[i][i] else 0 for i in range(n)]


def with_change(machine, fields, change):
    changed = copy.deepcopy(machine)
    for (group, name), c in zip(fields, change):
        value = changed[group][name] * math.exp(max(-0.5, min(0.5, c)))
        changed[group][name] = max(1, round(value))
    return changed


def write(machine, path):
    with open(path, "w", encoding="utf-8") as out:
        json.dump(machine, out, indent=2, ensure_ascii=False)
        out.write("\n")


def best_of(tool, names, trials):
    """The number of the best of some machines, what each is worth, and how many calls are near."""
    _, table = predictions(tool, names, trials)
    losses = [loss([r[0] for r in table], [r[1 + k] for r in table]) for k in range(len(trials))]
    k = min(range(len(trials)), key=lambda i: losses[i])
    near = sum(is_near(r[1 + k], r[0]) for r in table)
    return k, losses[k], f"{near} of {len(table)}"


def newton_steps(tool, path, names, rounds, fields, machine):
    """Changes all figures together, by the slopes."""
    for _ in range(rounds):
        trials = [machine] + [with_change(machine, [f], [STEP]) for f in fields]
        _, table = predictions(tool, names, trials)
        measured = [r[0] for r in table]
        before = loss(measured, [r[1] for r in table])
        slopes = [[math.log(r[2 + k] / r[1]) / STEP for k in range(len(fields))] for r in table]
        off = [math.log(r[0] / r[1]) for r in table]
        weight = [1 / max(abs(o), 0.05) for o in off]
        n = len(fields)
        a = [[sum(w * s[i] * s[j] for w, s in zip(weight, slopes)) for j in range(n)]
             for i in range(n)]
        b = [sum(w * s[i] * o for w, s, o in zip(weight, slopes, off)) for i in range(n)]
        trials = []
        for damping in (0.02, 0.1, 0.5):
            damped = [[a[i][j] + (damping * sum(weight) / 10 if i == j else 0) for j in range(n)]
                      for i in range(n)]
            change = solve(damped, b)
            trials += [with_change(machine, fields, change),
                       with_change(machine, fields, [c / 2 for c in change])]
        k, now, near = best_of(tool, names, trials)
        print(f"all: loss {before:.4f} -> {now:.4f}, within 15 %: {near}", flush=True)
        if now >= before:
            break
        machine = trials[k]
        write(machine, path)
    return machine


def random_steps(tool, path, names, rounds, fields, machine):
    """Changes a few figures at a time, at random but the same each time: from where slopes lead no
    further, as what lies within 15 % or not jumps."""
    chance = random.Random(1)
    _, before, _ = best_of(tool, names, [machine])
    for _ in range(rounds):
        trials = []
        for _ in range(TRIALS):
            trial = machine
            for field in chance.sample(fields, min(chance.choice([1, 1, 2, 3, 5]), len(fields))):
                change = chance.gauss(0, chance.choice([0.02, 0.08, 0.25]))
                trial = with_change(trial, [field], [change])
            trials.append(trial)
        k, now, near = best_of(tool, names, trials)
        if now >= before:
            continue
        print(f"some: loss {before:.4f} -> {now:.4f}, within 15 %: {near}", flush=True)
        machine, before = trials[k], now
        write(machine, path)
    return machine


def main():
    tool, path, names, rounds = sys.argv[1:5]
    fields = [f.split(".") for f in sys.argv[5:]]
    with open(path, encoding="utf-8") as file:
        machine = json.load(file)
    machine = newton_steps(tool, path, names, NEWTON, fields, machine)
    machine = random_steps(tool, path, names, int(rounds), fields, machine)
    if names.endswith(HALF):
        _, _, near = best_of(tool, names.removesuffix(HALF) + OTHER_HALF, [machine])
        print(f"of the calls that the fit has not seen, within 15 %: {near}")


main()
