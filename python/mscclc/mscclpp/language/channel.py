"""Channels to other ranks, and the ops that go through them."""

from sys import _getframe
from typing import List, Optional

from .internal.arguments import MOST_BLOCKS, needs_block, needs_different, needs_kind
from .internal.common import *  # noqa: F403
from .internal.common import __all__ as _COMMON
from .internal.errors import ProgramError
from .internal.globals import get_program
from .internal.rules import needs_equal, needs_scratch
from .internal.types import (
    SCRATCH,
    BufferType,
    ChannelType,
    Chunk,
    ReduceOperationType,
    SyncType,
    number_of_buffer,
    number_of_reduction,
)
from .internal.words import (
    CHANNEL, COUNT, FLUSH, GET, MEMORY_CHANNEL, PORT_CHANNEL, PUT, PUT_PACKETS, PUT_WITH_SIGNAL,
    PUT_WITH_SIGNAL_AND_FLUSH, READ_PUT_PACKETS, READ_REDUCE, RELAXED, SIGNAL, SWITCH,
    SWITCH_BROADCAST, SWITCH_BROADCAST_PACKETS, SWITCH_CHANNEL, SWITCH_REDUCE, WAIT,
)  # fmt: skip
from .thread_block_group import Block, Group

__all__ = ["MemoryChannel", "PortChannel", "SwitchChannel", *_COMMON]

_SIGNAL = {False: SIGNAL, True: SIGNAL | RELAXED}  # relaxed
_WAIT = {False: WAIT, True: WAIT | RELAXED}
_SUM = ReduceOperationType.sum


class _Channel:
    """What memory and port channels have in common; a subclass says its `channel_type`, and its number."""

    __slots__ = ("dst_rank", "src_rank", "channel_id", "_trace", "_number")
    channel_type = ChannelType.none
    _kind = 0

    def __init__(self, dst_rank: int, src_rank: int):
        program = get_program()
        program.needs_rank(src_rank)
        program.needs_rank(dst_rank)
        if dst_rank == src_rank:
            raise ProgramError(f"a channel of rank {src_rank} to itself")
        self._trace = trace = program.trace
        if trace.room < 1:
            trace.refuse()
        trace.room -= 1
        kind = self._kind
        ids = trace.ids[kind]
        self.dst_rank = dst_rank
        self.src_rank = src_rank
        self.channel_id = ids[src_rank]
        ids[src_rank] += 1
        self._number = trace.channels
        trace.channels += 1
        trace.add((CHANNEL, kind, src_rank, dst_rank))

    def _synchronize(self, op, tb, data_sync):
        trace, frame = self._trace, _getframe(2)
        if (
            trace.room < 1 or trace.code is not frame.f_code or tb.__class__ is not int
            or data_sync.__class__ is not SyncType or not 0 <= tb < MOST_BLOCKS
        ):  # fmt: skip
            trace.prepare_sync(frame, tb, data_sync)
        trace.room -= 1
        trace.add((op, self._number, tb, data_sync, frame.f_lasti))

    def _move(self, op, dst, src, tb, tb_group):
        """Chunks from a source to a destination, which are on the two ranks of the channel."""
        trace, frame = self._trace, _getframe(2)
        if (
            trace.room < 1 or trace.code is not frame.f_code or tb.__class__ is not int
            or tb_group is not None or dst.size != src.size or not 0 <= tb < MOST_BLOCKS
        ):  # fmt: skip
            tb = trace.prepare_move(frame, dst, src, tb, tb_group)
        trace.room -= 1
        trace.add((op, self._number, tb, dst.at, src.at, src.size, frame.f_lasti))

    def _needs_ends(self, own, peer):
        """One chunk is where the channel begins, the other one where it ends."""
        if own.rank != self.src_rank:
            raise ProgramError(f"{own!r} is not on rank {self.src_rank}, whose channel this is")
        if peer.rank != self.dst_rank:
            raise ProgramError(f"{peer!r} is not on rank {self.dst_rank}, where the channel ends")

    def read_put_packets(
        self, dst_chunk: Chunk, src_chunk: Chunk, tb: Block = None, tb_group: Group = None
    ) -> None:
        """Waits for the packets in src and forwards them to dst, scratch of the peer."""
        _needs_packets(dst_chunk, src_chunk, tb, tb_group)
        self._needs_ends(src_chunk, dst_chunk)
        self._move(READ_PUT_PACKETS, dst_chunk, src_chunk, tb, tb_group)

    read_put_packet = read_put_packets  # as earlier versions of the language have it


