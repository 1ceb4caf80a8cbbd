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

    # The library of programs; the C++ that reads and writes plans.
    "plans": [],
    "plans/format": ["ir"],
    "plans/format/machines": ["ir", "plans/format"],
    "tests/helpers/programs": ["ir"],
    "tests/helpers/plans": ["ir", "plans/format", "tests/helpers/programs"],

    # Programs of MSCCL++'s Python language, as Python has traced them, to plans of that language.
    "compiler/mscclpp": ["ir", "plans"],

    # Schedules of MSCCL to programs.
    "compiler/msccl": ["ir"],

    # Programs to IR.
    "compiler/ast": ["ir"],
    "compiler/parser": ["ir", "compiler/ast"],
    "compiler/format": ["ir", "compiler/ast", "compiler/parser"],
    "compiler/builder/base": ["ir"],
    "compiler/builder/declare": ["ir", "compiler/builder/base"],
    "compiler/builder/ops": ["ir", "compiler/builder/base", "compiler/builder/declare"],
    "compiler/builder": [
        "ir",
        "compiler/builder/base",
        "compiler/builder/declare",
        "compiler/builder/ops",
    ],
    "compiler/evaluate": ["ir", "compiler/ast", "compiler/builder/base"],
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
    "compiler/fix": [
        "ir",
        "compiler",
        "compiler/ast",
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
    "executor": ["ir", "executor/interpreter", "tests/helpers/programs"],
    "executor/testing": ["ir", "tests/helpers/programs"],
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
    "executor/simulator/schedules": ["ir", "executor/simulator", "plans/format"],
    "executor/cost": ["ir", "executor", "executor/interpreter", "plans/format/machines"],
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

    # What a job runs: what all of it is made of.
    "runtime/support/environment": ["ir"],
    "runtime/support/process": ["ir"],
    "runtime/support": ["ir", "runtime/support/process"],
    "runtime/support/observe": [
        "ir",
        "runtime/support",
        "runtime/support/environment",
        "runtime/support/process",
    ],
    "runtime/support/memory": ["ir", "runtime/support", "runtime/support/process"],
    "runtime/support/address": ["ir", "runtime/support", "runtime/support/environment"],
    "runtime/support/settings": ["ir", "runtime/support/address", "runtime/support/environment"],

    # What applications include.
    "runtime/api": ["ir", "plans/format", "runtime/support/address"],

    # How ranks meet.
    "runtime/bootstrap": ["runtime/api", "runtime/support"],
    "runtime/bootstrap/wire": ["runtime/api", "runtime/support", "runtime/support/address"],
    "runtime/bootstrap/tcp": [
        "ir",
        "runtime/api",
        "runtime/bootstrap",
        "runtime/bootstrap/wire",
        "runtime/support",
        "runtime/support/address",
        "runtime/support/observe",
        "runtime/support/process",
    ],
    "runtime/bootstrap/job": [
        "ir",
        "runtime/api",
        "runtime/bootstrap/tcp",
        "runtime/bootstrap/wire",
        "runtime/support",
        "runtime/support/address",
        "runtime/support/environment",
        "runtime/support/observe",
        "runtime/support/process",
    ],

    # Which plan serves a call, and whether it is right.
    "runtime/choice/proofs": [
        "ir",
        "passes/prove",
        "plans/format",
        "runtime/api",
        "runtime/support",
        "runtime/support/environment",
        "runtime/support/observe",
        "runtime/support/process",
    ],
    "runtime/choice/registry": [
        "ir",
        "executor",
        "plans/format",
        "runtime/api",
        "runtime/choice/proofs",
        "runtime/support/environment",
        "runtime/support/observe",
    ],
    "runtime/choice/library": [
        "ir",
        "compiler",
        "plans/format",
        "runtime/api",
        "runtime/choice/proofs",
        "runtime/choice/registry",
        "runtime/support/environment",
        "runtime/support/observe",
    ],

    # The minimal runtime.
    "runtime/core/device": ["ir", "executor", "executor/interpreter", "runtime/api"],
    "runtime/core/group": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/core/device",
        "runtime/support",
        "runtime/support/memory",
        "runtime/support/observe",
    ],
    "runtime/core/proxy": [
        "executor",
        "runtime/api",
        "runtime/core/device",
        "runtime/support",
        "runtime/support/process",
    ],
    "runtime/core/communicator/call": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/core/group",
        "runtime/support",
        "runtime/support/environment",
        "runtime/support/memory",
    ],
    "runtime/core/communicator/compiled_kernels": [
        "ir",
        "executor",
        "executor/special",
        "runtime/api",
        "runtime/support/observe",
    ],
    "runtime/core/communicator": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/choice/proofs",
        "runtime/core/communicator/call",
        "runtime/core/communicator/compiled_kernels",
        "runtime/core/device",
        "runtime/core/group",
        "runtime/core/proxy",
        "runtime/support",
        "runtime/support/environment",
        "runtime/support/memory",
        "runtime/support/observe",
        "runtime/support/settings",
    ],
    "runtime/core/collectives": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/support",
        "runtime/support/environment",
        "runtime/support/observe",
        "runtime/support/process",
    ],
    "runtime/core/runner": [
        "ir",
        "executor",
        "executor/oracle",
        "executor/simulator",
        "runtime/api",
    ],

    # Lanes between machines.
    "runtime/network/verbs/resources": ["runtime/support", "runtime/support/process"],
    "runtime/network/verbs/port": [
        "ir",
        "runtime/network/verbs/resources",
        "runtime/support/environment",
        "runtime/support/settings",
    ],
    "runtime/network": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/support",
        "runtime/support/address",
    ],
    "runtime/network/threads": ["ir", "runtime/support", "runtime/support/process"],
    "runtime/network/sockets": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/network",
        "runtime/network/threads",
        "runtime/support",
        "runtime/support/address",
        "runtime/support/environment",
        "runtime/support/process",
    ],
    "runtime/network/rdma": [
        "ir",
        "runtime/api",
        "runtime/network",
        "runtime/network/sockets",
        "runtime/support/memory",
    ],
    "runtime/network/verbs": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/network",
        "runtime/network/rdma",
        "runtime/network/sockets",
        "runtime/network/threads",
        "runtime/network/verbs/port",
        "runtime/network/verbs/resources",
        "runtime/support",
    ],
    "runtime/network/verbs/loop": [
        "runtime/network/verbs",
        "runtime/network/verbs/port",
        "runtime/network/verbs/resources",
        "runtime/support",
    ],

    # What runs blocks.
    "runtime/devices/host": [
        "ir",
        "executor",
        "executor/cpu",
        "executor/interpreter",
        "runtime/api",
        "runtime/network",
        "runtime/network/rdma",
        "runtime/network/sockets",
        "runtime/support",
        "runtime/support/environment",
        "runtime/support/memory",
        "runtime/support/process",
    ],
    "runtime/devices/cuda/driver": ["ir", "runtime/api", "runtime/support/process"],
    "runtime/devices/cuda/memory": [
        "ir",
        "runtime/api",
        "runtime/devices/cuda/driver",
        "runtime/support",
        "runtime/support/memory",
        "runtime/support/process",
    ],
    "runtime/devices/cuda/links": [
        "ir",
        "runtime/core/device",
        "runtime/devices/cuda/driver",
        "runtime/support",
    ],
    "runtime/devices/cuda/launch": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/devices/cuda/memory",
        "runtime/support/process",
    ],
    "runtime/devices/cuda/gdrcopy": ["executor", "runtime/support", "runtime/support/process"],
    "runtime/devices/cuda/internode": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/devices/cuda/gdrcopy",
        "runtime/devices/cuda/memory",
        "runtime/network",
        "runtime/network/sockets",
        "runtime/network/threads",
        "runtime/network/verbs",
        "runtime/network/verbs/loop",
        "runtime/network/verbs/port",
        "runtime/support",
        "runtime/support/environment",
        "runtime/support/memory",
        "runtime/support/observe",
    ],
    "runtime/devices/cuda": [
        "ir",
        "executor",
        "executor/cuda",
        "runtime/api",
        "runtime/devices/cuda/internode",
        "runtime/devices/cuda/launch",
        "runtime/devices/cuda/links",
        "runtime/devices/cuda/memory",
        "runtime/support",
        "runtime/support/environment",
        "runtime/support/memory",
        "runtime/support/process",
    ],
    "runtime/devices/cuda/examples": ["ir", "runtime/api"],

    # All of it, for applications; doors for programs that are not in C++.
    "runtime": [],  # //runtime, which an application depends on: nothing of its own
    "runtime/doors/nccl/abi": ["ir"],
    "runtime/doors/nccl/variables": [
        "ir",
        "runtime/support",
        "runtime/support/environment",
        "runtime/support/process",
    ],
    "runtime/doors/nccl/backends": [
        "ir",
        "runtime/api",
        "runtime/doors/nccl/abi",
        "runtime/doors/nccl/variables",
        "runtime/support",
        "runtime/support/environment",
        "runtime/support/observe",
        "runtime/support/process",
    ],
    "runtime/doors/nccl/comm": [
        "ir",
        "runtime/api",
        "runtime/doors/nccl/abi",
        "runtime/doors/nccl/backends",
        "runtime/doors/nccl/variables",
        "runtime/support",
        "runtime/support/environment",
        "runtime/support/observe",
        "runtime/support/process",
    ],
    "runtime/doors/nccl/calls": [
        "ir",
        "runtime/api",
        "runtime/doors/nccl/abi",
        "runtime/doors/nccl/backends",
        "runtime/doors/nccl/comm",
        "runtime/support/process",
    ],
    "runtime/doors/nccl/entry_points": [
        "ir",
        "runtime/api",
        "runtime/doors/nccl/abi",
        "runtime/doors/nccl/backends",
        "runtime/doors/nccl/calls",
        "runtime/doors/nccl/comm",
        "runtime/support/environment",
        "runtime/support/observe",
    ],
    "runtime/doors/nccl": [
        "ir",
        "runtime/doors/nccl/abi",
        "runtime/doors/nccl/backends",
        "runtime/doors/nccl/comm",
        "runtime/doors/nccl/entry_points",
    ],
    "runtime/doors/c": [
        "ir",
        "compiler",
        "compiler/mscclpp",
        "executor/cost",
        "passes",
        "plans/format",
        "plans/format/machines",
        "runtime/api",
        "runtime/support",
        "runtime/support/environment",
        "runtime/support/observe",
        "runtime/support/process",
    ],

    # What only tests need.
    "tests/helpers/runtime": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/bootstrap/tcp",
        "runtime/bootstrap/wire",
        "runtime/support",
        "runtime/support/address",
        "runtime/support/memory",
        "runtime/support/observe",
    ],
    "tests/helpers/proxy": [
        "executor",
        "runtime/api",
        "runtime/core/proxy",
        "runtime/support/memory",
    ],
    "tests/helpers/network": [
        "ir",
        "executor",
        "runtime/api",
        "runtime/network",
        "runtime/support",
        "runtime/support/address",
        "tests/helpers/runtime",
    ],
    "tests/fakes/verbs": ["executor"],
    "tests/helpers/verbs": [
        "ir",
        "executor",
        "runtime/network",
        "runtime/network/sockets",
        "runtime/network/verbs",
        "tests/fakes/verbs",
        "tests/helpers/network",
        "tests/helpers/runtime",
    ],
    "tests/fakes/libcuda": ["ir", "runtime/devices/cuda/driver"],
    "tests/fakes/gdrcopy": ["runtime/devices/cuda/gdrcopy"],
    "tests/fakes/cuda": [
        "executor",
        "runtime/devices/cuda",
        "runtime/devices/cuda/driver",
        "runtime/support/memory",
        "tests/helpers/runtime",
    ],
    "tests/helpers/internode": [
        "executor",
        "tests/fakes/cuda",
        "tests/fakes/gdrcopy",
        "tests/fakes/verbs",
        "tests/helpers/verbs",
    ],
    "tests/fakes/nccl": ["runtime/doors/nccl/abi"],

    # Commands.
    "tools/base": [
        "ir",
        "compiler",
        "compiler/fix",
        "plans/format",
        "runtime/support",
        "runtime/support/environment",
    ],
    "tools/draw": ["ir", "tools/base"],
    "tools/diff": ["ir"],
    "tools/timeline": [
        "ir",
        "executor",
        "executor/cost",
        "executor/interpreter",
        "plans/format/machines",
        "tools/base",
    ],
    "tools/report": [
        "ir",
        "executor/cost",
        "executor/simulator",
        "executor/simulator/schedules",
        "passes",
        "passes/prove",
        "plans/format",
        "runtime/api",
        "runtime/support/environment",
        "runtime/support/observe",
        "tools/base",
    ],
    "tools/run": [
        "ir",
        "executor",
        "executor/simulator",
        "executor/simulator/schedules",
        "executor/cost",
        "plans/format",
        "plans/format/machines",
        "runtime/api",
        "runtime/core/runner",
        "runtime/support",
        "runtime/support/environment",
        "runtime/support/process",
        "runtime/support/settings",
        "tools/base",
        "tools/report",
        "tools/timeline",
    ],
    "tools/cubin": ["executor/special", "tools/base"],
    "tools/commands": [
        "ir",
        "compiler",
        "compiler/fix",
        "compiler/format",
        "compiler/msccl",
        "executor/cost",
        "executor/simulator",
        "executor/simulator/schedules",
        "executor/special",
        "passes",
        "passes/prove",
        "plans/format",
        "plans/format/machines",
        "runtime/api",
        "runtime/choice/proofs",
        "runtime/network/verbs/port",
        "runtime/support/environment",
        "runtime/support/process",
        "tools/base",
        "tools/cubin",
        "tools/diff",
        "tools/draw",
        "tools/report",
        "tools/run",
        "tools/timeline",
    ],
    "tools": ["ir", "runtime/support/environment", "tools/base", "tools/commands"],
    "tools/bench/base": ["ir", "tools/base"],
    "tools/bench/results": ["ir"],
    "tools/bench/report": ["tools/base", "tools/bench/base", "tools/bench/results"],
    "tools/bench/ranks": [
        "ir",
        "runtime/api",
        "runtime/network/threads",
        "runtime/support/memory",
        "tools/bench/base",
    ],
    "tools/bench/plans": ["ir", "compiler", "plans/format", "tools/base", "tools/bench/results"],
    "tools/bench/kernels": ["executor/cuda/device", "tools/bench/ranks"],
    "tools/bench/measure": [
        "ir",
        "executor",
        "executor/cuda/device",
        "executor/interpreter",
        "executor/oracle",
        "runtime/api",
        "tools/base",
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
    "python": ["runtime/doors/c", "tools"],

    # Tests of several folders.
    "tests": _ALL,
    "tests/api": _ALL,
    "tests/bench": _ALL,
    "tests/collectives": _ALL,
    "tests/cost": _ALL,
    "tests/engines": _ALL,
    "tests/explore": _ALL,
    "tests/fix": _ALL,
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
    "tests/nccl": _ALL,
    "tests/nodes": _ALL,
    "tests/orders": _ALL,
    "tests/peer_plans": _ALL,
    "tests/peer_ports": _ALL,
    "tests/pictures": _ALL,
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
    "tests/timeline": _ALL,
}

