"""torch.ops.mscclc.all_gather_matmul, matmul_reduce_scatter, matmul_all_reduce, all_to_all_matmul: what they do.

mscclc/ops.py has the functions that programs call. Ops are given the number of ranks, on which shapes depend: compiled
code that is kept must be of as many. Results have the shapes and strides of torch.ops.symm_mem's.
"""

from typing import Any, List, Optional, Sequence, Tuple

import torch

from ..._overlap import Shape
from ...errors import UsageError
from ..dtypes import WIDE
from . import eager, objects, shapes
from .calls import Gather, How, Sum, key_of
from .gemm import multiply
from .objects import Run

_OPTIONS = 'str backend="auto", int chunks=0, int budget=0, str gemm="auto"'
_MOST_CHUNKS, _MOST_BUDGET = 64, (1 << 32) - 1

Tensor, Tensors = torch.Tensor, Sequence[torch.Tensor]
Gathered = Tuple[Optional[Tensor], List[Tensor]]


def check_how(device: torch.device, backend: str, chunks: int, budget: int, gemm: str) -> None:
    """UsageError: an option that all ops have is none."""
    objects.check_options(device, backend, gemm)
    if not 0 <= chunks <= _MOST_CHUNKS:
        raise UsageError(f"chunks is {chunks}; allowed are 1 to {_MOST_CHUNKS}, and 0: as measured")
    if not 0 <= budget <= _MOST_BUDGET:
        raise UsageError(f"budget is {budget}; allowed are 1 to {_MOST_BUDGET} multiprocessors, and 0: as measured")


def _checked(A, group, how):
    """The library's names of the types, which are all A's."""
    check_how(A.device, *how[1:])
    type = objects.type_name(A, WIDE, "A")
    objects.check_ranks(group, how.ranks)
    return type, type, type


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
        scaled=None if run.scaled is None else run.scaled.of_weights(some),
    )  # fmt: skip
    objects.run(group, shape._replace(n=tuple(shape.n[i] for i in some)), gemm, run)


_PLAIN = {"allgather_gemm": "torch.ops.mscclc.all_gather", "alltoall_gemm": "torch.ops.mscclc.all_to_all"}


def all_gather_matmul(
    A: Tensor, Bs: Tensors, gather_dim: int, group_name: str, biases: Tensors, *, ranks: int, return_A: bool = True,
    backend: str = "auto", chunks: int = 0, budget: int = 0, gemm: str = "auto",
) -> Gathered:  # fmt: skip
    """What the op does."""
    options = ("all_gather_matmul", gather_dim, return_A, backend, chunks, budget, gemm)
    key = key_of(options, ((A,), Bs, biases))
    of, call = objects.known(group_name, A.device, key, ranks)
    if call is None:
        how = How(ranks, backend, chunks, budget, gemm)
        dim = shapes.dimension(A, gather_dim, "gather_dim")
        types = _checked(A, group_name, how)
        if shapes.is_last(A, dim):
            return _gather_columns(A, Bs, group_name, biases, return_A, ranks)
        shapes.check_weights(A, Bs, biases, A.shape[-1])
        call = Gather("allgather_gemm", A, Bs, biases, dim, types, how)
    return gathered(of, call, key, group_name, call.tensors(A, Bs, biases, return_A))


def gathered(of: Any, call: Gather, key: Any, group: str, run: Run) -> Gathered:
    """Runs a call, and keeps it, if it is not known."""
    if call.empty:
        run_gathered(group, call.place.gemm, run, call.place.shape)
    else:
        _run(of, call, key, group, run)
    return call.results(run)


def _run(of, call, key, group, run):
    if of is not None:
        of.run(call.place, run)
        return
    of = objects.session(group, run.a.device)
    of.run(call.place, run)
    of.keep(key, call)


