"""Groups of ranks by the names that graphs have for them: torch's, and, after "vllm:", vLLM's."""

from typing import Any, Callable, NamedTuple, Optional

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _resolve_process_group

from ...errors import UsageError
from .. import orders
from .translation import Unsupported

VLLM = "vllm:"


class RankGroup(NamedTuple):
    """Ranks that add up tensors."""

    ranks: Any  # a ProcessGroup through which plans are agreed on
    sum: Callable[[torch.Tensor], torch.Tensor]  # what the graph would have called
    scattered: Optional[Callable[[torch.Tensor], torch.Tensor]] = None  # the same of a part of the sum for each rank


def group_of(name: str) -> RankGroup:
    """The group of a name. UsageError: there is none."""
    if name.startswith(VLLM):
        from ...vllm.groups import group_of as of_vllm

        return of_vllm(name[len(VLLM):])
    ranks = process_group(name)
    ops = torch.ops._c10d_functional
    size = dist.get_world_size(ranks)
    return RankGroup(
        ranks, lambda tensor: ops.wait_tensor(ops.all_reduce(tensor, "sum", name)),
        lambda tensor: ops.wait_tensor(ops.reduce_scatter_tensor(tensor, "sum", size, name)),
    )  # fmt: skip


def process_group(name: str) -> Any:
    """The `ranks` of group_of(), which each call of an op needs."""
    if name.startswith(VLLM):
        return group_of(name).ranks
    try:
        return _resolve_process_group(name)
    except RuntimeError:
        raise UsageError(f"there is no process group '{name}': it was destroyed, or never made") from None


def ranks_of(name: str) -> int:
    """How many ranks a group has. Unsupported: there is no such group."""
    return dist.get_world_size(_ranks(name))


def order_of(name: str) -> Optional[str]:
    """What a group's sums keep to now; None: as MSCCLC_ORDER says. Unsupported: there is no such group."""
    return orders.in_force(_ranks(name))


def _ranks(name):
    try:
        return group_of(name).ranks
    except UsageError as error:
        raise Unsupported(str(error)) from error
