from mscclpp.language import *

with CollectiveProgram("option_policy", AllGather(2, 1, True), 2, replication_policy="interleaved"):
    pass
