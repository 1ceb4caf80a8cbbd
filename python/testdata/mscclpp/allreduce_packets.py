"""All-reduce in place with packets: chunks go to their owner, sums come back; n blocks a rank."""

from mscclpp.language import *
from options import parse

options = parse(protocol="LL", use_double_scratch_buffer=True, no_sync=True)
n = options.ranks


def slot(rank, sender):
    """Where a rank keeps what it gets from another: its own share needs no slot."""
    return (sender if sender < rank else sender - 1) * n


with CollectiveProgram(collective=AllReduce(n, n, True), **options.program):
    shares = [Buffer(r, (n - 1) * n) for r in range(n)]
    sums = [Buffer(r, (n - 1) * n) for r in range(n)]
    ends = {(r, p): MemoryChannel(p, r) for r in range(n) for p in range(n) if p != r}
    for r in range(n):
        rank = Rank(r)
        mine = rank.get_input_buffer()
        peers = [p for p in range(n) if p != r]
        for b, p in enumerate(peers):
            at = slot(p, r)
            ends[r, p].put_packets(shares[p][at : at + n], mine[p * n : p * n + n], tb=b)
        for b in range(n):
            own = mine[r * n + b : r * n + b + 1]
            parts = [shares[r][slot(r, p) + b : slot(r, p) + b + 1] for p in peers]
            rank.reduce(own, parts, tb=b, packet=True)
            for p in peers:
                at = slot(p, r) + b
                ends[r, p].put_packets(sums[p][at : at + 1], own, tb=b)
            if b != r:
                at = slot(r, b)
                rank.unpack_packets(mine[b * n : b * n + n], sums[r][at : at + n], tb=b)
    print(JSON())
