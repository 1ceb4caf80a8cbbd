"""What follows a sum in a graph and is computed of its rows: found, and put into one op."""

import operator
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

import torch
from torch.fx import Graph, Node

from ..dtypes import WIDE
from .function import TYPES, Function
from .groups import order_of, ranks_of
from .operators import name_of
from .programs import why_not
from .translation import Form, Translation, Unsupported, same_shape, shape_of, tensor_of

_MOST_COLUMNS = 65536  # 64 for each of 1024 threads


class Sum(NamedTuple):
    """A sum over a group that stands in a graph."""

    first: Node  # what begins it
    result: Node  # its tensor
    input: Node
    group: str  # for groups.group_of()
    parts: int = 1  # more: each rank gets one of so many parts of the sum


class Region(NamedTuple):
    """What one op can do: a sum and a function of its rows."""

    sum: Sum
    inside: List[Node]  # in order
    outputs: List[Node]  # of these, what others use
    kept: List[Node]  # of these, views and wider types of outputs, which stay
    rows: Translation


def _by_functional(node):
    return _waited_for(node, *node.args)


def _scattered(node):
    input, op, parts, group = node.args
    return _waited_for(node, input, op, group, parts)


def _waited_for(node, input, op, group, parts=1):
    if op != "sum" or not isinstance(group, str):
        raise Unsupported(f"it reduces by '{op}'" if op != "sum" else "its group has no name")
    users = list(node.users)
    if [name_of(one) for one in users] != ["_c10d_functional.wait_tensor.default"]:
        raise Unsupported("what it gives is used before it is waited for")
    return Sum(node, users[0], input, group, parts)


def _by_mscclc(node):
    input, op, group = node.args
    if op != "sum":
        raise Unsupported(f"it reduces by '{op}'")
    return Sum(node, node, input, group)


# What finds the sum that a node begins.
SUMS: Dict[str, Callable[[Node], Sum]] = {
    "_c10d_functional.all_reduce.default": _by_functional,
    "_c10d_functional.reduce_scatter_tensor.default": _scattered,
    "mscclc.all_reduce.default": _by_mscclc,
}


def find(sum: Sum, operators: Mapping[str, Any], max_bytes: int) -> Region:
    """All that can be computed with a sum. Unsupported: nothing can, and why."""
    rows = Translation(sum.result, _columns(sum, max_bytes), operators, name_of)
    inside, after, stops = {sum.result}, set(), []
    nodes = list(sum.first.graph.nodes)
    for node in nodes[nodes.index(sum.result) + 1:]:
        inputs = set(node.all_input_nodes)
        if not inputs & (inside | after):
            continue
        try:
            if inputs & after or node.op != "call_function":
                raise Unsupported("it needs what follows the function")
            rows.translate(node)
            inside.add(node)
        except Unsupported as error:
            if inputs & inside and node.op == "call_function":
                stops.append(f"{node.name}: {error}")
            after.add(node)
    return _checked(Region(sum, [one for one in nodes if one in inside], *_edges(nodes, inside, rows), rows), stops)


def _columns(sum, max_bytes):
    """How many columns the rows have, where plans can be of such rows."""
    tensor = tensor_of(sum.result)
    if tensor.dtype not in WIDE:
        raise Unsupported(f"row functions are of f32, f16 and bf16, not of {tensor.dtype}")
    if sum.parts > 1 and tensor.dim() < 2:
        raise Unsupported("a part of a vector is no row")
    columns = tensor.shape[-1] if tensor.dim() else 0
    if not isinstance(columns, int):
        raise Unsupported("its columns are not fixed: mark only rows as dynamic, or leave that to torch")
    if not 2 <= columns <= _MOST_COLUMNS:
        raise Unsupported(f"its rows have {columns} columns; plans have 2 to {_MOST_COLUMNS}")
    if columns * tensor.element_size() % 16:
        raise Unsupported(f"rows of {columns} columns are {columns * tensor.element_size()} bytes, no multiple of 16")
    bytes = tensor.numel() * tensor.element_size() * sum.parts
    if isinstance(bytes, int) and bytes > max_bytes:
        raise Unsupported(f"it has {bytes} bytes, and max_bytes is {max_bytes}")
    if not tensor_of(sum.input).is_contiguous():
        raise Unsupported("its input is not contiguous")
    ranks = ranks_of(sum.group)
    if ranks < 2:
        raise Unsupported("one rank has nothing to add up")
    if sum.parts not in (1, ranks):
        raise Unsupported(f"it is scattered to {sum.parts} ranks, and its group has {ranks}")
    unserved = why_not(ranks, columns, TYPES[tensor.dtype], order_of(sum.group))
    if unserved:
        raise Unsupported(unserved)
    return columns


def _edges(nodes, inside, rows):
    """Outputs, and the views that stay: nodes that have users outside, or are an input of such a view."""
    outputs, kept = [], []
    for node in reversed(nodes):
        if node not in inside or all(user in inside and user not in kept for user in node.users):
            continue
        (kept if node in rows.aliases else outputs).append(node)
    return outputs[::-1], kept[::-1]


