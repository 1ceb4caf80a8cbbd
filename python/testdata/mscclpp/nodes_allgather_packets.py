"""All-gather in place with packets on two nodes of two: over a port, and over memory."""

from mscclpp.language import *
from options import parse

options = parse(protocol="LL", use_double_scratch_buffer=True)
n = options.ranks
assert n == 4
with CollectiveProgram(collective=AllGather(n, 1, True), **options.program):
    scratch = [Buffer(r, n) for r in range(n)]
    for r in range(n):
        rank = Rank(r)
        mate, twin = r ^ 1, (r + 2) % n
        output = rank.get_output_buffer()
        own = scratch[r][r : r + 1]
        port_block = 1 if r % 2 else 0
        memory_block = 1 - port_block
        rank.copy_packets(own, output[r : r + 1], tb=r)
        near, far = [MemoryChannel(mate, r) for _ in range(2)], PortChannel(twin, r)
        come = slice(twin, twin + 1)
        near[0].read_put_packets(scratch[mate][r : r + 1], own, tb=memory_block)
        near[1].read_put_packets(scratch[mate][come], scratch[r][come], tb=memory_block)
        far.read_put_packets(scratch[twin][r : r + 1], own, tb=port_block)
        for k in range(1, n):
            p = (r + k) % n
            rank.unpack_packets(output[p : p + 1], scratch[r][p : p + 1], tb=k)
    print(JSON())
