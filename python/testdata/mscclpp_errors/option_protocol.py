from mscclpp.language import *

with CollectiveProgram("option_protocol", AllGather(2, 1, True), 2, protocol="LL128"):
    pass
