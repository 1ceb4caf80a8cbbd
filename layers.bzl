"""The layers: which folder may include which. This is the one table. The visibility of all targets
comes from it, and a test holds every #include line against it (//tests/structure:walls_test), as
headers also come with what a dependency depends on."""

load("//:joined.bzl", "joined_tests")

# For folders that hold nothing but tests, and what these share: everything.
_ALL = ["*"]

# A folder, and the folders that it may include besides itself: only such as stand above it here, so
# there is no circle. Every package is a row. "ir" in a row stands for all folders of ir/.
_ROWS = {
    "ir/base": [],
    "ir/diagnostics": ["ir/base"],
    "ir/ops": ["ir/base"],
    "ir/contract": ["ir/ops"],
    "ir/program": ["ir/base", "ir/contract", "ir/ops"],
    "ir/print": ["ir/ops", "ir/program"],
    "ir/report": ["ir/base", "ir/diagnostics", "ir/ops", "ir/print", "ir/program"],
    "ir/verify": [
        "ir/base",
        "ir/contract",
        "ir/diagnostics",
        "ir/ops",
        "ir/print",
        "ir/program",
        "ir/report",
    ],
    "ir": [
        "ir/base",
        "ir/contract",
        "ir/diagnostics",
        "ir/ops",
        "ir/print",
        "ir/program",
        "ir/report",
        "ir/verify",
    ],

    # Passes.
    "passes/base": ["ir"],
    "passes/assign": ["ir", "passes/base"],
    "passes/fuse/reorder": ["ir", "passes/base"],
    "passes/fuse": ["ir", "passes/base", "passes/fuse/reorder"],
    "passes/order": ["ir", "passes/base"],
    "passes/sync": ["ir", "passes/base", "passes/order"],
    "passes/expand": ["ir", "passes/base", "passes/order", "passes/sync"],
    "passes/symbolic": ["ir", "passes/base"],
    "passes": [
        "ir",
        "passes/assign",
        "passes/base",
        "passes/expand",
        "passes/fuse",
        "passes/symbolic",
        "passes/sync",
    ],

    # The prover.
    "passes/prove/model": ["ir"],
    "passes/prove/loops": ["ir", "passes/prove/model"],
    "passes/prove/report": ["ir", "passes/prove/loops", "passes/prove/model", "passes/symbolic"],
    "passes/prove/run": [
        "ir",
        "passes/base",
        "passes/prove/loops",
        "passes/prove/model",
        "passes/prove/report",
    ],
    "passes/prove": [
        "ir",
        "passes/prove/loops",
        "passes/prove/model",
        "passes/prove/report",
        "passes/prove/run",
    ],

    # The plan format, and the library of programs.
    "plans": ["ir"],

    # Programs of MSCCL++'s Python language, as Python has traced them, to plans of that language.
    "compiler/mscclpp": [],

    # Schedules of MSCCL to programs.
    "compiler/msccl": ["ir"],

    # Programs to IR.
    "compiler/ast": ["ir"],
    "compiler/parser": ["ir", "compiler/ast"],
    "compiler/format": ["ir", "compiler/ast", "compiler/parser"],
    "compiler/builder": ["ir"],
    "compiler/evaluate": ["ir", "compiler/ast", "compiler/builder"],
    "compiler/resolve": ["ir", "compiler/ast", "compiler/evaluate"],
    "compiler/unroll": [
        "ir",
        "compiler/ast",
        "compiler/builder",
        "compiler/evaluate",
        "compiler/resolve",
    ],
    "compiler": [
        "ir",
        "compiler/ast",
        "compiler/format",
        "compiler/parser",
        "compiler/unroll",
        "passes",
        "passes/prove",
    ],
    "compiler/examples": ["ir", "compiler/builder"],
    "compiler/testing": ["ir", "compiler"],
    "passes/testing": ["ir", "compiler", "passes"],

    # Plans to device programs; the machines that run them.
    "executor/interpreter": ["ir"],
    "executor": ["ir", "executor/interpreter"],
    "executor/testing": ["ir"],
    "executor/cpu": ["ir", "executor/interpreter"],
    "executor/oracle": ["ir", "executor/interpreter"],
    "executor/simulator/machine": ["ir", "executor", "executor/cpu", "executor/interpreter"],
    "executor/simulator": [
        "ir",
        "executor",
        "executor/cpu",
        "executor/interpreter",
        "executor/oracle",
        "executor/simulator/machine",
    ],
    "executor/simulator/schedules": ["ir", "executor/simulator", "plans"],
    "executor/cuda/host": ["ir", "executor/cpu", "executor/interpreter"],
    "executor/cuda/device": ["ir", "executor", "executor/cuda/host", "executor/interpreter"],
    "executor/special": ["ir", "executor", "executor/cuda/device", "executor/interpreter"],
    "executor/cuda": [
        "ir",
        "executor",
        "executor/cuda/device",
        "executor/cuda/host",
        "executor/interpreter",
    ],
    "executor/cuda/testing": [
        "ir",
        "executor",
        "executor/cpu",
        "executor/cuda",
        "executor/cuda/device",
        "executor/cuda/host",
        "executor/interpreter",
        "executor/oracle",
        "executor/simulator",
        "executor/simulator/machine",
    ],

    # What a job runs.
    "runtime/base/environment": ["ir"],
    "runtime/base/process": ["ir"],
    "runtime/base": ["ir", "runtime/base/process"],
    "runtime/observe": ["ir", "runtime/base", "runtime/base/environment", "runtime/base/process"],
    "runtime/memory": ["ir", "runtime/base", "runtime/base/process"],
    "runtime/bootstrap/address": ["ir", "runtime/base", "runtime/base/environment"],
    "runtime/api": ["ir", "plans", "runtime/bootstrap/address"],
    "runtime/bootstrap": ["runtime/api", "runtime/base"],
    "runtime/bootstrap/wire": ["runtime/api", "runtime/base", "runtime/bootstrap/address"],
    "runtime/bootstrap/tcp": [
        "ir",
        "runtime/api",
        "runtime/base",
        "runtime/base/process",
        "runtime/bootstrap",
        "runtime/bootstrap/address",
        "runtime/bootstrap/wire",
        "runtime/observe",
    ],
    "runtime/bootstrap/job": [
        "ir",
        "runtime/api",
        "runtime/base",
        "runtime/base/environment",
        "runtime/base/process",
        "runtime/bootstrap/address",
        "runtime/bootstrap/tcp",
        "runtime/bootstrap/wire",
        "runtime/observe",
    ],
    "runtime/testing": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/base",
        "runtime/bootstrap/address",
        "runtime/bootstrap/tcp",
        "runtime/bootstrap/wire",
        "runtime/memory",
        "runtime/observe",
    ],
    "runtime/device": ["ir", "executor", "executor/interpreter", "runtime/api"],
    "runtime/group": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/base",
        "runtime/device",
        "runtime/memory",
        "runtime/observe",
    ],
    "runtime/proofs": [
        "ir",
        "passes/prove",
        "plans",
        "runtime/api",
        "runtime/base",
        "runtime/base/environment",
        "runtime/base/process",
        "runtime/observe",
    ],
    "runtime/registry": [
        "ir",
        "executor",
        "plans",
        "runtime/api",
        "runtime/base/environment",
        "runtime/observe",
        "runtime/proofs",
    ],
    "runtime/library": [
        "ir",
        "compiler",
        "plans",
        "runtime/api",
        "runtime/base/environment",
        "runtime/observe",
        "runtime/proofs",
        "runtime/registry",
    ],
    "runtime/proxy": [
        "executor",
        "runtime/api",
        "runtime/base",
        "runtime/base/process",
        "runtime/device",
    ],
    "runtime/proxy/testing": ["executor", "runtime/api", "runtime/memory", "runtime/proxy"],
    "runtime/verbs/resources": ["runtime/base", "runtime/base/process"],
    "runtime/verbs/port": ["ir", "runtime/base/environment", "runtime/verbs/resources"],
    "runtime/settings": [
        "ir",
        "runtime/base/environment",
        "runtime/bootstrap/address",
        "runtime/verbs/port",
    ],
    "runtime/communicator/call": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/base",
        "runtime/base/environment",
        "runtime/group",
        "runtime/memory",
    ],
    "runtime/communicator/own_kernels": [
        "ir",
        "executor",
        "executor/special",
        "runtime/api",
        "runtime/observe",
    ],
    "runtime/communicator": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/base",
        "runtime/base/environment",
        "runtime/communicator/call",
        "runtime/communicator/own_kernels",
        "runtime/device",
        "runtime/group",
        "runtime/memory",
        "runtime/observe",
        "runtime/proofs",
        "runtime/proxy",
        "runtime/settings",
    ],
    "runtime/collectives": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/base",
        "runtime/base/environment",
        "runtime/base/process",
        "runtime/observe",
    ],
    "runtime/net": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/base",
        "runtime/bootstrap/address",
        "runtime/bootstrap/wire",
    ],
    "runtime/net/threads": ["ir", "runtime/base", "runtime/base/process"],
    "runtime/net/sockets": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/base",
        "runtime/base/environment",
        "runtime/base/process",
        "runtime/bootstrap/address",
        "runtime/net",
        "runtime/net/threads",
    ],
    "runtime/net/testing": [
        "executor",
        "ir",
        "runtime/api",
        "runtime/base",
        "runtime/bootstrap/address",
        "runtime/net",
        "runtime/testing",
    ],
    "runtime/verbs": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/base",
        "runtime/net",
        "runtime/net/sockets",
        "runtime/net/threads",
        "runtime/verbs/port",
        "runtime/verbs/resources",
    ],
    "runtime/verbs/loop": ["runtime/base", "runtime/verbs", "runtime/verbs/port", "runtime/verbs/resources"],
    "runtime/verbs/fake": ["executor"],
    "runtime/verbs/testing": [
        "executor",
        "ir",
        "runtime/net",
        "runtime/net/sockets",
        "runtime/net/testing",
        "runtime/testing",
        "runtime/verbs",
        "runtime/verbs/fake",
    ],
    "runtime/host": [
        "ir",
        "executor",
        "executor/cpu",
        "executor/interpreter",
        "runtime/api",
        "runtime/base",
        "runtime/base/environment",
        "runtime/base/process",
        "runtime/memory",
        "runtime/net",
        "runtime/net/sockets",
        "runtime/verbs",
    ],
    "runtime/cuda/driver": ["ir", "runtime/api", "runtime/base/process"],
    "runtime/cuda/driver/fake": ["ir", "runtime/cuda/driver"],
    "runtime/cuda/memory": [
        "ir",
        "runtime/api",
        "runtime/base",
        "runtime/base/process",
        "runtime/cuda/driver",
        "runtime/memory",
    ],
    "runtime/cuda/links": ["ir", "runtime/base", "runtime/cuda/driver", "runtime/device"],
    "runtime/cuda/launch": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/base/process",
        "runtime/cuda/memory",
    ],
    "runtime/cuda/gdrcopy": ["executor", "runtime/base", "runtime/base/process"],
    "runtime/cuda/gdrcopy/fake": ["runtime/cuda/gdrcopy"],
    "runtime/cuda/far": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/base",
        "runtime/base/environment",
        "runtime/cuda/gdrcopy",
        "runtime/cuda/memory",
        "runtime/memory",
        "runtime/net",
        "runtime/net/sockets",
        "runtime/net/threads",
        "runtime/observe",
        "runtime/verbs",
        "runtime/verbs/loop",
        "runtime/verbs/port",
    ],
    "runtime/cuda": [
        "ir",
        "executor",
        "executor/cuda",
        "runtime/api",
        "runtime/base",
        "runtime/base/environment",
        "runtime/base/process",
        "runtime/cuda/far",
        "runtime/cuda/launch",
        "runtime/cuda/links",
        "runtime/cuda/memory",
        "runtime/memory",
    ],
    "runtime/cuda/examples": ["ir", "runtime/api"],
    "runtime/cuda/fake": [
        "executor",
        "runtime/cuda",
        "runtime/cuda/driver",
        "runtime/memory",
        "runtime/testing",
    ],
    "runtime/cuda/far/testing": [
        "executor",
        "runtime/cuda/fake",
        "runtime/cuda/gdrcopy/fake",
        "runtime/verbs/fake",
        "runtime/verbs/testing",
    ],
    "runtime/runner": ["ir", "executor", "executor/oracle", "executor/simulator", "runtime/api"],
    "runtime/nccl/abi": ["ir"],
    "runtime/nccl/variables": [
        "ir",
        "runtime/base",
        "runtime/base/environment",
        "runtime/base/process",
    ],
    "runtime/nccl/base": [
        "ir",
        "runtime/api",
        "runtime/base",
        "runtime/base/environment",
        "runtime/base/process",
        "runtime/cuda/driver",
        "runtime/nccl/abi",
        "runtime/nccl/variables",
        "runtime/observe",
    ],
    "runtime/nccl/comm": [
        "ir",
        "runtime/api",
        "runtime/base",
        "runtime/base/environment",
        "runtime/base/process",
        "runtime/nccl/abi",
        "runtime/nccl/base",
        "runtime/nccl/variables",
        "runtime/observe",
    ],
    "runtime/nccl/calls": [
        "ir",
        "runtime/api",
        "runtime/base/process",
        "runtime/nccl/abi",
        "runtime/nccl/base",
        "runtime/nccl/comm",
    ],
    "runtime/nccl/own": [
        "ir",
        "runtime/api",
        "runtime/base/environment",
        "runtime/nccl/abi",
        "runtime/nccl/base",
        "runtime/nccl/calls",
        "runtime/nccl/comm",
        "runtime/observe",
    ],
    "runtime/nccl/fake": ["runtime/nccl/abi"],
    "runtime/nccl": [
        "ir",
        "runtime/nccl/abi",
        "runtime/nccl/base",
        "runtime/nccl/comm",
        "runtime/nccl/own",
    ],
    "runtime": [],  # //runtime, which an application depends on: nothing of its own
    "runtime/capi": [
        "ir",
        "compiler",
        "compiler/mscclpp",
        "passes",
        "plans",
        "runtime/api",
        "runtime/base",
        "runtime/base/environment",
        "runtime/base/process",
        "runtime/observe",
    ],

    # Commands.
    "tools/base": ["ir", "compiler", "plans", "runtime/base", "runtime/base/environment"],
    "tools/report": [
        "ir",
        "executor/simulator",
        "executor/simulator/schedules",
        "passes",
        "passes/prove",
        "plans",
        "runtime/api",
        "runtime/base/environment",
        "runtime/observe",
        "tools/base",
    ],
    "tools/run": [
        "ir",
        "executor/simulator",
        "executor/simulator/schedules",
        "plans",
        "runtime/api",
        "runtime/base",
        "runtime/base/environment",
        "runtime/base/process",
        "runtime/runner",
        "runtime/settings",
        "tools/base",
        "tools/report",
    ],
    "tools/cubin": ["executor/special", "tools/base"],
    "tools/commands": [
        "ir",
        "compiler",
        "compiler/format",
        "compiler/msccl",
        "executor/simulator",
        "executor/simulator/schedules",
        "executor/special",
        "passes",
        "passes/prove",
        "plans",
        "runtime/api",
        "runtime/base/environment",
        "runtime/base/process",
        "runtime/proofs",
        "runtime/verbs/port",
        "tools/base",
        "tools/cubin",
        "tools/report",
        "tools/run",
    ],
    "tools": ["ir", "runtime/base/environment", "tools/base", "tools/commands"],
    "tools/bench/base": ["ir", "tools/base"],
    "tools/bench/results": ["ir"],
    "tools/bench/report": ["tools/base", "tools/bench/base", "tools/bench/results"],
    "tools/bench/ranks": [
        "ir",
        "runtime/api",
        "runtime/memory",
        "runtime/net/threads",
        "tools/bench/base",
    ],
    "tools/bench/plans": ["ir", "compiler", "plans", "tools/base", "tools/bench/results"],
    "tools/bench/kernels": ["executor/cuda/device", "tools/bench/ranks"],
    "tools/bench/measure": [
        "ir",
        "executor",
        "executor/cuda/device",
        "executor/interpreter",
        "executor/oracle",
        "runtime/api",
        "tools/bench/base",
        "tools/bench/kernels",
        "tools/bench/plans",
        "tools/bench/ranks",
        "tools/bench/results",
    ],
    "tools/bench/contenders": [
        "ir",
        "executor/special",
        "tools/bench/base",
        "tools/bench/kernels",
        "tools/bench/measure",
        "tools/bench/results",
    ],
    "tools/bench": [
        "executor",
        "runtime/api",
        "tools/base",
        "tools/bench/base",
        "tools/bench/contenders",
        "tools/bench/kernels",
        "tools/bench/measure",
        "tools/bench/plans",
        "tools/bench/ranks",
        "tools/bench/report",
        "tools/bench/results",
    ],

    "tools/package": [],
    # The Python package, which runs the command and calls the library.
    "python": ["runtime/capi", "tools"],

    # Tests of several folders.
    "tests": _ALL,
    "tests/api": _ALL,
    "tests/bench": _ALL,
    "tests/collectives": _ALL,
    "tests/engines": _ALL,
    "tests/explore": _ALL,
    "tests/fuzz": _ALL,
    "tests/growth": _ALL,
    "tests/gpu": _ALL,
    "tests/gpu/atomics": _ALL,
    "tests/gpu/nccl": _ALL,
    "tests/gpu/others": _ALL,
    "tests/gpu/parts": _ALL,
    "tests/gpu/stage": _ALL,
    "tests/library": _ALL,
    "tests/long_run": _ALL,
    "tests/mutate": _ALL,
    "tests/nodes": _ALL,
    "tests/orders": _ALL,
    "tests/peer_plans": _ALL,
    "tests/peer_ports": _ALL,
    "tests/property": _ALL,
    "tests/prover_mutants": _ALL,
    "tests/random_programs": _ALL,
    "tests/random_programs/families": _ALL,
    "tests/runtime": _ALL,
    "tests/sets": _ALL,
    "tests/softroce": _ALL,
    "tests/special": _ALL,
    "tests/special/on_host": _ALL,
    "tests/structure": _ALL,
}