def _fake_all_gather_matmul(
    A, Bs, gather_dim, group_name, biases, *, ranks, return_A=True, backend="auto", chunks=0, budget=0, gemm="auto"
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
    outs = [A.new_empty(*A.shape[:-1], B.shape[1]) for B in Bs]
    for B, bias, out in zip(Bs, biases or [None] * len(Bs), outs):
        multiply(whole.flatten(0, -2), B, out.flatten(0, -2), bias)
    return whole if return_A else None, outs


def all_to_all_matmul(
    A: Tensor, Bs: Tensors, group_name: str, biases: Tensors, *, ranks: int, return_A: bool = True,
    backend: str = "auto", chunks: int = 0, budget: int = 0, gemm: str = "auto",
) -> Gathered:  # fmt: skip
    """What the op does."""
    options = ("all_to_all_matmul", return_A, backend, chunks, budget, gemm)
    key = key_of(options, ((A,), Bs, biases))
    of, call = objects.known(group_name, A.device, key, ranks)
    if call is None:
        how = How(ranks, backend, chunks, budget, gemm)
        shapes.dimension(A, 0, "dimension")
        types = _checked(A, group_name, how)
        shapes.divided(A.shape[0], ranks, f"dimension 0 of A, of shape {list(A.shape)},")
        shapes.check_weights(A, Bs, biases, A.shape[-1])
        call = Gather("alltoall_gemm", A, Bs, biases, 0, types, how)
    return gathered(of, call, key, group_name, call.tensors(A, Bs, biases, return_A))


def _fake_all_to_all_matmul(
    A, Bs, group_name, biases, *, ranks, return_A=True, backend="auto", chunks=0, budget=0, gemm="auto"
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


def matmul_reduce_scatter(
    A: Tensor, B: Tensor, reduce_op: str, scatter_dim: int, group_name: str, bias: Optional[Tensor], *, ranks: int,
    backend: str = "auto", chunks: int = 0, budget: int = 0, gemm: str = "auto",
) -> Tensor:  # fmt: skip
    """What the op does."""
    options = ("matmul_reduce_scatter", reduce_op, scatter_dim, backend, chunks, budget, gemm)
    key = key_of(options, ((A, B, bias),))
    of, call = objects.known(group_name, A.device, key, ranks)
    if call is None:
        how = How(ranks, backend, chunks, budget, gemm)
        dim = shapes.dimension(A, scatter_dim, "scatter_dim")
        types = _checked(A, group_name, how)
        _check_scatter(A, B, reduce_op, dim, ranks, bias)
        call = Sum("gemm_reducescatter", A, B, bias, reduce_op == "avg", dim, types, how)
    return reduced(of, call, key, group_name, call.tensors(A, B, bias), bias)


def reduced(of: Any, call: Sum, key: Any, group: str, run: Run, bias: Optional[Tensor]) -> Tensor:
    """Runs a call, and keeps it, if it is not known."""
    if call.empty:
        run_reduced(group, call.place.gemm, run, call.place.shape)
    else:
        _run(of, call, key, group, run)
    return call.result(run, bias)


def _check_scatter(A, B, reduce_op, dim, ranks, bias):
    """The leading dimensions of the result, the scattered one first unless it is that of the columns."""
    _reduction(reduce_op)
    shapes.check_weights(A, [B], [], A.shape[-1])
    if shapes.is_last(A, dim):
        part = shapes.divided(B.shape[1], ranks, f"the columns of B, of shape {list(B.shape)}: each")
        if bias is not None:
            shapes.check_bias(bias, B[:, :part], A.dtype)
        return list(A.shape[:-1])
    size = shapes.divided(A.shape[dim], ranks, f"dimension {dim} of A, of shape {list(A.shape)},")
    if bias is not None:
        shapes.check_bias(bias, B, A.dtype)
    return shapes.shape_of_rows(A, dim, size)


def _fake_matmul_reduce_scatter(
    A, B, reduce_op, scatter_dim, group_name, bias, *, ranks, backend="auto", chunks=0, budget=0, gemm="auto"
) -> torch.Tensor:
    dim = shapes.dimension(A, scatter_dim, "scatter_dim")
    leading = _check_scatter(A, B, reduce_op, dim, ranks, bias)
    if shapes.is_last(A, dim):
        return A.new_empty(*leading, B.shape[1] // ranks)
    return A.new_empty(*leading, B.shape[1]).movedim(0, dim)


def matmul_all_reduce(
    A: Tensor, B: Tensor, reduce_op: str, group_name: str, bias: Optional[Tensor], *, ranks: int,
    replicated: bool = False, backend: str = "auto", chunks: int = 0, budget: int = 0, gemm: str = "auto",
) -> Tensor:  # fmt: skip
    """What the op does."""
    options = ("matmul_all_reduce", reduce_op, replicated, backend, chunks, budget, gemm)
    key = key_of(options, ((A, B, bias),))
    of, call = objects.known(group_name, A.device, key, ranks)
    if call is None:
        how = How(ranks, backend, chunks, budget, gemm)
        shapes.dimension(A, 0, "dimension")
        _reduction(reduce_op)
        types = _checked(A, group_name, how)
        shapes.check_weights(A, [B], [] if bias is None else [bias], A.shape[-1])
        call = Sum("gemm_allreduce", A, B, bias, reduce_op == "avg", 0, types, how)
    return reduced(of, call, key, group_name, call.tensors(A, B, bias), bias)


def _fake_matmul_all_reduce(
    A, B, reduce_op, group_name, bias, *, ranks, replicated=False, backend="auto", chunks=0, budget=0, gemm="auto"
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
        "(Tensor?, Tensor[])", all_gather_matmul, _fake_all_gather_matmul,
    ),
    (
        "all_to_all_matmul", "Tensor A, Tensor[] Bs, str group_name, Tensor[] biases, *, int ranks, bool return_A=True",
        "(Tensor?, Tensor[])", all_to_all_matmul, _fake_all_to_all_matmul,
    ),
    (
        "matmul_reduce_scatter",
        "Tensor A, Tensor B, str reduce_op, int scatter_dim, str group_name, Tensor? bias, *, int ranks",
        "Tensor", matmul_reduce_scatter, _fake_matmul_reduce_scatter,
    ),
    (
        "matmul_all_reduce",
        "Tensor A, Tensor B, str reduce_op, str group_name, Tensor? bias, *, int ranks, bool replicated=False",
        "Tensor", matmul_all_reduce, _fake_matmul_all_reduce,
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
    eager.offer(_row[0], _row[3])
# A collective alone, for gradients, by the communicator that the other ops have.
library.define("exchange_rows(Tensor rows, str kind, str group_name, int ranks) -> Tensor")
for _key in ("CPU", "CUDA"):
    library.impl("exchange_rows", _exchange, _key)
torch.library.register_fake("mscclc::exchange_rows", _fake_exchange, lib=library)
