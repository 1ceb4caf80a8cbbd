"""Plans of the library for collectives with a function of their rows, by name and shape.

    chosen = mscclc.choose_rows("allreduce_norm", ranks=2, columns=6144, rows=6, dtype="bf16")
    plan = mscclc.row_plan("allreduce_norm", ranks=2, columns=6144, rows=6, dtype="bf16")
    norm = comm.load_rows("allreduce_norm", columns=6144, max_rows=512, dtype="bf16")
    norm.run(x, y, externals={"residual": r, "weight": w, "eps": 1e-5})

docs/fusion.md has a table of the names, externals and outputs.
"""

import contextlib
import ctypes
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ._arguments import number
from ._arguments import text as as_text
from ._library import check, library
from ._numbers import element_type, order_number
from .buffers import buffer_of
from .errors import LibraryError, UsageError
from .loaded_plan import LoadedPlan, needs_type
from .plan import Plan
from .work import Work

__all__ = ["RowChoice", "RowPlans", "choose_rows", "row_plan"]

_MOST, _MOST_BYTES = (1 << 64) - 1, (1 << 63) - 1


class RowChoice(NamedTuple):
    """What the library picks for a call on rows."""

    program: str  #: "allreduce_norm_1shot", of plans/rows
    params: Dict[str, str]  #: of the program, R and N among them
    most_rows: int  #: the same is picked for up to so many


def choose_rows(
    name: str, *, ranks: int, columns: int, rows: int, dtype: str = "f32", order: Optional[str] = None
) -> RowChoice:
    """Which program serves a call; compiles nothing. `rows`: of the message, the larger of input and output. `order`:
    what the bits of its sums keep to; None: as MSCCLC_ORDER says. An error where no plan keeps it."""
    text, most = ctypes.c_void_p(), ctypes.c_uint64()
    _ask(name, ranks, columns, rows, dtype, order, None, ctypes.byref(text), ctypes.byref(most))
    program, params = _taken(text).split(":")
    return RowChoice(program, dict(one.split("=", 1) for one in params.split(",")), most.value)


def row_plan(
    name: str, *, ranks: int, columns: int, rows: int, dtype: str = "f32", order: Optional[str] = None
) -> Plan:
    """The plan that serves a call, compiled and proved; for as many rows as choose_rows() says, `most_rows`."""
    text = ctypes.c_void_p()
    _ask(name, ranks, columns, rows, dtype, order, ctypes.byref(text), None, None)
    return Plan(_taken(text))


def with_columns(plan: str, columns: int) -> Plan:
    """The plan, whose rows may have any multiple of some columns, for so many."""
    text, made = plan.encode(), ctypes.c_void_p()
    columns = number(columns, "the number of columns", 1, _MOST)
    check(library().mscclc_plan_columns(text, len(text), columns, ctypes.byref(made)))
    return Plan(_taken(made))


def _ask(name, ranks, columns, rows, dtype, order, *results):
    ask = library().mscclc_row_plan
    numbers = [number(ranks, "the number of ranks", 1, (1 << 32) - 1)]
    numbers += [number(n, what, 0, _MOST) for n, what in ((columns, "columns"), (rows, "rows"))]
    check(ask(as_text(name, "the name"), *numbers, element_type(dtype)[0], order_number(order), *results))


def _taken(text):
    try:
        return ctypes.string_at(text.value).decode()
    finally:
        library().mscclc_free(text)


class RowPlans:
    """The plans that the library picks for a collective on rows, up to some rows, loaded by all ranks of a
    communicator. A call takes the one for its rows; they end with the communicator, or when they are closed."""

    def __init__(
        self, comm: Any, name: str, columns: int, max_rows: int, dtype: str, order: Optional[str] = None
    ):
        """Collective. `max_rows`: of a message, the larger of input and output. `order`: None is the
        communicator's."""
        self._columns, self._dtype = number(columns, "columns", 1, _MOST), dtype
        width = columns * element_type(dtype)[1]
        self._max_rows = number(max_rows, "max_rows", 1, max(1, _MOST_BYTES // width))
        self._loaded: List[Tuple[int, LoadedPlan]] = []  # by the most rows
        shape = {"ranks": comm.size, "columns": columns, "dtype": dtype}
        self._name, self._shape, self._orders = name, shape, {None}
        order = comm._order if order is None else order
        self._comm = comm
        rows = 1
        try:
            while rows <= max_rows:
                most, plan = self._choice(rows, order)
                most = min(most, max_rows)
                self._loaded.append((most, comm.load(plan, most * width, dtype)))
                rows = most + 1
        except Exception:
            self.close()
            raise
        self._rows = self._loaded[0][1]._rows

    def _choice(self, rows, order):
        """What all ranks load next, and up to how many rows it serves. The others learn that this one has none, as they
        do in load(), and do not wait for it there."""
        try:
            most = choose_rows(self._name, rows=rows, order=order, **self._shape).most_rows
            return most, row_plan(self._name, rows=rows, order=order, **self._shape)
        except (LibraryError, UsageError):
            with contextlib.suppress(LibraryError, UsageError):  # the first error is this rank's
                self._comm._meet()
            raise

    def check_order(self, order: Optional[str]) -> None:
        """An error where sums of its calls do not keep to `order`; None is what it was loaded for."""
        if order not in self._orders:
            choose_rows(self._name, rows=1, order=order, **self._shape)
            self._orders.add(order)

    def run(
        self, input: Any, output: Any = None, op: str = "sum", stream: Optional[int] = None,
        dtype: Optional[str] = None, externals: Optional[Dict[str, Any]] = None,
    ) -> Work:  # fmt: skip
        """Queues a call, on all ranks, as LoadedPlan.run() does."""
        self._comm._own()
        if not self._loaded:
            raise UsageError("the plans are closed")
        taken_for = self._dtype if dtype is None else dtype
        if element_type(taken_for)[1] != element_type(self._dtype)[1]:
            raise UsageError(
                f"the plans were loaded for '{self._dtype}', and the call is of '{taken_for}', which is of another"
                " width: load them for that type"
            )
        row = self._columns * element_type(taken_for)[1]
        # Allreduce and reducescatter: no output has more rows, whatever its type.
        given = buffer_of(input, self._comm._device, writable=False)
        needs_type("input", given, taken_for, dtype is not None)
        bytes = given.bytes
        rows = bytes // row
        if bytes % row or rows > self._max_rows:
            raise UsageError(
                f"{bytes} bytes are {bytes / row:g} rows of {self._columns} {taken_for}; loaded are plans for whole"
                f" rows, {self._max_rows} at most"
            )
        plan = next(one for most, one in self._loaded if rows <= most)
        return plan.run(input, output, op, stream, dtype, externals)

    def close(self) -> None:
        """Frees them at this rank, as LoadedPlan.close() does; the second time nothing."""
        while self._loaded:
            self._loaded[-1][1].close()
            self._loaded.pop()

    def __enter__(self) -> "RowPlans":
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self.close()
