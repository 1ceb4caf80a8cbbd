"""What the checks of all frameworks share: their arguments, their data, and how they are counted."""
import argparse
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from counted_checks import Checks  # noqa: E402, F401: frameworks take it from here

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
