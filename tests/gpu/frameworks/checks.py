"""What the checks of all frameworks share: their arguments, their data, and how they are counted."""
import argparse
import sys
import traceback

import numpy as np

COUNTS = [1, 7, 1000, 65536 + 3, 1 << 20]  # elements


def arguments():
    """Those that run.py gives to a process of a framework."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--port", type=int, required=True, help="free on this machine; so is the next")
    parser.add_argument("--name", required=True, help="the framework")
    parser.add_argument("--host", action="store_true", help="ranks on this machine's processor")
    return parser.parse_args()


def values(rank, count):
    """Small whole numbers: sums and products are exact in every type."""
    i = np.arange(count)
    return (i + i // 7 + rank) % 3


class Checks:
    """Runs checks, of which every one is tried."""

    def __init__(self, rank):
        self.rank, self.passed, self.failed = rank, 0, 0

    def __call__(self, name, body):
        try:
            body()
            self.passed += 1
        except Exception:
            self.failed += 1
            print(f"rank {self.rank}: {name} FAILED\n{traceback.format_exc()}", flush=True)

    def end(self):
        """The last line of a process, which run.py reads, and its exit code."""
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        sys.exit(1 if self.failed else 0)
