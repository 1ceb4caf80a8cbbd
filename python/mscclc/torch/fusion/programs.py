"""Programs of a sum and a row function: the steps of plans/rows/allreduce_norm_1shot.mscl and …_2shot.mscl, with any
function in place of theirs; and which of them serves a call."""

from typing import List, NamedTuple, Tuple

from .function import Function

# The ranks up to which a row counts, and the bytes up to which one shot serves a call; then two shots do. With two
# ranks both send the same bytes, and two shots take a step more. Not yet measured for rows on GPUs: the sizes at
# which plans/library.json changes from one to the other for sums.
_ONE_SHOT = ((2, 1 << 62), (4, 128 << 10), (16, 64 << 10), (1 << 30, 32 << 10))

_ONE = """\
  let others = 0..R except r, after = r + 1 .. R
  buffer inbox[others, B] packets: LL16, copies: 2
  buffer sum[B]
  channel ch[p in others] = memory(p)
  tb b in 0..B {{
    for p in others {{ put_packets ch[p].inbox[r, b] <- input[b] }}
    reduce_packets sum[b] <- inbox[p, b] for p in 0..r, input[b], inbox[p, b] for p in after
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


class _Steps(NamedTuple):
    chunks: str
    index: str  # of a block's rows
    blocks: int
    body: str


_STEPS = {"one_shot": _Steps("B", "b", 8, _ONE), "two_shots": _Steps("[R, B]", "p, b", 8, _TWO)}


def names(ranks: int) -> List[str]:
    """The programs that serve calls of so many ranks."""
    if ranks == 1:
        return []
    return ["one_shot"] if ranks <= _ONE_SHOT[0][0] else list(_STEPS)


def pick(ranks: int, bytes: int) -> str:
    """The program that serves a call on so many bytes."""
    most = next(most for limit, most in _ONE_SHOT if ranks <= limit)
    return "one_shot" if bytes <= most else "two_shots"


def externals(function: Function) -> Tuple[List[str], List[str]]:
    """The names of what a call has besides input and output: of what is read, and of the results that are not its
    output, in order."""
    others = [f"o{i}" for i in range(len(function.results)) if i != function.main]
    return [f"a{i}" for i in range(len(function.parameters))], others


def program(name: str, function: Function, ranks: int) -> str:
    """A program in the language. The function has an output."""
    steps = _STEPS[name]
    threads = 512 if function.columns <= 16384 else 1024  # a thread has at most 64 columns
    results = [_place(f"o{i}", one.kind, steps, i == function.main) for i, one in enumerate(function.results)]
    given = [_place(f"a{i}", one.kind, steps) for i, one in enumerate(function.parameters)]
    apply = f"apply fused {', '.join(results)} <- {', '.join([f'sum[{steps.index}]', *given])}"
    return "\n".join([
        f"program    fused_{name}",
        f"param      R = {ranks}, N = {function.columns}, B = {steps.blocks}, T = {threads}",
        function.text("fused"),
        *_declared(function),
        f"collective allreduce(ranks: R, chunks: {steps.chunks}, columns: N, then: fused, order: ranks)",
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
