"""Rules that ops of several classes share; each raises if its chunks break it."""

from .errors import ProgramError
from .types import SCRATCH


def needs_scratch(what, chunk):
    """`what`, which is `chunk`, must be scratch."""
    if chunk.at & 3 != SCRATCH:
        raise ProgramError(f"{what} must be scratch, {chunk!r} is not")


def needs_equal(one, other):
    """The two must have the same number of chunks."""
    if one.size != other.size:
        raise ProgramError(f"{one!r} and {other!r} differ in size")


def needs_all_scratch(what, chunks):
    """Each of the chunks is `what`, and must be scratch."""
    for chunk in chunks:
        needs_scratch(what, chunk)
