from mscclpp.language import *

for name in ("one", "two"):
    with CollectiveProgram(name, AllReduce(2, 1, True), 2):
        Rank(0).barrier([0])
