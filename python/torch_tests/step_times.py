"""What steps of models take with backend mscclc, and with NCCL's, in the same processes and in turns.

    python3 python/torch_tests/step_times.py [--ranks N] [--device cpu] [--beside nccl] [--only decode calls]
        [--layers 16] [--hidden 4096] [--batches 1 8 32] [--rounds 7] …

Starts the ranks, which have a group of each backend, and prints a line of JSON for what it ran on and one for each
of these:

decode  a token of each sequence of a batch, by a stack of tensor-parallel layers with two all-reduces each, eager
        and as a CUDA graph. Both backends have the same weights.
train   a step of a transformer that FSDP2 shards (layer by layer, gradients reduced as f32, clipped; AdamW). Each
        backend has its own model, of the same seed and data.
calls   an asynchronous all-reduce of 1 KiB: what the call costs the host, until it returns.

`us` has µs a step (or call) of each backend: the median of --rounds, in each of which the backends in turn make
--calls steps (calls: ten times as many) after a barrier, timed by the slowest rank's clock until all have ended.
`ratio` is that of the medians, below 1 where mscclc is faster, and `ratios` has the least and the most of a round.
`difference` is how far the results are apart, as a part of their size: hidden states, and losses and norms of
gradients of the first steps. What is further apart than rounding explains ends the run with an error.
"""

import argparse
import gc
import json
import os
import platform
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from step_models import DecodeStack, Training

import mscclc.torch  # noqa: F401, makes the backend known

WARM = 3  # steps before any is timed; those of training are compared
# Of differences, with types of 16 bits. 16 layers of bf16 on 8 ranks have come to 0.028 by rounding.
LIMITS = {"decode": 0.1, "train": 0.01, "calls": 0}
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


class Sides:
    """The groups that are compared, by backend; the default group is gloo's, and is neither."""

    def __init__(self, given, rank, device):
        self.given, self.rank, self.device = given, rank, device
        self.groups = {backend: dist.new_group(backend=backend) for backend in ("mscclc", given.beside)}

    def in_turns(self, clock):
        """For each backend the rounds' times by `clock(backend)`, of the slowest rank."""
        found = {backend: [] for backend in self.groups}
        for round in range(self.given.rounds):
            for backend in list(found)[:: 1 if round % 2 == 0 else -1]:  # none is always the first
                dist.barrier()
                found[backend].append(clock(backend))
        return {backend: _most(times) for backend, times in found.items()}

    def report(self, what, times, difference):
        """A line of JSON for what was timed."""
        limit = LIMITS[what["workload"]] / (30 if self.given.dtype == torch.float32 else 1)
        if difference > limit:
            raise AssertionError(f"{what}: results differ by {difference:.3g} of their size")
        ours, others = times.values()
        us = {backend: statistics.median(rounds) for backend, rounds in times.items()}
        ratios = [mine / other for mine, other in zip(ours, others)]
        if self.rank == 0:
            print(json.dumps({
                **what, "us": {backend: round(one, 2) for backend, one in us.items()},
                "ratio": round(us["mscclc"] / us[self.given.beside], 3),
                "ratios": [round(min(ratios), 3), round(max(ratios), 3)], "difference": difference,
            }), flush=True)  # fmt: skip


def _most(numbers):
    """The largest of all ranks, for each."""
    most = torch.tensor(numbers, dtype=torch.float64)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    return most.tolist()


def _end():
    """Waits for what this rank has queued."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _clock(call, calls):
    """µs of one of some calls, until all that they queue has ended."""
    _end()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    _end()
    return (time.perf_counter() - start) * 1e6 / calls


def _difference(results):
    """How far two results are apart, as a part of their size, on the worst rank. All must be numbers."""
    found, wanted = (result.double() for result in results)
    if not (torch.isfinite(found).all() and torch.isfinite(wanted).all()):
        return float("inf")
    return _most([((found - wanted).norm() / wanted.norm()).item()])[0]


def _captured(call):
    """A CUDA graph of a call, and what its replays write."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = call()
    return graph, output


