from mscclpp.language import *

with CollectiveProgram("endless_buffers", AllGather(2, 1, True), 2):
    while True:
        Buffer(0, 1)
