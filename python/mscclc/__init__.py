"""mscclc: a compiler for GPU collectives.

    plan = mscclc.compile("allreduce_2shot.mscl", R=8)
    print(plan.summary())
    plan.run("64K", dtype="bf16")
"""

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from .communicator import Communicator, unique_id
    from .effects import Access, Effect
    from .errors import CompileError, Diagnostic, LibraryError, RunError, UsageError
    from .loaded_plan import LoadedPlan
    from .memory import DeviceMemory
    from .plan import Plan, Result, compile
    from .registry import Registry, Request
    from .row_plans import RowChoice, RowPlans, choose_rows, row_plan
    from .symmetric import SymmetricMemory
    from .work import Work, group

__all__ = [
    "Access", "Communicator", "CompileError", "DeviceMemory", "Diagnostic", "Effect",
    "LibraryError", "LoadedPlan", "Plan", "Registry", "Request", "Result", "RowChoice", "RowPlans", "RunError",
    "SymmetricMemory", "UsageError", "Work", "choose_rows", "compile", "group", "row_plan", "unique_id",
]  # fmt: skip
__version__ = "0.1.0"

_HOME_OF = {
    "Communicator": "communicator", "unique_id": "communicator", "LoadedPlan": "loaded_plan",
    "Work": "work", "group": "work", "DeviceMemory": "memory", "Registry": "registry",
    "Request": "registry", "RowChoice": "row_plans", "RowPlans": "row_plans", "choose_rows": "row_plans",
    "row_plan": "row_plans",
    "Access": "effects", "Effect": "effects",
    "CompileError": "errors", "Diagnostic": "errors", "LibraryError": "errors",
    "RunError": "errors", "UsageError": "errors",
    "Plan": "plan", "Result": "plan", "compile": "plan",
    "SymmetricMemory": "symmetric",
}  # fmt: skip


def __getattr__(name):
    """What is asked for is imported then: commands that need little of the package start sooner."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module("." + _HOME_OF[name], __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_HOME_OF})
