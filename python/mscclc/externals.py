"""What plans take beside input and output, from objects of Python: externals of row functions, and
arrays of flags."""

import collections.abc
import ctypes
import json
import math
from typing import Any, Dict, List, NamedTuple, Tuple

from ._library import External, Flags
from ._numbers import DTYPES, element_type
from .buffers import Buffer, buffer_of, external_buffer, needs_columns, needs_values
from .errors import UsageError

# What a call's externals may be of, and the plan's word for the call's own type.
_TYPES = {name: DTYPES[name] for name in ("f32", "f16", "bf16", "e4m3", "e5m2")}
_TYPES["e8m0"] = (64, 1)  # MSCCLC_E8M0
_OF_THE_CALL = "T"
# Whole numbers of the same width hold the bits of what NumPy and others have no name for.
_BITS = {1: "u8", 2: "u16", 4: "u32"}


class Declared(NamedTuple):
    """An external as its plan declares it."""

    name: str
    kind: str
    type: str
    use: str  # in, out, inout
    columns: int  # values in a row
    has_rows: bool
    sharded: bool

    @property
    def written(self) -> bool:
        """The plan changes it."""
        return self.use != "in"


class DeclaredFlags(NamedTuple):
    """An array of flags as its plan declares it."""

    name: str
    count: int
    bits: int  # of a word


class RowsOfCall(NamedTuple):
    """How many rows a call has."""

    all: int
    own: int  #: of this rank, where each has its own


class RowsOfPlan(NamedTuple):
    """What a plan's calls have of rows, and of flags; without row functions and flags nothing."""

    collective: str = ""
    ranks: int = 1
    columns: int = 0
    externals: Tuple[Declared, ...] = ()
    flags: Tuple[DeclaredFlags, ...] = ()
    output_type: str = _OF_THE_CALL
    parts_of_rank: int = 1  # of rows, where each rank has its own

    def of_call(self, bytes: int, dtype: str, rank: int) -> RowsOfCall:
        """Those of a message; of rows that do not divide the first parts have one more."""
        width = self.columns * element_type(dtype)[1]
        rows = bytes // width if width else 0
        each, left = divmod(rows, self.ranks * self.parts_of_rank)
        longer = min(max(left - rank * self.parts_of_rank, 0), self.parts_of_rank)
        own = each * self.parts_of_rank + longer
        return RowsOfCall(own if self.collective == "reducescatter" else rows, own)


def rows_of(text: bytes) -> RowsOfPlan:
    """Of a plan, as JSON. A text that is none has no rows: loading it says what is wrong."""
    if b'"columns"' not in text and b'"flags"' not in text:  # plans may have megabytes
        return RowsOfPlan()
    try:
        own = json.loads(text).get("mscclc", {})
        contract = own.get("contract", {})
        columns = contract.get("columns", 0)
        externals = tuple(_declared(row, columns) for row in own.get("externals", []))
        flags = tuple(DeclaredFlags(row[0], row[2], row[4]) for row in own.get("flags", []))
        ranks = contract.get("ranks", 1)
        made = RowsOfPlan(contract.get("kind", ""), ranks, columns, externals, flags)
        return made._replace(
            output_type=_output_type(own, contract.get("then"), made), parts_of_rank=_parts_of_rank(contract, ranks)
        )
    except (ValueError, AttributeError, TypeError, IndexError):
        return RowsOfPlan()


