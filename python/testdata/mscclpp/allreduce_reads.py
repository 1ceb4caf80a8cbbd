"""All-reduce in place: each rank reads its chunks everywhere, and writes the sums back."""

from mscclpp.language.channel import MemoryChannel
from mscclpp.language.collectives import AllReduce
from mscclpp.language.general import JSON
from mscclpp.language.internal.types import SyncType
from mscclpp.language.program import CollectiveProgram
from mscclpp.language.rank import Rank
from options import parse

BLOCKS = 8

options = parse()
ends_of_program = SyncType.none if options.no_outer_syncs else SyncType.both
n = options.ranks
with CollectiveProgram(collective=AllReduce(n, BLOCKS, True), **options.program):
    ends = {
        (r, b, p): MemoryChannel(p, r)
        for r in range(n)
        for b in range(BLOCKS)
        for p in range(n)
        if p != r
    }
    inputs = [Rank(r).get_input_buffer() for r in range(n)]
    for r in range(n):
        peers = [p for p in range(n) if p != r]
        for b in range(BLOCKS):
            at = slice(r * BLOCKS + b, r * BLOCKS + b + 1)
            mine = inputs[r][at]
            for p in peers:
                ends[r, b, p].signal(tb=b, data_sync=ends_of_program, relaxed=True)
            for p in peers:
                ends[r, b, p].wait(tb=b, data_sync=SyncType.after, relaxed=True)
            for p in peers:
                ends[r, b, p].reduce(mine, [inputs[p][at]], tb=b)
            for p in peers:
                ends[r, b, p].put(inputs[p][at], mine, tb=b)
            for p in peers:
                ends[r, b, p].signal(tb=b, data_sync=SyncType.before)
            for p in peers:
                ends[r, b, p].wait(tb=b, data_sync=ends_of_program)
    print(JSON())
