"""vLLM's groups of ranks, by the names that its graphs have for them."""

import torch

from ..errors import UsageError
from ..torch.fusion.groups import RankGroup


def group_of(name: str) -> RankGroup:
    """The group of a name such as "tp:0". UsageError: there is none."""
    from vllm.distributed import parallel_state

    known = parallel_state._groups.get(name)
    found = known() if known is not None else None
    if found is None:
        raise UsageError(f"vLLM has no group '{name}': it was destroyed, or never made")
    return RankGroup(found.cpu_group, lambda tensor: torch.ops.vllm.all_reduce(tensor, group_name=name))
