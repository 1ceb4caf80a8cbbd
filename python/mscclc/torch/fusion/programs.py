"""Programs of a sum and a row function: the steps of programs of plans/rows with any function in place of theirs; and
which of them serves a call, as the library's table says for residual and norm."""

import functools
import os
from typing import Dict, List, NamedTuple, Optional, Tuple

from ...errors import LibraryError
from ...row_plans import choose_rows
from .function import Function

# What the library picks by the name of, for sums that all ranks get and for those that are scattered; and the steps
# of each of its programs.
_LIKE, _LIKE_SCATTERED = "allreduce_norm", "reducescatter_norm"
_ORDER = "ranks"  # what their sums keep
_ANY_ROWS = 1 << 24
_INVALID_USAGE = 2  # MSCCLC_INVALID_USAGE: of an order that no plan keeps
_KIND_OF = {
    "reducescatter_norm": "scattered",
    "allreduce_norm_1shot": "one_shot",
    "allreduce_norm_2shot": "two_shots",
    "allreduce_norm_push_sums": "two_shots_plain",
    "allreduce_norm_read": "one_shot_read",
}

_ONE = """\
  let others = 0..R except r, after = r + 1 .. R
  buffer inbox[others, B] packets: F, copies: 2
  buffer sum[B]
  channel ch[p in others] = memory(p)
  tb b in 0..B {{
    for p in others {{ put_packets ch[p].inbox[r, b] <- input[b] }}
    reduce_packets sum[b] <- inbox[p, b] for p in 0..r, input[b], inbox[p, b] for p in after
    {apply}
  }}"""
_READ = """\
  buffer mine[B] copies: C
  buffer sum[B]
  channel ch[b in 0..B] = memory(1 - r) to ch[b]
  tb b in 0..B {{
    copy mine[b] <- input[b]
    signal ch[b]
    wait ch[b]
    read_reduce sum[b] <- input[b], ch[b].mine[b]
    {apply}
    if C == 1 {{
      signal ch[b]
      wait ch[b]
    }}
  }}"""
_SCATTERED = """\
  let others = [(r + i) % R for i in 1..R], after = r + 1 .. R
  buffer inbox[others, B] packets: LL16, copies: 2
  buffer sum[B]
  channel ch[p in others] = memory(p)
  tb b in 0..B {{
    for p in others {{ put_packets ch[p].inbox[r, b] <- input[p, b] }}
    reduce_packets sum[b] <- inbox[p, b] for p in 0..r, input[r, b], inbox[p, b] for p in after
    {apply}
  }}"""
_TWO = """\
  let others = [(r + i) % R for i in 1..R], after = r + 1 .. R
  buffer parts[others, B] packets: LL16, copies: 2
  buffer rows[others, B] packets: LL16
  buffer sum[R, B]
  channel ch[p in others] = memory(p)
  tb b in 0..B {{
    for p in others {{ put_packets ch[p].parts[r, b] <- input[p, b] }}
    reduce_packets sum[r, b] <- parts[p, b] for p in 0..r, input[r, b], parts[p, b] for p in after
    for p in others {{ put_packets ch[p].rows[r, b] <- sum[r, b] }}
    for p in others {{ unpack_packets sum[p, b] <- rows[p, b] }}
    for p in 0..R {{
      {apply}
    }}
  }}"""

_TWO_PLAIN = """\
  let others = 0..R except r
  buffer partial[others]
  buffer sum[R]
  channel up[p in others] = memory(p)
  channel down[p in others] = memory(p)
  group 0..B {{
    for p in others {{ put up[p].partial[r] <- input[p] }}
    signal up[p] for p in others
    wait up[p] for p in others
    reduce sum[r] <- partial[p] for p in 0..r, input[r], partial[p] for p in r + 1 .. R
    for p in others {{ put down[p].sum[r] <- sum[r] }}
    signal down[p] for p in others
    wait down[p] for p in others
    for p in 0..R {{
      {apply}
    }}
  }}"""


# Of one rank, whose sum is known.
_ALONE = """\
  tb b in 0..B {{
    {apply}
  }}"""


class _Steps(NamedTuple):
    chunks: str
    index: str  # of a block's rows
    body: str
    collective: str = "allreduce"
    sum: str = "sum"  # where it lies
    defaults: Dict[str, str] = {}  # of what the table may leave out


