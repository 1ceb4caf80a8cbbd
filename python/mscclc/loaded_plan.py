"""A plan that the ranks of a communicator have loaded by itself, without the registry."""

import ctypes
from typing import Any, Dict, Optional, Tuple

from ._library import Call, check, library
from ._numbers import DTYPE_DEFAULT, element_type, op_number
from ._prepared_call import PreparedCall
from ._waiting import wait_for
from .buffers import Buffer, buffer_of, needs_columns
from .errors import UsageError
from .externals import RowsOfPlan, externals_for, flags_for
from .work import Work

_LAUNCH_ORDERS = ("other_first", "plan_first")  # mscclc_launch_order_t
_OTHER_ONLY = 2  # MSCCLC_OTHER_ONLY
# Types that others may have no name for, and their widths: whole numbers as wide may hold their bits.
_UNNAMED = {"bf16": 2, "e4m3": 1, "e5m2": 1, "e4m3b15": 1, "e8m0": 1}


def needs_type(side: str, buffer: Buffer, dtype: str, is_said: bool) -> None:
    """UsageError where a buffer says that its elements are of another type than the call's. `is_said`: the
    call names that type, so whole numbers as wide, and bytes, may hold its bits."""
    width = _UNNAMED[dtype] if dtype in _UNNAMED else element_type(dtype)[1]
    bits = {f"u{8 * width}"} if is_said or dtype in _UNNAMED else set()
    fine = bits | {None, dtype} | ({"u8"} if is_said else set())
    if buffer.bytes and buffer.dtype not in fine:
        raise UsageError(
            f"the {side} is of '{buffer.dtype}', and the call takes it for '{dtype}': load the plan for"
            " elements as wide, and say their type with 'dtype'"
        )


