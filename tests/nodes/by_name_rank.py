"""One of two ranks, as its environment says, that makes calls by name, for places_test.cc."""

import array
import os

import mscclc

rank, count = int(os.environ["MSCCLC_RANK"]), 3000
with mscclc.Communicator.from_environment(device=None) as comm:
    values = array.array("i", [(rank + 1) * i for i in range(count)])
    sums, rows = array.array("i", [0] * count), array.array("i", [0] * 2 * count)
    comm.allreduce(values, sums).wait()
    comm.allgather(values, rows).wait()
    assert list(sums) == [3 * i for i in range(count)]
    assert list(rows) == [i for i in range(count)] + [2 * i for i in range(count)]
