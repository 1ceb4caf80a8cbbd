from mscclpp.language import *

with CollectiveProgram("many_blocks", AllGather(2, 1, True), 2, instances=65536):
    MemoryChannel(1, 0).signal(tb=1)
    MemoryChannel(0, 1).wait(tb=1)
