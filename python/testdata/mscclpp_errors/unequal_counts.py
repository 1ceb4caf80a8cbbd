from mscclpp.language import *

with CollectiveProgram("unequal_counts", AllReduce(2, 1, True), 2):
    end = MemoryChannel(1, 0)
    end.signal(tb=0)
    end.signal(tb=0)
    MemoryChannel(0, 1).wait(tb=0)
    print(JSON())
