"""Channels to other ranks, and the ops that go through them."""

from typing import List, Optional

from .internal.arguments import needs_different, needs_kind
from .internal.errors import ProgramError
from .internal.globals import get_program
from .internal.op import Op, caller
from .internal.rules import needs_equal, needs_scratch
from .internal.state import members, position
from .internal.types import (
    BufferType,
    ChannelType,
    Chunk,
    ReduceOperationType,
    SyncType,
    name_of,
)
from .thread_block_group import ThreadBlockGroup

__all__ = ["MemoryChannel", "PortChannel", "SwitchChannel"]

_SIGNAL = {False: "signal", True: "rlxsignal"}  # relaxed
_WAIT = {False: "wait", True: "rlxwait"}


class _Channel:
    """What memory and port channels have in common; a subclass says its `channel_type`."""

    __slots__ = (
        "dst_rank", "src_rank", "channel_id", "_program", "_state", "_kind", "_blocks",
    )  # fmt: skip
    channel_type = ChannelType.none

    def __init__(self, dst_rank: int, src_rank: int):
        self._program = get_program()
        self._state = self._program.state_of(src_rank)
        self._program.state_of(dst_rank)
        if dst_rank == src_rank:
            raise ProgramError(f"a channel of rank {src_rank} to itself")
        self._program.take_room()
        self._kind = self.channel_type.value
        self.dst_rank = dst_rank
        self.src_rank = src_rank
        self.channel_id = self._state.add_channel(self._kind, dst_rank)
        self._blocks = {}  # those that use it: (block, position in its table)

    def _signal(self, name, tb, data_sync, place):
        self._program.count_signal(self._kind, self.src_rank, self.dst_rank, place)
        self._synchronize(name, tb, data_sync, place)

    def _wait(self, name, tb, data_sync, place):
        self._program.count_wait(self._kind, self.src_rank, self.dst_rank, place)
        self._synchronize(name, tb, data_sync, place)

    def _synchronize(self, name, tb, data_sync, place):
        if data_sync.__class__ is not SyncType:
            needs_kind("'data_sync'", data_sync, SyncType, "a SyncType")
        block, at = self._blocks.get(tb) or self._enter(tb)
        op = Op(name, place, self._kind, (), (), [at], data_sync)
        self._program.add(self._state, tb, op, block)

    def _enter(self, tb):
        """Enters the channel into the table of a block that has not used it."""
        block = self._state.block(tb)
        entry = self._blocks[tb] = block, position(block, self._kind, self.channel_id)
        return entry

    def _send(self, name, dst, src, tb, tb_group, place):
        """Pairs of a local source and a remote destination, one op for each block."""
        self._needs_own(src)
        self._needs_peer(dst)
        needs_equal(dst, src)
        kind, state = self._kind, self._state
        for tb, group in members(tb, tb_group):
            block, at = self._blocks.get(tb) or self._enter(tb)
            remote = state.remote(block, dst, kind)
            op = Op(name, place, kind, [src.ref], [remote], [at], 0, group)
            self._program.add(state, tb, op, block)

    def _forward(self, dst, src, tb, tb_group, place):
        """The packets of a local source go to a remote destination."""
        _needs_blocks(tb, tb_group)
        needs_scratch("the source of 'read_put_packets'", src)
        needs_scratch("the destination of 'read_put_packets'", dst)
        self._send("rppkt", dst, src, tb, tb_group, place)

    def _needs_own(self, chunk):
        if chunk.rank != self.src_rank:
            raise ProgramError(f"{chunk!r} is not on rank {self.src_rank}, whose channel this is")

    def _needs_peer(self, chunk):
        if chunk.rank != self.dst_rank:
            raise ProgramError(f"{chunk!r} is not on rank {self.dst_rank}, where the channel ends")


