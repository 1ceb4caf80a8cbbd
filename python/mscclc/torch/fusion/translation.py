"""Nodes of a graph as values of a row function: what each node's rows are, and what is read besides."""

import math
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch.fx import Node

from .function import SHARED, TYPES, Function

_EXACT = {(one, torch.float32) for one in (torch.float16, torch.bfloat16, torch.float8_e4m3fn)}
_LIMIT = 448.0  # of e4m3; beyond it torch gives NaN, and a row function the limit


class Unsupported(Exception):
    """Why something is left as it is."""


class Form(NamedTuple):
    """What a node's tensor is."""

    value: int
    flat: bool = False  # a value a row, without the last dimension
    shaped: Optional[Node] = None  # the view that gives rows another shape than the sum's


Forms = Union[Form, Tuple[Optional[Form], ...]]


def shape_of(node: Node) -> torch.Size:
    """The shape of a node's tensor, with symbols. Unsupported: none is known."""
    return tensor_of(node).shape


def tensor_of(node: Any) -> torch.Tensor:
    """The fake tensor that a node stands for."""
    found = node.meta.get("val") if isinstance(node, Node) else None
    if not isinstance(found, torch.Tensor):
        raise Unsupported(f"{node} has no shape: trace the graph with fake tensors")
    return found


