"""Which argument of a call is not what the call's annotations allow; looked for when the call has failed."""

import typing

from .language.internal.arguments import is_number, shown

_NAMES = {int: "a whole number", bool: "True or False", str: "a string"}


def find_wrong_argument(frame):
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
    return is_number(value) if kind is int else isinstance(value, kind)


def _name(kind):
    if typing.get_origin(kind) is typing.Union:  # with None
        return _name(typing.get_args(kind)[0])
    if typing.get_origin(kind) is list:
        (member,) = typing.get_args(kind)
        return "a list of " + {int: "whole numbers"}.get(member, f"{member.__name__}s")
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    return _NAMES.get(kind) or f"{article} {kind.__name__}"
