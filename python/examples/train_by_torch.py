"""A small model in DistributedDataParallel over backend mscclc; the loss is averaged by a custom op.

    torchrun --nproc-per-node 2 python/examples/train_by_torch.py           on the host
    torchrun --nproc-per-node 2 python/examples/train_by_torch.py cuda      a GPU for each rank
"""

import os
import sys

import torch
import torch.distributed as dist

import mscclc.torch.ops  # torch.ops.mscclc; without it only the backend is found, by its entry point


def main():
    device = torch.device("cpu")
    if sys.argv[1:] == ["cuda"]:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    dist.init_process_group("mscclc")
    torch.manual_seed(0)  # the same model on all ranks
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    model = torch.nn.parallel.DistributedDataParallel(model.to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    torch.manual_seed(1 + dist.get_rank())  # and data of each rank's own
    losses = []
    for _ in range(40):
        inputs = torch.randn(64, 8, device=device)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = torch.ops.mscclc.all_reduce(loss.detach(), "avg", dist.group.WORLD.group_name)
        losses.append(mean.item())
    assert losses[-1] < losses[0] / 2, losses
    if dist.get_rank() == 0:
        print(f"loss {losses[0]:.3f} at first, {losses[-1]:.3f} after {len(losses)} steps")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
