"""decode_loop.py without GPUs: what it takes for the same output, and what becomes of ranks that fail."""
import argparse
import contextlib
import io
import subprocess
import sys
import time
import unittest

import decode_loop

OPTIONS = argparse.Namespace(ranks=2, context=16, rounds=1, models=["8b"], batches=[1])


def found(seconds, first):
    return [{"torch": "2", "gpu": "GPU", "nccl": "2.28",
             "found": {"8b 1": {"seconds": seconds, "alone": 0.001, "first": first}}}]


def report(ours, nccl, ranks=2):
    """(whether it was good, the last line)"""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        good = decode_loop.report(argparse.Namespace(**{**vars(OPTIONS), "ranks": ranks}), ours, nccl)
    return good, said.getvalue().splitlines()[-1]


class Report(unittest.TestCase):
    def test_the_same(self):
        good, line = report(found(0.002, [1.0, -4.0]), found(0.003, [1.0, -4.0]))
        self.assertTrue(good)
        self.assertEqual(line.split(),
                         ["8b", "1", "8192", "2000.0", "3000.0", "1.500", "1000.0", "the", "same"])

    def test_two_ranks_have_one_sum(self):
        good, line = report(found(0.002, [1.0, -4.0]), found(0.003, [1.01, -4.0]))
        self.assertFalse(good)
        self.assertTrue(line.endswith("WRONG"))

    def test_four_ranks_may_round_otherwise(self):
        self.assertTrue(report(found(1, [1.0, -4.0]), found(1, [1.01, -4.0]), ranks=4)[0])
        self.assertFalse(report(found(1, [1.0, -4.0]), found(1, [2.0, -4.0]), ranks=4)[0])


class Ranks(unittest.TestCase):
    def test_one_that_fails_ends_the_others(self):
        stays = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        fails = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
        self.assertEqual(decode_loop.wait_for([stays, fails], time.monotonic() + 300), [-9, 3])

    def test_the_limit_ends_all(self):
        stays = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        self.assertEqual(decode_loop.wait_for([stays], time.monotonic()), [-9])


if __name__ == "__main__":
    unittest.main()
