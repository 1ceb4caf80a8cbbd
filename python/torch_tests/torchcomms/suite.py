"""Runs the files of TorchComms' integration suite, and our own in `own`, by torchrun, and compares what
passed with what is expected:

    suite.py FOLDER [TEST…]       a TEST: Split, or, in one process, Split+Options

expected.txt says which tests are skipped or fail, and why. A test that is skipped or fails and is not
listed there, and a line that is true of no test any more, make the run fail. LOGS names a folder for what
the tests print. SECONDS_EACH (900) is what a process may take, and a third of it a call. With
TEST_DEVICE=cuda tensors are of GPUs; processes that share one are for the tests on several machines, as
these take the GPU of their number.
"""

import collections
import fnmatch
import glob
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
OWN = os.path.join(HERE, "own")
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "..")]
import make_wheel  # noqa: E402
from ports import free_port  # noqa: E402

BADNESS = ["pass", "skip", "fail"]
PATIENCE = int(os.environ.get("SECONDS_EACH", 900))  # only a hang takes so long
RANKS = int(os.environ.get("RANKS", 2))
BACKEND = os.environ.get("BACKEND", "c++")
DEVICE = os.environ.get("TEST_DEVICE", "cpu")


def expected():
    """(outcome, pattern, reason) of the lines that are for this backend and so many ranks."""
    lines = []
    with open(os.path.join(HERE, "expected.txt")) as file:
        for line in file:
            found = re.fullmatch(r"(?:([^:]+): )?(skip|fail) (\S+): (.+)", line.strip())
            if found:
                if set((found[1] or BACKEND).split(", ")) <= {BACKEND, f"{RANKS} ranks", DEVICE}:
                    lines.append(found.groups()[1:])
            elif line.strip() and not line.startswith("#"):
                sys.exit(f"expected.txt: {line}")
    return lines


def launches(command):
    """Calls of torchrun, each for as many ranks as a machine has for the tests."""
    run = [sys.executable, "-m", "torch.distributed.run", "--no-python"]
    here = min(RANKS, torch.cuda.device_count()) if DEVICE == "cuda" else RANKS
    run.append(f"--nproc-per-node={here}")
    if here == RANKS:
        return [[*run, "--standalone", "--nnodes=1", *command]]
    run += ["--master-addr=127.0.0.1", f"--master-port={free_port()}"]
    machines = RANKS // here
    return [[*run, f"--nnodes={machines}", f"--node-rank={i}", *command] for i in range(machines)]


def run(paths, site):
    """Outcomes by test of files that run in one process a rank: of all ranks the worst."""
    names = [os.path.basename(path)[: -len(".py")] for path in paths]
    with tempfile.TemporaryDirectory() as folder:
        pytest = (
            'if [[ $TEST_DEVICE == cuda ]]; then TEST_DEVICE=cuda:$LOCAL_RANK; fi; '
            f"exec {sys.executable} -m pytest -v --no-header -p no:cacheprovider -p names"
            f" --durations=5 --tb=short -o faulthandler_timeout={PATIENCE // 2}"
            f" --junitxml={folder}/$RANK.xml {' '.join(paths)}"
        )
        environment = {
            "TEST_BACKEND": "mscclc", "TEST_DEVICE": DEVICE, "TEST_FULL_SWEEP": "0",
            "OMP_NUM_THREADS": "1", "MSCCLC_FLIGHT_FILE": "none",
            "TORCHCOMM_TIMEOUT_SECONDS": str(PATIENCE // 3), **os.environ,
        }  # fmt: skip
        environment["PYTHONPATH"] = f"{site}:{OWN}:{environment['PYTHONPATH']}"
        log = os.path.join(os.environ.get("LOGS", folder), f"{names[0]}.log")
        with open(log, "w") as file:
            running = [
                subprocess.Popen(command, stdout=file, stderr=file, cwd=folder, env=environment)
                for command in launches(["bash", "-c", pytest])
            ]
            deadline = time.monotonic() + PATIENCE
            try:
                for one in running:
                    one.wait(max(0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                return {f"{name}::hang": "fail" for name in names}
            finally:
                for one in running:
                    one.terminate()  # of what has ended already, nothing
                    one.wait()
        outcomes = {}
        for result in glob.glob(f"{folder}/*.xml"):
            for case in xml.parse(result).iter("testcase"):
                path = f"{case.get('classname')}.{case.get('name')}".split(".")
                test = f"{next(n for n in names if n in path)}::{case.get('name')}"
                kinds = {child.tag for child in case}
                outcome = (
                    "fail" if kinds & {"failure", "error"} else
                    "skip" if "skipped" in kinds else "pass"
                )  # fmt: skip
                outcomes[test] = max(outcome, outcomes.get(test, "pass"), key=BADNESS.index)
        if len(glob.glob(f"{folder}/*.xml")) < RANKS:
            outcomes.update({f"{name}::ends": "fail" for name in names})
        return outcomes


def main():
    folder, names = sys.argv[1], sys.argv[2:]
    files = sorted(glob.glob(os.path.join(folder, "*Test.py")))
    files += sorted(glob.glob(os.path.join(OWN, "*Test.py")))
    by_name = {os.path.basename(path)[: -len("Test.py")]: path for path in files}
    groups = [[by_name[n] for n in name.split("+")] for name in names or by_name]
    lines, used, total, unexpected = expected(), set(), collections.Counter(), []
    with tempfile.TemporaryDirectory() as site:
        installed = os.path.join(site, "mscclc-0.dist-info")
        os.mkdir(installed)
        with open(os.path.join(installed, "entry_points.txt"), "w") as file:
            file.write(make_wheel.ENTRY_POINTS)
        for paths in groups:
            begin = time.monotonic()
            outcomes = run(paths, site)
            count = collections.Counter(outcomes.values())
            print(*map(os.path.basename, paths), *(f"{count[k]} {k}" for k in sorted(count)),
                  f"in {time.monotonic() - begin:.0f} s", flush=True)  # fmt: skip
            total += count
            for test, outcome in outcomes.items():
                matching = [i for i, l in enumerate(lines) if fnmatch.fnmatchcase(test, l[1])]
                used.update(i for i in matching if lines[i][0] == outcome)
                if outcome != (lines[matching[0]][0] if matching else "pass"):
                    unexpected.append(f"unexpected {outcome}: {test}")
    if not names:
        unexpected += [f"true of no test: {' '.join(l)}" for i, l in enumerate(lines) if i not in used]
    print(*unexpected, sep="\n")
    print(f"backend in {BACKEND}, {RANKS} ranks: {total['pass']} passed, {total['skip']} skipped,"
          f" {total['fail']} failed; {len(unexpected)} not as expected")  # fmt: skip
    sys.exit(bool(unexpected))


if __name__ == "__main__":
    main()
