"""Products that overlap with collectives, as ops of torch: results, bits, biases, scales, and what is refused.

Each rank knows what all have, so what is right is computed by torch's own products, without a collective. Where
numbers are small and whole, all orders of additions have the same bits.
"""

import contextlib
import datetime
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import matmul_again as again
import matmul_scaled as scaled
import torch
import torch.distributed as dist
from checks import PATIENCE, device, equal, refused
from matmul_values import TYPES_8, columns_first, eights, matrix, normal, of_all

from mscclc import ops
from mscclc._overlap import Buffers, Overlap, Shape
from mscclc.errors import LibraryError
from mscclc.torch import plans
from mscclc.torch.overlap import objects

TYPES = (torch.float32, torch.bfloat16, torch.float16)
BACKENDS = ("auto", "mscclc", "serial")


def _gathered(ranks, shape, dim, Bs, biases, dtype=torch.float32):
    whole = torch.cat(of_all(ranks, shape, 1, dtype), dim)
    outs = [whole.float() @ B.float() for B in Bs]
    outs = [out + bias.float() for out, bias in zip(outs, biases)] if biases else outs
    return whole, [out.to(dtype) for out in outs]


def gathers(ranks):
    group = ranks.gloo
    for dtype in TYPES:
        for shape, dim in (((4, 6), 0), ((4, 3, 6), 0), ((2, 4, 6), 1), ((2, 3, 4, 6), -2), ((1, 8), 0)):
            Bs = [matrix((shape[-1], n), 2 + n, 0, dtype) for n in (5, 8)]
            biases = [matrix((n,), 20 + n, 0, dtype) for n in (5, 8)]
            Bs[1] = columns_first(Bs[1])
            for given in ([], biases):
                A = matrix(shape, 1, ranks.rank, dtype)
                whole, outs = _gathered(ranks, shape, dim, Bs, given, dtype)
                found, products = ops.all_gather_matmul(A, Bs, dim, group, biases=given)
                equal(found, whole, f"A of {shape} along {dim}")
                for one, other in zip(products, outs, strict=True):
                    equal(one, other, f"{shape} along {dim}")
                nothing, again = ops.all_gather_matmul(A, Bs, dim, group, biases=given, return_A=False)
                assert nothing is None
                equal(again[0], outs[0])


def gathers_columns(ranks):
    shape = (3, 2, 4)
    B, bias = matrix((4 * ranks.size, 5), 3, 0), matrix((5,), 4, 0)
    whole, outs = _gathered(ranks, shape, -1, [B], [bias])
    found, products = ops.all_gather_matmul(matrix(shape, 1, ranks.rank), [B], -1, ranks.gloo, biases=[bias])
    equal(found, whole)
    equal(products[0], outs[0])


def scatters(ranks):
    n = ranks.size
    for dtype in TYPES:
        for shape, dim in (((4 * n, 6), 0), ((2 * n, 3, 6), 0), ((3, 2 * n, 6), 1), ((3, 2 * n, 2, 6), -3)):
            As, Bs = of_all(ranks, shape, 1, dtype), of_all(ranks, (6, 8), 2, dtype)
            for op in ("sum", "avg"):
                total = sum(A.float() @ B.float() for A, B in zip(As, Bs))
                wanted = total.to(dtype) / n if op == "avg" else total.to(dtype)
                for B in (Bs[ranks.rank], columns_first(Bs[ranks.rank])):
                    found = ops.matmul_reduce_scatter(As[ranks.rank], B, op, dim, ranks.gloo)
                    equal(found, wanted.chunk(n, dim)[ranks.rank], f"{shape} along {dim}, {op}")


