"""mscclc: a compiler for GPU collectives.

    plan = mscclc.compile("allreduce_2shot.mscl", R=8)
    print(plan.summary())
    plan.run("64K", dtype="bf16")
"""

from .effects import Access, Effect
from .errors import CompileError, Diagnostic, RunError, UsageError
from .plan import Plan, Result, compile

__all__ = [
    "Access", "CompileError", "Diagnostic", "Effect", "Plan", "Result", "RunError",
    "UsageError", "compile",
]  # fmt: skip
__version__ = "0.1.0"
