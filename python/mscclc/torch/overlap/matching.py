"""Products in a graph that can overlap with a collective: what is gathered before them, what is added up after them."""

import operator
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.fx import Node

from ..dtypes import EIGHT_BITS, WIDE
from ..fusion.groups import ranks_of
from ..fusion.operators import name_of
from ..fusion.region import writes
from ..fusion.translation import Unsupported, same_shape, tensor_of

VIEWS = ("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default")


class Collective(NamedTuple):
    """A collective that stands in a graph."""

    name: str  # all_gather, reduce_scatter, all_reduce
    first: Node  # what begins it
    result: Node  # its tensor
    input: Node
    group: str
    op: Optional[str]  # what it reduces by


class Scales(NamedTuple):
    """What a product of 8-bit floats takes besides."""

    A: Node  # one value, or [m, 1]
    B: Node  # one value, or [1, n]
    result: Optional[Node]
    out_dtype: torch.dtype
    fast: bool


class Product(NamedTuple):
    """A product of two matrices, and what is added."""

    node: Node
    A: Node
    B: Node
    bias: Optional[Node]
    scales: Optional[Scales] = None  # None: of wider types

    def others(self) -> List[Node]:
        """What it takes besides A, whose scale a gather may have in parts."""
        scales = () if self.scales is None else (self.scales.B, self.scales.result)
        return [one for one in (self.B, self.bias, *scales) if one is not None]


# Of each collective its name, and where its arguments have the reduction and the group.
_COLLECTIVES = {
    "_c10d_functional.all_gather_into_tensor.default": ("all_gather", None, 2),
    "_c10d_functional.reduce_scatter_tensor.default": ("reduce_scatter", 1, 3),
    "_c10d_functional.all_reduce.default": ("all_reduce", 1, 2),
    "mscclc.all_gather.default": ("all_gather", None, 2),
    "mscclc.reduce_scatter.default": ("reduce_scatter", 1, 3),
    "mscclc.all_reduce.default": ("all_reduce", 1, 2),
}


def collective(node: Node) -> Optional[Collective]:
    """What a node begins, if it is a collective. Unsupported: its result is used before it is waited for."""
    if node.op != "call_function" or name_of(node) not in _COLLECTIVES:
        return None
    name, op, group = _COLLECTIVES[name_of(node)]
    result = node
    if name_of(node).startswith("_c10d_functional."):
        users = list(node.users)
        if [name_of(one) for one in users] != ["_c10d_functional.wait_tensor.default"]:
            raise Unsupported("what it gives is used before it is waited for")
        result = users[0]
    if not isinstance(node.args[group], str):
        raise Unsupported("its group has no name")
    if ranks_of(node.args[group]) < 2:
        raise Unsupported("one rank has nothing to exchange")
    return Collective(name, node, result, node.args[0], node.args[group], None if op is None else node.args[op])


def joined_along(result: Node, ranks: int) -> Tuple[Node, int]:
    """Where parts that lie one after the other in `result` are joined along another dimension: that tensor, and the
    dimension; else `result` and 0."""
    cats = {user for part in _parts(result) for user in _past_type(part).users}
    if len(cats) != 1:
        return result, 0
    (cat,) = cats
    if name_of(cat) != "aten.cat.default" or not _are_parts(cat.args[0], result, 0, ranks):
        return result, 0
    dim = cat.args[1] if len(cat.args) > 1 else 0
    return cat, dim % tensor_of(cat).dim()


def _whole_of(part):
    """What a node is a part of; of one that is none, itself."""
    if _is_item(part) and name_of(part.args[0]) == "aten.split.Tensor":
        return part.args[0].args[0]
    return part.args[0] if name_of(part) == "aten.slice.Tensor" else part


