"""Products in a graph that can overlap with a collective: what is gathered before them, what is added up after them."""

import operator
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from torch.fx import Node

from ..dtypes import WIDE
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


class Product(NamedTuple):
    """A product of two matrices, and what is added."""

    node: Node
    A: Node
    B: Node
    bias: Optional[Node]


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
    cats = {user for part in _parts(result) for user in part.users}
    if len(cats) != 1:
        return result, 0
    (cat,) = cats
    if name_of(cat) != "aten.cat.default" or not _are_parts(cat.args[0], result, 0, ranks):
        return result, 0
    dim = cat.args[1] if len(cat.args) > 1 else 0
    return cat, dim % tensor_of(cat).dim()


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
    return all(_is_part(node, whole, dim, size // ranks, i) for i, node in enumerate(nodes))


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
    """All products whose left side are the rows of a tensor."""
    columns = tensor_of(whole).shape[-1]
    found, views = [], [whole]
    while views:
        view = views.pop()
        for user in view.users:
            if name_of(user) in VIEWS and same_shape(tensor_of(user).shape[-1:], [columns]):
                views.append(user)
            made = product(user)
            if made is not None and made.A is view:
                found.append(made)
    return found


def product(node: Node) -> Optional[Product]:
    """The product that a node is, if it is one of types that overlap."""
    name = name_of(node) if node.op == "call_function" else ""
    if name == "aten.mm.default":
        made = Product(node, node.args[0], node.args[1], None)
    elif name == "aten.addmm.default" and all(value == 1 for value in node.kwargs.values()) and len(node.args) == 3:
        made = Product(node, node.args[1], node.args[2], node.args[0])
        if list(tensor_of(made.bias).shape) != [tensor_of(made.B).shape[1]]:
            return None
    else:
        return None
    return made if tensor_of(made.A).dtype in WIDE else None


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
