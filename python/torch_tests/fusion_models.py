"""What suites of fusion share: a tensor-parallel stack of blocks, and functions of rows after an all-reduce.

All numbers are whole and small where sums are made, so that every order of additions has the same bits; what norms
give is not, so that a rounding at another place is seen.
"""

import contextlib

import mscclc.torch
import mscclc.torch.ops  # noqa: F401, defines an op
import torch
import torch._dynamo
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.nn.functional as F
from checks import equal

from mscclc.torch.fusion import RowFusion

EPS = 1e-5


def whole(shape, seed, most=3, dtype=torch.float32):
    """Whole numbers from -most to most, the same on all ranks for the same seed."""
    generator = torch.Generator("cpu").manual_seed(seed)
    found = torch.randint(-most, most + 1, shape, generator=generator, device="cpu")
    return found.to(torch.get_default_device(), dtype)


def weights(columns, dtype, seed=5):
    """Weights of a norm: each has few bits, so that only products need rounding."""
    return (whole((columns,), seed, 7) / 4 + 1.125).to(dtype)


def rms_norm(x, weight, eps=EPS):
    """As Llama has it in transformers: rounded before it is multiplied with the weight."""
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return weight * wide.to(x.dtype)


def gemma_norm(x, weight, eps=EPS):
    """As Gemma has it: 1 + weight, and one rounding."""
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return (wide * (1.0 + weight.float())).type_as(x)


def same(found, wanted, what=""):
    """Fails where results differ in a bit; on GPUs by more than their reciprocal square roots do."""
    found, wanted = ([one] if isinstance(one, torch.Tensor) else one for one in (found, wanted))
    assert len(found) == len(wanted), what
    for number, (one, other) in enumerate(zip(found, wanted)):
        if one.is_cuda and one.is_floating_point():
            step = 2 * torch.finfo(one.dtype).eps
            torch.testing.assert_close(one, other, rtol=max(step, 4e-6), atol=0)
        else:
            equal(one, other, f"{what} result {number}")


def added(x):
    """The sum of a part over the default group, in place, as models have it."""
    dist.all_reduce(x)
    return x


def compiled_by(program, by=None, inductor=False, **more):
    """The program with a pass, and the pass."""
    torch._dynamo.reset()
    by = by or RowFusion()
    how = {"options": {"post_grad_custom_post_pass": by}} if inductor else {"backend": by.backend}
    return torch.compile(program, fullgraph=True, **how, **more), by


def inputs(rows, columns, dtype, ranks):
    """A rank's part of a sum, a residual, and weights."""
    part = whole((rows, columns), 30 + ranks.rank, 3, dtype)
    return part, whole((rows, columns), 40, 5, dtype), weights(columns, dtype)


def counts(by, replaced, left=0):
    """How many sums a pass has replaced, and how many not."""
    report = by.report()
    assert (len(report.replaced), len(report.left)) == (replaced, left), report


@contextlib.contextmanager
def in_order():
    """Without gradients, and with the bits that fused plans have, whatever the number of ranks."""
    with torch.no_grad(), mscclc.torch.order("ranks"):
        yield


class Blocks(torch.nn.Module):
    """Blocks of an attention's place and an MLP, each with a norm before it and an all-reduce after it, of which a
    rank has its columns; then the next token of each sequence."""

    def __init__(self, ranks, dtype, norm=rms_norm, columns=64, layers=2, vocabulary=32):
        super().__init__()
        self.norm, self.layers = norm, layers
        self.embedding = whole((vocabulary, columns), 1, 4, dtype)
        self.head = whole((vocabulary, columns), 2, 1, dtype)
        self.weights = [weights(columns, dtype, 10 + i) for i in range(2 * layers + 1)]
        self.up = [whole((16, columns), 100 + 10 * i + ranks.rank, 1, dtype) for i in range(2 * layers)]
        self.down = [whole((columns, 16), 200 + 10 * i + ranks.rank, 1, dtype) for i in range(2 * layers)]

    def forward(self, tokens):
        stream = self.embedding[tokens]
        x = self.norm(stream, self.weights[0])
        for up, down, weight in zip(self.up, self.down, self.weights[1:]):
            inner = torch.round(F.linear(torch.round(x), up) / 16).clamp(-4, 4)
            stream = added(torch.round(F.linear(inner, down) / 4)) + stream
            x = self.norm(stream, weight)
        return F.linear(torch.round(x), self.head).argmax(-1), stream, x


def plain_norm(x, r, w):
    """What the brief of all fusions is: residual, norm, both given."""
    stream = added(x + 0) + r
    return F.rms_norm(stream, w.shape, w, EPS), stream


def without_residual(x, r, w):
    sum = added(x + 0)
    return rms_norm(sum, w), sum


def gemma(x, r, w):
    stream = added(x + 0) + r
    return gemma_norm(stream, w), stream


def layer_norm(x, r, w):
    return F.layer_norm(added(x + 0), w.shape, w, w, EPS)


def layer_norm_by_hand(x, r, w):
    """The same in the ops that compiled code has; torch's own kernel for f32 adds up otherwise."""
    sum = added(x + 0)
    centred = sum.float() - sum.float().mean(-1, keepdim=True)
    scale = torch.rsqrt((centred * centred).mean(-1, keepdim=True) + EPS)
    return (centred * scale * w + w).to(x.dtype)


def biased(x, r, w):
    return added(x + 0) + w


def quantized(x, r, w):
    """e4m3 by a given scale in a tensor."""
    stream = added(x + 0) + r
    scale = w[:1].float()
    q = (rms_norm(stream, w).float() * scale.reciprocal()).clamp(-448, 448).to(torch.float8_e4m3fn)
    return q.float(), stream


def quantized_by_token(x, r, w):
    """e4m3 by a scale a row; the norm is given, too."""
    stream = added(x + 0) + r
    norm = rms_norm(stream, w)
    scale = (norm.abs().amax(-1).float() / 448).clamp(min=1e-9).unsqueeze(-1)
    q = (norm.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
    return q.float(), scale, norm, stream


def sequence_parallel(x, r, w):
    """Each rank has its rows of the residual stream; those of the norm are gathered."""
    group = dist.group.WORLD
    part = functional.reduce_scatter_tensor(x, "sum", 0, group) + r
    return functional.all_gather_tensor(rms_norm(part, w), 0, group) * 1, part


def of_three_dimensions(x, r, w):
    """The sum is of a view, and what follows of another."""
    columns = x.shape[-1]
    stream = added(x.reshape(-1, columns) + 0).view(1, -1, columns) + r.unsqueeze(0)
    return rms_norm(stream, w) * 1, stream


def by_own_op(x, r, w):
    """The same sum by our op. Inductor has nothing to compile in it once it is fused."""
    return rms_norm(torch.ops.mscclc.all_reduce(x, "sum", dist.group.WORLD.group_name) + r, w)


# What is compiled, and what says the bits.
FUNCTIONS = {one: one for one in (plain_norm, without_residual, gemma, biased, quantized, quantized_by_token,
                                  of_three_dimensions, by_own_op)}  # fmt: skip
FUNCTIONS[layer_norm] = layer_norm_by_hand
