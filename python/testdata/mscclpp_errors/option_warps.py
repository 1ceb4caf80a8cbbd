from mscclpp.language import *

with CollectiveProgram("option_warps", AllGather(2, 1, True), 2, num_threads_per_block=100):
    pass
