"""Gradients: the backward pass of a product that overlaps is one that overlaps, too.

| forward | of A | of B |
|---|---|---|
| gather, multiply | multiply, reduce-scatter | A of all ranks, transposed, times the gradient |
| multiply, reduce-scatter | gather, multiply | A, transposed, times the gathered gradient |
| multiply, all-reduce | as the row before, after a reduce-scatter; or, `replicated`, a product | likewise |
| exchange, multiply | multiply, exchange | what was exchanged, transposed, times the gradient |

Where nothing else is said, a gradient is that of the sum of all ranks' losses, as for torch's collectives.
"""

import functools
from typing import Any

import torch

from . import eager, ops
from .calls import How

_ops = torch.ops.mscclc


def _keep(saved, keyword_only):
    """What the ops of the backward pass get, too."""
    saved.options = {name: keyword_only[name] for name in How._fields}
    saved.set_materialize_grads(False)


def _rows(tensor):
    return tensor.flatten(0, -2)


def _gather(ctx, tensor, dim, group):
    """A tensor of all ranks, along a dimension."""
    return _exchange(ctx, tensor.movedim(dim, 0), "allgather", group).movedim(0, dim)


def _scatter(ctx, tensor, dim, group):
    """A rank's part of a sum of all ranks'."""
    return _exchange(ctx, tensor.movedim(dim, 0), "reducescatter", group).movedim(0, dim)


def _exchange(ctx, tensor, kind, group):
    return _ops.exchange_rows(tensor.contiguous(), kind, group, ctx.options["ranks"])


