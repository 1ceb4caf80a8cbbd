"""All-reduce over a switch in three blocks that work on three units at once."""

from mscclpp.language import *
from options import parse

options = parse(ranks=2, reuse_resources=True)
n = options.ranks
with CollectiveProgram(collective=AllReduce(n, 1, True), **options.program):
    scratch = [Buffer(r, n) for r in range(n)]
    come = {(r, p): MemoryChannel(p, r) for r in range(n) for p in range(n) if p != r}
    summed = {(r, p): MemoryChannel(p, r) for r in range(n) for p in range(n) if p != r}
    switch = SwitchChannel(list(range(n)), BufferType.scratch)
    for r in range(n):
        rank = Rank(r)
        inputs, outputs = rank.get_input_buffer(), rank.get_output_buffer()
        copied, added = Semaphore(r, 0), Semaphore(r, 0)
        peers = [p for p in range(n) if p != r]
        with LoopIterationContext(unit=2**20, num_chunks=1):
            for c in range(n):
                rank.copy(scratch[r][c : c + 1], inputs[c : c + 1], tb=0)
            for p in peers:
                come[r, p].signal(tb=0, data_sync=SyncType.before)
            for p in peers:
                come[r, p].wait(tb=0, data_sync=SyncType.after)
            copied.release(tb=0)

            copied.acquire(tb=1, data_sync=SyncType.after)
            chunk = scratch[r][r : r + 1]
            switch.at_rank(r).reduce(buffer_offset=r, size=1, dst_chunk=chunk, tb=1)
            switch.at_rank(r).broadcast(chunk, buffer_offset=r, size=1, tb=1)
            for p in peers:
                summed[r, p].signal(tb=1)
            added.release(tb=1)

            added.acquire(tb=2)
            for p in peers:
                summed[r, p].wait(tb=2)
            for c in range(n):
                rank.copy(outputs[c : c + 1], scratch[r][c : c + 1], tb=2)
    print(JSON())
