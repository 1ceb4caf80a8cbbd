"""Products beside collectives: what overlap takes, by us and by others, in one run and in turns.

    python3 python/torch_tests/overlap_times.py [--ranks 2] [--layers 8B.qkv 70B.down …] [--rows 512 2048 8192]
        [--gemms torch own] [--ways REGEX] [--seconds 220] [--rounds 3] [--json FILE]

For layers of Llama models of 8B, 70B and 405B, divided over the ranks: qkv and gate_up gather rows and multiply, o and
down multiply and scatter the sums of rows, or, as o_all and down_all, give all ranks the sums; experts exchange rows,
and multiply. Each way to do both is timed eager and in a CUDA graph, as the median of the rounds, of the slowest rank;
`share` is max(product, faster collective alone) by the time: 100 % hides all that can be. Floats of 8 bits (e4m3) have
a scale for each matrix, and results of bf16; their layers gather or scatter. Torch's native op is its kernel that polls
flags, where torch takes it: gathers of more than 2048 rows, up to 4096, of 16 bits and more. Ways with return_A give
the rows that were gathered or exchanged, too; the others do not, except for those of 8 bits.

Results are compared with those of NCCL and torch.mm in sequence, and the bits of our backends, whatever auto is, too,
with those of serial with as many chunks, and for our own GEMMs with as many multiprocessors.

A way that fails has its error in its row, with the rank. One that hangs, or leaves the GPU unusable, ends the ranks:
they begin again without it. Standard error has a line before each way, and errors at once. A call of ours may take
--patience seconds. What does not fit into --seconds is left out, and said. Multicast stays as the environment has it.
REQUIRES: as many GPUs as ranks; or --device cpu, which shows that all of it works and says nothing about times.
"""

import argparse
import contextlib
import faulthandler
import json
import os
import re
import statistics
import sys
import tempfile
import threading
import time

import torch
import torch.multiprocessing as mp
from overlap_modes import ALONE, NATIVE, Layer, RankSetup, check, modes_of, repeat

from mscclc import ops

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "e4m3": torch.float8_e4m3fn}
# Of all ranks: hidden, and the width of qkv, gate_up; o and down have hidden columns and so much depth.
_MODELS = {
    "8B": (4096, {"qkv": 6144, "o": 4096, "gate_up": 28672, "down": 14336}),
    "70B": (8192, {"qkv": 10240, "o": 8192, "gate_up": 57344, "down": 28672}),
    "405B": (16384, {"qkv": 18432, "o": 16384, "gate_up": 106496, "down": 53248}),
    "tiny": (64, {"qkv": 96, "o": 64, "gate_up": 128, "down": 128}),  # for --device cpu
}
HANG = 25  # seconds in one way, beyond those that plans wait
REFERENCE = "reference"  # the unfused chain, by torch's communicator: what all results are compared with


# Of each kind, and by which of the widths above.
_KINDS = {
    "gather": {"qkv": "qkv", "gate_up": "gate_up"},
    "scatter": {"o": "o", "down": "down"},
    "reduce": {"o_all": "o", "down_all": "down"},
    "exchange": {"experts": "gate_up"},
}


def layers():
    """Name: kind, columns of x and width of w, at all ranks together."""
    found = {}
    for model, (hidden, widths) in _MODELS.items():
        for kind, names in _KINDS.items():
            for name, width in names.items():
                gathers = kind in ("gather", "exchange")
                sizes = (hidden, widths[width]) if gathers else (widths[width], hidden)
                found[f"{model}.{name}"] = (kind, *sizes)
    return found


