from mscclpp.language import *

with CollectiveProgram("option_huge_chunk_factor", AllGather(2, 10**9999, True), 2):
    pass
