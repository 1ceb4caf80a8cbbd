"""Collectives as custom ops of torch: torch.ops.mscclc.all_reduce(tensor, "sum", group_name) …

They take a group by its name (`group.group_name`), so torch.compile(fullgraph=True) sees plain data,
and run on the current stream. The group is any of torch.distributed's; of backend mscclc they are
calls of plans. Ops that give a tensor have gradients; those that end in `_` write their first argument,
and are an error where it requires one.
"""

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _resolve_process_group

from ..errors import UsageError
from .plans import mark_written, refuse_gradients

_REDUCTIONS = {
    "sum": dist.ReduceOp.SUM,
    "avg": dist.ReduceOp.AVG,
    "prod": dist.ReduceOp.PRODUCT,
    "min": dist.ReduceOp.MIN,
    "max": dist.ReduceOp.MAX,
}


def _group(name):
    try:
        return _resolve_process_group(name)
    except RuntimeError:
        raise UsageError(
            f"there is no process group '{name}': it was destroyed, or never made"
        ) from None


def _reduction(name):
    if name not in _REDUCTIONS:
        raise UsageError(f"no reduction {name!r}; there are: {', '.join(_REDUCTIONS)}")
    return _REDUCTIONS[name]


def _rows(input, size, times):
    """Shape after the first dimension was multiplied or divided; that of a rank's part."""
    if input.dim() == 0:
        raise UsageError("a tensor without dimensions has no rows to be divided")
    return [input.shape[0] * size if times else input.shape[0] // size, *input.shape[1:]]


def _all_reduce_(tensor, op, group):
    dist.all_reduce(tensor, _reduction(op), group=_group(group))
    mark_written(tensor)


def _all_reduce(input, op, group):
    output = input.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(output, _reduction(op), group=_group(group))
    return output


def _all_gather(input, size, group):
    output = input.new_empty(_rows(input, _checked(size, group), True))
    dist.all_gather_into_tensor(output, input.contiguous(), group=_group(group))
    return output


def _reduce_scatter(input, op, size, group):
    if input.dim() == 0 or input.shape[0] % _checked(size, group) != 0:
        raise UsageError(f"a tensor of shape {tuple(input.shape)} is not {size} equal parts")
    output = input.new_empty(_rows(input, size, False))
    dist.reduce_scatter_tensor(output, input.contiguous(), _reduction(op), group=_group(group))
    return output


def _all_to_all(input, group):
    output = torch.empty_like(input, memory_format=torch.contiguous_format)
    dist.all_to_all_single(output, input.contiguous(), group=_group(group))
    return output


def _broadcast_(tensor, source, group):
    dist.broadcast(tensor, group=_group(group), group_src=source)
    mark_written(tensor)


def _checked(size, group):
    """The number of ranks, which shapes are computed with before the group is known."""
    ranks = _group(group).size()
    if size != ranks:
        raise UsageError(f"the group has {ranks} ranks, not {size}")
    return size


def _same_shape(input, *_):
    return torch.empty_like(input, memory_format=torch.contiguous_format)


# Name, arguments, result, what it does, and what it gives when it is traced.
_OPS = [
    ("all_reduce", "Tensor input, str op, str group", "Tensor", _all_reduce, _same_shape),
    ("all_reduce_", "Tensor(a!) tensor, str op, str group", "()", _all_reduce_, None),
    (
        "all_gather", "Tensor input, int size, str group", "Tensor", _all_gather,
        lambda input, size, group: input.new_empty(_rows(input, size, True)),
    ),
    (
        "reduce_scatter", "Tensor input, str op, int size, str group", "Tensor", _reduce_scatter,
        lambda input, op, size, group: input.new_empty(_rows(input, size, False)),
    ),
    ("all_to_all", "Tensor input, str group", "Tensor", _all_to_all, _same_shape),
    ("broadcast_", "Tensor(a!) tensor, int source, str group", "()", _broadcast_, None),
]  # fmt: skip

_library = torch.library.Library("mscclc", "FRAGMENT")


def _define():
    for name, arguments, result, body, fake in _OPS:
        _library.define(f"{name}({arguments}) -> {result}")
        for key in ("CPU", "CUDA"):
            _library.impl(name, body, key)
        torch.library.register_fake(f"mscclc::{name}", fake or (lambda *_: None), lib=_library)
        if result == "()":
            refuse_gradients(_library, name)
    ops = torch.ops.mscclc
    _gradient("all_reduce", ("op", "group"), lambda s, g: ops.all_reduce(g, s.op, s.group))
    _gradient(
        "all_gather",
        ("size", "group"),
        lambda s, g: ops.reduce_scatter(g, "sum", s.size, s.group),
    )
    _gradient(
        "reduce_scatter",
        ("op", "size", "group"),
        lambda s, g: _part(ops.all_gather(g, s.size, s.group), s),
    )
    _gradient("all_to_all", ("group",), lambda s, g: ops.all_to_all(g, s.group))


def _part(gradient, saved):
    """Of an average each rank has given a part of the ranks' number."""
    return gradient / saved.size if saved.op == "avg" else gradient


def _gradient(name, arguments, backward):
    """`arguments` are what follows the tensor; they are kept for `backward(saved, gradient)`."""

    def setup(ctx, inputs, output):  # torch passes them by these names
        for argument, value in zip(arguments, inputs[1:]):
            setattr(ctx, argument, value)

    def gradients(saved, gradient):
        if getattr(saved, "op", "sum") not in ("sum", "avg"):
            raise UsageError(f"only sums and averages have a gradient, not {saved.op!r}")
        return backward(saved, gradient.contiguous()), *(None for _ in arguments)

    torch.library.register_autograd(f"mscclc::{name}", gradients, setup_context=setup, lib=_library)


_define()
