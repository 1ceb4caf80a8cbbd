from mscclpp.language import *

with CollectiveProgram("option_double_scratch", AllGather(2, 1, True), 2, use_double_scratch_buffer="yes"):
    pass
