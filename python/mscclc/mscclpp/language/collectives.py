"""The collectives: how many chunks each rank has as input and output."""

from typing import Dict, List

from .internal.types import BufferType
from .rank import BaseBuffer

__all__ = [
    "Collective", "AllGather", "AllReduce", "ReduceScatter", "AllToAll", "SendRecv",
    "TestCollective", "BaseBuffer", "BufferType",
]  # fmt: skip


class Collective:
    """A collective over `num_ranks` ranks; subclasses say which buffers the ranks have."""

    name = "custom"

    def __init__(self, num_ranks: int, chunk_factor: int, inplace: bool):
        self.num_ranks = num_ranks
        self.chunk_factor = chunk_factor
        self.inplace = inplace

    def init_buffers(self) -> List[Dict[BufferType, BaseBuffer]]:
        """For each rank its input and output."""
        raise NotImplementedError(f"{type(self).__name__} does not say which buffers it has")

    def _buffers(self, inputs: int, outputs: int) -> List[Dict[BufferType, BaseBuffer]]:
        return [
            {
                BufferType.input: BaseBuffer(rank, BufferType.input, 0, inputs),
                BufferType.output: BaseBuffer(rank, BufferType.output, 0, outputs),
            }
            for rank in range(self.num_ranks)
        ]


class AllGather(Collective):
    """Every rank gets the input of all."""

    name = "allgather"

    def init_buffers(self) -> List[Dict[BufferType, BaseBuffer]]:
        """`chunk_factor` chunks in, as many of every rank out."""
        return self._buffers(self.chunk_factor, self.num_ranks * self.chunk_factor)


class AllReduce(Collective):
    """Every rank gets the sum of all inputs."""

    name = "allreduce"

    def init_buffers(self) -> List[Dict[BufferType, BaseBuffer]]:
        """`chunk_factor` chunks for every rank in, and as many out."""
        chunks = self.num_ranks * self.chunk_factor
        return self._buffers(chunks, chunks)


class ReduceScatter(Collective):
    """Every rank gets its part of the sum of all inputs."""

    name = "reducescatter"

    def init_buffers(self) -> List[Dict[BufferType, BaseBuffer]]:
        """`chunk_factor` chunks for every rank in, those of one out."""
        return self._buffers(self.num_ranks * self.chunk_factor, self.chunk_factor)


class AllToAll(Collective):
    """Every rank gets its part of every input."""

    name = "alltoall"

    def init_buffers(self) -> List[Dict[BufferType, BaseBuffer]]:
        """`chunk_factor` chunks for every rank in, and as many out."""
        chunks = self.num_ranks * self.chunk_factor
        return self._buffers(chunks, chunks)


class SendRecv(Collective):
    """Every rank sends its input to one other."""

    name = "sendrecv"

    def init_buffers(self) -> List[Dict[BufferType, BaseBuffer]]:
        """`chunk_factor` chunks in, and as many out."""
        return self._buffers(self.chunk_factor, self.chunk_factor)


class TestCollective(Collective):
    """Buffers of any size, and no promise."""

    name = "test"
    __test__ = False  # no test case, whatever its name

    def __init__(self, num_ranks: int, input_size: int, output_size: int):
        super().__init__(num_ranks, 1, False)
        self.input_size = input_size
        self.output_size = output_size

    def init_buffers(self) -> List[Dict[BufferType, BaseBuffer]]:
        """As many chunks as the program asked for."""
        return self._buffers(self.input_size, self.output_size)
