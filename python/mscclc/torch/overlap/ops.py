"""torch.ops.mscclc.all_gather_matmul, matmul_reduce_scatter, matmul_all_reduce, all_to_all_matmul: what they do.

mscclc/ops.py has the functions that programs call. Ops are given the number of ranks, on which shapes depend: compiled
code that is kept must be of as many. Results have the shapes and strides of torch.ops.symm_mem's.
"""

from typing import Any, List, Optional, Sequence, Tuple

import torch

from ..._overlap import Shape
from ...errors import UsageError
from . import objects, shapes
from .objects import Run

TYPES = (torch.float32, torch.float16, torch.bfloat16)
_OPTIONS = 'str backend="auto", int chunks=0, str gemm="torch"'
_MOST_CHUNKS = 64

Gathered = Tuple[Optional[torch.Tensor], List[torch.Tensor]]


def _checked(A, backend, chunks, gemm):
    """The library's name of A's type."""
    objects.check_options(A.device, backend, gemm)
    if not 0 <= chunks <= _MOST_CHUNKS:
        raise UsageError(f"chunks is {chunks}; allowed are 1 to {_MOST_CHUNKS}, and 0: as measured")
    return objects.type_name(A, TYPES, "A")


def weights_ready(Bs: Sequence[torch.Tensor]) -> Tuple[List[torch.Tensor], bool]:
    """Weights that lie in one way, as the library takes them: all as they are in memory, or all by rows."""
    made = [shapes.ready_weight(B) for B in Bs]
    if len({transposed for _, transposed in made}) == 1:
        return [one for one, _ in made], made[0][1]
    return [shapes.ready(B) for B in Bs], False


def run_gathered(group: str, gemm: str, run: Run, shape: Shape) -> None:
    """Runs what gathers A, leaving out weights without columns."""
    some = [i for i, n in enumerate(shape.n) if n]
    if shape.m == 0 or not some:
        if run.gathered is not None and run.gathered.numel():
            raise UsageError(f"all weights have 0 columns, and nothing is multiplied: use {_PLAIN[shape.kind]}")
        return
    if shape.k == 0:
        for i in some:
            run.out[i].copy_(run.bias[i].expand_as(run.out[i]) if run.bias else run.out[i].zero_())
        return
    run = run._replace(
        a=shapes.ready(run.a), b=[run.b[i] for i in some], out=[run.out[i] for i in some],
        bias=[shapes.ready(run.bias[i]) for i in some] if run.bias else (),
    )  # fmt: skip
    objects.run(group, shape._replace(n=tuple(shape.n[i] for i in some)), gemm, run)


_PLAIN = {"allgather_gemm": "torch.ops.mscclc.all_gather", "alltoall_gemm": "torch.ops.mscclc.all_to_all"}


def _all_gather_matmul(
    A, Bs, gather_dim, group_name, biases, *, ranks, return_A=True, backend="auto", chunks=0, gemm="torch"
) -> Gathered:
    dim = shapes.dimension(A, gather_dim, "gather_dim")
    type = _checked(A, backend, chunks, gemm)
    objects.check_ranks(group_name, ranks)
    if shapes.is_last(A, dim):
        return _gather_columns(A, Bs, group_name, biases, return_A, ranks)
    shapes.check_weights(A, Bs, biases, A.shape[-1])
    whole, outs, leading = shapes.gathered_results(A, [B.shape[1] for B in Bs], [A.dtype] * len(Bs), dim, ranks)
    weights, transposed = weights_ready(Bs)
    shape = Shape("allgather_gemm", whole.shape[0], whole.shape[1], tuple(B.shape[1] for B in Bs), type, type, type,
                  transposed, bool(biases), None, backend, chunks)  # fmt: skip
    rows = shapes.rows_of(A, dim)
    run_gathered(group_name, gemm, Run(rows, weights, outs, biases, whole if return_A else None), shape)
    found = [shapes.with_dimensions(one, leading, dim) for one in outs]
    return shapes.with_dimensions(whole, leading, dim) if return_A else None, found


def _fake_all_gather_matmul(
    A, Bs, gather_dim, group_name, biases, *, ranks, return_A=True, backend="auto", chunks=0, gemm="torch"
) -> Gathered:
    dim = shapes.dimension(A, gather_dim, "gather_dim")
    if shapes.is_last(A, dim):
        shapes.check_weights(A, Bs, biases, A.shape[-1] * ranks)
        whole = A.new_empty(*A.shape[:-1], A.shape[-1] * ranks)
        return whole if return_A else None, [A.new_empty(*A.shape[:-1], B.shape[1]) for B in Bs]
    shapes.check_weights(A, Bs, biases, A.shape[-1])
    whole, outs, leading = shapes.gathered_results(A, [B.shape[1] for B in Bs], [A.dtype] * len(Bs), dim, ranks)
    found = [shapes.with_dimensions(one, leading, dim) for one in outs]
    return shapes.with_dimensions(whole, leading, dim) if return_A else None, found