# What tests that lie beside their source (x_test.cc, x_test_text.h, x_benchmark.cc) may include
# besides: whatever serves tests, wherever it stands. To Bazel a package is one, so that the rest of
# the folder could depend on it, too: there the test alone holds the wall.
_TESTS_MAY_INCLUDE = {
    "compiler": ["compiler/testing"],
    "compiler/builder": ["compiler"],
    "compiler/evaluate": ["compiler"],
    "compiler/format": ["compiler/testing", "tests/helpers/programs"],
    "compiler/msccl": ["compiler", "passes/prove"],
    "compiler/parser": ["compiler/testing"],
    "compiler/unroll": ["compiler/parser", "compiler/testing"],
    "executor": ["executor/testing"],
    "executor/cost": ["executor/testing"],
    "executor/cuda/testing": ["executor/simulator", "executor/testing"],
    "executor/oracle": ["executor", "executor/cpu", "executor/simulator/machine"],
    "executor/simulator": ["executor/testing"],
    "executor/special": ["executor/testing"],
    "executor/simulator/schedules": ["executor/testing"],
    "ir/print": ["tests/helpers/programs"],
    "ir/program": ["tests/helpers/programs"],
    "ir/verify": ["tests/helpers/programs"],
    "passes": ["passes/testing", "tests/helpers/programs"],
    "passes/assign": ["passes/testing"],
    "passes/expand": ["executor/simulator", "passes/testing"],
    "passes/fuse": ["passes/testing"],
    "passes/order": ["passes/testing"],
    "passes/prove": ["passes/testing"],
    "passes/symbolic": ["passes/testing"],
    "passes/sync": ["passes/testing"],
    "plans/format": ["tests/helpers/plans", "tests/helpers/programs"],
    "runtime/support": ["tests/helpers/runtime"],
    "runtime/support/process": ["tests/helpers/runtime"],
    "runtime/bootstrap/job": ["tests/helpers/runtime"],
    "runtime/bootstrap/tcp": ["tests/helpers/runtime"],
    "runtime/doors/c": ["tests/helpers/runtime"],
    "runtime/core/communicator": ["executor/special", "executor/testing", "tests/helpers/runtime"],
    "runtime/core/communicator/compiled_kernels": [
        "executor/testing",
        "runtime/support/environment",
        "tests/helpers/runtime",
    ],
    "runtime/devices/cuda": ["tests/fakes/cuda", "tests/helpers/runtime"],
    "runtime/devices/cuda/examples": ["executor/cuda/testing"],
    "runtime/devices/cuda/internode": [
        "runtime/support/address",
        "tests/fakes/cuda",
        "tests/fakes/verbs",
        "tests/helpers/internode",
        "tests/helpers/runtime",
        "tests/helpers/verbs",
    ],
    "runtime/devices/cuda/gdrcopy": ["tests/fakes/gdrcopy", "tests/helpers/runtime"],
    "runtime/devices/cuda/launch": ["tests/fakes/cuda"],
    "runtime/devices/cuda/links": ["tests/fakes/cuda"],
    "runtime/devices/cuda/driver": ["tests/fakes/libcuda", "tests/helpers/runtime"],
    "runtime/devices/cuda/memory": ["tests/fakes/cuda", "tests/helpers/runtime"],
    "runtime/core/device": ["executor/testing", "tests/fakes/cuda", "tests/helpers/programs"],
    "runtime/core/group": ["tests/helpers/runtime"],
    "runtime/choice/library": ["tests/helpers/runtime"],
    "runtime/support/memory": ["tests/helpers/runtime"],
    "runtime/support/observe": ["tests/helpers/runtime"],
    "runtime/network/sockets": ["tests/helpers/network", "tests/helpers/runtime"],
    "runtime/network/verbs": [
        "tests/fakes/verbs",
        "tests/helpers/network",
        "tests/helpers/runtime",
        "tests/helpers/verbs",
    ],
    "runtime/network/verbs/port": ["tests/helpers/verbs"],
    "runtime/choice/proofs": ["tests/helpers/runtime"],
    "runtime/core/proxy": ["tests/helpers/proxy", "tests/helpers/runtime"],
    "tools/bench/results": ["tools/base"],
    "tools/cubin": ["executor/testing"],
    "tools/diff": ["tests/helpers/programs"],
    "tools/draw": ["tests/helpers/programs"],
    "tools/report": ["tests/helpers/programs"],
    "tools/timeline": ["executor/testing"],
}

