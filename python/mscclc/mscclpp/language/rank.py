"""Ranks, their buffers and semaphores, and the ops that stay within a rank."""

from typing import List, Optional

from .internal.arguments import MOST_CHUNKS, needs_different, needs_kind, needs_number
from .internal.errors import ProgramError
from .internal.globals import get_program
from .internal.op import Op, caller
from .internal.rules import needs_equal, needs_scratch
from .internal.state import members
from .internal.types import BufferType, Chunk, ReduceOperationType, SyncType, name_of
from .thread_block_group import ThreadBlockGroup

__all__ = ["Rank", "BaseBuffer", "Buffer", "Semaphore"]

_REDUCE = {False: "re", True: "repkt"}  # of packets


class BaseBuffer:
    """Chunks of a rank; `buffer[a:b]` are those from a up to b."""

    __slots__ = ("rank", "buffer_type", "offset", "size")

    def __init__(self, rank: int, buffer_type: BufferType, offset: int, size: int):
        self.rank = rank
        self.buffer_type = buffer_type
        self.offset = offset
        self.size = size

    def __getitem__(self, key: slice) -> Chunk:
        if not isinstance(key, slice):
            raise ProgramError(f"'buffer[{key!r}]': a slice is needed, as in 'buffer[a:b]'")
        first = 0 if key.start is None else key.start
        last = self.size if key.stop is None else key.stop
        if key.step not in (None, 1):
            raise ValueError(f"'buffer[{first}:{last}:{key.step}]' is no run of chunks")
        if first.__class__ is not int or last.__class__ is not int:
            needs_number("the first chunk of a slice", first, 0, MOST_CHUNKS)
            needs_number("the end of a slice", last, 0, MOST_CHUNKS)
        if first < 0 or first > last:
            raise ValueError(f"'buffer[{first}:{last}]' is no run of chunks")
        if last > self.size:
            raise ProgramError(f"'buffer[{first}:{last}]' of a buffer of {self.size} chunks")
        if first == last:
            raise ProgramError(f"'buffer[{first}:{last}]' is empty")
        return Chunk(self.rank, self.buffer_type, self.offset + first, last - first)


class Buffer(BaseBuffer):
    """`size` more chunks of a rank's scratch."""

    __slots__ = ()

    def __init__(self, rank: int, size: int):
        program = get_program()
        state = program.state_of(rank)
        room = MOST_CHUNKS // program.instances - state.scratch
        needs_number("the size of a buffer", size, 0, room)
        program.take_room()
        super().__init__(rank, BufferType.scratch, state.scratch, size)
        state.scratch += size


class Rank:
    """A rank: its buffers, and ops on them."""

    __slots__ = ("rank", "_program", "_state")

    def __init__(self, rank: int):
        self._program = get_program()
        self._state = self._program.state_of(rank)
        self.rank = rank

    def get_input_buffer(self) -> BaseBuffer:
        """The rank's input."""
        return self._program.buffers[self.rank][BufferType.input]

    def get_output_buffer(self) -> BaseBuffer:
        """The rank's output."""
        return self._program.buffers[self.rank][BufferType.output]

    def copy(
        self,
        dst_chunk: Chunk,
        src_chunk: Chunk,
        tb: Optional[int] = None,
        tb_group: Optional[ThreadBlockGroup] = None,
    ) -> None:
        """dst = src."""
        self._copy("copy", dst_chunk, src_chunk, tb, tb_group)

    def unpack_packets(
        self,
        dst_chunk: Chunk,
        src_chunk: Chunk,
        tb: Optional[int] = None,
        tb_group: Optional[ThreadBlockGroup] = None,
    ) -> None:
        """Waits for the packets in src, which is scratch, and copies their data to dst."""
        needs_scratch("the source of 'unpack_packets'", src_chunk)
        self._copy("upkt", dst_chunk, src_chunk, tb, tb_group)

    def copy_packets(
        self,
        dst_chunk: Chunk,
        src_chunk: Chunk,
        tb: Optional[int] = None,
        tb_group: Optional[ThreadBlockGroup] = None,
    ) -> None:
        """Writes src as packets to dst, which is scratch."""
        needs_scratch("the destination of 'copy_packets'", dst_chunk)
        self._copy("cpkt", dst_chunk, src_chunk, tb, tb_group)

    def reduce(
        self,
        src_chunk: Chunk,
        other_chunks: List[Chunk],
        tb: Optional[int] = None,
        tb_group: Optional[ThreadBlockGroup] = None,
        dst_chunk: Optional[Chunk] = None,
        reduce_op: ReduceOperationType = ReduceOperationType.sum,
        packet: bool = False,
    ) -> None:
        """dst (src, if left out) = src + others; `packet`: the others are packets in scratch."""
        dst = src_chunk if dst_chunk is None else dst_chunk
        if not other_chunks:
            raise ProgramError("a 'reduce' of one chunk: 'other_chunks' is empty")
        for chunk in (src_chunk, dst, *other_chunks):
            self._needs_own(chunk)
            needs_equal(chunk, src_chunk)
        for chunk in other_chunks if packet else ():
            needs_scratch("a source of a packet 'reduce'", chunk)
        place = caller(1)
        for block, group in members(tb, tb_group):
            src = [src_chunk.ref, *[chunk.ref for chunk in other_chunks]]
            op = Op(_REDUCE[packet], place, None, src, [dst.ref], [], 0, group)
            op.reduce_op = name_of(reduce_op)
            self._program.add(self._state, block, op)

    def barrier(self, tb_list: List[int]) -> None:
        """These thread blocks meet."""
        if not tb_list:
            raise ProgramError("a barrier of no thread blocks")
        place = caller(1)
        needs_different("the barrier", tb_list)
        if len(tb_list) == 1:
            self._program.add(self._state, tb_list[0], Op("nop", place))
            return
        barriers = self._state.barriers
        number = barriers.setdefault(tuple(tb_list), len(barriers))
        for block in tb_list:
            op = Op("barrier", place)
            op.detail = (number, len(tb_list))
            self._program.add(self._state, block, op)

    def _copy(self, name, dst, src, tb, tb_group):
        self._needs_own(dst)
        self._needs_own(src)
        needs_equal(dst, src)
        place = caller(2)
        for block, group in members(tb, tb_group):
            op = Op(name, place, None, [src.ref], [dst.ref], [], 0, group)
            self._program.add(self._state, block, op)

    def _needs_own(self, chunk):
        if chunk.rank != self.rank:
            raise ProgramError(f"{chunk!r} is not on rank {self.rank}")


class Semaphore:
    """A count that blocks of a rank wait for."""

    __slots__ = ("rank", "id", "_program", "_state")

    def __init__(self, rank: int, initial_value: int):
        self._program = get_program()
        self._state = self._program.state_of(rank)
        self._program.take_room()
        needs_number("the first value of a semaphore", initial_value, 0, 2**32 - 1)
        self.rank = rank
        self.id = len(self._state.semaphores)
        self._state.semaphores.append(initial_value)

    def acquire(self, tb: int, data_sync: SyncType = SyncType.both) -> None:
        """Waits until the count is above 0, and takes one."""
        self._add("sem_acquire", tb, data_sync)

    def release(self, tb: int, data_sync: SyncType = SyncType.both) -> None:
        """Adds one to the count."""
        self._add("sem_release", tb, data_sync)

    def _add(self, name, tb, data_sync):
        needs_kind("'data_sync'", data_sync, SyncType, "a SyncType")
        op = Op(name, caller(2), None, (), (), [self.id], data_sync)
        self._program.add(self._state, tb, op)
