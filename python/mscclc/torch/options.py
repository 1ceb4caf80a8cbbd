"""Options of the backend, as `pg_options` of init_process_group() and new_group()."""

import os
from dataclasses import dataclass, field
from typing import Optional

from .._numbers import order_number
from ..errors import UsageError


def _of_environment(name: str) -> bool:
    value = os.environ.get(name, "") or "0"
    if value not in ("0", "1"):
        raise UsageError(f"{name} is 0 or 1, not {value!r}")
    return value == "1"


def requires_plans() -> bool:
    """Whether a call that no plan serves is an error, with a fallback, too."""
    return _of_environment("MSCCLC_REQUIRE_PLAN")


def ends_process() -> int:
    """Where the process ends as soon as a call of its was cut short, unless an error has reached the program
    before: what follows on a GPU's stream would take incomplete data for whole, as the host does not wait. 0:
    nowhere; 1: on GPUs; 2: on the host, too."""
    name = "TORCH_MSCCLC_ASYNC_ERROR_HANDLING"
    return (2 if _of_environment(name) else 0) if os.environ.get(name) else 1


def ends_process_on(device_type: str) -> bool:
    """Whether it does on "cpu" or "cuda"."""
    return ends_process() >= (2 if device_type == "cpu" else 1)


@dataclass(frozen=True)
class Options:
    """All ranks have the same. What is not said, a variable says: 1, or 0, the default.

    `fallback` (TORCH_MSCCLC_FALLBACK): calls that no plan serves go to gloo (cpu) and NCCL (cuda),
    with a warning for the first of a kind; without it, or with MSCCLC_REQUIRE_PLAN=1, they are errors.

    `symmetric` (TORCH_MSCCLC_SYMMETRIC): a promise that in every collective either all ranks give the
    same parts of memory that the group has made symmetric, or none gives such memory. Then tensors of
    cuda are used where they lie, too, and ranks need not ask one another before calls on the host. Ranks
    that break it get an error (call-differs; at the first call in such memory it may take the group's
    timeout), and the group has failed.

    `order` (MSCCLC_ORDER): what the bits of sums keep to, "any", "replicated", "ranks", "tree" or
    "exact" (docs/bits.md). mscclc.torch.order() says it for some calls only."""

    fallback: bool = field(default_factory=lambda: _of_environment("TORCH_MSCCLC_FALLBACK"))
    symmetric: bool = field(default_factory=lambda: _of_environment("TORCH_MSCCLC_SYMMETRIC"))
    order: Optional[str] = None

    def __post_init__(self):
        order_number(self.order)  # or an error
