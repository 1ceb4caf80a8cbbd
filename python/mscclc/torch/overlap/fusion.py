"""Products of compiled models that overlap with the collectives beside them: a pass for torch.compile.

    from mscclc.torch.overlap.fusion import MatmulFusion

    fusion = MatmulFusion()
    model = torch.compile(model, options={"post_grad_custom_post_pass": fusion})      # by Inductor
    model = torch.compile(model, backend=fusion.backend)                              # without it
    print(fusion.report())

An all-gather and the products of its result become one op, and so do a product and the reduce-scatter or all-reduce
of it, forward and backward; of 8-bit floats (torch._scaled_mm) all but the all-reduce, which has no op. Where scales of
A's rows are gathered, too, the op gathers both. Where Inductor's own pass (torch._inductor.config._micro_pipeline_tp)
ran before, its ops are replaced by ours. All ranks must compile the same model with the same options.
"""

import contextlib
import logging
import operator
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Set, Tuple

import torch
from torch.fx import Graph, Node

from ...errors import UsageError
from ..fusion.groups import ranks_of
from ..fusion.operators import name_of
from ..fusion.translation import Unsupported, same_shape, tensor_of
from ..graph_pass import GraphPass, Left
from . import gradients, matching, scaled  # noqa: F401, ops
from .matching import Collective, Product, shape_argument
from .ops import check_how

__all__ = ["Left", "MatmulFusion", "Replaced", "Report"]

_log = logging.getLogger("mscclc.fusion")
_ops = torch.ops.mscclc
_reshape = torch.ops.aten.reshape.default


class Replaced(NamedTuple):
    """A collective that has become one op with products."""

    name: str  # of the node
    op: str
    group: str
    products: int


class Report(NamedTuple):
    """What a pass has done to all its graphs so far."""

    replaced: List[Replaced]
    left: List[Left]

    def __str__(self) -> str:
        lines = [f"{one.name}: {one.op} with {one.products} products" for one in self.replaced]
        lines += [f"{one.name}: left, {one.why}" for one in self.left]
        return "\n".join([f"{len(self.replaced)} collectives fused, {len(self.left)} left", *lines])


# Ops that Inductor's own pass puts into graphs, and ours.
_TORCHS = {
    "symm_mem.fused_all_gather_matmul.default": _ops.all_gather_matmul.default,
    "symm_mem.fused_all_gather_scaled_matmul.default": _ops.all_gather_scaled_matmul.default,
    "symm_mem.fused_matmul_reduce_scatter.default": _ops.matmul_reduce_scatter.default,
    "symm_mem.fused_scaled_matmul_reduce_scatter.default": _ops.scaled_matmul_reduce_scatter.default,
}