class LoadedPlan:
    """A plan that all ranks of a communicator have loaded; it ends with the communicator, or when it is closed."""

    def __init__(self, comm: Any, handle: ctypes.c_void_p, dtype: str, rows: RowsOfPlan):
        self._comm, self._handle, self._dtype, self._rows = comm, handle, dtype, rows
        self._needed: Tuple[int, Tuple[int, int]] = (-1, (0, 0))  # a call's bytes, those of its input and output

    def run(
        self, input: Any, output: Any = None, op: str = "sum", stream: Optional[int] = None,
        dtype: Optional[str] = None, externals: Optional[Dict[str, Any]] = None,
        flags: Optional[Dict[str, Any]] = None, budget: int = 0, launch_order: str = "other_first",
        symmetric: bool = False,
    ) -> Work:  # fmt: skip
        """Queues it, on all ranks. Buffers are the plan's input and output; without an output one
        buffer is both. In place, where one is a part of the other, it is given as that part.
        `dtype`: their element type, as wide as the one that the plan was loaded for, which it is if
        left out; a buffer of another type is an error. `externals`: what a plan with row functions
        takes besides, by name: buffers of whole rows, and numbers for scalars. `flags`: the words
        of those of a plan that overlaps with other work, by name, the same ones in all calls, and 0
        before the first. `budget`: multiprocessors that such a plan may hold while that work needs
        room, or 0: not known. `launch_order`: "plan_first", if it does not begin before all of the
        plan is resident.
        `symmetric=True` promises, as for collectives, that input and output lie in SymmetricMemory
        and are the same parts of it on all ranks: otherwise ranks meet in each call of a plan that
        uses them where they lie, as those with flags do. Not held back by groups; all ranks run their plans
        in one order."""
        if launch_order not in _LAUNCH_ORDERS:
            raise UsageError(f"launch_order is one of {', '.join(_LAUNCH_ORDERS)}")
        source, target, dtype = self._checked(input, output, dtype)
        return self._launch(
            source, target, op, stream, dtype, externals, flags, budget=budget,
            launch_order=_LAUNCH_ORDERS.index(launch_order), registered=bool(symmetric),
        )  # fmt: skip

    def _prepare(
        self, input: Any, output: Any, dtype: str, externals: Dict[str, Any]
    ) -> PreparedCall:
        """Checks a call as run() does, and does not queue it: PreparedCall.queue() does, also on other memory of the same
        sizes, types and shapes. For plans without flags, and externals in memory."""
        source, target, dtype = self._checked(input, output, dtype)
        if self._rows.flags:
            raise UsageError("calls of a plan with flags are not prepared: run() it")
        call, outside, _, bytes = self._call_of(source, target, "sum", dtype, externals, {})
        names = tuple(one.name for one in self._rows.externals)
        return PreparedCall(self, call, outside[0], bytes, names)

    def _leave(self, bytes: int, dtype: str, stream: Optional[int]) -> None:
        """Compares a call that something else makes, of any size, with those of the other ranks; launches nothing."""
        self._needs_open()
        call = Call(
            size=ctypes.sizeof(Call), dtype=element_type(dtype)[0], op=op_number("sum"),
            accumulate=DTYPE_DEFAULT, launch_order=_OTHER_ONLY,
        )  # fmt: skip
        self._queue(call, bytes, stream, meets=False)

    def _checked(self, input, output, dtype):
        """Buffers and type of a call."""
        self._needs_open()
        comm, is_said = self._comm, dtype is not None
        dtype = dtype if is_said else self._dtype
        loaded, width = element_type(self._dtype)[1], element_type(dtype)[1]
        any_width = self._rows.columns > 0  # rows may be of all types that functions have
        if width != loaded and not any_width:
            raise UsageError(
                f"the plan was loaded for elements of {loaded} bytes ('{self._dtype}'); '{dtype}' has"
                f" {width}: load it for that type"
            )
        target = buffer_of(input if output is None else output, comm._device, writable=True)
        source = target if output is None else buffer_of(input, comm._device, writable=False)
        needs_type("input", source, dtype, is_said)
        if target is not source:
            own = self._rows.output_type
            needs_type("output", target, dtype if own == "T" else own, is_said)
        if any_width:
            self._needs_rows(source, target, dtype)
        return source, target, dtype

    def _needs_open(self):
        self._comm._own()
        if self._handle is None:
            raise UsageError("the plan is closed")

    def close(self) -> None:
        """Frees it at this rank; the second time nothing. Waits for nothing: what queued calls use stays until they have
        ended. Graphs that hold its calls must not be launched any more. While another thread is inside, it
        is a LibraryError, and the plan stays open."""
        if self._handle is not None:
            self._comm._unload(self._handle)
            self._handle = None

    def __enter__(self) -> "LoadedPlan":
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self.close()

    def _launch(self, source, target, op, stream, dtype, externals=None, flags=None, **more):
        """`more`: of the call, for C."""
        call, outside, words, bytes = self._call_of(source, target, op, dtype, externals, flags, **more)
        self._queue(call, bytes, stream, meets=words[1] and not call.registered)
        return Work(self._comm, (source, target, *outside[1], *words[1]), stream)

    def _call_of(self, source, target, op, dtype, externals, flags, **more):
        """The call, for C, what it points to, and the bytes of its message."""
        comm = self._comm
        most = max(source.bytes, target.bytes)
        rows = self._rows.of_call(most, dtype, comm._rank)
        outside = externals_for(self._rows.externals, externals or {}, comm._device, dtype, rows)
        words = flags_for(self._rows.flags, flags or {}, comm._device)
        if source is not target:
            self._needs_buffers(source, target, most, dtype)
        call = Call(
            size=ctypes.sizeof(Call), dtype=element_type(dtype)[0], op=op_number(op),
            accumulate=DTYPE_DEFAULT, input=source.address, output=target.address,
            externals=ctypes.addressof(outside[0]), externals_count=len(outside[0]),
            flags=ctypes.addressof(words[0]), flags_count=len(words[0]), **more,
        )  # fmt: skip
        return call, outside, words, most

    def _queue(self, call, bytes, stream, meets):
        """`meets`: all ranks do, in the call. REQUIRES: the plan is open."""
        comm, launch = self._comm, library().mscclc_plan_launch
        comm._free_finished(stream)
        arguments = [self._handle, ctypes.byref(call), bytes, comm._queue(stream)]
        if meets:
            wait_for(lambda: check(launch(*arguments)), lambda: comm.abort("interrupted"))
        else:
            check(launch(*arguments))

    def _needs_rows(self, source, target, dtype):
        """Shapes that do not say other rows than the plan's."""
        own, columns = self._rows.output_type, self._rows.columns
        needs_columns("the input", source, columns, element_type(dtype)[1])
        if target is not source:
            needs_columns("the output", target, columns, element_type(dtype if own == "T" else own)[1])

    def _needs_buffers(self, source, target, most, dtype):
        """The plan may use no more than is there, nor may a part of a buffer be left out."""
        if self._needed[0] != most:
            found = ctypes.c_uint64(), ctypes.c_uint64()
            check(library().mscclc_plan_buffers(self._handle, most, *map(ctypes.byref, found)))
            self._needed = most, (found[0].value, found[1].value)
        input, output = self._needed[1]
        width = element_type(dtype)[1]
        if self._rows.output_type != "T":  # said for elements as wide as those that it was loaded for
            output = output * element_type(self._dtype)[1] // width
        for side, data, bytes in (("input", source, input), ("output", target, output)):
            if bytes not in (0, data.bytes):
                raise UsageError(
                    f"the input has {source.bytes / width:g} elements of '{dtype}', the output"
                    f" {target.bytes / width:g}; the plan needs {bytes / width:g} in the {side}"
                )
