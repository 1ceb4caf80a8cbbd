"""Pipelined loops: `with LoopIterationContext(unit, num_chunks):`."""

from sys import _getframe

from .internal.arguments import MOST_CHUNKS, needs_number
from .internal.errors import ProgramError
from .internal.globals import get_program
from .internal.words import END_OF_LOOP, LOOP

__all__ = ["LoopIterationContext", "get_program"]


class LoopIterationContext:
    """Ops traced inside run once for each `unit` bytes of `num_chunks` chunks, in every block."""

    def __init__(self, unit: int, num_chunks: int):
        needs_number("'unit' of a loop", unit, 1, 2**32 - 1)
        needs_number("'num_chunks' of a loop", num_chunks, 1, MOST_CHUNKS)
        self.unit = unit
        self.num_chunks = num_chunks
        self._program = None  # that it is a loop of

    def __enter__(self):
        program = get_program()
        if program.loop_context is not None:
            raise ProgramError("a loop inside a loop: pipelines do not nest")
        if self._program is not None:
            raise ProgramError("a loop that has run: each has a LoopIterationContext of its own")
        trace, frame = program.trace, _getframe(1)
        trace.enter(frame.f_code)
        trace.add((LOOP, self.unit, self.num_chunks, frame.f_lasti))
        program.loop_context = self
        self._program = program
        return self

    def __exit__(self, kind, value, traceback):
        self._program.loop_context = None
        self._program.trace.add((END_OF_LOOP,))