def scatters_columns(ranks):
    n = ranks.size
    As, Bs = of_all(ranks, (3, 5, 6), 1), of_all(ranks, (6, 2 * n), 2)
    bias = matrix((2,), 3, ranks.rank)
    for B in (Bs[ranks.rank], columns_first(Bs[ranks.rank])):
        found = ops.matmul_reduce_scatter(As[ranks.rank], B, "sum", -1, ranks.gloo, bias=bias)
        equal(found, sum(A @ B for A, B in zip(As, Bs)).chunk(n, -1)[ranks.rank] + bias)


def reduces(ranks):
    """Rows need be no multiple of the ranks."""
    for dtype in TYPES:
        for shape in ((4, 6), (7, 6), (3, 5, 6)):
            As, Bs = of_all(ranks, shape, 1, dtype), of_all(ranks, (6, 8), 2, dtype)
            wanted = sum(A.float() @ B.float() for A, B in zip(As, Bs)).to(dtype)
            found = ops.matmul_all_reduce(As[ranks.rank], Bs[ranks.rank], "sum", ranks.gloo)
            equal(found, wanted, f"{shape} {dtype}")
            found = ops.matmul_all_reduce(As[ranks.rank], Bs[ranks.rank], "avg", ranks.gloo)
            equal(found, wanted / ranks.size, f"{shape} {dtype}, avg")


def exchanges(ranks):
    n, rank = ranks.size, ranks.rank
    Bs, biases = [matrix((6, 5), 2, rank), matrix((6, 3), 3, rank)], [matrix((5,), 4, 0), matrix((3,), 5, 0)]
    parts = [A.chunk(n)[rank] for A in of_all(ranks, (2 * n, 3, 6), 1)]
    come = torch.cat(parts)
    found, products = ops.all_to_all_matmul(matrix((2 * n, 3, 6), 1, rank), Bs, ranks.gloo, biases=biases)
    equal(found, come)
    for one, B, bias in zip(products, Bs, biases, strict=True):
        equal(one, come @ B + bias)


def bias_is_added_once(ranks):
    n = ranks.size
    As, Bs, bias = of_all(ranks, (2 * n, 4), 1), of_all(ranks, (4, 6), 2), torch.full((6,), 100.0)
    total = sum(A @ B for A, B in zip(As, Bs))
    A, B = As[ranks.rank], Bs[ranks.rank]
    for backend in BACKENDS:
        found = ops.matmul_all_reduce(A, B, "sum", ranks.gloo, bias=bias, backend=backend)
        equal(found, total + bias, backend)
        found = ops.matmul_reduce_scatter(A, B, "sum", 0, ranks.gloo, bias=bias, backend=backend)
        equal(found, (total + bias).chunk(n)[ranks.rank], backend)
    found = ops.matmul_all_reduce(A, B, "avg", ranks.gloo, bias=bias)
    equal(found, total / n + bias, "avg")
    found = ops.matmul_reduce_scatter(A, B, "avg", 0, ranks.gloo, bias=bias)
    equal(found, (total / n + bias).chunk(n)[ranks.rank], "avg")


def backends_have_the_same_bits(ranks):
    """Of values that are rounded, for the same chunks; and within a tolerance of products of whole matrices."""
    n, rank = ranks.size, ranks.rank
    for dtype in TYPES:
        As, Bs = (of_all(ranks, shape, seed, dtype, normal) for shape, seed in (((8 * n, 40), 1), ((40, 24), 2)))
        shard = As[rank][:8]
        for chunks in (1, 2, 3, 4):
            found = {}
            # Copy engines take rows that the chunks divide.
            backends = ("serial", "mscclc", *(["copy_engine"] if chunks != 3 else []))
            for backend in backends:
                how = {"backend": backend, "chunks": chunks}
                found[backend] = [
                    *ops.all_gather_matmul(shard, [Bs[0], columns_first(Bs[-1])], 0, ranks.gloo, **how)[1],
                    ops.matmul_reduce_scatter(As[rank], Bs[rank], "sum", 0, ranks.gloo, **how),
                    ops.matmul_all_reduce(As[rank], Bs[rank], "sum", ranks.gloo, **how),
                    ops.all_to_all_matmul(As[rank], [Bs[0]], ranks.gloo, **how)[1][0],
                ]
            for backend in backends[1:]:
                for one, other in zip(found[backend], found["serial"], strict=True):
                    equal(one, other, f"{backend}, {dtype}, {chunks} chunks")
        total = sum((A.double() @ B.double()) for A, B in zip(As, Bs))
        # Each partial product is rounded once, and so is the sum.
        step = torch.finfo(dtype).eps * max(float((A.double() @ B.double()).abs().max()) for A, B in zip(As, Bs))
        off = float((found["mscclc"][3].double() - total).abs().max())
        assert off <= (n + 1) * step, f"{dtype}: off by {off}, and a step is {step}"