def _gather_columns(A, Bs, group_name, biases, return_A, ranks):
    """Columns are gathered, then multiplied: every product needs all of them."""
    shapes.check_weights(A, Bs, biases, A.shape[-1] * ranks)
    parts = objects.exchange("allgather", group_name, shapes.ready(A).unsqueeze(0))
    whole = torch.cat(list(parts), -1)
    rows = whole.flatten(0, -2)
    found = [torch.addmm(bias, rows, B) for B, bias in zip(Bs, biases)] if biases else [torch.mm(rows, B) for B in Bs]
    return whole if return_A else None, [one.view(*A.shape[:-1], -1) for one in found]


def _all_to_all_matmul(
    A, Bs, group_name, biases, *, ranks, return_A=True, backend="auto", chunks=0, gemm="torch"
) -> Gathered:
    shapes.dimension(A, 0, "dimension")
    type = _checked(A, backend, chunks, gemm)
    objects.check_ranks(group_name, ranks)
    shapes.divided(A.shape[0], ranks, f"dimension 0 of A, of shape {list(A.shape)},")
    shapes.check_weights(A, Bs, biases, A.shape[-1])
    whole, outs, leading = shapes.gathered_results(A, [B.shape[1] for B in Bs], [A.dtype] * len(Bs), 0, 1)
    weights, transposed = weights_ready(Bs)
    shape = Shape("alltoall_gemm", whole.shape[0], whole.shape[1], tuple(B.shape[1] for B in Bs), type, type, type,
                  transposed, bool(biases), None, backend, chunks)  # fmt: skip
    rows = A.flatten(0, -2)
    run_gathered(group_name, gemm, Run(rows, weights, outs, biases, whole if return_A else None), shape)
    found = [shapes.with_dimensions(one, leading, 0) for one in outs]
    return shapes.with_dimensions(whole, leading, 0) if return_A else None, found


def _fake_all_to_all_matmul(
    A, Bs, group_name, biases, *, ranks, return_A=True, backend="auto", chunks=0, gemm="torch"
) -> Gathered:
    shapes.dimension(A, 0, "dimension")
    shapes.divided(A.shape[0], ranks, f"dimension 0 of A, of shape {list(A.shape)},")
    shapes.check_weights(A, Bs, biases, A.shape[-1])
    outs = [A.new_empty(*A.shape[:-1], B.shape[1]) for B in Bs]
    return A.new_empty(A.shape) if return_A else None, outs


def _reduction(reduce_op):
    if reduce_op not in ("sum", "avg"):
        raise UsageError(f"products are added up by sum or avg, not by {reduce_op!r}")


def run_reduced(group: str, gemm: str, run: Run, shape: Shape) -> None:
    """Runs what adds up products; a sum of nothing is 0, or the bias."""
    out = run.out[0]
    if shape.m == 0 or shape.n[0] == 0:
        return
    if shape.k == 0:
        out.zero_()
        if run.bias:
            out.add_(run.bias[0])
        return
    objects.run(group, shape, gemm, run)