class MemoryChannel(_Channel):
    """A channel by which `src_rank` reads and writes the memory of `dst_rank`."""

    __slots__ = ()
    channel_type = ChannelType.memory

    def signal(
        self, tb: int, data_sync: SyncType = SyncType.both, relaxed: bool = False
    ) -> None:
        """Adds one at the partner of this channel; `relaxed`: this publishes no data."""
        self._signal(_SIGNAL[relaxed], tb, data_sync, caller(1))

    def wait(self, tb: int, data_sync: SyncType = SyncType.both, relaxed: bool = False) -> None:
        """Waits for a signal of the partner."""
        self._wait(_WAIT[relaxed], tb, data_sync, caller(1))

    def put(
        self,
        dst_chunk: Chunk,
        src_chunk: Chunk,
        tb: Optional[int] = None,
        tb_group: Optional[ThreadBlockGroup] = None,
    ) -> None:
        """Writes src to dst, which is at the peer."""
        self._send("put", dst_chunk, src_chunk, tb, tb_group, caller(1))

    def get(
        self,
        dst_chunk: Chunk,
        src_chunk: Chunk,
        tb: Optional[int] = None,
        tb_group: Optional[ThreadBlockGroup] = None,
    ) -> None:
        """Reads src, which is at the peer, to dst."""
        self._needs_own(dst_chunk)
        self._needs_peer(src_chunk)
        needs_equal(dst_chunk, src_chunk)
        place = caller(1)
        for tb, group in members(tb, tb_group):
            block, at = self._blocks.get(tb) or self._enter(tb)
            remote = self._state.remote(block, src_chunk, "memory")
            op = Op("get", place, "memory", [remote], [dst_chunk.ref], [at], 0, group)
            self._program.add(self._state, tb, op, block)

    def put_packets(
        self,
        dst_chunk: Chunk,
        src_chunk: Chunk,
        tb: Optional[int] = None,
        tb_group: Optional[ThreadBlockGroup] = None,
    ) -> None:
        """Writes src as packets to dst, which is scratch of the peer."""
        needs_scratch("the destination of 'put_packets'", dst_chunk)
        self._send("ppkt", dst_chunk, src_chunk, tb, tb_group, caller(1))

    def read_put_packets(
        self,
        dst_chunk: Chunk,
        src_chunk: Chunk,
        tb: Optional[int] = None,
        tb_group: Optional[ThreadBlockGroup] = None,
    ) -> None:
        """Waits for the packets in src and forwards them to dst, scratch of the peer."""
        self._forward(dst_chunk, src_chunk, tb, tb_group, caller(1))

    def reduce(
        self,
        local_src_chunk: Chunk,
        remote_src_chunks: List[Chunk],
        tb: Optional[int] = None,
        tb_group: Optional[ThreadBlockGroup] = None,
        local_dst_chunk: Optional[Chunk] = None,
        reduce_op: ReduceOperationType = ReduceOperationType.sum,
    ) -> None:
        """local_dst (local_src, if left out) = local_src + what it reads at the peer."""
        dst = local_src_chunk if local_dst_chunk is None else local_dst_chunk
        if not remote_src_chunks:
            raise ProgramError("a 'reduce' of one chunk: 'remote_src_chunks' is empty")
        self._needs_own(local_src_chunk)
        self._needs_own(dst)
        needs_equal(dst, local_src_chunk)
        for chunk in remote_src_chunks:
            self._needs_peer(chunk)
            needs_equal(chunk, local_src_chunk)
        place = caller(1)
        for tb, group in members(tb, tb_group):
            block, at = self._blocks.get(tb) or self._enter(tb)
            ids = [at] * len(remote_src_chunks)
            remotes = [self._state.remote(block, chunk, "memory") for chunk in remote_src_chunks]
            src = [local_src_chunk.ref, *remotes]
            op = Op("rre", place, "memory", src, [dst.ref], ids, 0, group)
            op.reduce_op = name_of(reduce_op)
            self._program.add(self._state, tb, op, block)


class PortChannel(_Channel):
    """A channel over a proxy or a network from `src_rank` to `dst_rank`."""

    __slots__ = ()
    channel_type = ChannelType.port

    def signal(self, tb: int, data_sync: SyncType = SyncType.both) -> None:
        """Adds one at the partner of this channel, after the puts before it."""
        self._signal("signal", tb, data_sync, caller(1))

    def wait(self, tb: int, data_sync: SyncType = SyncType.both) -> None:
        """Waits for a signal of the partner."""
        self._wait("wait", tb, data_sync, caller(1))

    def flush(self, tb: int, data_sync: SyncType = SyncType.both) -> None:
        """Waits until the sources of all puts may be changed."""
        self._synchronize("flush", tb, data_sync, caller(1))

    def put(self, dst_chunk: Chunk, src_chunk: Chunk, tb: int) -> None:
        """Sends src to dst, which is at the peer."""
        self._send("put", dst_chunk, src_chunk, tb, None, caller(1))

    def put_with_signal(self, dst_chunk: Chunk, src_chunk: Chunk, tb: int) -> None:
        """Sends src to dst and signals."""
        place = caller(1)
        self._send("pws", dst_chunk, src_chunk, tb, None, place)
        self._program.count_signal("port", self.src_rank, self.dst_rank, place)

    def put_with_signal_and_flush(self, dst_chunk: Chunk, src_chunk: Chunk, tb: int) -> None:
        """Sends src to dst, signals, and waits until src may be changed."""
        place = caller(1)
        self._send("pwsf", dst_chunk, src_chunk, tb, None, place)
        self._program.count_signal("port", self.src_rank, self.dst_rank, place)

    def put_packets(self, dst_chunk: Chunk, src_chunk: Chunk, tb: int) -> None:
        """Sends the packets in src to dst, scratch of the peer."""
        needs_scratch("the destination of 'put_packets'", dst_chunk)
        self._send("ppkt", dst_chunk, src_chunk, tb, None, caller(1))

    def read_put_packets(
        self,
        dst_chunk: Chunk,
        src_chunk: Chunk,
        tb: Optional[int] = None,
        tb_group: Optional[ThreadBlockGroup] = None,
    ) -> None:
        """Waits for the packets in src and sends them to dst, scratch of the peer."""
        self._forward(dst_chunk, src_chunk, tb, tb_group, caller(1))