_STEPS = {
    "one_shot": _Steps("B", "b", _ONE, defaults={"F": "LL16"}),
    "one_shot_read": _Steps("B", "b", _READ, defaults={"C": "2"}),
    "two_shots": _Steps("[R, B]", "p, b", _TWO),
    "two_shots_plain": _Steps("R", "p", _TWO_PLAIN),
    "scattered": _Steps("B", "b", _SCATTERED, "reducescatter"),
    "alone": _Steps("B", "b", _ALONE, sum="input"),
}


class Range(NamedTuple):
    """Calls that one program serves."""

    most_rows: int
    kind: str  # of its steps
    params: Dict[str, str]


def ranges(function: Function, ranks: int, max_rows: int, scattered: bool) -> List[Range]:
    """The programs that serve calls of up to so many rows, those for few rows first; none for one rank. `scattered`:
    each rank gets its part of the sum."""
    found: List[Range] = []
    rows = 1
    while ranks > 1 and rows <= max_rows:
        like = _LIKE_SCATTERED if scattered else _LIKE
        chosen = choose_rows(
            like, ranks=ranks, columns=function.columns, rows=rows, dtype=function.type, order=_ORDER
        )
        found.append(Range(min(chosen.most_rows, max_rows), _KIND_OF[chosen.program], chosen.params))
        rows = chosen.most_rows + 1
    return found


def alone(function: Function) -> Range:
    """The program that computes the function of rows that are added up already, on one rank; of any number of rows."""
    threads = min(-(-function.row_bytes // 512) * 32, 1024)  # 16 bytes each
    return Range(_ANY_ROWS, "alone", {"R": "1", "N": str(function.columns), "B": "128", "T": str(threads)})


def why_not(ranks: int, columns: int, type: str, order: Optional[str]) -> Optional[str]:
    """Why no program serves sums that keep to `order` (None: as MSCCLC_ORDER says now); None: programs do."""
    return _why_not(ranks, columns, type, order, os.environ.get("MSCCLC_ORDER"))


@functools.lru_cache(maxsize=None)
def _why_not(ranks, columns, type, order, variable):
    if ranks == 1:
        return None
    try:
        choose_rows(_LIKE, ranks=ranks, columns=columns, rows=1, dtype=type, order=order)
    except LibraryError as error:
        if error.code != _INVALID_USAGE:  # as of more ranks than plans are for
            return str(error)
        return f"its sum is to keep '{order or variable}', and plans with row functions keep '{_ORDER}'"
    return None


def externals(function: Function) -> Tuple[List[str], List[str]]:
    """The names of what a call has besides input and output: of what is read, and of the results that are not its
    output, in order."""
    others = [f"o{i}" for i in range(len(function.results)) if i != function.main]
    return [f"a{i}" for i in range(len(function.parameters))], others


def program(range: Range, function: Function) -> str:
    """A program in the language. The function has an output."""
    steps = _STEPS[range.kind]
    params = {**steps.defaults, **range.params}
    results = [_place(f"o{i}", one.kind, steps, i == function.main) for i, one in enumerate(function.results)]
    given = [_place(f"a{i}", one.kind, steps) for i, one in enumerate(function.parameters)]
    apply = f"apply fused {', '.join(results)} <- {', '.join([f'{steps.sum}[{steps.index}]', *given])}"
    return "\n".join([
        f"program    fused_{range.kind}",
        "param      " + ", ".join(f"{name} = {value}" for name, value in params.items()),
        function.text("fused"),
        *_declared(function),
        f"collective {steps.collective}(ranks: R, chunks: {steps.chunks}, columns: N, then: fused, order: {_ORDER})",
        "select     nodes: 1",
        "launch     threads: T",
        "rank r in 0..R {",
        steps.body.format(apply=apply),
        "}\n",
    ])  # fmt: skip


def _place(name, kind, steps, is_output=False):
    if kind in ("columns", "scalar"):
        return name
    return f"{'output' if is_output else name}[{steps.index}]"


def _declared(function):
    """A line for each external."""
    for i, one in enumerate(function.parameters):
        yield f"external   a{i}: {one.kind} {'T' if one.type == function.type else one.type}"
    for i, one in enumerate(function.results):
        if i != function.main:
            yield f"external   o{i}: {one.kind} {'T' if one.type == function.type else one.type} out"
