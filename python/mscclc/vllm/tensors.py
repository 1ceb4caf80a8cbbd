"""Collectives of tensors by libmscclc, from an input to a new tensor, on the current stream.

torch.distributed's all-reduce is in place, so what goes through a backend copies its input first, which
costs a kernel a call. These do not.
"""

import ctypes
from typing import Any, Optional

import torch
import torch.distributed as dist

from .._library import Call, library
from .._numbers import DTYPE_DEFAULT, DTYPES, KINDS, OPS, order_number
from ..buffers import TORCH_TYPES, needs_own_values
from ..communicator import Communicator, id_of_group
from ..errors import LibraryError, UsageError
from ..torch.options import ends_process_on
from ..torch.plans import until_exit

_NUMBERS = {
    getattr(torch, of_torch.partition(".")[2]): DTYPES[name][0] for of_torch, name in TORCH_TYPES.items()
    if not name.startswith("e")  # sums of these are rounded to few bits
}  # fmt: skip
_KINDS = {name: KINDS[name].number for name in ("allreduce", "allgather", "reducescatter")}


class TensorCalls:
    """A communicator over a group of torch's. For one thread at a time; all ranks make the same calls in
    the same order. On GPUs they may be captured in CUDA graphs, the first ones as well."""

    def __init__(self, group: dist.ProcessGroup, device: Any, order: Optional[str] = None):
        """Collective over `group`, whose tensors of the host are broadcast once. `device`: of all
        tensors. `order`: what the bits of sums keep to; None: as MSCCLC_ORDER says."""
        library()  # where it cannot be loaded, before other ranks wait for this one
        self._device = torch.device(device)
        self._order = order_number(order)
        self.size = dist.get_world_size(group)
        rank = dist.get_rank(group)
        on_gpu = self._device.type == "cuda"
        try:
            id = id_of_group(group)
            self._comm = until_exit(Communicator(
                self.size, id, rank, device=self._device.index if on_gpu else None, order=order,
                ends_process=ends_process_on(self._device.type),
            ))  # fmt: skip
        except LibraryError as error:
            raise UsageError(
                f"{error}; VLLM_PLUGINS= (no plug-ins) makes vLLM start without mscclc"
            ) from error
        self._on_gpu = on_gpu

    def takes(self, tensor: torch.Tensor) -> bool:
        """Whether calls on such a tensor are served: of the device, not empty, of a type that sums have."""
        return (
            tensor.dtype in _NUMBERS and tensor.device == self._device and tensor.numel() > 0
            and tensor.dim() > 0
        )  # fmt: skip

    def all_reduce(self, input: torch.Tensor) -> torch.Tensor:
        """The sum of all inputs."""
        input = input.contiguous()
        output = torch.empty_like(input)
        self._run("allreduce", input, output, input.numel())
        return output

    def all_gather(self, input: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """The inputs of all ranks, one after the other along a dimension."""
        dim = _dimension(input, dim)
        input = input.contiguous()
        rows = input.new_empty([self.size, *input.shape])
        self._run("allgather", input, rows, input.numel())
        shape = list(input.shape)
        shape[dim] *= self.size
        return rows.movedim(0, dim).reshape(shape)  # a view, if nothing lies before the dimension

    def reduce_scatter(self, input: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """This rank's part, along a dimension, of the sum of all inputs."""
        dim = _dimension(input, dim)
        rows = input.movedim(dim, 0).contiguous()
        if rows.shape[0] % self.size:
            raise UsageError(f"{rows.shape[0]} rows are not as many for each of {self.size} ranks")
        output = rows.new_empty([rows.shape[0] // self.size, *rows.shape[1:]])
        self._run("reducescatter", rows, output, output.numel())
        return output.movedim(0, dim).contiguous()

    def close(self) -> None:
        """Frees the communicator; the second time nothing."""
        self._comm.close()

    def _run(self, kind, input, output, count):
        needs_own_values(input, "the input")
        call = Call(
            size=ctypes.sizeof(Call), kind=_KINDS[kind], dtype=_NUMBERS[input.dtype], op=OPS["sum"],
            accumulate=DTYPE_DEFAULT, count=count, input=input.data_ptr(), output=output.data_ptr(),
            order=self._order,
        )  # fmt: skip
        # torch's allocator keeps the memory as long as the current stream needs it.
        stream = torch.cuda.current_stream(self._device).cuda_stream if self._on_gpu else None
        self._comm._make(self._comm._own(), call, self._comm._queue(stream))
        if not self._on_gpu:
            self._comm.synchronize()


def _dimension(tensor, dim):
    if not -tensor.dim() <= dim < tensor.dim():
        raise UsageError(f"no dimension {dim} in a tensor of shape {tuple(tensor.shape)}")
    return dim % tensor.dim()
