"""Groups of thread blocks that share the work of an op."""

from typing import Dict, List, Optional

from .internal.arguments import MOST_BLOCKS, needs_block, needs_different, needs_number

__all__ = ["ThreadBlockGroup", "Dict", "List"]


class ThreadBlockGroup:
    """Thread blocks that do an op together, each a part of every chunk."""

    def __init__(self, tb_list: List[int]):
        needs_number("the number of thread blocks of a group", len(tb_list), 0, MOST_BLOCKS)
        self.tb_list = list(tb_list)
        for tb in self.tb_list:
            needs_block(tb)
        needs_different("the group", self.tb_list)
        self._place_of = {tb: i for i, tb in enumerate(self.tb_list)}

    def get_internal_id(self, tb: int) -> int:
        """The position of a block in the group."""
        if tb not in self._place_of:
            raise ValueError(f"thread block {tb} is not in the group {self.tb_list}")
        return self._place_of[tb]

    def numtb(self) -> int:
        """How many blocks the group has."""
        return len(self.tb_list)


# Where an op runs: a block, or a group of them.
Block = Optional[int]
Group = Optional[ThreadBlockGroup]
