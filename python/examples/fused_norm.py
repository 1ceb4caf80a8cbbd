"""AllReduce, residual and RMSNorm as one call, by name and shape; two processes of this machine.

    python3 python/examples/fused_norm.py
"""

import array
import multiprocessing

import mscclc

COLUMNS, ROWS = 2880, 5


def rank_main(rank, id):
    with mscclc.Communicator(2, id, rank) as comm:
        norm = comm.load_rows("allreduce_norm", COLUMNS, max_rows=64)  # once; on GPUs with dtype="bf16", say
        part = array.array("f", [rank + 0.5] * ROWS * COLUMNS)  # what this rank's matrices gave
        residual = array.array("f", [2.0] * ROWS * COLUMNS)
        weight = array.array("f", [3.0] * COLUMNS)
        out = array.array("f", bytes(4 * ROWS * COLUMNS))
        norm.run(part, out, externals={"residual": residual, "weight": weight, "eps": 0.0}).wait()
        assert set(residual) == {4.0} and set(out) == {3.0}  # 0.5 + 1.5 + 2, and its norm times 3
        if rank == 0:
            print(f"{ROWS} rows of {COLUMNS}: the residual is {residual[0]:g}, the norm {out[0]:g}")


def main():
    id = mscclc.unique_id()
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=rank_main, args=(rank, id)) for rank in range(2)]
    for one in ranks:
        one.start()
    for one in ranks:
        one.join()
    assert all(one.exitcode == 0 for one in ranks)


if __name__ == "__main__":
    main()
