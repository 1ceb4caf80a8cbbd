"""Kernels of plans that are compiled while a job runs: when they come, with which bits, and what they cost.

    python3 tests/gpu/nccl/kernels_come.py --library /opt/mscclc/lib/mscclc/libnccl.so.2 [--ranks N] [--seconds 120]

Starts a process for each GPU, with the library in front of NCCL, four times: MSCCLC_KERNELS=cache with an
empty cache, the same again, =off, and =now with an empty cache. Each makes all-reduces and all-gathers of bf16,
1 KiB to 1 MiB, until all its plans have kernels (or, with off, once), and compares the bits of each result
with those of the first call; captures a graph of 100 all-reduces of 4 KiB at the first calls and one at the end,
compares what both give, and times them. A line for each run: plans with kernels, seconds until the last
came, CPU seconds of the thread that compiles, memory of the process before and after, microseconds a call of
both graphs; then files and bytes of the cache. Ends with 1 where bits differ, or kernels do not come.
"""
import argparse
import glob
import os
import re
import shutil
import tempfile
import time

import nccl_ranks

SIZES = [1 << n for n in range(10, 21, 2)]
IN_GRAPH, REPLAYS = 100, 50


def thread_seconds():
    """CPU time of the thread that compiles."""
    for task in glob.glob("/proc/self/task/*"):
        with open(task + "/comm") as comm:
            if comm.read().strip() != "mscclc-kernels":
                continue
        with open(task + "/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def resident_mb():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def log_counts(path):
    """Executables that were loaded, and those that have kernels, as the runtime's log says."""
    with open(path, errors="replace") as log:
        text = log.read()
    return (len(re.findall(r"executable \d+ is '", text)),
            len(set(re.findall(r"executable (\d+) has compiled kernels", text))))


def worker(rank, ranks, seconds):
    import torch
    import torch.distributed as dist
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks)
    log = os.environ["MSCCLC_DEBUG_FILE"].replace("%p", str(os.getpid()))
    torch.manual_seed(rank)
    inputs = [torch.randn(size // 2, device="cuda").bfloat16() for size in SIZES]

    def calls():
        """Results of an all-reduce and an all-gather of each size, the host waits for each."""
        given = []
        for x in inputs:
            y = x.clone()
            dist.all_reduce(y)
            torch.cuda.synchronize()
            z = x.new_empty(ranks * x.numel())
            dist.all_gather_into_tensor(z, x)
            torch.cuda.synchronize()
            given += [y, z]
        return given

    def capture():
        x = inputs[1].clone()
        stream = torch.cuda.Stream()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(IN_GRAPH):
                x.copy_(inputs[1])
                dist.all_reduce(x)
        return graph, x

    def time_of(graph):
        graph.replay()
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(REPLAYS):
            graph.replay()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / REPLAYS / IN_GRAPH * 1e6

    before = resident_mb()
    begin = time.time()
    first = calls()
    early, early_result = capture()
    wrong, rounds, came = 0, 0, 0.0
    loaded, compiled = log_counts(log)
    done = torch.zeros(1, device="cuda")
    while True:
        rounds += 1
        wrong += sum(not torch.equal(a.view(torch.int16), b.view(torch.int16))
                     for a, b in zip(first, calls()))
        last, (loaded, compiled) = compiled, log_counts(log)
        if compiled != last or rounds == 1:
            came = time.time() - begin
        idle = time.time() - begin - came > 20  # a plan of which no further call is made keeps the interpreter
        over = os.environ["MSCCLC_KERNELS"] == "off" or compiled >= loaded or (compiled > 0 and idle)
        done.fill_(float(over or time.time() - begin > seconds))
        dist.all_reduce(done)  # ranks leave together
        if done.item() == ranks:
            break
    late, late_result = capture()
    times = time_of(early), time_of(late)
    wrong += not torch.equal(early_result.view(torch.int16), late_result.view(torch.int16))
    good = wrong == 0 and (os.environ["MSCCLC_KERNELS"] == "off") == (compiled == 0)
    print(f"rank {rank}: {compiled} of {loaded} plans have kernels, the last after {came:.2f} s and {rounds} rounds; "
          f"{thread_seconds():.2f} CPU s; {before} -> {resident_mb()} MB; graph of the first calls {times[0]:.2f} us, "
          f"of the last {times[1]:.2f}; {wrong} wrong{'' if good else ': FAILED'}", flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library")
    parser.add_argument("--seconds", type=int, default=120)
    options = nccl_ranks.add_ranks(parser, 2).parse_args()
    if options.worker is not None:
        worker(options.worker, options.ranks, options.seconds)
        return
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        cache = folder + "/kernels"
        for mode, fresh in ("cache", True), ("cache", False), ("off", False), ("now", True):
            if fresh:
                shutil.rmtree(cache, ignore_errors=True)
            lines = nccl_ranks.run(
                __file__, options.ranks, options.library, "--seconds", str(options.seconds),
                MSCCLC_KERNELS=mode, MSCCLC_KERNEL_CACHE=cache, MSCCLC_KERNEL_PATH="none", MSCCLC_REQUIRE_PLAN="1",
                MSCCLC_DEBUG="INFO", MSCCLC_DEBUG_SUBSYS="LOAD", MSCCLC_DEBUG_FILE=folder + "/log.%p",
                NCCL_DEBUG="INFO")
            files = glob.glob(cache + "/*.kernels")
            print(f"{mode}, {'an empty cache' if fresh else 'the cache of before'}: {len(files)} files, "
                  f"{sum(map(os.path.getsize, files))} bytes")
            for line in lines:
                if line.startswith("rank ") or "kernels of plans" in line:
                    print("  " + line)
                    failed |= "FAILED" in line
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
