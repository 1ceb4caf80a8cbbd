"""The backend with real torch: suites of checks, run by processes."""

import importlib.metadata
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import make_wheel  # noqa: E402

PATIENCE = 300  # seconds; only a hang takes so long
TORCH = tuple(map(int, importlib.metadata.version("torch").split(".")[:2]))
symmetric = unittest.skipIf(TORCH < (2, 11), "symmetric memory needs torch 2.11")


def run(suite, ranks):
    """The last lines of all ranks, or AssertionError with what they printed."""
    folder = tempfile.mkdtemp()
    # What the wheel installs beside the package: by it, torch finds the backend.
    installed = os.path.join(folder, "mscclc-0.dist-info")
    os.mkdir(installed)
    with open(os.path.join(installed, "entry_points.txt"), "w") as file:
        file.write(make_wheel.ENTRY_POINTS)
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{os.environ['PYTHONPATH']}"}
    try:
        with socket.socket() as free, open(os.path.join(folder, "port"), "w") as file:
            free.bind(("127.0.0.1", 0))
            file.write(str(free.getsockname()[1]))
        processes = [
            subprocess.Popen(
                [sys.executable, "-B", os.path.join(HERE, "checks.py"), suite, str(ranks), str(rank),
                 folder],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder,
                env=environment,
            )
            for rank in range(ranks)
        ]  # fmt: skip
        try:
            return [process.communicate(timeout=PATIENCE)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Suites(unittest.TestCase):
    def check(self, suite, *sizes):
        for ranks in sizes:
            with self.subTest(ranks=ranks):
                for output in run(suite, ranks):
                    last = output.rstrip().rpartition("\n")[2]
                    self.assertRegex(last, r"^[1-9][0-9]* passed, 0 failed$", output)

    def test_collectives(self):
        self.check("collectives", 1, 2, 3, 4)

    def test_training(self):
        self.check("training", 2)

    def test_functional(self):
        self.check("functional", 2)

    def test_custom_ops(self):
        self.check("custom_ops", 2)

    @symmetric
    def test_symmetric_memory(self):
        self.check("symmetric_memory", 2, 3)

    @symmetric
    def test_zero_copy(self):
        self.check("zero_copy", 2, 3)

    def test_lifecycle(self):
        self.check("lifecycle", 3)

    def test_arrays(self):
        self.check("arrays", 2, 3)

    def test_plan_ops(self):
        self.check("plan_ops", 2)

    def test_vllm_plugin(self):
        self.check("vllm_plugin", 2)

    def test_torchcomms(self):
        self.check("torchcomms_checks", 1, 2, 3)


if __name__ == "__main__":
    unittest.main()
