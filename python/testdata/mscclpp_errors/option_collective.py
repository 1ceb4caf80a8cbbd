from mscclpp.language import *

with CollectiveProgram("option_collective", "allgather", 2):
    pass
