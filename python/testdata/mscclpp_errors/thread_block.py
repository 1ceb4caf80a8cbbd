from mscclpp.language import *

with CollectiveProgram("thread_block", AllGather(2, 1, True), 2):
    MemoryChannel(1, 0).signal(tb=10**18)
