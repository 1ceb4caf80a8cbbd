"""Products of 8-bit floats with scales: checks that matmul_ops.py runs among its own."""

import torch
from checks import device, equal
from matmul_values import TYPES_8, columns_first, eights, matrix, scales_of
from torch.multiprocessing.reductions import StorageWeakRef

from mscclc import ops

def scaled_gathers(ranks):
    rank, shape, no = ranks.rank, (4, 2, 16), [None, None]
    As = eights(ranks, shape, 1)
    whole = torch.cat(As).float()
    Bs = [matrix((16, n), 2 + n, 0).to(TYPES_8[0]).t().contiguous().t() for n in (16, 32)]
    rows = torch.cat([scales_of(8, 5, r) for r in range(ranks.size)]).view(-1, 2, 1)
    one, per_B = torch.tensor(0.5), [torch.tensor(2.0), torch.tensor(0.25)]
    columns = [scales_of(B.shape[1], 6).view(1, -1) for B in Bs]
    for type, A_scale, all_rows, B_scales in (
        (torch.float32, one, one, per_B), (torch.bfloat16, one, one, per_B),
        (torch.bfloat16, rows[4 * rank:4 * rank + 4], rows, columns), (torch.bfloat16, rows, rows, columns),
    ):  # fmt: skip
        biases = [matrix((16,), 3, 0, type), None]
        found, products = ops.all_gather_scaled_matmul(
            As[rank], Bs, A_scale, B_scales, 0, ranks.gloo, biases, no, [type] * 2, [False] * 2
        )
        equal(found.float(), whole)
        for product, B, scale, bias in zip(products, Bs, B_scales, biases, strict=True):
            wanted = (whole.view(-1, 16) @ B.float()).view(*whole.shape[:-1], -1) * all_rows * scale.view(-1)
            wanted = wanted if bias is None else wanted + bias.float()
            equal(product, wanted.to(type), f"{type}, scale of shape {list(A_scale.shape)}")


def scaled_scatters(ranks):
    n, rank = ranks.size, ranks.rank
    for type_a, type_b in ((TYPES_8[0], TYPES_8[0]), (TYPES_8[0], TYPES_8[1]), (TYPES_8[1], TYPES_8[0])):
        As, Bs = eights(ranks, (3, 4 * n, 16), 1, type_a), eights(ranks, (16, 16), 2, type_b)
        bias = matrix((16,), 3, 0, torch.bfloat16)
        rows = [scales_of(12 * n, 5, r).view(3, -1, 1) for r in range(n)]
        columns = [scales_of(16, 6, r).view(1, -1) for r in range(n)]
        ones, halves = [torch.tensor(2.0)] * n, [torch.tensor(0.5)] * n
        by_rows = device().type == "cpu" or type_a == type_b  # torch's products on GPUs
        for A_scales, B_scales in ((ones, halves), (rows, columns))[:2 if by_rows else 1]:
            partial = [A.float() @ B.float() * a * b.view(-1) for A, B, a, b in zip(As, Bs, A_scales, B_scales)]
            wanted = (sum(partial) + bias.float()).bfloat16().chunk(n, 1)[rank]
            B = Bs[rank].t().contiguous().t()
            found = ops.scaled_matmul_reduce_scatter(
                As[rank], B, A_scales[rank], B_scales[rank], "sum", 1, 1, ranks.gloo, [3, 4 * n, 16], bias,
                None, torch.bfloat16,
            )  # fmt: skip
            equal(found, wanted)
            # As compiled graphs have it: rows that were flattened before.
            flat = A_scales[rank] if A_scales[rank].dim() == 0 else A_scales[rank].flatten(0, 1)
            found = ops.scaled_matmul_reduce_scatter(
                As[rank].flatten(0, 1), B, flat, B_scales[rank], "sum", 1, 0, ranks.gloo, [3, 4 * n, 16], bias,
                None, torch.bfloat16,
            )  # fmt: skip
            equal(found, wanted)


def each_kind_of_scales_has_an_object(ranks):
    """To make one loads its kernels, and torch takes others for scales of rows, for columns, or for fast sums."""
    A, B = eights(ranks, (4, 16), 1)[ranks.rank], matrix((16, 48), 2, 0).to(TYPES_8[0]).t().contiguous().t()
    one, rows, columns = torch.tensor(1.0), scales_of(4, 5, ranks.rank).view(4, 1), scales_of(48, 6).view(1, 48)

    def objects_after(A_scale, B_scale, fast):
        ops.all_gather_scaled_matmul(
            A, [B], A_scale, [B_scale], 0, ranks.gloo, [None], [None], [torch.bfloat16], [fast]
        )
        return len(ops.explain(ranks.gloo, device()))

    first = objects_after(one, one, False)
    assert objects_after(rows, columns, False) == first + 1
    assert objects_after(one, one, True) == first + 2
    assert objects_after(2 * rows, 2 * columns, False) == first + 2


def scales_are_not_kept(ranks):
    """Neither by the call that makes an object nor by one that finds it."""
    A, B = eights(ranks, (4 * ranks.size, 16), 1)[ranks.rank], columns_first(matrix((16, 64), 2, 0).to(TYPES_8[0]))
    no, bf16 = [None], [torch.bfloat16]
    for _ in range(2):
        scales = [torch.tensor(2.0) for _ in range(4)]
        ops.all_gather_scaled_matmul(A, [B], scales[0], [scales[1]], 0, ranks.gloo, no, no, bf16, [False])
        ops.scaled_matmul_reduce_scatter(
            A, B, scales[2], scales[3], "sum", 0, 0, ranks.gloo, None, None, None, torch.bfloat16
        )
        kept = [StorageWeakRef(one.untyped_storage()) for one in scales]
        del scales
        assert all(one.expired() for one in kept)


def nothing_to_scale(ranks):
    """One weight has no columns; the other's scale, of the tensor or of columns, is still its own."""
    As, type = eights(ranks, (4, 16), 1), torch.bfloat16
    Bs = [matrix((16, n), 2, 0).to(TYPES_8[0]).t().contiguous().t() for n in (0, 16)]
    rows = scales_of(4, 5).view(4, 1)
    for A_scale, all_rows, B_scales in (
        (torch.tensor(0.5), torch.tensor(0.5), [torch.tensor(4.0), torch.tensor(2.0)]),
        (rows, rows.repeat(ranks.size, 1), [torch.ones(1, 0), scales_of(16, 6).view(1, 16)]),
    ):
        _, (none, some) = ops.all_gather_scaled_matmul(
            As[ranks.rank], Bs, A_scale, B_scales, 0, ranks.gloo, [None] * 2, [None] * 2, [type] * 2, [False] * 2
        )
        equal(none, torch.ones(4 * ranks.size, 0, dtype=type))
        equal(some, (torch.cat(As).float() @ Bs[1].float() * all_rows * B_scales[1].view(-1)).to(type))


CHECKS = [
    scaled_gathers, scaled_scatters, each_kind_of_scales_has_an_object, scales_are_not_kept, nothing_to_scale,
]  # fmt: skip
