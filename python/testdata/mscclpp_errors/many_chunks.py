from mscclpp.language import *

with CollectiveProgram("many_chunks", AllReduce(2, 6, True), 2):
    for r in range(2):
        chunks = Rank(r).get_input_buffer()
        Rank(r).reduce(chunks[0:1], [chunks[i : i + 1] for i in range(1, 12)], tb=0)
    print(JSON())