def divided_along(node: Node, ranks: int) -> Tuple[Node, int]:
    """The reverse: where a tensor was made of parts along another dimension."""
    if name_of(node) != "aten.cat.default" or len(node.args) > 1 and node.args[1] != 0 or not node.args[0]:
        return node, 0
    first = node.args[0][0]
    if not _is_item(first) and name_of(first) != "aten.slice.Tensor":
        return node, 0
    whole = first.args[0].args[0] if _is_item(first) else first.args[0]
    for dim in range(tensor_of(whole).dim()):
        if _are_parts(node.args[0], whole, dim, ranks):
            return whole, dim
    return node, 0


def _is_retyped(node):
    """Whether a tensor is another, whole, as itself or as a type of as many bytes."""
    if name_of(node) == "aten.alias.default":
        return True
    is_view = name_of(node) == "aten.view.dtype"
    return is_view and tensor_of(node).dtype.itemsize == tensor_of(node.args[0]).dtype.itemsize


def _past_type(node):
    """The last that a tensor is as other types, as far as it is used so only."""
    while len(node.users) == 1 and _is_retyped(next(iter(node.users))):
        (node,) = node.users
    return node


def before_type(node: Node) -> Node:
    """What was viewed as other types."""
    while _is_retyped(node):
        node = node.args[0]
    return node


def of_eight_bits(whole: Node) -> Node:
    """Gathered bytes as the 8-bit floats that they are, if they are used so only."""
    node = _past_type(whole)
    return node if tensor_of(node).dtype in EIGHT_BITS else whole


def _is_item(node):
    return node.op == "call_function" and node.target is operator.getitem


def _parts(whole):
    """The nodes that are parts of a tensor, if nothing else is made of it."""
    found = []
    for user in whole.users:
        if name_of(user) == "aten.split.Tensor":
            found += list(user.users)
        elif name_of(user) == "aten.slice.Tensor":
            found.append(user)
        else:
            return []
    return found


