"""The ops of products of 8-bit floats with scales, with the arguments of torch.ops.symm_mem's; they have no gradients.

A scale of A is one value, the same on all ranks where A is gathered, or one for each row: of the rank's rows, or of
all rows. A scale of B is one value or one for each column.
"""

import functools
import operator
from typing import Any, Optional, Sequence

import torch

from ...errors import UsageError
from ..dtypes import DTYPE_OF, EIGHT_BITS, NAME_OF, WIDE
from . import eager, objects, ops, shapes
from .calls import Gather, How, Sum, key_of, options_of
from .gemm import Scaled
from .ops import Tensor, Tensors

Some = Sequence[Optional[Tensor]]


def _types(A, Bs, out_dtypes, gemm, one_value):
    """The library's names of A's, B's and the results' types."""
    names = objects.type_name(A, EIGHT_BITS, "A"), objects.type_name(Bs[0], EIGHT_BITS, "B")
    wanted = set(out_dtypes)
    if len(wanted) != 1 or len({B.dtype for B in Bs}) != 1:
        raise UsageError("the products of one call have one type, and so have all B")
    out = wanted.pop()
    if out not in WIDE:
        raise UsageError(f"out_dtype is float32, float16 or bfloat16, not {out}")
    if gemm == "own" and not one_value:
        raise UsageError("scales of rows are for products by 'torch'; those by 'own' have one value for a tensor")
    return (*names, NAME_OF[out])


def _check_b_scales(Bs, B_scales):
    for B, scale in zip(Bs, B_scales):
        if scale.numel() != 1 and list(scale.shape) != [1, B.shape[1]]:
            raise UsageError(f"a scale of B has one value, or shape {[1, B.shape[1]]}; this one {list(scale.shape)}")


def _check_devices(A, *scales):
    for scale in scales:
        if scale is not None and scale.device != A.device:
            raise UsageError(f"A is on {A.device}, a scale on {scale.device}")


def _are_one(*scales):
    return all(scale.numel() == 1 for scale in scales)


def _each(Bs, **lists):
    """All lists have an entry for each weight."""
    for name, values in lists.items():
        if len(values) != len(Bs):
            raise UsageError(f"{name} has {len(values)} entries for {len(Bs)} weights")


def _dtypes(given):
    """As torch's ops, ours get the numbers of types."""
    from torch.distributed._symmetric_memory import _maybe_convert_scalar_types_to_dtypes

    return _maybe_convert_scalar_types_to_dtypes(given)


def _kind_of_a(A, scale, dim, ranks):
    """What a scale of A, which is gathered, has: "one" value, or one for each of this rank's "own" rows or "all"."""
    _check_devices(A, scale)
    own = [*A.shape[:-1], 1]
    if scale.numel() == 1 and (ranks == 1 or list(scale.shape) != own):
        return "one"
    if list(scale.shape) == own:
        return "own"
    whole = list(own)
    whole[dim] *= ranks
    if list(scale.shape) == whole:
        return "all"
    raise UsageError(f"a scale of A has one value, or shape {own}, or {whole}; this one {list(scale.shape)}")


def _filled(biases, Bs, dtype):
    """A bias for each, of zeros where there is none; nothing, if there is none at all."""
    if all(bias is None for bias in biases):
        return ()
    return [B.new_zeros(B.shape[1], dtype=dtype) if bias is None else bias for bias, B in zip(biases, Bs)]


