"""Waiting in the library, such that Ctrl-C ends it."""

import os
import queue
import sys
import threading
from typing import Callable, List, Optional

_Wait = Callable[[], None]


class _Waiter:
    """A thread that waits for the main one: to start one takes 100 µs, to wake it a fifth."""

    def __init__(self):
        self._waits, self._ends = queue.SimpleQueue(), queue.SimpleQueue()
        self.over = self.leaves = False  # the wait; and the thread goes after it
        self.raised: Optional[BaseException] = None
        threading.Thread(target=self._run, daemon=True).start()

    def begin(self, wait: _Wait) -> None:
        self.over, self.raised = False, None
        self._waits.put(wait)

    def end(self) -> None:
        """Until the wait is over; once."""
        self._ends.get()

    def _run(self):
        while not self.leaves:
            wait = self._waits.get()
            try:
                wait()
            except BaseException as error:
                self.raised = error
            del wait  # what is over keeps nothing
            self.over = True
            self._ends.put(None)


_idle: List[_Waiter] = []
os.register_at_fork(after_in_child=_idle.clear)  # threads are the parent's


def wait_for(wait: _Wait, end: Optional[_Wait]) -> None:
    """Runs `wait`, which blocks in the library; Ctrl-C calls `end`, which makes it return, and
    raises KeyboardInterrupt. So does what another signal's handler raises to end the program (SystemExit). Without an
    `end` it is left to its timeout.

    Python handles signals in its main thread and outside of C only, so another thread waits.
    """
    # As the interpreter ends, its other threads stand still and none begins.
    if sys.is_finalizing() or threading.current_thread() is not threading.main_thread():
        wait()
        return
    # A signal's handler may come here while another waiter is at work.
    try:
        waiter = _idle.pop() if _idle else _Waiter()
    except RuntimeError:  # in functions of atexit none begins
        wait()
        return
    try:
        waiter.begin(wait)
        waiter.end()
    except BaseException as interrupt:
        waiter.leaves = True
        if end is not None and not isinstance(interrupt, Exception):
            end()
            if not waiter.over:  # or it may have been interrupted with the answer in its hands
                waiter.end()
        raise
    raised, waiter.raised = waiter.raised, None
    _idle.append(waiter)
    if raised is not None:
        raise raised