def budgets_are_kept(ranks):
    """By plans, which are refused one that is too small; products leave it free, by serial, too."""
    n, rank, group, bits = ranks.size, ranks.rank, ranks.gloo, {}
    As, Bs = (of_all(ranks, shape, seed, make=normal) for shape, seed in (((8 * n, 40), 1), ((40, 24), 2)))
    eight, B8 = eights(ranks, (8 * n, 16), 1)[rank], columns_first(matrix((16, 32), 2, 0).to(TYPES_8[0]))
    one, no, bf16 = torch.tensor(1.0), [None], torch.bfloat16
    for backend in ("serial", "mscclc", "copy_engine"):
        how = {"backend": backend, "chunks": 2, "budget": 8}
        calls = {
            "all_gather_matmul": lambda **how: ops.all_gather_matmul(As[rank][:8], [Bs[0]], 0, group, **how)[1][0],
            "all_to_all_matmul": lambda **how: ops.all_to_all_matmul(As[rank], [Bs[0]], group, **how)[1][0],
            "matmul_reduce_scatter":
                lambda **how: ops.matmul_reduce_scatter(As[rank], Bs[rank], "sum", 0, group, **how),
            "matmul_all_reduce": lambda **how: ops.matmul_all_reduce(As[rank], Bs[rank], "sum", group, **how),
            "all_gather_scaled_matmul": lambda **how: ops.all_gather_scaled_matmul(
                eight, [B8], one, [one], 0, group, no, no, [bf16], [False], **how)[1][0],
            "scaled_matmul_reduce_scatter": lambda **how: ops.scaled_matmul_reduce_scatter(
                eight, B8, one, one, "sum", 0, 0, group, None, None, None, bf16, **how),
        }  # fmt: skip
        for name, call in calls.items():
            made = call(**how)
            ran = ops.explain(group, device())[-1]
            wanted = (backend, 2, 8) if n > 1 else (backend, 2, 0)
            assert (ran["backend"], ran["chunks"], ran["budget"]) == wanted, (name, ran)
            equal(made, bits.setdefault(name, made), f"{name}, {backend}")
            refused(lambda: call(**{**how, "budget": -1}), "budget is -1")  # noqa: B023
            if n > 1 and backend == "mscclc":
                refused(lambda: call(**{**how, "budget": 3}), "thread blocks", "budget = 3")  # noqa: B023