class _ScaledGather(Gather):
    """A gather, and products with scales after it. `kind`: of A's scale."""

    by_addresses = False

    def __init__(
        self, A: Tensor, Bs: Tensors, biases: Some, dim: int, types: Any, how: How, group: str, kind: str,
        fast: Sequence[bool],
    ):  # fmt: skip
        filled = _filled(biases, Bs, DTYPE_OF[types[2]])
        super().__init__("allgather_gemm", A, Bs, filled, dim, types, how)
        self._group, self._kind, self._fast = group, kind, list(fast)
        self._row_bytes = [n * self.dtype.itemsize for n in self.place.shape.n]

    def tensors(
        self, A: Tensor, Bs: Tensors, A_scale: Tensor, B_scales: Tensors, biases: Some, result_scales: Some
    ) -> objects.Run:
        """Those of a run, with memory for its results. Collective, where A's scale is of this rank's rows."""
        shape = self.place.shape
        run = super().tensors(A, Bs, _filled(biases, Bs, self.dtype) if shape.bias else (), True)
        outs = zip([one.data_ptr() for one in run.out], self._row_bytes)
        places = [(at, at + shape.m * row, row) for at, row in outs]
        B_scales = [one.float() for one in B_scales]
        scaled = Scaled(self._rows_scale(A_scale), B_scales, result_scales, self._fast, (0, 0), places)
        return run.with_scales(scaled)

    def _rows_scale(self, scale):
        """As the products take it: one value, or [m, 1] in the order of gathered rows."""
        if self._kind != "one":
            scale = shapes.rows_of(scale, self._dim).contiguous()
        scale = scale.float()
        return objects.exchange("allgather", self._group, shapes.ready(scale)) if self._kind == "own" else scale


def all_gather_scaled_matmul(
    A: Tensor, Bs: Tensors, A_scale: Tensor, B_scales: Tensors, gather_dim: int, group_name: str, biases: Some,
    result_scales: Some, out_dtypes: Sequence[Any], use_fast_accum: Sequence[bool], *, ranks: int,
    backend: str = "auto", chunks: int = 0, budget: int = 0, gemm: str = "auto",
) -> ops.Gathered:  # fmt: skip
    """What the op does."""
    options = ("all_gather_scaled_matmul", gather_dim, backend, chunks, budget, gemm, *out_dtypes, *use_fast_accum)
    key = key_of(options, ((A, A_scale), Bs, B_scales, biases, result_scales))
    of, call = objects.known(group_name, A.device, key, ranks)
    if call is None:
        how = How(ranks, backend, chunks, budget, gemm)
        dim = _check_gathered(A, Bs, B_scales, gather_dim, biases, result_scales, use_fast_accum)
        ops.check_how(A.device, *how[1:])
        objects.check_ranks(group_name, ranks)
        kind = _kind_of_a(A, A_scale, dim, ranks)
        types = _types_of_gather(A, Bs, kind, B_scales, biases, result_scales, out_dtypes, gemm)
        call = _ScaledGather(A, Bs, biases, dim, types, how, group_name, kind, use_fast_accum)
    run = call.tensors(A, Bs, A_scale, B_scales, biases, result_scales)
    return ops.gathered(of, call, key, group_name, run)


def _types_of_gather(A, Bs, kind, B_scales, biases, result_scales, out_dtypes, gemm):
    _check_devices(A, *B_scales, *result_scales)
    one_value = kind == "one" and _are_one(*B_scales) and not any(one is not None for one in result_scales)
    types = _types(A, Bs, _dtypes(out_dtypes), gemm, one_value)
    for bias, B in zip(biases, Bs):
        if bias is not None:
            shapes.check_bias(bias, B, DTYPE_OF[types[2]])
    return types


def _check_gathered(A, Bs, B_scales, gather_dim, biases, result_scales, use_fast_accum):
    dim = shapes.dimension(A, gather_dim, "gather_dim")
    if shapes.is_last(A, dim):
        raise UsageError("products with scales are of rows that are gathered: gather_dim must not be the last")
    _each(Bs, B_scales=B_scales, biases=biases, result_scales=result_scales, use_fast_accum=use_fast_accum)
    shapes.check_weights(A, Bs, [], A.shape[-1])
    _check_b_scales(Bs, B_scales)
    return dim


