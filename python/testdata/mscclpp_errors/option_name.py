from mscclpp.language import *

with CollectiveProgram(5, AllGather(2, 1, True), 2):
    pass
