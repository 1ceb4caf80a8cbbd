"""All-gather in place with packets that a switch stores to all ranks."""

from mscclpp.language import *
from options import parse

options = parse(
    protocol="LL",
    use_double_scratch_buffer=True,
    threads=256,
    min_message_size=1024,
    most=2**20,
    no_sync=True,
)
n = options.ranks
with CollectiveProgram(collective=AllGather(n, 1, True), **options.program):
    scratch = [Buffer(r, n) for r in range(n)]
    switch = SwitchChannel(list(range(n)), BufferType.scratch)
    for r in range(n):
        rank = Rank(r)
        output = rank.get_output_buffer()
        own = scratch[r][r : r + 1]
        rank.copy_packets(own, output[r : r + 1], tb=0)
        switch.at_rank(r).broadcast_packets(own, buffer_offset=r, size=1, tb=0)
        for p in range(n):
            rank.unpack_packets(output[p : p + 1], scratch[r][p : p + 1], tb=p)
    print(JSON())
