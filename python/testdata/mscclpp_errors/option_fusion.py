from mscclpp.language import *

with CollectiveProgram("option_fusion", AllGather(2, 1, True), 2, instr_fusion="no"):
    pass
