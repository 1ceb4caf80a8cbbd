"""PyTorch's own NCCL backend, unmodified, with a library of NCCL's interface in front of NCCL.

    LD_PRELOAD=/opt/mscclc/libnccl.so.2 python3 tests/gpu/pytorch/torch_check.py [--ranks N] [--times]

Starts N processes (default: as many as GPUs), a GPU each, and compares what collectives give with
what the definition says: types, reductions, places, groups, coalesced calls, sends and receives,
CUDA graphs, a DDP step, an FSDP step, functional collectives. --times also prints what an all-reduce
costs, eagerly and in a graph. Without LD_PRELOAD the same runs on NCCL alone. The last line says how
many checks passed and failed.
"""
import argparse
import ctypes
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from counted_checks import Checks  # noqa: E402

TYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int64,
         torch.int8, torch.uint8]
SIZES = [1, 7, 1000, 4096, 65536 + 3, 1 << 20]


def data(rank, count, dtype, seed=0):
    """Small whole numbers: sums are exact in every type."""
    g = torch.Generator().manual_seed(1000 * seed + rank)
    return torch.randint(0, 3, (count,), generator=g).to(dtype).cuda()


def equal(found, wanted):
    if not torch.equal(found.cpu(), wanted.cpu()):
        bad = (found.cpu() != wanted.cpu()).sum().item()
        raise AssertionError(f"{bad} of {wanted.numel()} elements are wrong")


def collectives(check, rank, n):
    for dtype in TYPES:
        for count in SIZES:
            every = [data(r, count, dtype) for r in range(n)]
            tag = f"{dtype} x {count}"

            def all_reduce(op, wanted):
                x = every[rank].clone()
                dist.all_reduce(x, op)
                equal(x, wanted)

            total = torch.stack(every).sum(0).to(dtype)
            check(f"all_reduce sum {tag}", lambda: all_reduce(dist.ReduceOp.SUM, total))
            check(f"all_reduce max {tag}",
                  lambda: all_reduce(dist.ReduceOp.MAX, torch.stack(every).amax(0)))
            check(f"all_reduce prod {tag}",
                  lambda: all_reduce(dist.ReduceOp.PRODUCT, torch.stack(every).prod(0).to(dtype)))

            def gather():
                out = torch.empty(n * count, dtype=dtype, device="cuda")
                dist.all_gather_into_tensor(out, every[rank])
                equal(out, torch.cat(every))
            check(f"all_gather {tag}", gather)

            rows = [data(r, n * count, dtype, 1) for r in range(n)]

            def scatter():
                out = torch.empty(count, dtype=dtype, device="cuda")
                dist.reduce_scatter_tensor(out, rows[rank])
                equal(out, torch.stack(rows).sum(0).to(dtype)[rank * count:(rank + 1) * count])
            check(f"reduce_scatter {tag}", scatter)

            def exchange():
                out = torch.empty(n * count, dtype=dtype, device="cuda")
                dist.all_to_all_single(out, rows[rank])
                equal(out, torch.cat([r[rank * count:(rank + 1) * count] for r in rows]))
            check(f"all_to_all {tag}", exchange)

            def broadcast():
                x = every[rank].clone()
                dist.broadcast(x, n - 1)
                equal(x, every[n - 1])
            check(f"broadcast {tag}", broadcast)

            def reduce():
                x = every[rank].clone()
                dist.reduce(x, 0)
                if rank == 0:
                    equal(x, total)
            check(f"reduce {tag}", reduce)


