"""All-gather with packets that are made once and forwarded to each of the others."""

from mscclpp.language import *
from options import parse

options = parse(protocol="LL", use_double_scratch_buffer=True)
n = options.ranks
with CollectiveProgram(collective=AllGather(n, 1, True), **options.program):
    come = [Buffer(r, n) for r in range(n)]
    going = [Buffer(r, n) for r in range(n)]
    for r in range(n):
        rank = Rank(r)
        own = going[r][r : r + 1]
        rank.copy_packets(own, rank.get_input_buffer()[0:1], tb=0)
        peers = [(r + k) % n for k in range(1, n)]
        for p in peers:
            MemoryChannel(p, r).read_put_packets(come[p][r : r + 1], own, tb=0)
        for p in peers:
            rank.unpack_packets(rank.get_output_buffer()[p : p + 1], come[r][p : p + 1], tb=0)
    print(JSON())