def nothing_to_do(ranks):
    n = ranks.size
    whole, (out,) = ops.all_gather_matmul(torch.ones(0, 4), [torch.ones(4, 3)], 0, ranks.gloo)
    assert whole.shape == (0, 4) and out.shape == (0, 3)
    _, (out,) = ops.all_gather_matmul(torch.ones(2, 0), [torch.ones(0, 3)], 0, ranks.gloo, biases=[torch.ones(3)])
    equal(out, torch.ones(2 * n, 3))
    _, outs = ops.all_gather_matmul(torch.ones(2, 4), [torch.ones(4, 0), torch.ones(4, 1)], 0, ranks.gloo)
    equal(outs[0], torch.ones(2 * n, 0))
    equal(outs[1], torch.full((2 * n, 1), 4.0))
    equal(ops.matmul_reduce_scatter(torch.ones(n, 0), torch.ones(0, 3), "sum", 0, ranks.gloo), torch.zeros(1, 3))
    equal(ops.matmul_all_reduce(torch.ones(1, 4), torch.ones(4, 0), "sum", ranks.gloo), torch.ones(1, 0))
    # Along the columns: no rows.
    whole, (out,) = ops.all_gather_matmul(torch.ones(0, 2, 4), [torch.ones(4 * n, 3)], -1, ranks.gloo)
    assert whole.shape == (0, 2, 4 * n) and out.shape == (0, 2, 3)
    found = ops.matmul_reduce_scatter(torch.ones(0, 2, 4), torch.ones(4, 3 * n), "sum", -1, ranks.gloo)
    assert found.shape == (0, 2, 3)


def memory_of_any_kind(ranks):
    """Strides, odd offsets, inputs that need a copy; the inputs stay as they are."""
    wide = matrix((9, 13), 1, ranks.rank)
    for A in (wide[1:5, 1:7], wide.t()[1:5, 2:8], wide.flatten()[1:25].view(4, 6)):
        before, B = A.clone(), matrix((13, 6), 2, 0)[1:7, :5]
        parts = [torch.empty_like(before, memory_format=torch.contiguous_format) for _ in range(ranks.size)]
        dist.all_gather(parts, before.contiguous(), group=ranks.gloo)
        whole, (out,) = ops.all_gather_matmul(A, [B], 0, ranks.gloo)
        equal(whole, torch.cat(parts))
        equal(out, torch.cat(parts) @ B)
        equal(A, before)


def weights_lie_as_each_rank_has_them(ranks):
    """By rows at some, by columns at others."""
    n, rank, group = ranks.size, ranks.rank, ranks.gloo
    As, Bs = of_all(ranks, (2 * n, 6), 1), of_all(ranks, (6, 8), 2)
    B, total = columns_first(Bs[rank]) if rank % 2 else Bs[rank], sum(A @ B for A, B in zip(As, Bs))
    for backend in ("serial", "mscclc", "copy_engine"):
        how = {"backend": backend, "chunks": 1}
        equal(ops.all_gather_matmul(As[rank], [B], 0, group, **how)[1][0], torch.cat(As) @ Bs[rank], backend)
        found = ops.matmul_reduce_scatter(As[rank], B, "sum", 0, group, **how)
        equal(found, total.chunk(n)[rank], backend)
        equal(ops.matmul_all_reduce(As[rank], B, "sum", group, **how), total, backend)


def groups_beside_one_another(ranks):
    """The group may be of any backend; two groups over the same ranks, and ranks in another order, do not meet."""
    names = [dist.group.WORLD, ranks.gloo, dist.new_group(list(range(ranks.size)), backend="gloo")]
    if device().type == "cuda":
        names.append(dist.new_group(list(range(ranks.size)), backend="nccl"))
    A, B = torch.full((2, 4), ranks.rank + 1.0), torch.ones(4, 3)
    wanted = torch.tensor([4.0 * (r + 1) for r in range(ranks.size) for _ in range(2)]).view(-1, 1).expand(-1, 3)
    for _ in range(3):
        for group in names:
            equal(ops.all_gather_matmul(A, [B], 0, group)[1][0], wanted.contiguous())
    dist.destroy_process_group(names[2])
    name = names[2].group_name if hasattr(names[2], "_group_name") else "gone"
    refused(lambda: ops.matmul_all_reduce(A, B, "sum", name), "destroyed")
    if ranks.size > 2:
        pair = dist.new_group([1, 2], backend="gloo")
        if ranks.rank in (1, 2):
            equal(ops.matmul_all_reduce(A, B, "sum", pair), torch.full((2, 3), 20.0))


