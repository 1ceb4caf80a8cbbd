"""CuPy's own NcclCommunicator, and cupyx.distributed: one rank of run.py's.

With --host the same communicator on NumPy's arrays, where plans run on this machine's processor:
cupyx.distributed, whose arrays are on GPUs, is left out.
"""
import pickle
import socket
import time

import cupy
import numpy as np
from checks import COUNTS, Checks, arguments, values
from cupy.cuda import nccl

TYPES = {"float32": nccl.NCCL_FLOAT32, "float64": nccl.NCCL_FLOAT64, "float16": nccl.NCCL_FLOAT16,
         "int32": nccl.NCCL_INT32, "uint32": nccl.NCCL_UINT32, "int64": nccl.NCCL_INT64,
         "uint64": nccl.NCCL_UINT64, "int8": nccl.NCCL_INT8, "uint8": nccl.NCCL_UINT8}
OPS = {"sum": (nccl.NCCL_SUM, np.add), "prod": (nccl.NCCL_PROD, np.multiply),
       "max": (nccl.NCCL_MAX, np.maximum), "min": (nccl.NCCL_MIN, np.minimum)}


class OnGpu:
    """Where the arrays of the communicator are."""

    def __init__(self, rank):
        cupy.cuda.Device(rank).use()
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.stream.use()
        self.handle = self.stream.ptr

    def put(self, array):
        return cupy.asarray(array)

    def pointer(self, array):
        return array.data.ptr

    def get(self, array):
        return cupy.asnumpy(array)  # waits for the stream


class OnHost:
    handle = 0  # calls on it have ended when they return

    def put(self, array):
        return array.copy()

    def pointer(self, array):
        return array.ctypes.data

    def get(self, array):
        return array


def unique_id(rank, port):
    """Rank 0's id on all ranks, by a socket: CuPy leaves that to its users."""
    if rank != 0:
        for _ in range(600):
            try:
                with socket.create_connection(("127.0.0.1", port)) as peer, peer.makefile("rb") as file:
                    return pickle.load(file)
            except ConnectionRefusedError:
                time.sleep(0.1)
        raise TimeoutError("rank 0 has not made an id")
    return nccl.get_unique_id()


def give_id(made, ranks, port):
    with socket.create_server(("127.0.0.1", port)) as server:
        for _ in range(ranks - 1):
            with server.accept()[0] as peer:
                peer.sendall(pickle.dumps(made))


def equal(found, wanted):
    np.testing.assert_array_equal(found, np.asarray(wanted, dtype=found.dtype))


def reductions(check, comm, at, rank, n):
    for dtype, nccl_type in TYPES.items():
        for count in COUNTS:
            every = np.array([values(r, count) for r in range(n)], dtype=dtype)
            for op, (nccl_op, reduce) in OPS.items():
                wanted = reduce.reduce(every)

                def all_reduce(in_place):
                    x = at.put(every[rank])
                    y = x if in_place else at.put(np.zeros(count, dtype))
                    comm.allReduce(at.pointer(x), at.pointer(y), count, nccl_type, nccl_op, at.handle)
                    equal(at.get(y), wanted)
                for in_place in (False, True):
                    check(f"allReduce {op} {dtype} x {count}", lambda: all_reduce(in_place))
            total = np.add.reduce(every)

            def reduce_to_last():
                x, y = at.put(every[rank]), at.put(np.zeros(count, dtype))
                comm.reduce(at.pointer(x), at.pointer(y), count, nccl_type, nccl.NCCL_SUM, n - 1,
                            at.handle)
                equal(at.get(y), total if rank == n - 1 else 0 * total)
            check(f"reduce {dtype} x {count}", reduce_to_last)


def others(check, comm, at, rank, n):
    for dtype, nccl_type in TYPES.items():
        for count in COUNTS:
            every = np.array([values(r, n * count) for r in range(n)], dtype=dtype)
            tag = f"{dtype} x {count}"

            def reduce_scatter():
                x, y = at.put(every[rank]), at.put(np.zeros(count, dtype))
                comm.reduceScatter(at.pointer(x), at.pointer(y), count, nccl_type, nccl.NCCL_SUM,
                                   at.handle)
                equal(at.get(y), every.sum(0)[rank * count:(rank + 1) * count])
            check(f"reduceScatter {tag}", reduce_scatter)

            def all_gather():
                x, y = at.put(every[rank][:count]), at.put(np.zeros(n * count, dtype))
                comm.allGather(at.pointer(x), at.pointer(y), count, nccl_type, at.handle)
                equal(at.get(y), every[:, :count].ravel())
            check(f"allGather {tag}", all_gather)

            def broadcast():
                x, y = at.put(every[rank]), at.put(np.zeros(n * count, dtype))
                comm.broadcast(at.pointer(x), at.pointer(y), n * count, nccl_type, n - 1, at.handle)
                equal(at.get(y), every[n - 1])
            check(f"broadcast {tag}", broadcast)

            def bcast():
                x = at.put(every[rank])
                comm.bcast(at.pointer(x), n * count, nccl_type, 0, at.handle)
                equal(at.get(x), every[0])
            check(f"bcast {tag}", bcast)


