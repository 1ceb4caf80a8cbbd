"""All-gather with packets on two nodes of two, six blocks, shared scratch."""

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
n = options.ranks
assert n == 4
with CollectiveProgram(collective=AllGather(n, 1, False), **options.program):
    scratch = [Buffer(r, 4) for r in range(n)]
    for r in range(n):
        rank = Rank(r)
        mate, twin = r ^ 1, (r + 2) % n
        own, output = rank.get_input_buffer()[0:1], rank.get_output_buffer()
        near, far = MemoryChannel(mate, r), PortChannel(twin, r)
        rank.copy(output[r : r + 1], own, tb=0)
        near.put_packets(scratch[mate][0:1], own, tb=0)
        rank.unpack_packets(output[mate : mate + 1], scratch[r][0:1], tb=1)
        rank.copy_packets(scratch[r][2:3], own, tb=2)
        far.read_put_packets(scratch[twin][1:2], scratch[r][2:3], tb=2)
        rank.unpack_packets(output[twin : twin + 1], scratch[r][1:2], tb=3)
        near.read_put_packets(scratch[mate][3:4], scratch[r][1:2], tb=4)
        last = mate ^ 2
        rank.unpack_packets(output[last : last + 1], scratch[r][3:4], tb=5)
    print(JSON())
