"""Rules that ops of several classes share; each raises if its chunks break it."""

from .errors import ProgramError


def needs_scratch(what, chunk):
    """`what`, which is `chunk`, must be scratch."""
    if chunk.ref[0] != "s":
        raise ProgramError(f"{what} must be scratch, {chunk!r} is not")


def needs_equal(one, other):
    """The two must have the same number of chunks."""
    if one.ref[2] != other.ref[2]:
        raise ProgramError(f"{one!r} and {other!r} differ in size")
