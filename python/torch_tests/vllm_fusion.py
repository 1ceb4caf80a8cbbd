"""The pass for vLLM, over a fake vLLM: ops of vLLM's schemas, which compute what vLLM's do."""

import contextlib
import os
import pickle
import sys
import weakref

import mscclc.torch
import torch
import torch._inductor.config
import torch.distributed as dist
from checks import refused

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "fake"))

from fusion_models import EPS, same, weights, whole  # noqa: E402
from vllm.compilation.passes.inductor_pass import InductorPass  # noqa: E402
from vllm.distributed import parallel_state  # noqa: E402
from vllm.ir.op import IrOp  # noqa: E402

from mscclc.torch.fusion import groups  # noqa: E402
from mscclc.vllm.fusion import VllmRowFusion  # noqa: E402

IR_NORM, IR_ADDED = IrOp("rms_norm"), IrOp("fused_add_rms_norm")


class _Coordinator:
    """A group of vLLM's."""


COORDINATOR = _Coordinator()


def _all_reduce(tensor, group_name):
    group = parallel_state._groups[group_name]()
    summed = tensor.clone()
    dist.all_reduce(summed, group=group.device_group)
    return summed


def _native(x, weight, eps, dtype):
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return (wide if weight is None else wide.to(weight.dtype) * weight).to(dtype)


def _ir_norm(x, weight, epsilon, variance_size=None):
    return _native(x, weight, epsilon, x.dtype)


def _ir_added_norm(x, x_residual, weight, epsilon, variance_size=None):
    if IR_ADDED.priority[0] == "vllm_c" and weight.dtype == x.dtype:
        x, residual = x.clone(), x_residual.clone()
        _kernel_added_norm(x, residual, weight, epsilon)
        return x, residual
    sum = x.float() + x_residual.float()
    return _native(sum, weight, epsilon, x.dtype), sum.to(x.dtype)


def _kernel_norm(result, input, weight, epsilon):
    result.copy_(_native(input, weight, epsilon, input.dtype))


def _kernel_added_norm(input, residual, weight, epsilon):
    residual.add_(input)
    input.copy_(_native(residual, weight, epsilon, input.dtype))


def _kernel_quantize(result, input, scale, group_shape=None):
    result.copy_((input.float() * (1 / scale)).clamp(-448, 448))


def _kernel_quantize_by_token(result, input, scale, scale_ub=None):
    most = input.float().abs().amax(-1, keepdim=True)
    if scale_ub is not None:
        most = torch.minimum(most, scale_ub)
    scale.copy_((most / 448).clamp(min=1 / (448 * 512)))
    result.copy_((input.float() / scale).clamp(-448, 448))


_OPS = [
    ("vllm", "all_reduce(Tensor tensor, str group_name) -> Tensor", _all_reduce, lambda x, _: torch.empty_like(x)),
    ("vllm_ir", "rms_norm(Tensor x, Tensor? weight, float epsilon, int? variance_size=None) -> Tensor", _ir_norm,
     lambda x, *_: torch.empty_like(x)),
    ("vllm_ir", "fused_add_rms_norm(Tensor x, Tensor x_residual, Tensor? weight, float epsilon,"
                " int? variance_size=None) -> (Tensor, Tensor)", _ir_added_norm,
     lambda x, *_: (torch.empty_like(x), torch.empty_like(x))),
    ("_C", "rms_norm(Tensor! result, Tensor input, Tensor weight, float epsilon) -> ()", _kernel_norm, None),
    ("_C", "fused_add_rms_norm(Tensor! input, Tensor! residual, Tensor weight, float epsilon) -> ()",
     _kernel_added_norm, None),
    ("_C", "static_scaled_fp8_quant(Tensor! result, Tensor input, Tensor scale, int[]? group_shape=None) -> ()",
     _kernel_quantize, None),
    ("_C", "dynamic_per_token_scaled_fp8_quant(Tensor! result, Tensor input, Tensor! scale, Tensor? scale_ub) -> ()",
     _kernel_quantize_by_token, None),
]  # fmt: skip
_libraries = []


