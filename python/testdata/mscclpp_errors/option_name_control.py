from mscclpp.language import *

with CollectiveProgram("a\x00b", AllGather(2, 1, True), 2):
    pass
