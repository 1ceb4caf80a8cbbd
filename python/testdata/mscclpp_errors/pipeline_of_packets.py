from mscclpp.language import *

with CollectiveProgram("pipeline_of_packets", AllGather(2, 1, True), 2, protocol="LL"):
    scratch = [Buffer(r, 1) for r in range(2)]
    for r in range(2):
        output = Rank(r).get_output_buffer()
        with LoopIterationContext(unit=1024, num_chunks=1):
            MemoryChannel(1 - r, r).put_packets(scratch[1 - r][0:1], output[r : r + 1], tb=0)
            Rank(r).unpack_packets(output[1 - r : 2 - r], scratch[r][0:1], tb=0)
    print(JSON())
