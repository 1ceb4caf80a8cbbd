"""What a graph computes of each row of a sum, as values in order: printed as a row function, and kept as JSON.

Arithmetic is in f32; "round" stands where the graph stores a tensor of a narrower type. docs/design/rows.md has
the language that it is printed in.
"""

import functools
import json
import struct
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch

from ...errors import UsageError
from ..dtypes import NAME_OF, WIDE

# Names of types in plans. The first three are what rows of a sum may be of, and what may be read.
TYPES = {dtype: NAME_OF[dtype] for dtype in (*WIDE, torch.float8_e4m3fn)}
_DTYPES = {name: dtype for dtype, name in TYPES.items()}

# Of each op what it is called in a row function; `{}` are its operands.
_OPS = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "neg": "-{}",
    "abs": "abs({})",
    "sqrt": "sqrt({})",
    "rsqrt": "rsqrt({})",
    "least": "min({}, {})",
    "most": "max({}, {})",
    "sum": "sum({})",
    "mean": "mean({})",
    "row_least": "min({})",
    "row_most": "max({})",
}
REDUCTIONS = ("sum", "mean", "row_least", "row_most")
# Values of these kinds have no rows: all rows share them.
SHARED = ("number", "scalar", "columns")
# What a row function may have at most (rows.md), less what is printed besides: x, and an output.
_MOST = {"parameters": 15, "results": 7, "values": 1000, "reductions": 32}


class Parameter(NamedTuple):
    """What is read besides the sum."""

    kind: str  # row, columns, token, scalar
    type: str


class Result(NamedTuple):
    """What is stored."""

    value: int
    kind: str  # row, token
    type: str


