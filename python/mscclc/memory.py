"""Memory of a communicator's device, which other packages of Python take without a copy.

    memory = comm.allocate(1024, "f32")
    array = cupy.asarray(memory)                 # or torch.as_tensor(memory, device="cuda")
    comm.allreduce(memory).wait()
"""

import ctypes
import os
import sys
from typing import Any, Optional, Tuple

from . import dlpack
from ._library import HOST, check, library
from ._numbers import DTYPES
from .buffers import buffer_of
from .errors import UsageError

_TYPE_STRINGS = {
    "f32": "<f4", "f16": "<f2", "f64": "<f8", "i32": "<i4", "u32": "<u4", "i64": "<i8",
    "u64": "<u8", "i8": "|i1", "u8": "|u1",
}  # fmt: skip
_FORMATS = {
    "f32": "f", "f64": "d", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "i8": "b", "u8": "B",
}  # fmt: skip


class Allocation:
    """Memory of the library; it is released with the last object that has it."""

    def __init__(self, comm: Any, bytes: int):
        self._process = os.getpid()
        self._handle = ctypes.c_void_p()
        check(library().mscclc_memory_create(comm._own(), bytes, ctypes.byref(self._handle)))
        self.address: int = library().mscclc_memory_address(self._handle)

    def __del__(self):
        if self._handle and not sys.is_finalizing() and os.getpid() == self._process:
            library().mscclc_memory_release(self._handle)


class DeviceMemory:
    """Elements of a device's memory, in one dimension; `memory[a:b]` are some of them.

    It offers `__cuda_array_interface__`, on GPUs, and DLPack. Code that takes it must order its own work
    with that of the communicator. The memory lives as long as anything refers to it, or to a part of it.
    """

    def __init__(self, comm: Any, address: int, count: int, dtype: str, owner: Any):
        self._comm, self._owner = comm, owner
        self.address, self.count, self.dtype = address, count, dtype

    @property
    def bytes(self) -> int:
        """How large it is."""
        return self.count * DTYPES[self.dtype][1]

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        where = "the host" if self._device == HOST else f"GPU {self._device}"
        return f"<DeviceMemory: {self.count} {self.dtype} of {where}>"

    def __getitem__(self, key: slice) -> "DeviceMemory":
        if not isinstance(key, slice) or key.step not in (None, 1):
            raise UsageError("a part of memory is a slice, as in 'memory[a:b]'")
        first, last, _ = key.indices(self.count)
        begin = self.address + first * DTYPES[self.dtype][1]
        return DeviceMemory(self._comm, begin, max(0, last - first), self.dtype, self._owner)

    def view(self) -> memoryview:
        """The elements, of the host. Types that Python lacks are bytes."""
        if self._device != HOST:
            raise UsageError("memory of a GPU has no memoryview; take read() and write()")
        if self.count == 0:
            return memoryview(bytearray())
        data = (ctypes.c_char * self.bytes).from_address(self.address)
        data.owner = self._owner  # lives as long as the view
        return memoryview(data).cast("B").cast(_FORMATS.get(self.dtype, "B"))

    def write(self, data: Any) -> None:
        """Copies as many bytes of the host, of any buffer, into it, when what was queued on the default
        stream, or with this communicator on the host, has ended; and waits."""
        source = buffer_of(data, HOST, writable=False)
        if source.bytes != self.bytes:
            raise UsageError(f"{source.bytes} bytes for memory of {self.bytes}")
        self._comm.synchronize()  # what is queued may still read the bytes before
        check(library().mscclc_write(self._comm._own(), self.address, source.address, source.bytes))

    def read(self) -> bytes:
        """A copy of its bytes, of the host, when what was queued on the default stream, or with this
        communicator on the host, has ended."""
        self._comm.synchronize()  # the library copies on a stream that waits for no other
        target = ctypes.create_string_buffer(self.bytes)
        check(library().mscclc_read(self._comm._own(), target, self.address, self.bytes))
        return target.raw

    @property
    def __cuda_array_interface__(self) -> dict:
        if self._device == HOST or self.dtype not in _TYPE_STRINGS:
            raise AttributeError("__cuda_array_interface__")
        return {
            "shape": (self.count,),
            "typestr": _TYPE_STRINGS[self.dtype],
            "data": (self.address if self.count else 0, False),
            "version": 3,
            "stream": None,  # nothing is to be waited for: the caller orders work
        }

    def __dlpack_device__(self) -> Tuple[int, int]:
        return dlpack.device_of(self._device)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Optional[tuple] = None,
        copy: Optional[bool] = None,
    ) -> Any:  # fmt: skip
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("memory of mscclc is given as it is, without a copy")
        return dlpack.capsule(self, self.address, self.count, self.dtype, self._device)

    @property
    def _device(self):
        return self._comm._device


def allocate(comm: Any, count: int, dtype: str) -> DeviceMemory:
    """`count` elements of the communicator's device, zeros."""
    # Where there are no bytes, there is still an address.
    owner = Allocation(comm, max(count * DTYPES[dtype][1], 1))
    return DeviceMemory(comm, owner.address, count, dtype, owner)