def same_shape(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two shapes are the same for all values of their symbols, except for ones in front."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    one, other = _without_ones(one), _without_ones(other)
    return len(one) == len(other) and all(statically_known_true(a == b) for a, b in zip(one, other))


def _without_ones(shape):
    shape = list(shape)
    while shape and isinstance(shape[0], int) and shape[0] == 1:
        shape.pop(0)
    return shape


class Translation:
    """The row function that is made of nodes, one after the other."""

    def __init__(
        self, sum: Node, columns: int, operators: Mapping[str, Callable[..., Any]], name: Callable[[Node], str]
    ):
        """`sum`: what the function is of, a tensor of `columns` columns. `operators`: what translates a node,
        by `name` of its op."""
        self._operators, self._name = operators, name
        self._device = tensor_of(sum).device
        self.function = Function(columns, TYPES[tensor_of(sum).dtype])
        self.forms: Dict[Node, Forms] = {sum: Form(0)}
        self.arguments: List[Node] = []
        self.aliases: set = set()  # nodes that are the same values as their input

    def translate(self, node: Node) -> None:
        """Adds a node. Unsupported: no row function does it."""
        name = self._name(node)
        if name not in self._operators:
            raise Unsupported(f"{name} is no op of rows")
        form = self._operators[name](self, node)
        if isinstance(form, tuple) and not isinstance(form, Form):
            self._check_items(node, form)
        self.forms[node] = form

    def _check_items(self, node, forms):
        for user in node.users:
            if self._name(user) != "<built-in function getitem>" or forms[user.args[1]] is None:
                raise Unsupported(f"{self._name(node)} gives what a row function cannot")

    def form(self, node: Any) -> Forms:
        """What a node that was translated is."""
        if node not in self.forms:
            raise Unsupported(f"{node} is no rows of the sum")
        return self.forms[node]

    def dtype_of(self, node: Any) -> torch.dtype:
        """Of a node's tensor."""
        return tensor_of(node).dtype

    def is_exact(self, narrow: torch.dtype, wide: torch.dtype) -> bool:
        """Whether every number of a type is one of another."""
        return narrow == wide or (narrow, wide) in _EXACT

    def operand(self, given: Any, node: Node, shape: Sequence[Any]) -> int:
        """The value of an argument of a node whose result has that shape: a constant, what was translated, or
        what is read besides."""
        if not isinstance(given, Node):
            return self._constant(given)
        form = self.form_of(given, node, shape)
        kind = self.function.kinds[form.value]
        if kind not in SHARED and not self._lies_as(given, form, kind, shape):
            raise Unsupported(f"{given} of shape {list(shape_of(given))} is repeated")
        return form.value

    def _constant(self, given):
        is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
        if not is_number or not math.isfinite(given) or abs(given) > 3.4e38:
            raise Unsupported(f"an argument is {given!r}")
        return self.function.number(given)

    def _lies_as(self, given, form, kind, shape):
        own = shape_of(given)
        if kind == "row" or form.flat:
            return same_shape(own, shape)
        return same_shape(own[:-1], shape[:-1])

    def form_of(self, given: Node, node: Node, shape: Optional[Sequence[Any]] = None) -> Form:
        """What a node is; what was not translated becomes an argument, or a part of the function, if all rows
        share it. `shape`: of the result of the node that uses it."""
        if given not in self.forms:
            self.forms[given] = self._outside(given, shape_of(node) if shape is None else shape)
        form = self.forms[given]
        if not isinstance(form, Form):
            raise Unsupported(f"{given} is several tensors")
        return form

    def _outside(self, given, shape):
        tensor = tensor_of(given)
        kind = self._kind(given, tensor.shape, shape)
        if kind in SHARED and given.op == "call_function":
            try:
                self.translate(given)
                return self.forms[given]
            except Unsupported:
                pass  # it is read, then
        if tensor.dtype not in (torch.float32, torch.float16, torch.bfloat16):
            raise Unsupported(f"{given} is of {tensor.dtype}")
        if tensor.device != self._device or tensor.layout != torch.strided:
            raise Unsupported(f"{given} is of {tensor.device}, or sparse")
        self.arguments.append(given)
        return Form(self.function.parameter(kind, TYPES[tensor.dtype]))

    def _kind(self, given, own, shape):
        """row, columns, token or scalar: how an argument lies beside rows of a shape."""
        if all(isinstance(size, int) and size == 1 for size in own):
            return "scalar"
        if own[-1] == self.function.columns and len(_without_ones(own)) == 1:
            return "columns"
        if own[-1] == self.function.columns and same_shape(own, shape):
            return "row"
        if own[-1] == 1 and same_shape(own[:-1], shape[:-1]):
            return "token"
        raise Unsupported(f"{given} of shape {list(own)} lies otherwise than rows of {list(shape)}")

    def whole_row(self, given: Any, node: Node, dims: Any) -> int:
        """The value of rows that a node reduces over their columns, which are the last dimension."""
        form = self.form(given)
        last = len(shape_of(given)) - 1
        if dims is None or [one % (last + 1) for one in dims] != [last]:
            raise Unsupported(f"{self._name(node)} is over other dimensions than the last")
        if not isinstance(form, Form) or self.function.kinds[form.value] != "row":
            raise Unsupported(f"{self._name(node)} is not over rows")
        return form.value

    def pointwise(self, node: Node, name: str, *given: Any) -> Form:
        """An op on each element; its operands are converted to the type of its result, which must be exact."""
        shape = shape_of(node)
        value = self.function.op(name, *(self.operand(one, node, shape) for one in given))
        return self.rounded(node, value, *given)

    def rounded(self, node: Node, value: int, *given: Any, flat: Optional[bool] = None) -> Form:
        """What a node's op has made of tensors, as its tensor holds it."""
        dtype, nodes = self.dtype_of(node), [one for one in given if isinstance(one, Node)]
        for one in nodes:
            if not self.is_exact(self.dtype_of(one), dtype):
                raise Unsupported(f"{one} of {self.dtype_of(one)} is converted to {dtype}")
        forms = [self.forms[one] for one in nodes]
        moving = [one for one in forms if self.function.kinds[one.value] not in SHARED]
        if flat is None:
            flat = any(one.flat for one in moving)
            if flat and not all(one.flat for one in moving):
                raise Unsupported(f"{node} mixes rows with values of rows")
        shaped = next((one.shaped for one in moving), None)
        return Form(self.round_to(value, dtype), flat, shaped)

    def round_to(self, value: int, dtype: torch.dtype) -> int:
        """A value as a tensor of a type holds it. Unsupported: it might saturate, or has no such type."""
        if dtype == torch.float32:
            return value
        if dtype not in TYPES:
            raise Unsupported(f"no row function stores {dtype}")
        if dtype == torch.float8_e4m3fn:
            low, high = self.function.bounds(value)
            if low < -_LIMIT or high > _LIMIT:
                raise Unsupported("e4m3 of what is not clamped to 448 before")
        return self.function.round(value, TYPES[dtype])

    def alias(self, node: Node, form: Form) -> Form:
        """A node that has the values of its input, as another shape or a wider type."""
        self.aliases.add(node)
        return form
