"""Device memory that a communicator takes, under PyTorch: a library of NCCL's interface, and NCCL.

    python3 tests/gpu/nccl/memory_table.py --library /opt/mscclc/libnccl.so.2 [--ranks N] [--most BYTES]

Starts N processes (default: as many as GPUs) twice, with the library in front of NCCL and without.
Each makes the same collectives, from 1 KiB to --most (1 GiB), in f32 and i32, and says how much less
memory its GPU has free after them than before the process group was made; tensors do not count.
Prints a line for each collective, in the order in which they were made, and the sums: with the
library, and of NCCL alone.
"""
import argparse

import nccl_ranks
import torch
import torch.distributed as dist

MIB = 1 << 20


KINDS = 5


def calls(n, count, dtype):
    """As (name, what makes it with a message of `count` elements): those that PyTorch makes by NCCL's
    collectives. The others are sends and receives to it, which plans do not serve."""
    whole = torch.ones(count, dtype=dtype, device="cuda")
    other = torch.ones(count, dtype=dtype, device="cuda")
    part = whole[:count // n]
    return [
        ("all_reduce", lambda: dist.all_reduce(whole)),
        ("all_gather", lambda: dist.all_gather_into_tensor(other, part)),
        ("reduce_scatter", lambda: dist.reduce_scatter_tensor(part, other)),
        ("broadcast", lambda: dist.broadcast(whole, 0)),
        ("reduce", lambda: dist.reduce(whole, 0)),
    ]


def free_memory():
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info()[0]


def sizes(most):
    size = 1024
    while size <= most:
        yield size
        size *= 2


def worker(rank, n, most):
    torch.cuda.set_device(rank)
    torch.ones(1, device="cuda").add_(1)  # the context, and a kernel
    last = free_memory()
    dist.init_process_group("nccl", rank=rank, world_size=n)
    for index in range(KINDS):
        name = ""
        for dtype in (torch.float32, torch.int32):
            for size in sizes(most):
                name, make = calls(n, size // 4 // n * n, dtype)[index]
                make()
                del make
        free = free_memory()
        print(f"{rank} {name} {last - free}", flush=True)
        last = free
    dist.destroy_process_group()


def run(n, most, library):
    """By collective: the most that a rank took."""
    taken, more = {}, {"MSCCLC_NCCL_COMM": "lazy"} if library else {}
    for line in nccl_ranks.run(__file__, n, library, "--most", str(most), **more):
        _, name, count = line.split()
        taken[name] = max(taken.get(name, 0), int(count))
    return taken


def main():
    parser = nccl_ranks.add_ranks(argparse.ArgumentParser(), torch.cuda.device_count())
    parser.add_argument("--library")
    parser.add_argument("--most", type=int, default=1 << 30)
    options = nccl_ranks.options_of(parser, lambda o: worker(o.worker, o.ranks, o.most))
    ours = run(options.ranks, options.most, options.library)
    nccl = run(options.ranks, options.most, None)
    print(f"{options.ranks} ranks, f32 and i32, to {options.most // MIB} MiB; MiB of a GPU:")
    for name in ours:
        print(f"{name:16} {ours[name] / MIB:8.0f} {nccl[name] / MIB:8.0f}")
    print(f"{'all':16} {sum(ours.values()) / MIB:8.0f} {sum(nccl.values()) / MIB:8.0f}")


if __name__ == "__main__":
    main()
