"""Which contract about the bits of sums is in force for the calls of a group (docs/bits.md)."""

from typing import Dict, Optional

import torch.distributed as dist

# That of mscclc.torch.order(); None: calls are in none.
of_calls: Optional[str] = None
# What groups of backend mscclc were made with, by their names.
_of_groups: Dict[str, Optional[str]] = {}


def keep(group: str, order: Optional[str]) -> None:
    """Of a group that is made; a later one may have the name of one that was destroyed."""
    _of_groups[group] = order


def of_group(name: str) -> Optional[str]:
    """What a group of that name was made with."""
    return _of_groups.get(name)


def in_force(group: Optional[dist.ProcessGroup]) -> Optional[str]:
    """What sums over a group, or the default one, keep to now; None: as MSCCLC_ORDER says."""
    if of_calls is not None:
        return of_calls
    known = dist.group.WORLD if group is None else group
    order = _of_groups.get(known.group_name) if _of_groups else None
    if order is None or "mscclc" not in dist.get_backend_config(known):
        return None
    return order


def settings() -> str:
    """What code that is compiled now depends on."""
    return f"{of_calls} {sorted(_of_groups.items())}"
