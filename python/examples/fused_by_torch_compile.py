"""A pass of torch.compile that makes each all-reduce of a model, the add and the norm after it one op.

    torchrun --nproc-per-node 2 python/examples/fused_by_torch_compile.py           on the host
    torchrun --nproc-per-node 2 python/examples/fused_by_torch_compile.py cuda      a GPU for each rank

The model is not changed. It gives the tokens that it gives without the pass, and nearly the same residual stream. On
GPUs Inductor compiles it; on the host the graph runs op by op, which needs no C++ compiler.
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F

import mscclc.torch
from mscclc.torch.fusion import RowFusion

LAYERS, HIDDEN, WIDE, WORDS = 2, 256, 512, 100


class Model(torch.nn.Module):
    """MLPs without attention: of each, a rank has some of the columns in the middle."""

    def __init__(self, rank, ranks):
        super().__init__()
        part = slice(rank * WIDE // ranks, (rank + 1) * WIDE // ranks)
        self.embedding = torch.nn.Parameter(torch.randn(WORDS, HIDDEN))
        self.norms = torch.nn.ParameterList(1 + torch.randn(HIDDEN) / 8 for _ in range(LAYERS + 1))
        ups = [torch.randn(WIDE, HIDDEN) / HIDDEN**0.5 for _ in range(LAYERS)]
        downs = [torch.randn(HIDDEN, WIDE) / WIDE**0.5 for _ in range(LAYERS)]
        self.ups = torch.nn.ParameterList(up[part].contiguous() for up in ups)
        self.downs = torch.nn.ParameterList(down[:, part].contiguous() for down in downs)

    def forward(self, tokens):
        stream = self.embedding[tokens]
        x = F.rms_norm(stream, (HIDDEN,), self.norms[0], 1e-5)
        for up, down, weight in zip(self.ups, self.downs, list(self.norms)[1:]):
            x = F.linear(F.silu(F.linear(x, up)), down)
            dist.all_reduce(x)
            stream = stream + x
            x = F.rms_norm(stream, (HIDDEN,), weight, 1e-5)
        return F.linear(x, self.embedding).argmax(-1), stream


@torch.no_grad()
def decode(model, tokens, steps=8):
    """Each sequence's next tokens, and the residual stream of the last."""
    found = [tokens]
    for _ in range(steps):
        tokens, stream = model(found[-1])
        found.append(tokens)
    return torch.stack(found), stream


def main():
    device = torch.device("cpu")
    if sys.argv[1:] == ["cuda"]:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    dist.init_process_group("mscclc", pg_options=mscclc.torch.Options(order="ranks"))  # the order of fused sums
    torch.manual_seed(0)  # the same model on all ranks
    model = Model(dist.get_rank(), dist.get_world_size()).to(device)
    fusion = RowFusion()
    how = {"backend": fusion.backend}
    if device.type == "cuda":  # kept code works, too, but only the run that has compiled it has a report
        how = {"options": {"post_grad_custom_post_pass": fusion, "fx_graph_cache": False}}
    fused = torch.compile(model, fullgraph=True, **how)
    tokens = torch.arange(6, device=device)  # six sequences
    wanted, wanted_stream = decode(model, tokens)
    found, stream = decode(fused, tokens)
    assert torch.equal(found, wanted)
    torch.testing.assert_close(stream, wanted_stream, rtol=1e-4, atol=1e-4)
    assert len(fusion.report().replaced) == LAYERS and not fusion.report().left
    if dist.get_rank() == 0:
        print(fusion.report())
        off = (stream - wanted_stream).abs().max()
        print(f"the same {wanted[1:].numel()} tokens; the stream is {off:.1e} off at most")
    mscclc.torch.fusion.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
