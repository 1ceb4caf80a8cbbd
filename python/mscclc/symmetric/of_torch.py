"""Symmetric memory among the ranks of a group of torch.distributed: ours, or torch's backends'."""

import sys

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm

from ..errors import UsageError
from ..torch.symmetric import register
from .teams import Team, group_of

_OF_TORCH = {"cuda": "CUDA", "nccl": "NCCL", "nvshmem": "NVSHMEM"}


class OfTorch:
    """A tensor of this rank, and torch's handle for those of all."""

    def __init__(self, tensor, handle, team, by_group):
        """`by_group`: barriers are the group's, as the handle has none that waits."""
        self.rank, self.ranks = team.group.rank(), team.group.size()
        self.bytes = tensor.nbytes
        self._offset = _offset(tensor, handle, self.rank)
        self._tensor, self._handle, self._team, self._by_group = tensor, handle, team, by_group

    def address(self, rank):
        begin = _ops().symmetric_address(self._handle, rank)
        return begin + self._offset if begin and self.bytes else 0

    def buffer(self, rank):
        if self.bytes and not _ops().symmetric_address(self._handle, rank):
            raise UsageError(
                f"torch's backend gives no address of rank {rank}'s symmetric memory, so it can be "
                "used by torch's own calls only; take the backend 'cuda' or 'native'"
            )
        return _ops().symmetric_view(self._handle, rank, self._offset, self.bytes)

    def barrier(self):
        if self._by_group:
            group, device = self._team.group, self._tensor.device
            if not _is_of_nccl(group, device):  # its barrier knows nothing of the stream
                torch.cuda.current_stream(device).synchronize()
            dist.barrier(group)
        else:
            _ops().symmetric_barrier(self._handle)

    def close(self):
        if self._team is not None:
            team, self._team = self._team, None
            self._tensor = self._handle = None
            team.release()

    def __del__(self):
        if not sys.is_finalizing() and hasattr(self, "_team"):
            self.close()


def _offset(tensor, handle, rank):
    """Where a tensor of this rank begins in the allocation that its handle describes. torch's NCCL
    may map that for a second time, and the handle's addresses are then of that mapping."""
    own, size = _ops().symmetric_address(handle, rank), _ops().symmetric_size(handle)
    storage = tensor.untyped_storage()  # has an address, also if the tensor is empty
    skipped = tensor.storage_offset() * tensor.itemsize
    begin = storage.data_ptr() + skipped
    if not own:
        return 0
    if own <= begin <= own + size:
        return begin - own
    if storage.nbytes() == size:
        return skipped
    raise UsageError(
        "torch's backend gives no address of which the tensor's is a part; allocate the tensor by"
        " torch.distributed._symmetric_memory.empty(), not in a memory pool"
    )


def allocate(bytes, group, device, name):
    """Collective: new memory."""
    device = _device(torch.get_default_device() if device is None else torch.device(device))
    group = group_of(group)
    _check(name, group, device)
    count = max(bytes, 1)  # torch has no symmetric memory without bytes
    if name == "native":
        register()
        tensor = _ops().symmetric_empty(count, device)
    else:
        register()  # torch may have chosen ours
        _select(name, device)
        tensor = symm.empty(count, dtype=torch.uint8, device=device)
    return _rendezvous(tensor[:bytes], tensor, group, name)


def take(tensor, group, name):
    """Collective: a tensor that the backend has allocated."""
    if not isinstance(tensor, torch.Tensor):
        raise UsageError(f"symmetric memory of torch is a tensor, not {type(tensor).__name__}")
    if not tensor.is_contiguous():
        raise UsageError("symmetric memory is contiguous, the tensor is not")
    group = group_of(group)
    _check(name, group, tensor.device)
    register()
    if name != "native":
        _select(name, tensor.device)
    return _rendezvous(tensor, tensor, group, name)


def _rendezvous(tensor, allocated, group, name):
    team = Team.of(group)
    try:
        if name == "nccl":
            team.meet()
        if name == "native":
            handle = _ops().symmetric_rendezvous(allocated, team.name)
        else:
            found = symm.rendezvous(allocated, team.name)
            if found is None:
                raise UsageError(
                    f"the tensor does not lie in symmetric memory {name!r}; allocate it by"
                    " torch.distributed._symmetric_memory.empty(), or in its memory pool"
                )
            handle = found.boxed()
        return OfTorch(tensor, handle, team, _lacks_barriers(name, tensor.device))
    except BaseException:
        team.release()
        raise


def _check(name, group, device):
    """What the backend needs, before anything is registered."""
    if name in _OF_TORCH and device.type != "cuda":
        raise UsageError(f"symmetric memory {name!r} is of GPUs; the device is {device}")
    if name == "nccl" and not _is_of_nccl(group, device):
        raise UsageError("symmetric memory 'nccl' needs a group of torch's backend 'nccl'")
    if name == "nvshmem" and not symm.is_nvshmem_available():
        raise UsageError(
            "symmetric memory 'nvshmem' needs libnvshmem_host.so.3, and a torch that was built with"
            " it; there is none"
        )


def _is_of_nccl(group, device):
    if not dist.is_nccl_available():
        return False
    try:
        return isinstance(group._get_backend(device), dist.ProcessGroupNCCL)
    except RuntimeError:  # the group has no backend for GPUs
        return False


def _lacks_barriers(name, device):
    """In torch 2.11 the barriers of handles are an error with NCCL, and do nothing, without a
    word, with NVSHMEM (https://github.com/pytorch/pytorch/issues/191858)."""
    chosen = _OF_TORCH.get(name, symm.get_backend(device) if name == "torch" else None)
    return chosen in ("NCCL", "NVSHMEM")


def _select(name, device):
    """Makes torch's choice ours; torch refuses its default, and a choice after the first use."""
    wanted = _OF_TORCH.get(name)
    if wanted is None:
        if symm.get_backend(device) is None:
            raise UsageError(f"torch has no symmetric memory for {device.type}")
        return
    try:
        symm.set_backend(wanted)
    except RuntimeError as error:
        found = symm.get_backend(device)
        if found != wanted:
            why = str(error).partition("\n")[0]
            raise UsageError(
                f"symmetric memory {name!r} is not to be had: torch has {found}, and says: {why}"
            ) from None


def _device(device):
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


def _ops():
    return torch.ops.mscclc
