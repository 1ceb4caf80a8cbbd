from mscclpp.language import *

with CollectiveProgram("semaphore_value", AllGather(2, 1, True), 2):
    Semaphore(0, 2**32)
