"""Products of matrices that overlap with collectives, for PyTorch.

    from mscclc import ops

    _, (q, k, v) = ops.all_gather_matmul(x, [wq, wk, wv], 0, group, return_A=False)
    y = ops.matmul_reduce_scatter(attention(q, k, v), wo, "sum", 0, group)

The arguments are those of torch.ops.symm_mem.fused_all_gather_matmul and so on, and then: `backend` (backends() lists
them; "auto" takes what was measured), `chunks` of each rank's rows that are exchanged one after the other, `budget`,
the multiprocessors that a plan may hold and products leave free (0 of either: as measured), and `gemm`: "torch"
multiplies by torch.mm, whose bits results then have, "own" by the library (cuBLASLt on GPUs), which costs an eager call
less; "auto" is that for most of f16 and bf16 on GPUs, and torch else. A group is a ProcessGroup or its name, of any
backend. All ranks of a group make the same calls in the same order. Types are float32, float16 and bfloat16. Results
are new tensors, on the current stream.

Gradients are those of the sum of all ranks' losses, as of torch's collectives. All may be compiled by torch.compile,
and, after a first call, captured in CUDA graphs.
"""

from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import torch
import torch._dynamo
import torch.distributed as dist

from . import _overlap
from .errors import UsageError
from .torch.overlap import eager, objects
from .torch.overlap.calls import options_of
from .torch.overlap.objects import close, runs

__all__ = [
    "all_gather_matmul", "all_gather_scaled_matmul", "all_to_all_matmul", "backends", "close", "explain",
    "matmul_all_reduce", "matmul_reduce_scatter", "runs", "scaled_matmul_reduce_scatter",
]  # fmt: skip

Group = Union[str, dist.ProcessGroup]
Tensors = Sequence[torch.Tensor]


def _name(group):
    if group is None:
        raise UsageError("a group is a ProcessGroup or its name, not None; that of all ranks is dist.group.WORLD")
    if not isinstance(group, (str, dist.ProcessGroup)):
        is_none = isinstance(group, int) and group == dist.GroupMember.NON_GROUP_MEMBER
        why = ", which new_group() gives a rank that is no member" if is_none else ""
        raise UsageError(f"a group is a ProcessGroup or its name, not {group!r}{why}")
    return group if isinstance(group, str) else group.group_name


def _list(given, what):
    if given is None or isinstance(given, torch.Tensor):
        said = "None" if given is None else "a tensor"
        raise UsageError(f"{what} is a list with an entry for each weight, not {said}")
    return list(given)


def _check_scales(**scales):
    for name, scale in scales.items():
        if scale is None:
            raise UsageError(f"{name} is a tensor, not None: products without scales are those of the other ops")


@torch._dynamo.assume_constant_result
def _ranks_of(name):
    """Compiled code is of one number of ranks; another one is an error of the op."""
    return objects.size_of(name)


def _op_of(known, name, group, tensors, texts, numbers, bools=()):
    """The op of a name, and for how many ranks, where eager.known() has found none, or one whose gradients will be
    computed."""
    of, call, recorded = known
    if call is not None:
        return recorded, of.size
    if any(one is None for one in tensors):
        raise UsageError("A, each B and each bias of a list is a tensor, not None")
    ranks = _ranks_of(group)
    return eager.op(name, tensors, texts, numbers, bools), ranks


def all_gather_matmul(
    A: torch.Tensor, Bs: Tensors, gather_dim: int, group: Group, *, return_A: bool = True,
    biases: Optional[Tensors] = None, backend: str = "auto", chunks: int = 0, budget: int = 0, gemm: str = "auto",
) -> Tuple[Optional[torch.Tensor], List[torch.Tensor]]:  # fmt: skip
    """A of all ranks along a dimension, times each weight, plus its bias: (A of all ranks, [products]). The first is
    None without `return_A`; then the backward pass keeps this rank's A, and gathers it again for gradients of weights.
    Columns (the last dimension) are gathered first and then multiplied."""
    name, Bs = _name(group), _list(Bs, "Bs")
    biases = [] if biases is None else _list(biases, "biases")
    tensors, options = (A, *Bs, *biases), ("all_gather_matmul", gather_dim, return_A, backend, chunks, budget, gemm)
    known = of, call, recorded = eager.known(name, options, ((A,), Bs, biases), tensors, len(Bs))
    if call is not None and recorded is None:
        return call.run(of, A, Bs, biases, return_A)
    texts, numbers = (name, backend, gemm), (gather_dim, chunks, budget)
    op, ranks = _op_of(known, "all_gather_matmul", name, tensors, texts, numbers, (return_A,))
    return op(
        A, Bs, gather_dim, name, biases, ranks=ranks, return_A=return_A, backend=backend, chunks=chunks,
        budget=budget, gemm=gemm,
    )  # fmt: skip


