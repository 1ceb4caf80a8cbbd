from mscclpp.language import *

with CollectiveProgram("group", AllGather(2, 1, True), 2):
    ThreadBlockGroup(range(10**9))