# Whose targets a folder may depend on without including their headers: what is declared in
# runtime/api is defined elsewhere.
_MAY_LINK = {
    "runtime": [
        "runtime/api",
        "runtime/bootstrap",
        "runtime/bootstrap/job",
        "runtime/choice/library",
        "runtime/choice/registry",
        "runtime/core/collectives",
        "runtime/core/communicator",
        "runtime/devices/cuda",
        "runtime/devices/host",
        "runtime/network/verbs",
    ],
    "runtime/doors/c": ["runtime"],
    "runtime/core/collectives": ["runtime/core/communicator"],
    "runtime/core/communicator": ["runtime/bootstrap/job", "runtime/devices/host"],  # a test
    "runtime/core/communicator/compiled_kernels": ["runtime/devices/host"],  # a test
    "tests/fakes/cuda": ["runtime/bootstrap"],
    "runtime/core/group": ["runtime/bootstrap", "runtime/devices/host"],  # a test
    "runtime/core/proxy": ["runtime/bootstrap/job", "runtime/devices/host"],  # a test
    "runtime/doors/nccl/backends": ["runtime"],
    "runtime/doors/nccl/comm": ["runtime"],
    "runtime/core/runner": ["runtime/core/communicator"],
    "tools/run": [
        "runtime/bootstrap",
        "runtime/bootstrap/job",
        "runtime/core/communicator",
        "runtime/devices/cuda",
        "runtime/devices/host",
        "runtime/network/verbs",
    ],
    "tools/commands": ["runtime/choice/library", "runtime/choice/registry"],
    "tools/report": ["runtime/choice/registry"],
    "tools/package": ["python", "runtime/doors/c", "runtime/doors/nccl", "tests/nccl", "tools"],
    "tools/bench/ranks": ["runtime/bootstrap/job", "runtime/core/communicator"],
    "tools/bench/measure": ["runtime/core/communicator"],
    "tools/bench/contenders": [
        "runtime/core/communicator",
        "tools/bench/plans",
        "tools/bench/ranks",
    ],
    "tools/bench": ["executor/cuda", "runtime/core/communicator", "runtime/devices/cuda"],
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
