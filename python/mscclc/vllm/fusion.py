"""The pass that fuses all-reduces with norms in vLLM's graphs (mscclc.torch.fusion), for vLLM 0.24:

    from mscclc.vllm.fusion import VllmRowFusion

    passes = {"post_grad_custom_post_pass": VllmRowFusion()}
    llm = LLM(model, tensor_parallel_size=2, compilation_config={
        "inductor_compile_config": passes,
        "pass_config": {"fuse_allreduce_rms": False},      # FlashInfer's pass, which comes before
    })

vLLM's own ops have the roundings of what would run in their place: vLLM's native definition, which it compiles by
default, or its kernels (`ir_op_priority`). Where these lose a NaN in a conversion to e4m3, it stays NaN here.
Tested with a fake vLLM; it has run in vLLM 0.24 on GPUs, where prefill takes longer with it (docs/records/engines.md).
"""

import hashlib
from typing import Any

from ..torch.fusion import RowFusion
from ..torch.fusion.groups import VLLM
from ..torch.fusion.operators import TABLE
from ..torch.fusion.region import SUMS, Sum
from ..torch.fusion.translation import Form, Translation, Unsupported, shape_of

from vllm.compilation.passes.inductor_pass import InductorPass  # isort: skip, not always there
from vllm.ir.op import IrOp  # isort: skip

__all__ = ["VllmRowFusion"]


def _sum_of(node):
    input, group = [*node.args, *node.kwargs.values()]
    return Sum(node, node, input, VLLM + group)


def _is_native(name, fits):
    """Whether vLLM computes an op of its IR as it is defined, and not by its kernel, which does if it `fits`."""
    for provider in IrOp.registry[name].get_priority():
        if provider == "native":
            return True
        if provider != "vllm_c":
            raise Unsupported(f"vLLM computes {name} by '{provider}'")
        if fits:
            return False
    return True


def _like(rows: Translation, given: Any, value: int) -> Form:
    """A result that lies as an argument does."""
    form = rows.form(given)
    return Form(value, False, form.shaped)


def _normed(rows, node, base, weight, eps, dtype):
    """The norm of rows, as both of vLLM's definitions round it."""
    function = rows.function
    if function.kinds[base] != "row":
        raise Unsupported(f"{node.name} is not of rows")
    mean = function.op("mean", function.op("mul", base, base))
    value = function.op("mul", base, function.op("rsqrt", function.op("add", mean, function.number(eps))))
    if weight is not None:
        shared, own = rows.operand(weight, node, shape_of(weight)), rows.dtype_of(weight)
        if function.kinds[shared] != "columns":
            raise Unsupported(f"{weight.name} is no weight of columns")
        value = rows.round_to(function.op("mul", rows.round_to(value, own), shared), own)
    return rows.round_to(value, dtype)


def _norm(rows, node, x, weight, eps):
    value = _normed(rows, node, rows.operand(x, node, shape_of(x)), weight, eps, rows.dtype_of(x))
    return _like(rows, x, value)


def _added_norm(rows, node, x, residual, weight, eps, native):
    """The norm, and the residual stream. The native definition takes the norm of the stream before that is rounded."""
    shape, dtype = shape_of(x), rows.dtype_of(x)
    if rows.dtype_of(residual) != dtype:
        raise Unsupported(f"{residual.name} is of another type")
    sum = rows.function.op("add", rows.operand(x, node, shape), rows.operand(residual, node, shape))
    stream = rows.round_to(sum, dtype)
    value = _normed(rows, node, sum if native else stream, weight, eps, dtype)
    given = x if rows.function.kinds[rows.form_of(x, node, shape).value] == "row" else residual
    return _like(rows, given, value), _like(rows, given, stream)


def _fits(rows, x, weight):
    return weight is None or rows.dtype_of(weight) == rows.dtype_of(x)


def _four(node, count):
    """The arguments, without the last, which must not be given: a norm of a part of the columns."""
    given = [*node.args, *node.kwargs.values()]
    if len(given) > count and given[count] is not None:
        raise Unsupported("a norm of a part of the columns")
    return given[:count]


