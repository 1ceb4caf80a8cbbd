"""Names that `import *` of MSCCL++'s modules of channels, ranks and programs gives besides their own classes:
those modules hide nothing, and programs have come to rely on it."""

from collections import defaultdict
from typing import Dict, List

from ..thread_block_group import ThreadBlockGroup
from .globals import get_program
from .types import BufferType, ChannelType, Chunk, ReduceOperationType, SyncType

__all__ = [
    "BufferType", "ChannelType", "Chunk", "ReduceOperationType", "SyncType", "ThreadBlockGroup",
    "get_program", "defaultdict", "Dict", "List",
]  # fmt: skip