def _parts_of_rank(contract, ranks):
    """Rows are cut into the first number of an allreduce's chunks, and each of these parts into the next."""
    chunks = contract.get("chunks") or [ranks]
    if contract.get("kind") != "allreduce":
        return 1
    return max(1, (chunks[0] if chunks[0] % ranks == 0 else math.prod(chunks)) // ranks)


def _output_type(own, then, rows):
    """That of the result that goes to no external, neither of its name nor without "_out"."""
    written = {one.name for one in rows.externals if one.written}
    for function in own.get("rows", []):
        for name, kind, type, *_ in function["results"] if function["name"] == then else ():
            if kind == "row" and not {name, name[: -len("_out")] if name.endswith("_out") else name} & written:
                return type
    return _OF_THE_CALL


def _declared(row, columns):
    name, kind, type, use, holding = row[:5]
    group = row[5] if len(row) > 5 else 1
    values = {"row": columns, "columns": columns, "groups": -(-columns // group)}.get(kind, 1)
    has_rows = kind not in ("columns", "scalar")
    return Declared(name, kind, type, use, values, has_rows, holding == "sharded")


def externals_for(
    declared: Tuple[Declared, ...], given: Dict[str, Any], device: int, dtype: str, rows: RowsOfCall
) -> Tuple[Any, List[Any]]:
    """The externals of a call on elements of `dtype`, for C, and what keeps their memory alive.
    UsageError: one is missing, is no external of the plan, or not as the plan declares it."""
    names = {one.name for one in declared}
    _refuse_unknown("external", [name for name in given if name not in names], declared)
    made, owners = (External * len(declared))(), []
    for to, external in zip(made, declared):
        if external.name not in given:
            raise UsageError(
                f"the plan's external '{external.name}' is missing: {external.kind} {external.type}"
            )
        of_rank = rows.own if external.sharded else rows.all
        owners.append(_fill(to, external, given[external.name], device, dtype, of_rank))
    return made, owners


def _refuse_unknown(what, left, declared):
    """UsageError where a call has more than the plan declares."""
    if left:
        names = ", ".join(f"'{one.name}'" for one in declared)
        raise UsageError(
            f"the plan has no {what} {next(iter(left))!r}; "
            + (f"it has {names}" if names else "it has none")
        )


def _fill(to, external, data, device, dtype, rows):
    type = dtype if external.type == _OF_THE_CALL else external.type
    if type not in _TYPES:
        raise UsageError(f"row functions are computed of f32, f16 and bf16, not of '{type}'")
    number, width = _TYPES[type]
    to.name, to.dtype, to.rows, to.columns = external.name.encode(), number, 1, external.columns
    if external.kind == "scalar" and isinstance(data, (int, float)):
        to.value = _number_of(external, data)
        return None
    no_number = isinstance(data, (str, bytes, list, tuple)) and not isinstance(data, Buffer)
    if external.kind == "scalar" and no_number:
        raise UsageError(
            f"the external '{external.name}' takes a number, as in {external.name}=1e-5, or a buffer of"
            f" one {type}, not {data!r:.40}"
        )
    buffer = external_buffer(external.name, data, device, external.written)
    if buffer.dtype not in (None, type, _BITS[width]):
        raise UsageError(f"the external '{external.name}' is of {type}, not of {buffer.dtype}")
    needs_columns(f"the external '{external.name}'", buffer, external.columns, width)
    if external.has_rows and external.columns == 1:
        needs_values(f"the external '{external.name}'", buffer, rows)
    row = external.columns * width
    if buffer.bytes % row != 0 or (buffer.bytes != row and not external.has_rows):
        raise UsageError(
            f"the external '{external.name}' has {buffer.bytes / width:g} elements; the plan"
            f" declares {external.columns} {type}" + (" a row" if external.has_rows else "")
        )
    to.data, to.rows = buffer.address, buffer.bytes // row
    return buffer


def _number_of(external, data):
    """A scalar is stored as f32 or less: numbers beyond its range would become infinities."""
    try:
        value = float(data)
    except OverflowError:
        value = math.inf
    if math.isinf(ctypes.c_float(value).value) and not (isinstance(data, float) and math.isinf(data)):
        # Of 10 ** 400, say, all digits would be no help.
        said = data if isinstance(data, float) else f"a number of {data.bit_length()} bits"
        raise UsageError(f"the external '{external.name}' is {said}, which is not finite in f32")
    return value


def flags_for(
    declared: Tuple[DeclaredFlags, ...], given: Dict[str, Any], device: int
) -> Tuple[Any, List[Any]]:
    """The flags of a call, for C, and what keeps their memory alive. UsageError: an array is
    missing, is none of the plan, or has words of another width."""
    if not isinstance(given, collections.abc.Mapping):
        raise UsageError(f"flags are a dict of arrays by name, not {type(given).__name__}")
    left = dict(given)
    made, owners = (Flags * len(declared))(), []
    for to, flags in zip(made, declared):
        if flags.name not in left:
            raise UsageError(
                f"the plan's flags '{flags.name}' are missing: {flags.count} words of {flags.bits}"
                " bits"
            )
        buffer = buffer_of(left.pop(flags.name), device, writable=True)
        if buffer.dtype not in (f"u{flags.bits}", f"i{flags.bits}"):
            raise UsageError(
                f"the flags '{flags.name}' are words of {flags.bits} bits, not {buffer.dtype}"
            )
        to.name, to.words, to.bits = flags.name.encode(), buffer.address, flags.bits
        to.count = buffer.bytes // (flags.bits // 8)
        owners.append(buffer)
    _refuse_unknown("flags", left, declared)
    return made, owners