def what_is_wrong(ranks):
    group, n = ranks.gloo, ranks.size
    A, B = torch.ones(2 * n, 4), torch.ones(4, 3)
    gather, scatter, reduce = ops.all_gather_matmul, ops.matmul_reduce_scatter, ops.matmul_all_reduce
    refused(lambda: gather(A, [B], 2, group), "gather_dim is 2", "2 dimensions")
    refused(lambda: gather(A[0], [B], 0, group), "A is a matrix", "[4]")
    refused(lambda: gather(A, [torch.ones(5, 3)], 0, group), "matrix of 4 rows", "[5, 3]")
    refused(lambda: gather(A, [], 0, group), "no B")
    refused(lambda: gather(A, B, 0, group), "Bs is a list", "not a tensor")
    refused(lambda: gather(A, [B], 0, group, biases=torch.ones(3)), "biases is a list", "not a tensor")
    refused(lambda: ops.all_to_all_matmul(A, None, group), "Bs is a list", "not None")
    refused(lambda: reduce(A, B, "sum", None), "not None", "dist.group.WORLD")
    refused(lambda: reduce(A, B, "sum", 3), "a group is a ProcessGroup or its name, not 3")
    refused(lambda: reduce(A, B, "sum", dist.GroupMember.NON_GROUP_MEMBER), "no member")
    for none in (lambda: gather(None, [B], 0, group), lambda: gather(A, [None], 0, group),
                 lambda: gather(A, [B, B], 0, group, biases=[torch.ones(3), None]),
                 lambda: scatter(A, None, "sum", 0, group), lambda: reduce(None, B, "sum", group)):  # fmt: skip
        refused(none, "each B and each bias of a list is a tensor, not None")
    refused(lambda: gather(A, [B], 0, group, biases=[torch.ones(4)]), "3 values", "[4]")
    refused(lambda: gather(A, [B, B], 0, group, biases=[torch.ones(3)]), "1 biases for 2 weights")
    refused(lambda: gather(A, [B.bfloat16()], 0, group), "torch.float32", "torch.bfloat16")
    refused(lambda: gather(A.double(), [B.double()], 0, group), "f32, f16, bf16", "torch.float64")
    refused(lambda: gather(A, [B], 0, group, backend="ub"), "no backend 'ub'", "auto", "mscclc", "serial", "nccl")
    refused(lambda: gather(A, [B], 0, group, gemm="cutlass"), "'torch' or 'own'", "'cutlass'")
    refused(lambda: gather(A, [B], 0, group, chunks=65), "65", "1 to 64")
    refused(lambda: gather(A, [B], 0, group, budget=-1), "budget is -1", "multiprocessors")
    refused(lambda: reduce(A, B, "sum", group, budget=1 << 32), f"budget is {1 << 32}", "multiprocessors")
    refused(lambda: gather(A, [B], 0, "nothing"), "'nothing'")
    refused(lambda: gather(A.to("meta"), [B], 0, group), "meta")
    refused(lambda: scatter(A, B, "max", 0, group), "sum or avg", "'max'")
    refused(lambda: reduce(A, B, "prod", group), "sum or avg", "'prod'")
    if n > 1:
        refused(lambda: scatter(A[1:], B, "sum", 0, group), f"has {2 * n - 1}", f"the {n} ranks")
        refused(lambda: scatter(A, torch.ones(4, n + 1), "sum", 1, group), f"has {n + 1}", f"the {n} ranks")
        refused(lambda: ops.all_to_all_matmul(A[1:], [B], group), f"has {2 * n - 1}", f"the {n} ranks")
    wide = torch.ones(4, n)  # a column for each rank
    refused(lambda: scatter(A, wide, "sum", 1, group, bias=torch.tensor(1.0)), "1 values", "shape []")
    refused(lambda: scatter(A, wide, "sum", 1, group, bias=torch.ones(1).half()), "float32", "float16")
    refused(lambda: torch.ops.mscclc.matmul_all_reduce(A, B, "sum", group.group_name, None, ranks=n + 1),
            f"the group has {n} ranks, not {n + 1}")  # fmt: skip
    eight = torch.ones(2 * n, 32).to(torch.float8_e4m3fn)
    refused(lambda: reduce(eight, eight[:1].t(), "sum", group), "float8_e4m3fn")
    refused(
        lambda: ops.all_gather_scaled_matmul(
            eight, [eight.t()], torch.ones(3), [torch.tensor(1.0)], 0, group, [None], [None], [torch.bfloat16], [False]
        ),
        "a scale of A has one value", "[3]",
    )  # fmt: skip
    refused(
        lambda: ops.all_gather_scaled_matmul(
            eight, [eight.t()], None, [torch.tensor(1.0)], 0, group, [None], [None], [torch.bfloat16], [False]
        ),
        "A_scale is a tensor, not None",
    )  # fmt: skip
    refused(
        lambda: ops.scaled_matmul_reduce_scatter(eight, eight.t(), torch.tensor(1.0), None, "sum", 0, 0, group),
        "B_scale is a tensor, not None",
    )  # fmt: skip
    here, there = torch.tensor(1.0), torch.tensor(1.0, device="meta")
    for a, b in ((here, there), (there, here)):
        refused(
            lambda: ops.all_gather_scaled_matmul(
                eight, [eight.t()], a, [b], 0, group, [None], [None], [torch.bfloat16], [False]
            ),
            "A is on", "a scale on meta",
        )  # fmt: skip
        refused(
            lambda: ops.scaled_matmul_reduce_scatter(eight, eight.t(), a, b, "sum", 0, 0, group),
            "A is on", "a scale on meta",
        )  # fmt: skip
    refused(lambda: ops.backends("xpu"), "cpu or cuda", "xpu")


