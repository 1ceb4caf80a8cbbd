from mscclpp.language import *


def build():
    with CollectiveProgram("python_error", AllReduce(2, 1, True), 2):
        Rank(0).copy(missing, tb=0)


build()
