from mscclpp.language import *

with CollectiveProgram("loop_twice", AllGather(2, 1, True), 2):
    loop = LoopIterationContext(unit=1024, num_chunks=1)
    for source in range(2):
        with loop:
            MemoryChannel(1 - source, source).signal(tb=0)
