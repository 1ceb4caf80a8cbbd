"""Programs of MSCCL++'s Python language, without MSCCL++.

`mscclc mscclpp PROGRAM.py` runs a program that imports `mscclpp.language` against the modules here.
`compile` and what belongs to it are its interface of algorithms: see mscclc.mscclpp.algorithm.
"""

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from . import ext
    from .algorithm import (
        Algorithm, AlgorithmCollection, CollectiveBufferMode, CollectiveRequest, CommGroup,
        DataType, ReduceOp, compile,
    )  # fmt: skip

__all__ = [
    "Algorithm", "AlgorithmCollection", "CollectiveBufferMode", "CollectiveRequest", "CommGroup",
    "DataType", "ReduceOp", "compile", "ext",
]  # fmt: skip


def __getattr__(name):
    """What is asked for is imported then: programs need only the language."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module("mscclc.mscclpp." + ("ext" if name == "ext" else "algorithm"))
    return module if name == "ext" else getattr(module, name)


def __dir__():
    return sorted({*globals(), *__all__})
