"""The program that is being traced, and those that have been."""

from .errors import ProgramError

limits = True  # plans must fit into MSCCL++'s executor
_current = None
traced = None  # in a run of a file: programs whose `with` block has ended, in order


def get_program():
    """The program whose `with` block is running."""
    if _current is None:
        raise ProgramError("no program: this belongs into a 'with CollectiveProgram(…)'")
    return _current


def set_program(program):
    """Makes `program` the current one; None: there is none."""
    global _current
    if program is not None and _current is not None:
        raise ProgramError("a program inside another: end the 'with' of the first before")
    _current = program


def is_current(program):
    """Whether its `with` block is running."""
    return _current is program
