"""Programs of MSCCL++'s language: their plans against MSCCL++'s, and what is wrong with others."""

import contextlib
import glob
import io
import json
import os
import sys
import tempfile
import unittest

import mscclc
from mscclc.mscclpp.command import compile_program, main
from mscclc.mscclpp.run import trace

from mscclpp_plans import MSCCLPP_PLANS

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "testdata")
PLANS = os.path.join(HERE, "..", "..", "tests", "mscclpp_plans")

# Refused by the prover, for reasons that a schedule shows (tests/mscclpp_plans/verdicts_test.cc).
REFUSED = {
    "ag_nvls_zero_copy_r4_i2", "ag_ring_r4_i2", "ar_nvls_zero_copy_r4", "da_rs_multinode_r4",
    "mn_rs_r4", "mn_send_recv_r4", "repo_et_reduce_nvls", "repo_et_reduce_tbg",
    "repo_et_reduce_nvls_pipeline",
}  # fmt: skip
# Plans whose output has no chunks: the executor divides by them, so no program of ours gives them.
NOT_MADE = {"repo_ef_allreduce_pipeline", "ut_get_fuse_r2"}

_SETS = {"signal", "wait", "rlxsignal", "rlxwait", "flush"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def normal(value):
    """A plan with what is a set in a fixed order."""
    if isinstance(value, dict):
        value = {key: normal(member) for key, member in value.items()}
        if value.get("name") in _SETS:
            value["channel_ids"].sort()
        if "access_channel_types" in value:
            value["access_channel_types"].sort()
        return value
    return [normal(member) for member in value] if isinstance(value, list) else value


def traced(name):
    """The program for a plan of MSCCL++'s, what it printed, and that plan."""
    program, arguments = MSCCLPP_PLANS[name]
    golden = json.loads(read(os.path.join(PLANS, name + ".json")))
    path = os.path.join(DATA, "mscclpp", program + ".py")
    programs, printed = trace(path, ["--name", golden["name"], *arguments.split()])
    return programs[0], printed, golden


def run_command(*arguments):
    """Exit code, standard output and standard error of `mscclc mscclpp ARGUMENTS…`."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = main(list(arguments))
    return code, out.getvalue(), errors.getvalue()


def run_source(source):
    """The same of a program with that text; its path comes first."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        return (path, *run_command(path))


class MscclppPlans(unittest.TestCase):
    maxDiff = 2000

    def test_all_plans_are_listed(self):
        names = {os.path.basename(path)[:-5] for path in glob.glob(os.path.join(PLANS, "*.json"))}
        self.assertEqual(names, set(MSCCLPP_PLANS) | NOT_MADE)

    def test_programs_print_the_plans_of_the_peer(self):
        for name in MSCCLPP_PLANS:
            with self.subTest(name):
                program, printed, golden = traced(name)
                self.assertEqual(normal(json.loads(printed)), normal(golden))
                again = json.loads(program.to_json())
                self.assertEqual(normal(again), normal(golden), "the second time")

    def test_our_plans_are_proved_and_run_right(self):
        refused = set()
        for name in MSCCLPP_PLANS:
            with self.subTest(name):
                try:
                    plan = mscclc.Plan(compile_program(traced(name)[0], "plan"))
                except mscclc.CompileError:
                    refused.add(name)
                    continue
                self.assertIn("proof", plan.to_dict()["mscclc"])
                results = plan.run("64K", "1M", iterations=2)
                self.assertEqual([result.wrong for result in results], [0, 0])
        self.assertEqual(refused, REFUSED)

    def test_what_is_proved_of_the_peers_plans(self):
        for name in MSCCLPP_PLANS:
            with self.subTest(name):
                program, _, golden = traced(name)
                if name in REFUSED:
                    with self.assertRaises(mscclc.CompileError) as caught:
                        compile_program(program)
                    self.assertIn(".py:", str(caught.exception))
                    continue
                self.assertEqual(normal(json.loads(compile_program(program))), normal(golden))


class Command(unittest.TestCase):
    maxDiff = 2000

    def test_a_program_of_an_older_language_is_named(self):
        _, code, out, errors = run_source("from msccl.language import *\n")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("the program is for MSCCL, or MSCCL++ before 0.7", errors)

    def setUp(self):
        self.addCleanup(os.chdir, os.getcwd())

    def test_mistakes_are_reported_at_their_line(self):
        os.chdir(os.path.join(DATA, "mscclpp_errors"))
        for program in sorted(glob.glob("*.py")):
            with self.subTest(program):
                code, out, errors = run_command(program)
                self.assertEqual((code, out), (1, ""))
                self.assertEqual(errors, read(program[:-3] + ".txt"))

    def test_an_exception_of_the_program_is_shown_as_python_does(self):
        os.chdir(os.path.join(DATA, "mscclpp_misc"))
        code, out, errors = run_command("python_error.py")
        self.assertEqual((code, out), (1, ""))
        lines = errors.splitlines()
        self.assertEqual(lines[0], '  File "python_error.py", line 9, in <module>')
        self.assertIn('  File "python_error.py", line 6, in build', lines)
        self.assertEqual(lines[-1], "NameError: name 'missing' is not defined")

    def test_two_programs_are_one_too_many(self):
        os.chdir(os.path.join(DATA, "mscclpp_misc"))
        self.assertEqual(
            run_command("two_programs.py"),
            (2, "", "mscclc: 'two_programs.py' must trace one program; it traces: 'one', 'two'\n"),
        )

    def test_a_file_that_is_not_there(self):
        code, out, errors = run_command("nothing.py")
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(errors, "mscclc: cannot read 'nothing.py': No such file or directory\n")
        for other, why in (
            (DATA, "Is a directory"),
            ("/dev/zero", "it has more than 256 MiB, or does not end"),
        ):
            errors = f"mscclc: cannot read '{other}': {why}\n"
            self.assertEqual(run_command(other), (2, "", errors))

    def test_an_output_that_cannot_be_written(self):
        os.chdir(os.path.join(DATA, "mscclpp"))
        for path, why in (("/dev/full", "No space left on device"),
                          ("/nothing/x", "No such file or directory")):  # fmt: skip
            code, out, errors = run_command("allgather_put.py", "--name", "x", "-o", path)
            self.assertEqual((code, out), (2, ""))
            self.assertEqual(errors, f"mscclc: cannot write '{path}': {why}\n")

    def test_a_file_that_the_program_lacks_is_the_programs_error(self):
        path, code, out, errors = run_source("open('nothing.txt')\n")
        self.assertEqual((code, out), (1, ""))
        self.assertIn(f'File "{path}", line 1', errors)

    def test_output_goes_to_a_file_and_arguments_to_the_program(self):
        os.chdir(os.path.join(DATA, "mscclpp"))
        with tempfile.TemporaryDirectory() as folder:
            plan = os.path.join(folder, "plan.json")
            code, out, errors = run_command(
                "allgather_put.py", "--name", "two", "--instances", "2", "-o", plan
            )
            self.assertEqual((code, out, errors), (0, "", ""))
            written = json.loads(read(plan))
        self.assertEqual(written["name"], "two")
        self.assertEqual(len(written["gpus"][0]["threadblocks"]), 2)

    def test_more_than_16_channels_are_fine_in_a_plan_of_ours(self):
        path = os.path.join(DATA, "mscclpp", "allreduce_one_block.py")
        code, out, errors = run_command("--emit=plan", path, "--name", "x", "--ranks", "20")
        self.assertEqual((code, errors), (0, ""))
        block = json.loads(out)["gpus"][0]["threadblocks"][0]
        self.assertEqual(len(block["channels"][0]["channel_ids"]), 19)
        self.assertEqual(run_command(path, "--name", "x", "--ranks", "20")[0], 1)

    def test_what_a_program_prints_besides_its_plan_is_kept(self):
        code, out, errors = run_command(os.path.join(DATA, "mscclpp_misc", "talkative.py"))
        self.assertEqual((code, errors), (0, "tracing\n{ no plan }\ndone\n"))
        self.assertEqual(json.loads(out)["name"], "talkative")

    def test_chunks_may_be_billions(self):
        code, out, errors = run_command(
            "--no-verify", os.path.join(DATA, "mscclpp_misc", "billions_of_chunks.py")
        )
        self.assertEqual((code, errors), (0, ""))
        ops = json.loads(out)["gpus"][0]["threadblocks"][0]["ops"]
        self.assertEqual([op["name"] for op in ops], ["copy", "nop", "copy"])

    def test_python_is_as_it_was_afterwards(self):
        modules, path, arguments = set(sys.modules), list(sys.path), list(sys.argv)
        traced("ag_r2")
        self.assertEqual((path, arguments), (list(sys.path), list(sys.argv)))
        left = {name for name in set(sys.modules) - modules if name.startswith("mscclpp")}
        self.assertEqual(left, set())
        self.assertNotIn("options", sys.modules)  # of the program's folder


if __name__ == "__main__":
    unittest.main()