class MatmulFusion(GraphPass):
    """The pass. For one thread at a time."""

    def __init__(self, backend: str = "auto", chunks: int = 0, budget: int = 0, gemm: str = "auto"):
        """What all ops get; mscclc.ops says what it means. UsageError: there is no such thing."""
        check_how(torch.device("cpu"), backend, chunks, budget, gemm)
        self._how: Dict[str, Any] = {"backend": backend, "chunks": chunks, "budget": budget, "gemm": gemm}
        self._report = Report([], [])

    def report(self) -> Report:
        """What was replaced so far, and what was not, and why. Code that Inductor had kept is not in it."""
        return self._report

    def options(self) -> str:
        """What all ops get."""
        return str(self._how)

    def change(self, graph: Graph) -> None:
        """Fuses what it can."""
        left: List[Tuple[Node, Left]] = []
        gone: Set[Node] = set()  # such as a gather of scales, with that of its rows
        for node in [one for one in graph.nodes if one.op == "call_function"]:
            name = node.name
            try:
                if name_of(node) in _TORCHS:
                    self._reroute(node)
                    continue
                found = matching.collective(node)
                if found is not None and node not in gone:
                    made, erased = self._gather(found) if found.name == "all_gather" else self._reduce(found)
                    gone.update(erased)
                    self._report.replaced.append(Replaced(name, *made))
            except Unsupported as error:
                left.append((node, Left(name, str(error))))
        for node, why in left:
            if node not in gone:
                self._report.left.append(why)
                _log.debug("%s is left: %s", *why)

    def _gather(self, found: Collective):
        _check_rows(found.input, 2)
        graph, first = found.first.graph, found.first
        whole, dim = matching.joined_along(found.result, ranks_of(found.group))
        whole = matching.of_eight_bits(whole)
        products = _alike(matching.products_of(whole))
        scale, gather = _scale_of_rows(products, found, dim)
        others = [one for product in products for one in product.others()] + ([] if scale is None else [scale])
        needed = [node for one in others for node in matching.needed_before([one], found)]
        order = {node: i for i, node in enumerate(graph.nodes)}
        for node in sorted(set(needed), key=order.__getitem__):
            first.prepend(node)
        with _inserting_all_before(first):
            self._put_gathered(graph, found, whole, dim, products, (scale, gather is not None))
        # Products that use what the op gathered do not lead to `whole` any more, nor to its scales.
        begin = first if gather is None else min(first, gather.first, key=order.__getitem__)
        erased = _erase_unused([whole, *[product.node for product in products]], begin)
        op = _name_of_op(products[0], "all_gather_matmul", "all_gather_scaled_matmul")
        return (op, found.group, len(products)), erased

    def _put_gathered(self, graph, found, whole, dim, products: Sequence[Product], scale):
        used = {view for product in products for view in _between(whole, product)}
        return_A = not set(whole.users) <= used | {product.node for product in products}
        flat, back = _shapes_of_rows(found.input, whole, dim, return_A, products)
        shard = _as_type(graph, found.input, tensor_of(whole).dtype)
        shard = shard if flat is None else _call(graph, _reshape, shard, flat)
        place, more = (dim, found.group), {"ranks": ranks_of(found.group), **self._how}
        if scale[0] is None:
            call = _call(
                graph, _ops.all_gather_matmul.default, shard, [product.B for product in products], *place,
                [product.bias for product in products if product.bias is not None], return_A=return_A, **more,
            )  # fmt: skip
        else:
            of_rows = _scale_as_rows(graph, *scale, shard, whole)
            lists = [[getattr(one.scales, name) for one in products] for name in ("B", "result", "out_dtype", "fast")]
            call = _call(
                graph, _ops.all_gather_scaled_matmul.default, shard, [product.B for product in products], of_rows,
                lists[0], *place, [product.bias for product in products], *lists[1:], **more,
            )  # fmt: skip
        outs = _call(graph, operator.getitem, call, 1)
        found_outs = [_call(graph, operator.getitem, outs, number) for number in range(len(products))]
        found_outs = [_contiguous(graph, out) if dim else out for out in found_outs]
        rows = [_rows(graph, product.node, out) for product, out in zip(products, found_outs)]
        if return_A:
            A = _call(graph, operator.getitem, call, 0)
            A = _contiguous(graph, A) if dim else A
            A = A if back is None else _call(graph, _reshape, A, back)
        # Nothing fails any more.
        for product, out, flat_out in zip(products, found_outs, rows):
            _give(product.node, out, flat_out)
        if return_A:
            whole.replace_all_uses_with(A)

    def _reduce(self, found: Collective):
        if found.op not in ("sum", "avg"):
            raise Unsupported(f"it reduces by '{found.op}'")
        ranks, graph = ranks_of(found.group), found.first.graph
        whole, dim = found.input, 0
        _check_rows(whole, 2 if found.name == "reduce_scatter" else 1)
        if found.name == "reduce_scatter":
            whole, dim = matching.divided_along(found.input, ranks)
        product = matching.product_before(whole, parts=whole is not found.input)
        if product.scales is not None and found.name == "all_reduce":
            raise Unsupported("there is no op of an all-reduce of products of 8-bit floats")
        shape, back = tensor_of(found.result).shape, None
        if dim or len(shape) != 2:
            back = shape_argument(shape)
        leading = tensor_of(whole).shape[:-1] if dim else None
        with _inserting_all_before(found.first):
            A, more = _with_leading(graph, product.A, leading), {"ranks": ranks, **self._how}
            if product.scales is not None:
                op, made = _ops.scaled_matmul_reduce_scatter.default, product.scales
                scale = made.A if tensor_of(made.A).numel() == 1 else _with_leading(graph, made.A, leading)
                made = _call(
                    graph, op, A, product.B, scale, made.B, found.op, dim, dim, found.group, None, None, made.result,
                    made.out_dtype, made.fast, **more,
                )  # fmt: skip
            elif found.name == "all_reduce":
                op = _ops.matmul_all_reduce.default
                made = _call(graph, op, A, product.B, found.op, found.group, None, **more)
            else:
                op = _ops.matmul_reduce_scatter.default
                made = _call(graph, op, A, product.B, found.op, dim, found.group, None, **more)
            made = _contiguous(graph, made) if dim else made
            if back is not None:
                made = _call(graph, _reshape, made, back)
        found.result.replace_all_uses_with(made)
        erased = _erase_unused([found.result], product.node)
        return (op.name().split("::")[1].split(".")[0], found.group, 1), erased

    def _reroute(self, node):
        """Puts our op in the place of torch's, which has the same arguments."""
        target = _TORCHS[name_of(node)]
        args, more = list(node.args), dict(node.kwargs)
        if target is _ops.all_gather_matmul.default:
            args = [*args, *[more.pop(name) for name in ("gather_dim", "group_name") if name in more], []]
        elif target is _ops.matmul_reduce_scatter.default:
            args.append(None)
        elif target is _ops.scaled_matmul_reduce_scatter.default and (len(args) > 9 and args[9] is not None):
            raise Unsupported("each rank adds a bias to its product, which the sum has as often")
        group = next(one for one in args if isinstance(one, str) and one not in ("sum", "avg"))
        with node.graph.inserting_before(node):
            made = node.graph.call_function(target, tuple(args), {**more, "ranks": ranks_of(group), **self._how})
        made.meta.update(node.meta)
        node.replace_all_uses_with(made)
        node.graph.erase_node(node)
        self._report.replaced.append(Replaced(node.name, target.name().split("::")[1].split(".")[0], group, 1))


