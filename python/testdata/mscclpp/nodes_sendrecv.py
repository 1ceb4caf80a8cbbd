"""Every rank sends to the next over ports."""

from mscclpp.language import *
from options import parse

options = parse(instances=2)
n = options.ranks
with CollectiveProgram(collective=SendRecv(n, 1, False), **options.program):
    right = [PortChannel((r + 1) % n, r) for r in range(n)]
    left = [PortChannel((r - 1) % n, r) for r in range(n)]
    for r in range(n):
        left[r].signal(tb=0, data_sync=SyncType.none)
        right[r].wait(tb=0, data_sync=SyncType.after)
        theirs = Rank((r + 1) % n).get_output_buffer()[0:1]
        right[r].put_with_signal(theirs, Rank(r).get_input_buffer()[0:1], tb=0)
        left[r].wait(tb=0, data_sync=SyncType.none)
    print(JSON())