def messages(check, comm, at, rank, n):
    def ring():
        x = at.put(np.full(5000, rank, np.float32))
        y = at.put(np.zeros(5000, np.float32))
        nccl.groupStart()
        comm.send(at.pointer(x), 5000, nccl.NCCL_FLOAT32, (rank + 1) % n, at.handle)
        comm.recv(at.pointer(y), 5000, nccl.NCCL_FLOAT32, (rank - 1) % n, at.handle)
        nccl.groupEnd()
        equal(at.get(y), np.full(5000, (rank - 1) % n))
    check("send and recv", ring)


def communicators(check, comm, at, rank, n):
    def says():
        assert (comm.size(), comm.rank_id(), comm.check_async_error()) == (n, rank, None)
    check("what a communicator says", says)

    def split():
        alone = comm.commSplit(rank, 0)
        x = at.put(np.full(100, rank + 1, np.float32))
        alone.allReduce(at.pointer(x), at.pointer(x), 100, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, at.handle)
        equal(at.get(x), np.full(100, rank + 1))
        alone.destroy()
        turned = comm.commSplit(0, n - rank)
        assert turned.rank_id() == n - 1 - rank
        turned.allReduce(at.pointer(x), at.pointer(x), 100, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, at.handle)
        equal(at.get(x), np.full(100, n * (n + 1) // 2))
        turned.destroy()
    check("commSplit", split)


def distributed(check, rank, n, port):
    """cupyx.distributed: arrays instead of pointers, complex types, and its messages in groups."""
    from cupyx import distributed as dist

    comm = dist.init_process_group(n, rank, host="127.0.0.1", port=port)
    for dtype in ("f", "d", "e", "i", "l", "B", "F", "D"):
        for count in (7, 65536 + 3):
            every = np.array([values(r, n * count) for r in range(n)], dtype=dtype)
            rows = every.reshape(n, n, count)
            x = cupy.asarray(every[rank])
            out = cupy.zeros_like

            def is_now(name, call, y, wanted):
                def run():
                    call(y)
                    equal(cupy.asnumpy(y), wanted)
                check(f"{name} {dtype} x {count}", run)
            part, whole = x[:count], cupy.asarray(rows[rank])
            is_now("all_reduce", lambda y: comm.all_reduce(x, y), out(x), every.sum(0))
            is_now("reduce", lambda y: comm.reduce(x, y, root=0), out(x),
                   every.sum(0) if rank == 0 else np.zeros(n * count))
            is_now("broadcast", lambda y: comm.broadcast(y, root=n - 1), x.copy(), every[n - 1])
            is_now("reduce_scatter", lambda y: comm.reduce_scatter(x, y, count), out(part),
                   rows.sum(0)[rank])
            is_now("all_gather", lambda y: comm.all_gather(part, y, count), out(whole), rows[:, 0])
            peer = n - 1 - rank
            is_now("send_recv", lambda y: comm.send_recv(part, y, peer), out(part), rows[peer][0])
            is_now("scatter", lambda y: comm.scatter(whole, y, root=0), out(part), rows[0][rank])
            is_now("gather", lambda y: comm.gather(part, y, root=0), out(whole),
                   rows[:, 0] if rank == 0 else 0 * rows[:, 0])
            is_now("all_to_all", lambda y: comm.all_to_all(whole, y), out(whole), rows[:, rank])
    comm.barrier()
    comm.stop()


def main():
    options = arguments()
    rank, n = options.rank, options.ranks
    at = OnHost() if options.host else OnGpu(rank)
    made = unique_id(rank, options.port)
    if rank == 0:
        print(f"CuPy {cupy.__version__}, NCCL {nccl.get_version()}", flush=True)
        if n > 1:
            give_id(made, n, options.port)
    comm = nccl.NcclCommunicator(n, made, rank)
    check = Checks(rank)
    communicators(check, comm, at, rank, n)
    reductions(check, comm, at, rank, n)
    others(check, comm, at, rank, n)
    messages(check, comm, at, rank, n)
    comm.destroy()
    if not options.host:
        distributed(check, rank, n, options.port + 1)
    check.end()


if __name__ == "__main__":
    main()
