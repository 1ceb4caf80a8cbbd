"""All-gather in place of two ranks with packets: one writes them, the other forwards them."""

from mscclpp.language import *
from options import parse

options = parse(ranks=2, protocol="LL", use_double_scratch_buffer=True)


def blocks(stage):
    """Where the ops of a stage run."""
    if options.groups:
        return dict(tb_group=ThreadBlockGroup([2 * stage, 2 * stage + 1]))
    return dict(tb=stage)


with CollectiveProgram(collective=AllGather(2, 1, True), **options.program):
    scratch = [Buffer(r, 2) for r in range(2)]
    outputs = [Rank(r).get_output_buffer() for r in range(2)]
    MemoryChannel(1, 0).put_packets(scratch[1][0:1], outputs[0][0:1], **blocks(0))
    Rank(0).unpack_packets(outputs[0][1:2], scratch[0][1:2], **blocks(1))
    Rank(1).copy_packets(scratch[1][1:2], outputs[1][1:2], **blocks(0))
    MemoryChannel(0, 1).read_put_packets(scratch[0][1:2], scratch[1][1:2], **blocks(1))
    Rank(1).unpack_packets(outputs[1][0:1], scratch[1][0:1], **blocks(2))
    print(JSON())
