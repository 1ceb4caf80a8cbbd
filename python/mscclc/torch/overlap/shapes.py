"""Tensors of any number of dimensions as the rows that ranks exchange, and what their shapes must be.

One function says for the real op and for its fake what the results look like.
"""

from typing import Any, List, Sequence, Tuple

import torch

from ...errors import UsageError
from ..dtypes import EIGHT_BITS


def dimension(tensor: torch.Tensor, dim: int, what: str) -> int:
    """A dimension counted from the front. UsageError: the tensor is no matrix, or has no such dimension."""
    if tensor.dim() < 2:
        raise UsageError(f"A is a matrix, or has more dimensions; this one has shape {list(tensor.shape)}")
    if not -tensor.dim() <= dim < tensor.dim():
        raise UsageError(f"{what} is {dim}, and A of shape {list(tensor.shape)} has {tensor.dim()} dimensions")
    return dim % tensor.dim()


def check_weights(A: torch.Tensor, Bs: Sequence[torch.Tensor], biases: Sequence[torch.Tensor], columns: Any) -> None:
    """Of `columns` rows each, all of one type and device, with a bias for each or none."""
    if not Bs:
        raise UsageError("there is no B: one weight at least is multiplied")
    for B in Bs:
        if B.dim() != 2 or B.shape[0] != columns:
            raise UsageError(f"B must be a matrix of {columns} rows, as A has columns; its shape is {list(B.shape)}")
        if B.device != A.device:
            raise UsageError(f"A is on {A.device}, a B on {B.device}")
        if B.dtype != A.dtype and not {A.dtype, B.dtype} <= set(EIGHT_BITS):
            raise UsageError(f"A is of {A.dtype}, a B of {B.dtype}: they must be of one type")
    if biases and len(biases) != len(Bs):
        raise UsageError(f"there are {len(biases)} biases for {len(Bs)} weights; one each, or none")
    for B, bias in zip(Bs, biases):
        check_bias(bias, B, B.dtype)


def check_bias(bias: torch.Tensor, B: torch.Tensor, dtype: torch.dtype) -> None:
    """UsageError: it is not one value for each column of B."""
    if list(bias.shape) != [B.shape[1]] or bias.dtype != dtype or bias.device != B.device:
        raise UsageError(
            f"a bias must have {B.shape[1]} values of {dtype} on {B.device}; this one is of shape"
            f" {list(bias.shape)}, {bias.dtype}, on {bias.device}"
        )


def is_last(tensor: torch.Tensor, dim: int) -> bool:
    """Whether a dimension is that of the columns."""
    return dim == tensor.dim() - 1


def rows_of(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    """All but the columns as one dimension, `dim` first."""
    return tensor.movedim(dim, 0).flatten(0, -2)


def shape_of_rows(tensor: torch.Tensor, dim: int, size: Any) -> List[Any]:
    """The dimensions of rows_of(), if dimension `dim` had `size`."""
    moved = list(tensor.shape[:-1])
    del moved[dim]
    return [size, *moved]


def with_dimensions(rows: torch.Tensor, leading: Sequence[Any], dim: int) -> torch.Tensor:
    """The reverse of rows_of()."""
    return rows.view(*leading, rows.shape[-1]).movedim(0, dim)


def divided(size: Any, ranks: int, what: str) -> Any:
    """A rank's part. UsageError: there is a rest."""
    if size % ranks != 0:
        raise UsageError(f"{what} has {size}, which is no multiple of the {ranks} ranks")
    return size // ranks


def gathered_results(
    A: torch.Tensor, widths: Sequence[Any], dtypes: Sequence[torch.dtype], dim: int, ranks: int
) -> Tuple[torch.Tensor, List[torch.Tensor], List[Any]]:
    """Memory for A of all ranks as rows, for the products, and the leading dimensions of both."""
    leading = shape_of_rows(A, dim, A.shape[dim] * ranks)
    count = 1
    for size in leading:
        count = count * size
    outs = [A.new_empty(count, width, dtype=dtype) for width, dtype in zip(widths, dtypes)]
    return A.new_empty(count, A.shape[-1]), outs, leading


def ready(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor where the library can take it: without gaps, at a multiple of 16 bytes."""
    tensor = tensor.detach().contiguous()
    return tensor.clone() if tensor.data_ptr() % 16 else tensor
