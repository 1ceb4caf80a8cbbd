"""By hand: CPU time from a program of MSCCL++'s language to its compact plan, without the proof.

python3 python/tests/compile_time.py [RANKS…]
"""

import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from mscclc.mscclpp.language import program as language  # noqa: E402
from mscclc.mscclpp.language.internal.write_plan import plan_of  # noqa: E402
from mscclc.mscclpp.run import trace  # noqa: E402

PROGRAMS = (
    "allreduce_reads", "allreduce_packets", "allreduce_one_block", "allgather_ring_order",
    "alltoall_scratch",
)  # fmt: skip


def compact(program, *_, **__):
    """What `JSON()` gives here: no white space, and no bounds of the executor."""
    return json.dumps(plan_of(program, limits=False), separators=(",", ":"))


def measure(name, ranks):
    """The best CPU time of some runs, and the bytes of the plan."""
    path = os.path.join(HERE, "..", "testdata", "mscclpp", name + ".py")
    best = None
    for _ in range(7 if ranks <= 16 else 3):
        begin = time.process_time()
        _, printed = trace(path, ["--name", name, "--ranks", str(ranks)], limits=False)
        took = time.process_time() - begin
        best = took if best is None else min(best, took)
    return best, len(printed)


def main():
    """Prints a line for each program and number of ranks."""
    language.CollectiveProgram.to_json = compact
    for name in PROGRAMS:
        for ranks in map(int, sys.argv[1:] or ("8", "16", "32")):
            seconds, size = measure(name, ranks)
            print(f"{name:22} {ranks:4} ranks {seconds * 1e3:10.2f} ms {size:10} bytes")


if __name__ == "__main__":
    main()
