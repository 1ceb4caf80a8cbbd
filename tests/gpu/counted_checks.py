"""Counts checks, of which every one is tried: what scripts for GPUs share."""

import sys
import traceback


class Checks:
    """Runs checks of a rank. `after` is called after each, and is part of it."""

    def __init__(self, rank, after=lambda: None):
        self.rank, self.passed, self.failed = rank, 0, 0
        self._after = after

    def __call__(self, name, body):
        try:
            body()
            self._after()
            self.passed += 1
        except Exception:
            self.failed += 1
            print(f"rank {self.rank}: {name} FAILED\n{traceback.format_exc()}", flush=True)

    def end(self):
        """The last line of a process, which others read, and its exit code."""
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        sys.exit(1 if self.failed else 0)
