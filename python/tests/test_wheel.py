"""The wheel: what is in it, and that it works from where it is unpacked."""

import base64
import csv
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import make_wheel  # noqa: E402


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.tool = shutil.which("mscclc")
        cls.library = os.path.join(os.environ["LD_LIBRARY_PATH"], "libmscclc.so.0")
        made = os.path.join(cls.folder, "made", "here")  # folders that are not there yet
        name = make_wheel.make_wheel(made, cls.tool, cls.library)
        cls.path = os.path.join(made, name)

    def test_record_lists_every_file_with_its_hash(self):
        with zipfile.ZipFile(self.path) as wheel:
            names = set(wheel.namelist())
            (record,) = [name for name in names if name.endswith(".dist-info/RECORD")]
            rows = list(csv.reader(io.StringIO(wheel.read(record).decode())))
            self.assertEqual({row[0] for row in rows}, names)
            for name, digest, size in rows:
                if name == record:
                    continue
                data = wheel.read(name)
                hashed = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
                self.assertEqual((digest, int(size)), ("sha256=" + hashed.decode(), len(data)))
            self.assertIn("mscclc/mscclpp/language/channel.py", names)
            self.assertIn("mscclc/py.typed", names)
            # What the adapter for torch is built from, and how torch finds the backend.
            self.assertIn("mscclc/include/mscclc.h", names)
            self.assertIn("mscclc/torch/adapter/backend.cc", names)
            self.assertIn("mscclc/torch/adapter/lanes/lane.cc", names)
            self.assertIn("mscclc/torch/comms/backend.cc", names)
            (points,) = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
            self.assertIn(b"[torch.backends]\nmscclc = mscclc.torch:register\n", wheel.read(points))
            self.assertIn(b"[torchcomms.backends]\nmscclc = mscclc.torchcomms\n", wheel.read(points))

    def test_the_same_files_give_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            again = os.path.join(folder, make_wheel.make_wheel(folder, self.tool, self.library))
            with open(again, "rb") as one, open(self.path, "rb") as other:
                self.assertTrue(one.read() == other.read())

    def test_it_works_where_it_is_unpacked(self):
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(self.path) as wheel:
                wheel.extractall(folder)
                for entry in wheel.infolist():  # as pip does
                    os.chmod(os.path.join(folder, entry.filename), entry.external_attr >> 16)
            environment = {"PYTHONPATH": folder, "PATH": "/nothing"}
            for arguments in (
                ["-m", "mscclc", "--version"],
                ["-c", "import mscclc; mscclc.unique_id(); print('mscclc', mscclc.__version__)"],
            ):
                done = subprocess.run(
                    [sys.executable, *arguments],
                    capture_output=True,
                    text=True,
                    env=environment,
                    cwd=folder,
                )
                self.assertEqual((done.stdout, done.stderr), ("mscclc 0.1.0\n", ""))

    def test_the_command_needs_no_library_of_the_system(self):
        with open(self.tool, "rb") as file:
            self.assertNotIn(b"/ld-linux", file.read(4096))


if __name__ == "__main__":
    unittest.main()
