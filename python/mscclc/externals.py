"""Externals: what a plan with row functions takes beside input and output, from objects of Python."""

import json
from typing import Any, Dict, List, NamedTuple, Tuple

from ._library import External
from ._numbers import DTYPES
from .buffers import buffer_of
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


class RowsOfPlan(NamedTuple):
    """What a plan's calls have of rows; without row functions nothing."""

    collective: str = ""
    ranks: int = 1
    columns: int = 0
    externals: Tuple[Declared, ...] = ()


def rows_of(text: bytes) -> RowsOfPlan:
    """Of a plan, as JSON. A text that is none has no rows: loading it says what is wrong."""
    if b'"columns"' not in text:  # plans may have megabytes, and few have rows
        return RowsOfPlan()
    try:
        own = json.loads(text).get("mscclc", {})
        contract = own.get("contract", {})
        columns = contract.get("columns", 0)
        externals = tuple(_declared(row, columns) for row in own.get("externals", []))
        return RowsOfPlan(contract.get("kind", ""), contract.get("ranks", 1), columns, externals)
    except (ValueError, AttributeError, TypeError, IndexError):
        return RowsOfPlan()


def _declared(row, columns):
    name, kind, type, use, holding = row[:5]
    group = row[5] if len(row) > 5 else 1
    values = {"row": columns, "columns": columns, "groups": -(-columns // group)}.get(kind, 1)
    has_rows = kind not in ("columns", "scalar")
    return Declared(name, kind, type, use, values, has_rows, holding == "sharded")


def externals_for(
    declared: Tuple[Declared, ...], given: Dict[str, Any], device: int, dtype: str
) -> Tuple[Any, List[Any]]:
    """The externals of a call on elements of `dtype`, for C, and what keeps their memory alive.
    UsageError: one is missing, is no external of the plan, or not as the plan declares it."""
    left = dict(given)
    made, owners = (External * len(declared))(), []
    for to, external in zip(made, declared):
        if external.name not in left:
            raise UsageError(f"the plan's external '{external.name}' is missing")
        owners.append(_fill(to, external, left.pop(external.name), device, dtype))
    if left:
        names = ", ".join(f"'{one.name}'" for one in declared)
        raise UsageError(
            f"the plan has no external {next(iter(left))!r}; "
            + (f"it has {names}" if names else "it has none")
        )
    return made, owners


def _fill(to, external, data, device, dtype):
    type = dtype if external.type == _OF_THE_CALL else external.type
    if type not in _TYPES:
        raise UsageError(f"row functions are computed of f32, f16 and bf16, not of '{type}'")
    number, width = _TYPES[type]
    to.name, to.dtype, to.rows, to.columns = external.name.encode(), number, 1, external.columns
    if external.kind == "scalar" and isinstance(data, (int, float)):
        to.value = data
        return None
    buffer = buffer_of(data, device, writable=external.written)
    if buffer.dtype not in (None, type, _BITS[width]):
        raise UsageError(f"the external '{external.name}' is of {type}, not of {buffer.dtype}")
    row = external.columns * width
    if buffer.bytes % row != 0 or (buffer.bytes != row and not external.has_rows):
        raise UsageError(
            f"the external '{external.name}' has {buffer.bytes / width:g} elements; it has"
            f" {external.columns} {type}" + (" a row" if external.has_rows else "")
        )
    to.data, to.rows = buffer.address, buffer.bytes // row
    return buffer
