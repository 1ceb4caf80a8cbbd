"""The backend of torch.distributed on GPUs, beside torch's NCCL backend in the same processes.

    python3 tests/gpu/pytorch/torch_backend_check.py [--ranks N] [--times] [--timeout SECONDS] [CHECK…]

Starts N processes (default: as many as GPUs), a GPU each. Every collective is compared with NCCL's
result: types, sizes, strides, reductions, asynchronous and not, groups, messages, coalesced calls,
CUDA graphs that are replayed with new data, a training step with DDP and with FSDP2 against a model
that is not sharded. --times also prints what a call costs the host and the GPU with each backend. The
last line says how many checks passed and failed. Calls have --timeout seconds (60). What still runs after
DUMP_AFTER seconds (90) says where it is. PYTORCH_ALLOC_CONF=expandable_segments:True, or backend:cudaMallocAsync, runs all with memory
that other processes cannot map as a whole, or at all.
"""

import argparse
import contextlib
import faulthandler
import gc
import os
import tempfile
import time
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import mscclc.torch
import mscclc.torch.ops

TYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int64,
         torch.int8, torch.uint8]  # fmt: skip
COUNTS = [0, 1, 7, 1000, 65536 + 3, 1 << 20]


class Ranks:
    """This rank, its group of backend mscclc, and one of NCCL."""

    def __init__(self, rank, size, timeout):
        self.rank, self.size = rank, size
        self.ours = dist.new_group(backend="mscclc", timeout=timeout)
        self.nccl = dist.new_group(backend="nccl", timeout=timeout)

    def data(self, count, dtype, seed=0):
        """Small whole numbers: sums are exact in every type."""
        random = torch.Generator().manual_seed(1000 * seed + self.rank)
        return torch.randint(0, 3, (count,), generator=random).to(dtype).cuda()


def equal(found, wanted, what=""):
    if not torch.equal(found, wanted):
        bad = int((found != wanted).sum())
        raise AssertionError(f"{what}: {bad} of {found.numel()} elements are wrong")


def both(ranks, what, call):
    """`call(group)` gives tensors, which must be the same of both backends."""
    for mine, other in zip(call(ranks.ours), call(ranks.nccl)):
        equal(mine, other, what)


def collectives(ranks):
    n = ranks.size
    for dtype in TYPES:
        for count in COUNTS:
            what = f"{dtype} x {count}"

            def all_reduce(group):
                data = ranks.data(count, dtype)
                dist.all_reduce(data, group=group)
                return [data]

            def all_gather(group):
                out = torch.zeros(count * n, dtype=dtype, device="cuda")
                dist.all_gather_into_tensor(out, ranks.data(count, dtype), group=group)
                parts = [torch.zeros(count, dtype=dtype, device="cuda") for _ in range(n)]
                dist.all_gather(parts, ranks.data(count, dtype), group=group)
                return [out, *parts]

            def reduce_scatter(group):
                out = torch.zeros(count, dtype=dtype, device="cuda")
                dist.reduce_scatter_tensor(out, ranks.data(count * n, dtype), group=group)
                return [out]

            def all_to_all(group):
                out = torch.zeros(count * n, dtype=dtype, device="cuda")
                dist.all_to_all_single(out, ranks.data(count * n, dtype), group=group)
                return [out]

            def broadcast(group):
                data = ranks.data(count, dtype)
                dist.broadcast(data, group_src=n - 1, group=group)
                return [data]

            def reduce(group):
                data = ranks.data(count, dtype)
                dist.reduce(data, group_dst=n - 1, group=group)
                return [data] if ranks.rank == n - 1 else []

            for call in (all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce):
                both(ranks, f"{call.__name__} of {what}", call)


def reductions(ranks):
    ops = dist.ReduceOp
    for op in (ops.SUM, ops.PRODUCT, ops.MIN, ops.MAX, ops.AVG, dist._make_nccl_premul_sum(0.5)):

        def reduced(group):
            data = ranks.data(5000, torch.float32)
            dist.all_reduce(data, op, group=group)
            return [data]

        both(ranks, f"{op}", reduced)


def strides_and_parts(ranks):
    n, rank = ranks.size, ranks.rank

    def odd(group):
        sent = [(rank + 2 * d) % 4 for d in range(n)]
        expected = [(s + 2 * rank) % 4 for s in range(n)]
        out = torch.zeros(sum(expected), 3, device="cuda")
        dist.all_to_all_single(
            out, ranks.data(3 * sum(sent), torch.float32).view(-1, 3), expected, sent, group=group
        )
        parts = [torch.zeros(10 * r + 1, device="cuda") for r in range(n)]
        dist.all_gather(parts, ranks.data(10 * rank + 1, torch.float32), group=group)
        return [out, *parts]

    both(ranks, "parts that differ", odd)
    found = ranks.data(64 * 48, torch.float32).view(64, 48).t()
    wanted = found.contiguous()
    dist.all_reduce(found, group=ranks.ours)
    dist.all_reduce(wanted, group=ranks.nccl)
    equal(found, wanted, "transposed")


