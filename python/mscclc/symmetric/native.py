"""Symmetric memory of libmscclc among the ranks of a Communicator, on the host and on GPUs."""

import ctypes

from .._library import HOST, check, library
from .._waiting import wait_for
from ..buffers import buffer_of
from ..errors import UsageError
from ..memory import DeviceMemory


class _Mapping:
    """What all ranks have registered; it lives as long as there is a view of it."""

    def __init__(self, comm, registration, address, bytes, memory, keep):
        self._lifetime = comm._lifetime
        self._registration, self._memory, self._keep = registration, memory, keep
        self._lifetime.hold(registration, address or 0, bytes)

    def __del__(self):
        self._lifetime.let_go(self._registration, self._memory)


class Native:
    """Symmetric memory of this rank."""

    def __init__(self, comm, mapping, addresses, bytes):
        self.rank, self.ranks, self.bytes = comm.rank, len(addresses), bytes
        self._comm, self._mapping, self._addresses = comm, mapping, addresses

    def address(self, rank):
        return self._addresses[rank]

    def buffer(self, rank):
        if self.bytes > 0 and self._addresses[rank] == 0:
            raise UsageError(f"the memory of rank {rank} is not reached directly from {self.rank}")
        # The memory keeps the mapping.
        memory = DeviceMemory(self._comm, self._addresses[rank], self.bytes, "u8", self._mapping)
        return memory.view() if self._comm._device == HOST else memory

    def barrier(self):
        self._comm.barrier()

    def close(self):
        self._mapping = self._comm = None


def allocate(bytes, comm, device, name):
    """Collective: new memory."""
    if device is not None:
        raise UsageError("a device is for groups of torch; a Communicator has its own")
    memory = ctypes.c_void_p()
    # Where there are no bytes, nothing of it is registered.
    check(library().mscclc_memory_create(comm._own(), max(bytes, 1), ctypes.byref(memory)))
    return _share(comm, library().mscclc_memory_address(memory), bytes, memory, None)


def take(buffer, comm, name):
    """Collective: memory that peers can map, and that lives as long as the buffer does."""
    found = buffer_of(buffer, comm._device, writable=True)
    return _share(comm, found.address, found.bytes, None, found.owner)


def _share(comm, address, bytes, memory, keep):
    """Lets all ranks map theirs. What cannot be used is let go of on all of them."""
    handle, registration = comm._own(), ctypes.c_uint64()

    def register():
        check(
            library().mscclc_register(
                handle, address if bytes else None, bytes, ctypes.byref(registration)
            )
        )

    try:
        wait_for(register, lambda: comm.abort("interrupted"))
    except BaseException:
        library().mscclc_memory_release(memory)
        raise
    mapping = _Mapping(comm, registration.value, address, bytes, memory, keep)
    addresses = []
    for rank in range(comm.size):
        there, size = ctypes.c_void_p(), ctypes.c_size_t()
        check(
            library().mscclc_registered_address(
                handle, registration, rank, ctypes.byref(there), ctypes.byref(size)
            )
        )
        addresses.append(there.value or 0)
        if rank == 0:
            first = size.value
        if size.value != first:
            raise UsageError(
                f"symmetric memory has as many bytes on all ranks, not {first} on rank 0 and"
                f" {size.value} on rank {rank}"
            )
    return Native(comm, mapping, addresses, bytes)
