from mscclpp.language import *

with CollectiveProgram("scratch_size", AllGather(2, 1, True), 2):
    Buffer(0, 10**9)
    Buffer(0, 2 * 10**9)
