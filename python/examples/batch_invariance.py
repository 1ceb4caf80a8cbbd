"""The bits of one row of a batch, whatever the batch: all-reduces in the order of the ranks.

    torchrun --nproc-per-node 4 batch_invariance.py            # on processors
    torchrun --nproc-per-node 2 batch_invariance.py --cuda     # on GPUs

A row of hidden values is all-reduced inside batches of 1 to 512 rows, by mscclc under MSCCLC_ORDER's
contract `ranks`, and by the other backend of the device (gloo or NCCL). It prints in how many batches
the row has other bits than alone.
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


def batches_that_differ(group, place, device):
    """In how many batches the row has other bits than alone, if it is row `place(batch)`."""
    alone, differ = None, 0
    for batch in BATCHES:
        rows = rows_of(batch, dist.get_rank(), device)
        rows = rows.roll(place(batch), 0).contiguous()
        dist.all_reduce(rows, group=group)
        found = rows[place(batch)].cpu()
        alone = found if alone is None else alone
        differ += not torch.equal(alone, found)
    return differ


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuda", action="store_true", help="on GPUs, beside NCCL")
    cuda = parser.parse_args().cuda
    other = "nccl" if cuda else "gloo"
    dist.init_process_group("mscclc", pg_options=mscclc.torch.Options(order="ranks"))
    device = torch.device("cuda", dist.get_rank()) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    others = dist.new_group(backend=other)
    for name, group in (("mscclc", None), (other, others)):
        differ = batches_that_differ(group, lambda batch: batch // 2, device)
        if dist.get_rank() == 0:
            print(f"{name}: other bits in {differ} of {len(BATCHES)} batches", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