def matmul_reduce_scatter(
    A: torch.Tensor, B: torch.Tensor, reduce_op: str, scatter_dim: int, group: Group, *,
    bias: Optional[torch.Tensor] = None, backend: str = "auto", chunks: int = 0, budget: int = 0, gemm: str = "auto",
) -> torch.Tensor:  # fmt: skip
    """This rank's part, along a dimension, of the sum ("sum") or mean ("avg") of all ranks' A times B, plus the bias,
    which is added once, to the sum. The dimension must be a multiple of the ranks. Where columns are scattered, the
    bias is of this rank's."""
    name, tensors = _name(group), (A, B) if bias is None else (A, B, bias)
    options = ("matmul_reduce_scatter", reduce_op, scatter_dim, backend, chunks, budget, gemm)
    known = of, call, recorded = eager.known(name, options, ((A, B, bias),), tensors)
    if call is not None and recorded is None:
        return call.run(of, A, B, bias)
    texts, numbers = (reduce_op, name, backend, gemm), (scatter_dim, chunks, budget)
    op, ranks = _op_of(known, "matmul_reduce_scatter", name, tensors, texts, numbers)
    return op(
        A, B, reduce_op, scatter_dim, name, bias, ranks=ranks, backend=backend, chunks=chunks, budget=budget,
        gemm=gemm,
    )  # fmt: skip


def matmul_all_reduce(
    A: torch.Tensor, B: torch.Tensor, reduce_op: str, group: Group, *, bias: Optional[torch.Tensor] = None,
    replicated: bool = False, backend: str = "auto", chunks: int = 0, budget: int = 0, gemm: str = "auto",
) -> torch.Tensor:  # fmt: skip
    """The sum ("sum") or mean ("avg") of all ranks' A times B, plus the bias, which is added once and is the same on
    all ranks. `replicated`: all ranks compute the same loss of it, so its gradient is that of each rank, and not
    added up (what tensor-parallel layers without sequence parallelism do)."""
    name, tensors = _name(group), (A, B) if bias is None else (A, B, bias)
    options = ("matmul_all_reduce", reduce_op, replicated, backend, chunks, budget, gemm)
    known = of, call, recorded = eager.known(name, options, ((A, B, bias),), tensors)
    if call is not None and recorded is None:
        return call.run(of, A, B, bias)
    texts, numbers = (reduce_op, name, backend, gemm), (chunks, budget)
    op, ranks = _op_of(known, "matmul_all_reduce", name, tensors, texts, numbers, (replicated,))
    return op(
        A, B, reduce_op, name, bias, ranks=ranks, replicated=replicated, backend=backend, chunks=chunks,
        budget=budget, gemm=gemm,
    )  # fmt: skip


def all_to_all_matmul(
    A: torch.Tensor, Bs: Tensors, group: Group, *, return_A: bool = True, biases: Optional[Tensors] = None,
    backend: str = "auto", chunks: int = 0, budget: int = 0, gemm: str = "auto",
) -> Tuple[Optional[torch.Tensor], List[torch.Tensor]]:  # fmt: skip
    """What all ranks send here of their A, whose dimension 0 has a part for each rank, times each weight, plus its
    bias: (what was sent here, [products])."""
    name, Bs = _name(group), _list(Bs, "Bs")
    biases = [] if biases is None else _list(biases, "biases")
    tensors, options = (A, *Bs, *biases), ("all_to_all_matmul", return_A, backend, chunks, budget, gemm)
    known = of, call, recorded = eager.known(name, options, ((A,), Bs, biases), tensors, len(Bs))
    if call is not None and recorded is None:
        return call.run(of, A, Bs, biases, return_A)
    texts, numbers = (name, backend, gemm), (chunks, budget)
    op, ranks = _op_of(known, "all_to_all_matmul", name, tensors, texts, numbers, (return_A,))
    return op(
        A, Bs, name, biases, ranks=ranks, return_A=return_A, backend=backend, chunks=chunks, budget=budget,
        gemm=gemm,
    )  # fmt: skip


