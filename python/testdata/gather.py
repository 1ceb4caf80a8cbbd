from mscclpp.language import *

with CollectiveProgram("gather", AllGather(2, 1, True), 2):
    outputs = [Rank(r).get_output_buffer() for r in range(2)]
    for r in range(2):
        end = MemoryChannel(1 - r, r)
        end.signal(tb=0, relaxed=True)
        end.wait(tb=0, relaxed=True)
        end.put(outputs[1 - r][r : r + 1], outputs[r][r : r + 1], tb=0)
        end.signal(tb=0)
        end.wait(tb=0)
