from mscclpp.language import *

with CollectiveProgram("endless_channels", AllGather(2, 1, True), 2):
    while True:
        MemoryChannel(1, 0)