def _checked(region, stops):
    if not region.outputs:
        raise Unsupported("nothing uses what it gives")
    _check_memory(region)
    for node in region.outputs:
        _check_shape(region, node)
    function = result_function(region)[0]
    if function.arithmetic() == 0:
        raise Unsupported("; ".join(["no function of rows follows", *stops[:3]]))
    refused = function.refused()
    if refused:
        raise Unsupported(f"the function would have {refused}")
    return region


def _check_shape(region, node):
    """A result must have the shape of the sum, or of a view of it, and lie without gaps, as those of the op do."""
    form = region.rows.form(node)
    if not isinstance(form, Form):
        raise Unsupported(f"{node.name} is several tensors")
    shape = list(shape_of(region.sum.result if form.shaped is None else form.shaped))
    if region.rows.function.kinds[form.value] == "token":
        shape = shape[:-1] if form.flat else [*shape[:-1], 1]
    found = tensor_of(node)
    if len(found.shape) != len(shape) or not same_shape(found.shape, shape) or not found.is_contiguous():
        raise Unsupported(f"{node.name} of shape {list(found.shape)} lies otherwise than the rows")


def _check_memory(region):
    """Nothing may be written between what is to become one op."""
    nodes = list(region.sum.first.graph.nodes)
    last = nodes.index(region.inside[-1])
    for node in nodes[nodes.index(region.sum.first):last]:
        if node.op not in ("call_function", "placeholder", "get_attr"):
            raise Unsupported(f"{node.name} between is a {node.op}")
        if node is not region.sum.result and writes(node.target):
            raise Unsupported(f"{node.name} between writes memory")


def writes(op: Any) -> bool:
    """Whether an op writes memory that it is given."""
    if isinstance(op, torch._ops.HigherOrderOperator):
        return "mutation" in op.name()
    schema = getattr(op, "_schema", None)
    return schema is not None and schema.is_mutable


def result_function(region: Region) -> Tuple[Function, List[Node]]:
    """The function with its results, in the order of the outputs, and what it reads besides."""
    function = region.rows.function
    function.results = []
    for node in region.outputs:
        function.result(region.rows.form(node).value, TYPES[tensor_of(node).dtype])
    function.output()
    pruned, kept = function.pruned()
    return pruned, [region.rows.arguments[one] for one in kept]


def replace(region: Region, max_bytes: int) -> Node:
    """Puts one op in a region's place, and gives its node. Unsupported: there is no place for it."""
    graph: Graph = region.sum.first.graph
    function, arguments = result_function(region)
    place = _place(region, arguments)
    inner = set(region.inside) - set(region.kept)
    given = (region.sum.input, arguments, function.to_json(), region.sum.group, max_bytes, region.sum.parts)
    traced = _traced(given)
    with graph.inserting_before(place):
        call = graph.call_function(torch.ops.mscclc.fused_rows.default, given)
        call.meta["val"] = traced
        for number, node in enumerate(region.outputs):
            made = _item(graph, region, call, number, node)
            made.meta.update(node.meta)
            node.replace_all_uses_with(made, delete_user_cb=lambda user: user not in inner)
    for node in reversed(region.inside):
        if node not in region.kept:
            graph.erase_node(node)
    if region.sum.first is not region.sum.result:
        graph.erase_node(region.sum.first)
    return call


def _place(region, arguments):
    """The first node that uses a result, or what follows the function, as memory may be written later; all that is
    read must be there before it."""
    nodes = list(region.sum.first.graph.nodes)
    order = {node: number for number, node in enumerate(nodes)}
    inner = set(region.inside) - set(region.kept)
    users = [user for one in region.outputs for user in one.users if user not in inner]
    place = min([region.inside[-1].next, *users], key=order.__getitem__)
    for node in [region.sum.input, *arguments, *_sizes(region)]:
        if order[node] >= order[place]:
            raise Unsupported(f"{node.name} is computed after {place.name}, which uses a result")
    return place


def _sizes(region):
    """The nodes that views of outputs take their sizes from."""
    views = [region.rows.form(one).shaped for one in region.outputs]
    return [size for view in views if view is not None for size in view.all_input_nodes[1:]]


def _traced(given):
    """The call's results as fake tensors."""
    fakes = [tensor_of(one) for one in [given[0], *given[1]]]
    mode = torch._guards.detect_fake_mode(fakes)
    if mode is None:
        raise Unsupported("the graph has tensors that are not fake")
    with mode:
        return torch.ops.mscclc.fused_rows.default(fakes[0], fakes[1:], *given[2:])


def _item(graph, region, call, number, node):
    """A result of the call, in the shape that the node has had."""
    made = graph.call_function(operator.getitem, (call, number))
    made.meta["val"] = call.meta["val"][number]
    form: Form = region.rows.form(node)
    view: Optional[Node] = form.shaped
    if view is not None:
        sizes = list(view.args[1])
        if region.rows.function.kinds[form.value] == "token":
            sizes[-1] = 1
        made = graph.call_function(torch.ops.aten.reshape.default, (made, sizes))
    if form.flat:
        made = graph.call_function(torch.ops.aten.squeeze.dim, (made, -1))
    return made
