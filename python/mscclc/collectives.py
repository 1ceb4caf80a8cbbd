"""The collectives of a communicator, by name: sizes and types of buffers become calls of the library."""

import ctypes
from typing import Any, Optional, Sequence

from ._arguments import number
from ._library import HOST, Call, check, library
from ._numbers import DTYPE_DEFAULT, KINDS, OPS, element_type, op_number, order_number
from ._waiting import wait_for
from .buffers import Buffer, buffer_of
from .errors import UsageError
from .work import Work, in_group

MOST_RANKS = 65536
_MOST_ELEMENTS = (1 << 62) - 1
_NOTHING = Buffer(None, 0, None, None)


class Collectives:
    """What a Communicator inherits."""

    def allreduce(
        self, input: Any, output: Any = None, op: str = "sum", dtype: Optional[str] = None,
        stream: Optional[int] = None, symmetric: bool = False, order: Optional[str] = None,
    ) -> Work:  # fmt: skip
        """Every rank gets the reduction of all inputs; without an output in place. `order`: as that
        of the communicator, for this call."""
        return self._call(
            "allreduce", input, output, dtype, stream, op=op, symmetric=symmetric, order=order
        )

    def reduce(
        self, input: Any, output: Any = None, root: int = 0, op: str = "sum",
        dtype: Optional[str] = None, stream: Optional[int] = None, order: Optional[str] = None,
    ) -> Work:  # fmt: skip
        """The root gets the reduction of all inputs; without an output in its input. Other ranks
        need no output."""
        return self._call("reduce", input, output, dtype, stream, op=op, root=root, order=order)

    def allgather(
        self, input: Any, output: Any, dtype: Optional[str] = None, stream: Optional[int] = None,
        symmetric: bool = False,
    ) -> Work:  # fmt: skip
        """Every rank gets the inputs of all."""
        return self._call("allgather", input, output, dtype, stream, symmetric=symmetric)

    def gather(
        self, input: Any, output: Any = None, root: int = 0, dtype: Optional[str] = None,
        stream: Optional[int] = None,
    ) -> Work:  # fmt: skip
        """The root gets the inputs of all. Other ranks need no output."""
        return self._call("gather", input, output, dtype, stream, root=root)

    def reducescatter(
        self, input: Any, output: Any, op: str = "sum", dtype: Optional[str] = None,
        stream: Optional[int] = None, symmetric: bool = False, order: Optional[str] = None,
    ) -> Work:  # fmt: skip
        """Every rank gets its part of the reduction of all inputs."""
        return self._call(
            "reducescatter", input, output, dtype, stream, op=op, symmetric=symmetric, order=order
        )

    def scatter(
        self, input: Any, output: Any, root: int = 0, dtype: Optional[str] = None,
        stream: Optional[int] = None,
    ) -> Work:  # fmt: skip
        """Every rank gets its part of the root's input, which is None at other ranks."""
        return self._call("scatter", input, output, dtype, stream, root=root)

    def alltoall(
        self, input: Any, output: Any, dtype: Optional[str] = None, stream: Optional[int] = None,
        symmetric: bool = False,
    ) -> Work:  # fmt: skip
        """Every rank gets its part of every input."""
        return self._call("alltoall", input, output, dtype, stream, symmetric=symmetric)

    def alltoallv(
        self, input: Any, output: Any, counts: Sequence[Sequence[int]],
        input_offsets: Optional[Sequence[int]] = None,
        output_offsets: Optional[Sequence[int]] = None, dtype: Optional[str] = None,
        stream: Optional[int] = None,
    ) -> Work:  # fmt: skip
        """`counts[s][d]` elements go from rank s to rank d; all ranks give the same counts. Offsets,
        in elements, say where the row for, or of, each rank begins; without them rows follow one
        another."""
        source, target, element = self._buffers("alltoallv", input, output, dtype)
        ranks, own = self.size, self.rank
        rows = [_numbers("a row of counts", row, ranks) for row in _list("counts", counts, ranks)]
        sides = (
            ("input", source, rows[own], input_offsets),
            ("output", target, [row[own] for row in rows], output_offsets),
        )
        offsets = [_offsets_of_rows(side, element, ranks) for side in sides]
        arrays = [(ctypes.c_uint64 * len(all))(*all) for all in (sum(rows, []), *offsets)]
        counts_, first, second = (ctypes.addressof(array) for array in arrays)
        return self._launch(
            "alltoallv", source, target, 0, element, stream, counts=counts_, input_offsets=first,
            output_offsets=second,
        )  # fmt: skip

    def broadcast(
        self, buffer: Any, root: int = 0, dtype: Optional[str] = None, stream: Optional[int] = None
    ) -> Work:
        """Every rank gets the buffer of rank `root`."""
        return self._call("broadcast", buffer, buffer, dtype, stream, root=root)

    def sendrecv(
        self, input: Any, output: Any, shift: int = 1, dtype: Optional[str] = None,
        stream: Optional[int] = None, symmetric: bool = False,
    ) -> Work:  # fmt: skip
        """Every rank sends its input to the rank `shift` places on, and gets that of the rank
        `shift` places back. With a `shift` of 0 it keeps it."""
        shift = number(shift, "the shift", -(1 << 63), (1 << 63) - 1)
        return self._call("sendrecv", input, output, dtype, stream, shift=shift, symmetric=symmetric)

    def _call(self, kind, input, output, dtype, stream, op="sum", **more):
        """Makes the call of a collective whose buffers say how many elements there are."""
        if "root" in more:
            more["root"] = number(more["root"], "the root", 0, MOST_RANKS - 1)
        at_root = more.get("root") == self.rank
        source, target, element = self._buffers(kind, input, output, dtype, at_root)
        count = self._count(kind, source, target, element)
        return self._launch(kind, source, target, count, element, stream, op=op_number(op), **more)

    def _buffers(self, kind, input, output, dtype, at_root=False):
        """Both buffers, and the number and width of the element type. One that this rank does not
        need may be None; one that it writes without an output is its input, where that can be."""
        shape = KINDS[kind]
        if output is None and kind in ("allreduce", "reduce") and (at_root or not shape.root_writes):
            output = input
        for side, data, others_need_none in (
            ("input", input, shape.root_reads), ("output", output, shape.root_writes),
        ):  # fmt: skip
            optional = others_need_none and not at_root or shape.input == "counted"
            if data is None and not optional:
                who = "the root" if others_need_none else "each rank"
                raise UsageError(f"{kind}: {who} needs an {side}, and this one's is None")
        target = _NOTHING if output is None else buffer_of(output, self._device, writable=True)
        source = target
        if input is not output:
            source = _NOTHING if input is None else buffer_of(input, self._device, writable=False)
        element = _element(kind, (input, source), (output, target), dtype)
        return source, target, element

    def _count(self, kind, source, target, element):
        """The elements of a part. Where a rank has both buffers, they must agree."""
        shape, ranks = KINDS[kind], self.size
        parts = {side: ranks if shape.rows(side) else 1 for side in ("input", "output")}
        counts = {
            side: data.bytes // element[1]
            for side, data in (("input", source), ("output", target)) if data is not _NOTHING
        }  # fmt: skip
        if len(counts) == 2:
            _needs_counts(kind, counts, parts, ranks)
        side, count = next(iter(counts.items()))
        _needs(
            count % parts[side] == 0,
            f"{kind}: the {side} has {_elements(count)}, which is not as many for each of"
            f" {ranks} ranks",
        )
        return count // parts[side]

    def _queue(self, stream):
        """The stream of a call."""
        if stream is None:
            return self._stream
        _needs(self._device != HOST, "the host device has no streams")
        return ctypes.c_void_p(stream)

    def _launch(
        self, kind, source, target, count, element, stream, op=OPS["sum"], symmetric=False,
        order=None, **more,
    ):  # fmt: skip
        handle = self._own()
        self._free_finished(stream)
        for one in (source, target) if symmetric else ():
            _needs(self._lifetime.shares(one), "a buffer is not in the communicator's symmetric memory")
        call = Call(
            size=ctypes.sizeof(Call), kind=KINDS[kind].number, dtype=element[0], op=op,
            accumulate=DTYPE_DEFAULT, registered=symmetric, count=count, input=source.address,
            output=target.address, order=order_number(order), **more,
        )  # fmt: skip
        self._make(handle, call, self._queue(stream))
        return Work(self, (source, target), stream, in_group=True)

    def _make(self, handle, call, queue):
        """Where it waits for other ranks, as the first call of a kind does, Ctrl-C ends that, too."""
        arguments = [handle, ctypes.byref(call), queue]
        make, waits, failed = library().mscclc_collective, ctypes.c_int32(), 0
        if not in_group():
            failed = library().mscclc_waits(*arguments, ctypes.byref(waits))
        if waits or failed:  # what is wrong, the call says, unless nothing is any more
            wait_for(lambda: check(make(*arguments)), lambda: self.abort("interrupted"))
        else:
            check(make(*arguments))


