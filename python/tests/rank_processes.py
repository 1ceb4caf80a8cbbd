"""Ranks as processes on the host device, for tests."""

import os
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
