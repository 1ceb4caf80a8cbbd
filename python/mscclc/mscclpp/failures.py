"""What to print when a program has failed: a mistake in a call of ours is one error at the program's line,
and any other exception is shown as Python shows it.

Imported when that happens: a program that is right does not wait for it.
"""

import os
import traceback
import typing

from ..source_lines import excerpt, prefix
from .language.internal.arguments import is_number, shown
from .language.internal.errors import ProgramError

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_NAMES = {int: "a whole number", bool: "True or False", str: "a string"}


def text_of_failure(error):
    """What to print about an exception of a program's run."""
    return message_of(error) or _python_error(error)


def message_of(error):
    """What to print about an exception that a program has raised, or None if it is not ours."""
    place = error.place if isinstance(error, ProgramError) else None
    if place is None:
        frames = traceback.extract_tb(error.__traceback__)
        if not _is_ours(frames[-1].filename):
            return None
        theirs = [f for f in frames if not _is_ours(f.filename)]
        if not theirs:
            return None
        place = theirs[-1].filename, theirs[-1].lineno
    text = error.message if isinstance(error, ProgramError) else _text_of(error)
    line = f"{prefix(place)}error: {text}"
    return "\n".join([line, *excerpt(line)])


def interrupted(stop, path):
    """What to print when the user has ended a run, and where in the file it was then."""
    frames = traceback.extract_tb(stop.__traceback__)
    places = [(frame.filename, frame.lineno) for frame in frames if frame.filename == path]
    return f"{prefix(places[-1])}note: interrupted here" if places else "mscclc: interrupted"


def _text_of(error):
    """Mistakes that ours have not looked for, as that would cost each call: Python's own words say
    what went wrong inside of a call, and not which argument is wrong."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    inside = [_is_ours(f.f_code.co_filename) for f in frames]
    called = len(inside) - inside[::-1].index(False)
    return _wrong_argument(frames[called]) or str(error) or type(error).__name__


def _python_error(error):
    """An error of the program itself, as Python shows it, from the program on."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [i for i, frame in enumerate(frames) if not _is_ours(frame.filename)]
    after = frames[theirs[0] :] if theirs else []
    lines = traceback.format_list(after) + traceback.format_exception_only(type(error), error)
    return "".join(lines).rstrip("\n")


def _is_ours(file):
    return os.path.abspath(file).startswith(_HERE)


def _wrong_argument(frame):
    """What is wrong with the arguments of the method that a frame runs; '' where nothing is."""
    function = _method(frame)
    for name, kind in (typing.get_type_hints(function) if function else {}).items():
        if name in frame.f_locals and not _fits(frame.f_locals[name], kind):
            return f"'{name}' is {shown(frame.f_locals[name])}; it must be {_name(kind)}"
    return ""


def _method(frame):
    """The method, or None."""
    code = frame.f_code
    home = frame.f_locals.get("cls", type(frame.f_locals.get("self")))
    for one in home.__mro__:
        found = one.__dict__.get(code.co_name)
        function = getattr(found, "__func__", found)  # a class method has it inside
        if getattr(function, "__code__", None) is code:
            return function
    return None


def _fits(value, kind):
    if typing.get_origin(kind) is typing.Union:
        return any(_fits(value, one) for one in typing.get_args(kind))
    if typing.get_origin(kind) is list:
        (member,) = typing.get_args(kind)
        return isinstance(value, (list, tuple)) and all(_fits(one, member) for one in value)
    return is_number(value) if kind is int else not isinstance(kind, type) or isinstance(value, kind)


def _name(kind):
    if typing.get_origin(kind) is typing.Union:  # with None
        return _name(typing.get_args(kind)[0])
    if typing.get_origin(kind) is list:
        (member,) = typing.get_args(kind)
        return "a list of " + {int: "whole numbers"}.get(member, f"{member.__name__}s")
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    return _NAMES.get(kind) or f"{article} {kind.__name__}"
