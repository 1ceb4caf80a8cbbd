"""All-gather in place by direct puts, which every rank begins with its right neighbour."""

from mscclpp.language import *
from options import parse

options = parse()
n = options.ranks
with CollectiveProgram(collective=AllGather(n, 1, True), **options.program):
    ends = {(r, p): MemoryChannel(p, r) for r in range(n) for p in range(n) if p != r}
    for r in range(n):
        mine = Rank(r).get_output_buffer()[r : r + 1]
        peers = [p for p in range(n) if p != r]
        for p in peers:
            ends[r, p].signal(tb=0, relaxed=True)
        for p in peers:
            ends[r, p].wait(tb=0, relaxed=True)
        for k in range(1, n):
            p = (r + k) % n
            ends[r, p].put(Rank(p).get_output_buffer()[r : r + 1], mine, tb=0)
        for p in peers:
            ends[r, p].signal(tb=0, relaxed=True)
        for p in peers:
            ends[r, p].wait(tb=0, relaxed=True)
    print(JSON())
