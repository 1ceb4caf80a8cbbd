"""Ranks as processes on the host device, for tests."""

import os
import signal
import subprocess
import sys

import mscclc

PATIENCE = 300  # seconds; only a hang takes so long

# What a rank runs: its id is in hexadecimal, its body the program of the test.
RANK = """
import array, ctypes, sys
import mscclc
ranks, rank, id = int(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3])
with mscclc.Communicator(ranks, id, rank, timeout=250) as comm:
    def floats(*values):
        return array.array("f", values)
    def refused(text, call, *arguments, error=mscclc.UsageError, **more):
        try:
            call(*arguments, **more)
        except error as found:
            assert text in str(found), found
        else:
            raise AssertionError(text)
    exec(sys.argv[4])
"""

# For ranks whose waits are observed: those of the main thread that Ctrl-C ends, as another thread waits.
WAITS = """if 1:
    import signal, threading, time
    from mscclc._library import library
    from mscclc._waiting import _Waiter
    waits = []  # that have begun; True: it lasts
    def end_of_wait(waiter, end=_Waiter.end):
        waits.append(True)
        when_waiting()
        try:
            end(waiter)
        finally:
            waits[-1] = False
    _Waiter.end = end_of_wait
    def when_waiting():
        pass
    def say_when_waiting():
        # What runs in the background begins with the signal ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        global when_waiting
        when_waiting = lambda: print("waiting", flush=True)
    def wait_until_a_wait_is_inside():
        # There is no such registration, where no other thread is inside. One that is inside while a wait lasts is it.
        while True:
            before = len(waits)
            if before and waits[-1] and library().mscclc_deregister(comm._handle, 99) == 2:  # MSCCLC_INVALID_USAGE
                if waits[-1] and len(waits) == before:
                    return
            time.sleep(0.001)
    def retried(call, *arguments):
        while True:
            try:
                return call(*arguments)
            except mscclc.LibraryError as error:  # the second one was inside just now
                if error.code != 2 or rank != 0:
                    raise
"""


def start(ranks, body, **environment):
    """Processes of `ranks` ranks that run `body`; this process serves their id."""
    id = mscclc.unique_id().hex()
    return [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(ranks), str(rank), id, body],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        for rank in range(ranks)
    ]


def run(ranks, body, **environment):
    """The last line that each rank has printed."""
    processes = start(ranks, body, **environment)
    outcomes = [process.communicate(timeout=PATIENCE) for process in processes]
    ends = [
        f"rank {rank} ended with {process.returncode}: {errors}"
        for rank, (process, (_, errors)) in enumerate(zip(processes, outcomes))
        if process.returncode != 0
    ]
    if ends:
        raise AssertionError("\n".join(ends))
    return [out.splitlines()[-1] for out, _ in outcomes]


def end_by_ctrl_c(test, body):
    """Interrupts rank 0, which waits for rank 1, and that for the end of its input. The timeout comes too late to
    end the wait."""
    id, program = mscclc.unique_id().hex(), RANK.replace("timeout=250", f"timeout={10 * PATIENCE}")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, "2", str(rank), id, body],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for process in processes:
        test.addCleanup(process.kill)
        test.assertEqual(process.stdout.readline(), "waiting\n")
    processes[0].send_signal(signal.SIGINT)
    errors = processes[0].communicate(timeout=PATIENCE)[1]
    test.assertEqual(errors.splitlines()[-1], "KeyboardInterrupt")
    processes[1].communicate(timeout=PATIENCE)