class MemoryChannel(_Channel):
    """A channel by which `src_rank` reads and writes the memory of `dst_rank`."""

    __slots__ = ()
    channel_type = ChannelType.memory
    _kind = MEMORY_CHANNEL

    def signal(
        self, tb: int, data_sync: SyncType = SyncType.both, relaxed: bool = False
    ) -> None:
        """Adds one at the partner of this channel; `relaxed`: this publishes no data."""
        self._synchronize(_SIGNAL[relaxed], tb, data_sync)

    def wait(self, tb: int, data_sync: SyncType = SyncType.both, relaxed: bool = False) -> None:
        """Waits for a signal of the partner."""
        self._synchronize(_WAIT[relaxed], tb, data_sync)

    def put(
        self, dst_chunk: Chunk, src_chunk: Chunk, tb: Block = None, tb_group: Group = None
    ) -> None:
        """Writes src to dst, which is at the peer."""
        if src_chunk.rank != self.src_rank or dst_chunk.rank != self.dst_rank:
            self._needs_ends(src_chunk, dst_chunk)
        self._move(PUT, dst_chunk, src_chunk, tb, tb_group)

    def get(
        self, dst_chunk: Chunk, src_chunk: Chunk, tb: Block = None, tb_group: Group = None
    ) -> None:
        """Reads src, which is at the peer, to dst."""
        self._needs_ends(dst_chunk, src_chunk)
        self._move(GET, dst_chunk, src_chunk, tb, tb_group)

    def put_packets(
        self, dst_chunk: Chunk, src_chunk: Chunk, tb: Block = None, tb_group: Group = None
    ) -> None:
        """Writes src as packets to dst, which is scratch of the peer."""
        if dst_chunk.at & 3 != SCRATCH:
            needs_scratch("the destination of 'put_packets'", dst_chunk)
        if src_chunk.rank != self.src_rank or dst_chunk.rank != self.dst_rank:
            self._needs_ends(src_chunk, dst_chunk)
        self._move(PUT_PACKETS, dst_chunk, src_chunk, tb, tb_group)

    put_packet = put_packets  # as earlier versions of the language have it

    def reduce(
        self,
        local_src_chunk: Chunk,
        remote_src_chunks: List[Chunk],
        tb: Block = None,
        tb_group: Group = None,
        local_dst_chunk: Optional[Chunk] = None,
        reduce_op: ReduceOperationType = ReduceOperationType.sum,
    ) -> None:
        """local_dst (local_src, if left out) = local_src + what it reads at the peer."""
        src = local_src_chunk
        dst = src if local_dst_chunk is None else local_dst_chunk
        rank, size = self.dst_rank, src.size
        others = [one.at for one in remote_src_chunks if one.rank == rank and one.size == size]
        own = src.rank == dst.rank == self.src_rank
        if not (own and 0 < len(remote_src_chunks) == len(others)):
            self._needs_sources(src, remote_src_chunks, dst)
        op = READ_REDUCE | len(others) << COUNT
        others.append(1 if reduce_op is _SUM else number_of_reduction(reduce_op))
        self._move(op, dst, src, tb, tb_group)
        self._trace.add(others)

    def _needs_sources(self, src, others, dst):
        if not others:
            raise ProgramError("a 'reduce' of one chunk: 'remote_src_chunks' is empty")
        for chunk in others:
            self._needs_ends(src, chunk)
            needs_equal(chunk, src)
        self._needs_ends(dst, others[0])


class PortChannel(_Channel):
    """A channel over a proxy or a network from `src_rank` to `dst_rank`."""

    __slots__ = ()
    channel_type = ChannelType.port
    _kind = PORT_CHANNEL

    def signal(self, tb: int, data_sync: SyncType = SyncType.both) -> None:
        """Adds one at the partner of this channel, after the puts before it."""
        self._synchronize(SIGNAL, tb, data_sync)

    def wait(self, tb: int, data_sync: SyncType = SyncType.both) -> None:
        """Waits for a signal of the partner."""
        self._synchronize(WAIT, tb, data_sync)

    def flush(self, tb: int, data_sync: SyncType = SyncType.both) -> None:
        """Waits until the sources of all puts may be changed."""
        self._synchronize(FLUSH, tb, data_sync)

    def put(self, dst_chunk: Chunk, src_chunk: Chunk, tb: int) -> None:
        """Sends src to dst, which is at the peer."""
        self._needs_ends(src_chunk, dst_chunk)
        self._move(PUT, dst_chunk, src_chunk, tb, None)

    def put_with_signal(self, dst_chunk: Chunk, src_chunk: Chunk, tb: int) -> None:
        """Sends src to dst and signals."""
        self._needs_ends(src_chunk, dst_chunk)
        self._move(PUT_WITH_SIGNAL, dst_chunk, src_chunk, tb, None)

    def put_with_signal_and_flush(self, dst_chunk: Chunk, src_chunk: Chunk, tb: int) -> None:
        """Sends src to dst, signals, and waits until src may be changed."""
        self._needs_ends(src_chunk, dst_chunk)
        self._move(PUT_WITH_SIGNAL_AND_FLUSH, dst_chunk, src_chunk, tb, None)

    def put_packets(self, dst_chunk: Chunk, src_chunk: Chunk, tb: int) -> None:
        """Sends the packets in src to dst, scratch of the peer."""
        needs_scratch("the destination of 'put_packets'", dst_chunk)
        self._needs_ends(src_chunk, dst_chunk)
        self._move(PUT_PACKETS, dst_chunk, src_chunk, tb, None)

    put_packet = put_packets  # as earlier versions of the language have it


