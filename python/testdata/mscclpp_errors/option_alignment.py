from mscclpp.language import *

with CollectiveProgram("option_alignment", AllGather(2, 1, True), 2, buffer_alignment=0):
    pass
