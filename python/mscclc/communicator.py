"""Communicators of the host device: collectives on buffers of Python.

    id = mscclc.unique_id()                                # one process, which sends it to all
    comm = mscclc.Communicator(ranks, id, rank)            # each of them
    comm.allreduce(array.array("f", [1, 2, 3])).wait()     # in place
"""

import ctypes
import os
import threading
from typing import Any, Callable, Optional

from ._library import HOST, Config, UniqueId, check, library
from ._lifetime import Lifetime
from .errors import UsageError

_DTYPES = {
    "f32": (0, 4), "f16": (1, 2), "bf16": (2, 2), "f64": (3, 8), "i32": (4, 4), "u32": (5, 4),
    "i64": (6, 8), "u64": (7, 8), "i8": (8, 1), "u8": (9, 1), "e4m3": (10, 1), "e5m2": (11, 1),
    "e4m3b15": (12, 1),
}  # fmt: skip
_OPS = {"sum": 1, "min": 2, "max": 3, "prod": 4, "avg": 5}


def unique_id() -> bytes:
    """An id for a communicator that is to be. This process must live until all ranks have come."""
    made = UniqueId()
    check(library().mscclc_unique_id(ctypes.byref(made)))
    return bytes(made)


class Work:
    """A collective that has been queued; it keeps its buffers alive until it has ended."""

    __slots__ = ("_comm", "_buffers")

    def __init__(self, comm: "Communicator", buffers: tuple):
        self._comm = comm
        self._buffers = buffers

    def wait(self) -> None:
        """Waits until it has ended, and all queued before it; raises what has gone wrong."""
        if self._buffers:
            self._comm.synchronize()
            self._buffers = ()

    def __del__(self):
        if self._buffers and self._comm._handle is not None:
            self._comm._unfinished.append(self._buffers)


