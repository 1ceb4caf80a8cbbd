"""A tensor-parallel and sequence-parallel MLP, whose products overlap with its collectives, forward and backward.

    torchrun --nproc-per-node 2 python/examples/te_like_mlp.py           on the host
    torchrun --nproc-per-node 2 python/examples/te_like_mlp.py cuda      on GPUs, which ranks may share

A second word is the backend of torch's group, which may be any: "cpu gloo", say.

Each rank has a part of the rows of x (the sequence), of the columns of the first weight and of the rows of the second.
The result and all gradients are compared with those of the whole MLP in one process, and, bit for bit, with those of
backend "serial", which computes the same products and exchanges one after the other.
"""

import argparse
import os
import sys

import torch
import torch.distributed as dist

from mscclc import ops

ROWS, HIDDEN, WIDE = 64, 48, 96  # of all ranks


class Mlp(torch.nn.Module):
    """x of a part of the rows -> act(x * up + bias) * down + bias, of the same rows."""

    def __init__(self, up, up_bias, down, down_bias, backend):
        super().__init__()
        self.up, self.down = torch.nn.Parameter(up), torch.nn.Parameter(down)
        self.up_bias, self.down_bias = torch.nn.Parameter(up_bias), torch.nn.Parameter(down_bias)
        self.how = {"backend": backend, "chunks": 2}

    def forward(self, x):
        group = dist.group.WORLD
        _, (wide,) = ops.all_gather_matmul(x, [self.up.t()], 0, group, biases=[self.up_bias], **self.how)
        wide = torch.nn.functional.gelu(wide)
        return ops.matmul_reduce_scatter(wide, self.down.t(), "sum", 0, group, bias=self.down_bias, **self.how)


def whole_tensors(device, dtype):
    """x, the gradient of the result, and the parameters, of all ranks; the same on each."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(ROWS, HIDDEN), (ROWS, HIDDEN), (WIDE, HIDDEN), (WIDE,), (HIDDEN, WIDE), (HIDDEN,)]
    scales = [1, 1, HIDDEN**-0.5, 0.1, WIDE**-0.5, 0.1]
    return [(torch.randn(s, generator=generator) * f).to(device, dtype) for s, f in zip(shapes, scales)]


def unsharded(x, gradient, *parameters):
    """The result and all gradients, by one process, in doubles."""
    x, gradient, *parameters = (one.double() for one in (x, gradient, *parameters))
    leaves = [one.requires_grad_() for one in (x, *parameters)]
    up, up_bias, down, down_bias = parameters
    wide = torch.nn.functional.gelu(torch.nn.functional.linear(x, up, up_bias))
    result = torch.nn.functional.linear(wide, down, down_bias)
    return [result.detach(), *torch.autograd.grad(result, leaves, gradient)]


def part(tensor, dim=0):
    """A rank's part."""
    return tensor.chunk(dist.get_world_size(), dim)[dist.get_rank()].contiguous()


def sharded(x, gradient, up, up_bias, down, down_bias, backend, compiled=False):
    """The same of this rank's parts. The second bias is whole on all ranks, which add up its gradients."""
    mlp = Mlp(part(up), part(up_bias), part(down, 1), down_bias, backend)
    x = part(x).requires_grad_()
    result = (torch.compile(mlp, backend="aot_eager", fullgraph=True) if compiled else mlp)(x)
    result.backward(part(gradient))
    of_bias = mlp.down_bias.grad.clone()
    dist.all_reduce(of_bias)
    return [result.detach(), x.grad, mlp.up.grad, mlp.up_bias.grad, mlp.down.grad, of_bias]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("place", nargs="?", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("backend", nargs="?", default="", help="of torch's group; without it mscclc's")
    given = parser.parse_args()
    device, backend = torch.device("cpu"), given.backend
    if given.place == "cuda":
        if not torch.cuda.is_available():
            sys.exit("te_like_mlp.py: there is no GPU; without 'cuda' it runs on the host")
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
        if int(os.environ["LOCAL_WORLD_SIZE"]) > torch.cuda.device_count():
            backend = backend or "gloo"  # NCCL, which programs mostly have, refuses ranks of one GPU
    ranks = int(os.environ.get("WORLD_SIZE", 1))
    if ROWS % ranks or WIDE % ranks:
        sys.exit(f"te_like_mlp.py: {ranks} ranks do not divide {ROWS} rows and {WIDE} columns; 2, 4 or 8 do")
    dist.init_process_group(backend or "mscclc")
    names = ["result", "x", "up", "bias of up", "down", "bias of down"]
    for dtype in (torch.float32, torch.bfloat16):
        tensors = whole_tensors(device, dtype)
        wanted = unsharded(*tensors)
        wanted = [part(one, 1 if name == "down" else 0) if name != "bias of down" else one
                  for name, one in zip(names, wanted)]  # fmt: skip
        serial, worst = sharded(*tensors, "serial"), 0.0
        for how in ({"backend": "mscclc"}, {"backend": "auto"}, {"backend": "mscclc", "compiled": True}):
            found = sharded(*tensors, **how)
            for name, one, other, exact in zip(names, found, serial, wanted):
                assert torch.equal(one, other), f"{name}: other bits than by serial, {how}, {dtype}"
                off = float((one.double() - exact).abs().max() / exact.abs().max())
                worst = max(worst, off / torch.finfo(dtype).eps)
                assert off <= 16 * torch.finfo(dtype).eps, f"{name}: off by {off} of its greatest value, {how}, {dtype}"
        if dist.get_rank() == 0:
            print(f"{dtype}: the bits of serial; {worst:.1f} steps from the whole MLP at most")
    dist.barrier()
    ops.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
