"""All-gather in place on two nodes: to mates by memory, to the twin by port, then what came."""

from mscclpp.language import *
from options import parse

options = parse()
n, gpus = options.ranks, options.gpus_per_node
assert n == 2 * gpus
with CollectiveProgram(collective=AllGather(n, 1, True), **options.program):
    for r in range(n):
        node = r // gpus
        twin = (r + gpus) % n
        mates = [m for m in range(node * gpus, node * gpus + gpus) if m != r]
        output = Rank(r).get_output_buffer()
        near = {m: MemoryChannel(m, r) for m in mates}
        far = PortChannel(twin, r)
        for m in mates:
            near[m].signal(tb=0, relaxed=True)
        for m in mates:
            near[m].wait(tb=0, relaxed=True)
        own = output[r : r + 1]
        for m in mates:
            near[m].put(Rank(m).get_output_buffer()[r : r + 1], own, tb=0)
        far.signal(tb=0)
        far.wait(tb=0)
        far.put_with_signal_and_flush(Rank(twin).get_output_buffer()[r : r + 1], own, tb=0)
        far.wait(tb=0, data_sync=SyncType.after)
        come = slice(twin, twin + 1)
        for m in mates:
            near[m].put(Rank(m).get_output_buffer()[come], output[come], tb=0)
        for m in mates:
            near[m].signal(tb=0)
        for m in mates:
            near[m].wait(tb=0)
    print(JSON())
