"""Buffers of collectives: what Python calls memory, as an address, a size and an element type.

An object offers its memory by the buffer protocol (array.array, bytearray, NumPy), by
`__cuda_array_interface__` (CuPy, Numba, torch on GPUs) or by DLPack (torch, JAX, CuPy). It is not
copied, except for a read-only input of the host.
"""

import ctypes
import math
import sys
from typing import Any, NamedTuple, Optional, Sequence, Tuple

from ._library import HOST
from .errors import UsageError

_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13  # DLPack's device types
_DLPACK_KINDS = {0: "i", 1: "u", 2: "f", 4: "bf"}
_DLPACK_OF_8_BITS = {10: "e4m3", 12: "e5m2"}
# As DLPack has them, by the text of torch's.
TORCH_TYPES = {
    "torch.float64": "f64", "torch.float32": "f32", "torch.float16": "f16", "torch.bfloat16": "bf16",
    "torch.float8_e4m3fn": "e4m3", "torch.float8_e5m2": "e5m2", "torch.uint8": "u8", "torch.int8": "i8",
    "torch.int32": "i32", "torch.uint32": "u32", "torch.int64": "i64", "torch.uint64": "u64",
}  # fmt: skip
_KINDS_OF_FORMATS = {code: kind for kind, all in (("f", "fde"), ("i", "bhilq"), ("u", "BHILQ"))
                     for code in all}  # fmt: skip


class Buffer(NamedTuple):
    """Contiguous memory; `owner` keeps it alive."""

    address: Optional[int]  # None: it is empty
    bytes: int
    dtype: Optional[str]  # None: the library has no such elements
    owner: Any
    shape: Optional[Tuple[int, ...]] = None  # None: its owner says none


def buffer_of(data: Any, device: int, writable: bool) -> Buffer:
    """The memory of an object; of a read-only one of the host, that need not be writable, a copy.

    `device` is the communicator's. UsageError: there is none, it is not contiguous, it may not be
    written, it is of another device, or its owner does not give it.
    """
    if isinstance(data, Buffer):
        return data
    if _is_tensor(data, device):
        try:
            return of_tensor(data)
        except (RuntimeError, NotImplementedError) as error:  # of torch.func, say, or nested
            raise UsageError(_refuses(data, error)) from None
    needs_own_values(data)
    has_dlpack = hasattr(data, "__dlpack__") and hasattr(data, "__dlpack_device__")
    fields = _cuda_array_of(data)
    if fields is not None:
        found = _of_cuda_array(fields, data, device, writable)
        # The interface has no name for bf16, say; DLPack has.
        return _of_dlpack(data, device) if found.dtype is None and has_dlpack else found
    try:
        view = memoryview(data)
    except (TypeError, ValueError, BufferError) as error:  # it has no protocol, or no format for the elements
        if has_dlpack:
            return _of_dlpack(data, device)
        _needs(isinstance(error, TypeError), _refuses(data, error))
        raise UsageError(
            f"{type(data).__name__} is not a buffer: it has neither the buffer protocol, nor DLPack,"
            " nor __cuda_array_interface__"
        ) from None
    _needs(device == HOST, f"the buffer is of the host, the communicator of GPU {device}")
    return _of_view(view, writable)


def of_tensor(tensor: Any, what: str = "the buffer") -> Buffer:
    """Where a tensor of torch lies. The interfaces that tensors share with arrays of others say the same, in ten
    times the time. UsageError: it has gaps, or stands for other values than lie there; `what` is its name there."""
    if tensor.is_neg() or tensor.is_conj():
        needs_own_values(tensor, what)
    if not tensor.is_contiguous():
        raise UsageError(f"{what} is not contiguous")
    bytes = tensor.numel() * tensor.element_size()
    dtype = TORCH_TYPES.get(str(tensor.dtype), str(tensor.dtype))
    return Buffer(tensor.data_ptr() if bytes else None, bytes, dtype, tensor.untyped_storage(), tensor.shape)


def external_buffer(name: str, data: Any, device: int, writable: bool) -> Buffer:
    """The same of an external of a call, whose name stands in the error."""
    try:
        return buffer_of(data, device, writable)
    except UsageError as error:
        raise UsageError(f"the external '{name}': {error}") from None


def needs_columns(what: str, buffer: Buffer, columns: int, width: int) -> None:
    """As needs_rows(), of a buffer of values of `width` bytes."""
    if buffer.shape and buffer.bytes > 0:
        each = buffer.bytes // math.prod(buffer.shape)
        needs_rows(what, buffer.shape, columns, each, columns * width)


def needs_rows(
    what: str, shape: Sequence[int], columns: int, each: int = 1, row: Optional[int] = None
) -> None:
    """UsageError where a shape has several dimensions, of which the last ones, such as heads of a row, are no row of
    so many columns. One dimension may hold any rows, and so may any shape values that a row has one of. `each`: what
    an element counts, and `row` a row, where that is not the columns."""
    if columns <= 1 or len(shape) < 2 or 0 in shape:
        return
    row = columns if row is None else row
    for size in reversed(shape):
        each *= size
        if each >= row:
            break
    if each != row:
        raise UsageError(
            f"{what} has the shape {tuple(shape)}, and should have (..., {columns}): its last dimensions are a row"
        )


def needs_values(what: str, buffer: Buffer, rows: int) -> None:
    """UsageError where a shape has several dimensions, and other values than one for each of so many rows. One
    dimension may have more."""
    shape = buffer.shape or ()
    if len(shape) > 1 and shape[-1] != 1 and math.prod(shape) != rows:
        raise UsageError(
            f"{what} has the shape {tuple(shape)}, and should have ({rows},) or ({rows}, 1): a value for each row"
        )