def _element(kind, input, output, dtype):
    """The element type of a call: that of both buffers, unless it is given."""
    known = {data.dtype for _, data in (input, output) if data.bytes} - {None}
    if dtype is None and len(known) == 2:
        raise UsageError(
            f"{kind}: the input's elements are '{input[1].dtype}', the output's '{output[1].dtype}';"
            " 'dtype' says what they are taken for"
        )
    data, buffer = input if input[1] is not _NOTHING else output
    name = dtype or buffer.dtype or _own_name_of_type(data)
    element = element_type(name)
    for side, (_, one) in (("input", input), ("output", output)):
        _needs(
            one.bytes % element[1] == 0,
            f"{kind}: the {side}'s {one.bytes} bytes are not a whole number of '{name}'",
        )
    return element


def _needs_counts(kind, counts, parts, ranks):
    """Both buffers have as many elements, or one of them as many for each rank."""
    if parts["input"] == parts["output"]:
        _needs(
            counts["input"] == counts["output"],
            f"{kind}: the input has {_elements(counts['input'])}, the output {counts['output']};"
            " they must have as many",
        )
        return
    rows, whole = sorted(parts, key=parts.get, reverse=True)
    wanted = counts[whole] * ranks
    _needs(
        counts[rows] == wanted,
        f"{kind}: the {whole} has {_elements(counts[whole])}, the {rows} {counts[rows]}; the {rows}"
        f" must have {wanted}, {counts[whole]} for each of {ranks} ranks",
    )