@torch.no_grad()
def decode(sides):
    given = sides.given
    torch.set_default_dtype(given.dtype)
    stack = DecodeStack(given, sides.rank, sides.device)
    for batch in given.batches:
        what = {"workload": "decode", "batch": batch}
        generator = torch.Generator(sides.device).manual_seed(0)  # the same on all ranks
        x = torch.randn(batch, given.hidden, generator=generator, device=sides.device)
        steps = {backend: lambda group=group: stack(x, group) for backend, group in sides.groups.items()}
        results = [[step() for _ in range(WARM)][-1] for step in steps.values()]
        times = sides.in_turns(lambda backend: _clock(steps[backend], given.calls))
        sides.report({**what, "mode": "eager"}, times, _difference(results))
        if given.device == "cpu":
            continue
        _end()
        graphs = {backend: _captured(step) for backend, step in steps.items()}
        for graph, output in graphs.values():
            output.zero_()
            graph.replay()
        difference = _difference([output for _, output in graphs.values()])
        times = sides.in_turns(lambda backend: _clock(graphs[backend][0].replay, given.calls))
        sides.report({**what, "mode": "graph"}, times, difference)
    torch.set_default_dtype(torch.float32)


def train(sides):
    given = sides.given
    models = {
        backend: Training(given, sides.rank, sides.device, group) for backend, group in sides.groups.items()
    }
    losses, norms = zip(*(_first_steps(model) for model in models.values()))
    times = sides.in_turns(lambda backend: _clock(lambda: models[backend].step(WARM), given.calls))
    sides.report({"workload": "train"}, times, max(_difference(losses), _difference(norms)))


def _first_steps(model):
    """Their losses, and norms of gradients."""
    return [torch.stack(column) for column in zip(*(model.step(i) for i in range(WARM)))]


def calls(sides):
    data = torch.zeros(256, device=sides.device)

    def host_time(backend):
        group, works = sides.groups[backend], []
        _end()
        start = time.perf_counter()
        for _ in range(10 * sides.given.calls):
            works.append(dist.all_reduce(data, group=group, async_op=True))
        took = time.perf_counter() - start
        for work in works:
            work.wait()
        _end()
        return took * 1e6 / len(works)

    results = []
    for group in sides.groups.values():
        data.fill_(sides.rank + 1)
        for _ in range(WARM):
            dist.all_reduce(data, group=group, async_op=True).wait()
        results.append(data.clone())
    data.zero_()  # sums of many calls stay finite
    times = sides.in_turns(host_time)
    sides.report({"workload": "calls", "bytes": data.nbytes}, times, _difference(results))


WORKLOADS = {one.__name__: one for one in (decode, train, calls)}


def _own_device(given, rank):
    """Where this rank's tensors are made."""
    if given.device == "cpu":
        torch.set_num_threads(1)
        return torch.device("cpu")
    gpus = torch.cuda.device_count()
    if gpus < given.ranks:  # ranks share GPUs, under MPS; NCCL refuses that unless it takes them for machines
        os.environ.update(NCCL_HOSTID=f"rank {rank}", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1")
    torch.cuda.set_device(rank % gpus)
    return torch.device("cuda", rank % gpus)


def run(rank, given, folder):
    device = _own_device(given, rank)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=given.ranks
    )
    sides = Sides(given, rank, device)
    for name in given.only:
        WORKLOADS[name](sides)
    # Models of DDP hold their groups, and lie in cycles. gloo's threads must end before the interpreter does: one
    # that then lets go of a tensor ends the process.
    gc.collect()
    for group in sides.groups.values():
        dist.destroy_process_group(group)
    dist.destroy_process_group()


def options():
    gpus = torch.cuda.is_available()
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--ranks", type=int, default=torch.cuda.device_count() if gpus else 2)
    found.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if gpus else "cpu")
    found.add_argument("--beside", help="the other backend; default: nccl, or gloo on the CPU")
    found.add_argument("--only", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    found.add_argument("--dtype", choices=DTYPES, help="default: bf16, on the CPU f32")
    for name, value in {
        "rounds": 7, "calls": 20, "layers": 16, "hidden": 4096, "heads": 32, "context": 512,
        "train-layers": 12, "train-hidden": 2048, "train-heads": 16, "train-batch": 4, "sequence": 1024,
        "vocabulary": 32000,
    }.items():  # fmt: skip
        found.add_argument(f"--{name}", type=int, default=value, help=f"default: {value}")
    found.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32])
    given = found.parse_args()
    given.beside = given.beside or ("gloo" if given.device == "cpu" else "nccl")
    given.dtype = DTYPES[given.dtype or ("f32" if given.device == "cpu" else "bf16")]
    return given


def main():
    given = options()
    hardware = torch.cuda.get_device_name() if given.device == "cuda" else platform.processor()
    print(json.dumps({"hardware": hardware, "torch": torch.__version__, **vars(given)}, default=str), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(run, (given, folder), nprocs=given.ranks)


if __name__ == "__main__":
    main()