def asynchronous(ranks):
    """Works that wait for one another's streams, and data that is freed while a call runs."""
    for i in range(50):
        mine = ranks.data(1 << 18, torch.float32, seed=i)
        other = mine.clone()
        works = [dist.all_reduce(mine, group=ranks.ours, async_op=True),
                 dist.all_reduce(other, group=ranks.nccl, async_op=True)]  # fmt: skip
        for work in works:
            work.wait()
        equal(mine, other)
        dist.all_reduce(torch.ones(1 << 18, device="cuda"), group=ranks.ours, async_op=True)
        del mine, other
        torch.full((1 << 18,), 7.0, device="cuda")
    future = dist.all_reduce(torch.ones(8, device="cuda"), group=ranks.ours, async_op=True).get_future()
    equal(future.then(lambda f: f.value()[0] * 2).wait(), torch.full((8,), 2.0 * ranks.size, device="cuda"))
    dist.barrier(ranks.ours)


def memory_given_back(ranks):
    """Memory that goes back to the driver between calls, and while one runs: addresses come again."""

    def sums(group):
        data = ranks.data(count, torch.float32)
        work = dist.all_reduce(data, group=group, async_op=True)
        torch.cuda.empty_cache()
        work.wait()
        whole = torch.zeros(count * ranks.size, device="cuda")
        dist.all_gather_into_tensor(whole, data, group=group)
        return [data, whole]

    for i in range(12):
        count = (5, 3 << 20)[i % 2] + 4096 * i
        both(ranks, f"x {count}, for the {i + 1}th time", sums)
        torch.cuda.empty_cache()


def messages(ranks):
    n, rank = ranks.size, ranks.rank
    for count in (1, 1000, 1 << 20):
        got = torch.zeros(count, device="cuda")
        ops = [
            dist.P2POp(dist.isend, torch.full((count,), float(rank), device="cuda"),
                       group=ranks.ours, group_peer=(rank + 1) % n),
            dist.P2POp(dist.irecv, got, group=ranks.ours, group_peer=(rank - 1) % n),
        ]  # fmt: skip
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        equal(got, torch.full((count,), float((rank - 1) % n), device="cuda"))
    got = torch.zeros(5, device="cuda")
    if rank == 0:
        dist.send(torch.ones(5, device="cuda"), group=ranks.ours, group_dst=1)
    elif rank == 1:
        dist.recv(got, group=ranks.ours, group_src=0)
        equal(got, torch.ones(5, device="cuda"))


def _cross(ranks, group, counts):
    """Every rank sends all it has before it receives."""
    n, rank = ranks.size, ranks.rank
    works, found = [], []
    for count in counts:
        sent = torch.full((count,), float(rank + count), device="cuda")
        works.append(dist.isend(sent, group=group, group_dst=(rank + 1) % n))
    for count in counts:
        found.append(torch.zeros(count, device="cuda"))
        works.append(dist.irecv(found[-1], group=group, group_src=(rank - 1) % n))
    for work in works:
        work.wait()
    return found


def _check_crossed(ranks, found):
    for one in found:
        wanted = float((ranks.rank - 1) % ranks.size + one.numel())
        equal(one, torch.full_like(one, wanted), f"crossing x {one.numel()}")


@contextlib.contextmanager
def _slow(ranks, what, limit):
    """Says what takes longer than a second. `limit`: the group's timeout in seconds, which must not be
    what ended a wait."""
    begin = time.monotonic()
    yield
    took = time.monotonic() - begin
    assert took < limit, f"{what} took {took:.1f} s: calls waited for each other"
    if took > 1:
        print(f"rank {ranks.rank}: {what} took {took:.1f} s", flush=True)


def crossing(ranks):
    """The first messages of their kinds, which wait for the other rank to load a plan."""
    limit = 40
    group = dist.new_group(backend="mscclc", timeout=timedelta(seconds=limit))
    for i in range(3):
        with _slow(ranks, f"crossing {i}: to give the messages", limit):
            found = _cross(ranks, group, (3, 1 << 20, 1000))
        with _slow(ranks, f"crossing {i}: to get them", limit):
            _check_crossed(ranks, found)
    graph = torch.cuda.CUDAGraph()
    with _slow(ranks, "crossing: to capture them", limit), torch.cuda.graph(graph):
        found = _cross(ranks, group, (3, 1000))
    with _slow(ranks, "crossing: replays", limit):
        for _ in range(5):
            for one in found:
                one.zero_()
            graph.replay()
            _check_crossed(ranks, found)
        torch.cuda.synchronize()
    with _slow(ranks, "crossing: to end the group", limit):
        del graph
        dist.destroy_process_group(group)


