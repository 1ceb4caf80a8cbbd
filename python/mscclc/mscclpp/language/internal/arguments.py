"""What arguments of the language may be: what no plan can hold is an error at its call."""

from .errors import ProgramError

MOST_BLOCKS = 65536  # of a rank
MOST_RANKS = 65536
MOST_CHUNKS = 2**31 - 1  # of a buffer
_MOST_SHOWN = 2**128


def shown(value):
    """A value for a message; Python does not write numbers of thousands of digits."""
    if isinstance(value, int) and abs(value) >= _MOST_SHOWN:
        return f"a number of {value.bit_length()} bits"
    return repr(value)


def needs_number(what, value, least, most, step=1):
    """A whole number from `least` to `most`, and a multiple of `step`."""
    if is_number(value) and least <= value <= most and value % step == 0:
        return
    multiples = f"multiples of {step} from " if step > 1 else ""
    raise ProgramError(f"{what} is {shown(value)}; allowed are {multiples}{least} to {most}")


def needs_block(tb):
    """The number of a thread block."""
    if not is_number(tb) or not 0 <= tb < MOST_BLOCKS:
        raise ProgramError(f"{shown(tb)} is not a thread block; allowed are 0 to {MOST_BLOCKS - 1}")


def needs_different(what, values):
    """No value twice."""
    seen = set()
    for value in values:
        if value in seen:
            raise ProgramError(f"{what} has {shown(value)} twice; each may be there once")
        seen.add(value)


def needs_flag(what, value):
    """True or False."""
    if not isinstance(value, bool):
        raise ProgramError(f"{what} is {shown(value)}; allowed are True and False")


def needs_kind(what, value, kind, name):
    """An instance of a class, which messages call `name`."""
    if not isinstance(value, kind):
        raise ProgramError(f"{what} is {shown(value)}; it must be {name}")


def needs_text(what, value):
    """A string that a plan can hold: no control characters, no halves of characters."""
    needs_kind(what, value, str, "a string")
    if value.isascii() and value.isprintable():
        return
    import unicodedata

    for character in value:
        if character not in "\t\n" and unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
            raise ProgramError(f"{what} is {value!a}; it has a character that plans cannot hold")


def is_number(value):
    """Whether it is a whole number, as JSON has them: Python's booleans are none."""
    return isinstance(value, int) and not isinstance(value, bool)
