"""The program: what is traced inside `with CollectiveProgram(…):`, and its plan."""

import json

from .collectives import Collective
from .internal import globals as current
from .internal.arguments import (
    MOST_BLOCKS,
    MOST_CHUNKS,
    MOST_RANKS,
    is_number,
    needs_block,
    needs_flag,
    needs_kind,
    needs_number,
    needs_text,
    shown,
)
from .internal.check import check_counts
from .internal.errors import ProgramError
from .internal.op import caller, forget_callers
from .internal.size import check_buffers, no_room, room_of
from .internal.state import RankState
from .internal.types import BufferType
from .internal.write_plan import plan_of
from .utils import AlgoSpec, ReplicationPolicy

__all__ = ["CollectiveProgram"]


class CollectiveProgram:
    """A collective as an algorithm: which rank moves which chunk, in which thread block."""

    def __init__(
        self,
        name: str,
        collective: Collective,
        num_ranks: int,
        instances: int = 1,
        protocol: str = "Simple",
        instr_fusion: bool = True,
        auto_sync: bool = True,
        replication_policy: ReplicationPolicy = ReplicationPolicy.interleaved,
        reuse_resources: bool = False,
        num_threads_per_block: int = 1024,
        use_double_scratch_buffer: bool = False,
        buffer_alignment: int = 16,
        min_message_size: int = 0,
        max_message_size: int = 2**64 - 1,
    ):
        self.place = caller(1)
        needs_text("'name'", name)
        needs_kind("'collective'", collective, Collective, "a collective")
        needs_number("the number of instances", instances, 1, MOST_BLOCKS)
        needs_number("the number of ranks", num_ranks, 1, MOST_RANKS)
        needs_number("the number of the collective's ranks", collective.num_ranks, 1, MOST_RANKS)
        self.name = name
        self.collective = collective
        self.num_ranks = num_ranks
        self.instances = instances
        self.protocol = protocol
        self.instr_fusion = instr_fusion
        self.auto_sync = auto_sync
        self.replication_policy = replication_policy
        self.reuse_resources = reuse_resources
        self.num_threads_per_block = num_threads_per_block
        self.use_double_scratch_buffer = use_double_scratch_buffer
        self.buffer_alignment = buffer_alignment
        self.min_message_size = min_message_size
        self.max_message_size = max_message_size
        self._check_options()
        self.buffers = collective.init_buffers()
        if len(self.buffers) < num_ranks:
            raise ProgramError(f"{num_ranks} ranks, and a collective of {len(self.buffers)}")
        check_buffers(self)
        self.room = room_of(self)
        self.ranks = [RankState(rank) for rank in range(num_ranks)]
        self.loop_context = None
        self.signals = {}  # (type, from, to): [count, place of the last]
        self.waits = {}  # the same, of the waits that take them

    def _check_options(self):
        if self.protocol not in ("Simple", "LL"):
            raise ProgramError(f"'protocol' is {self.protocol!r}; allowed are 'Simple' and 'LL'")
        for name in ("instr_fusion", "auto_sync", "reuse_resources", "use_double_scratch_buffer"):
            needs_flag(f"'{name}'", getattr(self, name))
        needs_kind(
            "'replication_policy'", self.replication_policy, ReplicationPolicy, "a ReplicationPolicy"
        )
        needs_number("'num_threads_per_block'", self.num_threads_per_block, 32, 1024, 32)
        needs_number("'buffer_alignment'", self.buffer_alignment, 16, 2**20, 16)
        needs_number("'min_message_size'", self.min_message_size, 0, 2**64 - 1)
        needs_number(
            "'max_message_size'", self.max_message_size, self.min_message_size, 2**64 - 1
        )

    @classmethod
    def from_spec(cls, spec: AlgoSpec) -> "CollectiveProgram":
        """The program that a specification describes."""
        program = cls(
            spec.name,
            spec.collective,
            spec.world_size,
            spec.instances,
            spec.protocol,
            spec.instr_fusion,
            spec.auto_sync,
            spec.replication_policy,
            spec.reuse_resources,
            spec.num_threads_per_block,
            spec.use_double_scratch_buffer,
            spec.buffer_alignment,
            spec.min_message_size,
            spec.max_message_size,
        )
        program.place = caller(1)
        return program

    def __enter__(self):
        current.set_program(self)
        return self

    def __exit__(self, kind, value, traceback):
        current.set_program(None)
        forget_callers()
        if kind is None:
            current.traced.append(self)

    def post_process_operations(self) -> None:
        """Checks what can be checked without the plan; passes run when a plan is written."""
        check_counts(self)

    def to_json(self, indent=2, **kwargs) -> str:
        """The plan. Calling it again gives the same text."""
        return json.dumps(plan_of(self), indent=indent, **kwargs)

    def state_of(self, rank: int) -> RankState:
        """What is traced of a rank."""
        if not is_number(rank) or not 0 <= rank < self.num_ranks:
            raise ProgramError(f"rank {shown(rank)} of {self.num_ranks} ranks, which begin with 0")
        return self.ranks[rank]

    def add(self, state: RankState, tb: int, op, block=None) -> None:
        """Appends an op to a thread block (`block`, where the caller has it), or to its part of the
        loop that is being traced."""
        if tb.__class__ is not int:  # True and 0.0 would be found among the blocks
            needs_block(tb)
        if block is None:
            block = state.block(tb)
        self.room -= 1
        if self.room < 0:
            raise no_room(self)
        if self.loop_context is None:
            block.ops.append(op)
        else:
            self.loop_context.add_operation(state.rank, tb, op)

    def take_room(self, parts=1) -> None:
        """Counts channels, semaphores or buffers that the program gets; ops count in add()."""
        self.room -= parts
        if self.room < 0:
            raise no_room(self)

    def count_signal(self, kind, source, target, place) -> None:
        """A signal from `source` to `target`."""
        _count(self.signals, (kind, source, target), place)

    def count_wait(self, kind, rank, peer, place) -> None:
        """A wait of `rank` for a signal of `peer`."""
        _count(self.waits, (kind, peer, rank), place)

    def chunks(self, rank: int, buffer: BufferType) -> int:
        """How many chunks a buffer of a rank has."""
        if buffer is BufferType.scratch:
            return self.ranks[rank].scratch
        return self.buffers[rank][buffer].size

    def needs_chunks(self, rank: int, buffer: BufferType, offset: int, size: int) -> None:
        """These chunks of a rank's buffer must be there."""
        count = self.chunks(rank, buffer)
        needs_number("the first chunk", offset, 0, MOST_CHUNKS)
        needs_number("the number of chunks", size, 1, MOST_CHUNKS)
        if offset + size > count:
            raise ProgramError(
                f"chunks {offset} to {offset + size} of the {buffer.name} of rank {rank}, "
                f"which has {count}"
            )


def _count(counts, key, place):
    entry = counts.get(key)
    if entry is None:
        counts[key] = [1, place]
    else:
        entry[0] += 1
        entry[1] = place
