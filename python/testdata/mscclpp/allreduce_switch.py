"""All-reduce in place over a switch: each rank adds up its chunk and stores the sum to all."""

from contextlib import nullcontext

from mscclpp.language import *
from options import parse

options = parse()
n = options.ranks
with CollectiveProgram(collective=AllReduce(n, 1, True), **options.program):
    ends = {(r, p): MemoryChannel(p, r) for r in range(n) for p in range(n) if p != r}
    switch = SwitchChannel(rank_list=list(range(n)), buffer_type=BufferType.input)
    for r in range(n):
        mine = [ends[r, p] for p in range(n) if p != r]
        for end in mine:
            end.signal(tb=0, relaxed=True)
        for end in mine:
            end.wait(tb=0, relaxed=True)
        with LoopIterationContext(unit=2**20, num_chunks=1) if options.pipeline else nullcontext():
            chunk = Rank(r).get_input_buffer()[r : r + 1]
            view = switch.at_rank(r)
            view.reduce(buffer_offset=r, size=1, dst_chunk=chunk, tb=0)
            view.broadcast(src_chunk=chunk, buffer_offset=r, size=1, tb=0)
        for end in mine:
            end.signal(tb=0, relaxed=True)
        for end in mine:
            end.wait(tb=0, relaxed=True)
    print(JSON())
