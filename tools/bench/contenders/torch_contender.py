"""PyTorch's one-shot and two-shot AllReduce over symmetric memory, timed as mscclc-bench times plans.

Started by `mscclc-bench --contender torch`, or by hand; prints one JSON object a line (docs/design/bench.md):

  python3 torch_contender.py --gpus 4 --repeats 9 --warmup 2 --type f32 --work graph:1024:50:8:100:50

A piece of work is mode:bytes:calls:replays:units:calls of a unit. Starts a process for each GPU, or
takes the place that torchrun gives it.
"""

import argparse
import functools
import json
import math
import os
import socket
import subprocess
import sys


BUSY_BYTES = 64 << 20  # what kernels around calls go over, at most, where messages are not longer


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", type=int, required=True)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--type", action="append", default=[])
    parser.add_argument("--between", type=float, default=0)
    parser.add_argument("--work", nargs="+", required=True)
    return parser.parse_args()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_ranks(gpus):
    """Runs this script once for each rank; the worst exit code. If one fails, the others are ended."""
    environment = dict(os.environ, WORLD_SIZE=str(gpus), MASTER_ADDR="127.0.0.1",
                       MASTER_PORT=str(free_port()))
    ranks = []
    for rank in range(gpus):
        place = dict(environment, RANK=str(rank), LOCAL_RANK=str(rank))
        ranks.append(subprocess.Popen([sys.executable, *sys.argv], env=place))
    code = 0
    waiting = list(ranks)
    while waiting:
        for rank in list(waiting):
            try:
                ended = rank.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            waiting.remove(rank)
            if ended != 0 and code == 0:
                code = 1
                for other in waiting:
                    other.kill()
    return code


def quantile(values, q):
    return sorted(values)[max(0, math.ceil(q * len(values)) - 1)]


class Peers:
    """The ranks' group, and buffers that all have mapped."""

    def __init__(self, torch, most_bytes):
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as symmetric

        self.torch, self.dist = torch, dist
        self.rank, self.ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(self.device)
        dist.init_process_group("cpu:gloo,cuda:nccl")
        self.group = dist.group.WORLD.group_name
        self.buffer = symmetric.empty(most_bytes, dtype=torch.uint8, device=self.device)
        self.handle = symmetric.rendezvous(self.buffer, dist.group.WORLD)
        self.stream = torch.cuda.Stream()

    @functools.cache
    def busy_elements(self, kind, microseconds):
        """How many elements keep a kernel that goes over them busy for so long; at most the buffer's."""
        torch = self.torch
        everything = self.buffer.view(kind)
        elements = 1 << 16
        while elements < everything.numel():
            region = everything[:elements]
            region.mul_(1)
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self.stream):
                for _ in range(50):
                    region.mul_(1)
            graph.replay()
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            if 1000 * begin.elapsed_time(end) / 50 >= microseconds:
                break
            elements *= 2
        return min(elements, everything.numel())

    def slowest(self, times):
        all_times = self.torch.tensor(times, dtype=self.torch.float64)
        self.dist.all_reduce(all_times, op=self.dist.ReduceOp.MAX)
        return all_times.tolist()

    def begin_together(self):
        self.dist.all_reduce(self.torch.zeros(1))  # hosts
        self.handle.barrier()  # and streams