def _alike(products):
    """Those that one op computes: all with a bias or none; of 8 bits those with the scale of A, and of the types, that
    the first has."""
    if products[0].scales is not None:
        kinds = [(one.scales.A, one.scales.out_dtype, tensor_of(one.B).dtype) for one in products]
        return [one for one, kind in zip(products, kinds) if kind == kinds[0]]
    if len({product.bias is None for product in products}) > 1:
        return [product for product in products if product.bias is None]
    return products


def _name_of_op(product, plain, scaled_one):
    return plain if product.scales is None else scaled_one


def _scale_of_rows(products, found, dim):
    """The scale of A, of this rank's rows, where all ranks' was gathered with them, and that gather; None: there is
    none, of either."""
    if products[0].scales is None:
        return None, None
    scale = products[0].scales.A
    gather = matching.gathered_scale(scale, found, dim)
    return (scale, None) if gather is None else (gather.input, gather)


def _scale_as_rows(graph, scale, is_own, shard, whole):
    """A scale of A in the shape that says to the op what it is of: all, this rank's rows, or all ranks'."""
    shape, own = list(tensor_of(scale).shape), [*tensor_of(shard).shape[:-1], 1]
    if is_own:
        return scale if shape == own else _call(graph, _reshape, scale, shape_argument(own))
    if tensor_of(scale).numel() == 1:
        # Where a rank has one row, it would be taken for that row's.
        return _call(graph, _reshape, scale, []) if shape == own else scale
    if len(shape) != 2 or shape[1] != 1:
        raise Unsupported(f"a scale of A has one value, or one for each row; this one shape {shape}")
    return scale if len(own) == 2 else _with_leading(graph, scale, tensor_of(whole).shape[:-1])


def _with_leading(graph, rows, leading):
    """Rows with those dimensions; None: as they are."""
    if leading is None:
        return rows
    return _call(graph, _reshape, rows, shape_argument([*leading, tensor_of(rows).shape[-1]]))


