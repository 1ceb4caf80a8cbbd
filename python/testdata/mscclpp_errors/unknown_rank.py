from mscclpp.language import *

with CollectiveProgram("unknown_rank", AllReduce(2, 1, True), 2):
    Rank(2)
