"""All-reduce in place of two ranks that work differently: one of every kind of reduction."""

from mscclpp.language import *
from options import parse

options = parse(ranks=2)
blocks = [0, 1] if options.groups else [0]
with CollectiveProgram(collective=AllReduce(2, 2, True), **options.program):
    scratch = [Buffer(r, 4) for r in range(2)]
    inputs = [Rank(r).get_input_buffer() for r in range(2)]
    where = dict(tb_group=ThreadBlockGroup(blocks)) if options.groups else dict(tb=0)
    ends = [[MemoryChannel(1 - r, r) for _ in blocks] for r in range(2)]

    def meet(r):
        """Both ranks have come here."""
        for b in blocks:
            ends[r][b].signal(tb=b)
            ends[r][b].wait(tb=b)

    end = ends[0][0]
    Rank(0).copy(scratch[0][2:4], inputs[0][2:4], **where)
    meet(0)
    end.reduce(inputs[0][0:1], [scratch[1][0:1]], **where)
    end.put(inputs[1][0:1], inputs[0][0:1], **where)
    end.get(scratch[0][1:2], scratch[1][1:2], **where)
    Rank(0).reduce(inputs[0][1:2], [scratch[0][1:2]], **where)
    end.put(inputs[1][1:2], inputs[0][1:2], **where)
    meet(0)

    end = ends[1][0]
    Rank(1).copy(scratch[1][0:2], inputs[1][0:2], **where)
    meet(1)
    end.reduce(inputs[1][2:4], [inputs[0][2:4]], **where)
    Rank(1).copy(scratch[1][2:4], inputs[1][2:4], **where)
    end.put(inputs[0][2:4], scratch[1][2:4], **where)
    meet(1)
    print(JSON())