class SwitchChannel:
    """A channel over a switch that joins one buffer of all ranks in a list."""

    __slots__ = ("rank_group", "buffer_type", "channel_ids", "_program", "_number")
    channel_type = ChannelType.switch

    def __init__(self, rank_list: List[int], buffer_type: BufferType):
        self._program = get_program()
        self.rank_group = list(rank_list)
        needs_different("the switch channel", self.rank_group)
        needs_kind("'buffer_type'", buffer_type, BufferType, "a BufferType")
        for rank in self.rank_group:
            self._program.needs_rank(rank)
        trace = self._program.trace
        trace.take_room(len(self.rank_group))
        self.buffer_type = buffer_type
        ids = trace.ids[SWITCH_CHANNEL]
        self.channel_ids = {rank: ids[rank] for rank in self.rank_group}
        for rank in self.rank_group:
            ids[rank] += 1
        self._number = trace.channels
        trace.channels += 1
        joined = number_of_buffer(buffer_type)
        trace.add((SWITCH, joined, len(self.rank_group), *self.rank_group))

    def at_rank(self, rank: int) -> "SwitchChannel.SwitchChannelRankView":
        """The channel as `rank` uses it."""
        return SwitchChannel.SwitchChannelRankView(self, rank)

    def reduce(
        self,
        rank: int,
        buffer_offset: int,
        size: int,
        dst_chunk: Chunk,
        tb: int,
        reduce_op: ReduceOperationType = ReduceOperationType.sum,
    ) -> None:
        """dst = the sum of these chunks of all ranks."""
        reduction = number_of_reduction(reduce_op)
        self._add(SWITCH_REDUCE, rank, buffer_offset, size, dst_chunk, tb, reduction)

    def broadcast(
        self, rank: int, src_chunk: Chunk, buffer_offset: int, size: int, tb: int
    ) -> None:
        """These chunks of all ranks = src."""
        self._add(SWITCH_BROADCAST, rank, buffer_offset, size, src_chunk, tb)

    def broadcast_packets(
        self, rank: int, src_chunk: Chunk, buffer_offset: int, size: int, tb: int
    ) -> None:
        """Waits for the packets in src and writes them to scratch of all ranks."""
        self._needs_packets(src_chunk)
        self._add(SWITCH_BROADCAST_PACKETS, rank, buffer_offset, size, src_chunk, tb)

    def _needs_packets(self, src):
        needs_scratch("the source of 'broadcast_packets'", src)
        if self.buffer_type is not BufferType.scratch:
            raise ProgramError("packets go to scratch; this switch channel joins other buffers")

    def _add(self, op, rank, offset, size, chunk, tb, reduction=0):
        """An op between `chunk` of the rank and chunks of the buffer that the switch joins."""
        self._needs_member(rank)
        self._needs_member(chunk.rank)
        if chunk.size != size:
            raise ProgramError(f"{chunk!r} is not {size} chunks")
        for other in self.rank_group:
            self._program.needs_chunks(other, self.buffer_type, offset, size)
        self._program.needs_rank(rank)
        needs_block(tb)
        trace, frame = self._program.trace, _getframe(2)
        trace.take_room()
        if trace.code is not frame.f_code:
            trace.enter(frame.f_code)
        trace.add((op, self._number, rank, tb, offset, size, chunk.at, frame.f_lasti, reduction))

    def _needs_member(self, rank):
        if rank not in self.channel_ids:
            raise ProgramError(f"rank {rank} is not one of the switch's ranks {self.rank_group}")

    class SwitchChannelRankView:
        """A switch channel as one rank uses it."""

        __slots__ = ("_channel", "_rank")

        def __init__(self, channel: "SwitchChannel", rank: int):
            channel._needs_member(rank)
            self._channel = channel
            self._rank = rank

        def reduce(
            self,
            buffer_offset: int,
            size: int,
            dst_chunk: Chunk,
            tb: int,
            reduce_op: ReduceOperationType = ReduceOperationType.sum,
        ) -> None:
            """dst = the sum of these chunks of all ranks."""
            reduction = number_of_reduction(reduce_op)
            self._channel._add(
                SWITCH_REDUCE, self._rank, buffer_offset, size, dst_chunk, tb, reduction
            )

        def broadcast(self, src_chunk: Chunk, buffer_offset: int, size: int, tb: int) -> None:
            """These chunks of all ranks = src."""
            self._channel._add(SWITCH_BROADCAST, self._rank, buffer_offset, size, src_chunk, tb)

        def broadcast_packets(
            self, src_chunk: Chunk, buffer_offset: int, size: int, tb: int
        ) -> None:
            """Waits for the packets in src and writes them to scratch of all ranks."""
            self._channel._needs_packets(src_chunk)
            self._channel._add(
                SWITCH_BROADCAST_PACKETS, self._rank, buffer_offset, size, src_chunk, tb
            )


def _needs_packets(dst, src, tb, tb_group):
    """What 'read_put_packets' forwards are packets, in scratch."""
    if tb is None and tb_group is None:
        raise ValueError("for which thread block? Say 'tb' or 'tb_group'")
    needs_scratch("the source of 'read_put_packets'", src)
    needs_scratch("the destination of 'read_put_packets'", dst)
