"""Collectives through TorchComms, which finds the backend by its entry point.

    torchrun --nproc-per-node 2 python/examples/sum_by_torchcomms.py           on the host
    torchrun --nproc-per-node 2 python/examples/sum_by_torchcomms.py cuda      a GPU for each rank
"""

import os
import sys

import torch
import torchcomms


def main():
    device = torch.device("cpu")
    if sys.argv[1:] == ["cuda"]:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    comm = torchcomms.new_comm("mscclc", device, "example")
    rank, size = comm.get_rank(), comm.get_size()
    data = torch.full((1024,), float(rank), device=device)
    comm.all_reduce(data, torchcomms.ReduceOp.SUM, False)
    rows = torch.zeros(size, 4, device=device)
    work = comm.all_gather_single(rows, torch.full((4,), float(rank), device=device), True)
    work.wait()
    assert data[0].item() == size * (size - 1) / 2, data[0]
    assert rows[:, 0].tolist() == [float(r) for r in range(size)], rows
    print(f"rank {rank} of {size}: the ranks' numbers add up to {data[0].item():g}", flush=True)
    comm.finalize()


if __name__ == "__main__":
    main()