def _fake_all_gather_scaled_matmul(
    A, Bs, A_scale, B_scales, gather_dim, group_name, biases, result_scales, out_dtypes, use_fast_accum, *,
    ranks, backend="auto", chunks=0, budget=0, gemm="auto",
):  # fmt: skip
    dim = _check_gathered(A, Bs, B_scales, gather_dim, biases, result_scales, use_fast_accum)
    kind = _kind_of_a(A, A_scale, dim, ranks)
    _types_of_gather(A, Bs, kind, B_scales, biases, result_scales, out_dtypes, gemm)
    widths = [B.shape[1] for B in Bs]
    whole, outs, leading = shapes.gathered_results(A, widths, _dtypes(out_dtypes), dim, ranks)
    return shapes.with_dimensions(whole, leading, dim), [shapes.with_dimensions(one, leading, dim) for one in outs]


def _check_reduced(A, B, B_scale, reduce_op, scatter_dim, rows_dim, ranks, output_shape):
    """The shape of the product, and of the result."""
    if reduce_op not in ("sum", "avg"):
        raise UsageError(f"products are added up by sum or avg, not by {reduce_op!r}")
    dim = shapes.dimension(A, rows_dim, "scatter_dim_after_maybe_reshape")
    if shapes.is_last(A, dim):
        raise UsageError("products with scales are scattered by rows: scatter_dim must not be the last")
    shapes.check_weights(A, [B], [], A.shape[-1])
    _check_b_scales([B], [B_scale])
    whole = [*A.shape[:-1], B.shape[1]] if output_shape is None else list(output_shape)
    rows, given = (functools.reduce(operator.mul, one[:-1], 1) for one in (whole, list(A.shape)))
    if not 0 <= scatter_dim < len(whole) - 1 or whole[-1] != B.shape[1] or rows != given:
        raise UsageError(
            f"a product of {list(A.shape)} and {list(B.shape)} has not shape {whole} with rows along {scatter_dim}"
        )
    result = list(whole)
    result[scatter_dim] = shapes.divided(whole[scatter_dim], ranks, f"dimension {scatter_dim} of the result")
    return whole, result


def _check_a_scale(A, scale):
    if scale.numel() != 1 and list(scale.shape) != [*A.shape[:-1], 1]:
        raise UsageError(f"a scale of A has one value, or shape {[*A.shape[:-1], 1]}; this one {list(scale.shape)}")


def _types_of_sum(A, B, A_scale, B_scale, bias, result_scale, out_dtype, gemm):
    _check_devices(A, A_scale, B_scale, result_scale)
    _check_a_scale(A, A_scale)
    one_value = _are_one(A_scale, B_scale) and result_scale is None
    types = _types(A, [B], [_dtypes([out_dtype])[0] or torch.bfloat16], gemm, one_value)
    if bias is not None:
        shapes.check_bias(bias, B, DTYPE_OF[types[2]])
    return types


class _ScaledSum(Sum):
    """A product with scales, and a part of a sum over ranks of it. `whole`: its shape before it is scattered."""

    by_addresses = False

    def __init__(
        self, A: Tensor, B: Tensor, bias: Optional[Tensor], mean: bool, dim: int, types: Any, how: How,
        whole: Sequence[int], fast: bool,
    ):  # fmt: skip
        self._whole, self._same, self._fast = whole, list(A.shape[:-1]) == list(whole[:-1]), [fast]
        super().__init__("gemm_reducescatter", self._rows(A), B, bias, mean, dim, types, how)

    def _rows(self, tensor):
        """In the shape of the result, except for the columns."""
        return tensor if self._same else tensor.reshape(*self._whole[:-1], tensor.shape[-1])

    def tensors(
        self, A: Tensor, B: Tensor, A_scale: Tensor, B_scale: Tensor, result_scale: Optional[Tensor],
        bias: Optional[Tensor],
    ) -> objects.Run:  # fmt: skip
        """Those of a run, with memory for its result."""
        run = super().tensors(self._rows(A), B, bias)
        if A_scale.numel() != 1:
            A_scale = shapes.rows_of(self._rows(A_scale), self._dim).contiguous()
        a = (run.a.data_ptr(), A.shape[-1])
        return run.with_scales(Scaled(A_scale.float(), [B_scale.float()], [result_scale], self._fast, a, []))

    def result(self, run: objects.Run, bias: Optional[Tensor]) -> Tensor:
        """What the op gives."""
        return super().result(run, bias).contiguous()


