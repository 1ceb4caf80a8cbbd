"""Arguments on their way to C: ctypes truncates numbers that do not fit, and ends texts at a 0."""

import operator

from .errors import UsageError


def number(value, what, least, most):
    """An integer of Python or NumPy, in its range; anything else is a UsageError."""
    try:
        found = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = None
    if found is None or not least <= found <= most:
        raise UsageError(f"{what} is {value!r}; allowed are whole numbers from {least} to {most}")
    return found


def text(value, what):
    """A text that is not empty, as UTF-8 without a 0."""
    try:
        found = value.encode() if isinstance(value, str) else b""
    except UnicodeEncodeError:
        found = b""
    if not found or b"\0" in found:
        raise UsageError(f"{what} is {value!r}; allowed is a text that has no character 0")
    return found