def needs_own_values(data: Any, what: str = "the buffer") -> None:
    """UsageError where a tensor of torch stands for other values than its memory has, as after conj()."""
    for bit, name in (("neg", "negative"), ("conj", "conjugate")):
        is_set = getattr(data, f"is_{bit}", None)
        if callable(is_set) and is_set() is True:
            raise UsageError(
                f"{what} has torch's {name} bit, so its memory has other values than the tensor: give"
                f" tensor.resolve_{bit}()"
            )


def _is_tensor(data, device):
    """A tensor of torch that of_tensor() has all of; DLPack says why others cannot be had."""
    torch = sys.modules.get("torch")
    if torch is None or type(data) is not getattr(torch, "Tensor", None):
        return False
    if data.requires_grad or data.layout is not torch.strided or str(data.dtype) not in TORCH_TYPES:
        return False
    place = data.device
    return place.type == "cpu" if device == HOST else place.type == "cuda" and place.index == device


def _of_view(view, writable):
    _needs(view.c_contiguous, "the buffer is not contiguous")
    _needs(not (writable and view.readonly), "the buffer is read-only")
    dtype = _dtype_of_format(view)
    if view.nbytes == 0:
        return Buffer(None, 0, dtype, None)
    data = memoryview(bytearray(view)) if view.readonly else view.cast("B")
    return Buffer(ctypes.addressof(ctypes.c_char.from_buffer(data)), len(data), dtype, data, view.shape)


def _dtype_of_format(view):
    # ctypes and NumPy may say the order of bytes, too; machines here are little-endian.
    order, code = ("", view.format) if len(view.format) == 1 else (view.format[:1], view.format[1:])
    kind = _KINDS_OF_FORMATS.get(code) if order in ("", "@", "=", "<") else None
    return None if kind is None else f"{kind}{view.itemsize * 8}"


def _cuda_array_of(data):
    """None: there is none, or torch refuses it, as DLPack is then to say."""
    try:
        return getattr(data, "__cuda_array_interface__", None)
    except Exception:
        return None


def _of_cuda_array(fields, data, device, writable):
    _needs(
        isinstance(fields, dict) and {"data", "shape", "typestr"} <= fields.keys(),
        "the buffer's __cuda_array_interface__ lacks 'data', 'shape' or 'typestr'",
    )
    try:
        address, read_only = fields["data"]
        order, kind, width = fields["typestr"][0], fields["typestr"][1], int(fields["typestr"][2:])
        count = _count(fields["shape"], fields.get("strides"), width)
    except (TypeError, ValueError, IndexError) as error:
        raise UsageError(f"the buffer's __cuda_array_interface__ is wrong: {error}") from None
    _needs(device != HOST, "the buffer is of a GPU, the communicator of the host")
    _needs(not (writable and read_only), "the buffer is read-only")
    _needs(fields.get("mask") is None, "the buffer has a mask")
    dtype = f"{kind}{width * 8}" if kind in "fiu" and order in "<|" else None
    return Buffer(address if count else None, count * width, dtype, data, tuple(fields["shape"]))


class DLDevice(ctypes.Structure):
    """DLDevice"""

    _fields_ = [("type", ctypes.c_int32), ("number", ctypes.c_int32)]


class DLTensor(ctypes.Structure):
    """DLTensor, with which a DLManagedTensor begins."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def _of_dlpack(data, device):
    try:
        capsule, address = _capsule_of(data, device)
    except UsageError:
        raise
    except Exception as error:  # of whatever type the other library takes
        raise UsageError(_refuses(data, error)) from None
    tensor = DLTensor.from_address(address)
    shape = tensor.shape[: tensor.dimensions]
    count = _count(shape, tensor.strides[: tensor.dimensions] if tensor.strides else None, 1)
    _needs(tensor.lanes == 1 and tensor.bits % 8 == 0, "the buffer's elements are vectors, or bits")
    dtype = _DLPACK_OF_8_BITS.get(tensor.code)
    if dtype is None and tensor.code in _DLPACK_KINDS:
        dtype = f"{_DLPACK_KINDS[tensor.code]}{tensor.bits}"
    address = (tensor.data or 0) + tensor.byte_offset
    # The capsule was not taken over, so it frees the tensor at its own end.
    return Buffer(address if count else None, count * tensor.bits // 8, dtype, (data, capsule), tuple(shape))


def _capsule_of(data, device):
    """A capsule of DLPack, and the address of its tensor."""
    kind, number = data.__dlpack_device__()
    if device == HOST:
        _needs(kind in (_CPU, _CUDA_HOST), "the buffer is of a GPU, the communicator of the host")
        capsule = data.__dlpack__()
    else:
        there = kind == _CUDA_MANAGED or (kind == _CUDA and number == device)
        _needs(there, f"the buffer is not of GPU {device}, of which the communicator is")
        # Calls are on streams that the caller orders: nothing is to be waited for.
        capsule = data.__dlpack__(stream=-1)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return capsule, pointer(capsule, b"dltensor")


def _refuses(data, error):
    return (
        f"{type(data).__name__} does not give its memory: {error}; if that is for its elements, view it as u16"
        " or u8 and give dtype"
    )


def _count(shape, strides, step):
    """The number of elements. Strides, which may be None, count an element as `step`."""
    count = 1
    for size in shape:
        _needs(size >= 0, f"the buffer has {size} elements in a dimension")
        count *= size
    if strides is None or count == 0:
        return count
    for size, stride in zip(reversed(list(shape)), reversed(list(strides))):
        _needs(size == 1 or stride == step, "the buffer is not contiguous")
        step *= size
    return count


def _needs(condition, message):
    if not condition:
        raise UsageError(message)
