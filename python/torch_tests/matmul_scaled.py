"""Products of 8-bit floats with scales: checks that matmul_ops.py runs among its own."""

from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import torch
import torch.distributed as dist
from checks import PATIENCE, device, equal, refused
from matmul_values import TYPES_8, columns_first, eights, matrix, scales_of
from torch.multiprocessing.reductions import StorageWeakRef

from mscclc import ops
from mscclc.torch.overlap import eager


def scaled_gathers(ranks):
    rank, shape, no = ranks.rank, (4, 2, 16), [None, None]
    As = eights(ranks, shape, 1)
    whole = torch.cat(As).float()
    Bs = [matrix((16, n), 2 + n, 0).to(TYPES_8[0]).t().contiguous().t() for n in (16, 32)]
    rows = torch.cat([scales_of((8,), 5, r) for r in range(ranks.size)]).view(-1, 2, 1)
    one, per_B = torch.tensor(0.5), [torch.tensor(2.0), torch.tensor(0.25)]
    columns = [scales_of((B.shape[1],), 6).view(1, -1) for B in Bs]
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
        rows = [scales_of((12 * n,), 5, r).view(3, -1, 1) for r in range(n)]
        columns = [scales_of((16,), 6, r).view(1, -1) for r in range(n)]
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
    one, rows, columns = torch.tensor(1.0), scales_of((4,), 5, ranks.rank).view(4, 1), scales_of((48,), 6).view(1, 48)

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
    rows = scales_of((4,), 5).view(4, 1)
    for A_scale, all_rows, B_scales in (
        (torch.tensor(0.5), torch.tensor(0.5), [torch.tensor(4.0), torch.tensor(2.0)]),
        (rows, rows.repeat(ranks.size, 1), [torch.ones(1, 0), scales_of((16,), 6).view(1, 16)]),
    ):
        _, (none, some) = ops.all_gather_scaled_matmul(
            As[ranks.rank], Bs, A_scale, B_scales, 0, ranks.gloo, [None] * 2, [None] * 2, [type] * 2, [False] * 2
        )
        equal(none, torch.ones(4 * ranks.size, 0, dtype=type))
        equal(some, (torch.cat(As).float() @ Bs[1].float() * all_rows * B_scales[1].view(-1)).to(type))


def calls(ranks, seed):
    """Each op once, on values and scales of a seed, and what it must give: of tensors, and of rows and columns."""
    n, rank, group, bf16, found = ranks.size, ranks.rank, ranks.gloo, torch.bfloat16, []
    As, Bs = eights(ranks, (2 * n, 16), seed), eights(ranks, (16, 16), seed + 1)
    B, bias, whole = columns_first(Bs[rank]), matrix((16,), seed + 2, 0, bf16), torch.cat(As).float()
    for by_rows in (False, True):
        shapes = ((2 * n, 1), (1, 16)) if by_rows else ((), ())
        a, b = ([scales_of(shape, seed + i, r) for r in range(n)] for i, shape in enumerate(shapes, 3))
        a = a if by_rows else a[:1] * n  # the same on all ranks, where A is gathered
        rows = torch.cat(a) if by_rows else a[0]
        total = sum(A.float() @ B.float() * a * b for A, B, a, b in zip(As, Bs, a, b))
        gather = lambda a=a[rank], b=b[rank]: ops.all_gather_scaled_matmul(  # noqa: E731
            As[rank], [B], a, [b], 0, group, [bias], [None], [bf16], [False]
        )[1][0]
        scatter = lambda a=a[rank], b=b[rank]: ops.scaled_matmul_reduce_scatter(  # noqa: E731
            As[rank], B, a, b, "sum", 0, 0, group, None, bias, None, bf16
        )
        found.append({
            "all_gather_scaled_matmul": (gather, (whole @ B.float() * rows * b[rank] + bias.float()).to(bf16)),
            "scaled_matmul_reduce_scatter": (scatter, (total.chunk(n)[rank] + bias.float()).to(bf16)),
        })  # fmt: skip
    return found


