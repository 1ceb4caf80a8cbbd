"""What ops of a graph are in a row function: a table from the name of an op to what translates a node of it.

Only ops are here whose results are those of IEEE 754 on all sides. A sum over a row is added up in the order of
rows.md, where torch's own order depends on the machine.
"""

import operator
from typing import Any, Callable, Dict

import torch
from torch.fx import Node

from .translation import Form, Translation, Unsupported, shape_of

Operator = Callable[[Translation, Node], Any]

_POINTWISE = {
    "aten.add.Tensor": "add", "aten.add.Scalar": "add", "aten.sub.Tensor": "sub", "aten.sub.Scalar": "sub",
    "aten.mul.Tensor": "mul", "aten.mul.Scalar": "mul", "aten.div.Tensor": "div", "aten.div.Scalar": "div",
    "aten.neg.default": "neg", "aten.abs.default": "abs", "aten.sqrt.default": "sqrt",
    "aten.rsqrt.default": "rsqrt", "aten.minimum.default": "least", "aten.maximum.default": "most",
    "aten.clamp_min.default": "most", "aten.clamp_max.default": "least",
}  # fmt: skip
_ONE_OPERAND = ("neg", "abs", "sqrt", "rsqrt")
_REDUCTIONS = {
    "aten.mean.dim": "mean", "aten.sum.dim_IntList": "sum", "aten.amax.default": "row_most",
    "aten.amin.default": "row_least",
}  # fmt: skip
_WITH_INDICES = {"aten.max.dim": "row_most", "aten.min.dim": "row_least"}
_CONVERSIONS = ("prims.convert_element_type.default", "aten._to_copy.default", "aten.to.dtype")
_VIEWS = ("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default")
_SAME = ("aten.clone.default", "aten.detach.default", "aten.alias.default")


def _arguments(node, required, **defaults):
    """The op's arguments in order, with those that have names; Unsupported, if one is not expected."""
    names = list(defaults)
    count = len(node.args)
    if set(node.kwargs) - set(names) or not required <= count <= required + len(names):
        raise Unsupported(f"{node.target} has arguments that a row function has not")
    rest = (node.kwargs.get(name, defaults[name]) for name in names[count - required:])
    return [*node.args, *rest]


def _pointwise(name):
    def translate(rows, node):
        count = 1 if name in _ONE_OPERAND else 2
        if len(node.args) != count or any(value != 1 for value in node.kwargs.values()):
            raise Unsupported(f"{node.target} has arguments that a row function has not")
        return rows.pointwise(node, name, *node.args)

    return translate


def _power(rows, node):
    base, exponent = node.args
    if exponent != 2:
        raise Unsupported(f"a power of {exponent}")
    return rows.pointwise(node, "mul", base, base)


def _subtracted_from(rows, node):
    input, given, alpha = _arguments(node, 2, alpha=1)
    if alpha != 1:
        raise Unsupported(f"{node.target} has arguments that a row function has not")
    return rows.pointwise(node, "sub", given, input)


def _clamp(rows, node):
    input, low, high = _arguments(node, 1, min=None, max=None)
    limits = [(name, limit) for name, limit in (("most", low), ("least", high)) if limit is not None]
    shape = shape_of(node)
    value = rows.operand(input, node, shape)
    for name, limit in limits:
        value = rows.function.op(name, value, rows.operand(limit, node, shape))
    return rows.rounded(node, value, input)


def _reduction(name):
    def translate(rows, node):
        input, dims, keep, dtype = _arguments(node, 1, dim=None, keepdim=False, dtype=None)
        return _reduced(rows, node, name, input, dims, keep, dtype)

    return translate


def _reduced(rows, node, name, input, dims, keep, dtype=None):
    if dtype not in (None, rows.dtype_of(node)):
        raise Unsupported(f"{node.target} gives {dtype}")
    value = rows.function.op(name, rows.whole_row(input, node, dims))
    return rows.rounded(node, value, input, flat=not keep)


def _with_indices(name):
    def translate(rows, node):
        input, dim, keep = _arguments(node, 2, keepdim=False)
        value = rows.function.op(name, rows.whole_row(input, node, [dim]))
        form = Form(rows.round_to(value, rows.dtype_of(input)), not keep, rows.form(input).shaped)
        return form, None

    return translate


