"""A communicator with the methods that inference engines call: those of vLLM's device communicators,
and those of the communicators that vLLM and SGLang put over NCCL (tensors are given to be written).

Ranks are those of the group, from 0. Results are in place or new, as the methods say.
"""

from typing import List, Optional

import torch
import torch.distributed as dist

from . import ops  # noqa: F401  registers them
from ..errors import UsageError


class DeviceCommunicator:
    """Collectives of a process group of backend mscclc, as custom ops that torch.compile takes."""

    def __init__(
        self,
        cpu_group: dist.ProcessGroup,
        device: Optional[torch.device] = None,
        device_group: Optional[dist.ProcessGroup] = None,
        unique_name: str = "",
    ):
        """Collective over `cpu_group`. Without a `device_group` one of its ranks is made, whose
        backend is mscclc."""
        self.device = torch.device(device) if device is not None else torch.device("cpu")
        self.cpu_group = cpu_group
        self.unique_name = unique_name
        self.ranks = dist.get_process_group_ranks(cpu_group)
        self.world_size = len(self.ranks)
        self.rank_in_group = dist.get_rank(cpu_group)
        self.rank = self.rank_in_group
        self.disabled = False
        self._owns_group = device_group is None
        if device_group is None:
            device_group = dist.new_group(
                self.ranks, backend="mscclc", use_local_synchronization=True
            )
        self.device_group = device_group
        self._name = device_group.group_name

    # ---- Results are new tensors, as vLLM's layers call them ----

    def all_reduce(self, input_: torch.Tensor, op: str = "sum") -> torch.Tensor:
        """The reduction of all inputs."""
        return torch.ops.mscclc.all_reduce(input_, op, self._name)

    def all_gather(self, input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """The inputs of all ranks, one after the other along a dimension."""
        dim = self._dimension(input_, dim)
        rows = torch.ops.mscclc.all_gather(
            input_.movedim(dim, 0).contiguous(), self.world_size, self._name
        )
        return rows.movedim(0, dim).contiguous()

    def all_gatherv(
        self, input_: torch.Tensor, dim: int = 0, sizes: Optional[List[int]] = None
    ) -> torch.Tensor:
        """The same where `sizes` says how much of the dimension each rank has."""
        if sizes is None:
            return self.all_gather(input_, dim)
        rows = input_.movedim(self._dimension(input_, dim), 0).contiguous()
        if len(sizes) != self.world_size or sizes[self.rank] != rows.shape[0]:
            raise UsageError("all_gatherv: sizes, one for each rank, and this rank's its input's")
        parts = [rows.new_empty([size, *rows.shape[1:]]) for size in sizes]
        dist.all_gather(parts, rows, group=self.device_group)
        return torch.cat(parts).movedim(0, dim).contiguous()

    def reduce_scatter(self, input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """This rank's part, along a dimension, of the sum of all inputs."""
        dim = self._dimension(input_, dim)
        part = torch.ops.mscclc.reduce_scatter(
            input_.movedim(dim, 0).contiguous(), "sum", self.world_size, self._name
        )
        return part.movedim(0, dim).contiguous()

    def reduce_scatterv(
        self, input_: torch.Tensor, dim: int = 0, sizes: Optional[List[int]] = None
    ) -> torch.Tensor:
        """The same where `sizes` says how much of the dimension each rank gets."""
        if sizes is None:
            return self.reduce_scatter(input_, dim)
        rows = input_.movedim(self._dimension(input_, dim), 0).contiguous()
        if len(sizes) != self.world_size or sum(sizes) != rows.shape[0]:
            raise UsageError("reduce_scatterv: sizes, one for each rank, are those of the input")
        output = rows.new_empty([sizes[self.rank], *rows.shape[1:]])
        dist.reduce_scatter(output, list(rows.split(sizes)), group=self.device_group)
        return output.movedim(0, dim).contiguous()

    def gather(self, input_: torch.Tensor, dst: int = 0, dim: int = -1) -> Optional[torch.Tensor]:
        """At rank `dst` the inputs of all; None elsewhere."""
        dim = self._dimension(input_, dim)
        parts = None
        if self.rank == dst:
            parts = [torch.empty_like(input_) for _ in self.ranks]
        dist.gather(input_, parts, group=self.device_group, group_dst=dst)
        return None if parts is None else torch.cat(parts, dim)

    def broadcast(self, tensor: torch.Tensor, src: int = 0) -> torch.Tensor:
        """The tensor of rank `src`, written into the one that is given."""
        torch.ops.mscclc.broadcast_(tensor, src, self._name)
        return tensor

    def send(self, tensor: torch.Tensor, dst: Optional[int] = None) -> None:
        """To rank `dst`; the next one, if it is not said."""
        to = (self.rank + 1) % self.world_size if dst is None else dst
        dist.send(tensor, group=self.device_group, group_dst=to)

    def recv(
        self, size: torch.Size, dtype: torch.dtype, src: Optional[int] = None
    ) -> torch.Tensor:
        """From rank `src`; the one before, if it is not said."""
        source = (self.rank - 1) % self.world_size if src is None else src
        tensor = torch.empty(size, dtype=dtype, device=self.device)
        dist.recv(tensor, group=self.device_group, group_src=source)
        return tensor

    # ---- Results are given, as callers of NCCL's communicators have them ----

    def all_gather_into(self, output: torch.Tensor, input_: torch.Tensor) -> None:
        """Writes the inputs of all ranks."""
        dist.all_gather_into_tensor(output, input_, group=self.device_group)

    def reduce_scatter_into(self, output: torch.Tensor, input_: torch.Tensor) -> None:
        """Writes this rank's part of the sum of all inputs."""
        dist.reduce_scatter_tensor(output, input_, group=self.device_group)

    def all_reduce_in_place(self, tensor: torch.Tensor, op: str = "sum") -> None:
        """Writes the reduction into the input."""
        torch.ops.mscclc.all_reduce_(tensor, op, self._name)

    def barrier(self) -> None:
        """Waits for all ranks."""
        dist.barrier(self.device_group)

    def destroy(self) -> None:
        """Ends the group, if it was made here; the second time nothing."""
        if self._owns_group and not self.disabled:
            dist.destroy_process_group(self.device_group)
        self.disabled = True

    def _dimension(self, tensor, dim):
        if not -tensor.dim() <= dim < tensor.dim():
            raise UsageError(f"no dimension {dim} in a tensor of shape {tuple(tensor.shape)}")
        return dim % tensor.dim()
