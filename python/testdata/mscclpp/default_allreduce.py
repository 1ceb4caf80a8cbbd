"""All-reduce in place with packets on two nodes of two; a group of two blocks, one for the port."""

from mscclpp.language import *
from options import parse

options = parse(
    protocol="LL", reuse_resources=True, use_double_scratch_buffer=True, no_sync=True
)
n, gpus = options.ranks, options.gpus_per_node
assert n == 4 and gpus == 2
with CollectiveProgram(collective=AllReduce(n, 1, True), **options.program):
    scratch = [Buffer(r, 12) for r in range(n)]
    group = ThreadBlockGroup([1, 2])
    for r in range(n):
        rank = Rank(r)
        me, node = r % gpus, r // gpus
        mate, twin = r ^ 1, (r + 2) % n
        near, far = MemoryChannel(mate, r), PortChannel(twin, r)
        inputs, mine = rank.get_input_buffer(), scratch[r]
        own, other = slice(2 * me, 2 * me + 2), slice(2 - 2 * me, 4 - 2 * me)
        near.put_packets(scratch[mate][own], inputs[other], tb_group=group)
        rank.reduce(inputs[own], [mine[other]], tb_group=group, packet=True)
        rank.copy_packets(mine[own], inputs[own], tb_group=group)
        rank.barrier([0, 1, 2])
        far.put_packets(scratch[twin][4 + 2 * node : 6 + 2 * node], mine[own], tb=0)
        rank.reduce(inputs[own], [mine[6 - 2 * node : 8 - 2 * node]], tb_group=group, packet=True)
        sums = mine[4 + 2 * node : 6 + 2 * node]
        rank.copy_packets(sums, inputs[own], tb_group=group)
        near.put_packets(scratch[mate][8 + 2 * me : 10 + 2 * me], inputs[own], tb_group=group)
        rank.unpack_packets(inputs[other], mine[10 - 2 * me : 12 - 2 * me], tb_group=group)
    print(JSON())
