from mscclpp.language import *

with CollectiveProgram("endless_semaphores", AllGather(2, 1, True), 2):
    while True:
        Semaphore(0, 1)
