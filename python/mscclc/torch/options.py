"""Options of the backend, as `pg_options` of init_process_group() and new_group()."""

import os
from dataclasses import dataclass, field

from ..errors import UsageError


def _fallback_of_environment() -> bool:
    value = os.environ.get("TORCH_MSCCLC_FALLBACK", "") or "0"
    if value not in ("0", "1"):
        raise UsageError(f"TORCH_MSCCLC_FALLBACK is 0 or 1, not {value!r}")
    return value == "1"


@dataclass(frozen=True)
class Options:
    """`fallback`: calls that no plan serves go to gloo (cpu) and NCCL (cuda), with a warning for the
    first of a kind; without it they are errors. All ranks have the same. If it is not said,
    TORCH_MSCCLC_FALLBACK says it (1, or 0, the default)."""

    fallback: bool = field(default_factory=_fallback_of_environment)
