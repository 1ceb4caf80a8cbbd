"""vLLM's or SGLang's own PyNcclCommunicator, from their sources in a folder: one rank of run.py's.

Their compiled parts are not needed: vllm._C_stable_libtorch, which vLLM's platform imports for its
operations, is an empty module here; nothing else of theirs is replaced.
"""
import contextlib
import logging
import sys
import types

import torch
import torch.distributed as dist
from checks import COUNTS, Checks, arguments, values

TYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int64,
         torch.int8, torch.uint8]


class Vllm:
    def __init__(self):
        sys.modules["vllm._C_stable_libtorch"] = types.ModuleType("vllm._C_stable_libtorch")
        import vllm
        from vllm.distributed.device_communicators import pynccl
        from vllm.distributed.utils import StatelessProcessGroup
        self.module, self.version, self.group = pynccl, vllm.__version__, StatelessProcessGroup

    def on(self, _comm):
        return contextlib.nullcontext()

    def all_reduce(self, comm, x, op=dist.ReduceOp.SUM):
        return comm.all_reduce(x, op=op)

    def gatherv(self, comm, y, x, sizes):
        comm.all_gatherv(y, x, sizes)

    def scatterv(self, comm, y, x, sizes):
        comm.reduce_scatterv(y, x, sizes)


class Sglang:
    def __init__(self):
        import sglang
        from sglang.srt.distributed.device_communicators import pynccl
        from sglang.srt.distributed.utils import StatelessProcessGroup
        self.module, self.version, self.group = pynccl, sglang.__version__, StatelessProcessGroup

    def on(self, comm):
        return comm.change_state(enable=True)  # as around its decoders' graphs

    def all_reduce(self, comm, x, op=dist.ReduceOp.SUM):
        return comm.outplace_all_reduce(x, op=op)

    def gatherv(self, comm, y, x, sizes):
        comm.all_gather(y, x, sizes)

    def scatterv(self, comm, y, x, sizes):
        comm.reduce_scatter(y, x, sizes=sizes)


def data(rank, count, dtype):
    return torch.from_numpy(values(rank, count)).to(dtype)


def equal(found, wanted):
    wanted = wanted.to(found.dtype).reshape(found.shape)
    wrong = (found.cpu() != wanted).sum().item()
    assert wrong == 0, f"{wrong} of {wanted.numel()} elements are wrong"


def collectives(check, ours, comm, rank, n):
    for dtype in TYPES:
        for count in COUNTS:
            every = [data(r, n * count, dtype) for r in range(n)]
            total = torch.stack(every).sum(0).to(dtype)
            x = every[rank].to(comm.device)
            part, whole = x[:count], torch.zeros_like(x)
            tag = f"{dtype} x {count}"
            check(f"all_reduce {tag}", lambda: equal(ours.all_reduce(comm, x), total))
            check(f"all_reduce max {tag}", lambda: equal(
                ours.all_reduce(comm, x, dist.ReduceOp.MAX), torch.stack(every).amax(0)))

            def gather():
                comm.all_gather(whole, part)
                equal(whole, torch.cat([e[:count] for e in every]))
            check(f"all_gather {tag}", gather)

            def scatter():
                y = torch.zeros_like(part)
                comm.reduce_scatter(y, x)
                equal(y, total[rank * count:(rank + 1) * count])
            check(f"reduce_scatter {tag}", scatter)

            def broadcast():
                y = x.clone()
                comm.broadcast(y, n - 1)
                equal(y, every[n - 1])
            check(f"broadcast {tag}", broadcast)


def uneven(check, ours, comm, rank, n):
    sizes = [100 * (r + 1) for r in range(n)]
    begin = sum(sizes[:rank])
    every = [data(r, sum(sizes), torch.float32) for r in range(n)]

    def gather():
        y = torch.zeros(sum(sizes), device=comm.device)
        ours.gatherv(comm, y, every[rank][:sizes[rank]].to(comm.device), sizes)
        equal(y, torch.cat([e[:size] for e, size in zip(every, sizes)]))
    check("gathers of uneven parts", gather)

    def scatter():
        y = torch.zeros(sizes[rank], device=comm.device)
        ours.scatterv(comm, y, every[rank].to(comm.device), sizes)
        equal(y, sum(every)[begin:begin + sizes[rank]])
    check("sums of uneven parts", scatter)

    def ring():
        x = torch.full((5000,), float(rank), device=comm.device)
        y = torch.zeros_like(x)
        comm.group_start()
        comm.send(x, (rank + 1) % n)
        comm.recv(y, (rank - 1) % n)
        comm.group_end()
        equal(y, torch.full((5000,), float((rank - 1) % n)))
    check("send and recv", ring)


def graphs(check, ours, comm, rank, n):
    """Decoders' sums in graphs: captured, and replayed with new data, among eager calls."""
    def replays():
        x = torch.zeros(4096, device=comm.device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x
            for _ in range(8):
                y = ours.all_reduce(comm, y)
        for value in range(1, 51):
            x.fill_(float(value))
            graph.replay()
            equal(y, torch.full((4096,), float(value * n ** 8)))
            equal(ours.all_reduce(comm, x), torch.full((4096,), float(value * n)))
    check("graphs", replays)


def symmetric(check, comm, rank, n):
    """SGLang's buffer of ncclMemAlloc with a window; a sum within it."""
    from sglang.srt.distributed.device_communicators.pynccl_allocator import (
        allocate_symmetric_buffer)

    def run():
        memory, has_window = allocate_symmetric_buffer(comm, 1 << 20)
        x = memory.view(torch.float32)
        if rank == 0:
            print(f"a symmetric window: {has_window}", flush=True)
        for _ in range(3):
            x.copy_(data(rank, x.numel(), x.dtype))
            comm.all_reduce(x)
            equal(x, sum(data(r, x.numel(), x.dtype) for r in range(n)))
    check("a symmetric buffer", run)


def main():
    options = arguments()
    rank, n = options.rank, options.ranks
    logging.basicConfig(level=logging.WARNING)
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    ours = {"vllm": Vllm, "sglang": Sglang}[options.name]()
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{options.port}", rank=rank,
                            world_size=n)
    check = Checks(rank)
    groups = [("torch's group", lambda: dist.group.WORLD),
              ("its own group", lambda: ours.group.create("127.0.0.1", options.port + 1, rank, n))]
    for name, make in groups:
        comm = ours.module.PyNcclCommunicator(group=make(), device=device)
        assert comm.available, "it has found no NCCL"
        if rank == 0:
            print(f"{options.name} {ours.version}, NCCL {comm.nccl.ncclGetVersion()}, {name}",
                  flush=True)
        with ours.on(comm):
            collectives(check, ours, comm, rank, n)
            uneven(check, ours, comm, rank, n)
            graphs(check, ours, comm, rank, n)
            if options.name == "sglang":
                symmetric(check, comm, rank, n)
        torch.cuda.synchronize()
        dist.barrier()  # vLLM ends its communicators by an abort
        if options.name == "vllm":
            check("destroy", comm.destroy)
    dist.barrier()
    dist.destroy_process_group()
    check.end()


if __name__ == "__main__":
    main()