# What tests that lie beside their source (x_test.cc, x_test_text.h, x_benchmark.cc) may include
# besides: whatever serves tests, wherever it stands. To Bazel a package is one, so that the rest of
# the folder could depend on it, too: there the test alone holds the wall.
_TESTS_MAY_INCLUDE = {
    "compiler": ["compiler/testing"],
    "compiler/builder": ["compiler"],
    "compiler/evaluate": ["compiler"],
    "compiler/format": ["compiler/testing"],
    "compiler/msccl": ["compiler", "passes/prove"],
    "compiler/parser": ["compiler/testing"],
    "compiler/unroll": ["compiler/testing"],
    "executor": ["executor/testing"],
    "executor/cuda/testing": ["executor/simulator", "executor/testing"],
    "executor/oracle": ["executor", "executor/cpu", "executor/simulator/machine"],
    "executor/simulator": ["executor/testing"],
    "executor/special": ["executor/testing"],
    "executor/simulator/schedules": ["executor/testing"],
    "passes": ["passes/testing"],
    "passes/assign": ["passes/testing"],
    "passes/expand": ["executor/simulator", "passes/testing"],
    "passes/fuse": ["passes/testing"],
    "passes/order": ["passes/testing"],
    "passes/prove": ["passes/testing"],
    "passes/symbolic": ["passes/testing"],
    "passes/sync": ["passes/testing"],
    "runtime/base": ["runtime/testing"],
    "runtime/base/process": ["runtime/testing"],
    "runtime/bootstrap/job": ["runtime/testing"],
    "runtime/bootstrap/tcp": ["runtime/testing"],
    "runtime/capi": ["runtime/testing"],
    "runtime/communicator": ["executor/special", "executor/testing", "runtime/testing"],
    "runtime/communicator/own_kernels": [
        "executor/testing",
        "runtime/base/environment",
        "runtime/testing",
    ],
    "runtime/cuda": ["runtime/cuda/fake", "runtime/testing"],
    "runtime/cuda/examples": ["executor/cuda/testing"],
    "runtime/cuda/far": [
        "runtime/bootstrap/address",
        "runtime/cuda/fake",
        "runtime/cuda/far/testing",
        "runtime/testing",
        "runtime/verbs/fake",
        "runtime/verbs/testing",
    ],
    "runtime/cuda/gdrcopy": ["runtime/cuda/gdrcopy/fake", "runtime/testing"],
    "runtime/cuda/launch": ["runtime/cuda/fake"],
    "runtime/cuda/links": ["runtime/cuda/fake"],
    "runtime/cuda/driver": ["runtime/cuda/driver/fake", "runtime/testing"],
    "runtime/cuda/memory": ["runtime/cuda/fake", "runtime/testing"],
    "runtime/device": ["executor/testing", "runtime/cuda/fake"],
    "runtime/group": ["runtime/testing"],
    "runtime/library": ["runtime/testing"],
    "runtime/memory": ["runtime/testing"],
    "runtime/nccl": ["runtime/nccl/fake", "runtime/testing"],
    "runtime/observe": ["runtime/testing"],
    "runtime/net/sockets": ["runtime/net/testing", "runtime/testing"],
    "runtime/verbs": [
        "runtime/net/testing",
        "runtime/testing",
        "runtime/verbs/fake",
        "runtime/verbs/testing",
    ],
    "runtime/verbs/port": ["runtime/verbs/testing"],
    "runtime/proofs": ["runtime/testing"],
    "runtime/proxy": ["runtime/proxy/testing", "runtime/testing"],
    "tools/bench/results": ["tools/base"],
    "tools/cubin": ["executor/testing"],
}

