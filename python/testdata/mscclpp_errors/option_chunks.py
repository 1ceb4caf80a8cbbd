from mscclpp.language import *

with CollectiveProgram("option_chunks", AllGather(4, 2**29, True), 4):
    pass