def _offsets_of_rows(side, element, ranks):
    """Where the rows of a buffer begin; all must be inside."""
    name, data, counts, offsets = side
    if offsets is None:
        offsets = [sum(counts[:rank]) for rank in range(ranks)]
    else:
        offsets = _numbers(f"{name}_offsets", offsets, ranks)
    for rank, (begin, count) in enumerate(zip(offsets, counts)):
        _needs(
            count == 0 or begin + count <= data.bytes // element[1],
            f"alltoallv: the row of rank {rank} ends with element {begin + count} of the {name},"
            f" which has {data.bytes // element[1]}",
        )
    return offsets


def _numbers(what, values, ranks):
    return [number(v, f"one of {what}", 0, _MOST_ELEMENTS) for v in _list(what, values, ranks)]


def _list(what, values, ranks):
    """As many values as there are ranks."""
    try:
        found = list(values)
    except TypeError:
        found = None
    if found is None or len(found) != ranks:
        has = "is no list" if found is None else f"has {len(found)} entries"
        raise UsageError(f"alltoallv: {what} {has}; {ranks} ranks need {ranks}")
    return found


def _elements(count):
    return f"{count} element{'' if count == 1 else 's'}"


def _needs(condition, message):
    if not condition:
        raise UsageError(message)


def _own_name_of_type(data):
    """What a buffer calls its element type: its dtype, or its format by the buffer protocol."""
    try:
        return getattr(data, "dtype", None) or memoryview(data).format
    except (TypeError, ValueError, BufferError):
        return "?"