# Whose targets a folder may depend on without including their headers: what is declared in
# runtime/api is defined elsewhere.
_MAY_LINK = {
    "runtime": [
        "runtime/api",
        "runtime/bootstrap",
        "runtime/bootstrap/job",
        "runtime/collectives",
        "runtime/communicator",
        "runtime/cuda",
        "runtime/host",
        "runtime/library",
        "runtime/registry",
    ],
    "runtime/capi": ["runtime"],
    "runtime/collectives": ["runtime/communicator"],
    "runtime/communicator": ["runtime/bootstrap/job", "runtime/host"],  # a test
    "runtime/communicator/own_kernels": ["runtime/host"],  # a test
    "runtime/cuda/fake": ["runtime/bootstrap"],
    "runtime/group": ["runtime/bootstrap", "runtime/host"],  # a test
    "runtime/proxy": ["runtime/bootstrap/job", "runtime/host"],  # a test
    "runtime/nccl/base": ["runtime"],
    "runtime/nccl/comm": ["runtime"],
    "runtime/runner": ["runtime/communicator"],
    "tools/run": [
        "runtime/bootstrap",
        "runtime/bootstrap/job",
        "runtime/communicator",
        "runtime/cuda",
        "runtime/host",
    ],
    "tools/commands": ["runtime/library", "runtime/registry"],
    "tools/report": ["runtime/registry"],
    "tools/package": ["python", "runtime/capi", "runtime/nccl", "tools"],
    "tools/bench/ranks": ["runtime/bootstrap/job", "runtime/communicator"],
    "tools/bench/measure": ["runtime/communicator"],
    "tools/bench/contenders": [
        "runtime/communicator",
        "tools/bench/plans",
        "tools/bench/ranks",
    ],
    "tools/bench": [
        "executor/cuda",
        "runtime/communicator",
        "runtime/cuda",
    ],
}

