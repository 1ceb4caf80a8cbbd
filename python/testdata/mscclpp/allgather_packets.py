"""All-gather in place with packets: a block for each rank to send to, and for each to hear from."""

from mscclpp.language import *
from options import parse

options = parse(protocol="LL", use_double_scratch_buffer=True)
n = options.ranks
with CollectiveProgram(collective=AllGather(n, 1, True), **options.program):
    scratch = [Buffer(r, n) for r in range(n)]
    for r in range(n):
        rank = Rank(r)
        output = rank.get_output_buffer()
        peers = [(r + k) % n for k in range(1, n)]
        for b, p in enumerate(peers):
            MemoryChannel(p, r).put_packets(scratch[p][r : r + 1], output[r : r + 1], tb=b)
        for b, p in enumerate(peers):
            rank.unpack_packets(output[p : p + 1], scratch[r][p : p + 1], tb=n - 1 + b)
    print(JSON())
