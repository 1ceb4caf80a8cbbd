"""What describes an algorithm besides its ops."""

from types import MappingProxyType
from typing import Any, Mapping, NamedTuple

from .collectives import Collective
from .internal.types import ReplicationPolicy

__all__ = ["AlgoSpec", "ReplicationPolicy"]


class AlgoSpec(NamedTuple):
    """What `CollectiveProgram.from_spec` makes a program of."""

    name: str
    collective: Collective
    nranks_per_node: int
    world_size: int
    in_place: bool
    instances: int
    protocol: str
    instr_fusion: bool = True
    auto_sync: bool = True
    replication_policy: ReplicationPolicy = ReplicationPolicy.interleaved
    reuse_resources: bool = False
    num_threads_per_block: int = 1024
    use_double_scratch_buffer: bool = False
    buffer_alignment: int = 16
    min_message_size: int = 0
    max_message_size: int = 2**64 - 1
    tags: Mapping[str, Any] = MappingProxyType({})
