"""All-gather in place over a switch: each rank stores its chunk to all."""

from mscclpp.language import *
from options import parse

options = parse(threads=256)
n = options.ranks
with CollectiveProgram(collective=AllGather(n, 1, True), **options.program):
    ends = {(r, p): MemoryChannel(p, r) for r in range(n) for p in range(n) if p != r}
    switch = SwitchChannel(list(range(n)), BufferType.output)
    for r in range(n):
        mine = [ends[r, p] for p in range(n) if p != r]
        for end in mine:
            end.signal(tb=0, relaxed=True)
        for end in mine:
            end.wait(tb=0, relaxed=True)
        chunk = Rank(r).get_output_buffer()[r : r + 1]
        switch.at_rank(r).broadcast(src_chunk=chunk, buffer_offset=r, size=1, tb=0)
        for end in mine:
            end.signal(tb=0, relaxed=True)
        for end in mine:
            end.wait(tb=0, relaxed=True)
    print(JSON())
