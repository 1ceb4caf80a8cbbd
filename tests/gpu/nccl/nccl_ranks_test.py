"""nccl_ranks.py without GPUs: this file is the program whose ranks it starts."""
import argparse
import os
import sys
import unittest

import nccl_ranks


def worker(rank, ranks, code):
    port = os.environ["MASTER_PORT"]
    print(rank, ranks, os.environ.get("SETTING"), os.environ.get("LD_PRELOAD"), port.isdigit())
    sys.exit(code if rank == 1 else 0)


class Ranks(unittest.TestCase):
    def test_they_print_in_their_order(self):
        self.assertEqual(nccl_ranks.run(__file__, 2, None, SETTING="on"),
                         [f"{rank} 2 on None True" for rank in range(2)])

    def test_one_that_fails_ends_all(self):
        with self.assertRaisesRegex(SystemExit, r"\[0, 3, 0\]"):
            nccl_ranks.run(__file__, 3, None, "--code", "3")


if __name__ == "__main__":
    parser = nccl_ranks.add_ranks(argparse.ArgumentParser(), 2)
    parser.add_argument("--code", type=int, default=0)
    options = parser.parse_args()
    if options.worker is not None:
        worker(options.worker, options.ranks, options.code)
    unittest.main()