def _define():
    for namespace, schema, body, fake in _OPS:
        library = torch.library.Library(namespace, "FRAGMENT")
        library.define(schema)
        name = schema.partition("(")[0]
        for key in ("CPU", "CUDA"):
            library.impl(name, body, key)
        torch.library.register_fake(f"{namespace}::{name}", fake or (lambda *_: None), lib=library)
        _libraries.append(library)


_define()
ops, ir, kernels = torch.ops.vllm, torch.ops.vllm_ir, torch.ops._C


def by_ir(x, r, w):
    """As vLLM 0.24's layers are."""
    return ir.fused_add_rms_norm(ops.all_reduce(x, group_name="tp:0"), r, w, EPS)


def first_by_ir(x, r, w):
    """The first layer, which has no residual yet; the sum becomes it."""
    sum = ops.all_reduce(x, group_name="tp:0")
    return ir.rms_norm(sum, w, EPS), sum


def without_weight(x, r, w):
    return ir.rms_norm(ops.all_reduce(x, group_name="tp:0"), None, EPS)


def gemma_by_ir(x, r, w):
    return ir.fused_add_rms_norm(ops.all_reduce(x, group_name="tp:0"), r, w.float() + 1.0, EPS)


def quantized_by_ir(x, r, w):
    """Static e4m3 as compiled layers have it."""
    y, stream = ir.fused_add_rms_norm(ops.all_reduce(x, group_name="tp:0"), r, w, EPS)
    scale = w[:1].float().reshape(1, 1)
    q = (y.to(torch.float32) * scale.expand(y.shape).reciprocal()).clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
    return q.float(), stream


def by_kernels(x, r, w):
    """As earlier vLLM's layers are: in place."""
    sum = ops.all_reduce(x, group_name="tp:0")
    kernels.fused_add_rms_norm(sum, r, w, EPS)
    return sum, r


def first_by_kernels(x, r, w):
    sum = ops.all_reduce(x, group_name="tp:0")
    y = torch.empty_like(sum)
    kernels.rms_norm(y, sum, w, EPS)
    return y, sum


def quantized_by_kernels(x, r, w):
    y = ops.all_reduce(x, group_name="tp:0")
    kernels.fused_add_rms_norm(y, r, w, EPS)
    q = torch.empty(y.shape, dtype=torch.float8_e4m3fn, device=y.device)
    kernels.static_scaled_fp8_quant(q, y, w[:1].float())
    return q.float(), r


def quantized_by_token(x, r, w):
    """Dynamic e4m3: a scale a row, which the layer that follows takes."""
    y = ops.all_reduce(x, group_name="tp:0")
    kernels.fused_add_rms_norm(y, r, w, EPS)
    q = torch.empty(y.shape, dtype=torch.float8_e4m3fn, device=y.device)
    scale = torch.empty((*y.shape[:-1], 1), dtype=torch.float32, device=y.device)
    kernels.dynamic_per_token_scaled_fp8_quant(q, y, scale, None)
    bounded, least = torch.empty_like(q), torch.empty_like(scale)
    kernels.dynamic_per_token_scaled_fp8_quant(bounded, y, least, w[:1].float())
    return q.float(), scale, bounded.float(), least, r


def _given(rows, dtype, ranks):
    part = whole((rows, 64), 30 + ranks.rank, 3, dtype)
    return part, whole((rows, 64), 40, 5, dtype), weights(64, dtype)


@contextlib.contextmanager
def _vllm(ranks):
    """vLLM's group, and its settings."""
    COORDINATOR.cpu_group, COORDINATOR.device_group = ranks.gloo, dist.group.WORLD
    parallel_state._groups["tp:0"] = weakref.ref(COORDINATOR)
    with torch.no_grad(), mscclc.torch.order("ranks"):
        with torch._inductor.config.patch(enable_auto_functionalized_v2=False):
            yield
    del parallel_state._groups["tp:0"]


