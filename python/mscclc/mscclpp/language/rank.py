"""Ranks, their buffers and semaphores, and the ops that stay within a rank."""

from sys import _getframe
from typing import List, Optional

from .internal.arguments import MOST_BLOCKS, MOST_CHUNKS, needs_block, needs_different
from .internal.arguments import needs_number
from .internal.common import *  # noqa: F403
from .internal.common import __all__ as _COMMON
from .internal.errors import ProgramError
from .internal.globals import get_program
from .internal.rules import needs_all_scratch, needs_equal, needs_scratch
from .internal.types import (
    SCRATCH,
    BufferType,
    Chunk,
    ReduceOperationType,
    SyncType,
    number_of_buffer,
    number_of_reduction,
)
from .internal.words import (
    BARRIER, COPY, COPY_PACKETS, COUNT, SYNC, REDUCE, REDUCE_PACKETS, ACQUIRE, RELEASE, SEMAPHORE,
    UNPACK_PACKETS,
)  # fmt: skip
from .thread_block_group import Block, Group

__all__ = ["Rank", "BaseBuffer", "Buffer", "Semaphore", *_COMMON]

_REDUCE = {False: REDUCE, True: REDUCE_PACKETS}  # of packets
_SUM = ReduceOperationType.sum
_new = object.__new__


class BaseBuffer:
    """Chunks of a rank; `buffer[a:b]` are those from a up to b."""

    __slots__ = ("rank", "buffer_type", "offset", "size", "_number")

    def __init__(self, rank: int, buffer_type: BufferType, offset: int, size: int):
        self.rank = rank
        self.buffer_type = buffer_type
        self.offset = offset
        self.size = size
        self._number = number_of_buffer(buffer_type)

    def __getitem__(self, key: slice) -> Chunk:
        if key.__class__ is not slice:
            raise ProgramError(f"'buffer[{key!r}]': a slice is needed, as in 'buffer[a:b]'")
        first, last = key.start, key.stop
        if first.__class__ is not int or last.__class__ is not int or key.step is not None:
            first, last = self._bounds(key)
        if not 0 <= first < last <= self.size:
            raise self._why_not(first, last)
        chunk = _new(Chunk)
        chunk.rank = self.rank
        chunk.at = 4 * (self.offset + first) + self._number
        chunk.size = last - first
        return chunk

    def _bounds(self, key):
        """The bounds of a slice that leaves some out, or has a step."""
        first = 0 if key.start is None else key.start
        last = self.size if key.stop is None else key.stop
        if key.step not in (None, 1):
            raise ValueError(f"'buffer[{first}:{last}:{key.step}]' is not a run of chunks")
        if first.__class__ is not int or last.__class__ is not int:
            needs_number("the first chunk of a slice", first, 0, MOST_CHUNKS)
            needs_number("the end of a slice", last, 0, MOST_CHUNKS)
        return first, last

    def _why_not(self, first, last):
        if first < 0 or first > last:
            return ValueError(f"'buffer[{first}:{last}]' is not a run of chunks")
        if last > self.size:
            return ProgramError(f"'buffer[{first}:{last}]' of a buffer of {self.size} chunks")
        return ProgramError(f"'buffer[{first}:{last}]' is empty")


