"""The folders of the prover, as sources that take a premise as met (BUILD.bazel)."""

PROVER_UNITS = {
    "prove": "//passes/prove:sources",
    "loops": "//passes/prove/loops:sources",
    "memory": "//passes/prove/memory:sources",
    "model": "//passes/prove/model:sources",
    "processes": "//passes/prove/processes:sources",
    "report": "//passes/prove/report:sources",
    "run": "//passes/prove/run:sources",
}