def _variance_and_mean(rows, node):
    input, dims, correction, keep = _arguments(node, 1, dim=None, correction=None, keepdim=False)
    if correction != 0:
        raise Unsupported("a variance that is not the mean of squares")
    function, shaped = rows.function, rows.form(input).shaped
    value = rows.whole_row(input, node, dims)
    mean = function.op("mean", value)
    centred = function.op("sub", value, mean)
    variance = function.op("mean", function.op("mul", centred, centred))
    flat, dtype = not keep, rows.dtype_of(input)
    return tuple(Form(rows.round_to(one, dtype), flat, shaped) for one in (variance, mean))


def _item(rows, node):
    forms, number = rows.form(node.args[0]), node.args[1]
    if not isinstance(forms, tuple) or forms[number] is None:
        raise Unsupported(f"{node.args[0].target} gives what a row function cannot")
    return forms[number]


def _converted(rows, node):
    options = {name: value for name, value in node.kwargs.items() if value is not None and name != "dtype"}
    if options or len(node.args) > 2:
        raise Unsupported(f"{node.target} does more than to convert")
    input = node.args[0]
    form = rows.form_of(input, node)
    if rows.is_exact(rows.dtype_of(input), rows.dtype_of(node)):
        return rows.alias(node, form)
    return form._replace(value=rows.round_to(form.value, rows.dtype_of(node)))


def _viewed(rows, node):
    form, shape = rows.form_of(node.args[0], node), shape_of(node)
    kind = rows.function.kinds[form.value]
    if kind in ("row", "columns") and shape[-1:] != (rows.function.columns,):
        raise Unsupported(f"a view of rows as {list(shape)}")
    if kind == "token":
        form = form._replace(flat=shape[-1:] != (1,))
    return rows.alias(node, form._replace(shaped=node))


def _unsqueezed(rows, node):
    form, dim = rows.form_of(node.args[0], node), node.args[1]
    last = dim in (-1, len(shape_of(node)) - 1)
    if rows.function.kinds[form.value] != "token" or not form.flat or not last:
        raise Unsupported("a dimension is added that is not a row's")
    return rows.alias(node, form._replace(flat=False))


def _expanded(rows, node):
    form = rows.form_of(node.args[0], node)
    if rows.function.kinds[form.value] not in ("columns", "scalar"):
        raise Unsupported("rows are repeated")
    return rows.alias(node, form)


def _same(rows, node):
    return _same_as(rows, node, node.args[0])


def _same_as(rows, node, given):
    return rows.alias(node, rows.form_of(given, node))


def _copied(rows, node):
    """The second argument, in place of what the first has held."""
    to, given = node.args[:2]
    if shape_of(to) != shape_of(given) or rows.dtype_of(to) != rows.dtype_of(given):
        raise Unsupported("a copy that changes shape or type")
    return _same_as(rows, node, given)


TABLE: Dict[str, Operator] = {
    **{name: _pointwise(op) for name, op in _POINTWISE.items()},
    **{name: _reduction(op) for name, op in _REDUCTIONS.items()},
    **{name: _with_indices(op) for name, op in _WITH_INDICES.items()},
    **dict.fromkeys(_CONVERSIONS, _converted),
    **dict.fromkeys(_VIEWS, _viewed),
    **dict.fromkeys(_SAME, _same),
    "aten.pow.Tensor_Scalar": _power,
    "aten.clamp.default": _clamp,
    "aten.reciprocal.default": lambda rows, node: rows.pointwise(node, "div", 1, node.args[0]),
    "aten.rsub.Scalar": _subtracted_from,
    "aten.var_mean.correction": _variance_and_mean,
    "aten.unsqueeze.default": _unsqueezed,
    "aten.expand.default": _expanded,
    "aten.copy.default": _copied,
    str(operator.getitem): _item,
}


def name_of(node: Node) -> str:
    """What the table calls the op of a node; of one that writes its arguments that op's own name, after
    "auto_functionalized:"."""
    target = node.target
    if isinstance(target, torch._ops.HigherOrderOperator) and target.name() == "auto_functionalized":
        return f"auto_functionalized:{node.args[0]}"
    return str(target)
