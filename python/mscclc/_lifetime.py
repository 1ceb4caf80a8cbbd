"""A communicator of the library lives as long as it is open, or memory of it is in use."""

import atexit
import os
import sys
import threading

from ._library import check, library
from .errors import LibraryError


# Communicators that are closed, and whose memory is still in use.
_held = set()


@atexit.register
def _leave():
    """Says goodbye to the other ranks, which would take the end of this process for a death."""
    while _held:
        _held.pop().leave()


class Lifetime:
    """A communicator's handle, and the shared memory that was made with it."""

    def __init__(self, handle):
        self._handle = handle
        self._process = os.getpid()
        self._lock = threading.RLock()  # the garbage collector may come in between
        self._users = 0
        self._ended = False
        self._unneeded = []
        self._shared = {}  # registration: where its memory begins and ends

    def hold(self, registration, address, bytes):
        """Memory is in use."""
        with self._lock:
            self._users += 1
            self._shared[registration] = (address, address + bytes)

    def shares(self, buffer):
        """Whether a buffer lies in memory that is in use, and so is registered."""
        if not self._shared or not buffer.address:
            return False
        end = buffer.address + buffer.bytes
        with self._lock:
            return any(first <= buffer.address and end <= last for first, last in self._shared.values())

    def let_go(self, registration, memory):
        """It is not any more. Any thread: an open communicator frees it when it is used next."""
        if sys.is_finalizing() or os.getpid() != self._process or self._handle is None:
            return
        with self._lock:
            del self._shared[registration]
            self._unneeded.append((registration, memory))
            self._users -= 1
            last = self._ended and self._users == 0
        if last:
            self._destroy()

    def free_unneeded(self):
        """Frees what is not in use any more."""
        while self._unneeded:
            registration, memory = self._unneeded.pop()
            try:
                check(library().mscclc_deregister(self._handle, registration))
            except LibraryError:  # another thread is inside: at the next time
                self._unneeded.append((registration, memory))
                raise
            check(library().mscclc_memory_release(memory))

    def end(self):
        """The communicator is closed: it goes now, or with the last of its memory."""
        with self._lock:
            self._ended = True
            last = self._users == 0
            if not last:
                _held.add(self)
        if last:
            self._destroy()

    def leave(self):
        """The interpreter ends: the communicator goes with its memory, which must not be used now."""
        if os.getpid() == self._process:
            handle, self._handle = self._handle, None
            check(library().mscclc_comm_destroy(handle))

    def _destroy(self):
        _held.discard(self)
        self.free_unneeded()
        check(library().mscclc_comm_destroy(self._handle))
