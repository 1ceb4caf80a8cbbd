from mscclpp.language import *


def exchange(end, mine):
    end.put(mine[1:2], mine[0:1], tb=0)


with CollectiveProgram("other_rank", AllReduce(2, 1, True), 2):
    exchange(MemoryChannel(1, 0), Rank(0).get_input_buffer())
