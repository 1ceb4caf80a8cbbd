"""All-gather on two nodes of two, with groups of two blocks for what goes over memory."""

from mscclpp.language import *
from options import parse

options = parse()
n = options.ranks
assert n == 4
with CollectiveProgram(collective=AllGather(n, 1, False), **options.program):
    scratch = [Buffer(r, n) for r in range(n)]
    senders, copiers = ThreadBlockGroup([1, 2]), ThreadBlockGroup([3, 4])
    for r in range(n):
        rank = Rank(r)
        mate, twin = r ^ 1, (r + 2) % n
        far_mate = mate ^ 2
        own = rank.get_input_buffer()[0:1]
        output = rank.get_output_buffer()
        near = {b: MemoryChannel(mate, r) for b in senders.tb_list}
        far = PortChannel(twin, r)

        far.signal(tb=0, data_sync=SyncType.none)
        far.wait(tb=0, data_sync=SyncType.after)
        far.put_with_signal_and_flush(scratch[twin][r : r + 1], own, tb=0)
        far.wait(tb=0, data_sync=SyncType.before)

        for b, end in near.items():
            end.signal(tb=b, data_sync=SyncType.none, relaxed=True)
            end.wait(tb=b, data_sync=SyncType.after, relaxed=True)
        near[1].put(scratch[mate][r : r + 1], own, tb_group=senders)
        for b, end in near.items():
            end.signal(tb=b, data_sync=SyncType.before)
            end.wait(tb=b, data_sync=SyncType.after)
        rank.copy(output[mate : mate + 1], scratch[r][mate : mate + 1], tb_group=senders)
        rank.copy(output[r : r + 1], own, tb_group=copiers)
        rank.barrier([0, 1, 2, 3, 4])

        come = scratch[r][twin : twin + 1]
        near[1].put(scratch[mate][twin : twin + 1], come, tb_group=senders)
        for b, end in near.items():
            end.signal(tb=b, data_sync=SyncType.before)
            end.wait(tb=b, data_sync=SyncType.after)
        their = slice(far_mate, far_mate + 1)
        rank.copy(output[their], scratch[r][their], tb_group=senders)
        rank.copy(output[twin : twin + 1], come, tb_group=copiers)
    print(JSON())
