from mscclpp.language import *

with CollectiveProgram("option_min_size", AllGather(2, 1, True), 2, min_message_size=-5):
    pass
