"""Reduce-scatter in place with packets on two nodes of two."""

from mscclpp.language import *
from options import parse

options = parse(protocol="LL", use_double_scratch_buffer=True)
n = options.ranks
assert n == 4
with CollectiveProgram(collective=ReduceScatter(n, 1, True), **options.program):
    scratch = [Buffer(r, n) for r in range(n)]
    for r in range(n):
        rank = Rank(r)
        mate, twin = r ^ 1, (r + 2) % n
        inputs = rank.get_input_buffer()
        near, far = MemoryChannel(mate, r), PortChannel(twin, r)
        me, other = r % 2, mate % 2
        near.put_packets(scratch[mate][me : me + 1], inputs[mate : mate + 1], tb=0)
        near.put_packets(scratch[mate][2:3], inputs[mate ^ 2 : (mate ^ 2) + 1], tb=0)
        part, going = inputs[twin : twin + 1], scratch[r][me : me + 1]
        rank.reduce(part, [scratch[r][2:3]], tb=0, packet=True)
        rank.copy_packets(going, part, tb=0)
        far.read_put_packets(scratch[twin][3:4], going, tb=0)
        parts = [scratch[r][3:4], scratch[r][other : other + 1]]
        rank.reduce(inputs[r : r + 1], parts, tb=0, packet=True)
    print(JSON())
