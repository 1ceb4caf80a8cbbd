"""The bits of one row of a batch, whatever the batch: all-reduces in the order of the ranks.

    torchrun --nproc-per-node 4 batch_invariance.py            # on processors
    torchrun --nproc-per-node 2 batch_invariance.py --cuda     # on GPUs

A row of hidden values is all-reduced inside batches of 1 to 512 rows, by mscclc under MSCCLC_ORDER's
contract `ranks`, by the other backend of the device (gloo or NCCL), and on GPUs by the kernels of
PyTorch's symmetric memory. It prints in how many batches the row has other bits than alone, and in how
many two ranks get other bits. A sum of two ranks has one order: only three and more differ.
"""

import argparse

import mscclc.torch
import torch
import torch.distributed as dist

HIDDEN = 2880
BATCHES = [1, 2, 3, 8, 13, 32, 64, 100, 256, 512]


def rows_of(batch, rank, device):
    """The first row is the same in every batch."""
    random = torch.Generator().manual_seed(rank)
    row = torch.randn(HIDDEN, generator=random)
    others = torch.randn(batch - 1, HIDDEN, generator=random)
    return torch.cat([row[None], others]).to(device)


def by_group(group):
    def reduced(rows):
        dist.all_reduce(rows, group=group)
        return rows

    return reduced


def by_symmetric_memory(kernel, group, device):
    """One of torch.ops.symm_mem, on the first rows of a buffer that all ranks know."""
    import torch.distributed._symmetric_memory as memory

    buffer = memory.empty(BATCHES[-1], HIDDEN, device=device)
    handle = memory.rendezvous(buffer, group)

    def reduced(rows):
        own = buffer[: len(rows)]
        handle.barrier()  # all have taken what was there
        own.copy_(rows)
        handle.barrier()
        return getattr(torch.ops.symm_mem, kernel)(own, "sum", group.group_name).clone()

    return reduced


def bits_that_differ(reduced, device):
    """In how many batches the row has other bits than alone, and in how many those of rank 0 are others."""
    alone, differ, apart = None, 0, 0
    for batch in BATCHES:
        place = batch // 2
        rows = rows_of(batch, dist.get_rank(), device).roll(place, 0).contiguous()
        found = reduced(rows)[place].contiguous()
        first = found.clone()
        dist.broadcast(first, 0)
        alone = found.clone() if alone is None else alone
        differ += not torch.equal(alone, found)
        apart += not torch.equal(first, found)
    most = torch.tensor([differ, apart], device=device)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    return most.tolist()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuda", action="store_true", help="on GPUs, beside NCCL and symmetric memory")
    cuda = parser.parse_args().cuda
    other = "nccl" if cuda else "gloo"
    dist.init_process_group("mscclc", pg_options=mscclc.torch.Options(order="ranks"))
    device = torch.device("cuda", dist.get_rank()) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    others = dist.new_group(backend=other)
    contenders = [("mscclc", by_group(None)), (other, by_group(others))]
    if cuda:
        for kernel in ("one_shot_all_reduce", "two_shot_all_reduce_"):
            contenders.append((kernel, by_symmetric_memory(kernel, others, device)))
    for name, reduced in contenders:
        differ, apart = bits_that_differ(reduced, device)
        if dist.get_rank() == 0:
            print(
                f"{name}: other bits in {differ} of {len(BATCHES)} batches, ranks differ in {apart}", flush=True
            )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
