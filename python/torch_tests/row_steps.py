"""A token of a tensor-parallel decoder in a CUDA graph, with each way to do its all-reduces, residuals and norms.

    python3 python/torch_tests/row_steps.py [--ranks 2] [--models 8B 70B] [--batches 1 8 64] [--layers 16]
        [--rounds 7] [--ways fused plain …]

A layer is four products of bf16 (qkv, of which a part stands for what attention gives; o; gate and up; down), and two
sums of all ranks, each with residual and RMSNorm:

fused        one call: the plan that the library picks for such rows (docs/fusion.md)
plain        our all-reduce, then one kernel that torch.compile makes
nccl         NCCL's, then that kernel
flashinfer   its fused kernel (backend trtllm), where FlashInfer is installed

All have the same weights. `us` has µs a token, the median of the rounds, in each of which the ways take turns, of the
slower rank; `to` their ratio to fused's. The last norm of each way is compared with fused's. A way that fails has its
error in `failed`.
REQUIRES: as many GPUs as ranks, in one node; libnvrtc or nvcc; MSCCLC_KERNELS=now.
`--device cpu` tries fused and plain on the host; its times say nothing.
"""

import argparse
import json
import statistics

import torch
import torch.distributed as dist
from row_times import EPS, add_rmsnorm, end, flashinfer_fused, graph_of, run_ranks, set_up, timed

import mscclc

# Of all ranks: hidden, and the width of qkv, and of gate, which is that of up.
_MODELS = {"8B": (4096, 6144, 14336), "70B": (8192, 10240, 28672), "tiny": (64, 128, 128)}


