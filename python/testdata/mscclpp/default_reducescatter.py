"""Reduce-scatter in place with packets on two nodes of two, groups of one and of three blocks."""

from mscclpp.language import *
from options import parse

options = parse(
    protocol="LL",
    reuse_resources=True,
    use_double_scratch_buffer=True,
    min_message_size=1024,
    most=2**23,
    no_sync=True,
)
n, gpus = options.ranks, options.gpus_per_node
assert n == 4 and gpus == 2
with CollectiveProgram(collective=ReduceScatter(n, 1, True), **options.program):
    scratch = [Buffer(r, 5) for r in range(n)]
    everyone = ThreadBlockGroup([0, 1, 2])
    for r in range(n):
        rank = Rank(r)
        mate, twin = r ^ 1, (r + 2) % n
        inputs, mine = rank.get_input_buffer(), scratch[r]
        near, far = MemoryChannel(mate, r), PortChannel(twin, r)
        for node in range(2):
            chunk = node * gpus + mate % gpus
            near.put_packets(scratch[mate][node : node + 1], inputs[chunk : chunk + 1], tb=0)
        for node in range(2):
            alone = ThreadBlockGroup([1 + node])
            chunk = inputs[node * gpus + r % gpus : node * gpus + r % gpus + 1]
            packed = mine[2 + node : 3 + node]
            rank.reduce(chunk, [mine[node : node + 1]], tb_group=alone, packet=True)
            rank.copy_packets(packed, chunk, tb_group=alone)
            if node != r // gpus:
                far.read_put_packets(scratch[twin][4:5], packed, tb_group=alone)
        own = inputs[r : r + 1]
        rank.unpack_packets(own, mine[2 + r // gpus : 3 + r // gpus], tb_group=everyone)
        rank.reduce(own, [mine[4:5]], tb_group=everyone, packet=True)
    print(JSON())
