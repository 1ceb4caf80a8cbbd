"""mscclc: a compiler for GPU collectives.

    plan = mscclc.compile("allreduce_2shot.mscl", R=8)
    print(plan.summary())
    plan.run("64K", dtype="bf16")
"""

from .communicator import Communicator, Work, unique_id
from .effects import Access, Effect
from .errors import CompileError, Diagnostic, LibraryError, RunError, UsageError
from .plan import Plan, Result, compile

__all__ = [
    "Access", "Communicator", "CompileError", "Diagnostic", "Effect", "LibraryError", "Plan",
    "Result", "RunError", "UsageError", "Work", "compile", "unique_id",
]  # fmt: skip
__version__ = "0.1.0"
