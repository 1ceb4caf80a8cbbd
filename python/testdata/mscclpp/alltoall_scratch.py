"""All-to-all in place through scratch, a block for each other rank; --pipeline: two, in units."""

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
    pairs = [(r, p) for r in range(n) for p in range(n) if p != r]
    for pair in pairs:
        data[pair] = MemoryChannel(pair[1], pair[0])
        if options.pipeline:
            ready[pair] = MemoryChannel(pair[1], pair[0])
    sent = [[Semaphore(r, 0) for _ in range(n)] for r in range(n)] if options.pipeline else None
    for r, p in pairs:
        rank, b = Rank(r), slot(r, p)
        mine = rank.get_input_buffer()[p : p + 1]
        theirs, come = scratch[p][slot(p, r) : slot(p, r) + 1], scratch[r][b : b + 1]
        if not options.pipeline:
            data[r, p].signal(tb=b, relaxed=True)
            data[r, p].wait(tb=b, relaxed=True)
            data[r, p].put(theirs, mine, tb=b)
            data[r, p].signal(tb=b, data_sync=SyncType.before)
            data[r, p].wait(tb=b, data_sync=SyncType.after)
            rank.copy(mine, come, tb=b)
            continue
        ready[r, p].signal(tb=b, relaxed=True)
        ready[r, p].wait(tb=b, relaxed=True)
        with LoopIterationContext(unit=2**19, num_chunks=1):
            data[r, p].put(theirs, mine, tb=b)
            data[r, p].signal(tb=b)
            sent[r][b].release(tb=b)
            sent[r][b].acquire(tb=n - 1 + b)
            data[r, p].wait(tb=n - 1 + b)
            rank.copy(mine, come, tb=n - 1 + b)
    print(JSON())