def _check(program, dtype, ranks, replaced=1):
    torch._dynamo.reset()
    by = VllmRowFusion()
    compiled = torch.compile(program, fullgraph=True, backend=by.backend, dynamic=False)
    mine, others = _given(5, dtype, ranks), _given(5, dtype, ranks)
    found, wanted = compiled(*mine), program(*others)
    report = by.report()
    text = "\n".join([program.__name__, str(report), *(one.function for one in report.replaced)])
    assert len(report.replaced) == replaced, text
    same(found, wanted, text)
    same(mine, others, text)
    return by


def programs(ranks):
    """The bits with and without the pass, also of what is changed in place."""
    with _vllm(ranks):
        for program in (by_ir, first_by_ir, without_weight, gemma_by_ir, quantized_by_ir, by_kernels,
                        first_by_kernels, quantized_by_kernels, quantized_by_token):  # fmt: skip
            for dtype in (torch.bfloat16, torch.float32):
                _check(program, dtype, ranks)


def priorities(ranks):
    """Norms are those of the implementation that vLLM would take."""
    texts = []
    with _vllm(ranks):
        for IR_ADDED.priority in (["native"], ["vllm_c", "native"]):
            texts.append(_check(by_ir, torch.bfloat16, ranks).report().replaced[0].function)
        assert texts[0] != texts[1], texts
        _check(gemma_by_ir, torch.bfloat16, ranks)  # its weight is f32, which the kernel does not take
        uuid = VllmRowFusion().uuid()
        IR_ADDED.priority = ["oink", "native"]
        report = _check(by_ir, torch.bfloat16, ranks, 0).report()
        assert "by 'oink'" in report.left[0].why, report
        assert VllmRowFusion().uuid() != uuid
    IR_ADDED.priority = ["native"]


def left_alone(ranks):
    def of_a_part(x, r, w):
        return ir.rms_norm(ops.all_reduce(x, group_name="tp:0"), w, EPS, 32)

    def in_groups(x, r, w):
        y = ops.all_reduce(x, group_name="tp:0")
        q = torch.empty(y.shape, dtype=torch.float8_e4m3fn, device=y.device)
        kernels.static_scaled_fp8_quant(q, y, w.float(), [1, 1])
        return q.float()

    with _vllm(ranks):
        for program, why in ((of_a_part, "a norm of a part of the columns"), (in_groups, "a scale for each group")):
            report = _check(program, torch.float32, ranks, 0).report()
            assert why in report.left[0].why, report


def as_vllm_takes_it(ranks):
    """vLLM keeps passes in its configuration, which it sends to its workers."""
    made = VllmRowFusion(max_bytes=1 << 20)
    assert isinstance(made, InductorPass) and made.is_applicable_for_range(None)
    again = pickle.loads(pickle.dumps(made))
    assert again.max_bytes == made.max_bytes and again.uuid() == made.uuid()
    by = VllmRowFusion()
    torch._dynamo.reset()
    with _vllm(ranks), torch._inductor.config.patch(force_disable_caches=True):
        options = {"post_grad_custom_post_pass": by, "enable_auto_functionalized_v2": False}
        compiled = torch.compile(by_ir, fullgraph=True, dynamic=False, options=options)
        given = _given(3, torch.float32, ranks)
        same(compiled(*given), by_ir(*given))
    assert len(by.report().replaced) == 1, by.report()


def no_group(ranks):
    """A group that vLLM has not."""
    refused(lambda: groups.group_of("vllm:tp:7"), "vLLM has no group 'tp:7'")
    dist.barrier(ranks.gloo)


CHECKS = [programs, priorities, left_alone, as_vllm_takes_it, no_group]
