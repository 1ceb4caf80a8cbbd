"""mscclc.compile, plans, and what goes wrong."""

import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import mscclc
from mscclc.mscclpp.command import make_parser

HERE = os.path.dirname(os.path.abspath(__file__))
PLANS = os.path.join(HERE, "..", "..", "plans")
ONE_SHOT = os.path.join(PLANS, "allreduce_1shot.mscl")

EXCHANGE = """\
program exchange
collective allgather(ranks: 2)
rank r in 0..2 {
  channel ch = memory(1 - r)
  tb 0 {
    signal ch relaxed
    wait ch relaxed
    put ch.output[r] <- input
    copy output[r] <- input
    signal ch
    wait ch
  }
}
"""


def command(*arguments, **options):
    """A run of `python3 -m mscclc ARGUMENTS…`."""
    return subprocess.run(
        [sys.executable, "-m", "mscclc", *arguments], capture_output=True, text=True, **options
    )


class Compile(unittest.TestCase):
    def test_a_path_gives_what_the_command_writes(self):
        plan = mscclc.compile(ONE_SHOT, R=4, B=2)
        written = command("compile", ONE_SHOT, "-DR=4", "-DB=2")
        self.assertEqual((written.stdout, written.returncode), (plan.to_json() + "\n", 0))
        self.assertEqual(plan, mscclc.compile(pathlib.Path(ONE_SHOT), {"R": 4}, B=2))

    def test_a_text(self):
        plan = mscclc.compile(EXCHANGE)
        self.assertEqual(repr(plan), "<Plan exchange: allgather over 2 ranks>")
        self.assertEqual(plan.warnings, "")

    def test_kinds_of_parameters(self):
        plan = mscclc.compile(ONE_SHOT, R=2, B=1, F="LL8")
        self.assertEqual(plan.to_dict()["mscclc"]["ranks"][0]["buffers"][0]["packets"], "LL8")
        two = type("Int64", (), {"__index__": lambda self: 2})()  # as NumPy's
        self.assertEqual(mscclc.compile(ONE_SHOT, R=two, B=1, F="LL8"), plan)
        counts = [1, 0, 2, 1]
        plan = mscclc.compile(os.path.join(PLANS, "alltoallv.mscl"), R=2, counts=counts)
        self.assertEqual(plan.to_dict()["mscclc"]["contract"]["counts"], counts)

    def test_options(self):
        peer = mscclc.compile(ONE_SHOT, R=2, B=1, target="mscclpp")
        self.assertEqual(peer.to_dict()["mscclc"]["target"], "mscclpp")
        self.assertNotIn("proof", mscclc.compile(EXCHANGE, verify=False).to_dict()["mscclc"])
        with self.assertRaisesRegex(mscclc.UsageError, "'nothing' is neither a built-in target"):
            mscclc.compile(EXCHANGE, target="nothing")

    def test_warnings(self):
        text = EXCHANGE.replace("  channel ch", "  buffer unused[1]\n  channel ch")
        plan = mscclc.compile(text)
        self.assertIn("warning: 'unused' is never used on any rank", plan.warnings)

    def test_a_mistake_is_an_exception_that_prints_like_the_compiler(self):
        with self.assertRaises(mscclc.CompileError) as caught:
            mscclc.compile(EXCHANGE.replace("wait ch\n", "wait hc\n"))
        self.assertEqual(
            str(caught.exception),
            "-:11:10: error: unknown name 'hc'; did you mean 'ch'?\n    wait hc\n         ^~",
        )
        self.assertEqual(
            caught.exception.diagnostics,
            [mscclc.Diagnostic("error", "unknown name 'hc'; did you mean 'ch'?", "-", 11, 10)],
        )

    def test_a_program_that_is_not_proved_right(self):
        with self.assertRaises(mscclc.CompileError) as caught:
            mscclc.compile(EXCHANGE.replace("    signal ch\n    wait ch\n", ""))
        self.assertIn("race", str(caught.exception))

    def test_wrong_calls(self):
        with self.assertRaisesRegex(mscclc.UsageError, "cannot read 'nothing.mscl'"):
            mscclc.compile("nothing.mscl")
        with self.assertRaisesRegex(mscclc.UsageError, "no parameter 'W'"):
            mscclc.compile(ONE_SHOT, W=3)
        for name in ("-o", "--help"):  # a path, never an option
            with self.assertRaisesRegex(mscclc.UsageError, "cannot read"):
                mscclc.compile(name)

    def test_texts_that_no_process_takes(self):
        for program in ("a\0b", "\ud800", "a program\n\ud800"):
            with self.subTest(program=program), self.assertRaises(mscclc.UsageError):
                mscclc.compile(program)
        for counts in (1.5, [1.5], ["1"]):  # 1.5 is not 1
            with self.assertRaisesRegex(mscclc.UsageError, "parameter 'R' is .*; allowed are"):
                mscclc.compile("allreduce_1shot", R=counts)