_IR = [folder for folder in _ROWS.keys() if folder.startswith("ir/")]

_MAY_INCLUDE = {
    folder: others + ([inner for inner in _IR if inner not in others] if "ir" in others else [])
    for folder, others in _ROWS.items()
}

def _check():
    for folder, others in _MAY_INCLUDE.items():
        above = _MAY_INCLUDE.keys()[:_MAY_INCLUDE.keys().index(folder)]
        for other in others:
            if other != "*" and other not in above:
                fail("layers.bzl: %s names %s, which does not stand above it" % (folder, other))
    for table in [_TESTS_MAY_INCLUDE, _MAY_LINK]:
        for folder, others in table.items():
            for other in [folder] + others:
                if other not in _MAY_INCLUDE:
                    fail("layers.bzl: %s names %s, which is no row" % (folder, other))
    return _MAY_INCLUDE.keys()

FOLDERS = _check()

def users():
    """Who may depend on this package's targets: for `package(default_visibility = users())`."""
    folder = native.package_name()
    if folder not in FOLDERS:
        fail("layers.bzl has no row for %s" % folder)
    rows = [_MAY_INCLUDE, _TESTS_MAY_INCLUDE, _MAY_LINK]
    return ["//%s:__pkg__" % other for other in FOLDERS if [
        row
        for row in rows
        if folder in row.get(other, []) or "*" in row.get(other, [])
    ]] or ["//visibility:private"]