def crossing_first_in_a_graph(ranks):
    group = dist.new_group(backend="mscclc", timeout=timedelta(seconds=40))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = _cross(ranks, group, (3, 1000))
    for _ in range(5):
        graph.replay()
        _check_crossed(ranks, found)
    torch.cuda.synchronize()
    del graph
    dist.destroy_process_group(group)


def coalesced(ranks):
    data = [torch.full((i + 1,), float(ranks.rank + 1), device="cuda") for i in range(4)]
    with dist._coalescing_manager(group=ranks.ours, device=torch.device("cuda", torch.cuda.current_device())):
        for one in data:
            dist.all_reduce(one, group=ranks.ours)
    for i, one in enumerate(data):
        equal(one, torch.full((i + 1,), ranks.size * (ranks.size + 1) / 2, device="cuda"))


def graphs(ranks):
    """Captured calls, replayed with new data between eager ones."""
    n = ranks.size
    for asynchronous in (False, True):
        data = torch.zeros(4096, device="cuda")
        whole = torch.zeros(4096 * n, device="cuda")
        name = ranks.ours.group_name
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            works = [dist.all_reduce(data, group=ranks.ours, async_op=asynchronous)]
            works.append(dist.all_gather_into_tensor(whole, data, group=ranks.ours, async_op=asynchronous))
            for work in works if asynchronous else []:
                work.wait()
            summed = torch.ops.mscclc.all_reduce(data, "sum", name)
        for i in range(100):
            data.fill_(ranks.rank + i)
            graph.replay()
            sum = float(n * i + n * (n - 1) // 2)
            equal(whole, torch.full_like(whole, sum), f"replay {i}")
            equal(summed, torch.full_like(summed, n * sum), f"replay {i}")
            if i % 10 == 0:
                eager = torch.ones(64, device="cuda")
                dist.all_reduce(eager, group=ranks.ours)
                equal(eager, torch.full_like(eager, float(n)))
        # With cudaMallocAsync, memory of one capture that is freed in another one ends the other's replays.
        del works, summed, graph


def _model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256)
    ).cuda()


def _whole(ranks):
    """The model after three steps with the gradients of all ranks' data."""
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        for rank in range(ranks.size):
            (_loss(model, step, rank) / ranks.size).backward()
        optimizer.step()
    return list(model.parameters())


def _loss(model, step, rank):
    random = torch.Generator().manual_seed(100 * step + rank)
    return model(torch.randn(32, 256, generator=random).cuda()).square().mean()


def _steps(model, ranks):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        _loss(model, step, ranks.rank).backward()
        optimizer.step()


def data_parallel(ranks):
    model = torch.nn.parallel.DistributedDataParallel(_model(), process_group=ranks.ours)
    _steps(model, ranks)
    for found, wanted in zip(model.parameters(), _whole(ranks)):
        torch.testing.assert_close(found, wanted)


def fully_sharded(ranks):
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard

    model, mesh = _model(), DeviceMesh.from_group(ranks.ours, "cuda")
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    _steps(model, ranks)
    for found, wanted in zip(model.parameters(), _whole(ranks)):
        torch.testing.assert_close(found.full_tensor(), wanted)


