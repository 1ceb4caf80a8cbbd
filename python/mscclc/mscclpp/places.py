"""Errors at lines of Python programs: what the compiler says of a plan is said of its program."""

import re

from ..source_lines import SEVERITY, excerpt, location, prefix
from .language.internal.write_plan import places_of

_BLOCK = re.compile(r"  tb (\d+) \{$")
_RANK = re.compile(r"rank (\d+) \{$")
_IN_PLAN = re.compile(
    r"^(?:-: )?gpus\[(\d+)\](?:\.threadblocks\[(\d+)\](?:\.ops\[(\d+)\](?:\.ops\[(\d+)\])?)?)?"
    rf"[^ ]*: ({SEVERITY})"
)
_WITHOUT_PLACE = re.compile(rf"^(?:-: )?({SEVERITY})")


def with_places(ir, program):
    """The IR text of a program's plan, each op with the place of its call."""
    ranks = places_of(program)
    out = []
    places = iter(())
    rank = 0
    for line in ir.splitlines():
        if opened := _RANK.match(line):
            rank = int(opened[1])
        elif opened := _BLOCK.match(line):
            places = _flat(ranks[rank][int(opened[1]) // program.instances])
        elif line.startswith("    ") and not line.endswith(("{", "}")):
            line += location(next(places))
        out.append(line)
    return "\n".join(out) + "\n"


def at_program(text, program):
    """The compiler's messages about a program's plan, at the program's lines."""
    ranks = places_of(program)
    lines = []
    for line in text.splitlines():
        if found := _IN_PLAN.match(line):
            place = _place_in_plan(program, ranks, *found.groups()[:4])
            line = f"{prefix(place)}{found[5]}{line[found.end():]}"
        elif found := _WITHOUT_PLACE.match(line):
            line = f"{prefix(program.place)}{found[1]}{line[found.end():]}"
        lines += [line, *excerpt(line)]
    return "\n".join(lines)


def _place_in_plan(program, ranks, rank, block, op, inner):
    if block is None or op is None:
        return program.place
    blocks, number = ranks[int(rank)], int(block) // program.instances
    ops = blocks[number] if number < len(blocks) else ()
    if int(op) >= len(ops):
        return program.place
    place, body = ops[int(op)]
    return body[int(inner)] if inner is not None and body else place


def _flat(ops):
    for place, body in ops:
        if body is None:
            yield place
        else:
            yield from body