def layer_of(name, rows, place):
    kind, columns, width = layers()[name]
    if kind in ("gather", "exchange"):
        return Layer(kind, rows, columns, width // place.ranks, place)
    return Layer(kind, rows, columns // place.ranks, width, place)


class Watch:
    """Ends the process where one way takes too long, after it has said which."""

    def __init__(self, path, seconds, speaks):
        self._path, self._timer, self._seconds, self._speaks = path, None, seconds, speaks

    def begin(self, what):
        self.end()
        self._what = [*what, "hangs"]
        self._write()
        if self._speaks:
            print("{}, {} rows, {}".format(*what), file=sys.stderr, flush=True)
        faulthandler.dump_traceback_later(self._seconds - 5)  # where the host is
        self._timer = threading.Timer(self._seconds, lambda: os._exit(3))
        self._timer.daemon = True
        self._timer.start()

    def _write(self):
        with open(self._path, "w") as file:
            json.dump(self._what, file)

    def give_up(self, why):
        """Ends the process: the GPU is unusable."""
        self._what[-1] = why
        self._write()
        os._exit(3)

    def end(self):
        faulthandler.cancel_dump_traceback_later()
        if self._timer is not None:
            self._timer.cancel()


def timed(place, run, calls):
    """µs a call, of this rank: what a rank says about another would be lost where one fails."""
    torch.distributed.barrier(place.slow)
    place.synchronize()
    if place.device.type == "cuda":
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        run()
        last.record()
        place.synchronize()
        return first.elapsed_time(last) * 1e3 / calls
    begin = time.perf_counter()
    run()
    return (time.perf_counter() - begin) * 1e6 / calls


class Shape:
    """One layer with a number of rows: its rows of the table."""

    def __init__(self, given, place, watch, name, rows, left_out):
        self.given, self.place, self.watch, self.key = given, place, watch, [name, rows]
        self.layer = layer_of(name, rows, place)
        modes = modes_of(self.layer, place, given.gemms)
        self.modes = {name: call for at, (name, call) in enumerate(modes.items())
                      if at < ALONE or re.search(given.ways, name)}  # fmt: skip
        self.errors = {mode: why for (layer, count, mode), why in left_out.items()
                       if mode.partition(" (")[0] in (REFERENCE, *self.modes) and (layer, count) == (name, rows)}  # fmt: skip
        self.runs = {}  # (mode, how): what makes `calls` calls
        self.calls = 1

    def attempt(self, mode, what, how=None):
        """Does something on all ranks; where it fails on one, the way is out, or its graph is, and not tried again."""
        key = mode if how is None else f"{mode} ({how})"
        if mode in self.errors or key in self.errors:
            return None
        self.watch.begin([*self.key, key])
        error = None
        try:
            result = what()
            self.place.synchronize()
        except Exception as raised:  # whatever a way does must not end the others
            error = f"{type(raised).__name__}: {str(raised).splitlines()[0] if str(raised) else ''}"[:150]
            print(f"rank {self.place.rank}, {key}: {error}", file=sys.stderr, flush=True)
        error = self.place.all_well(error)
        if error is not None and "CUDA error" in error:
            self.watch.give_up(error)
        if error is not None and "LibraryError" in error:
            with contextlib.suppress(Exception):  # what has failed may have ended the communicator of all ops
                ops.close()
        self.watch.end()
        if error is None:
            return result
        self.errors[key] = error
        return None

    def duration(self, mode, run, calls, how=None):
        """µs a call, of the slowest rank; None: it has failed."""
        took = self.attempt(mode, lambda: timed(self.place, run, calls), how)
        return None if took is None else self.place.slowest(took)

    def reference(self):
        """A copy of the unfused chain's result."""
        found = self.layer.one_after_the_other(self.layer.torchs_comm)
        self.place.synchronize()  # what follows may load kernels or allocate, for which CUDA may wait with a lock
        return found.float().clone()

    def prepare(self):
        """Checks all ways, and makes what is timed. Without a reference there is nothing to time."""
        wanted = self.attempt(REFERENCE, self.reference)
        if wanted is None:
            return
        cost = self.duration("product", lambda: repeat(self.layer.gemm, 3), 3)
        self.calls = max(2, min(self.given.calls, int(8000 / max(cost or 1, 1))))
        for mode, call in self.modes.items():
            alone = mode in list(self.modes)[:ALONE]
            test = call if alone else lambda: check(self.layer, mode, call, wanted)  # noqa: B023
            self.attempt(mode, test)
            if mode in self.errors:
                continue
            self.runs[mode, "eager"] = lambda call=call: repeat(call, self.calls)
            if self.place.device.type == "cuda":
                graph = self.attempt(mode, lambda: self.place.graph_of(call, self.calls), "graph")  # noqa: B023
                if graph is not None:
                    self.runs[mode, "graph"] = graph.replay

    def measure(self):
        """µs of each way, by how it was run."""
        times = {key: [] for key in self.runs}
        for round in range(-1, self.given.rounds):
            for mode, how in list(self.runs)[:: 1 if round % 2 == 0 else -1]:  # none is always the first
                took = self.duration(mode, self.runs[mode, how], self.calls, how)
                if took is not None and round >= 0:
                    times[mode, how].append(took)
        return {key: statistics.median(all) for key, all in times.items() if all}

    def result(self, us):
        """What is written as JSON: µs by way and how, shares of the ideal, errors."""
        found = {"layer": self.key[0], "rows": self.key[1], "kind": self.layer.kind, "bytes": self.layer.bytes,
                 "flops": self.layer.flops, "us": {}, "share": {}, "errors": self.errors}  # fmt: skip
        names = list(self.modes)
        for how in ("eager", "graph"):
            parts = [us.get((name, how)) for name in names[:ALONE]]
            comm = [one for one in parts[1:] if one]
            ideal = max(parts[0], min(comm)) if parts[0] and comm else None
            for name in names:
                if (name, how) in us:
                    found["us"].setdefault(name, {})[how] = round(us[name, how], 1)
                    if ideal and name not in names[:ALONE]:
                        found["share"].setdefault(name, {})[how] = round(ideal / us[name, how], 3)
        return found


def rank_main(rank, given, folder, shapes, left_out, deadline):
    sys.stderr.flush()
    os.environ.pop(NATIVE, None)  # a way of its own
    meeting = os.path.join(folder, "meeting")
    place = RankSetup(rank, given.ranks, given.device, DTYPES[given.dtype], meeting, given.patience)
    watch = Watch(os.path.join(folder, f"now.{rank}"), given.patience + HANG, rank == 0)
    for name, rows in shapes:
        if place.slowest(time.time()) > deadline:
            break
        shape = Shape(given, place, watch, name, rows, left_out)
        shape.prepare()
        found = shape.result(shape.measure())
        if rank == 0:
            with open(os.path.join(folder, "results"), "a") as file:
                file.write(json.dumps(found) + "\n")
            print_table(found)
        shape.runs.clear()  # graphs go before what they hold
        ops.close()
        del shape
        if given.device == "cuda":
            torch.cuda.empty_cache()
    place.close()


def print_table(found):
    """A shape's rows: µs and share of the ideal, eager and in a graph."""
    print(f"\n{found['layer']}, {found['rows']} rows, {found['kind']}: {found['flops'] / 1e9:.0f} GFLOP,"
          f" {found['bytes'] / 1e6:.1f} MB to each rank")  # fmt: skip
    print(f"  {'':<36}{'eager µs':>12}{'share':>8}{'graph µs':>12}{'share':>8}")
    for name, us in found["us"].items():
        share = found["share"].get(name, {})
        cells = [f"{us.get(how, ''):>12}{_percent(share.get(how)):>8}" for how in ("eager", "graph")]
        print(f"  {name:<36}{''.join(cells)}")
    for name, why in found["errors"].items():
        print(f"  {name:<36}{why}")
    sys.stdout.flush()


def _percent(share):
    return "" if share is None else f"{100 * share:.0f} %"


def done_so_far(folder):
    """The shapes that have results."""
    try:
        with open(os.path.join(folder, "results")) as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []


def blamed(folder, ranks):
    """What ranks were at when they ended: layer, rows and way, and why."""
    for rank in range(ranks):
        try:
            with open(os.path.join(folder, f"now.{rank}")) as file:
                return json.load(file)
        except (FileNotFoundError, ValueError):
            continue
    return None


def run_all(given, folder):
    """Starts ranks until all shapes are done, or it is time; each way that ends them is left out."""
    wanted = [(name, rows) for rows in given.rows for name in given.layers]
    deadline, left_out = time.time() + given.seconds, {}
    while True:
        done = {(one["layer"], one["rows"]) for one in done_so_far(folder)}
        shapes = [one for one in wanted if one not in done]
        if not shapes or time.time() > deadline:
            return shapes
        for name in ("meeting", *(f"now.{rank}" for rank in range(given.ranks))):
            if os.path.exists(os.path.join(folder, name)):
                os.remove(os.path.join(folder, name))
        try:
            mp.spawn(rank_main, (given, folder, shapes, left_out, deadline), nprocs=given.ranks)
        except Exception as error:  # a rank has died: say so, and go on without what it did
            found = blamed(folder, given.ranks)
            print(f"ranks ended at {found}: {str(error).strip().splitlines()[-1]}", flush=True)
            if found is None or tuple(found[:3]) in left_out:
                return shapes
            layer, rows, mode, why = found
            for other in wanted:  # it would do so with others
                left_out[*other, mode] = f"{why}, at {layer}, {rows} rows"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--ranks", type=int, default=2)
    known = list(layers())
    parser.add_argument("--layers", nargs="+", choices=known)
    parser.add_argument("--rows", type=int, nargs="+", default=[2048, 8192, 512, 4096, 1024])
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--gemms", nargs="+", choices=("torch", "own"), default=["torch", "own"])
    parser.add_argument("--ways", default="", help="a regular expression: those alone, and the parts by themselves")
    parser.add_argument("--calls", type=int, default=20, help="at most, in one measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=220, help="no new shape begins after that")
    parser.add_argument("--patience", type=float, default=20, help="seconds that a call of ours may wait")
    parser.add_argument("--json", help="a file for the results, a line for each shape")
    given = parser.parse_args()
    able = known if given.dtype != "e4m3" else [one for one in known if layers()[one][0] in ("gather", "scatter")]
    given.layers = given.layers or [one for one in able if "tiny" not in one]
    if not set(given.layers) <= set(able):
        parser.error(f"products with scales gather or scatter: take of {', '.join(able)}")
    for rows in given.rows:
        if rows % (given.ranks * 8):
            parser.error(f"{rows} rows are no multiple of 8 for each of {given.ranks} ranks")
    with tempfile.TemporaryDirectory() as folder:
        missing = run_all(given, folder)
        found = done_so_far(folder)
        if given.json:
            with open(given.json, "w") as file:
                file.writelines(json.dumps(one) + "\n" for one in found)
    if missing:
        print(f"\nnot run: {', '.join(f'{name} with {rows} rows' for name, rows in missing)}")
    sys.exit(0 if found else 1)


if __name__ == "__main__":
    main()
