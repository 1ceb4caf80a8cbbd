"""What a program has traced so far: ranks, their thread blocks, channels and buffers."""

from .arguments import needs_block
from .errors import ProgramError


class Block:
    """A thread block: its ops, and its tables of channels and remote buffers.

    A table is a dict from an id of the rank to the position in the table, in order.
    """

    __slots__ = ("ops", "channels", "remotes")

    def __init__(self):
        self.ops = []
        self.channels = {}  # type: channel id -> position
        self.remotes = {}  # type of access: remote buffer id -> position


class RankState:
    """A rank: its blocks, and what they share."""

    __slots__ = ("rank", "blocks", "channels", "remotes", "semaphores", "scratch", "barriers")

    def __init__(self, rank):
        self.rank = rank
        self.blocks = {}
        self.channels = {}  # type: peers, for switches (buffer, ranks)
        self.remotes = {}  # (rank, letter of a buffer): (id, types of access)
        self.semaphores = []  # first values
        self.scratch = 0
        self.barriers = {}  # blocks, as listed: id

    def block(self, tb):
        """The thread block `tb`; a new one if there is none."""
        found = self.blocks.get(tb)
        if found is None:
            needs_block(tb)
            found = self.blocks[tb] = Block()
        return found

    def add_channel(self, kind, peer):
        """A new channel; its id among the rank's channels of this type."""
        peers = self.channels.setdefault(kind, [])
        peers.append(peer)
        return len(peers) - 1

    def remote(self, block, chunk, access):
        """The reference of `block` to a chunk of another rank."""
        where, index, size = chunk.ref
        entry = self.remotes.get((chunk.rank, where))
        if entry is None:
            entry = self.remotes[chunk.rank, where] = (len(self.remotes), [])
        if access not in entry[1]:
            entry[1].append(access)
        table = block.remotes.get(access)
        if table is None:
            table = block.remotes[access] = {}
        return table.setdefault(entry[0], len(table)), index, size


def position(block, kind, channel):
    """The position of a channel in the block's table, where it is entered if it is new."""
    table = block.channels.get(kind)
    if table is None:
        table = block.channels[kind] = {}
    return table.setdefault(channel, len(table))


def members(tb, tb_group):
    """The blocks that an op is for, as pairs of the block and its part of the group, or None."""
    if tb_group is None:
        if tb is None:
            raise ProgramError("for which thread block? Say 'tb' or 'tb_group'")
        return ((tb, None),)
    count = tb_group.numtb()
    if tb is not None:
        return ((tb, (tb_group.get_internal_id(tb), count)),)
    return [(member, (i, count)) for i, member in enumerate(tb_group.tb_list)]