def _setup_gathered(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
    A, Bs, *place, biases = inputs
    ctx.place, ctx.weights, ctx.biases = place, len(Bs), len(biases)  # dimension, if there is one, and group
    ctx.whole = output[0] is not None
    # Without the gathered A its own part is kept, and gathered again in the backward pass.
    ctx.save_for_backward(output[0] if ctx.whole else A, *Bs)
    _keep(ctx, keyword_only_inputs)


def _of_weights(ctx, gradients, gathered):
    """Gradients of weights and biases, where wanted. `gathered()`: A of all ranks."""
    needed = ctx.needs_input_grad[1]
    if not isinstance(needed, (list, tuple)):  # of _Gathered
        needed = ctx.needs_input_grad[_BEFORE:_BEFORE + ctx.weights]
    of_B = [None] * len(gradients)
    if any(need and gradient is not None for need, gradient in zip(needed, gradients)):
        rows = _rows(gathered())
        of_B = [
            rows.t() @ _rows(gradient) if need and gradient is not None else None
            for need, gradient in zip(needed, gradients)
        ]
    of_bias = [None if one is None else _rows(one).sum(0) for one in gradients[:ctx.biases]]
    return of_B, of_bias


def _products(gradients, Bs):
    """The operands of the product that is the sum of each gradient times its weight, transposed."""
    some = [(gradient, B) for gradient, B in zip(gradients, Bs) if gradient is not None]
    if len(some) == 1:
        return some[0][0], some[0][1].t()
    return torch.cat([one for one, _ in some], -1), torch.cat([B for _, B in some], 1).t()


def _all_gather_matmul_backward(ctx: Any, of_whole: Any, gradients: Any) -> Any:
    saved, *Bs = ctx.saved_tensors
    dim, group = ctx.place
    of_A = None
    if ctx.needs_input_grad[0]:
        dim = dim % saved.dim()
        if any(one is not None for one in gradients):
            A, B = _products(gradients, Bs)
            op = eager.op("matmul_reduce_scatter", (A, B))
            of_A = op(A, B, "sum", dim, group, None, **ctx.options)
        if of_whole is not None:
            own = _scatter(ctx, of_whole, dim, group)
            of_A = own if of_A is None else of_A + own
    of_B, of_bias = _of_weights(ctx, gradients, lambda: saved if ctx.whole else _gather(ctx, saved, dim, group))
    return of_A, of_B, None, None, of_bias


def _all_to_all_matmul_backward(ctx: Any, of_whole: Any, gradients: Any) -> Any:
    saved, *Bs = ctx.saved_tensors
    (group,) = ctx.place
    of_A = None
    if ctx.needs_input_grad[0]:
        if any(one is not None for one in gradients):
            A, B = _products(gradients, Bs)
            of_A = torch.matmul(A, B)
        if of_whole is not None:
            of_A = of_whole if of_A is None else of_A + of_whole
        if of_A is not None:
            of_A = _exchange(ctx, of_A, "alltoall", group)
    come = lambda: saved if ctx.whole else _exchange(ctx, saved, "alltoall", group)  # noqa: E731
    of_B, of_bias = _of_weights(ctx, gradients, come)
    return of_A, of_B, None, of_bias


def _setup_reduced(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
    A, B, ctx.reduce_op, *ctx.place, bias = inputs
    ctx.bias, ctx.replicated = bias is not None, keyword_only_inputs.get("replicated", False)
    ctx.save_for_backward(A, B)
    _keep(ctx, keyword_only_inputs)


def _mean(ctx, gradient):
    """Of a mean each rank has given a part of the ranks' number."""
    return gradient / ctx.options["ranks"] if ctx.reduce_op == "avg" else gradient


def _from_scattered(ctx, gradient, dim, group):
    """Gradients of A and B from that of a rank's part of the product: gathered for both in one go."""
    A, B = ctx.saved_tensors
    of_A, of_B, whole = None, None, None
    if ctx.needs_input_grad[0]:
        wanted = ctx.needs_input_grad[1]
        op = eager.op("all_gather_matmul", (gradient, B))
        whole, (of_A,) = op(gradient, [B.t()], dim, group, [], return_A=wanted, **ctx.options)
    if ctx.needs_input_grad[1]:
        whole = _gather(ctx, gradient, dim, group) if whole is None else whole
        of_B = _rows(A).t() @ _rows(whole)
    return of_A, of_B


def _matmul_reduce_scatter_backward(ctx: Any, gradient: Any) -> Any:
    dim, group = ctx.place
    if gradient is None:
        return None, None, None, None, None, None
    of_bias = _rows(gradient).sum(0) if ctx.bias else None
    dim = dim % gradient.dim()
    return *_from_scattered(ctx, _mean(ctx, gradient), dim, group), None, None, None, of_bias


def _matmul_all_reduce_backward(ctx: Any, gradient: Any) -> Any:
    (group,) = ctx.place
    if gradient is None:
        return None, None, None, None, None
    of_bias = _rows(gradient).sum(0) if ctx.bias else None
    return *_from_reduced(ctx, _mean(ctx, gradient), group), None, None, of_bias


def _from_reduced(ctx, gradient, group):
    A, B = ctx.saved_tensors
    if not ctx.replicated and gradient.shape[0] % ctx.options["ranks"] == 0:
        # The sum of the ranks' gradients is made in parts, and gathered while it is multiplied.
        return _from_scattered(ctx, _scatter(ctx, gradient, 0, group), 0, group)
    if not ctx.replicated:
        gradient = _exchange(ctx, gradient, "allreduce", group)
    of_A = torch.matmul(gradient, B.t()) if ctx.needs_input_grad[0] else None
    return of_A, _rows(A).t() @ _rows(gradient) if ctx.needs_input_grad[1] else None


for _name, _backward, _setup in (
    ("all_gather_matmul", _all_gather_matmul_backward, _setup_gathered),
    ("all_to_all_matmul", _all_to_all_matmul_backward, _setup_gathered),
    ("matmul_reduce_scatter", _matmul_reduce_scatter_backward, _setup_reduced),
    ("matmul_all_reduce", _matmul_all_reduce_backward, _setup_reduced),
):
    torch.library.register_autograd(f"mscclc::{_name}", _backward, setup_context=_setup, lib=ops.library)


_BEFORE = 4  # arguments of _Gathered before the first weight


class _Gathered(torch.autograd.Function):
    """What torch's library does with the functions above, for calls that go past the dispatcher."""

    @staticmethod
    def forward(ctx: Any, A: Any, does: Any, place: Any, options: Any, *weights: Any) -> Any:
        """`does`: what the op does, and the backward pass; weights, then biases."""
        Bs, biases = weights[:options["weights"]], weights[options["weights"]:]
        more = {name: value for name, value in options.items() if name != "weights"}
        with torch._C._AutoDispatchBelowAutograd():  # results are no views
            found = does[0](A, Bs, *place, biases, **more)
        _setup_gathered(ctx, (A, Bs, *place, biases), more, found)
        ctx.does = does[1]
        return (found[0], *found[1])

    @staticmethod
    def backward(ctx: Any, of_whole: Any, *gradients: Any) -> Any:
        """As the first gives them."""
        of_A, of_B, *_, of_bias = ctx.does(ctx, of_whole, gradients)
        return (of_A, None, None, None, *of_B, *of_bias)


class _Reduced(torch.autograd.Function):
    """The same where products are added up."""

    @staticmethod
    def forward(ctx: Any, A: Any, B: Any, bias: Any, does: Any, reduce_op: Any, place: Any, options: Any) -> Any:
        """`does`: what the op does, and the backward pass."""
        with torch._C._AutoDispatchBelowAutograd():
            found = does[0](A, B, reduce_op, *place, bias, **options)
        _setup_reduced(ctx, (A, B, reduce_op, *place, bias), options, found)
        ctx.does = does[1]
        return found

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """As the first gives them."""
        of_A, of_B, *_, of_bias = ctx.does(ctx, gradient)
        return of_A, of_B, of_bias, None, None, None, None


def _record_gathered(backward, function):
    def call(A, Bs, *place_and_biases, **options):
        *place, biases = place_and_biases
        whole, *outs = _Gathered.apply(A, (function, backward), place, {**options, "weights": len(Bs)}, *Bs, *biases)
        return whole, outs

    return call


def _record_reduced(backward, function):
    def call(A, B, reduce_op, *place_and_bias, **options):
        *place, bias = place_and_bias
        return _Reduced.apply(A, B, bias, (function, backward), reduce_op, place, options)

    return call


for _name, _backward, _record in (
    ("all_gather_matmul", _all_gather_matmul_backward, _record_gathered),
    ("all_to_all_matmul", _all_to_all_matmul_backward, _record_gathered),
    ("matmul_reduce_scatter", _matmul_reduce_scatter_backward, _record_reduced),
    ("matmul_all_reduce", _matmul_all_reduce_backward, _record_reduced),
):
    eager.offer_gradients(_name, functools.partial(_record, _backward))