def _as_type(graph, node, dtype):
    """The same bytes as a type."""
    for one in (node, matching.before_type(node)):
        if tensor_of(one).dtype == dtype:
            return one
    return _call(graph, torch.ops.aten.view.dtype, node, dtype)


def _check_rows(node, least):
    """Unsupported: what is exchanged has too few dimensions to be a matrix's rows."""
    if tensor_of(node).dim() < least:
        raise Unsupported(f"what it takes has shape {list(tensor_of(node).shape)}, without rows")


@contextlib.contextmanager
def _inserting_all_before(node: Node) -> Iterator[None]:
    """New nodes are put before a node; all or, where one cannot be made, none."""
    graph = node.graph
    there = set(graph.nodes)
    try:
        with graph.inserting_before(node):
            yield
    except Unsupported:
        for one in reversed([one for one in graph.nodes if one not in there]):
            graph.erase_node(one)
        raise


def _shapes_of_rows(shard, whole, dim, return_A, products):
    """What a rank's part must be made to be rows, and the gathered rows to be `whole` again; None: nothing."""
    flat = back = None
    if dim == 0 and tensor_of(shard).dim() > 2:
        flat = shape_argument([-1, tensor_of(shard).shape[-1]])
        back = shape_argument(tensor_of(whole).shape) if return_A else None
    for product in products if dim else ():
        shape_argument([-1, tensor_of(product.node).shape[-1]])
    return flat, back


def _between(whole, product):
    """The views that lead from a gathered tensor to a product."""
    node = product.A
    while node is not whole:
        yield node
        node = node.args[0]


def _erase_unused(last, first):
    """Erases nodes that nothing uses, and so what only they have used, as far as `first`; says which."""
    erased = []
    order = {node: i for i, node in enumerate(first.graph.nodes)}
    begin = order[first]  # which may be erased, too
    while last:
        node = last.pop()
        if node in order and not node.users and order[node] >= begin and node.op == "call_function":
            inputs = list(node.all_input_nodes)
            node.graph.erase_node(node)
            del order[node]
            erased.append(node)
            last += inputs
    return erased


def _contiguous(graph, node):
    """What was scattered or gathered along another dimension than 0, as views need it. Inductor's graphs have none:
    they take any strides."""
    if any(name_of(one) == "aten.view.default" for one in graph.nodes):
        return _call(graph, torch.ops.aten.clone.default, node, memory_format=torch.contiguous_format)
    return node


def _has_shape(user, made):
    """Whether what uses a product is a view of it as an op's result, with as many dimensions."""
    shape, other = tensor_of(made).shape, tensor_of(user).shape if name_of(user) in matching.VIEWS else ()
    return len(shape) == len(other) and same_shape(other, shape)


def _rows(graph, node, made):
    """A result as the rows that the uses of a product need which _has_shape() is not true of."""
    shape = tensor_of(made).shape
    if len(shape) == 2 or all(_has_shape(user, made) for user in node.users):
        return made
    return _call(graph, _reshape, made, [-1, shape[-1]])


def _give(node, made, rows):
    """Puts a result in a product's place; views that have its shape are it."""
    for user in list(node.users):
        if len(tensor_of(made).shape) > 2 and _has_shape(user, made):
            user.replace_all_uses_with(made)
    node.replace_all_uses_with(rows)


def _call(graph: Graph, op: Any, *args: Any, **more: Any) -> Node:
    """A new node, with its fake result."""
    given = torch.fx.map_arg((args, more), lambda one: one.meta["val"])
    tensors = [one for one in torch.utils._pytree.tree_leaves(given) if isinstance(one, torch.Tensor)]
    mode = torch._guards.detect_fake_mode(tensors)
    if mode is None:
        raise Unsupported("the graph has tensors that are not fake")
    try:
        with mode:
            result = op(*given[0], **given[1])
    except UsageError as error:
        raise Unsupported(str(error)) from error
    node = graph.call_function(op, args, more)
    node.meta["val"] = result
    return node
