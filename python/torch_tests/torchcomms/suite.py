"""Runs the files of TorchComms' integration suite, and our own in `own`, by torchrun, and compares what
passed with what is expected: suite.py FOLDER [TEST…]

expected.txt says which tests are skipped or fail, and why. A test that is skipped or fails and is not
listed there, and a line that is true of no test any more, make the run fail. LOGS names a folder for what
the tests print.
"""

import collections
import fnmatch
import glob
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

HERE = os.path.dirname(os.path.abspath(__file__))
OWN = os.path.join(HERE, "own")
sys.path.insert(0, os.path.join(HERE, "..", ".."))
import make_wheel  # noqa: E402

BADNESS = ["pass", "skip", "fail"]
PATIENCE = 900  # seconds for a file; only a hang takes so long
RANKS = int(os.environ.get("RANKS", 2))
BACKEND = os.environ.get("BACKEND", "c++")


def expected():
    """(outcome, pattern, reason) of the lines that are for this backend and so many ranks."""
    lines = []
    with open(os.path.join(HERE, "expected.txt")) as file:
        for line in file:
            found = re.fullmatch(r"(?:(python|c\+\+|\d ranks): )?(skip|fail) (\S+): (.+)", line.strip())
            if found:
                if found[1] in (None, BACKEND, f"{RANKS} ranks"):
                    lines.append(found.groups()[1:])
            elif line.strip() and not line.startswith("#"):
                sys.exit(f"expected.txt: {line}")
    return lines


def run(path, site):
    """Outcomes by test: of all ranks the worst. {} if there were none."""
    name = os.path.basename(path)[: -len(".py")]
    with tempfile.TemporaryDirectory() as folder:
        pytest = (
            f"exec {sys.executable} -m pytest -q --no-header -p no:cacheprovider -p names"
            " --durations=5 --tb=short"
            f" --junitxml={folder}/$RANK.xml {path}"
        )
        environment = {
            "TEST_BACKEND": "mscclc", "TEST_DEVICE": "cpu", "TEST_FULL_SWEEP": "0",
            "OMP_NUM_THREADS": "1", "MSCCLC_FLIGHT_FILE": "none", **os.environ,
        }  # fmt: skip
        environment["PYTHONPATH"] = f"{site}:{OWN}:{environment['PYTHONPATH']}"
        command = [
            sys.executable, "-m", "torch.distributed.run", "--nnodes=1", f"--nproc-per-node={RANKS}",
            "--standalone", "--no-python", "bash", "-c", pytest,
        ]  # fmt: skip
        log = os.path.join(os.environ.get("LOGS", folder), f"{name}.log")
        with open(log, "w") as file:
            try:
                subprocess.run(command, stdout=file, stderr=file, cwd=folder, env=environment,
                               timeout=PATIENCE)  # fmt: skip
            except subprocess.TimeoutExpired:
                return {f"{name}::hang": "fail"}
        outcomes = {}
        for result in glob.glob(f"{folder}/*.xml"):
            for case in xml.parse(result).iter("testcase"):
                test = f"{name}::{case.get('name')}"
                kinds = {child.tag for child in case}
                outcome = (
                    "fail" if kinds & {"failure", "error"} else
                    "skip" if "skipped" in kinds else "pass"
                )  # fmt: skip
                outcomes[test] = max(outcome, outcomes.get(test, "pass"), key=BADNESS.index)
        if len(glob.glob(f"{folder}/*.xml")) < RANKS:
            outcomes[f"{name}::ends"] = "fail"
        return outcomes


def main():
    folder, names = sys.argv[1], sys.argv[2:]
    files = sorted(glob.glob(os.path.join(folder, "*Test.py")))
    files += sorted(glob.glob(os.path.join(OWN, "*Test.py")))
    if names:
        files = [f for f in files if os.path.basename(f)[: -len("Test.py")] in names]
    lines, used, total, unexpected = expected(), set(), collections.Counter(), []
    with tempfile.TemporaryDirectory() as site:
        installed = os.path.join(site, "mscclc-0.dist-info")
        os.mkdir(installed)
        with open(os.path.join(installed, "entry_points.txt"), "w") as file:
            file.write(make_wheel.ENTRY_POINTS)
        for path in files:
            outcomes = run(path, site)
            count = collections.Counter(outcomes.values())
            print(os.path.basename(path), *(f"{count[k]} {k}" for k in sorted(count)), flush=True)
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