# What is written for people: code, and what builds and tests it.
_TEXTS = ["bazel", "bzl", "c", "cc", "cmake", "cu", "cuh", "def", "h", "in", "mk", "py", "sh"]

def folder_sources(tests_apart = []):
    """The sources of this package, and all its texts, for tests of the structure. Every row of the
    table has them. Its tests share objects, except those of the files tests_apart (joined.bzl)."""
    joined_tests(tests_apart)
    native.filegroup(
        name = "sources",
        srcs = native.glob([
            "**/*.cc",
            "**/*.cu",
            "**/*.cuh",
            "**/*.h",
        ]),
        visibility = ["//tests:__subpackages__"],
    )
    native.filegroup(
        name = "texts",
        srcs = native.glob(["**/*." + extension for extension in _TEXTS]),
        visibility = ["//tests/structure:__pkg__"],
    )

def _table_impl(ctx):
    lines = ["%s: %s" % (f, " ".join(others)) for f, others in _MAY_INCLUDE.items()]
    lines += ["%s tests: %s" % (f, " ".join(others)) for f, others in _TESTS_MAY_INCLUDE.items()]
    ctx.actions.write(ctx.outputs.out, "\n".join(lines) + "\n")

layer_table = rule(
    implementation = _table_impl,
    doc = "Writes the table to a file.",
    attrs = {"out": attr.output()},
)