def queries(ranks):
    found = ops.backends(device())
    names = [one["name"] for one in found]
    for name in ("mscclc", "copy_engine", "serial", "nccl", "cublasmp"):
        assert name in names, names
    for one in found:
        assert one["available"] or one["why"], one
    ops.matmul_all_reduce(torch.ones(2, 4), torch.ones(4, 3), "sum", ranks.gloo, backend="serial", chunks=1)
    last = ops.explain(ranks.gloo, device())[-1]
    assert [last[name] for name in ("kind", "m", "backend", "gemm")] == ["gemm_allreduce", 2, "serial", "torch"], last
    for one in found:
        if not one["available"]:
            call = lambda: ops.matmul_all_reduce(  # noqa: E731
                torch.ones(2, 4), torch.ones(4, 3), "sum", ranks.gloo, backend=one["name"]
            )
            refused(call, one["name"])
    before = ops.runs()["gemm_allreduce"]
    ops.matmul_all_reduce(torch.ones(2, 4), torch.ones(4, 3), "sum", ranks.gloo)
    assert ops.runs()["gemm_allreduce"] == before + 1


def one_rank_asks_alone(ranks):
    """What runs, before an op has made what all ranks make together."""
    group = dist.new_group(list(range(ranks.size)), backend="gloo")
    if ranks.rank == 0:
        assert ops.explain(group, device()) == []
        refused(lambda: ops.explain("nothing", device()), "'nothing'")
    dist.barrier(ranks.gloo)  # no other rank comes to its help
    ops.matmul_all_reduce(torch.ones(2, 4), torch.ones(4, 3), "sum", group)
    assert [one["kind"] for one in ops.explain(group, device())] == ["gemm_allreduce"]