def other_calls(check, rank, n):
    def send_receive():
        x = torch.full((5000,), float(rank), device="cuda")
        y = torch.empty_like(x)
        ops = [dist.P2POp(dist.isend, x, (rank + 1) % n), dist.P2POp(dist.irecv, y, (rank - 1) % n)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        equal(y, torch.full((5000,), float((rank - 1) % n)))
    check("batch_isend_irecv", send_receive)

    def uneven():
        sizes = [r + 1 for r in range(n)]
        outs = [torch.empty(s, device="cuda") for s in sizes]
        dist.all_gather(outs, torch.full((sizes[rank],), float(rank), device="cuda"))
        for r in range(n):
            equal(outs[r], torch.full((sizes[r],), float(r)))
    check("all_gather, uneven", uneven)

    def average():
        x = torch.full((1000,), float(rank), device="cuda")
        dist.all_reduce(x, dist.ReduceOp.AVG)
        equal(x, torch.full((1000,), sum(range(n)) / n))
    check("all_reduce avg", average)

    def premul():
        x = torch.full((1000,), 1.0, device="cuda")
        dist.all_reduce(x, dist._make_nccl_premul_sum(2.0))
        equal(x, torch.full((1000,), 2.0 * n))
    check("all_reduce premul", premul)

    def groups():
        mine = [dist.new_group([r]) for r in range(n)][rank]
        everybody = dist.new_group(list(range(n)))
        x = torch.ones(100, device="cuda")
        dist.all_reduce(x, group=mine)
        equal(x, torch.ones(100))
        dist.all_reduce(x, group=everybody)
        equal(x, torch.full((100,), float(n)))
        dist.barrier()
    check("groups", groups)

    def coalesced():
        xs = [torch.full((s,), float(rank + 1), device="cuda") for s in (10, 3000, 70000)]
        with dist._coalescing_manager(device=torch.device("cuda", rank)):
            for x in xs:
                dist.all_reduce(x)
        torch.cuda.synchronize()
        for x in xs:
            equal(x, torch.full_like(x, n * (n + 1) / 2).cpu())
    check("coalesced all_reduce", coalesced)

    def streams():
        a, b = torch.cuda.Stream(), torch.cuda.Stream()
        xs = [torch.full((100000,), 1.0, device="cuda") for _ in range(20)]
        torch.cuda.synchronize()
        for i, x in enumerate(xs):
            with torch.cuda.stream(a if i % 2 else b):
                dist.all_reduce(x)
        torch.cuda.synchronize()
        for x in xs:
            equal(x, torch.full((100000,), float(n)))
    check("streams in turns", streams)

    def graph():
        x = torch.zeros(2048, device="cuda")
        y = torch.empty(2048 * n, device="cuda")
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):  # torch's own advice: once before the capture
            dist.all_reduce(x)
            dist.all_gather_into_tensor(y, x)
        torch.cuda.synchronize()
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            dist.all_reduce(x)
            dist.all_gather_into_tensor(y, x)
        for i in range(50):
            x.fill_(float(i))
            g.replay()
            if i % 10 == 0:  # an eager call between
                z = torch.ones(10, device="cuda")
                dist.all_reduce(z)
                equal(z, torch.full((10,), float(n)))
            torch.cuda.synchronize()
            equal(y, torch.full((2048 * n,), float(i * n)))
    check("CUDA graph, replayed and mixed with eager calls", graph)

    def functional():
        import torch.distributed._functional_collectives as fc
        x = torch.full((128,), float(rank), device="cuda")
        equal(fc.wait_tensor(fc.all_reduce(x, "sum", dist.group.WORLD)),
              torch.full((128,), float(sum(range(n)))))
    check("functional collectives", functional)


def model():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).cuda()


def training(check, rank, n):
    torch.manual_seed(1)
    whole = torch.randn(8 * n, 64).cuda()
    part = whole[8 * rank:8 * (rank + 1)]

    def reference():
        m = model()
        m(whole).square().mean().backward()
        return [p.grad for p in m.parameters()]

    def ddp():
        m = torch.nn.parallel.DistributedDataParallel(model(), device_ids=[rank])
        m(part).square().mean().backward()
        for p, wanted in zip(m.parameters(), reference()):
            torch.testing.assert_close(p.grad, wanted, rtol=1e-4, atol=1e-6)
    check("DDP step", ddp)

    def fsdp():
        from torch.distributed.fsdp import fully_shard
        m = model()
        fully_shard(m)
        m(part).square().mean().backward()
        for p, wanted in zip(m.parameters(), reference()):
            torch.testing.assert_close(p.grad.full_tensor(), wanted, rtol=1e-4, atol=1e-6)
    check("FSDP2 step", fsdp)


def times(rank):
    for count in (256, 4096, 16384, 262144, 16 << 20):
        x = torch.zeros(count, device="cuda")
        calls = 50 if count < 1 << 20 else 10

        def run():
            for _ in range(calls):
                dist.all_reduce(x)
        for _ in range(3):
            run()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(20):
            run()
        host = time.perf_counter() - begin
        torch.cuda.synchronize()
        eager = time.perf_counter() - begin
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            run()
        g.replay()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(20):
            g.replay()
        torch.cuda.synchronize()
        replay = time.perf_counter() - begin
        if rank == 0:
            us = [1e6 * t / 20 / calls for t in (host, eager, replay)]
            print(f"all_reduce of {4 * count} bytes: processor {us[0]:.2f} us a call, "
                  f"eager {us[1]:.2f}, graph {us[2]:.2f}", flush=True)


def run_rank(rank, n, port, with_times, counts):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=n, device_id=torch.device("cuda", rank))
    check = Checks(rank, after=torch.cuda.synchronize)
    collectives(check, rank, n)
    other_calls(check, rank, n)
    training(check, rank, n)
    if with_times:
        times(rank)
    dist.barrier()
    dist.destroy_process_group()
    counts[2 * rank], counts[2 * rank + 1] = check.passed, check.failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=torch.cuda.device_count())
    parser.add_argument("--times", action="store_true")
    options = parser.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    version = ctypes.c_int()
    library = ctypes.CDLL("libnccl.so.2")
    library.ncclGetVersion(ctypes.byref(version))
    ours = hasattr(library, "mscclc_nccl_front")
    print(f"PyTorch {torch.__version__}, NCCL {version.value}, "
          f"{'mscclc in front' if ours else 'NCCL alone'}, {options.ranks} GPUs", flush=True)
    context = mp.get_context("spawn")
    counts = context.Array("i", 2 * options.ranks)
    ranks = [context.Process(target=run_rank,
                             args=(r, options.ranks, port, options.times, counts))
             for r in range(options.ranks)]
    for p in ranks:
        p.start()
    for p in ranks:
        p.join()
    died = sum(p.exitcode != 0 for p in ranks)
    for r, p in enumerate(ranks):
        if p.exitcode != 0:
            print(f"rank {r} ended with {p.exitcode}")
    failed = sum(counts[1::2]) + died
    print(f"{sum(counts[0::2])} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
