"""A communicator of the library lives as long as it is open, or memory of it is in use."""

import atexit
import os
import sys
import threading

from ._library import check, library


# Communicators that are closed, and of which somebody still has memory.
_held = set()


@atexit.register
def _leave():
    """Says goodbye to the other ranks, who would take the end of this process for a death."""
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

    def hold(self):
        """Memory is in use."""
        with self._lock:
            self._users += 1

    def let_go(self, registration, memory):
        """It is not any more. Any thread: an open communicator frees it when it is used next."""
        if sys.is_finalizing() or os.getpid() != self._process or self._handle is None:
            return
        with self._lock:
            self._unneeded.append((registration, memory))
            self._users -= 1
            last = self._ended and self._users == 0
        if last:
            self._destroy()

    def free_unneeded(self):
        """Frees what is not in use any more."""
        while self._unneeded:
            registration, memory = self._unneeded.pop()
            check(library().mscclc_deregister(self._handle, registration))
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
        """The interpreter ends: the communicator goes with its memory, which nobody may use now."""
        if os.getpid() == self._process:
            handle, self._handle = self._handle, None
            check(library().mscclc_comm_destroy(handle))

    def _destroy(self):
        _held.discard(self)
        self.free_unneeded()
        check(library().mscclc_comm_destroy(self._handle))
