"""AllReduce, residual, RMSNorm and quantisation to e4m3 as one op: by a scale that is given, and by one a token.

    torchrun --nproc-per-node 2 python/examples/fused_quantize.py           on the host
    torchrun --nproc-per-node 2 python/examples/fused_quantize.py cuda      a GPU for each rank

Both are compared with what they replace: an all-reduce and torch's ops, one after the other. The residual stream has
the same bits. Sums over a row are added in another order, so a few values become the neighbouring number of e4m3.
"""

import os
import sys

import torch
import torch.distributed as dist

import mscclc.torch
import mscclc.torch.row_ops  # torch.ops.mscclc.run_rows
from mscclc.torch import plans

ROWS, COLUMNS, EPS, LEAST = 5, 2880, 1e-5, 1e-10


def unfused(part, residual, weight, scale):
    """The chain, which rounds each tensor to bf16; a scale for each row where none is given."""
    dist.all_reduce(part)
    stream = part + residual
    wide = stream.float()
    norm = (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPS) * weight).bfloat16()
    if scale is None:
        scale = (norm.abs().amax(-1, keepdim=True).float() / 448).clamp(min=LEAST)
    return stream, norm, (norm / scale).clamp(-448, 448).to(torch.float8_e4m3fn), scale


def by_given_scale(part, residual, weight, scale):
    names = ["residual", "weight", "scale", "eps"]  # tensors first, the scale is one; then numbers
    return torch.ops.mscclc.run_rows(part, "given", names, [residual, weight, scale], [], [EPS])


def by_scale_a_token(part, residual, weight, _):
    names = ["residual", "weight", "eps", "least"]
    return torch.ops.mscclc.run_rows(part, "token", names, [residual, weight], [], [EPS, LEAST])


def compare(name, run, scale, part, residual, weight):
    stream, q, *scales = run(part, residual, weight, scale)
    wanted_stream, norm, wanted_q, wanted_scale = unfused(part.clone(), residual, weight, scale)
    assert torch.equal(stream, wanted_stream)
    found_scale = scales[0] if scales else scale
    torch.testing.assert_close(found_scale, wanted_scale, rtol=2**-7, atol=0)  # a step of bf16
    values, wanted = q.float() * found_scale, wanted_q.float() * wanted_scale
    torch.testing.assert_close(values, wanted, rtol=1 / 7, atol=2**-8 * wanted_scale.max().item())  # one of e4m3
    same = (q.view(torch.uint8) == wanted_q.view(torch.uint8)).sum().item()
    assert same > 0.9 * q.numel()
    error = (values - norm.float()).norm() / norm.float().norm()
    assert error < 0.04  # half a step is at most a 16th
    if dist.get_rank() == 0:
        moved = q.nbytes + sum(one.nbytes for one in scales)
        print(f"{name}: {moved} bytes instead of {norm.nbytes}, {error:.1%} off; {same} of {q.numel()} as unfused")


def main():
    device = torch.device("cpu")
    if sys.argv[1:] == ["cuda"]:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    dist.init_process_group("mscclc", pg_options=mscclc.torch.Options(order="ranks"))  # the order of fused sums
    torch.manual_seed(0)  # the same on all ranks
    residual = torch.randn(ROWS, COLUMNS).to(device, torch.bfloat16)
    weight = (1 + torch.randn(COLUMNS) / 8).to(device, torch.bfloat16)
    scale = torch.tensor([4 / 448], device=device)
    torch.manual_seed(1 + dist.get_rank())  # and what this rank's matrices gave
    part = torch.randn(ROWS, COLUMNS).to(device, torch.bfloat16)
    shape = {"columns": COLUMNS, "max_rows": 64, "dtype": "bf16", "device": device}
    plans.load_rows("given", "allreduce_norm_quantize", **shape)  # once
    plans.load_rows("token", "allreduce_norm_quantize_token", **shape)
    compare("by a given scale", by_given_scale, scale, part, residual, weight)
    compare("by a scale a token", by_scale_a_token, None, part, residual, weight)
    plans.unload("given")
    plans.unload("token")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