def _ir_norm(rows, node):
    x, weight, eps = _four(node, 3)
    _is_native("rms_norm", _fits(rows, x, weight))  # both are the same
    return _norm(rows, node, x, weight, eps)


def _ir_added_norm(rows, node):
    x, residual, weight, eps = _four(node, 4)
    native = _is_native("fused_add_rms_norm", _fits(rows, x, weight))
    return _added_norm(rows, node, x, residual, weight, eps, native)


def _kernel_norm(rows, node):
    given = node.kwargs
    return None, _norm(rows, node, given["input"], given["weight"], given["epsilon"])


def _kernel_added_norm(rows, node):
    given = node.kwargs
    input, residual = given["input"], given["residual"]
    return None, *_added_norm(rows, node, input, residual, given["weight"], given["epsilon"], False)


def _kernel_quantize(rows, node):
    """e4m3 by a scale for the whole tensor."""
    given, function = node.kwargs, rows.function
    if given.get("group_shape") is not None:
        raise Unsupported("a scale for each group")
    value = rows.operand(given["input"], node, shape_of(given["input"]))
    scale = rows.operand(given["scale"], node, shape_of(given["input"]))
    if function.kinds[scale] != "scalar":
        raise Unsupported("more than one scale")
    value = function.op("mul", value, function.op("div", function.number(1.0), scale))
    value = function.op("most", function.op("least", value, function.number(448.0)), function.number(-448.0))
    return None, _like(rows, given["input"], rows.round_to(value, rows.dtype_of(given["result"])))


def _kernel_quantize_by_token(rows, node):
    """e4m3 by a scale a row: the greatest of it / 448, at most a bound, and at least 1 / (448 * 512)."""
    given, function = node.kwargs, rows.function
    input, shape = given["input"], shape_of(given["input"])
    value = rows.operand(input, node, shape)
    if function.kinds[value] != "row" or list(shape_of(given["scale"])[-1:]) != [1]:
        raise Unsupported("its scales are none of rows")
    most = function.op("row_most", function.op("abs", value))
    if given.get("scale_ub") is not None:
        bound = rows.operand(given["scale_ub"], node, shape)
        if function.kinds[bound] != "scalar":
            raise Unsupported("more than one bound of scales")
        most = function.op("least", most, bound)
    scale = function.op("most", function.op("div", most, function.number(448.0)), function.number(1 / (448 * 512)))
    value = function.op("div", value, scale)
    value = function.op("most", function.op("least", value, function.number(448.0)), function.number(-448.0))
    result = rows.round_to(value, rows.dtype_of(given["result"]))
    return None, _like(rows, input, result), Form(scale, False, rows.form(input).shaped)


class VllmRowFusion(RowFusion, InductorPass):
    """The pass, as vLLM takes it as `post_grad_custom_post_pass`."""

    sums = {**SUMS, "vllm.all_reduce.default": _sum_of}
    operators = {
        **TABLE,
        "vllm_ir.rms_norm.default": _ir_norm,
        "vllm_ir.fused_add_rms_norm.default": _ir_added_norm,
        "auto_functionalized:_C.rms_norm.default": _kernel_norm,
        "auto_functionalized:_C.fused_add_rms_norm.default": _kernel_added_norm,
        "auto_functionalized:_C.static_scaled_fp8_quant.default": _kernel_quantize,
        "auto_functionalized:_C.dynamic_per_token_scaled_fp8_quant.default": _kernel_quantize_by_token,
    }

    def uuid(self) -> str:
        """What compiled code depends on: the sources, the options, and which definitions vLLM's ops have."""
        with open(__file__, "rb") as file:
            own = hashlib.sha256(file.read()).hexdigest()
        chosen = {name: IrOp.registry[name].get_priority() for name in ("rms_norm", "fused_add_rms_norm")}
        return f"{super().uuid()} {own} {sorted(chosen.items())}"