class Case:
    """One way to call, at one size and type."""

    def __init__(self, peers, who, dtype, nbytes, in_place, between):
        torch = peers.torch
        self.peers, self.who, self.in_place = peers, who, in_place
        kind = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
        self.input = peers.buffer[:nbytes].view(kind)
        elements = self.input.numel()
        if between > 0:
            elements = max(elements, peers.busy_elements(kind, between))
        # What kernels around a call go over: it begins with the call's buffers.
        self.before = peers.buffer.view(kind)[:elements]
        self.after = self.before if in_place else torch.zeros_like(self.before)
        self.sink = torch.empty_like(self.before) if between > 0 else None
        self.output = self.after[:self.input.numel()]
        ops, group = torch.ops.symm_mem, peers.group
        if who == "torch-1shot":
            self.call = lambda: ops.one_shot_all_reduce_out(self.input, "sum", group, self.output)
        elif in_place:
            self.call = lambda: ops.two_shot_all_reduce_(self.input, "sum", group)
        else:
            self.call = lambda: ops.two_shot_all_reduce_out(self.input, "sum", group, self.output)

    def wrong(self):
        """Elements of all ranks that a first call gets wrong."""
        peers = self.peers
        self.input.fill_(peers.rank + 1)
        peers.begin_together()
        self.call()
        peers.torch.cuda.synchronize()
        expected = peers.ranks * (peers.ranks + 1) / 2
        count = peers.torch.tensor([(self.output != expected).sum().item()])
        peers.dist.all_reduce(count)
        return count.item()

    def call_between(self, pairs):
        """A call with so many pairs of kernels, of which the last goes around it."""
        for i in range(pairs):
            self.before.mul_(1)
            if i + 1 == pairs:
                self.call()
            self.sink.copy_(self.after)
        if pairs == 0:
            self.call()

    def capture(self, calls, pairs=0):
        graph = self.peers.torch.cuda.CUDAGraph()
        with self.peers.torch.cuda.graph(graph, stream=self.peers.stream):
            for _ in range(calls):
                self.call_between(pairs)
        return graph.replay

    def repeat_call(self, calls, pairs=0):
        def run():
            for _ in range(calls):
                self.call_between(pairs)
        return run

    def batch_times(self, batch, replays, calls, repeats):
        """Microseconds of a call in each repeat, those of the slowest rank."""
        torch, peers = self.peers.torch, self.peers
        means = []
        for _ in range(repeats):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            peers.begin_together()
            begin.record()
            for _ in range(replays):
                batch()
            end.record()
            torch.cuda.synchronize()
            means.append(1000 * begin.elapsed_time(end) / (replays * calls))
        return peers.slowest(means)

    def measure(self, work, options):
        """Times as Times of result.h."""
        torch, peers = self.peers.torch, self.peers
        wrong = self.wrong()
        make = self.capture if work.graph else self.repeat_call
        batch = make(work.calls)
        unit = batch if work.unit_calls == work.calls else make(work.unit_calls)
        replays = work.replays if work.graph else 1
        for _ in range(options.warmup * replays):
            batch()
        means = self.batch_times(batch, replays, work.calls, options.repeats)
        costs = []
        if options.between > 0:
            one, two = (self.batch_times(make(work.calls, pairs), replays, work.calls,
                                         options.repeats) for pairs in (1, 2))
            costs = [2 * a - b for a, b in zip(one, two)]
        events = [torch.cuda.Event(enable_timing=True) for _ in range(work.units + 1)]
        peers.begin_together()
        events[0].record()
        for event in events[1:]:
            unit()
            event.record()
        torch.cuda.synchronize()
        units = [1000 * a.elapsed_time(b) / work.unit_calls for a, b in zip(events, events[1:])]
        units = peers.slowest(units)
        times = {"time": quantile(means, 0.5), "p50": quantile(units, 0.5),
                 "p99": quantile(units, 0.99), "wrong": wrong}
        if costs:
            times["between"] = quantile(costs, 0.5)
        return times


class Work:
    def __init__(self, text):
        mode, *numbers = text.split(":")
        self.mode, self.graph = mode, mode == "graph"
        self.bytes, self.calls, self.replays, self.units, self.unit_calls = map(int, numbers)


def measure(peers, options, dtype, work, who):
    size = {"f32": 4, "bf16": 2}[dtype]
    ranks = peers.ranks
    row = {"collective": "allreduce", "type": dtype, "redop": "sum", "root": -1, "mode": work.mode,
           "size": work.bytes, "count": work.bytes // size, "ranks": ranks, "who": who,
           "role": "baseline", "ordered_by": "the library", "bus_factor": 2 * (ranks - 1) / ranks}
    if options.between > 0:
        row["between"] = f"{options.between!r} us".replace(".0 us", " us")  # as mscclc-bench says it

    def times(in_place):
        return Case(peers, who, dtype, work.bytes, in_place, options.between).measure(work, options)

    row["out_of_place"] = times(False)
    row["in_place"] = None
    if who == "torch-2shot":
        row["in_place"] = times(True)
    return row


def run_rank(options):
    import torch

    work = [Work(text) for text in options.work]
    # PyTorch's kernels take multiples of 16 bytes, its largest workspaces what 256 MiB need.
    work = [w for w in work if w.bytes % (16 * options.gpus) == 0 and w.bytes <= 256 << 20]
    if not work:
        return
    least = BUSY_BYTES if options.between > 0 else 0
    peers = Peers(torch, max(least, *(w.bytes for w in work)))
    broken = set()
    for dtype in options.type:
        for piece in work:
            for who in ("torch-1shot", "torch-2shot"):
                # One-shot reads everything from all ranks: much slower by then, and slow to time.
                if who in broken or (who == "torch-1shot" and piece.bytes > 16 << 20):
                    continue
                try:
                    line = measure(peers, options, dtype, piece, who)
                except (RuntimeError, AttributeError) as error:
                    line = {"left_out": who, "collective": "allreduce", "why": str(error)[:300]}
                    broken.add(who)
                if peers.rank == 0:
                    print(json.dumps(line), flush=True)
    # Tearing groups down after an error may wait for peers; all results are out.
    sys.stdout.flush()
    os._exit(0)


def main():
    options = parse_arguments()
    if "RANK" not in os.environ:
        sys.exit(start_ranks(options.gpus))
    run_rank(options)


if __name__ == "__main__":
    main()
