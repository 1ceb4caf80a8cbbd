"""A call of a plan that was checked once, for later calls on memory of the same sizes, types and shapes."""

import ctypes
from typing import Any, Optional, Sequence, Tuple

from ._library import Call


class PreparedCall:
    """What LoadedPlan._prepare() makes. Several threads may use it at once, as far as they may its communicator."""

    __slots__ = ("_plan", "_call", "_externals", "_bytes", "names")

    def __init__(self, plan: Any, call: Call, externals: Any, bytes: int, names: Tuple[str, ...]):
        self._plan, self._call, self._externals, self._bytes = plan, call, externals, bytes
        self.names = names  # of its externals, in the plan's order

    def queue(
        self, input: int, output: int, externals: Sequence[int], stream: Optional[int]
    ) -> None:
        """Queues the call on memory at these addresses; `externals` by `names`, of values in memory alone. The caller
        says that all is as large, and of the same types, as what was prepared, and keeps it until the call has ended."""
        self._plan._needs_open()
        made = type(self._externals).from_buffer_copy(self._externals)
        for to, address in zip(made, externals):
            to.data = address
        call = Call.from_buffer_copy(self._call)
        call.input, call.output, call.externals = input, output, ctypes.addressof(made)
        self._plan._queue(call, self._bytes, stream, meets=False)
