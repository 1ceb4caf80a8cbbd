"""Memory as tensors of DLPack, which other packages take over by a capsule."""

import ctypes
from typing import Any, Tuple

from ._library import HOST
from .buffers import DLDevice, DLTensor

_CPU, _CUDA = 1, 2
_CODES = {
    "f32": (2, 32), "f16": (2, 16), "bf16": (4, 16), "f64": (2, 64), "i32": (0, 32),
    "u32": (1, 32), "i64": (0, 64), "u64": (1, 64), "i8": (0, 8), "u8": (1, 8), "e4m3": (10, 8),
    "e5m2": (12, 8),
}  # fmt: skip
_NAME = b"dltensor"  # of a capsule that has not been taken over


class _Managed(ctypes.Structure):
    """DLManagedTensor"""

    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


# By the address of a _Managed: that, its shape and the memory's owner, until its deleter is called.
_given = {}


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _delete(address, given=_given):
    given.pop(address, None)


# Of capsules whose last reference is gone: as addresses, since Python's objects they are no more.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_new = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _end_of_capsule(capsule, given=_given, is_valid=_is_valid, pointer_of=_pointer_of, name=_NAME):
    if is_valid(capsule, name):
        given.pop(pointer_of(capsule, name), None)


for _callback in (_delete, _end_of_capsule):  # tensors may end after this module
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_callback))


def device_of(device: int) -> Tuple[int, int]:
    """DLPack's type and number of a communicator's device."""
    return (_CPU, 0) if device == HOST else (_CUDA, device)


def capsule(owner: Any, address: int, count: int, dtype: str, device: int) -> Any:
    """A capsule of `count` elements, which keeps `owner` as long as the tensor lives."""
    if dtype not in _CODES:
        raise BufferError(f"DLPack has no elements of type '{dtype}'")
    code, bits = _CODES[dtype]
    shape = (ctypes.c_int64 * 1)(count)
    tensor = DLTensor(
        data=address if count else None, device=DLDevice(*device_of(device)), dimensions=1,
        code=code, bits=bits, lanes=1, shape=shape, strides=None, byte_offset=0,
    )  # fmt: skip
    made = _Managed(tensor, None, ctypes.cast(_delete, ctypes.c_void_p))
    _given[ctypes.addressof(made)] = (made, shape, owner)
    return _new(ctypes.addressof(made), _NAME, ctypes.cast(_end_of_capsule, ctypes.c_void_p))