def in_graphs(ranks):
    """On GPUs: captured after a first call, replayed with other data; before one it is refused."""
    if device().type != "cuda":
        return
    n, x, out = ranks.size, torch.zeros(4, 16), {}
    B, half = matrix((16, 32), 2, 0), matrix((32, 16), 3, 0)

    def layer():
        _, (wide,) = ops.all_gather_matmul(x, [B], 0, ranks.gloo, backend="mscclc")
        out["part"] = ops.matmul_reduce_scatter(wide, half, "sum", 0, ranks.gloo, backend="mscclc")

    layer()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="relaxed"):
        layer()
    replayed = out["part"]
    for seed in range(3):
        x.copy_(matrix((4, 16), seed, ranks.rank))
        graph.replay()
        torch.cuda.synchronize()
        equal(replayed, n * (matrix((4, 16), seed, ranks.rank) @ B @ half), f"replay {seed}")
        layer()  # beside the graph
        equal(out["part"], n * (matrix((4, 16), seed, ranks.rank) @ B @ half), f"call {seed}")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        layer()
    stream.synchronize()
    with torch.cuda.graph(torch.cuda.CUDAGraph(), capture_error_mode="relaxed"):
        refused(lambda: ops.matmul_all_reduce(torch.ones(3, 16), B, "sum", ranks.gloo), "captured", "run the op once")


def captures_are_of_the_tensors_device(ranks):
    """Another device may be the current one, whose stream is not captured."""
    current = [0]

    @contextlib.contextmanager
    def on(device):
        current.append(device.index)
        yield
        current.pop()

    captured = lambda: current[-1] == 1  # noqa: E731
    with mock.patch("torch.cuda.device", on), mock.patch("torch.cuda.is_current_stream_capturing", captured), \
            mock.patch("torch.cuda.current_device", lambda: current[-1]):  # fmt: skip
        refused(lambda: objects.session(ranks.gloo.group_name, torch.device("cuda", 1)), "a graph is captured")
        assert [plans.is_captured(torch.device(*one)) for one in (("cuda", 0), ("cuda", 1), ("cpu",))] == [
            False, True, False
        ]  # fmt: skip
        with mock.patch("torch.cuda.device", None):  # of the current device it is asked as it is
            assert not plans.is_captured(torch.device("cuda", 0))
            current.append(1)
            assert plans.is_captured(torch.device("cuda", 1))


def a_product_that_fails(ranks):
    """What it raises is raised where it ran, and not only that a product has failed; other ranks learn of that."""

    def fails(gemm, stream):
        raise ValueError(f"no product of {gemm.m} rows")

    comm = plans.communicator(ranks.gloo, device())
    buffers = [torch.ones(4, 8), torch.ones(8, 8), torch.empty(4, 8)]
    a, b, out = (one.data_ptr() for one in buffers)

    def run():
        made = Overlap(comm, Shape("gemm_allreduce", 4, 8, (8,), "f32", "f32", "f32", chunks=1), fails)
        workspace = torch.empty(made.workspace_bytes, dtype=torch.uint8)
        stream = torch.cuda.current_stream().cuda_stream if device().type == "cuda" else None
        made.run(Buffers(a, [b], [out], workspace=workspace.data_ptr()), stream)

    raised = None
    try:
        run()
    except (ValueError, LibraryError) as error:
        raised = str(error)
    found = [None] * ranks.size
    dist.all_gather_object(found, raised, group=ranks.gloo)
    assert all(text and ("no product of" in text or "for products answered" in text) for text in found), found
    assert any("no product of" in text for text in found), found
    comm.close()


def a_run_that_fails_has_ended(ranks):
    """On the host device, where the caller may then free what the run would use: here it has been queued whole."""
    comm, ended = plans.communicator(ranks.gloo, torch.device("cpu")), threading.Event()
    given = [torch.ones(*shape, device="cpu") for shape in ((4, 8), (8, 8), (4, 8))]
    a, b, out = (one.data_ptr() for one in given)

    def slow(gemm, stream):
        time.sleep(0.2)
        ended.set()

    made = Overlap(comm, Shape("gemm_allreduce", 4, 8, (8,), "f32", "f32", "f32", chunks=1), slow)
    workspace, run = torch.empty(made.workspace_bytes, dtype=torch.uint8, device="cpu"), made._run
    made._run = lambda *given: run(*given) or 1
    ended.clear()  # it may have been tried
    refused(lambda: made.run(Buffers(a, [b], [out], workspace=workspace.data_ptr()), None))
    assert ended.is_set()
    made.close()
    comm.close()