class Buffer(BaseBuffer):
    """`size` more chunks of a rank's scratch."""

    __slots__ = ()

    def __init__(self, rank: int, size: int):
        program = get_program()
        program.needs_rank(rank)
        trace = program.trace
        scratch = trace.scratch[rank]
        needs_number("the size of a buffer", size, 0, MOST_CHUNKS // program.instances - scratch)
        trace.take_room()
        super().__init__(rank, BufferType.scratch, scratch, size)
        trace.scratch[rank] = scratch + size


class Rank:
    """A rank: its buffers, and ops on them."""

    __slots__ = ("rank", "_trace")

    def __init__(self, rank: int):
        program = get_program()
        program.needs_rank(rank)
        self._trace = program.trace
        self.rank = rank

    def __eq__(self, other):
        return isinstance(other, Rank) and self.rank == other.rank

    def __hash__(self):
        return hash(self.rank)

    def get_input_buffer(self) -> BaseBuffer:
        """The rank's input."""
        return self._program().buffers[self.rank][BufferType.input]

    def get_output_buffer(self) -> BaseBuffer:
        """The rank's output."""
        return self._program().buffers[self.rank][BufferType.output]

    def copy(
        self, dst_chunk: Chunk, src_chunk: Chunk, tb: Block = None, tb_group: Group = None
    ) -> None:
        """dst = src."""
        self._copy(COPY, dst_chunk, src_chunk, tb, tb_group)

    def unpack_packets(
        self, dst_chunk: Chunk, src_chunk: Chunk, tb: Block = None, tb_group: Group = None
    ) -> None:
        """Waits for the packets in src, which is scratch, and copies their data to dst."""
        needs_scratch("the source of 'unpack_packets'", src_chunk)
        self._copy(UNPACK_PACKETS, dst_chunk, src_chunk, tb, tb_group)

    def copy_packets(
        self, dst_chunk: Chunk, src_chunk: Chunk, tb: Block = None, tb_group: Group = None
    ) -> None:
        """Writes src as packets to dst, which is scratch."""
        needs_scratch("the destination of 'copy_packets'", dst_chunk)
        self._copy(COPY_PACKETS, dst_chunk, src_chunk, tb, tb_group)

    # As earlier versions of the language have it.
    unpack_packet = unpack_packets
    copy_packet = copy_packets

    def reduce(
        self,
        src_chunk: Chunk,
        other_chunks: List[Chunk],
        tb: Block = None,
        tb_group: Group = None,
        dst_chunk: Optional[Chunk] = None,
        reduce_op: ReduceOperationType = ReduceOperationType.sum,
        packet: bool = False,
    ) -> None:
        """dst (src, if left out) = src + others; `packet`: the others are packets in scratch."""
        dst = src_chunk if dst_chunk is None else dst_chunk
        rank, size = self.rank, src_chunk.size
        others = [one.at for one in other_chunks if one.rank == rank and one.size == size]
        own = src_chunk.rank == dst.rank == rank and dst.size == size
        if not (own and 0 < len(other_chunks) == len(others)):
            self._needs_sources(src_chunk, other_chunks, dst)
        if packet and [at for at in others if at & 3 != SCRATCH]:
            needs_all_scratch("a source of a packet 'reduce'", other_chunks)
        op = _REDUCE[packet] | len(others) << COUNT
        others.append(1 if reduce_op is _SUM else number_of_reduction(reduce_op))
        self._add(op, dst, src_chunk, tb, tb_group).add(others)

    def barrier(self, tb_list: List[int]) -> None:
        """These thread blocks meet."""
        count = len(tb_list)
        if not count:
            raise ProgramError("a barrier of no thread blocks")
        needs_different("the barrier", tb_list)
        for block in tb_list:
            needs_block(block)
        trace, frame = self._trace_now(), _getframe(1)
        trace.take_room(count)
        if trace.code is not frame.f_code:
            trace.enter(frame.f_code)
        if count == 1:
            trace.add((SYNC, self.rank, tb_list[0], frame.f_lasti))
        else:
            trace.add((BARRIER, self.rank, frame.f_lasti, count, *tb_list))

    def _copy(self, op, dst, src, tb, tb_group):
        if dst.rank != self.rank or src.rank != self.rank:
            self._needs_own(dst, src)
        self._add(op, dst, src, tb, tb_group, 3)

    def _add(self, op, dst, src, tb, tb_group, depth=2):
        """The beginning of an op on chunks of this rank; the trace, to which its other sources are added."""
        trace, frame = self._trace, _getframe(depth)
        if trace.room < 1:
            trace = self._trace_now()
        if (
            trace.code is not frame.f_code or tb_group is not None or tb.__class__ is not int
            or dst.size != src.size or not 0 <= tb < MOST_BLOCKS
        ):  # fmt: skip
            tb = trace.prepare_move(frame, dst, src, tb, tb_group)
        trace.room -= 1
        trace.add((op, self.rank, tb, dst.at, src.at, src.size, frame.f_lasti))
        return trace

    def _program(self):
        """The program that is traced now, which may be another one than that of before."""
        program = get_program()
        program.needs_rank(self.rank)
        return program

    def _trace_now(self):
        """The trace of the program that is traced now; it has room."""
        self._trace = trace = self._program().trace
        if trace.room < 1:
            trace.refuse()
        return trace

    def _needs_own(self, *chunks):
        for one in chunks:
            if one.rank != self.rank:
                raise ProgramError(f"{one!r} is not on rank {self.rank}")

    def _needs_sources(self, src, others, dst):
        if not others:
            raise ProgramError("a 'reduce' of one chunk: 'other_chunks' is empty")
        for one in (src, dst, *others):
            self._needs_own(one)
            needs_equal(one, src)


class Semaphore:
    """A count that blocks of a rank wait for."""

    __slots__ = ("rank", "id", "_trace")

    def __init__(self, rank: int, initial_value: int):
        program = get_program()
        program.needs_rank(rank)
        needs_number("the first value of a semaphore", initial_value, 0, 2**32 - 1)
        self._trace = trace = program.trace
        trace.take_room()
        self.rank = rank
        self.id = trace.semaphores[rank]
        trace.semaphores[rank] += 1
        trace.add((SEMAPHORE, rank, initial_value))

    def acquire(self, tb: int, data_sync: SyncType = SyncType.both) -> None:
        """Waits until the count is above 0, and takes one."""
        self._add(ACQUIRE, tb, data_sync)

    def release(self, tb: int, data_sync: SyncType = SyncType.both) -> None:
        """Adds one to the count."""
        self._add(RELEASE, tb, data_sync)

    def _add(self, op, tb, data_sync):
        trace, frame = self._trace, _getframe(2)
        trace.prepare_sync(frame, tb, data_sync)
        trace.room -= 1
        trace.add((op, self.rank, self.id, tb, data_sync, frame.f_lasti))
