"""All-to-all in place in ring order: one block sends, another copies what has come."""

from mscclpp.language import *
from options import parse

options = parse(instances=2)
n = options.ranks


def slot(rank, sender):
    """Where a rank keeps what it gets from another."""
    return sender if sender < rank else sender - 1


with CollectiveProgram(collective=AllToAll(n, 1, True), **options.program):
    scratch = [Buffer(r, n - 1) for r in range(n)]
    data, ready = {}, {}
    for r in range(n):
        for p in range(n):
            if p != r:
                data[r, p] = MemoryChannel(p, r)
                ready[r, p] = MemoryChannel(p, r)
    for r in range(n):
        rank = Rank(r)
        mine = rank.get_input_buffer()
        peers = [p for p in range(n) if p != r]
        sent = [Semaphore(r, 0) for _ in peers]
        for p in peers:
            ready[r, p].signal(tb=0, relaxed=True)
        for p in peers:
            ready[r, p].wait(tb=0, relaxed=True)
        for p in ((r + k) % n for k in range(1, n)):
            theirs = scratch[p][slot(p, r) : slot(p, r) + 1]
            data[r, p].put(theirs, mine[p : p + 1], tb=0)
            data[r, p].signal(tb=0)
            sent[slot(r, p)].release(tb=0)
        for p in ((r - k) % n for k in range(1, n)):
            at = slot(r, p)
            sent[at].acquire(tb=1)
            data[r, p].wait(tb=1)
            rank.copy(mine[p : p + 1], scratch[r][at : at + 1], tb=1)
    print(JSON())
