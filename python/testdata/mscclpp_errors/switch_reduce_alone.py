from mscclpp.language import *

with CollectiveProgram("switch_reduce_alone", AllReduce(2, 1, True), 2):
    switch = SwitchChannel([0, 1], BufferType.input)
    for r in range(2):
        chunk = Rank(r).get_output_buffer()[r : r + 1]
        switch.at_rank(r).reduce(buffer_offset=r, size=1, dst_chunk=chunk, tb=0)
    print(JSON())