def scales_that_change_are_checked(ranks):
    """After a call that is known, with one thing changed; what is still right is computed, what is not refused."""
    group, one, bf16 = ranks.gloo, torch.tensor(1.0), torch.bfloat16
    A, B = eights(ranks, (2 * ranks.size, 16), 1)[ranks.rank], columns_first(matrix((16, 32), 2, 0).to(TYPES_8[0]))
    gathers = {"A": A, "Bs": [B], "A_scale": one, "B_scales": [one], "gather_dim": 0, "group": group,
               "biases": [None], "result_scales": [None], "out_dtypes": [bf16], "use_fast_accum": [False]}  # fmt: skip
    scatters = {"A": A, "B": B, "A_scale": one, "B_scale": one, "reduce_op": "sum", "orig_scatter_dim": 0,
                "scatter_dim_after_maybe_reshape": 0, "group": group, "out_dtype": bf16}  # fmt: skip
    gather = lambda **more: ops.all_gather_scaled_matmul(**{**gathers, **more})[1][0]  # noqa: E731
    scatter = lambda **more: ops.scaled_matmul_reduce_scatter(**{**scatters, **more})  # noqa: E731
    both = (
        ({"A_scale": torch.ones(3)}, "a scale of A has one value"), ({"A_scale": None}, "A_scale is a tensor, not"),
        ({"chunks": 65}, "1 to 64"), ({"budget": -1}, "budget is -1"), ({"backend": "ub"}, "no backend 'ub'"),
        ({"gemm": "own", "A_scale": torch.ones(2 * ranks.size, 1)}, "scales of rows are for products by 'torch'"),
        ({"gemm": "cutlass"}, "'cutlass'"), ({"chunks": 0.0}, "scaled"), ({"backend": ["auto"]}, "scaled"),
        ({"group": "nothing"}, "'nothing'"), ({"A": A.bfloat16()}, "bfloat16"), ({"A": A[:, :8]}, "8 rows"),
    )  # fmt: skip
    of_gathers = (
        ({"B_scales": [torch.ones(3)]}, "a scale of B has one value"), ({"B_scales": [None]}, "scaled"),
        ({"B_scales": one}, "B_scales is a list"), ({"B_scales": [one, one]}, "B_scales has 2 entries"),
        ({"out_dtypes": [torch.float64]}, "out_dtype is float32"), ({"use_fast_accum": []}, "use_fast_accum has 0"),
        ({"out_dtypes": [None]}, "out_dtype is float32"), ({"out_dtypes": [bf16, torch.half]}, "have one type"),
        ({"biases": [torch.ones(3)]}, "32 values"), ({"gather_dim": 1}, "must not be the last"),
        ({"gemm": "own", "result_scales": [one]}, "scales of rows"),
    )  # fmt: skip
    of_scatters = (
        ({"B_scale": torch.ones(3)}, "a scale of B has one value"), ({"B_scale": None}, "B_scale is a tensor, not"),
        ({"out_dtype": torch.float64}, "out_dtype is float32"), ({"bias": torch.ones(3)}, "32 values"),
        ({"reduce_op": "max"}, "sum or avg"), ({"output_shape": []}, "has not shape []"),
        ({"output_shape": [1, 32]}, "has not shape"), ({"output_shape": [2.0 * len(A), 32]}, "scaled"),
        ({"output_shape": one}, "scaled"), ({"use_fast_accum": "no"}, "scaled"),
    )  # fmt: skip
    for call, wrong in ((gather, both + of_gathers), (scatter, both + of_scatters)):
        right = call()
        for changed, text in wrong:
            refused(lambda: call(**changed), text)  # noqa: B023
            with mock.patch.object(eager, "op", lambda *_: None):  # the right call is still a known one
                equal(call(), right, str(changed))
        for dtype in (torch.bfloat16, torch.float64, torch.float32):
            two = torch.tensor(2.0, dtype=dtype)
            equal(call(A_scale=two), 2 * right, f"a scale of {dtype}")
            with mock.patch.object(eager, "op", lambda *_: None):
                equal(call(A_scale=2 * two), 4 * right, f"a scale of {dtype}, again")
                refused(lambda: call(A_scale=two.clone().requires_grad_()), "NoneType")  # noqa: B023
        equal(call(**({"out_dtypes": [torch.float32]} if call is gather else {"out_dtype": torch.float32})).to(bf16),
              right)  # fmt: skip


def threads_have_their_scales(ranks):
    """Each calls an op of its group, with scales that no other has."""
    groups = [dist.new_group(backend="gloo", timeout=PATIENCE) for _ in range(2)]
    As = eights(ranks, (4, 16), 1)
    B, whole = columns_first(matrix((16, 32), 2, 0).to(TYPES_8[0])), torch.cat(As).float()
    A, plain, no, bf16 = As[ranks.rank], whole @ B.float(), [None], torch.bfloat16

    def calls_of(thread, group):
        for i in range(20):
            scale = torch.tensor(2.0 ** (2 * (i % 4) + thread), device=device())
            _, (out,) = ops.all_gather_scaled_matmul(
                A, [B], scale, [scale], 0, group, no, no, [bf16], [False], gemm="torch"
            )
            equal(out, (plain * scale * scale).to(bf16), f"thread {thread}, call {i}")

    with ThreadPoolExecutor(2) as threads:
        for one in [threads.submit(calls_of, *each) for each in enumerate(groups)]:
            one.result()


CHECKS = [
    scaled_gathers, scaled_scatters, each_kind_of_scales_has_an_object, scales_are_not_kept, nothing_to_scale,
    scales_that_change_are_checked, threads_have_their_scales,
]  # fmt: skip
