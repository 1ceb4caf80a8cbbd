"""Which backend of symmetric memory a process has."""

import os
from typing import Optional

from ..errors import UsageError

BACKENDS = ("native", "torch", "cuda", "nccl", "nvshmem")
VARIABLE = "MSCCLC_SYMMETRIC_MEMORY"

_kept = None


def chosen() -> Optional[str]:
    """The backend that this process has; None: there was no symmetric memory yet."""
    return _kept


def choose(backend: Optional[str]) -> str:
    """The backend that is meant; refuses names that there are not, and a second backend."""
    where = ""
    if backend is None:
        backend = os.environ.get(VARIABLE, "native")
        where = f"{VARIABLE}: " if VARIABLE in os.environ else ""
    if backend not in BACKENDS:
        raise UsageError(
            f"{where}no backend of symmetric memory {backend!r}; there are: {', '.join(BACKENDS)}"
        )
    if _kept not in (None, backend):
        raise UsageError(
            f"{where}symmetric memory of this process is {_kept!r}; it cannot be {backend!r}, too"
        )
    return backend


def keep(backend: str) -> None:
    """It has given memory: from now on, this process has no other."""
    global _kept
    _kept = backend
