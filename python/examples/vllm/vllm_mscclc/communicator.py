"""The collectives of vLLM's groups by plans. What is not here (experts' all-to-all, and what captures
graphs) is that of vLLM's own communicator for CUDA."""

from typing import List, Optional, Union

import torch
from mscclc.torch.device_communicator import DeviceCommunicator
from vllm.distributed.device_communicators.cuda_communicator import CudaCommunicator


class MscclcCommunicator(CudaCommunicator):
    """What vLLM's layers call. Ranks are those of the group; results are new tensors."""

    def __init__(self, cpu_group, device=None, device_group=None, unique_name="", **more):
        super().__init__(
            cpu_group=cpu_group, device=device, device_group=device_group,
            unique_name=unique_name, **more,
        )  # fmt: skip
        # A group of the backend mscclc, over the same ranks.
        self._plans = DeviceCommunicator(cpu_group, device, None, unique_name)

    def all_reduce(self, input_: torch.Tensor) -> torch.Tensor:
        """The sum of all inputs."""
        return self._plans.all_reduce(input_)

    def all_gather(self, input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """The inputs of all, one after the other along a dimension."""
        return self._plans.all_gather(input_, dim)

    def all_gatherv(
        self, input_: Union[torch.Tensor, List[torch.Tensor]], dim: int = 0,
        sizes: Optional[List[int]] = None,
    ) -> Union[torch.Tensor, List[torch.Tensor]]:  # fmt: skip
        """The same of a tensor or of several, where sizes say how many rows each rank has."""
        if isinstance(input_, torch.Tensor):
            return self._plans.all_gatherv(input_, dim, sizes)
        return [self._plans.all_gatherv(one, dim, sizes) for one in input_]

    def reduce_scatter(self, input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """This rank's part, along a dimension, of the sum."""
        return self._plans.reduce_scatter(input_, dim)

    def reduce_scatterv(
        self, input_: torch.Tensor, dim: int = -1, sizes: Optional[List[int]] = None
    ) -> torch.Tensor:
        """The same where sizes say how much each rank gets."""
        if sizes is None:
            return self._plans.reduce_scatter(input_, dim)
        rows = input_.movedim(dim, 0).contiguous()
        return self._plans.reduce_scatterv(rows, 0, sizes).movedim(0, dim).contiguous()

    def gather(self, input_: torch.Tensor, dst: int = 0, dim: int = -1) -> Optional[torch.Tensor]:
        """At rank `dst` the inputs of all; None elsewhere."""
        return self._plans.gather(input_, dst, dim)

    def broadcast(self, tensor: torch.Tensor, src: int = 0) -> torch.Tensor:
        """The tensor of rank `src`, written into the one that is given."""
        return self._plans.broadcast(tensor, src)

    def send(self, tensor: torch.Tensor, dst: Optional[int] = None) -> None:
        """To a rank; the next one, if it is not said."""
        self._plans.send(tensor, dst)

    def recv(
        self, size: torch.Size, dtype: torch.dtype, src: Optional[int] = None
    ) -> torch.Tensor:
        """From a rank; the one before, if it is not said."""
        return self._plans.recv(size, dtype, src)

    def destroy(self) -> None:
        """Ends the groups."""
        self._plans.destroy()
        super().destroy()
