"""What collectives cost through TorchComms, beside the backends of torch.distributed in the same processes.

    python3 python/torch_tests/torchcomms/bench.py [--ranks N] [--device cpu] [--backends mscclc …]
        [--beside nccl …] [--sizes 4K 1M …] [--calls 20] [--json FILE] [--report FOLDER]

Starts the ranks, and prints a table: µs a call, as the median of several rounds, and bytes of the result
in a second. On GPUs events on the stream say the time, on the host its clock. Before that each collective
is called some times, and its result is checked. --json writes the same with the versions and the machine;
--report writes report.md, with the table and a figure for each collective.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from figure import figure

try:
    import torchcomms
except ImportError:  # the fake finds our backend
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (os.path.join(here, "..", "fake"), os.path.join(here, "fake")):
        sys.path.insert(0, folder)
    import torchcomms

ROUNDS = 7


class OfComms:
    """A communicator of TorchComms."""

    def __init__(self, backend, device, store):
        self._comm = torchcomms.new_comm(backend, device, "bench", store=store)

    def all_reduce(self, output, part):
        self._comm.all_reduce(output, torchcomms.ReduceOp.SUM, False)

    def all_gather(self, output, part):
        self._comm.all_gather_single(output, part, False)

    def reduce_scatter(self, output, part):
        self._comm.reduce_scatter_single(part, output, torchcomms.ReduceOp.SUM, False)

    def close(self):
        self._comm.finalize()


class OfTorch:
    """A group of torch.distributed."""

    def __init__(self, backend, device, store):
        self._group = dist.new_group(backend=backend)

    def all_reduce(self, output, part):
        dist.all_reduce(output, group=self._group)

    def all_gather(self, output, part):
        dist.all_gather_into_tensor(output, part, group=self._group)

    def reduce_scatter(self, output, part):
        dist.reduce_scatter_tensor(part, output, group=self._group)

    def close(self):
        dist.destroy_process_group(self._group)


def check(name, one, output, part, rank, size):
    """Small whole numbers, so that sums are exact."""
    output.fill_(rank + 1)
    part.fill_(rank + 1)
    getattr(one, name)(output, part)
    total = float(size * (size + 1) // 2)
    wanted = {
        "all_reduce": lambda: (output, torch.full_like(output, total)),
        "all_gather": lambda: (
            output,
            torch.arange(1, size + 1, device=output.device, dtype=output.dtype)
            .repeat_interleave(part.numel()),
        ),
        "reduce_scatter": lambda: (part, torch.full_like(part, total)),
    }[name]()  # fmt: skip
    if not torch.equal(*wanted):
        raise AssertionError(f"{name} of {output.nbytes} bytes is wrong")


def clock(call, calls, device):
    """µs of one of some calls."""
    if device.type == "cuda":
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize(device)
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1000 / calls
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) * 1e6 / calls


def rank_of(rank, given, folder, results):
    size, device = given.ranks, torch.device(given.device)
    if device.type == "cuda":
        device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
    torch.set_num_threads(1)
    os.environ.update(TORCHCOMM_RANK=str(rank), TORCHCOMM_SIZE=str(size))
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    rows = []
    sides = [(f"torchcomms {b}", OfComms, b) for b in given.backends]
    sides += [(f"torch.distributed {b}", OfTorch, b) for b in given.beside]
    for label, kind, backend in sides:
        one = kind(backend, device, dist.FileStore(f"{folder}/{backend}", size))
        for name in ("all_reduce", "all_gather", "reduce_scatter"):
            for bytes in given.sizes:
                count = max(bytes // 4 // size, 1)
                output = torch.zeros(count * size, device=device)
                part = torch.zeros(count, device=device)
                check(name, one, output, part, rank, size)
                output.zero_()
                part.zero_()  # sums of many calls stay finite
                for _ in range(3):
                    getattr(one, name)(output, part)
                rounds = []
                for _ in range(ROUNDS):
                    dist.barrier()
                    rounds.append(clock(lambda: getattr(one, name)(output, part), given.calls, device))
                rows.append({"side": label, "collective": name, "bytes": output.nbytes,
                             "us": statistics.median(rounds)})  # fmt: skip
        one.close()
    if rank == 0:
        results.put(rows)
    dist.destroy_process_group()


def bytes_of(text):
    """64, 4K, 1M."""
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1].upper(), 1)
    return int(text if factor == 1 else text[:-1]) * factor


def table(rows, file):
    """A table: a line for each collective and size, a column for each side."""
    sides = list(dict.fromkeys(row["side"] for row in rows))
    print("| collective | bytes |", " | ".join(f"{side}: µs, GB/s" for side in sides), "|", file=file)
    print("|---|---|" + "---|" * len(sides), file=file)
    for name, size in dict.fromkeys((row["collective"], row["bytes"]) for row in rows):
        found = [next(r["us"] for r in rows if (r["side"], r["collective"], r["bytes"]) == (side, name, size))
                 for side in sides]  # fmt: skip
        cells = " | ".join(f"{us:.1f}, {size / us / 1000:.2f}" for us in found)
        print(f"| {name} | {size} | {cells} |", file=file)


def report(folder, where, rows):
    """The table and the figures, as files."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "report.md"), "w", encoding="utf-8") as file:
        print("# Collectives through TorchComms\n", file=file)
        print(*(f"- {name}: {value}" for name, value in where.items()), "", sep="\n", file=file)
        table(rows, file)
        for name in dict.fromkeys(row["collective"] for row in rows):
            lines = {}
            for row in rows:
                if row["collective"] == name:
                    lines.setdefault(row["side"], []).append((row["bytes"], row["us"]))
            with open(os.path.join(folder, f"{name}.svg"), "w", encoding="utf-8") as drawing:
                drawing.write(figure(f"{name}, {where['ranks']} ranks", lines))
            print(f"\n![{name}]({name}.svg)", file=file)


def main():
    gpus = torch.cuda.is_available()
    options = argparse.ArgumentParser()
    options.add_argument("--ranks", type=int, default=torch.cuda.device_count() if gpus else 2)
    options.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if gpus else "cpu")
    options.add_argument("--backends", nargs="+", default=["mscclc"], help="of TorchComms")
    options.add_argument("--beside", nargs="*", default=["nccl" if gpus else "gloo"])
    options.add_argument("--sizes", nargs="+", type=bytes_of,
                         default=[1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26])  # fmt: skip
    options.add_argument("--calls", type=int, default=20)
    options.add_argument("--json")
    options.add_argument("--report", metavar="FOLDER")
    given = options.parse_args()
    results = mp.get_context("spawn").SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(rank_of, (given, folder, results), nprocs=given.ranks)
    rows = results.get()
    where = {
        "ranks": given.ranks, "device": torch.cuda.get_device_name() if gpus else platform.processor() or "cpu",
        "torch": torch.__version__,
        "torchcomms": getattr(
            torchcomms, "__version__", "fake" if f"{os.sep}fake{os.sep}" in torchcomms.__file__ else "there"
        ),
        "calls": given.calls, "rounds": ROUNDS,
    }  # fmt: skip
    print(json.dumps(where))
    table(rows, sys.stdout)
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"where": where, "rows": rows}, file, indent=1)
    if given.report:
        report(given.report, where, rows)


if __name__ == "__main__":
    main()