def _matmul_reduce_scatter(
    A, B, reduce_op, scatter_dim, group_name, bias, *, ranks, backend="auto", chunks=0, gemm="torch"
) -> torch.Tensor:
    dim = shapes.dimension(A, scatter_dim, "scatter_dim")
    type = _checked(A, backend, chunks, gemm)
    objects.check_ranks(group_name, ranks)
    leading = _check_scatter(A, B, reduce_op, dim, ranks, bias)
    columns = shapes.is_last(A, dim)
    # Columns that are scattered are rows of the product of both transposed, which lies so already.
    a, b = (B.t(), A.flatten(0, -2).t()) if columns else (shapes.rows_of(A, dim), B)
    later = bias is not None and (columns or reduce_op == "avg")
    weight, transposed = shapes.ready_weight(b)
    shape = Shape("gemm_reducescatter", a.shape[0], a.shape[1], (b.shape[1],), type, type, type, transposed,
                  bias is not None and not later, None, backend, chunks)  # fmt: skip
    out = A.new_empty(a.shape[0] // ranks, b.shape[1])
    given = [shapes.ready(bias)] if shape.bias else ()
    run_reduced(group_name, gemm, Run(shapes.ready(a), [weight], [out], given), shape)
    if reduce_op == "avg":
        out.div_(ranks)
    if columns:
        out = out.t().contiguous()
    if later:
        out.add_(bias)
    return out.view(*leading, -1) if columns else shapes.with_dimensions(out, leading, dim)


def _check_scatter(A, B, reduce_op, dim, ranks, bias):
    """The leading dimensions of the result, the scattered one first unless it is that of the columns."""
    _reduction(reduce_op)
    shapes.check_weights(A, [B], [], A.shape[-1])
    if shapes.is_last(A, dim):
        part = shapes.divided(B.shape[1], ranks, f"the columns of B, of shape {list(B.shape)}: each")
        if bias is not None and list(bias.shape) != [part]:
            raise UsageError(f"a bias must have {part} values, one for each column of a rank; this one {bias.shape[0]}")
        return list(A.shape[:-1])
    size = shapes.divided(A.shape[dim], ranks, f"dimension {dim} of A, of shape {list(A.shape)},")
    if bias is not None:
        shapes.check_bias(bias, B, A.dtype)
    return shapes.shape_of_rows(A, dim, size)


def _fake_matmul_reduce_scatter(
    A, B, reduce_op, scatter_dim, group_name, bias, *, ranks, backend="auto", chunks=0, gemm="torch"
) -> torch.Tensor:
    dim = shapes.dimension(A, scatter_dim, "scatter_dim")
    leading = _check_scatter(A, B, reduce_op, dim, ranks, bias)
    if shapes.is_last(A, dim):
        return A.new_empty(*leading, B.shape[1] // ranks)
    return A.new_empty(*leading, B.shape[1]).movedim(0, dim)


def _matmul_all_reduce(
    A, B, reduce_op, group_name, bias, *, ranks, replicated=False, backend="auto", chunks=0, gemm="torch"
) -> torch.Tensor:
    shapes.dimension(A, 0, "dimension")
    _reduction(reduce_op)
    type = _checked(A, backend, chunks, gemm)
    objects.check_ranks(group_name, ranks)
    shapes.check_weights(A, [B], [] if bias is None else [bias], A.shape[-1])
    rows, (weight, transposed) = A.flatten(0, -2), shapes.ready_weight(B)
    later = bias is not None and reduce_op == "avg"
    shape = Shape("gemm_allreduce", rows.shape[0], rows.shape[1], (B.shape[1],), type, type, type, transposed,
                  bias is not None and not later, None, backend, chunks)  # fmt: skip
    out = A.new_empty(rows.shape[0], B.shape[1])
    given = [shapes.ready(bias)] if shape.bias else ()
    run_reduced(group_name, gemm, Run(shapes.ready(rows), [weight], [out], given), shape)
    if reduce_op == "avg":
        out.div_(ranks)
    if later:
        out.add_(bias)
    return out.view(*A.shape[:-1], B.shape[1])


def _fake_matmul_all_reduce(
    A, B, reduce_op, group_name, bias, *, ranks, replicated=False, backend="auto", chunks=0, gemm="torch"
) -> torch.Tensor:
    shapes.dimension(A, 0, "dimension")
    _reduction(reduce_op)
    shapes.check_weights(A, [B], [] if bias is None else [bias], A.shape[-1])
    return A.new_empty(*A.shape[:-1], B.shape[1])


# Name, arguments before options, result, what it does, and what it gives when it is traced.
_OPS: List[Any] = [
    (
        "all_gather_matmul",
        "Tensor A, Tensor[] Bs, int gather_dim, str group_name, Tensor[] biases, *, int ranks, bool return_A=True",
        "(Tensor?, Tensor[])", _all_gather_matmul, _fake_all_gather_matmul,
    ),
    (
        "all_to_all_matmul", "Tensor A, Tensor[] Bs, str group_name, Tensor[] biases, *, int ranks, bool return_A=True",
        "(Tensor?, Tensor[])", _all_to_all_matmul, _fake_all_to_all_matmul,
    ),
    (
        "matmul_reduce_scatter",
        "Tensor A, Tensor B, str reduce_op, int scatter_dim, str group_name, Tensor? bias, *, int ranks",
        "Tensor", _matmul_reduce_scatter, _fake_matmul_reduce_scatter,
    ),
    (
        "matmul_all_reduce",
        "Tensor A, Tensor B, str reduce_op, str group_name, Tensor? bias, *, int ranks, bool replicated=False",
        "Tensor", _matmul_all_reduce, _fake_matmul_all_reduce,
    ),
]  # fmt: skip

library = torch.library.Library("mscclc", "FRAGMENT")


def define(name: str, arguments: str, result: str, body: Any, fake: Any) -> None:
    """Defines an op with the options that all have."""
    # Inductor must give the strides that programs do: others would be copied.
    library.define(f"{name}({arguments}, {_OPTIONS}) -> {result}", tags=[torch.Tag.needs_fixed_stride_order])
    for key in ("CPU", "CUDA"):
        library.impl(name, body, key)
    torch.library.register_fake(f"mscclc::{name}", fake, lib=library)


def _exchange(rows, kind, group_name, ranks):
    objects.check_ranks(group_name, ranks)
    return objects.exchange(kind, group_name, shapes.ready(rows))


def _fake_exchange(rows, kind, group_name, ranks):
    first = rows.shape[0]
    first = {"allgather": first * ranks, "reducescatter": first // ranks}.get(kind, first)
    return rows.new_empty(first, *rows.shape[1:])


for _row in _OPS:
    define(*_row)
# A collective alone, for gradients, by the communicator that the other ops have.
library.define("exchange_rows(Tensor rows, str kind, str group_name, int ranks) -> Tensor")
for _key in ("CPU", "CUDA"):
    library.impl("exchange_rows", _exchange, _key)
torch.library.register_fake("mscclc::exchange_rows", _fake_exchange, lib=library)
