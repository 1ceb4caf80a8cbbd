"""By hand: CPU time from a program of MSCCL++'s language to its compact plan, without the proof.

python3 python/tests/compile_time.py [--peer FOLDER] [RANKS…]

Each line has, in ms: all of it; the parts of that which no language in Python can save (compiling
and importing the program's files and reading its command line: 'start'; running the program's own
code over classes whose methods return at once: 'calls'); ours beyond that ('trace': what is kept of
the calls, 'plan': passes and the JSON text). FOLDER is the python/ folder of MSCCL++'s sources: its language
then runs the same programs, in turns with ours, and the last columns compare.
"""

import argparse
import contextlib
import enum
import importlib
import io
import os
import sys
import time
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from mscclc.mscclpp import language as our_names  # noqa: E402
from mscclc.mscclpp import run  # noqa: E402
from mscclc.mscclpp.language import program as language  # noqa: E402
from mscclc.mscclpp.language.internal.write_plan import compact_plan  # noqa: E402

PROGRAMS = (
    "allreduce_reads", "allreduce_packets", "allreduce_one_block", "allgather_ring_order",
    "alltoall_scratch",
)  # fmt: skip


class Clock:
    """CPU time, and what of it went into parts."""

    def __init__(self):
        self.parts = {}

    def around(self, part, function, *arguments, **options):
        """Calls a function; its time is the part's."""
        begin = time.process_time()
        try:
            return function(*arguments, **options)
        finally:
            self.parts[part] = self.parts.get(part, 0) + time.process_time() - begin


class Nothing:
    """Any class of the language: what it is asked for is itself, at once."""

    __slots__ = ()

    def __init__(self, a=None, b=None, c=None, **more):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def __getitem__(self, key):
        return self

    def do(self, a=None, b=None, c=None, tb=None, tb_group=None, dst_chunk=None, packet=False,
           data_sync=None, relaxed=False, local_dst_chunk=None):  # fmt: skip
        """Any op."""
        return self

    def to_json(self):
        """No plan."""
        return ""


for _name in (
    "put get put_packets read_put_packets signal wait reduce copy unpack_packets copy_packets barrier "
    "get_input_buffer get_output_buffer flush put_with_signal acquire release"
).split():
    setattr(Nothing, _name, Nothing.do)


def nothing():
    """The modules of a language that does nothing; enumerations are ours."""
    module = types.ModuleType("mscclpp.language")
    for name, value in vars(our_names).items():
        if name.startswith("_") or isinstance(value, types.ModuleType):
            continue
        module.__dict__[name] = value if isinstance(value, enum.EnumMeta) else Nothing
    return {"mscclpp": module} | {"mscclpp." + name: module for name in run._MODULES}


def peers(folder):
    """The modules of MSCCL++'s own language, which write compact plans."""
    package = types.ModuleType("mscclpp")
    package.__path__ = [os.path.join(folder, "mscclpp")]  # without its library
    with as_mscclpp({"mscclpp": package}):
        everything = importlib.import_module("mscclpp.language")
        for name in run._MODULES[1:]:
            for word, value in vars(importlib.import_module("mscclpp." + name)).items():
                if not word.startswith("_"):
                    everything.__dict__.setdefault(word, value)
        found = everything.CollectiveProgram
        written = found.to_json
        found.to_json = lambda self: written(self, indent=None, separators=(",", ":"))
        return {name: module for name, module in sys.modules.items() if _is_mscclpp(name)}


def _is_mscclpp(name):
    return name == "mscclpp" or name.startswith("mscclpp.")


@contextlib.contextmanager
def as_mscclpp(modules):
    """Inside, these modules are what programs import."""
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in [name for name in sys.modules if _is_mscclpp(name)]:
            del sys.modules[name]


def run_with(modules, path, arguments):
    """Runs a program over the modules of a language: CPU seconds, and what it has printed."""
    main = types.ModuleType("__main__")
    main.__file__ = path
    printed = io.StringIO()
    begin = time.process_time()
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    with run._as_main(main, path, arguments), as_mscclpp(modules):
        with contextlib.redirect_stdout(printed):
            exec(code, main.__dict__)
    return time.process_time() - begin, printed.getvalue()


def run_ours(path, arguments):
    """The same by `trace`: seconds, the seconds of parts, and the plan."""
    clock = Clock()

    def compact(program, *_, **__):
        return clock.around("plan", compact_plan, program, limits=False)

    language.CollectiveProgram.to_json = compact
    begin = time.process_time()
    _, printed = run.trace(path, arguments, limits=False)
    return time.process_time() - begin, clock.parts, printed


def start_of(path, arguments):
    """Seconds for what comes before the program's first call."""
    begin = time.process_time()
    with open(path, "rb") as file:
        compile(file.read(), path, "exec", dont_inherit=True)
    with run._as_main(types.ModuleType("__main__"), path, arguments):
        importlib.import_module("options").parse()
    return time.process_time() - begin


def measure(name, ranks, empty, peer):
    """The best of some runs, as a line."""
    path = os.path.join(HERE, "..", "testdata", "mscclpp", name + ".py")
    arguments = ["--name", name, "--ranks", str(ranks)]
    ours, others, floors, starts = [], [], [], []
    turns = [
        lambda: ours.append(run_ours(path, arguments)),
        lambda: floors.append(run_with(empty, path, arguments)[0]),
        lambda: starts.append(start_of(path, arguments)),
        lambda: others.append(run_with(peer, path, arguments)[0] if peer else 0),
    ]
    for i in range(9 * len(turns) if ranks <= 16 else 12):
        turns[(i + i // len(turns)) % len(turns)]()  # none always after the same one
    total, parts, printed = min(ours, key=lambda one: one[0])
    start, floor = min(starts), min(floors)
    parts["trace"] = total - floor - sum(parts.values())
    cells = [total, start, floor - start, parts["trace"], parts["plan"]]
    line = f"| {name} | {ranks} | {len(printed)} |" + "".join(f" {1e3 * t:.2f} |" for t in cells)
    if peer:
        theirs = min(others)
        line += f" {1e3 * theirs:.2f} | {theirs / total:.1f} | {theirs / floor:.1f} |"
    return line


def main():
    """Prints a line for each program and number of ranks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", metavar="FOLDER")
    parser.add_argument("ranks", metavar="RANKS", type=int, nargs="*", default=[8, 16, 32])
    options = parser.parse_args()
    heads = ["program", "ranks", "bytes", "ours", "start", "calls", "trace", "plan"]
    if options.peer:
        heads += ["MSCCL++", "MSCCL++ / ours", "MSCCL++ / (start + calls)"]
    print(f"| {' | '.join(heads)} |\n|---|{'--:|' * (len(heads) - 1)}")
    empty, peer = nothing(), peers(options.peer) if options.peer else None
    for name in PROGRAMS:
        for ranks in options.ranks:
            print(measure(name, ranks, empty, peer), flush=True)


if __name__ == "__main__":
    main()
