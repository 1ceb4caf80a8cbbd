from mscclpp.language import *

with CollectiveProgram("json_in_loop", AllGather(2, 1, True), 2):
    with LoopIterationContext(unit=1024, num_chunks=1):
        MemoryChannel(1, 0).signal(tb=0)
        print(JSON())
