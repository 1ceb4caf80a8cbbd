"""The collectives of vLLM's tensor-parallel groups by plans. Other groups, and calls that are not here
(messages, experts' all-to-all, parts that differ in size), are those of vLLM's communicator for CUDA."""

import os
from typing import Any, List, Optional, Union

import torch
import vllm.envs as envs
from vllm.distributed.device_communicators.cuda_communicator import CudaCommunicator
from vllm.distributed.parallel_state import in_the_same_node_as
from vllm.logger import init_logger

from .tensors import TensorCalls

logger = init_logger("vllm.mscclc")  # below vLLM's own, which prints what is below it
_NAME = "mscclc"


class MscclcCommunicator(CudaCommunicator):
    """What vLLM's layers call, within its custom ops. Results are new tensors; inputs are kept."""

    def __init__(
        self, cpu_group: Any, device: Optional[torch.device] = None, device_group: Any = None,
        unique_name: str = "", *more: Any, **named: Any,
    ):  # fmt: skip
        served = _is_served(cpu_group, unique_name)
        # For groups that are not called "tp" vLLM sets up NCCL only, not what takes calls before it:
        # buffers for its own all-reduce, PyTorch's symmetric memory with multicast, FlashInfer's.
        name = _NAME if served else unique_name
        super().__init__(cpu_group, device, device_group, name, *more, **named)
        self.unique_name = unique_name
        self.plans: Optional[TensorCalls] = None  # None: all calls are vLLM's
        if served:
            self.plans = TensorCalls(cpu_group, self.device, _order())
            logger.info_once(
                "mscclc serves all-reduces, all-gathers and reduce-scatters of group '%s'", unique_name
            )

    def all_reduce(self, input_: torch.Tensor) -> torch.Tensor:
        """The sum of all inputs."""
        if not self._serves(input_):
            return super().all_reduce(input_)
        return self.plans.all_reduce(input_)

    def all_gather(self, input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """The inputs of all, one after the other along a dimension."""
        if not self._serves(input_):
            return super().all_gather(input_, dim)
        return self.plans.all_gather(input_, dim)

    def all_gatherv(
        self, input_: Union[torch.Tensor, List[torch.Tensor]], dim: int = 0,
        sizes: Optional[List[int]] = None,
    ) -> Union[torch.Tensor, List[torch.Tensor]]:  # fmt: skip
        """The same of a tensor or of several, where sizes say how many rows each rank has."""
        tensors = [input_] if isinstance(input_, torch.Tensor) else input_
        if not _equal(sizes) or not all(map(self._serves, tensors)):
            return super().all_gatherv(input_, dim, sizes)
        results = [self.plans.all_gather(one, dim) for one in tensors]
        return results[0] if tensors is not input_ else results

    def reduce_scatter(self, input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """This rank's part, along a dimension, of the sum."""
        if not self._serves(input_):
            return super().reduce_scatter(input_, dim)
        return self.plans.reduce_scatter(input_, dim)

    def reduce_scatterv(
        self, input_: torch.Tensor, dim: int = -1, sizes: Optional[List[int]] = None
    ) -> torch.Tensor:
        """The same where sizes say how much each rank gets."""
        if not _equal(sizes) or not self._serves(input_):
            return super().reduce_scatterv(input_, dim, sizes)
        return self.plans.reduce_scatter(input_, dim)

    def destroy(self) -> None:
        """Ends both communicators. Graphs with calls of theirs must not be launched any more."""
        if self.plans is not None:
            self.plans.close()
            self.plans = None
        super().destroy()

    def _serves(self, tensor):
        return self.plans is not None and self.plans.takes(tensor)


def _is_served(group, name):
    """Whether it is a tensor-parallel group on one node. Collective where it is one."""
    if name.partition(":")[0] != "tp" or not isinstance(group, torch.distributed.ProcessGroup):
        return False
    return torch.distributed.get_world_size(group) > 1 and all(
        in_the_same_node_as(group, source_rank=0)
    )


def _equal(sizes):
    return sizes is None or all(size == sizes[0] for size in sizes)


def _order():
    """What the bits of sums keep to. A row must have the same in each batch where vLLM promises that."""
    if envs.VLLM_BATCH_INVARIANT and not os.environ.get("MSCCLC_ORDER"):
        return "ranks"
    return None
