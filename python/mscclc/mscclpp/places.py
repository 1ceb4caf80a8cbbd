"""Errors at lines of Python programs: what the compiler says of a plan is said of its program."""

import os
import re
import traceback

from ..source_lines import SEVERITY, excerpt, location, prefix
from .language.internal.errors import ProgramError
from .language.internal.write_plan import passed

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_BLOCK = re.compile(r"  tb (\d+) \{$")
_RANK = re.compile(r"rank (\d+) \{$")
_IN_PLAN = re.compile(
    r"^(?:-: )?gpus\[(\d+)\](?:\.threadblocks\[(\d+)\](?:\.ops\[(\d+)\](?:\.ops\[(\d+)\])?)?)?"
    rf"[^ ]*: ({SEVERITY})"
)
_WITHOUT_PLACE = re.compile(rf"^(?:-: )?({SEVERITY})")


def with_places(ir, program):
    """The IR text of a program's plan, each op with the place of its call."""
    lists = passed(program)
    out = []
    ops = iter(())
    rank = 0
    for line in ir.splitlines():
        if opened := _RANK.match(line):
            rank = int(opened[1])
        elif opened := _BLOCK.match(line):
            ops = _flat(lists[rank][int(opened[1]) // program.instances])
        elif line.startswith("    ") and not line.endswith(("{", "}")):
            line += location(next(ops).place)
        out.append(line)
    return "\n".join(out) + "\n"


def at_program(text, program):
    """The compiler's messages about a program's plan, at the program's lines."""
    lists = passed(program)
    lines = []
    for line in text.splitlines():
        if found := _IN_PLAN.match(line):
            place = _place_in_plan(program, lists, *found.groups()[:4])
            line = f"{prefix(place)}{found[5]}{line[found.end():]}"
        elif found := _WITHOUT_PLACE.match(line):
            line = f"{prefix(program.place)}{found[1]}{line[found.end():]}"
        lines += [line, *excerpt(line)]
    return "\n".join(lines)


def message_of(error):
    """What to print about an exception that a program has raised, or None if it is not ours."""
    place = error.place if isinstance(error, ProgramError) else None
    if place is None:
        frames = traceback.extract_tb(error.__traceback__)
        if not os.path.abspath(frames[-1].filename).startswith(_HERE):
            return None
        theirs = [f for f in frames if not os.path.abspath(f.filename).startswith(_HERE)]
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
    from .wrong_arguments import find_wrong_argument

    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    inside = [os.path.abspath(f.f_code.co_filename).startswith(_HERE) for f in frames]
    called = len(inside) - inside[::-1].index(False)
    return find_wrong_argument(frames[called]) or str(error) or type(error).__name__


def _place_in_plan(program, lists, rank, block, op, inner):
    if block is None or op is None:
        return program.place
    ops = lists[int(rank)].get(int(block) // program.instances, ())
    if int(op) >= len(ops):
        return program.place
    found = ops[int(op)]
    return found.body[int(inner)].place if inner is not None and found.body else found.place


def _flat(ops):
    for op in ops:
        if op.body is None:
            yield op
        else:
            yield from _flat(op.body)
