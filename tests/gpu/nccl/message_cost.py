"""What sends and receives cost: the first one of a direction and later ones, on two GPUs.

    LD_PRELOAD=/opt/mscclc/lib/mscclc/libnccl.so.2 python3 tests/gpu/nccl/message_cost.py

One thread drives both GPUs by the C interface: in a group, each rank sends to the other. A line for
each size: milliseconds on the host for the first group, device memory that it took, then the time of
a later group, in microseconds. All results are compared. Without LD_PRELOAD the same by NCCL.
"""
import ctypes
import sys
import time

import torch

CHAR = 0
SIZES = [8, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 16 << 20, 256 << 20]
GROUPS = 50

nccl = ctypes.CDLL("libnccl.so.2")
nccl.ncclGetLastError.restype = ctypes.c_char_p
P, Z = ctypes.c_void_p, ctypes.c_size_t


def must(code):
    """A call of NCCL's that has to succeed."""
    if code != 0:
        raise SystemExit(f"NCCL: {code}: {nccl.ncclGetLastError(None).decode()}")


def used():
    """Device memory in use on both GPUs, in MiB."""
    return sum(total - free for free, total in map(torch.cuda.mem_get_info, range(2))) / 2**20


def main():
    comms = (P * 2)()
    must(nccl.ncclCommInitAll(comms, 2, None))
    streams = [torch.cuda.Stream(rank) for rank in range(2)]
    sent = [torch.randint(0, 100, (max(SIZES),), dtype=torch.uint8, device=rank) for rank in range(2)]
    got = [torch.empty_like(t) for t in sent]

    def wait():
        for rank in range(2):
            torch.cuda.synchronize(rank)

    def group(count):
        must(nccl.ncclGroupStart())
        for rank in range(2):
            stream = P(streams[rank].cuda_stream)
            arguments = Z(count), CHAR, 1 - rank, P(comms[rank]), stream
            must(nccl.ncclSend(P(sent[rank].data_ptr()), *arguments))
            must(nccl.ncclRecv(P(got[rank].data_ptr()), *arguments))
        must(nccl.ncclGroupEnd())

    wrong = 0
    print(f"{'bytes':>10} {'first, ms':>10} {'MiB':>8} {'later, us':>10}")
    for count in SIZES:
        wait()
        memory, begin = used(), time.perf_counter()
        group(count)
        first = time.perf_counter() - begin
        wait()
        memory = used() - memory
        begin = time.perf_counter()
        for _ in range(GROUPS):
            group(count)
        wait()
        later = (time.perf_counter() - begin) / GROUPS
        wrong += sum(not torch.equal(got[r][:count], sent[1 - r].to(got[r].device)[:count])
                     for r in range(2))
        print(f"{count:>10} {first * 1e3:>10.1f} {memory:>8.0f} {later * 1e6:>10.1f}", flush=True)
    for comm in comms:
        must(nccl.ncclCommDestroy(P(comm)))
    print(f"{wrong} wrong")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
