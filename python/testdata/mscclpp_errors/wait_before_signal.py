from mscclpp.language import *

with CollectiveProgram("wait_before_signal", AllReduce(2, 1, True), 2):
    inputs = [Rank(r).get_input_buffer() for r in range(2)]
    for r in range(2):
        end = MemoryChannel(1 - r, r)
        end.wait(tb=0)
        end.signal(tb=0)
        end.put(inputs[1 - r][r : r + 1], inputs[r][r : r + 1], tb=0)
    print(JSON())
