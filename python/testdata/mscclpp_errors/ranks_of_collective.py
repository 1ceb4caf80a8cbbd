from mscclpp.language import *

with CollectiveProgram("ranks_of_collective", AllGather(10**9, 1, True), 2):
    pass
