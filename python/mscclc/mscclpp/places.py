"""Errors at lines of Python programs: what the compiler says of a plan is said of its program."""

import re

from ..source_lines import SEVERITY, excerpt, location, prefix
from .language.internal.write_plan import passed

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
