"""What a plan with a row function takes on GPUs, beside what does the same in several kernels, in one run and in turns.

    python3 python/torch_tests/row_times.py [--ranks 2] [--hidden 6144] [--tokens 1 6 32 …] [--dtype bf16]
        [--program tests/rows/programs/allreduce_norm.mscl] [--define B=16 …] [--calls 50] [--rounds 9]

AllReduce, residual and RMSNorm of rows of `--hidden` columns, in CUDA graphs of `--calls` calls each:

fused    the plan of --program (-D R, N and --define), by its compiled kernel
plain    our AllReduce by name alone, of the same message
unfused  our AllReduce, then residual and norm as one kernel that torch.compile makes
nccl     NCCL's all_reduce alone
nccl+    NCCL's all_reduce, then that kernel
kernel   that kernel alone

Prints a line of JSON for each number of tokens: µs a call of each (the median of the rounds, of the slowest rank), and
what fused is to each of the others; `over_plain` is what it takes more than plain, in µs. First it compares the results
of fused with those of unfused, bit for bit where sums of two ranks are (R = 2), and ends with an error if they differ.
REQUIRES: as many GPUs as ranks, in one node; libnvrtc or nvcc, as the plan has no other kernel.
"""

import argparse
import json
import os
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import mscclc

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
EPS = 1e-5


def add_rmsnorm(x, residual, weight):
    """As the row function add_rmsnorm rounds it."""
    stream = x + residual
    wide = stream.float()
    norm = wide * (1 / torch.sqrt(wide.square().mean(-1, keepdim=True) + EPS)) * weight.float()
    return stream, norm.to(x.dtype)


class Contenders:
    """The calls of one number of tokens, on buffers of their own."""

    def __init__(self, given, rank, comm, plan, group, tokens):
        self.comm, self.plan, self.group = comm, plan, group
        dtype, self.name = DTYPES[given.dtype], given.dtype
        torch.manual_seed(tokens * 100 + rank)
        make = lambda *shape: torch.randn(*shape, dtype=dtype, device="cuda")  # noqa: E731
        self.x, self.residual = make(tokens, given.hidden), make(tokens, given.hidden)
        torch.manual_seed(7)
        self.weight = make(given.hidden)
        self.out, self.sum = torch.empty_like(self.x), torch.empty_like(self.x)
        self.stream_of = self.residual.clone()
        self.kernel_of = torch.compile(add_rmsnorm, dynamic=False)

    def queue(self):
        return torch.cuda.current_stream().cuda_stream

    def fused(self):
        outside = {"residual": self.stream_of, "weight": self.weight, "eps": EPS}
        self.plan.run(self.x, self.out, stream=self.queue(), dtype=self.name, externals=outside)

    def plain(self):
        self.comm.allreduce(self.x, self.sum, stream=self.queue(), dtype=self.name)

    def kernel(self):
        self.made = self.kernel_of(self.sum, self.residual, self.weight)

    def unfused(self):
        self.plain()
        self.kernel()

    def nccl(self):
        self.sum.copy_(self.x)
        dist.all_reduce(self.sum, group=self.group)

    def nccl_and(self):
        self.nccl()
        self.kernel()

    def check(self, exact):
        """The results of fused and unfused."""
        self.fused()
        self.unfused()
        torch.cuda.synchronize()
        for what, ours, wanted in (("residual", self.stream_of, self.made[0]), ("norm", self.out, self.made[1])):
            apart = (ours.float() - wanted.float()).abs().max().item()
            if what == "residual" and exact and not torch.equal(ours, wanted):
                raise AssertionError(f"{what}: up to {apart} apart from the unfused chain's")
            # The norm's own reduction has another order there: a unit in the last place of the type.
            if apart > 0.04 * wanted.float().abs().max().item():
                raise AssertionError(f"{what}: {apart} apart from the unfused chain's")
        self.stream_of.copy_(self.residual)


def graph_of(call, calls):
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="relaxed"):
        for _ in range(calls):
            call()
    return graph


def most(number):
    found = torch.tensor([number], dtype=torch.float64)
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return found.item()


def timed(graph, calls):
    """µs a call."""
    dist.barrier()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    graph.replay()
    torch.cuda.synchronize()
    return most((time.perf_counter() - begin) * 1e6 / calls)


def measure(given, rank, comm, plan, group, tokens):
    own = Contenders(given, rank, comm, plan, group, tokens)
    own.check(given.ranks == 2)
    calls = {"fused": own.fused, "plain": own.plain, "unfused": own.unfused, "nccl": own.nccl,
             "nccl+": own.nccl_and, "kernel": own.kernel}  # fmt: skip
    graphs = {name: graph_of(call, given.calls) for name, call in calls.items()}
    times = {name: [] for name in graphs}
    for graph in graphs.values():
        timed(graph, given.calls)
    for round in range(given.rounds):
        for name in list(graphs)[:: 1 if round % 2 == 0 else -1]:  # none is always the first
            times[name].append(timed(graphs[name], given.calls))
    us = {name: statistics.median(all) for name, all in times.items()}
    if rank != 0:
        return
    print(json.dumps({
        "tokens": tokens, "hidden": given.hidden, "dtype": given.dtype, "ranks": given.ranks,
        "bytes": own.x.numel() * own.x.element_size(),
        "us": {name: round(one, 2) for name, one in us.items()},
        "fused_to": {name: round(us["fused"] / one, 3) for name, one in us.items() if name != "fused"},
        "over_plain": round(us["fused"] - us["plain"], 2),
    }), flush=True)  # fmt: skip


def rank_main(rank, given, meeting):
    torch.cuda.set_device(rank)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=given.ranks)
    group = dist.new_group(backend="nccl")
    ids = [mscclc.unique_id() if rank == 0 else None]
    dist.broadcast_object_list(ids)
    defines = dict(one.split("=", 1) for one in given.define)
    plan_text = mscclc.compile(given.program, {"R": given.ranks, "N": given.hidden, **defines})
    with mscclc.Communicator(given.ranks, ids[0], rank, device=rank) as comm:
        width = torch.empty(0, dtype=DTYPES[given.dtype]).element_size()
        plan = comm.load(plan_text, max(given.tokens) * given.hidden * width, given.dtype)
        if rank == 0:
            name = torch.cuda.get_device_name()
            print(json.dumps({"gpu": name, "torch": torch.__version__,
                              "program": given.program}), flush=True)  # fmt: skip
        for tokens in given.tokens:
            measure(given, rank, comm, plan, group, tokens)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=6144)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 2, 6, 16, 32, 64, 128, 512])
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--program", default="tests/rows/programs/allreduce_norm.mscl")
    parser.add_argument("--define", nargs="*", default=[], help="parameters of the program: B=16")
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(rank_main, (given, os.path.join(folder, "meeting")), nprocs=given.ranks)


if __name__ == "__main__":
    main()