def _are_parts(nodes: Sequence[Node], whole: Node, dim: int, ranks: int) -> bool:
    """Whether nodes are all of the equal parts of a tensor along a dimension, in order."""
    size = tensor_of(whole).shape[dim]
    if len(nodes) != ranks or not isinstance(size, int) or size % ranks:
        return False
    return all(_is_part(before_type(node), whole, dim, size // ranks, i) for i, node in enumerate(nodes))


def _is_part(node, whole, dim, size, number):
    if _is_item(node):
        split = node.args[0]
        along = split.args[2] if len(split.args) > 2 else 0
        return (
            name_of(split) == "aten.split.Tensor" and split.args[0] is whole
            and split.args[1] == size and along % tensor_of(whole).dim() == dim and node.args[1] == number
        )  # fmt: skip
    if name_of(node) != "aten.slice.Tensor" or node.args[0] is not whole or node.kwargs:
        return False
    along, begin, end, step = (*node.args[1:], *(0, None, None, 1)[len(node.args) - 1:])
    length = tensor_of(whole).shape[dim]
    begin, end = begin or 0, length if end is None else min(end, length)
    return along % tensor_of(whole).dim() == dim and (begin, end, step) == (number * size, (number + 1) * size, 1)


def products_of(whole: Node) -> List[Product]:
    """All products whose left side are the rows of a tensor. Unsupported: there is none."""
    columns = tensor_of(whole).shape[-1]
    found, views, why = [], [whole], Unsupported("no product of what it gathers follows")
    while views:
        view = views.pop()
        for user in view.users:
            if name_of(user) in VIEWS and same_shape(tensor_of(user).shape[-1:], [columns]):
                views.append(user)
            try:
                made = product(user)
            except Unsupported as error:
                why, made = error if user.args[0] is view else why, None
            if made is not None and made.A is view:
                found.append(made)
    if not found:
        raise why
    return found


def product(node: Node) -> Optional[Product]:
    """The product that a node is, if it is one of types that overlap. Unsupported: one of others of 8 bits."""
    name = name_of(node) if node.op == "call_function" else ""
    if name == "aten._scaled_mm.default":
        return _scaled_product(node)
    if name == "aten.mm.default":
        made = Product(node, node.args[0], node.args[1], None)
    elif name == "aten.addmm.default" and all(value == 1 for value in node.kwargs.values()) and len(node.args) == 3:
        made = Product(node, node.args[1], node.args[2], node.args[0])
        if list(tensor_of(made.bias).shape) != [tensor_of(made.B).shape[1]]:
            return None
    else:
        return None
    return made if tensor_of(made.A).dtype in WIDE else None


_SCALED = ("self", "mat2", "scale_a", "scale_b", "bias", "scale_result", "out_dtype", "use_fast_accum")


def _scaled_product(node):
    given = {**dict(zip(_SCALED, node.args)), **node.kwargs}
    A, out_dtype = given["self"], tensor_of(node).dtype
    if tensor_of(A).dtype not in EIGHT_BITS or out_dtype not in WIDE:
        raise Unsupported(f"a product of {tensor_of(A).dtype} that gives {out_dtype} does not overlap")
    scales = Scales(
        given["scale_a"], given["scale_b"], given.get("scale_result"), out_dtype, given.get("use_fast_accum", False)
    )
    return Product(node, A, given["mat2"], given.get("bias"), scales)


def gathered_scale(scale: Node, found: Collective, dim: int) -> Optional[Collective]:
    """The gather by which a scale of all rows was made of those of ranks' rows, as `found` gathers the rows."""
    node = scale
    while name_of(node) in VIEWS:
        node = node.args[0]
    whole, first = node, node
    if name_of(node) == "aten.cat.default" and node.args[0]:
        first = _whole_of(node.args[0][0])
    if name_of(first) == "_c10d_functional.wait_tensor.default":
        first = first.args[0]
    try:
        made = collective(first)
    except Unsupported:
        return None
    if made is None or (made.name, made.group) != ("all_gather", found.group):
        return None
    if joined_along(made.result, ranks_of(made.group)) != (whole, dim):
        return None
    rows = [*tensor_of(found.input).shape[:-1], 1]
    return made if same_shape(tensor_of(made.input).shape, rows) else None


def product_before(node: Node, parts: bool) -> Product:
    """The product that a tensor is, by views that keep its rows, and that nothing else uses; `parts`: all that uses
    it are parts, of which one tensor is made. Unsupported: there is none."""
    columns = tensor_of(node).shape[-1]
    used = {user for part in _parts(node) for user in part.users} if parts else node.users
    while True:
        if len(used) != 1:
            raise Unsupported("what is added up is used elsewhere")
        made = product(node)
        if made is not None:
            break
        if name_of(node) not in VIEWS:
            raise Unsupported(f"what is added up is no product, but {name_of(node)}")
        node = node.args[0]
        used = node.users
    if made.bias is not None:
        raise Unsupported("each rank adds a bias to its product, which the sum has as often")
    if not same_shape(tensor_of(made.node).shape[-1:], [columns]):
        raise Unsupported("its columns are not those of the product")
    return made


def needed_before(nodes: Sequence[Node], found: Collective) -> List[Node]:
    """What must be moved before a collective so that `nodes` are there, in order. Unsupported: that depends on it, or
    writes memory."""
    order = {node: i for i, node in enumerate(found.first.graph.nodes)}
    needed, open_nodes = set(), list(nodes)
    while open_nodes:
        node = open_nodes.pop()
        if node in needed or order[node] < order[found.first]:
            continue
        if node in (found.first, found.result) or node.op != "call_function" or writes(node.target):
            raise Unsupported(f"{nodes[0].name}, by which it is multiplied, is computed later")
        needed.add(node)
        open_nodes += node.all_input_nodes
    return sorted(needed, key=order.__getitem__)


def shape_argument(shape: Sequence[Any]) -> List[Any]:
    """A shape as an argument of reshape. Unsupported: more than one size is not known."""
    sizes = [size if isinstance(size, int) else -1 for size in shape]
    if sizes.count(-1) > 1:
        raise Unsupported(f"more than one size of {list(shape)} is open")
    return sizes
