"""The program: what is traced inside `with CollectiveProgram(…):`, and its plan."""

import json

from .collectives import Collective
from .internal import globals as current
from .internal.check import check_counts
from .internal.errors import ProgramError
from .internal.op import caller
from .internal.state import MOST_BLOCKS, MOST_RANKS, RankState
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
        assert protocol in ("Simple", "LL"), f"protocol {protocol!r}; there are 'Simple' and 'LL'"
        _bounded("the number of instances", instances, MOST_BLOCKS)
        _bounded("the number of ranks", num_ranks, MOST_RANKS)
        _bounded("the number of the collective's ranks", collective.num_ranks, MOST_RANKS)
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
        self.buffers = collective.init_buffers()
        if len(self.buffers) < num_ranks:
            raise ProgramError(f"{num_ranks} ranks, and a collective of {len(self.buffers)}")
        self.ranks = [RankState(rank) for rank in range(num_ranks)]
        self.loop_context = None
        self.signals = {}  # (type, from, to): [count, place of the last]
        self.waits = {}  # the same, of the waits that take them

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
        if not isinstance(rank, int) or not 0 <= rank < self.num_ranks:
            raise ProgramError(f"rank {rank!r} of {self.num_ranks} ranks, which begin with 0")
        return self.ranks[rank]

    def add(self, state: RankState, tb: int, op, block=None) -> None:
        """Appends an op to a thread block (`block`, where the caller has it), or to its part of the
        loop that is being traced."""
        if block is None:
            block = state.block(tb)
        if self.loop_context is None:
            block.ops.append(op)
        else:
            self.loop_context.add_operation(state.rank, tb, op)

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
        if offset < 0 or size < 1 or offset + size > count:
            raise ProgramError(
                f"chunks {offset} to {offset + size} of the {buffer.name} of rank {rank}, "
                f"which has {count}"
            )


def _bounded(what, value, most):
    """What is too large would be traced for ever."""
    if not isinstance(value, int) or not 1 <= value <= most:
        raise ProgramError(f"{what} is {value!r}; allowed are 1 to {most}")


def _count(counts, key, place):
    entry = counts.get(key)
    if entry is None:
        counts[key] = [1, place]
    else:
        entry[0] += 1
        entry[1] = place
