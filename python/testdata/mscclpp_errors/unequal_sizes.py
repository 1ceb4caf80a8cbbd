from mscclpp.language import *

with CollectiveProgram("unequal_sizes", AllReduce(2, 1, True), 2):
    buffer = Rank(0).get_input_buffer()
    Rank(0).copy(buffer[0:2], Buffer(0, 1)[0:1], tb=0)