def all_gather_scaled_matmul(
    A: torch.Tensor, Bs: Tensors, A_scale: torch.Tensor, B_scales: Tensors, gather_dim: int, group: Group,
    biases: Sequence[Optional[torch.Tensor]], result_scales: Sequence[Optional[torch.Tensor]],
    out_dtypes: Sequence[torch.dtype], use_fast_accum: Sequence[bool], *, backend: str = "auto", chunks: int = 0,
    budget: int = 0, gemm: str = "auto",
) -> Tuple[torch.Tensor, List[torch.Tensor]]:  # fmt: skip
    """all_gather_matmul() of 8-bit floats, with scales: one value for A, the same on all ranks, or one for each row,
    of this rank's rows or of all; one value for B, or one for each column. No gradients."""
    name, Bs, B_scales = _name(group), _list(Bs, "Bs"), _list(B_scales, "B_scales")
    fast, dtypes = _list(use_fast_accum, "use_fast_accum"), _list(out_dtypes, "out_dtypes")
    biases, result_scales = _list(biases, "biases"), _list(result_scales, "result_scales")
    options = ("all_gather_scaled_matmul", gather_dim, backend, chunks, budget, gemm, *dtypes, *fast)
    given, more = (A, A_scale, *Bs, *B_scales), (*biases, *result_scales)
    tensors = (*given, *[one for one in more if one is not None])
    form = len(Bs), len(B_scales), len(biases), tuple([one is None for one in more])
    of, call, _ = eager.known(name, options, ((A, A_scale), Bs, B_scales, biases, result_scales), tensors, form)
    if call is not None:
        return call.run(of, A, Bs, A_scale, B_scales, biases, result_scales)
    _check_scales(A_scale=A_scale)
    numbers = gather_dim, chunks, budget
    op = eager.op("all_gather_scaled_matmul", tensors, (name, backend, gemm), numbers, fast, dtypes)
    return op(
        A, Bs, A_scale, B_scales, gather_dim, name, biases, result_scales, dtypes, fast, ranks=_ranks_of(name),
        backend=backend, chunks=chunks, budget=budget, gemm=gemm,
    )  # fmt: skip


def scaled_matmul_reduce_scatter(
    A: torch.Tensor, B: torch.Tensor, A_scale: torch.Tensor, B_scale: torch.Tensor, reduce_op: str,
    orig_scatter_dim: int, scatter_dim_after_maybe_reshape: int, group: Group,
    output_shape: Optional[Sequence[int]] = None, bias: Optional[torch.Tensor] = None,
    result_scale: Optional[torch.Tensor] = None, out_dtype: Optional[torch.dtype] = None,
    use_fast_accum: bool = False, *, backend: str = "auto", chunks: int = 0, budget: int = 0, gemm: str = "auto",
) -> torch.Tensor:  # fmt: skip
    """matmul_reduce_scatter() of 8-bit floats, with scales as for all_gather_scaled_matmul(). The bias is added once,
    to the sum, where torch.ops.symm_mem adds it at every rank. `output_shape`: of the product before it is
    scattered. No gradients."""
    name, dims = _name(group), (orig_scatter_dim, scatter_dim_after_maybe_reshape)
    # What is no list of numbers is for the dispatcher to refuse.
    is_shape = output_shape is None or isinstance(output_shape, (list, tuple))
    options = ("scaled_matmul_reduce_scatter", reduce_op, *dims, backend, chunks, budget, gemm, out_dtype,
               use_fast_accum, *(options_of(output_shape) if is_shape else ()))  # fmt: skip
    some = [one for one in (bias, result_scale) if one is not None]
    tensors, form = (A, B, A_scale, B_scale, *some), bias is None
    of, call, _ = eager.known(name, options, ((A, B, A_scale, B_scale, result_scale, bias),), tensors, form)
    if call is not None:
        return call.run(of, A, B, A_scale, B_scale, result_scale, bias)
    _check_scales(A_scale=A_scale, B_scale=B_scale)
    sizes = () if output_shape is None else output_shape if is_shape else (None,)
    numbers = *dims, chunks, budget, *sizes
    texts, dtypes = (reduce_op, name, backend, gemm), () if out_dtype is None else (out_dtype,)
    op = eager.op("scaled_matmul_reduce_scatter", tensors, texts, numbers, (use_fast_accum,), dtypes)
    return op(
        A, B, A_scale, B_scale, reduce_op, *dims, name, output_shape, bias, result_scale, out_dtype, use_fast_accum,
        ranks=_ranks_of(name), backend=backend, chunks=chunks, budget=budget, gemm=gemm,
    )  # fmt: skip


def backends(device: Any = "cpu") -> List[Dict[str, Any]]:
    """All backends, each with "name", "available" and "why"; needs no group, and does not initialise CUDA."""
    of = torch.device(device)
    if of.type not in ("cpu", "cuda"):
        raise UsageError(f"tensors of cpu or cuda are multiplied, not of {of}")
    return _overlap.backends((of.index or 0) if of.type == "cuda" else None)


def explain(group: Group, device: Any = "cpu") -> List[Dict[str, Any]]:
    """What runs for each shape that was called: its sizes and types, "gemm", "backend", "chunks", "budget" and "why",
    and "in_graphs" where captured calls are served by another; the shape of the latest call is the last. One rank
    may ask alone; before the first call there is nothing."""
    of = torch.device(device)
    if of.type == "cuda" and of.index is None:
        of = torch.device("cuda", torch.cuda.current_device())
    return objects.explain(_name(group), of)