class SwitchChannel:
    """A channel over a switch that joins one buffer of all ranks in a list."""

    __slots__ = ("rank_group", "buffer_type", "channel_ids", "_program")
    channel_type = ChannelType.switch

    def __init__(self, rank_list: List[int], buffer_type: BufferType):
        self._program = get_program()
        self.rank_group = list(rank_list)
        needs_different("the switch channel", self.rank_group)
        needs_kind("'buffer_type'", buffer_type, BufferType, "a BufferType")
        self._program.take_room(len(self.rank_group))
        self.buffer_type = buffer_type
        joined = (buffer_type.value, tuple(self.rank_group))
        states = [self._program.state_of(rank) for rank in self.rank_group]
        self.channel_ids = {state.rank: state.add_channel("switch", joined) for state in states}

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
        op = self._op("glre", rank, buffer_offset, size, dst_chunk, tb, caller(1))
        op.reduce_op = name_of(reduce_op)

    def broadcast(
        self, rank: int, src_chunk: Chunk, buffer_offset: int, size: int, tb: int
    ) -> None:
        """These chunks of all ranks = src."""
        self._op("gstore", rank, buffer_offset, size, src_chunk, tb, caller(1))

    def broadcast_packets(
        self, rank: int, src_chunk: Chunk, buffer_offset: int, size: int, tb: int
    ) -> None:
        """Waits for the packets in src and writes them to scratch of all ranks."""
        self._packets(rank, src_chunk, buffer_offset, size, tb, caller(1))

    def _packets(self, rank, src, offset, size, tb, place):
        needs_scratch("the source of 'broadcast_packets'", src)
        if self.buffer_type is not BufferType.scratch:
            raise ProgramError("packets go to scratch; this switch channel joins other buffers")
        self._op("gstorepkt", rank, offset, size, src, tb, place)

    def _op(self, name, rank, offset, size, chunk, tb, place):
        """An op between `chunk` of the rank and chunks of the buffer that the switch joins."""
        self._needs_member(rank)
        self._needs_member(chunk.rank)
        if chunk.size != size:
            raise ProgramError(f"{chunk!r} is not {size} chunks")
        for other in self.rank_group:
            self._program.needs_chunks(other, self.buffer_type, offset, size)
        state = self._program.state_of(rank)
        at = position(state.block(tb), "switch", self.channel_ids[rank])
        joined = (at, offset, size)
        src, dst = ([joined], [chunk.ref]) if name == "glre" else ([chunk.ref], [joined])
        op = Op(name, place, "switch", src, dst, [at])
        self._program.add(state, tb, op)
        return op

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
            op = self._channel._op(
                "glre", self._rank, buffer_offset, size, dst_chunk, tb, caller(1)
            )
            op.reduce_op = name_of(reduce_op)

        def broadcast(self, src_chunk: Chunk, buffer_offset: int, size: int, tb: int) -> None:
            """These chunks of all ranks = src."""
            self._channel._op("gstore", self._rank, buffer_offset, size, src_chunk, tb, caller(1))

        def broadcast_packets(
            self, src_chunk: Chunk, buffer_offset: int, size: int, tb: int
        ) -> None:
            """Waits for the packets in src and writes them to scratch of all ranks."""
            self._channel._packets(self._rank, src_chunk, buffer_offset, size, tb, caller(1))


def _needs_blocks(tb, tb_group):
    if tb is None and tb_group is None:
        raise ValueError("for which thread block? Say 'tb' or 'tb_group'")
