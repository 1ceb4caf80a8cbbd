from mscclpp.language import *

with CollectiveProgram("option_threads", AllGather(2, 1, True), 2, num_threads_per_block=10**9):
    pass
