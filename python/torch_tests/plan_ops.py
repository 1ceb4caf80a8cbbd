"""Plans by name as a custom op."""

import mscclc
import mscclc.torch.plans as plans
import torch
import torch.distributed as dist
from checks import EXCHANGE, a_call_is_cut_short, device, equal, refused
from mscclc.buffers import of_tensor


def _load(name, **more):
    more.setdefault("device", device())
    plans.load(name, mscclc.compile(EXCHANGE), max_bytes=1 << 16, **more)


def by_name(ranks):
    _load("sum")
    for count in (1, 3, 1000, 16384):
        found = torch.zeros(count)
        torch.ops.mscclc.run_plan_(torch.full((count,), ranks.rank + 1.0), found, "sum")
        equal(found, torch.full((count,), 3.0), f"{count}")
    found = torch.zeros(1, dtype=torch.int32)
    given = torch.full((1,), (1 << 24) + ranks.rank, dtype=torch.int32)
    torch.ops.mscclc.run_plan_(given, found, "sum")  # elements as wide as those of the load
    equal(found, torch.full((1,), (1 << 25) + 1, dtype=torch.int32), "f32 would round it")
    weights = torch.ones(5, requires_grad=True)
    found = torch.zeros(5)
    torch.ops.mscclc.run_plan_(weights.detach(), found, "sum")
    equal(found, torch.full((5,), 2.0))
    factor = torch.ones(5, requires_grad=True)
    loss = (factor * found).sum()
    torch.ops.mscclc.run_plan_(weights.detach(), found, "sum")
    refused(loss.backward, "modified by an inplace operation")  # it needs what was there
    for given, out in ((weights, torch.zeros(5)), (torch.ones(5), weights * 1)):
        refused(lambda: torch.ops.mscclc.run_plan_(given, out, "sum"), "run_plan_ has no gradient")
    plans.unload("sum")


def tensors_of_inference_mode(ranks):
    """Used outside of it, where torch's own ops do not write them."""
    _load("inferred")
    with torch.inference_mode():
        given, found = torch.ones(5), torch.zeros(5)
    torch.ops.mscclc.run_plan_(given, found, "inferred")
    equal(found, torch.full((5,), 2.0))
    plans.unload("inferred")


def negated_where_they_are_read(ranks):
    """Tensors whose memory has other values: torch resolves those of ops, and a communicator refuses them."""
    _load("negated")
    op, negative = torch.ops.mscclc.run_plan_, torch._neg_view(torch.ones(4))
    found, out = torch.zeros(4), torch._neg_view(torch.zeros(4))
    op(negative, found, "negated")
    equal(found, torch.full((4,), -2.0))
    refused(lambda: op(torch.ones(4), out, "negated"), "tensor.resolve_neg()")
    plans.unload("negated")
    with plans.alone(torch.device(device())) as comm:
        conjugate = torch.ones(4, dtype=torch.complex64).conj()
        for tensor, bit in ((negative, "neg"), (conjugate, "conj")):
            refused(lambda: comm.allreduce(tensor, dtype="f32"), f"tensor.resolve_{bit}()")
            refused(lambda: of_tensor(tensor, "the input"), f"tensor.resolve_{bit}()")


def compiled(ranks):
    _load("compiled")

    @torch.compile(fullgraph=True, backend="aot_eager")
    def layer(x):
        out = torch.empty_like(x)
        torch.ops.mscclc.run_plan_(x * 2, out, "compiled")
        return out + x

    for rows in (4, 4, 9):
        equal(layer(torch.ones(rows, 3)), torch.full((rows, 3), 5.0))
    plans.unload("compiled")


def checked(ranks):
    _load("checked")
    sample = (torch.ones(4), torch.zeros(4), "checked")
    torch.library.opcheck(torch.ops.mscclc.run_plan_.default, sample)
    plans.unload("checked")


def mistakes(ranks):
    ones, op = torch.ones(4), torch.ops.mscclc.run_plan_
    refused(lambda: op(ones, torch.ones(4), "none"), "no plan 'none'")
    refused(lambda: plans.unload("none"), "no plan 'none'")
    _load("mine")
    refused(lambda: _load("mine"), "'mine' already")
    refused(lambda: _load("other", device="meta"), "not on meta")
    refused(lambda: op(ones, torch.ones(4, 2).t()[0], "mine"), "not contiguous")
    refused(lambda: op(torch.ones(1 << 15), torch.ones(1 << 15), "mine"), "65536")
    halves = torch.ones(8, dtype=torch.bfloat16)
    refused(lambda: op(halves, halves.clone(), "mine"), "elements of 4 bytes ('f32'); 'bf16' has 2")
    refused(lambda: op(ones, halves, "mine"), "input is of torch.float32, the output of torch.bfloat16")
    refused(lambda: op(ones.bool(), ones.bool(), "mine"), "no elements of torch.bool")
    dist.barrier(ranks.gloo)
    plans.unload("mine")
    refused(lambda: plans.load("bad", "{}", max_bytes=4), "error")


CALL = f"""
import mscclc.torch.plans as plans
plans.load("sum", mscclc.compile({EXCHANGE!r}), max_bytes=64)
def call(): torch.ops.mscclc.run_plan_(torch.ones(3), torch.zeros(3), "sum")
"""


def calls_that_are_cut_short(ranks):
    """The group's backend is another one, so the variable says what is to be."""
    for handling, ends in (("1", True), ("0", False)):
        a_call_is_cut_short(ranks, "gloo", CALL, handling, ends)


CHECKS = [
    by_name, tensors_of_inference_mode, negated_where_they_are_read, compiled, checked, mistakes, calls_that_are_cut_short,
]  # fmt: skip
