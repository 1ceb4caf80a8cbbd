"""The enumerations of MSCCL++'s language, and chunks."""

from enum import Enum, IntEnum

from .arguments import needs_kind

__all__ = [
    "BufferType", "ChannelType", "SyncType", "ReduceOperationType", "ReplicationPolicy", "Chunk",
]  # fmt: skip


class BufferType(Enum):
    """The three buffers of a rank; the value is the letter that plans use."""

    input = "i"
    output = "o"
    scratch = "s"


class ChannelType(Enum):
    """How a channel reaches its peers."""

    none = "none"
    memory = "memory"
    port = "port"
    switch = "switch"


class SyncType(IntEnum):
    """Where an op asks for a sync of its thread block; a set of two bits."""

    none = 0
    before = 1
    after = 2
    both = 3


class ReduceOperationType(Enum):
    """How a reduction combines its sources."""

    sum = "sum"
    min = "min"
    max = "max"


def name_of(reduce_op):
    """How plans call a reduction."""
    if reduce_op.__class__ is not ReduceOperationType:
        needs_kind("'reduce_op'", reduce_op, ReduceOperationType, "a ReduceOperationType")
    return reduce_op.name


class ReplicationPolicy(Enum):
    """Which chunks an instance works on."""

    interleaved = "interleaved"
    none = "none"


class Chunk:
    """`size` chunks of a rank's buffer, from `index` on."""

    __slots__ = ("rank", "ref")

    def __init__(self, rank: int, buffer: BufferType, index: int, size: int):
        self.rank = rank
        self.ref = (buffer.value, index, size)

    @property
    def buffer(self) -> BufferType:
        """The buffer that the chunks belong to."""
        return BufferType(self.ref[0])

    @property
    def index(self) -> int:
        """The first chunk, counted from the beginning of the rank's buffer."""
        return self.ref[1]

    @property
    def size(self) -> int:
        """The number of chunks."""
        return self.ref[2]

    def __eq__(self, other):
        return isinstance(other, Chunk) and self.rank == other.rank and self.ref == other.ref

    def __hash__(self):
        return hash((self.rank, self.ref))

    def __repr__(self):
        return f"Chunk(rank={self.rank}, {self.buffer.name}[{self.index}:{self.index + self.size}])"