def what_ranks_do_unlike_one_another(ranks):
    """What the library does not do itself is compared, too; then the group goes on."""
    if ranks.size == 1:
        return
    A, B, first = torch.ones(2 * ranks.size, 4), torch.ones(4, 11), ranks.rank == 0
    for call in (
        lambda op: ops.matmul_all_reduce(A, B, op, ranks.gloo),
        lambda op: ops.matmul_reduce_scatter(A, B, op, 0, ranks.gloo),
    ):
        refused(lambda: call("sum" if first else "avg"), "reduce_op=sum", "reduce_op=avg")  # noqa: B023
        call("avg")
    refused(
        lambda: ops.matmul_all_reduce(A, B, "sum", ranks.gloo, gemm="torch" if first else "own"),
        "gemm=torch", "gemm=own",
    )  # fmt: skip
    equal(ops.matmul_all_reduce(A, B, "sum", ranks.gloo), torch.full((len(A), 11), 4.0 * ranks.size))


def first_calls_of_threads_in_crossed_order(ranks):
    """While one thread makes what a group's ops need, which waits for other ranks, another does so for its group."""
    groups = [dist.new_group(backend="gloo", timeout=PATIENCE) for _ in range(2)]
    if ranks.rank % 2:
        groups.reverse()
    A, B, begun, make = torch.ones(2, 4), torch.ones(4, 3), threading.Event(), plans.communicator
    wanted = torch.full((2, 3), 4.0 * ranks.size)

    def communicator(*given):
        begun.set()
        return make(*given)

    with mock.patch.object(plans, "communicator", communicator), ThreadPoolExecutor(2) as threads:
        made = [threads.submit(ops.matmul_all_reduce, A, B, "sum", groups[0])]
        begun.wait()
        made.append(threads.submit(ops.matmul_all_reduce, A, B, "sum", groups[1]))
        for one in made:
            equal(one.result(), wanted)


def waits_as_long_as_the_group(ranks):
    """For ranks that call nothing: the communicator of the ops gets the group's timeout."""
    if ranks.size == 1:
        return
    made = mock.Mock(wraps=plans.Communicator)
    for seconds, backend in ((77, "gloo"), (78, "mscclc")):
        group = dist.new_group(backend=backend, timeout=datetime.timedelta(seconds=seconds))
        with mock.patch.object(plans, "Communicator", made):
            ops.matmul_all_reduce(torch.ones(2, 4), torch.ones(4, 3), "sum", group)
        assert made.call_args.kwargs["timeout"] == seconds, made.call_args
    assert made.call_count == 2


def closed_and_made_again(ranks):
    for _ in range(2):
        equal(ops.matmul_all_reduce(torch.ones(1, 4), torch.ones(4, 3), "sum", ranks.gloo),
              torch.full((1, 3), 4.0 * ranks.size))  # fmt: skip
        dist.barrier(ranks.gloo)
        ops.close()


CHECKS = [
    gathers, gathers_columns, scatters, scatters_columns, reduces, exchanges, bias_is_added_once,
    backends_have_the_same_bits, budgets_are_kept, *scaled.CHECKS, nothing_to_do, memory_of_any_kind,
    weights_lie_as_each_rank_has_them,
    groups_beside_one_another, what_is_wrong, queries, one_rank_asks_alone, in_graphs,
    captures_are_of_the_tensors_device, a_product_that_fails, a_run_that_fails_has_ended, *again.CHECKS,
    what_ranks_do_unlike_one_another, first_calls_of_threads_in_crossed_order, waits_as_long_as_the_group, closed_and_made_again,
]  # fmt: skip
