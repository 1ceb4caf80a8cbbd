"""All-to-all in place with packets, a block for each of the others."""

from mscclpp.language import *
from options import parse

options = parse(instances=2, protocol="LL", use_double_scratch_buffer=True)
n = options.ranks
with CollectiveProgram(collective=AllToAll(n, 1, True), **options.program):
    scratch = [Buffer(r, n - 1) for r in range(n)]
    for r in range(n):
        rank = Rank(r)
        mine = rank.get_input_buffer()
        for b, p in enumerate(p for p in range(n) if p != r):
            at = r if r < p else r - 1
            end = MemoryChannel(p, r)
            end.put_packets(scratch[p][at : at + 1], mine[p : p + 1], tb=b)
            rank.unpack_packets(mine[p : p + 1], scratch[r][b : b + 1], tb=b)
    print(JSON())
