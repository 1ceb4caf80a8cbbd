"""The wheel: what is in it, and that it works from where it is unpacked."""

import base64
import csv
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
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
            self.assertIn("mscclc/torch/adapter/queues/call_queue.cc", names)
            self.assertIn("mscclc/torch/comms/backend.cc", names)
            (points,) = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
            self.assertIn(b"[torch.backends]\nmscclc = mscclc.torch:register\n", wheel.read(points))
            vllm = b"[vllm.platform_plugins]\nmscclc = mscclc.vllm:register\n"
            self.assertIn(vllm, wheel.read(points))
            self.assertIn("mscclc/vllm/communicator.py", names)
            self.assertIn(b"[torchcomms.backends]\nmscclc = mscclc.torchcomms\n", wheel.read(points))

    def test_the_same_files_give_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            again = os.path.join(folder, make_wheel.make_wheel(folder, self.tool, self.library))
            with open(again, "rb") as one, open(self.path, "rb") as other:
                self.assertTrue(one.read() == other.read())

    def test_kernels_of_plans_lie_where_the_library_looks_for_them(self):
        kernels = os.path.join(HERE, "..", "..", "tools", "package", "fake_kernels.tar")
        with tempfile.TemporaryDirectory() as folder:
            name = make_wheel.make_wheel(folder, self.tool, self.library, kernels)
            with zipfile.ZipFile(os.path.join(folder, name)) as wheel:
                wheel.extractall(folder)
            share = os.path.join(folder, "mscclc", "share", "mscclc", "kernels")
            self.assertEqual(sorted(os.listdir(share)), ["README", "sm_100", "sm_90"])
            with tarfile.open(kernels) as tar:
                packed = [member for member in tar if member.isfile()]
                for member in packed:
                    with open(os.path.join(os.path.dirname(share), member.name), "rb") as file:
                        self.assertEqual(file.read(), tar.extractfile(member).read(), member.name)
            self.assertGreater(len(packed), 3)
            done = subprocess.run(
                [sys.executable, "-c", "import array, mscclc\n"
                 "c = mscclc.Communicator(1, mscclc.unique_id(), 0)\n"
                 "c.allreduce(array.array('f', [1])).wait()"],
                capture_output=True,
                text=True,
                env={"PYTHONPATH": folder, "MSCCLC_DEBUG": "INFO", "MSCCLC_DEBUG_SUBSYS": "LOAD"},
                cwd=folder,
            )  # fmt: skip
            lie = f"kernels of the library's plans lie in '{os.path.realpath(share)}'"
            self.assertIn(lie, done.stdout + done.stderr)

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

    def test_examples_run_from_it_with_no_folder_of_plans(self):
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(self.path) as wheel:
                wheel.extractall(folder)
            there = sorted(os.listdir(os.path.join(HERE, "..", "examples")))
            packed = os.listdir(os.path.join(folder, "mscclc", "examples"))
            self.assertEqual(sorted(packed), [name for name in there if name.endswith(".py")])
            done = subprocess.run(
                [sys.executable, "-m", "mscclc.examples.fused_norm"],
                capture_output=True,
                text=True,
                env={"PYTHONPATH": folder, "PATH": "/nothing"},
                cwd=folder,
            )
            said = "5 rows of 2880: the residual is 4, the norm 3\n"
            self.assertEqual((done.stdout, done.stderr), (said, ""))

    def test_the_compiled_command_runs_that_of_python(self):
        """From where it lies: in a wheel, or in a checkout, by whose link it is called."""
        with tempfile.TemporaryDirectory() as folder:
            wheel, checkout = os.path.join(folder, "wheel"), os.path.join(folder, "checkout")
            with zipfile.ZipFile(self.path) as file:
                file.extractall(wheel)
            in_wheel = os.path.join(wheel, "mscclc", "bin", "mscclc")
            os.chmod(in_wheel, 0o755)
            built = os.path.join(folder, "built")
            for target, path in (
                (self.tool, "built/tools/mscclc"),
                (self.library, "built/runtime/doors/c/libmscclc.so.0"),
                (os.path.join(HERE, "..", "mscclc"), "checkout/python/mscclc"),
                (built, "checkout/bazel-bin"),
            ):
                path = os.path.join(folder, path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                os.symlink(os.path.realpath(target), path)
            shutil.copy(os.path.join(HERE, "..", "testdata", "gather.py"), folder)
            in_checkout = os.path.join(checkout, "bazel-bin", "tools")
            path = os.path.dirname(shutil.which("python3"))
            for name, search in (
                (in_wheel, path),
                (os.path.join(in_checkout, "mscclc"), path),
                ("mscclc", f"{in_checkout}:{path}"),
            ):
                done = self.run_command(folder, search, name, "mscclpp", "gather.py", "-o", "made.json")
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), name)
                with open(os.path.join(folder, "made.json")) as file:
                    self.assertEqual(json.load(file)["name"], "gather")
                os.remove(os.path.join(folder, "made.json"))
            wrong = self.run_command(folder, path, in_wheel, "mscclpp", "nothing.py")
            self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
            self.assertIn("cannot read 'nothing.py'", wrong.stderr)

    def test_without_the_package_or_python(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mscclc")
            shutil.copy(self.tool, path)
            alone = self.run_command(folder, os.environ["PATH"], path, "mscclpp", "gather.py")
            if "import mscclc" not in alone.stderr and alone.returncode != 2:
                self.skipTest("the interpreter has the package")
            self.assertIn("Python finds no package mscclc: install the wheel, or put", alone.stderr)
            none = self.run_command(folder, "/nothing", path, "mscclpp", "gather.py")
            self.assertEqual(
                (none.returncode, none.stderr),
                (2, "mscclc mscclpp: cannot run 'python3': No such file or directory\n"),
            )

    def run_command(self, folder, path, *arguments):
        """In that folder, with nothing else in the environment."""
        return subprocess.run(
            arguments, capture_output=True, text=True, cwd=folder, env={"PATH": path}
        )

    def test_programs_of_the_library_are_there_in_any_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mscclc")
            shutil.copy(self.tool, path)
            for call, plans in (
                (["--collective=allreduce", "--bytes=1K"], "plans"),
                (["--collective=allreduce_norm", "--columns=64", "--rows=6"], "plans/rows"),
            ):
                chosen = self.run_command(folder, "/nothing", path, "select", "--ranks=2", *call)
                self.assertRegex(chosen.stdout, r"^mscclc compile allreduce_\w+ -D R=2 ")
                arguments = chosen.stdout.split()[1:]
                made = self.run_command(folder, "/nothing", path, *arguments, "-o", "made.json")
                self.assertEqual((made.returncode, made.stderr), (0, ""))
                again = os.path.join(HERE, "..", "..", plans, arguments[1] + ".mscl")
                self.run_command(folder, "/nothing", path, "compile", again, *arguments[2:], "-o", "file.json")
                with open(os.path.join(folder, "made.json")) as one, open(os.path.join(folder, "file.json")) as two:
                    self.assertEqual(one.read(), two.read())
                for name in ("file.json", "made.json"):
                    os.remove(os.path.join(folder, name))
            all = self.run_command(
                folder, "/nothing", path, "library", "--ranks=2", "--collective=sendrecv", "-o", "made"
            )
            self.assertEqual((all.returncode, all.stderr), (0, ""))
            table = os.path.join(folder, "made", "library.json")
            self.assertTrue(os.path.exists(table))
            programs = self.run_command(
                folder, "/nothing", path, "library", "--ranks=2", "--collective=sendrecv", "--programs",
                "-o", "programs",
            )  # fmt: skip
            self.assertEqual((programs.returncode, programs.stderr), (0, ""))
            self.assertIn("sendrecv.mscl", os.listdir(os.path.join(folder, "programs")))
            wrong = self.run_command(folder, "/nothing", path, "compile", "allreduce_puhs")
            self.assertEqual(
                (wrong.returncode, wrong.stderr),
                (2, "mscclc: cannot read 'allreduce_puhs': No such file or directory; did you mean the"
                    " library's 'allreduce_push'?\n"),
            )  # fmt: skip

    def test_the_command_needs_no_library_of_the_system(self):
        with open(self.tool, "rb") as file:
            self.assertNotIn(b"/ld-linux", file.read(4096))


if __name__ == "__main__":
    unittest.main()
