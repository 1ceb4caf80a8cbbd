"""All-reduce in place of two ranks with packets, each op in a block or a group of its own."""

from mscclpp.language import *
from options import parse

options = parse(ranks=2, protocol="LL", use_double_scratch_buffer=True)


def blocks(stage):
    """Where the ops of a stage run."""
    if options.groups:
        return dict(tb_group=ThreadBlockGroup([2 * stage, 2 * stage + 1]))
    return dict(tb=stage)


with CollectiveProgram(collective=AllReduce(2, 1, True), **options.program):
    scratch = [Buffer(r, 3) for r in range(2)]
    for r in range(2):
        rank, p = Rank(r), 1 - r
        inputs = rank.get_input_buffer()
        end = MemoryChannel(p, r)
        own, other = slice(r, r + 1), slice(p, p + 1)
        end.put_packets(scratch[p][other], inputs[other], **blocks(0))
        rank.reduce(inputs[own], [scratch[r][own]], packet=True, **blocks(1))
        if r == 1:
            rank.copy_packets(scratch[r][2:3], inputs[own], **blocks(1))
            end.read_put_packets(scratch[p][own], scratch[r][2:3], **blocks(1))
        else:
            end.put_packets(scratch[p][own], inputs[own], **blocks(1))
        rank.unpack_packets(inputs[other], scratch[r][other], **blocks(2))
    print(JSON())
