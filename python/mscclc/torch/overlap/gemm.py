"""The products of an object by torch's own: torch.mm, addmm and _scaled_mm on the memory that the library gives.

So what an op gives has the bits of torch's products of the same chunks. On GPUs the library calls this within
mscclc_overlap_run(), in its thread, where one stream of work is put on another; on the host device in the stream's
thread, while the thread of the op waits and so has given up the interpreter's lock.
"""

import ctypes
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch

from ..._numbers import DTYPES
from ..._overlap import Gemm
from ..dtypes import DTYPE_OF, EIGHT_BITS

_TYPES = {DTYPES[name][0]: dtype for name, dtype in DTYPE_OF.items()}
_MOST_VIEWS = 1024  # of an object


class Scaled(NamedTuple):
    """What torch._scaled_mm takes besides, of a run."""

    a_scale: torch.Tensor  # one value, or [m, 1]: of each row of A, as all ranks have it where it is gathered
    b_scales: List[torch.Tensor]  # one value, or [1, n]
    result_scales: List[Optional[torch.Tensor]]
    fast: List[bool]
    a: Tuple[int, int]  # the address of A, and bytes of a row; (0, 0): rows are those of the outputs
    outputs: List[Tuple[int, int, int]]  # addresses where they begin and end, and bytes of a row

    def kinds(self) -> Tuple[Any, ...]:
        """By what torch chooses kernels, besides shapes and types."""
        given = zip(self.b_scales, self.result_scales, self.fast)
        return self.a_scale.numel() > 1, *((b.numel() > 1, out is not None, fast) for b, out, fast in given)

    def of_weights(self, some: Sequence[int]) -> "Scaled":
        """The same for some of the weights, where a run leaves out others; with outputs for each."""
        lists = ("b_scales", "result_scales", "fast", "outputs")
        return self._replace(**{name: [getattr(self, name)[i] for i in some] for name in lists})


class TorchGemm:
    """Computes the products of one object."""

    def __init__(self, device: torch.device):
        self._device = device
        self._views: Dict[Any, torch.Tensor] = {}
        self.scaled: Optional[Scaled] = None  # of the run that comes next
        self.warms_up = True  # until the object has been made

    def __call__(self, gemm: Gemm, stream: Optional[int]) -> None:
        """Puts a product on a stream (mscclc_gemm_fn)."""
        if self._is_current(stream):
            self._multiply(gemm)
        else:
            with torch.cuda.stream(torch.cuda.ExternalStream(stream or 0, self._device)):
                self._multiply(gemm)

    def _is_current(self, stream):
        if self._device.type == "cpu":
            return True
        return (stream or 0) == torch._C._cuda_getCurrentRawStream(self._device.index)

    def _multiply(self, gemm):
        m, n, k = gemm.m, gemm.n, gemm.k
        a = self._view(gemm.a, (m, k), (gemm.a_stride, 1), gemm.a_dtype)
        b = self._view(gemm.b, (k, n), (1, gemm.b_stride) if gemm.b_transposed else (gemm.b_stride, 1), gemm.b_dtype)
        d = self._view(gemm.d, (m, n), (gemm.d_stride, 1), gemm.d_dtype)
        at = gemm.bias
        bias = self._view(at, (n,), (1,), gemm.d_dtype) if at else None
        if a.dtype in EIGHT_BITS:
            with torch.no_grad():
                self._scaled(gemm, a, b, d, bias)
        else:
            multiply(a, b, d, bias, gemm.accumulate)

    def _view(self, *where):
        """Memory of the library's or the caller's as a tensor, for the time of a call: address, shape, strides, type.
        Runs that come again have the same memory, mostly; a view does not keep what it is of."""
        found = self._views.get(where)
        if found is None:
            if len(self._views) >= _MOST_VIEWS:
                self._views.clear()
            with torch.inference_mode(False):  # others may be written to in that mode only
                found = self._views[where] = self._make_view(*where)
        return found

    def _make_view(self, address, shape, strides, dtype):
        of = _TYPES[dtype]
        last = sum((size - 1) * stride for size, stride in zip(shape, strides))
        storage = torch._C._construct_storage_from_data_pointer(address, self._device, (last + 1) * of.itemsize)
        return torch.empty(0, dtype=of, device=self._device).set_(storage, 0, shape, strides)

    def _scaled(self, gemm, a, b, d, bias):
        run = self.scaled
        number, row = (_like(run, gemm), 0) if self.warms_up else _place(run, gemm)
        a_scale, b_scale = run.a_scale, run.b_scales[number]
        by_rows = a_scale.numel() > 1 or b_scale.numel() > 1
        if a_scale.numel() > 1:
            a_scale = a_scale[row:row + gemm.m]
            a_scale = a_scale if a_scale.data_ptr() % 16 == 0 else a_scale.clone()  # as cuBLAS wants them
        out = torch.empty_like(d) if gemm.accumulate else d
        if by_rows and self._device.type == "cpu":
            _by_rows_on_cpu(a, b, a_scale, b_scale, bias, out)
        else:
            torch.ops.aten._scaled_mm.out(
                a, b, a_scale, b_scale, bias, run.result_scales[number], d.dtype, run.fast[number], out=out
            )
        if gemm.accumulate:
            d.add_(out)


def multiply(
    a: torch.Tensor, b: torch.Tensor, d: torch.Tensor, bias: Optional[torch.Tensor], accumulate: bool = False
) -> None:
    """Puts a product into d, or adds it to d. In that form torch multiplies in the type of d under autocast, too."""
    if accumulate:
        d.addmm_(a, b)
        if bias is not None:
            d.add_(bias)
    elif bias is not None:
        torch.addmm(bias, a, b, out=d)
    else:
        torch.mm(a, b, out=d)


def _by_rows_on_cpu(a, b, a_scale, b_scale, bias, out):
    """Scales of rows and columns, which torch's own product has on GPUs only; rounded once."""
    one = torch.ones((), dtype=torch.float32)
    found = torch._scaled_mm(a, b, one, one, out_dtype=torch.float32) * (a_scale * b_scale)
    out.copy_(found if bias is None else found + bias.float())


def _like(run, gemm):
    """A weight whose products are as this one, which is of zeros: kernels are loaded before a plan runs."""
    widths = [gemm.n if run.a[0] else row // _TYPES[gemm.d_dtype].itemsize for _, _, row in run.outputs or [(0, 0, 0)]]
    return widths.index(gemm.n)


def _place(run, gemm):
    """Which weight a product is of, and its first row in A."""
    if run.a[0]:
        return 0, (gemm.a - run.a[0]) // run.a[1]
    for number, (begin, end, row) in enumerate(run.outputs):
        if begin <= gemm.d < end:
            return number, (gemm.d - begin) // row
    raise AssertionError(f"a product at {ctypes.c_void_p(gemm.d)} is of no output")
