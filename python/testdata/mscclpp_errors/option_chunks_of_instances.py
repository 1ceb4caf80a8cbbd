from mscclpp.language import *

with CollectiveProgram("option_chunks_of_instances", AllGather(4, 2**20, True), 4, instances=1024):
    pass
