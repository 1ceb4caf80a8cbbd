"""Device memory that captures of calls of ever new sizes keep once their graphs are gone.

    python3 tests/gpu/nccl/graph_memory.py --library /opt/mscclc/lib/mscclc/libnccl.so.2 [--ranks N]
        [--rounds 12] [--sizes 30]

Starts a process for each GPU, with the library in front of NCCL and with NCCL alone. Each captures
all-reduces of --sizes new sizes a round, one a graph, replays every graph twice and destroys it. The
sizes of every round spread from 4 KiB to 4 MiB, so that the first two rounds load all plans.
Prints how much less memory the GPU has free after each round than after the second, and exits with
1 if the library has less after the last round than halfway.
"""
import argparse
import gc
import sys

import nccl_ranks
import torch
import torch.distributed as dist

KIB = 1 << 10


def worker(options):
    torch.cuda.set_device(options.worker)
    dist.init_process_group("nccl", rank=options.worker, world_size=options.ranks,
                            device_id=torch.device("cuda", options.worker))
    data = torch.ones(1 << 20, device="cuda")
    dist.all_reduce(data[:256])
    free, step = [], data.numel() // (options.rounds * options.sizes)
    for number in range(options.rounds):
        for i in range(options.sizes):
            part = data[:(i * options.rounds + number + 1) * step]
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                dist.all_reduce(part)
            graph.replay()
            graph.replay()
            torch.cuda.synchronize()
            del graph
        gc.collect()
        torch.cuda.empty_cache()
        free.append(torch.cuda.mem_get_info()[0])
    if options.worker == 0:
        print(" ".join(str((free[1] - one) // KIB) for one in free), flush=True)
    dist.destroy_process_group()


def main():
    parser = nccl_ranks.add_ranks(argparse.ArgumentParser(), torch.cuda.device_count())
    parser.add_argument("--library")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--sizes", type=int, default=30)
    options = nccl_ranks.options_of(parser, worker)
    kept = {}
    for name, library in (("mscclc", options.library), ("NCCL", None)):
        lines = nccl_ranks.run(__file__, options.ranks, library, "--rounds", str(options.rounds),
                               "--sizes", str(options.sizes))
        kept[name] = [int(word) for word in lines[0].split()]
        print(f"{name}: KiB less than after the second of {options.rounds} rounds of "
              f"{options.sizes} sizes: {' '.join(map(str, kept[name]))}")
    return 1 if kept["mscclc"][-1] > kept["mscclc"][options.rounds // 2] else 0


if __name__ == "__main__":
    sys.exit(main())
