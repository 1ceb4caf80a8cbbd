"""The program: what is traced inside `with CollectiveProgram(…):`, and its plan."""

import json
from typing import Any, Optional

from . import channel, collectives, utils
from .channel import *  # noqa: F403
from .collectives import *  # noqa: F403
from .collectives import Collective
from .internal import globals as current
from .internal.arguments import (
    MOST_BLOCKS,
    MOST_CHUNKS,
    MOST_RANKS,
    is_number,
    needs_flag,
    needs_kind,
    needs_number,
    needs_text,
    shown,
)
from .internal.errors import ProgramError
from .internal.size import check_buffers, no_room, room_of
from .internal.trace import Trace, caller
from .internal.types import BufferType
from .internal.write_plan import check_signals, json_of
from .rank import BaseBuffer, Semaphore
from .utils import AlgoSpec, ReplicationPolicy

# MSCCL++'s module hides nothing that it imports either.
__all__ = [
    "CollectiveProgram", "MSCCLPPProgram", "BaseBuffer", "Semaphore", "json",
    *channel.__all__, *collectives.__all__, *utils.__all__,
]  # fmt: skip


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
        self.trace = Trace(self, room_of(self))
        self.loop_context = None

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
        self.trace.open()
        return self

    def __exit__(self, kind, value, traceback):
        self.trace.close()
        current.set_program(None)
        traced = current.traced
        if kind is None and traced is not None and self not in traced:
            traced.append(self)

    def post_process_operations(self) -> None:
        """Checks what can be checked without the plan; passes run when a plan is written."""
        check_signals(self)

    def to_json(self, indent: Optional[int] = 2, **kwargs: Any) -> str:
        """The plan. Calling it again gives the same text."""
        return json_of(self, indent, kwargs)

    def needs_rank(self, rank: int) -> None:
        """It must be one of the program's ranks."""
        if rank.__class__ is not int or not 0 <= rank < self.num_ranks:
            if not is_number(rank) or not 0 <= rank < self.num_ranks:
                raise ProgramError(
                    f"rank {shown(rank)} of {self.num_ranks} ranks, which begin with 0"
                )

    def why_no_room(self) -> ProgramError:
        """Why a call of the program is refused."""
        if current.is_current(self):
            return no_room(self)
        return ProgramError(
            f"the program '{self.name}' has ended: this belongs into its 'with CollectiveProgram(…)'"
        )

    def chunks(self, rank: int, buffer: BufferType) -> int:
        """How many chunks a buffer of a rank has."""
        if buffer is BufferType.scratch:
            return self.trace.scratch[rank]
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


MSCCLPPProgram = CollectiveProgram  # its name in earlier versions of the language
