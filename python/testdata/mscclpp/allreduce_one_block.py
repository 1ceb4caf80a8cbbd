"""All-reduce in place with packets in one thread block: chunk p is added up by rank p."""

from mscclpp.language import *
from options import parse

options = parse(protocol="LL")
n = options.ranks
with CollectiveProgram(collective=AllReduce(n, 1, True), **options.program) as program:
    scratch = [Buffer(r, 2 * n) for r in range(n)]
    ends = {(r, p): MemoryChannel(p, r) for r in range(n) for p in range(n) if p != r}
    for r in range(n):
        rank = Rank(r)
        mine = rank.get_input_buffer()
        peers = [p for p in range(n) if p != r]
        for p in peers:
            ends[r, p].put_packets(scratch[p][r : r + 1], mine[p : p + 1], tb=0)
        sum_ = mine[r : r + 1]
        rank.reduce(sum_, [scratch[r][p : p + 1] for p in peers], tb=0, packet=True)
        for p in peers:
            ends[r, p].put_packets(scratch[p][n + r : n + r + 1], sum_, tb=0)
        for p in peers:
            rank.unpack_packets(mine[p : p + 1], scratch[r][n + p : n + p + 1], tb=0)
    print(program.to_json())
