"""Sums over ranks that mpirun has started.

    mpirun -n 2 python3 python/examples/mpi_sum.py            on the host
    mpirun -n 2 python3 python/examples/mpi_sum.py --gpus     a GPU for each rank, arrays of CuPy
"""

import array
import sys

from mpi4py import MPI

import mscclc


def on_the_host(world):
    with mscclc.Communicator.from_mpi(world) as comm:
        data = array.array("f", [float(comm.rank)] * 1024)  # an array of NumPy is taken, too
        comm.allreduce(data).wait()
        return data[0]


def on_gpus(world):
    import cupy

    gpu = world.Get_rank() % cupy.cuda.runtime.getDeviceCount()
    with cupy.cuda.Device(gpu), mscclc.Communicator.from_mpi(world, device=gpu) as comm:
        data = cupy.full(1024, comm.rank, dtype=cupy.float32)
        comm.allreduce(data, stream=cupy.cuda.get_current_stream().ptr).wait()
        return float(data[0])


def main():
    world = MPI.COMM_WORLD
    found = (on_gpus if "--gpus" in sys.argv[1:] else on_the_host)(world)
    size = world.Get_size()
    assert found == size * (size - 1) / 2, found
    print(f"rank {world.Get_rank()} of {size}: the ranks' numbers add up to {found:g}")


if __name__ == "__main__":
    main()
