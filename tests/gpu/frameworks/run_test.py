"""run.py without frameworks: what it takes for right, over scripts that stand for them."""
import argparse
import contextlib
import io
import os
import sys
import tempfile
import unittest

import run

PLAN = "host:1:1 [0] NCCL INFO {}: count 7 datatype 7 op 0 root 0 comm 0x1 nranks 2 stream (nil): plan 'a'"
NCCL = "host:1:1 [0] NCCL INFO {}: count 7 datatype 7 op 0 root 0 comm 0x1 nranks 2 stream (nil): NCCL, as {}"


def script(lines, ending):
    """A framework that makes the calls of `lines`, and ends so."""
    return f"import os\nprint({chr(10).join(lines)!r}, flush=True)\n{ending}\n"


class Run(unittest.TestCase):
    def run_script(self, text, **more):
        """(passed, failed, what it printed) of a framework of two processes."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "framework.py"), "w") as file:
                file.write(text)
            options = argparse.Namespace(**{**dict(
                library="/nowhere/libnccl.so.2", ranks=2, sources=None, audit=None, alone=False,
                host=True, seconds=600), **more})
            run.RUNS["try-path"] = (os.path.join(folder, "framework.py"), False, {"OURS": "{}"})
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                passed, failed = run.run("try-path", options, folder)
        return passed, failed, said.getvalue()

    def test_all_are_right(self):
        passed, failed, said = self.run_script(script(
            [PLAN.format("AllReduce"), NCCL.format("Send", "it is a message")],
            "print(os.environ['OURS'])\nprint('3 passed, 0 failed')"))
        self.assertEqual((passed, failed), (6, 0), said)
        self.assertIn("try-path: /nowhere/libnccl.so.2\n", said)
        self.assertIn("AllReduce: 2 by plans, 0 by NCCL\n", said)
        self.assertIn("Send: 0 by plans, 2 by NCCL\n", said)
        self.assertIn("2 times Send, as it is a message\n", said)

    def test_no_plan_served(self):
        _, failed, said = self.run_script(script(
            [PLAN.format("AllReduce"), NCCL.format("AllGather", "no plan serves it")],
            "print('3 passed, 0 failed')"))
        self.assertEqual(failed, 1, said)

    def test_it_has_not_called_the_library(self):
        _, failed, said = self.run_script("print('3 passed, 0 failed')")
        self.assertEqual(failed, 1, said)
        _, failed, said = self.run_script("print('3 passed, 0 failed')", alone=True)
        self.assertEqual(failed, 0, said)

    def test_wrong_values(self):
        passed, failed, said = self.run_script(script(
            [PLAN.format("AllReduce")], "print('2 passed, 1 failed')\nraise SystemExit(1)"))
        self.assertEqual((passed, failed), (4, 2), said)

    def test_processes_that_end_early(self):
        for ending in ("", "print('3 passed, 0 failed', flush=True)\nos.abort()"):
            _, failed, said = self.run_script(script([PLAN.format("AllReduce")], ending))
            self.assertEqual(failed, 2, said)

    def test_processes_that_hang(self):
        _, failed, said = self.run_script("import signal\nsignal.pause()", seconds=0, alone=True)
        self.assertEqual(failed, 2, said)
        self.assertIn("a process ended with not in time", said)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
