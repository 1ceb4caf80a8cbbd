"""What an eager call costs the processor, before and after a first CUDA graph: ours, and NCCL.

    python3 tests/gpu/nccl/call_cost.py --library /opt/mscclc/lib/mscclc/libnccl.so.2 [--ranks N] [--rounds N]

Starts a process for each GPU, with the library in front of NCCL, the same with
NCCL_GRAPH_MIXING_SUPPORT=0, and with NCCL alone, in turns, --rounds times. Each process makes
all-reduces of 1 KiB on a stream of its own, 100 at a time: by the C interface (ctypes takes the same
time for all), and by PyTorch. A line for each: microseconds a call, first on the host until the calls
are queued, then until they have ended; before a capture of one call, after it, and with a launch of
the graph before each call. Medians of rank 0; rounds show what varies between processes.
"""
import argparse
import ctypes
import os
import time

import nccl_ranks
import torch
import torch.distributed as dist

COUNT, FLOAT, SUM, CALLS, SAMPLES = 256, 7, 0, 100, 21
P = ctypes.c_void_p


def communicator(rank, n, store):
    """An all-reduce of the C interface, as a function of a tensor and a stream, and what ends it."""
    nccl = ctypes.CDLL("libnccl.so.2")
    nccl.ncclGetLastError.restype = ctypes.c_char_p

    def must(code):
        if code != 0:
            raise SystemExit(f"NCCL: {code}: {nccl.ncclGetLastError(None).decode()}")
    unique = nccl_ranks.UniqueId()
    if rank == 0:
        must(nccl.ncclGetUniqueId(ctypes.byref(unique)))
        store.set("id", bytes(unique).hex())
    unique = nccl_ranks.UniqueId.from_buffer_copy(bytes.fromhex(store.get("id").decode()))
    comm = P()
    nccl.ncclCommInitRank.argtypes = [P, ctypes.c_int, nccl_ranks.UniqueId, ctypes.c_int]
    must(nccl.ncclCommInitRank(ctypes.byref(comm), n, unique, rank))
    nccl.ncclAllReduce.argtypes = [P, P, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, P, P]
    call = nccl.ncclAllReduce

    def all_reduce(x, stream):
        if call(x, x, COUNT, FLOAT, SUM, comm, stream) != 0:
            raise SystemExit(nccl.ncclGetLastError(None).decode())
    return all_reduce, lambda: must(nccl.ncclCommDestroy(comm))


def sample(barrier, call):
    """Microseconds a call: until queued, until ended."""
    queued, ended = [], []
    for _ in range(SAMPLES):
        torch.cuda.synchronize()
        barrier()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        queued.append(time.perf_counter() - begin)
        torch.cuda.synchronize()
        ended.append(time.perf_counter() - begin)
    return [sorted(times)[SAMPLES // 2] / CALLS * 1e6 for times in (queued, ended)]


def phases(barrier, call, stream):
    """Before a capture, after it, and beside launches of the graph."""
    with torch.cuda.stream(stream):
        for _ in range(20):
            call()
        before = sample(barrier, call)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            call()
        after = sample(barrier, call)

        def beside():
            graph.replay()
            call()
        times = [before, after, sample(barrier, beside)]
        torch.cuda.synchronize()
        del graph
        return times


def worker(rank, n):
    torch.cuda.set_device(rank)
    store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), n, rank == 0)
    rounds = [0]

    def barrier():
        rounds[0] += 1
        store.add(f"round {rounds[0]}", 1)
        while store.add(f"round {rounds[0]}", 0) < n:
            pass
    all_reduce, end = communicator(rank, n, store)
    stream = torch.cuda.Stream()
    x = torch.zeros(COUNT, device="cuda")
    by_interface = phases(barrier, lambda: all_reduce(x.data_ptr(), stream.cuda_stream), stream)
    end()
    dist.init_process_group("nccl", store=dist.PrefixStore("group", store), rank=rank, world_size=n,
                            device_id=torch.device("cuda", rank))
    by_torch = phases(barrier, lambda: dist.all_reduce(x), stream)
    if rank == 0:
        for name, times in (("C", by_interface), ("PyTorch", by_torch)):
            print("RESULT", name, *(f"{t:.2f}" for phase in times for t in phase), flush=True)
    barrier()
    dist.destroy_process_group()


def run(n, library, mixing):
    """By interface: the three phases' times."""
    results, more = {}, {} if mixing else {"NCCL_GRAPH_MIXING_SUPPORT": "0"}
    for line in nccl_ranks.run(__file__, n, library, **more):
        if line.startswith("RESULT"):
            _, name, *times = line.split()
            results[name] = [float(t) for t in times]
    return results


def main():
    parser = nccl_ranks.add_ranks(argparse.ArgumentParser(), torch.cuda.device_count())
    parser.add_argument("--library", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=3)
    options = nccl_ranks.options_of(parser, lambda o: worker(o.worker, o.ranks))
    kinds = [(os.path.basename(path), path, True) for path in options.library]
    kinds.append(("  mixing off", kinds[0][1], False))
    kinds.append(("NCCL", None, True))
    print(f"{options.ranks} ranks, us a call: queued and ended, before a capture, after it, and of a "
          "graph and a call in turns", flush=True)
    for _ in range(options.rounds):
        for name, library, mixing in kinds:
            for interface, times in run(options.ranks, library, mixing).items():
                text = "  ".join(f"{q:6.2f} {e:6.2f}" for q, e in zip(times[::2], times[1::2]))
                print(f"{name:24} {interface:8} {text}", flush=True)


if __name__ == "__main__":
    main()