class Layers:
    """Weights of a rank, and its buffers for so many sequences."""

    def __init__(self, ranks, model, layers):
        self.hidden, qkv, gate = _MODELS[model]
        part = ranks.size
        generator = torch.Generator(ranks.device).manual_seed(ranks.rank)

        def weight(depth, columns):
            made = torch.empty(depth, columns, dtype=torch.bfloat16, device=ranks.device)
            return made.normal_(0, depth**-0.5, generator=generator)

        self.layers = [
            (weight(self.hidden, qkv // part), weight(self.hidden // part, self.hidden),
             weight(self.hidden, 2 * gate // part), weight(gate // part, self.hidden))
            for _ in range(layers)
        ]  # fmt: skip
        self.own, self.gate = self.hidden // part, gate // part
        self.norm_weight = torch.ones(self.hidden, dtype=torch.bfloat16, device=ranks.device)

    def step(self, x, sum_norm):
        """The last norm. `sum_norm(partial, residual)`: the norm, and the residual stream after it."""
        norm, residual = x, x.clone()
        for qkv, o, gate_up, down in self.layers:
            attention = torch.mm(norm, qkv)[:, : self.own]
            norm, residual = sum_norm(torch.mm(attention, o), residual)
            both = torch.mm(norm, gate_up)
            inner = torch.nn.functional.silu(both[:, : self.gate]) * both[:, self.gate :]
            norm, residual = sum_norm(torch.mm(inner, down), residual)
        return norm


class Ways:
    """Each way to add up, as `sum_norm` of Layers.step()."""

    def __init__(self, ranks, comm, group, layers, batch):
        self.ranks, self.comm, self.group, self.layers, self.batch = ranks, comm, group, layers, batch

    def wait(self):
        """The host's calls are queued, and torch does not know the queue."""
        if self.ranks.device.type == "cpu":
            self.comm.synchronize()

    def fused(self):
        hidden, batch = self.layers.hidden, self.batch
        plan = mscclc.row_plan("allreduce_norm", ranks=self.ranks.size, columns=hidden, rows=batch, dtype="bf16")
        loaded = self.comm.load(plan.to_json(), batch * hidden * 2, "bf16")

        def sum_norm(partial, residual):
            norm = torch.empty_like(partial)
            outside = {"residual": residual, "weight": self.layers.norm_weight, "eps": EPS}
            loaded.run(partial, norm, stream=self.ranks.stream_now(), dtype="bf16", externals=outside)
            self.wait()
            return norm, residual

        return sum_norm

    def _then(self, add_up):
        kernel = torch.compile(add_rmsnorm, dynamic=False) if self.ranks.device.type == "cuda" else add_rmsnorm

        def sum_norm(partial, residual):
            stream, norm = kernel(add_up(partial), residual, self.layers.norm_weight)
            return norm, stream

        return sum_norm

    def plain(self):
        def add_up(partial):
            out = torch.empty_like(partial)
            self.comm.allreduce(partial, out, stream=self.ranks.stream_now(), dtype="bf16")
            self.wait()
            return out

        return self._then(add_up)

    def nccl(self):
        def add_up(partial):
            dist.all_reduce(partial, group=self.group)
            return partial

        return self._then(add_up)

    def flashinfer(self):
        kernel = flashinfer_fused(self.ranks, self.group, self.batch, self.layers.hidden)

        def sum_norm(partial, residual):
            norm = torch.empty_like(partial)
            kernel(partial, residual, self.layers.norm_weight, residual, norm)
            return norm, residual

        return sum_norm


def check_near(found, wanted):
    apart = (found - wanted).abs().max().item()
    if not apart <= 0.1 * wanted.abs().max().item():
        raise AssertionError(f"results are {apart} apart")


def measured(ranks, ways, x, what, given, align):
    """µs a token of each way, why others have none, and whether the GPUs do nothing more."""
    names = ("fused", "plain", "nccl", "flashinfer") if ranks.device.type == "cuda" else ("fused", "plain")
    replays, failed, first, lost = {}, {}, None, False
    for name in names:
        if lost or (given.ways and name not in given.ways):
            continue

        def tried(name=name, first=first):
            sum_norm, result = getattr(ways, name)(), []
            step = lambda: result.__setitem__(slice(None), [ways.layers.step(x, sum_norm)])  # noqa: E731
            for _ in range(2):
                step()
            ranks.synchronize(ways.comm)
            made = result[0].float()
            if first is not None:
                check_near(made, first)
            return graph_of(ranks, step, 1), made

        ranks.say(f"{what}, {name}, first calls")
        made, why = ranks.attempt(tried, f"{what}, {name}, first calls")
        if why:
            failed[name], lost = why, not ranks.usable(align)
            continue
        first = made[1] if first is None else first
        replays[name] = made[0]
    times = {name: [] for name in replays}
    for turn in range(given.rounds + 1):
        for name in list(replays)[:: 1 if turn % 2 == 0 else -1]:  # none is always the first
            if lost or name in failed:
                continue
            one, why = timed(ranks, ways.comm, replays[name], align, 1, f"{what}, {name}, round {turn}")
            if why:
                failed[name], lost = why, not ranks.usable(align)
                continue
            ranks.say(f"{what}, {name}, round {turn}: {one:.1f} µs")
            if turn > 0:
                times[name].append(one)
    us = {name: round(statistics.median(rounds), 1) for name, rounds in times.items() if rounds and name not in failed}
    return us, failed, lost


def rank_main(rank, given, meeting):
    ranks, comm, group, align = set_up(rank, given, meeting)
    for model in given.models:
        layers = Layers(ranks, model, given.layers)
        for batch in given.batches:
            x = torch.randn(batch, layers.hidden, generator=torch.Generator().manual_seed(batch))
            ways = Ways(ranks, comm, group, layers, batch)
            x, what = x.to(torch.bfloat16).to(ranks.device), f"{model}, {batch} sequences"
            us, failed, lost = measured(ranks, ways, x, what, given, align)
            if rank == 0:
                to = {name: round(us["fused"] / one, 3) for name, one in us.items()} if "fused" in us else {}
                line = {"model": model, "layers": given.layers, "batch": batch, "ranks": ranks.size, "us": us,
                        "to": to, "failed": failed}  # fmt: skip
                print(json.dumps(line), flush=True)
            if lost:
                end(lost=True)
        del layers, ways
    end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", choices=list(_MODELS), nargs="+", default=["8B", "70B"])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ways", nargs="+", help="these alone (all)")
    run_ranks(parser, rank_main)


if __name__ == "__main__":
    main()
