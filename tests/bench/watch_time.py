"""What a change of a library program costs under 'mscclc watch': compiled, proved and run, ms as it says them.

    python3 tests/bench/watch_time.py bazel-bin/tools/mscclc [--changes 20] [PROGRAM…]

PROGRAM: files (all of plans/, at their default parameters). Each is copied and changed so often; the first round,
which also starts the process, does not count. Prints the programs, the slowest median first. By hand, on a machine
that does nothing else: docs/records/performance_host.md has the figures.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import tempfile


def rounds(mscclc, program, changes, folder):
    """ms of each change; the last verdict."""
    text = program.read_text()
    watched, written = pathlib.Path(folder, program.name), pathlib.Path(folder, "written")
    watched.write_text(text)
    process = subprocess.Popen([mscclc, "watch", watched], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        line, times = process.stdout.readline(), []
        for change in range(changes):
            written.write_text(f"{text}\n# {change}\n")
            os.replace(written, watched)  # as editors do: never half a file
            line = process.stdout.readline()
            times.append(float(re.search(r"([\d.]+) ms$", line)[1]))
        return times, line
    finally:
        process.terminate()
        process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscclc")
    parser.add_argument("programs", nargs="*", type=pathlib.Path)
    parser.add_argument("--changes", type=int, default=20)
    given = parser.parse_args()
    measured = []
    with tempfile.TemporaryDirectory() as folder:
        for program in given.programs or sorted(pathlib.Path("plans").glob("*.mscl")):
            times, line = rounds(given.mscclc, program, given.changes, folder)
            measured.append((statistics.median(times), max(times), program.stem, line.split(": ")[1].split(";")[0]))
    for median, most, name, verdict in sorted(measured, reverse=True):
        print(f"{name:28} median {median:6.1f}  most {most:6.1f}  {verdict}")


if __name__ == "__main__":
    main()
