"""Symmetric memory: as many bytes of every rank, which all ranks read and write.

    memory = mscclc.SymmetricMemory(1024, comm)       # all ranks
    memory.buffer()[0] = comm.rank
    memory.barrier()
    print([memory.buffer(peer)[0] for peer in range(comm.size)])

The group is a mscclc.Communicator, then buffers are memoryviews, and of GPUs mscclc.DeviceMemory; or one
of torch.distributed, then they are tensors of uint8. `backend`, or MSCCLC_SYMMETRIC_MEMORY, says what makes the memory:

    native    libmscclc (the default): the host and GPUs; the only one for a Communicator
    torch     torch's symmetric memory, of the backend that torch has
    cuda      the same, of torch's backend CUDA
    nccl      the same, of torch's backend NCCL: the group must be one of NCCL's
    nvshmem   the same, of torch's backend NVSHMEM: its library must be there

A process has one of them.
"""

from typing import Any, Optional

from ..communicator import Communicator
from ..errors import UsageError
from .choice import BACKENDS, choose, chosen, keep

__all__ = ["BACKENDS", "SymmetricMemory", "chosen"]


class SymmetricMemory:
    """Memory of each rank of a group, all of one size. For one thread at a time.

    Buffers stay valid as long as anything refers to them, also after close() and after the group's end;
    but peers read what is written to them only while they have theirs.
    """

    def __init__(
        self, bytes: int, group: Any, *, device: Any = None, backend: Optional[str] = None
    ):
        """Collective: `bytes` bytes of every rank, zeros where they are `native`.

        `device` is for groups of torch: by default, torch's default device.
        """
        if isinstance(bytes, bool) or not isinstance(bytes, int) or bytes < 0:
            raise UsageError(f"a number of bytes is not negative, not {bytes!r}")
        if bytes >= 1 << 63:
            raise UsageError(f"{bytes} bytes are more than any machine has")
        name = choose(backend)
        self._made(name, _maker(group, name).allocate(bytes, group, device, name))

    @classmethod
    def of(cls, memory: Any, group: Any, *, backend: Optional[str] = None) -> "SymmetricMemory":
        """Collective: memory that there is, without a copy: on all ranks as many bytes, at the same
        place of an allocation.

        Of torch, a contiguous tensor, or a view of one, that the backend has allocated. Of a
        Communicator, a buffer inside of other symmetric memory.
        """
        name = choose(backend)
        made = cls.__new__(cls)
        made._made(name, _maker(group, name).take(memory, group, name))
        return made

    def _made(self, backend, implementation):
        self._own = implementation
        self._backend = backend
        keep(backend)

    @property
    def backend(self) -> str:
        """What has made it."""
        return self._backend

    @property
    def rank(self) -> int:
        """This rank."""
        return self._open().rank

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self._open().ranks

    @property
    def bytes(self) -> int:
        """What each rank has."""
        return self._open().bytes

    def address(self, rank: Optional[int] = None) -> int:
        """Where a rank's memory lies here; this rank's by default.

        0: it is not reached directly, or there are no bytes.
        """
        return self._open().address(self._rank(rank))

    def buffer(self, rank: Optional[int] = None) -> Any:
        """The memory of a rank, of this one by default: what is written there, that rank has."""
        return self._open().buffer(self._rank(rank))

    def barrier(self) -> None:
        """Collective: waits until all ranks are here, and see what each has written. With a group of torch
        on a GPU the current stream waits; with a Communicator the host does, on a GPU for the default stream."""
        self._open().barrier()

    def close(self) -> None:
        """Lets go of it; the second time nothing. Local."""
        if self._own is not None:
            implementation, self._own = self._own, None
            implementation.close()

    def __enter__(self) -> "SymmetricMemory":
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self.close()

    def _open(self):
        if self._own is None:
            raise UsageError("the symmetric memory is closed")
        return self._own

    def _rank(self, rank):
        if rank is None:
            return self.rank
        if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < self.ranks:
            raise UsageError(f"there is no rank {rank!r} among {self.ranks}")
        return rank


def _maker(group, name):
    """The module that serves a group; refuses what no rank can do."""
    if isinstance(group, Communicator):
        if name != "native":
            raise UsageError(
                f"symmetric memory {name!r} needs a group of torch.distributed; a Communicator has"
                " 'native'"
            )
        from . import native

        return native
    if group is None:
        raise UsageError("this rank is not in the group")
    try:
        from . import of_torch
    except ImportError as error:
        raise UsageError(
            f"a group is a mscclc.Communicator, or of torch.distributed, which is not here: {error}"
        ) from None
    return of_torch