class Plans(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = mscclc.compile(EXCHANGE)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.json")
            self.plan.save(path)
            self.assertEqual(mscclc.Plan.load(path), self.plan)
            with self.assertRaises(FileNotFoundError):
                mscclc.Plan.load(os.path.join(folder, "nothing.json"))
            with open(path, "wb") as file:
                file.write(b"{\xff}")
            with self.assertRaisesRegex(mscclc.UsageError, "plan.json': it is no text in UTF-8"):
                mscclc.Plan.load(path)
        with self.assertRaisesRegex(mscclc.UsageError, "'/dev/zero': .* or does not end"):
            mscclc.Plan.load("/dev/zero")

    def test_a_plan_that_cannot_be_saved_leaves_the_old_one(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.json")
            with open(path, "w") as file:
                file.write("old")
            os.chmod(path, 0o640)
            link = os.path.join(folder, "link.json")
            os.symlink(path, link)
            code = "import mscclc, resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)"
            code += "; resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))"
            code += "; mscclc.Plan('x' * 100000).save(sys.argv[1])"
            done = subprocess.run([sys.executable, "-c", code, link], stderr=subprocess.PIPE, text=True)
            self.assertIn("File too large", done.stderr)
            with open(path) as file:
                self.assertEqual(file.read(), "old")
            self.assertEqual(sorted(os.listdir(folder)), ["link.json", "plan.json"])
            self.plan.save(link)
            self.assertTrue(os.path.islink(link))
            self.assertEqual(mscclc.Plan.load(path), self.plan)
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o640)
        code = "import mscclc; mscclc.Plan('x').save('/dev/stdout')"
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.stdout, "x\n")

    def test_verify(self):
        self.assertEqual(
            self.plan.verify(),
            "out of place and in place, input kept, synchronizes all ranks",
        )
        wrong = mscclc.Plan(self.plan.to_json().replace('"name":"put"', '"name":"putt"'))
        with self.assertRaises(mscclc.CompileError):
            wrong.verify()

    def test_run(self):
        results = self.plan.run(0, 1000, "64K", dtype="bf16")
        self.assertEqual([r.size for r in results], [0, 1000, 65536])
        self.assertEqual([(r.dtype, r.wrong) for r in results], [("bf16", 0)] * 3)
        self.assertTrue(self.plan.run(1024, in_place=True)[0].in_place)
        self.assertEqual(self.plan.run(1024, seed=7)[0].wrong, 0)

    def test_run_on_a_device(self):
        results = self.plan.run("1K", "4K", device="processes")
        self.assertEqual([(r.size, r.wrong) for r in results], [(1024, 0), (4096, 0)])
        for seed in (0, 7):
            with self.assertRaisesRegex(mscclc.UsageError, "only the simulator follows a schedule"):
                self.plan.run("1K", seed=seed, device="processes")

    def test_a_run_that_goes_wrong(self):
        wrong = EXCHANGE.replace("output[r] <- input\n    copy", "output[r] <- input\n    sync #")
        plan = mscclc.compile(wrong, verify=False)
        with self.assertRaises(mscclc.RunError) as caught:
            plan.run(1024)
        self.assertIn("1024", str(caught.exception))

    def test_text_forms(self):
        self.assertTrue(self.plan.to_ir().startswith("ir 1 from"))
        self.assertIn("exchange: allgather over 2 ranks", self.plan.summary())

    def test_effects(self):
        effects = [effect for effect in self.plan.effects() if effect.rank == 1]
        self.assertEqual(
            [effect.op for effect in effects],
            ["signal", "wait", "sync", "put", "copy", "sync", "signal", "wait"],
        )
        put = effects[3]
        self.assertEqual(put.reads, (mscclc.Access((1,), "input", 0, 1),))
        self.assertEqual(put.writes, (mscclc.Access((0,), "output", 1, 1),))
        self.assertEqual(effects[0].uses, ("ch",))

    def test_effects_of_all_programs_of_the_library(self):
        for name in sorted(os.listdir(PLANS)):
            if not name.endswith(".mscl"):
                continue
            with self.subTest(name):
                plan = mscclc.compile(os.path.join(PLANS, name), verify=False)
                moved = [effect for effect in plan.effects() if effect.writes]
                ops = [op for op in plan.to_ir().splitlines() if " <- " in op]
                self.assertEqual(len(moved), len(ops))

    def test_pickling(self):
        self.assertEqual(pickle.loads(pickle.dumps(self.plan)), self.plan)


