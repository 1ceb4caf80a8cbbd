"""Reduce-scatter in place on two nodes of two: the mate's part by reading, the twin's by port."""

from mscclpp.language import *
from options import parse

options = parse()
n = options.ranks
assert n == 4
with CollectiveProgram(collective=ReduceScatter(n, 1, True), **options.program):
    scratch = [Buffer(r, 1) for r in range(n)]
    for r in range(n):
        rank = Rank(r)
        mate, twin = r ^ 1, (r + 2) % n
        inputs, theirs = rank.get_input_buffer(), Rank(mate).get_input_buffer()
        near, far = MemoryChannel(mate, r), PortChannel(twin, r)
        near.signal(tb=0, relaxed=True)
        near.wait(tb=0, relaxed=True)
        for c in (r, twin):
            near.reduce(inputs[c : c + 1], [theirs[c : c + 1]], tb=0)
        far.signal(tb=0)
        far.wait(tb=0)
        far.put_with_signal(scratch[twin][0:1], inputs[twin : twin + 1], tb=0)
        far.wait(tb=0, data_sync=SyncType.after)
        rank.reduce(inputs[r : r + 1], [scratch[r][0:1]], tb=0)
        near.signal(tb=0, relaxed=True)
        near.wait(tb=0, relaxed=True)
    print(JSON())
