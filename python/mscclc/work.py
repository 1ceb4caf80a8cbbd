"""Collectives that have been queued, and groups of them that are launched together.

    with mscclc.group():
        works = [comm.sendrecv(mine, theirs, shift) for shift, mine, theirs in halos]
    for work in works:
        work.wait()
"""

import contextlib
import ctypes
import threading
from typing import Any, Iterator, Optional

from ._library import Call, check, library
from .errors import UsageError


class _Open(threading.local):
    """The groups of this thread that have not ended."""

    def __init__(self):
        self.depth = 0
        self.works = []  # they keep their buffers until the calls are launched


_open = _Open()


class Work:
    """A collective that has been queued; it keeps its buffers alive until it has ended."""

    __slots__ = ("_comm", "_buffers", "_stream", "_not_launched")

    def __init__(self, comm: Any, buffers: tuple, stream: Optional[int], in_group: bool = False):
        self._comm = comm
        self._buffers = buffers
        self._stream = stream
        self._not_launched = ""
        if in_group and _open.depth:
            self._not_launched = "its group has not ended"
            _open.works.append(self)

    def wait(self) -> None:
        """Waits until it has ended, and all queued before it; raises what has gone wrong."""
        if self._not_launched:
            raise UsageError(f"the collective has not been launched: {self._not_launched}")
        if self._buffers:
            self._comm.synchronize(self._stream)
            self._buffers = ()

    def _group_has_ended(self, launched):
        self._not_launched = "" if launched else "its group has failed"
        if not launched:
            self._buffers = ()

    def __del__(self):
        if self._buffers and self._comm._handle is not None:
            self._comm._unfinished.append((self._stream, self._buffers))


@contextlib.contextmanager
def group() -> Iterator[None]:
    """Collectives of this thread in the `with` are launched together at its end, all of them or,
    where one is refused or the block raises, none. For calls of one communicator that may run
    beside one another, and for a thread that drives several ranks. Blocks may be nested: the
    outermost launches."""
    check(library().mscclc_group_start())
    _open.depth += 1
    try:
        yield
    except BaseException:
        _end(given_up=True)
        raise
    _end(given_up=False)


def in_group() -> bool:
    """Whether calls of this thread are launched later, at the end of a group."""
    return _open.depth > 0


def needs_no_group(what: str) -> None:
    """For what waits: inside a group it would wait for what is not launched."""
    if in_group():
        raise UsageError(f"{what} waits, and so cannot be inside mscclc.group()")


def _end(given_up):
    if given_up:  # a call that is refused makes the end refuse the others
        library().mscclc_collective(None, ctypes.byref(Call(size=ctypes.sizeof(Call))), None)
    _open.depth -= 1
    result = library().mscclc_group_end()
    if _open.depth:
        return
    works, _open.works = _open.works, []
    for work in works:
        work._group_has_ended(result == 0)
    if not given_up:
        check(result)
