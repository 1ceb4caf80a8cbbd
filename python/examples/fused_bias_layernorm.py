"""AllReduce and bias, AllReduce and LayerNorm, each as one op, inside a function that torch.compile takes whole.

    torchrun --nproc-per-node 2 python/examples/fused_bias_layernorm.py           on the host
    torchrun --nproc-per-node 2 python/examples/fused_bias_layernorm.py cuda      a GPU for each rank

Both are compared with an all-reduce and torch's ops.
"""

import os
import sys

import torch
import torch.distributed as dist

import mscclc.torch
import mscclc.torch.row_ops  # torch.ops.mscclc.run_rows
from mscclc.torch import plans

ROWS, COLUMNS, EPS = 5, 768, 1e-5


@torch.compile(fullgraph=True, backend="aot_eager")
def fused(part, weight, bias):
    (biased,) = torch.ops.mscclc.run_rows(part, "bias", ["bias"], [bias], [], [])
    (norm,) = torch.ops.mscclc.run_rows(part, "layernorm", ["weight", "bias", "eps"], [weight, bias], [], [EPS])
    return biased, norm


def unfused(part, weight, bias):
    dist.all_reduce(part)
    return part + bias, torch.nn.functional.layer_norm(part, (COLUMNS,), weight, bias, EPS)


def main():
    device = torch.device("cpu")
    if sys.argv[1:] == ["cuda"]:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    dist.init_process_group("mscclc", pg_options=mscclc.torch.Options(order="ranks"))  # the order of fused sums
    torch.manual_seed(0)  # the same on all ranks
    weight, bias = torch.randn(COLUMNS).to(device), torch.randn(COLUMNS).to(device)
    torch.manual_seed(1 + dist.get_rank())  # and what this rank's matrices gave
    part = torch.randn(ROWS, COLUMNS).to(device)
    shape = {"columns": COLUMNS, "max_rows": 64, "device": device}  # f32
    plans.load_rows("bias", "allreduce_bias", **shape)  # once
    plans.load_rows("layernorm", "allreduce_layernorm", **shape)
    biased, norm = fused(part, weight, bias)
    wanted_biased, wanted_norm = unfused(part.clone(), weight, bias)
    assert torch.equal(biased, wanted_biased)
    torch.testing.assert_close(norm, wanted_norm, rtol=1e-5, atol=1e-5)  # other sums over the row
    if dist.get_rank() == 0:
        print(f"bias: the bits of the unfused chain; LayerNorm: {(norm - wanted_norm).abs().max():.1e} off at most")
    plans.unload("bias")
    plans.unload("layernorm")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