class Function:
    """A function of rows of `columns` values of `type`. Value 0 is the sum, rounded to that type."""

    def __init__(self, columns: int, type: str):
        self.columns, self.type = columns, type
        self.parameters: List[Parameter] = []
        self.results: List[Result] = []
        self.values: List[Tuple[Any, ...]] = [("x",)]  # an op, and its operands' numbers
        self.kinds: List[str] = ["row"]
        self._numbers: Dict[Tuple[Any, ...], int] = {("x",): 0}

    @property
    def row_bytes(self) -> int:
        """Of a row of the sum."""
        return self.columns * _DTYPES[self.type].itemsize

    def parameter(self, kind: str, type: str) -> int:
        """The value of a new parameter. KeyError: there is no such kind or type."""
        if kind not in ("row", "columns", "token", "scalar"):
            raise KeyError(kind)
        self.parameters.append(Parameter(kind, _known(type)))
        return self._value(("parameter", len(self.parameters) - 1), kind)

    def number(self, number: float) -> int:
        """A constant, rounded to f32."""
        return self._value(("number", struct.unpack("f", struct.pack("f", number))[0]), "number")

    def round(self, value: int, type: str) -> int:
        """A value as a tensor of a type holds it."""
        return self._value(("round", value, _known(type)), self._kind(value))

    def op(self, name: str, *operands: int) -> int:
        """What an op gives. KeyError: there is no such op."""
        if name not in _OPS:
            raise KeyError(name)
        kinds = [self._kind(one) for one in operands]
        if name in REDUCTIONS:
            kind = "token"
        elif "row" in kinds or {"token", "columns"} <= set(kinds):
            kind = "row"
        else:
            kind = next((one for one in ("token", "columns", "scalar") if one in kinds), "number")
        return self._value((name, *operands), kind)

    def pruned(self) -> Tuple["Function", List[int]]:
        """The same function without what no result needs, and the numbers of the parameters that are left. Equal
        functions of equal graphs have the same text."""
        made, kept = Function(self.columns, self.type), []
        new = {0: 0}
        for value in self._needed():
            name, *operands = self.values[value]
            if name == "parameter":
                kept.append(operands[0])
                new[value] = made.parameter(*self.parameters[operands[0]])
            elif name == "number":
                new[value] = made.number(operands[0])
            elif name == "round":
                new[value] = made.round(new[operands[0]], operands[1])
            elif name != "x":
                new[value] = made.op(name, *(new[one] for one in operands))
        for one in self.results:
            made.result(new[one.value], one.type)
        return made, kept

    def result(self, value: int, type: str) -> int:
        """The number of a new result."""
        self.results.append(Result(value, self._kind(value), _known(type)))
        return len(self.results) - 1

    def output(self) -> int:
        """The number of the result that is the call's output: rows of the call's type. Where the graph needs
        none, the sum becomes one."""
        found = self.main
        return self.result(0, self.type) if found is None else found

    @property
    def main(self) -> Optional[int]:
        """The number of the first result that is rows of the call's type."""
        fits = (i for i, one in enumerate(self.results) if (one.kind, one.type) == ("row", self.type))
        return next(fits, None)

    def bounds(self, value: int) -> Tuple[float, float]:
        """Least and greatest number that a value can be, if it is no NaN, as far as limits in it say."""
        name, *operands = self.values[value]
        if name == "number":
            return operands[0], operands[0]
        if name == "round":
            return self.bounds(operands[0])  # 448 is a number of all types
        if name not in ("most", "least"):
            return float("-inf"), float("inf")
        (low, high), (other_low, other_high) = map(self.bounds, operands)
        pick = max if name == "most" else min
        return pick(low, other_low), pick(high, other_high)

    def arithmetic(self) -> int:
        """How many ops it has."""
        return sum(name in _OPS for name, *_ in (self.values[one] for one in self._needed()))

    def refused(self) -> str:
        """What a row function may not have of what it has; empty if there is nothing."""
        reductions = sum(one[0] in REDUCTIONS for one in self.values)
        found = (len(self.parameters), len(self.results), len(self.values), reductions)
        for (what, most), count in zip(_MOST.items(), found):
            if count > most:
                return f"{count} {what}, of at most {most}"
        return self._gaps()

    def _gaps(self):
        """Rows and columns that plans cannot read or write, as they are no multiples of 16 bytes."""
        for one in [*self.parameters, *self.results]:
            bytes = self.columns * _DTYPES[one.type].itemsize
            if one.kind in ("row", "columns") and bytes % 16:
                return f"rows of {self.columns} {one.type}, which are {bytes} bytes, no multiple of 16"
        return ""

    def text(self, name: str) -> str:
        """It as a row function; parameters are a0, a1, …, results o0, o1, …"""
        given = "".join(f", a{i}: {self._stored(one)}" for i, one in enumerate(self.parameters))
        lines = [f"row {name}(x: row T{given}) {{"]
        for value in self._needed():
            if self.values[value][0] not in ("number", "parameter"):
                lines.append(f"  let v{value} = {self._expression(value)}")
        for i, one in enumerate(self.results):
            lines.append(f"  out o{i}: {self._stored(one)} = {self._name(one.value)}")
        return "\n".join([*lines, "}"])

    def _stored(self, one):
        return f"{one.kind} {'T' if one.type == self.type else one.type}"

    def _expression(self, value):
        name, *operands = self.values[value]
        if name == "x":
            return "T(x)"
        if name == "round":
            type = "T" if operands[1] == self.type else operands[1]
            return f"{type}({self._name(operands[0])})"
        return _OPS[name].format(*map(self._name, operands))

    def _name(self, value):
        name, *operands = self.values[value]
        if name == "number":
            digits = repr(abs(operands[0]))
            return f"(-{digits})" if operands[0] < 0 else digits
        return f"a{operands[0]}" if name == "parameter" else f"v{value}"

    def _needed(self):
        """The values that results are made of, in order."""
        needed = {one.value for one in self.results}
        for value in range(len(self.values) - 1, -1, -1):
            if value in needed:
                needed.update(self.operands(value))
        return sorted(needed)

    def operands(self, value: int) -> Sequence[int]:
        """The values that a value is made of."""
        name, *operands = self.values[value]
        return operands if name in _OPS else operands[:1] if name == "round" else []

    def _kind(self, value):
        if not isinstance(value, int) or not 0 <= value < len(self.values):
            raise IndexError(f"there is no value {value!r}")
        return self.kinds[value]

    def _value(self, value, kind):
        if value not in self._numbers:
            self._numbers[value] = len(self.values)
            self.values.append(value)
            self.kinds.append(kind)
        return self._numbers[value]

    def to_json(self) -> str:
        """It as text, for `read()`."""
        fields = [self.columns, self.type, self.parameters, self.results, self.values]
        return json.dumps(fields, separators=(",", ":"))

    def empty(self, sum: torch.Tensor) -> List[torch.Tensor]:
        """Tensors for all results of a sum: rows have its shape, tokens one value in place of a row."""
        shapes = {"row": [*sum.shape], "token": [*sum.shape[:-1], 1]}
        return [sum.new_empty(shapes[one.kind], dtype=_DTYPES[one.type]) for one in self.results]


def _known(type):
    if type not in _DTYPES:
        raise KeyError(type)
    return type


@functools.lru_cache(maxsize=None)
def read(text: str) -> Function:
    """The function of a text that `to_json()` has made; always the same object, not to be changed.
    UsageError: it is none."""
    try:
        columns, type, parameters, results, values = json.loads(text)
        if not isinstance(columns, int) or columns < 2 or type not in ("f32", "f16", "bf16"):
            raise ValueError(f"rows of {columns!r} columns of {type!r}")
        made = Function(columns, type)
        for name, *operands in values[1:]:
            if name == "parameter":
                made.parameter(*parameters[operands[0]])
            else:
                {"number": made.number, "round": made.round}.get(name, functools.partial(made.op, name))(*operands)
        for value, _, stored in results:
            made.result(value, stored)
        if made.to_json() != text or made.main is None:
            raise ValueError("it is not as it was written")
        return made
    except (ValueError, TypeError, IndexError, KeyError) as error:
        raise UsageError(f"this is no row function that the fusion has made: {error}") from error