def _free_memory(ranks):
    """Of the GPU, when all ranks are here."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    dist.barrier(ranks.nccl)
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    dist.barrier(ranks.nccl)
    return free


def graphs_of_many_sizes(ranks):
    """As inference engines do: a model in pieces, captured for each batch size in one pool of memory, with the
    collectives as custom ops between. Replays come in any order, and take no memory, nor does capturing all again."""
    name, n = ranks.ours.group_name, ranks.size
    torch.manual_seed(0)
    first, second = torch.nn.Linear(64, 64).cuda(), torch.nn.Linear(64, 64).cuda()
    sizes = range(240, 0, -8)

    def model(x):
        x = torch.ops.mscclc.all_reduce(first(x).relu(), "sum", name)
        return torch.ops.mscclc.all_reduce(second(x), "avg", name)

    def capture_all():
        pool, graphs = None, {}
        for size in sizes:
            inputs = torch.zeros(size, 64, device="cuda")
            model(inputs)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                outputs = model(inputs)
            pool = pool or graph.pool()
            graphs[size] = graph, inputs, outputs
        return graphs

    def replay(graph, inputs, outputs):
        inputs.copy_(torch.arange(64.0).expand_as(inputs) / 64)
        graph.replay()
        torch.testing.assert_close(outputs, second(n * first(inputs).relu()), rtol=1e-4, atol=1e-4)

    with torch.no_grad():
        free = []
        for _ in range(4):
            graphs = capture_all()
            replay(*graphs[8])
            before = _free_memory(ranks)
            for i in range(100):
                replay(*graphs[sizes[7 * i % len(sizes)]])
            taken = before - _free_memory(ranks)
            assert taken < 2 << 20, f"replays took {taken} bytes"
            del graphs
            free.append(_free_memory(ranks))
    assert free[1] - free[3] < 2 << 20, f"captures have kept memory; what was free after each: {free}"


def both_backends_in_one_loop(ranks):
    """DDP over NCCL, whose model calls ops of ours, and whose loss is averaged by ours."""
    name = ranks.ours.group_name

    class Mixed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = _model()

        def forward(self, x):
            return torch.ops.mscclc.all_reduce(self.layers(x), "sum", name)

    def steps(wrap):
        model = wrap(Mixed())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses = []
        for step in range(3):
            optimizer.zero_grad()
            loss = _loss(model, step, ranks.rank)
            loss.backward()
            optimizer.step()
            mean = loss.detach().clone()
            dist.all_reduce(mean, dist.ReduceOp.AVG, group=ranks.ours)
            losses.append(mean)
        return [*losses, *model.parameters()]

    ddp = torch.nn.parallel.DistributedDataParallel
    found = steps(lambda model: ddp(model, process_group=ranks.nccl))
    wanted = steps(lambda model: ddp(model, process_group=ranks.ours))
    for one, other in zip(found, wanted):
        torch.testing.assert_close(one, other)
    dist.all_reduce(found[0], dist.ReduceOp.MAX, group=ranks.nccl)
    torch.testing.assert_close(found[0], wanted[0])


CHECKS = [
    collectives, reductions, strides_and_parts, asynchronous, memory_given_back, messages, crossing,
    coalesced, graphs, data_parallel, fully_sharded, crossing_first_in_a_graph,
    graphs_of_many_sizes, both_backends_in_one_loop,
]  # fmt: skip


def times(ranks):
    """Microseconds a call: of the host, and of the GPU in a graph of 100 calls."""
    for count in (1024, 65536, 1 << 20, 1 << 24):
        line = [f"all_reduce of {4 * count} bytes"]
        for name, group in (("mscclc", ranks.ours), ("nccl", ranks.nccl)):
            data = torch.zeros(count, device="cuda")
            for _ in range(20):
                dist.all_reduce(data, group=group)
            torch.cuda.synchronize()
            dist.barrier(ranks.nccl)
            start = time.perf_counter()
            for _ in range(100):
                dist.all_reduce(data, group=group)
            host = (time.perf_counter() - start) * 1e4
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(100):
                    dist.all_reduce(data, group=group)
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            graph.replay()
            dist.barrier(ranks.nccl)
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            line.append(f"{name}: host {host:.2f}, GPU {begin.elapsed_time(end) * 10:.2f}")
            del graph
        if ranks.rank == 0:
            print("; ".join(line), flush=True)


def run(rank, given, folder, results):
    faulthandler.dump_traceback_later(float(os.environ.get("DUMP_AFTER", 90)), repeat=True)
    gpus, size = torch.cuda.device_count(), given.ranks
    if gpus < size:  # ranks share GPUs, under MPS; NCCL takes them for ranks of several machines
        os.environ["NCCL_HOSTID"] = f"rank {rank}"
    torch.cuda.set_device(rank % gpus)
    dist.init_process_group(
        "nccl", init_method=f"file://{folder}/store", rank=rank, world_size=size,
        device_id=torch.device("cuda", rank % gpus),
    )  # fmt: skip
    ranks = Ranks(rank, size, timedelta(seconds=given.timeout))
    passed = failed = 0
    for check in CHECKS:
        if given.checks and check.__name__ not in given.checks:
            continue
        start = time.perf_counter()
        if rank == 0:
            print(f"{check.__name__} …", flush=True)
        try:
            check(ranks)
            torch.cuda.synchronize()
            passed += 1
        except Exception:  # every check is tried
            failed += 1
            print(f"rank {rank}: {check.__name__} failed\n{traceback.format_exc()}", flush=True)
        if rank == 0:
            print(f"  {time.perf_counter() - start:.1f} s", flush=True)
    if given.times:
        times(ranks)
    results.put((passed, failed))
    dist.destroy_process_group()
    faulthandler.cancel_dump_traceback_later()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--ranks", type=int, default=torch.cuda.device_count())
    options.add_argument("--times", action="store_true")
    options.add_argument("--timeout", type=float, default=60)
    options.add_argument("checks", nargs="*", help="default: all")
    given = options.parse_args()
    results = mp.get_context("spawn").SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(run, (given, folder, results), nprocs=given.ranks)
    counts = [results.get() for _ in range(given.ranks)]
    print(f"{sum(c[0] for c in counts)} passed, {sum(c[1] for c in counts)} failed")
    raise SystemExit(any(c[1] for c in counts))


if __name__ == "__main__":
    main()
