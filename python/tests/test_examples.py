"""Examples that need no torch; one is over a fake mpi4py."""

import os
import subprocess
import sys
import tempfile
import unittest

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples")
PATIENCE = 300  # seconds; only a hang takes so long

# What of mpi4py the example calls: ranks that share a folder.
MPI = """
import os, time
class World:
    def Get_rank(self): return int(os.environ["RANK"])
    def Get_size(self): return int(os.environ["SIZE"])
    def bcast(self, value, root):
        path = os.environ["ROOM"] + "/bcast"
        if self.Get_rank() == root:
            with open(path + ".part", "wb") as file: file.write(value)
            os.rename(path + ".part", path)
        while not os.path.exists(path): time.sleep(0.01)
        with open(path, "rb") as file: return file.read()
COMM_WORLD = World()
"""


class Examples(unittest.TestCase):
    def test_mpi(self):
        with tempfile.TemporaryDirectory() as room:
            os.mkdir(os.path.join(room, "mpi4py"))
            for name, text in (("__init__.py", ""), ("MPI.py", MPI)):
                with open(os.path.join(room, "mpi4py", name), "w") as file:
                    file.write(text)
            path = f"{room}:{os.environ['PYTHONPATH']}"
            ranks = [
                subprocess.Popen(
                    [sys.executable, "-B", os.path.join(EXAMPLES, "mpi_sum.py")],
                    env={**os.environ, "PYTHONPATH": path, "ROOM": room, "SIZE": "3", "RANK": str(r)},
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                )
                for r in range(3)
            ]  # fmt: skip
            printed = [rank.communicate(timeout=PATIENCE)[0] for rank in ranks]
        wanted = [f"rank {r} of 3: the ranks' numbers add up to 3\n" for r in range(3)]
        self.assertEqual(printed, wanted)

    def test_fused_norm(self):
        command = [sys.executable, "-B", os.path.join(EXAMPLES, "fused_norm.py")]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE
        )
        self.assertEqual(done.stdout, "5 rows of 2880: the residual is 4, the norm 3\n")
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
