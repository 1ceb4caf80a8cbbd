"""Sequence parallel: ReduceScatter, residual and RMSNorm of a rank's own rows, AllGather, as one op.

    torchrun --nproc-per-node 2 python/examples/fused_sequence_parallel.py           on the host
    torchrun --nproc-per-node 2 python/examples/fused_sequence_parallel.py cuda      a GPU for each rank

Each rank keeps only its rows of the residual stream. What is gathered may be the norm, or its e4m3 with a scale a row:
about half the bytes. Both are compared with the collectives and torch's ops, one after the other.
"""

import os
import sys

import torch
import torch.distributed as dist

import mscclc.torch
import mscclc.torch.row_ops  # torch.ops.mscclc.run_rows
from mscclc.torch import plans

ROWS, COLUMNS, EPS, LEAST = 6, 2880, 1e-5, 1e-10  # rows: of each rank


def unfused(part, residual, weight):
    """The chain, which rounds each tensor to bf16."""
    stream = torch.empty_like(residual)
    dist.reduce_scatter_tensor(stream, part)
    stream += residual
    wide = stream.float()
    own = (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPS) * weight).bfloat16()
    norm = torch.empty_like(part)
    dist.all_gather_into_tensor(norm, own)
    return norm, stream


def main():
    device = torch.device("cpu")
    if sys.argv[1:] == ["cuda"]:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    dist.init_process_group("mscclc", pg_options=mscclc.torch.Options(order="ranks"))  # the order of fused sums
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)  # the same on all ranks
    weight = (1 + torch.randn(COLUMNS) / 8).to(device, torch.bfloat16)
    torch.manual_seed(1 + rank)  # what this rank's matrices gave, of all rows, and its own rows of the stream
    part = torch.randn(ranks * ROWS, COLUMNS).to(device, torch.bfloat16)
    residual = torch.randn(ROWS, COLUMNS).to(device, torch.bfloat16)
    wanted, wanted_stream = unfused(part, residual, weight)

    shape = {"columns": COLUMNS, "max_rows": ranks * ROWS, "dtype": "bf16", "device": device}
    plans.load_rows("norm", "allreduce_norm_sharded", **shape)  # once
    names = ["weight", "residual", "eps"]  # what is only read, then what changes, then numbers
    norm, stream = torch.ops.mscclc.run_rows(part, "norm", names, [weight], [residual], [EPS])
    assert torch.equal(stream, wanted_stream)
    torch.testing.assert_close(norm, wanted, rtol=2**-7, atol=0)  # a step of bf16: other sums over the row

    plans.load_rows("quantized", "allreduce_norm_quantize_token_sharded", **shape)
    names += ["least"]
    q, stream, scale = torch.ops.mscclc.run_rows(part, "quantized", names, [weight], [residual], [EPS, LEAST])
    assert torch.equal(stream, wanted_stream)
    error = (q.float() * scale - wanted.float()).norm() / wanted.float().norm()
    assert error < 0.04  # half a step of e4m3 is at most a 16th
    if rank == 0:
        print(f"{len(norm)} rows, {ROWS} a rank: {(norm == wanted).sum()} of {norm.numel()} values as unfused")
        print(f"e4m3 and scales: {q.nbytes + scale.nbytes} bytes instead of {norm.nbytes}, {error:.1%} off")
    plans.unload("norm")
    plans.unload("quantized")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
