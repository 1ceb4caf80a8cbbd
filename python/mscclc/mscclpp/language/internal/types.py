"""The enumerations of MSCCL++'s language, and chunks."""

from enum import Enum
from typing import List, Set

from .arguments import MOST_CHUNKS, needs_kind, needs_number

__all__ = [
    "BufferType", "ChannelType", "SyncType", "ReduceOperationType", "ReplicationPolicy", "Chunk",
    "Enum", "List", "Set",
]  # fmt: skip


class _Word(Enum):
    """What the words of the language have in common: as text they are their values."""

    def __str__(self):
        return self.value


class BufferType(_Word):
    """The three buffers of a rank; the value is the letter that plans use."""

    input = "i"
    output = "o"
    scratch = "s"


class ChannelType(_Word):
    """How a channel reaches its peers."""

    none = "none"
    memory = "memory"
    port = "port"
    switch = "switch"


class SyncType(int, _Word):
    """Where an op asks for a sync of its thread block: a set, as the number of which traces know it."""

    none = 0, "none"
    before = 1, "before"
    after = 2, "after"
    both = 3, "both"

    def __new__(cls, number, word):
        made = int.__new__(cls, number)
        made._value_ = word
        return made

    def __or__(self, other):
        return _sync_type(int.__or__, self, other)

    def __and__(self, other):
        return _sync_type(int.__and__, self, other)

    def __xor__(self, other):
        return _sync_type(int.__xor__, self, other)


def _sync_type(operation, one, other):
    if other.__class__ is not SyncType:
        return NotImplemented
    return tuple(SyncType)[operation(one, other)]


class ReduceOperationType(_Word):
    """How a reduction combines its sources."""

    sum = "sum"
    min = "min"
    max = "max"


_REDUCTIONS = {one.name: number for number, one in enumerate(ReduceOperationType, 1)}


def number_of_reduction(reduce_op):
    """How traces call a reduction."""
    if reduce_op.__class__ is not ReduceOperationType:
        needs_kind("'reduce_op'", reduce_op, ReduceOperationType, "a ReduceOperationType")
    return _REDUCTIONS[reduce_op.name]


class ReplicationPolicy(_Word):
    """Which chunks an instance works on."""

    interleaved = "interleaved"
    none = "none"


_BUFFERS = tuple(BufferType)  # as traces number them
_NUMBERS = {buffer.name: number for number, buffer in enumerate(_BUFFERS)}
SCRATCH = _NUMBERS["scratch"]


def number_of_buffer(buffer_type):
    """How traces call a buffer."""
    return _NUMBERS[buffer_type.name]


class Chunk:
    """`size` chunks of a rank's buffer, from `index` on.

    `at` is what traces say of both: 4 times the index, and the number of the buffer.
    """

    __slots__ = ("rank", "at", "size")

    def __init__(self, rank: int, buffer: BufferType, index: int, size: int):
        needs_kind("'buffer' of a chunk", buffer, BufferType, "a BufferType")
        needs_number("'index' of a chunk", index, 0, MOST_CHUNKS)
        needs_number("'size' of a chunk", size, 1, MOST_CHUNKS)
        self.rank = rank
        self.at = 4 * index + number_of_buffer(buffer)
        self.size = size

    @property
    def buffer(self) -> BufferType:
        """The buffer that the chunks belong to."""
        return _BUFFERS[self.at % 4]

    @property
    def index(self) -> int:
        """The first chunk, counted from the beginning of the rank's buffer."""
        return self.at // 4

    def __eq__(self, other):
        return isinstance(other, Chunk) and self._all() == other._all()

    def __hash__(self):
        return hash(self._all())

    def _all(self):
        return self.rank, self.at, self.size

    def to_dict(self) -> dict:
        """The chunk as plans write it, and its rank."""
        return {
            "rank": self.rank, "type": self.buffer.value, "index": self.index, "size": self.size,
        }  # fmt: skip

    def __repr__(self):
        return f"Chunk(rank={self.rank}, {self.buffer.name}[{self.index}:{self.index + self.size}])"
