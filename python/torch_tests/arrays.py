"""Communicators of the package itself, over tensors: by DLPack, and on GPUs by their array interface."""

import mscclc
import torch
import torch.distributed as dist
from checks import device, equal, refused
from mscclc.buffers import TORCH_TYPES, buffer_of


class ByDlpack:
    """A tensor that offers nothing but DLPack."""

    def __init__(self, tensor):
        self.__dlpack__, self.__dlpack_device__ = tensor.__dlpack__, tensor.__dlpack_device__


def _comm(ranks, name):
    here = device()
    return mscclc.Communicator.from_store(
        dist.FileStore(f"{ranks.folder}/arrays", ranks.size), ranks.size, ranks.rank, name,
        device=here.index if here.type == "cuda" else None, timeout=100,
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


def alike(ranks):
    """Torch says of a tensor what its array interface and DLPack do."""
    here = device()
    number = here.index if here.type == "cuda" else -1
    for name in TORCH_TYPES:
        for shape in ((), (5,), (0, 3), (2, 3)):
            tensor = torch.zeros(shape, dtype=getattr(torch, name.split(".")[1]))
            found, same = (buffer_of(one, number, writable=True) for one in (tensor, ByDlpack(tensor)))
            assert found[:3] == same[:3] and tuple(found.shape) == same.shape, (name, shape, found, same)
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)], layout=torch.strided)
    refused(lambda: buffer_of(nested, number, writable=True), "Tensor does not give its memory")


def dropped(ranks):
    """Tensors live until their work has ended, also where the work is dropped."""
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


def memory_of_the_library(ranks):
    """What a communicator allocates is a tensor, by DLPack and on GPUs by the array interface."""
    me, size = ranks.rank, ranks.size
    with _comm(ranks, "memory") as comm:
        for dtype, name in ((torch.float32, "f32"), (torch.bfloat16, "bf16"), (torch.int64, "i64")):
            memory = comm.allocate(1000, name)
            tensor = torch.from_dlpack(memory)
            equal(tensor, torch.zeros(1000, dtype=dtype))
            tensor.fill_(me + 1)
            comm.allreduce(memory).wait()
            equal(tensor, torch.full((1000,), size * (size + 1) // 2, dtype=dtype))
            part = torch.from_dlpack(memory[10:20])
            del memory
            part.fill_(7)
            equal(tensor[9:21].to(torch.int64).sum(), torch.tensor(70 + size * (size + 1)))
        if device().type == "cuda":
            memory = comm.allocate(8, "f32")
            torch.as_tensor(memory, device="cuda").fill_(3)  # read() waits for it
            assert memory.read() == torch.full((8,), 3.0, device="cpu").numpy().tobytes()


def symmetric(ranks):
    """Symmetric memory of a communicator, whose collectives use it where it lies."""
    me, size, count = ranks.rank, ranks.size, 1 << 20
    with _comm(ranks, "symmetric") as comm:
        memory = mscclc.SymmetricMemory(4 * count, comm)
        tensor = _tensor_of(memory.buffer())
        tensor.fill_(me + 1)
        comm.allreduce(memory.buffer(), dtype="f32", symmetric=True).wait()
        equal(tensor, torch.full((count,), size * (size + 1) / 2))
        memory.barrier()
        _tensor_of(memory.buffer((me + 1) % size))[5] = me
        if tensor.is_cuda:
            torch.cuda.synchronize()
        memory.barrier()
        assert int(tensor[5]) == (me - 1) % size
        memory.close()


def _tensor_of(buffer):
    if isinstance(buffer, memoryview):
        return torch.frombuffer(buffer, dtype=torch.float32)
    return torch.from_dlpack(buffer).view(torch.float32)


CHECKS = [collectives, alike, dropped, of_a_group, memory_of_the_library, symmetric]
