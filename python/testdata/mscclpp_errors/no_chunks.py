from mscclpp.language import *

with CollectiveProgram("no_chunks", AllReduce(2, 0, True), 2):
    MemoryChannel(1, 0).signal(tb=0)
    MemoryChannel(0, 1).wait(tb=0)