def scaled_matmul_reduce_scatter(
    A: Tensor, B: Tensor, A_scale: Tensor, B_scale: Tensor, reduce_op: str, orig_scatter_dim: int,
    scatter_dim_after_maybe_reshape: int, group_name: str, output_shape: Optional[Sequence[int]] = None,
    bias: Optional[Tensor] = None, result_scale: Optional[Tensor] = None, out_dtype: Any = None,
    use_fast_accum: bool = False, *, ranks: int, backend: str = "auto", chunks: int = 0, budget: int = 0,
    gemm: str = "auto",
) -> Tensor:  # fmt: skip
    """What the op does."""
    dims = orig_scatter_dim, scatter_dim_after_maybe_reshape
    options = ("scaled_matmul_reduce_scatter", reduce_op, *dims, backend, chunks, budget, gemm, out_dtype,
               use_fast_accum, *options_of(output_shape))  # fmt: skip
    key = key_of(options, ((A, B, A_scale, B_scale, result_scale, bias),))
    of, call = objects.known(group_name, A.device, key, ranks)
    if call is None:
        how = How(ranks, backend, chunks, budget, gemm)
        whole = _check_reduced(A, B, B_scale, reduce_op, *dims, ranks, output_shape)[0]
        ops.check_how(A.device, *how[1:])
        types = _types_of_sum(A, B, A_scale, B_scale, bias, result_scale, out_dtype, gemm)
        objects.check_ranks(group_name, ranks)
        call = _ScaledSum(A, B, bias, reduce_op == "avg", dims[0], types, how, whole, use_fast_accum)
    run = call.tensors(A, B, A_scale, B_scale, result_scale, bias)
    return ops.reduced(of, call, key, group_name, run, bias)


def _fake_scaled_matmul_reduce_scatter(
    A, B, A_scale, B_scale, reduce_op, orig_scatter_dim, scatter_dim_after_maybe_reshape, group_name,
    output_shape=None, bias=None, result_scale=None, out_dtype=None, use_fast_accum=False, *,
    ranks, backend="auto", chunks=0, budget=0, gemm="auto",
):  # fmt: skip
    dims = orig_scatter_dim, scatter_dim_after_maybe_reshape
    result = _check_reduced(A, B, B_scale, reduce_op, *dims, ranks, output_shape)[1]
    types = _types_of_sum(A, B, A_scale, B_scale, bias, result_scale, out_dtype, gemm)
    return A.new_empty(result, dtype=DTYPE_OF[types[2]])


ops.define(
    "all_gather_scaled_matmul",
    "Tensor A, Tensor[] Bs, Tensor A_scale, Tensor[] B_scales, int gather_dim, str group_name, Tensor?[] biases,"
    " Tensor?[] result_scales, ScalarType?[] out_dtypes, bool[] use_fast_accum, *, int ranks",
    "(Tensor, Tensor[])", all_gather_scaled_matmul, _fake_all_gather_scaled_matmul,
)  # fmt: skip
ops.define(
    "scaled_matmul_reduce_scatter",
    "Tensor A, Tensor B, Tensor A_scale, Tensor B_scale, str reduce_op, int orig_scatter_dim,"
    " int scatter_dim_after_maybe_reshape, str group_name, SymInt[]? output_shape=None, Tensor? bias=None,"
    " Tensor? result_scale=None, ScalarType? out_dtype=None, bool use_fast_accum=False, *, int ranks",
    "Tensor", scaled_matmul_reduce_scatter, _fake_scaled_matmul_reduce_scatter,
)  # fmt: skip
eager.offer("all_gather_scaled_matmul", all_gather_scaled_matmul)
eager.offer("scaled_matmul_reduce_scatter", scaled_matmul_reduce_scatter)
