"""What the ops of a plan read and write, read off its IR text."""

import re
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

_RANK = re.compile(r"rank (\d+) \{$")
_BLOCK = re.compile(r"tb (\d+) \{$")
_CHANNEL = re.compile(r"channel (.+?) = (?:memory|port)\((\d+)\)")
_SWITCH = re.compile(r"channel (.+?) = switch\((.*)\)$")
# An operand of IR text; after the last one comes the end, an option, or a location.
_OPERAND = re.compile(
    r"(?:(?P<channel>\w+(?:\[[^\]]*\])?)\.)?(?P<name>\w+)"
    r"(?:\[(?P<index>[^\]]*)\])?(?=,|$| )(?P<comma>,?) *"
)


@dataclass(frozen=True)
class Access:
    """Chunks [first, first + count) of a buffer of these ranks: one, or those of a switch."""

    ranks: Tuple[int, ...]
    buffer: str
    first: int
    count: int


@dataclass(frozen=True)
class Effect:
    """What one op does."""

    rank: int
    block: int
    op: str
    reads: Tuple[Access, ...]
    writes: Tuple[Access, ...]
    uses: Tuple[str, ...]  #: channels, semaphores or blocks of an op that moves no data


def effects_of(ir: str) -> List[Effect]:
    """The effects of all ops of an IR text, in its order."""
    rank, block = -1, -1
    ends: Dict[str, Tuple[int, ...]] = {}
    effects = []
    for line in map(str.strip, ir.splitlines()):
        if opened := _RANK.match(line):
            rank, ends = int(opened[1]), {}
        elif opened := _BLOCK.match(line):
            block = int(opened[1])
        elif channel := _CHANNEL.match(line):
            ends[channel[1]] = (int(channel[2]),)
        elif channel := _SWITCH.match(line):
            ends[channel[1]] = _list(channel[2])
        elif rank >= 0 and line and line[0].isalpha() and not line.endswith("{"):
            if effect := _effect(line, rank, block, ends):
                effects.append(effect)
    return effects


def _effect(line, rank, block, ends) -> Optional[Effect]:
    name, _, rest = line.partition(" ")
    if name in ("buffer", "channel", "semaphore"):
        return None
    left, arrow, right = rest.partition(" <- ")
    if not arrow:
        uses = () if rest.lstrip().startswith("@") else tuple(_texts(rest))
        return Effect(rank, block, name, (), (), uses)
    reads = tuple(_access(m, rank, ends) for m in _operands(right))
    writes = tuple(_access(m, rank, ends) for m in _operands(left))
    return Effect(rank, block, name, reads, writes, ())


def _operands(text):
    """Matches of the operands at the beginning of a text; options and locations follow."""
    at = 0
    while m := _OPERAND.match(text, at):
        yield m
        at = m.end()
        if not m["comma"]:
            return


def _texts(text):
    """The operands of an op without data: channels and semaphores, or blocks as 0..4."""
    blocks = re.match(r"\d+\.\.\d+|\[[^\]]*\]", text)
    if blocks:
        return [blocks[0]]
    return [m[0].rstrip(", ") for m in _operands(text)]


def _access(operand, rank, ends) -> Access:
    ranks = ends[operand["channel"]] if operand["channel"] else (rank,)
    first, _, last = operand["index"].partition("..")
    return Access(ranks, operand["name"], int(first), int(last) - int(first) if last else 1)


def _list(text) -> Tuple[int, ...]:
    """A list of ranks: 0..4, or [0, 2, 3]."""
    if ".." in text:
        first, last = text.split("..")
        return tuple(range(int(first), int(last)))
    return tuple(int(word) for word in text.strip("[]").split(","))
