"""Pipelined loops: `with LoopIterationContext(unit, num_chunks):`."""

from .internal.arguments import MOST_CHUNKS, needs_number
from .internal.errors import ProgramError
from .internal.globals import get_program
from .internal.op import Op, caller

__all__ = ["LoopIterationContext"]


class LoopIterationContext:
    """Ops traced inside run once for each `unit` bytes of `num_chunks` chunks, in every block."""

    def __init__(self, unit: int, num_chunks: int):
        needs_number("'unit' of a loop", unit, 1, 2**32 - 1)
        needs_number("'num_chunks' of a loop", num_chunks, 1, MOST_CHUNKS)
        self.unit = unit
        self.num_chunks = num_chunks
        self.operations = {}  # (rank, block): ops
        self._place = None

    def __enter__(self):
        program = get_program()
        if program.loop_context is not None:
            raise ProgramError("a loop inside a loop: pipelines do not nest")
        self._place = caller(1)
        program.loop_context = self
        return self

    def __exit__(self, kind, value, traceback):
        program = get_program()
        program.loop_context = None
        if kind is not None:
            return
        for (rank, tb), ops in self.operations.items():
            op = Op("pipeline", self._place)
            op.detail, op.body = (self.unit, self.num_chunks), ops
            program.ranks[rank].block(tb).ops.append(op)

    def add_operation(self, rank: int, tb: int, operation: Op) -> None:
        """Adds an op of a block to the loop."""
        ops = self.operations.get((rank, tb))
        if ops is None:
            ops = self.operations[rank, tb] = []
        ops.append(operation)
