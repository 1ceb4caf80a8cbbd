"""What checks of products multiply: whole numbers, so that sums are exact in any order, and others."""

import torch
from checks import device

TYPES_8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def matrix(shape, seed, rank, dtype=torch.float32):
    """Whole numbers from -2 to 2, of a rank."""
    random = torch.Generator("cpu").manual_seed(100 * seed + rank)
    return torch.randint(-2, 3, shape, generator=random, device="cpu").to(device(), dtype)


def normal(shape, seed, rank, dtype=torch.float32):
    random = torch.Generator("cpu").manual_seed(100 * seed + rank)
    return torch.randn(shape, generator=random, device="cpu").to(device(), dtype)


def of_all(ranks, shape, seed, dtype=torch.float32, make=matrix):
    return [make(shape, seed, rank, dtype) for rank in range(ranks.size)]


def columns_first(values):
    """The same values, whose columns lie one after the other, as nn.Linear's weight.t()."""
    return values.t().contiguous().t()


def eights(ranks, shape, seed, dtype=torch.float8_e4m3fn):
    return [one.to(dtype) for one in of_all(ranks, shape, seed)]


def scales_of(shape, seed, rank=0):
    """1 and 2, so that sums of whole numbers stay exact in 8 bits."""
    random = torch.Generator("cpu").manual_seed(100 * seed + rank)
    return 2.0 ** torch.randint(0, 2, shape, generator=random, device="cpu").to(device())