class Imports(unittest.TestCase):
    def test_modules_are_imported_when_they_are_asked_for(self):
        script = (
            "import sys, mscclc; loaded = [m for m in sys.modules if m.startswith('mscclc.')];"
            "assert loaded == [], loaded; assert set(mscclc.__all__) <= set(dir(mscclc));"
            "mscclc.CompileError; assert 'mscclc.plan' not in sys.modules;"
            "from mscclc import *; print(compile.__module__, unique_id.__module__)"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        self.assertEqual((done.stderr, done.stdout), ("", "mscclc.plan mscclc.communicator\n"))

    def test_what_is_not_there_is_an_attribute_error(self):
        with self.assertRaisesRegex(AttributeError, "module 'mscclc' has no attribute 'compil'"):
            mscclc.compil


class Library(unittest.TestCase):
    def test_programs_by_name(self):
        self.assertEqual(mscclc.compile("allreduce_1shot", R=2, B=1), mscclc.compile(ONE_SHOT, R=2, B=1))
        with self.assertRaisesRegex(mscclc.UsageError, "did you mean the library's 'allreduce_1shot'"):
            mscclc.compile("allreduce_1shoot")


class CommandLine(unittest.TestCase):
    def test_the_compiler_takes_the_process_over(self):
        done = command("--version")
        self.assertEqual((done.stdout, done.returncode), (f"mscclc {mscclc.__version__}\n", 0))
        self.assertEqual(command("complie").returncode, 2)

    def test_without_the_compiler(self):
        missing = command("--version", env={**os.environ, "PATH": "/nothing"})
        self.assertEqual(missing.returncode, 2)
        self.assertIn("PATH has no 'mscclc'", missing.stderr)

    def test_a_compiler_that_is_no_program(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mscclc")
            with open(path, "wb"):
                pass
            os.chmod(path, 0o755)
            why = f"cannot run '{path}': Exec format error"
            hurt = command("--version", env={**os.environ, "PATH": folder})
            self.assertEqual((hurt.returncode, hurt.stderr), (2, f"mscclc: {why}\n"))
            with mock.patch.dict(os.environ, PATH=folder):
                with self.assertRaisesRegex(mscclc.UsageError, why):
                    mscclc.compile(EXCHANGE)

    def test_the_command_of_python_has_the_options_that_the_compiler_describes(self):
        done = command("mscclpp", "--emit=ir", "--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, command("help", "mscclpp").stdout)
        options = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", done.stdout, re.MULTILINE)
        own = [action for action in make_parser()._actions if action.option_strings]
        self.assertEqual(options, [action.option_strings[-1] for action in own])
        (emit,) = [action for action in own if action.dest == "emit"]
        script = command("completion", "bash").stdout
        self.assertIn(f"'mscclpp --emit') words='{' '.join(emit.choices)}' ;;", script)

    def test_completion_has_the_command_of_python(self):
        script = command("completion", "bash").stdout
        for words, wanted in (
            ("mscc", "mscclpp"),
            ("mscclpp --em", "--emit"),
            ("mscclpp --emit p", "plan"),
            ("compile --emit p", "plan"),
        ):
            line = f"{script}COMP_WORDS=(mscclc {words}); COMP_CWORD={len(words.split())}; _mscclc; "
            found = subprocess.run(
                ["bash", "-c", line + "echo ${COMPREPLY[@]}"], capture_output=True, text=True
            )
            self.assertEqual((found.stdout, found.stderr), (wanted + "\n", ""))
        zsh = command("completion", "zsh").stdout
        self.assertIn("      'mscclpp:write the plan of a program in MSCCL++'\\''s", zsh)
        self.assertIn("    mscclpp)\n      _arguments \\\n        '-h[show this help", zsh)
        wrong = command("completion", "fish")
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("fish", wrong.stderr)


class CommandsOfTorch(unittest.TestCase):
    def test_commands_that_need_torch_say_so(self):
        for name in ("adapter", "comms"):
            done = self.of_torch(name, "")
            text = f"mscclc.torch.{name}: torch is not installed for {sys.executable}\n"
            self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", text))

    def test_the_adapter_is_not_built_into_a_folder_that_is_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "torch"))
            with open(os.path.join(folder, "torch", "__init__.py"), "w") as file:
                file.write("__version__ = '2.11.0'\n")
            with open(os.path.join(folder, "torch", "distributed.py"), "w") as file:
                file.write("def is_available(): return False\n")
            done = self.of_torch("adapter", folder, "/nothing")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(
            done.stderr,
            "mscclc.torch.adapter: cannot write /nothing/libmscclc_torch-2.11.so: there is no such "
            "folder, or it is not writable\n",
        )

    def of_torch(self, name, folder, *arguments):
        """A run of `python3 -m mscclc.torch.NAME ARGUMENTS…`, with modules only of the folder."""
        path = os.pathsep.join(filter(None, [folder, os.path.dirname(os.path.dirname(mscclc.__file__))]))
        return subprocess.run(
            [sys.executable, "-S", "-m", "mscclc.torch." + name, *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )


class PlugInOfVllm(unittest.TestCase):
    def test_it_imports_nothing_of_vllm_until_it_is_called(self):
        program = "import sys, mscclc.vllm; print(sorted({'vllm', 'torch'} & set(sys.modules)))"
        path = os.path.dirname(os.path.dirname(mscclc.__file__))
        done = subprocess.run(
            [sys.executable, "-S", "-c", program], capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "[]\n", ""))


if __name__ == "__main__":
    unittest.main()
