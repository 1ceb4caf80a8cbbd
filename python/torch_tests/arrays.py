"""Communicators of the package itself, over tensors: by DLPack, and on GPUs by their array interface."""

import mscclc
import torch
import torch.distributed as dist
from checks import equal


class ByDlpack:
    """A tensor that offers nothing but DLPack."""

    def __init__(self, tensor):
        self.__dlpack__, self.__dlpack_device__ = tensor.__dlpack__, tensor.__dlpack_device__


def _comm(ranks, name):
    device = torch.get_default_device()
    return mscclc.Communicator.from_store(
        dist.FileStore(f"{ranks.folder}/arrays", ranks.size), ranks.size, ranks.rank, name,
        device=device.index if device.type == "cuda" else None, timeout=100,
    )  # fmt: skip


def collectives(ranks):
    me, size = ranks.rank, ranks.size
    with _comm(ranks, "collectives") as comm:
        for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.float64):
            for wrap in (lambda tensor: tensor, ByDlpack):
                found = torch.full((7, 9), me + 1, dtype=dtype)
                comm.allreduce(wrap(found)).wait()
                equal(found, torch.full((7, 9), size * (size + 1) // 2, dtype=dtype), f"{dtype}")
                whole = torch.zeros(size, 5, dtype=dtype)
                comm.allgather(wrap(torch.full((5,), me, dtype=dtype)), wrap(whole)).wait()
                equal(whole, torch.arange(size).to(dtype).repeat_interleave(5).view(size, 5))
                part = torch.zeros(5, dtype=dtype)
                comm.reducescatter(wrap(whole), wrap(part)).wait()
                equal(part, torch.full((5,), size * me, dtype=dtype))
                moved = torch.zeros(size, dtype=dtype)
                comm.alltoall(wrap(torch.arange(size).to(dtype) + me), wrap(moved)).wait()
                equal(moved, torch.arange(size).to(dtype) + me)
                one = torch.full((3,), me, dtype=dtype)
                comm.broadcast(wrap(one), root=size - 1).wait()
                equal(one, torch.full((3,), size - 1, dtype=dtype))
        comm.barrier()


def dropped(ranks):
    """Tensors whose work nobody holds live until it has ended."""
    with _comm(ranks, "dropped") as comm:
        found = [torch.zeros(ranks.size * 1000) for _ in range(20)]
        for i, one in enumerate(found):
            comm.allgather(torch.full((1000,), float(i + ranks.rank)), one)
        comm.synchronize()
        for i, one in enumerate(found):
            equal(one, torch.arange(float(ranks.size)).repeat_interleave(1000) + i)


def of_a_group(ranks):
    import mscclc.mscclpp as mscclpp

    group = mscclpp.CommGroup(torch_group=ranks.gloo)
    assert (group.my_rank, group.nranks) == (ranks.rank, ranks.size)
    group.barrier()
    group.communicator.close()


CHECKS = [collectives, dropped, of_a_group]