class Communicator:
    """A rank among others, on the host device. For one thread at a time.

    Buffers have Python's buffer protocol (array.array, bytearray, NumPy's arrays) and are
    contiguous. Their element type is that of the call, or `dtype` says it.
    """

    def __init__(self, ranks: int, id: bytes, rank: int, *, timeout: Optional[float] = None):
        """Collective over all ranks of the id. `timeout`: seconds that ranks wait for others."""
        if len(id) != ctypes.sizeof(UniqueId):
            raise UsageError(f"an id has {ctypes.sizeof(UniqueId)} bytes, this one {len(id)}")
        shared = UniqueId.from_buffer_copy(id)
        self._create("mscclc_comm_create", timeout, ranks, ctypes.byref(shared), rank)

    @classmethod
    def from_environment(cls, name: str = "", *, timeout: Optional[float] = None) -> "Communicator":
        """The same for a process that torchrun, mpirun or srun has started."""
        comm = cls.__new__(cls)
        comm._create("mscclc_comm_create_env", timeout, name.encode())
        return comm

    def _create(self, function, timeout, *arguments):
        self._handle = None
        self._process = os.getpid()
        self._unfinished = []  # buffers of works that nobody holds any more
        config = Config(ctypes.sizeof(Config), HOST, int((timeout or 0) * 1000), 0, None)
        handle, stream = ctypes.c_void_p(), ctypes.c_void_p()

        def create():
            call = getattr(library(), function)
            check(call(ctypes.byref(handle), *arguments, ctypes.byref(config)))

        _wait_for(create, None)
        self._handle, self._lifetime = handle, Lifetime(handle)
        self._stream = stream
        check(library().mscclc_stream_create(handle, ctypes.byref(stream)))

    @property
    def rank(self) -> int:
        """This rank."""
        return self._number("mscclc_comm_rank")

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._number("mscclc_comm_size")

    def allreduce(
        self, input: Any, output: Any = None, op: str = "sum", dtype: Optional[str] = None
    ) -> Work:
        """Every rank gets the reduction of all inputs; without an output in place."""
        source, target, number = self._buffers(input, output, dtype)
        _needs(len(target) == len(source), "input and output differ in size")
        count = len(source) // number[1]
        return self._launch("mscclc_allreduce", source, target, count, number, _op(op))

    def allgather(self, input: Any, output: Any, dtype: Optional[str] = None) -> Work:
        """Every rank gets the inputs of all."""
        source, target, number = self._buffers(input, output, dtype)
        _needs(len(target) == len(source) * self.size, "the output is not an input of each rank")
        return self._launch("mscclc_allgather", source, target, len(source) // number[1], number)

    def reducescatter(
        self, input: Any, output: Any, op: str = "sum", dtype: Optional[str] = None
    ) -> Work:
        """Every rank gets its part of the reduction of all inputs."""
        source, target, number = self._buffers(input, output, dtype)
        _needs(len(source) == len(target) * self.size, "the input is not an output of each rank")
        count = len(target) // number[1]
        return self._launch("mscclc_reducescatter", source, target, count, number, _op(op))

    def alltoall(self, input: Any, output: Any, dtype: Optional[str] = None) -> Work:
        """Every rank gets its part of every input."""
        source, target, number = self._buffers(input, output, dtype)
        _needs(len(source) == len(target), "input and output differ in size")
        _needs(len(source) % (self.size * number[1]) == 0, "not as many elements for each rank")
        count = len(source) // number[1] // self.size
        return self._launch("mscclc_alltoall", source, target, count, number)

    def broadcast(self, buffer: Any, root: int = 0, dtype: Optional[str] = None) -> Work:
        """Every rank gets the buffer of rank `root`."""
        source, target, number = self._buffers(buffer, None, dtype)
        count = len(source) // number[1]
        return self._launch("mscclc_broadcast", source, target, count, number, root)

    def barrier(self) -> None:
        """Waits until all ranks are here."""
        check(library().mscclc_barrier(self._own(), self._stream))
        self.synchronize()

    def synchronize(self) -> None:
        """Waits until all that is queued has ended. Ctrl-C aborts it, on all ranks."""
        handle = self._own()
        wait = library().mscclc_stream_synchronize
        _wait_for(lambda: check(wait(handle, self._stream)), lambda: self.abort("interrupted"))
        self._unfinished.clear()

    def abort(self, why: str = "aborted") -> None:
        """Ends all calls of all ranks, which are told why. Any thread."""
        check(library().mscclc_comm_abort(self._own(), why.encode()))

    def split(self, color: int, key: int = 0) -> Optional["Communicator"]:
        """Collective: ranks of one color form a communicator; None for a negative one."""
        child = Communicator.__new__(Communicator)
        child._handle, child._process, child._unfinished = None, self._process, []
        handle, stream = ctypes.c_void_p(), ctypes.c_void_p()
        own = self._own()
        call = library().mscclc_comm_split
        _wait_for(
            lambda: check(call(own, color, key, ctypes.byref(handle), None)),
            lambda: self.abort("interrupted"),
        )
        if not handle:
            return None
        check(library().mscclc_stream_create(handle, ctypes.byref(stream)))
        child._handle, child._stream, child._lifetime = handle, stream, Lifetime(handle)
        return child

    def close(self) -> None:
        """Waits for what is queued, and frees the communicator; the second time nothing.

        Symmetric memory of it, which somebody still has, stays as it is until nobody has it.
        """
        if self._handle is None or self._process != os.getpid():
            return
        handle, self._handle = self._handle, None
        check(library().mscclc_stream_destroy(handle, self._stream))
        self._lifetime.end()
        self._unfinished.clear()

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        if kind is not None and self._handle is not None:
            self.abort(f"{kind.__name__} in Python")
        self.close()

    def __reduce__(self):
        raise TypeError("a communicator belongs to its process and cannot be pickled")

    def _own(self):
        if self._handle is None:
            raise UsageError("the communicator is closed")
        if self._process != os.getpid():
            raise UsageError("the communicator is of the process before fork()")
        self._lifetime.free_unneeded()
        return self._handle

    def _number(self, function):
        number = ctypes.c_uint32()
        check(getattr(library(), function)(self._own(), ctypes.byref(number)))
        return number.value

    def _buffers(self, input, output, dtype):
        """Both as arrays of ctypes bytes, and the number and width of the element type."""
        view = memoryview(input)
        number = _DTYPES.get(dtype or _dtype_of(view))
        if number is None:
            given = dtype or view.format
            raise UsageError(f"no element type {given!r}; there are: {_names(_DTYPES)}")
        target = _bytes(input if output is None else output, writable=True)
        source = target if output is None else _bytes(input, writable=False)
        for data in (source, target):
            _needs(len(data) % number[1] == 0, "not a whole number of elements")
        return source, target, number

    def _launch(self, function, source, target, count, number, *more):
        call = getattr(library(), function)
        check(
            call(
                self._own(), _address(source), _address(target), count, number[0], *more,
                self._stream,
            )
        )  # fmt: skip
        return Work(self, (source, target))


def _wait_for(wait: Callable[[], None], end: Optional[Callable[[], None]]) -> None:
    """Runs `wait`, which blocks in the library; Ctrl-C calls `end`, which makes it return, and
    raises KeyboardInterrupt. Without an `end` it is left to its timeout.

    Python handles signals in its main thread and outside of C only, so another thread waits.
    """
    if threading.current_thread() is not threading.main_thread():
        wait()
        return
    raised = []

    def run():
        try:
            wait()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        if end is not None:
            end()
            thread.join()
        raise
    if raised:
        raise raised[0]


def _bytes(buffer, writable) -> memoryview:
    """The bytes of a contiguous buffer; of one that is read-only a copy."""
    view = memoryview(buffer)
    if not view.c_contiguous:
        raise UsageError("the buffer is not contiguous")
    if writable and view.readonly:
        raise UsageError("the buffer is read-only")
    if view.nbytes == 0:
        return memoryview(bytearray())
    return memoryview(bytearray(view)) if view.readonly else view.cast("B")


def _address(data):
    """Where the bytes lie; None: there are none."""
    return ctypes.addressof(ctypes.c_char.from_buffer(data)) if len(data) else None


def _dtype_of(view):
    """The element type of a buffer by its format and width, or None."""
    kind = {"f": "f", "d": "f", "e": "f"}.get(view.format)
    if kind is None and view.format in tuple("bhilq"):
        kind = "i"
    if kind is None and view.format in tuple("BHILQ"):
        kind = "u"
    return None if kind is None else f"{kind}{view.itemsize * 8}"


def _op(name):
    if name not in _OPS:
        raise UsageError(f"no reduction {name!r}; there are: {_names(_OPS)}")
    return _OPS[name]


def _needs(condition, message):
    if not condition:
        raise UsageError(message)


def _names(table):
    return ", ".join(table)
