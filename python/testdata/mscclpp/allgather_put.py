"""All-gather in place: each rank writes its chunk into the output of the others."""

from mscclpp.language import *
from options import parse

BLOCKS = 4

options = parse(ranks=2)
n = options.ranks
with CollectiveProgram(collective=AllGather(n, 1, True), **options.program):
    group = ThreadBlockGroup(list(range(BLOCKS))) if options.groups else None
    for r in range(n):
        rank = Rank(r)
        mine = rank.get_output_buffer()[r : r + 1]
        for p in range(n):
            if p == r:
                continue
            end = MemoryChannel(p, r)
            end.signal(tb=0, relaxed=True)
            end.wait(tb=0, data_sync=SyncType.none if group else SyncType.after, relaxed=True)
            theirs = Rank(p).get_output_buffer()[r : r + 1]
            if group:
                rank.barrier(group.tb_list)
                end.put(theirs, mine, tb_group=group)
                rank.barrier(group.tb_list)
            else:
                end.put(theirs, mine, tb=0)
            end.signal(tb=0, data_sync=SyncType.before)
            end.wait(tb=0, data_sync=SyncType.after)
    print(JSON())
