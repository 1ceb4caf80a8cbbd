from mscclpp.language import *

with CollectiveProgram("loop_unit", AllGather(2, 1, True), 2):
    with LoopIterationContext(unit=10**30, num_chunks=1):
        pass
