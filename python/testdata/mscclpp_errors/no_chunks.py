from mscclpp.language import *

with CollectiveProgram("no_chunks", TestCollective(2, 0, 1), 2):
    MemoryChannel(1, 0).signal(tb=0)
    MemoryChannel(0, 1).wait(tb=0)
