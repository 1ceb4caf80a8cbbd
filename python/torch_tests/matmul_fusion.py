"""The pass that fuses products and collectives of compiled models, against the same models eager.

Numbers are small and whole, so all orders of additions have the same bits.
"""

from unittest import mock

import mscclc.torch.ops  # noqa: F401, defines ops
import torch
import torch._dynamo
import torch._functorch.config
import torch._inductor.config
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed._symmetric_memory as symmetric
from checks import device, equal, refused
from matmul_fusion_scaled import CHECKS as OF_8_BITS

from mscclc import ops
from mscclc.errors import UsageError
from mscclc.torch.fusion import RowFusion
from mscclc.torch.overlap import shapes
from mscclc.torch.overlap.fusion import MatmulFusion

_BY_INDUCTOR = (False, True)
torch._inductor.config.compile_threads = 1  # no pool of processes for each rank
torch._functorch.config.enable_autograd_cache = False  # each pass is to run


def _matrix(shape, seed, rank=0):
    random = torch.Generator("cpu").manual_seed(100 * seed + rank)
    return torch.randint(-2, 3, shape, generator=random, device="cpu").to(device(), torch.float32)


def _compiled(program, by, inductor, **more):
    torch._dynamo.reset()
    how = {"backend": by.backend}
    if inductor:
        how = {"options": {"post_grad_custom_post_pass": by, "fx_graph_cache": False}}
    return torch.compile(program, fullgraph=True, **how, **more)


def _same(program, given, wanted, inductor=False, by=None, **more):
    """Compiled as eager; what became of its collectives in all graphs, as (op, products), in order."""
    by = by or MatmulFusion()
    found, eager = _compiled(program, by, inductor, **more)(*given), program(*given)
    for number, (one, other) in enumerate(zip(found, eager, strict=True)):
        equal(one.contiguous(), other.contiguous(), f"result {number}, by Inductor: {inductor}\n{by.report()}")
    leaves = [one for one in given if one.requires_grad]
    if leaves:
        found, eager = (torch.autograd.grad(sum(_loss(one) for one in r), leaves) for r in (found, eager))
        for number, (one, other) in enumerate(zip(found, eager, strict=True)):
            equal(one, other, f"gradient {number}, by Inductor: {inductor}\n{by.report()}")
    made = [(one.op, one.products) for one in by.report().replaced]
    assert made == wanted, f"{made}\n{by.report()}"
    return by.report()


class _WithoutGathers(MatmulFusion):
    """No gather stays beside the ops, which would run as well."""

    def change(self, graph):
        super().change(graph)
        stays = [node.name for node in graph.nodes if "_c10d_functional" in str(node.target)]
        assert not stays, f"{stays}\n{graph}"


def _loss(result):
    return (result * _matrix(tuple(result.shape), 50)).sum()


def _weights(ranks, *shapes, grad=True):
    return [_matrix(shape, 5 + i, ranks.rank).requires_grad_(grad) for i, shape in enumerate(shapes)]


def _gather(x, dim, group, ranks):
    """As torch's functional collectives have it, which Dynamo does not trace along other dimensions than 0."""
    whole = functional.all_gather_tensor(x, 0, group)
    return whole if dim == 0 else torch.cat(torch.chunk(whole, ranks, 0), dim)


def a_layer(ranks):
    """Sequence and tensor parallel, along any dimension: four products that overlap in a step."""
    n, group = ranks.size, ranks.gloo

    def layer_of(dim):
        def layer(x, up, down):
            hidden = torch.relu(torch.nn.functional.linear(_gather(x, dim, group, n), up))
            return [functional.reduce_scatter_tensor(torch.nn.functional.linear(hidden, down), "sum", dim, group)]

        return layer

    for inductor in _BY_INDUCTOR:
        for shape, dim in (((4, 6), 0), ((4, 3, 6), 0), ((3, 4, 6), 1))[-1 if inductor else 0:]:
            x = _matrix(shape, 1, ranks.rank).requires_grad_()
            given = [x, *_weights(ranks, (8, 6), (6, 8))]
            report = _same(
                layer_of(dim), given,
                [("all_gather_matmul", 1), ("matmul_reduce_scatter", 1)] * 2, inductor,
            )  # fmt: skip
            assert not report.left, report


def weights_of_one_gather(ranks):
    """Several products of what is gathered, with biases; and it is used itself."""
    group, n = ranks.gloo, ranks.size

    def heads(x, q, k, v):
        whole = functional.all_gather_tensor(x, 0, group)
        return [whole @ q, whole @ k, (whole.view(-1, 6) @ v).relu()]

    def used(x, q, k):
        whole = functional.all_gather_tensor(x, 0, group)
        return [whole.sum(-1), whole @ q, whole @ k]

    def with_biases(x, q, k, b, c):
        whole = functional.all_gather_tensor(x, 0, group)
        return [torch.nn.functional.linear(whole, q, b), torch.nn.functional.linear(whole, k, c)]

    def used_along_1(x, q):
        whole = _gather(x, 1, group, n)
        return [whole.sum(-1), whole @ q]

    x = _matrix((2, 3, 6), 1, ranks.rank)
    biased = [x, *_weights(ranks, (8, 6), (4, 6), (8,), (4,), grad=False)]
    for inductor in _BY_INDUCTOR:
        two = [x, *_weights(ranks, (6, 8), (6, 4), grad=False)]
        _same(used, two, [("all_gather_matmul", 2)], inductor, _WithoutGathers())
        _same(used_along_1, two[:2], [("all_gather_matmul", 1)], inductor, _WithoutGathers())
        _same(with_biases, biased, [("all_gather_matmul", 2)], inductor)
    _same(heads, [x, *_weights(ranks, (6, 8), (6, 4), (6, 2), grad=False)], [("all_gather_matmul", 3)])
    # Gathered along a dimension whose parts are joined again.
    both = lambda x, q: [_gather(x, 1, group, n) @ q]  # noqa: E731
    _same(both, [x, *_weights(ranks, (6, 8), grad=False)], [("all_gather_matmul", 1)])


def views_with_more_dimensions(ranks):
    """A view of a product that only has more leading ones than the op's result is not that result."""
    group, n = ranks.gloo, ranks.size

    def layer(x, w):
        made = _gather(x, 1, group, n).view(-1, 6) @ w
        return [made.view(1, 1, *made.shape).amax(1), made.view(1, *made.shape).amax(1)]

    given = [_matrix((1, 4, 6), 1, ranks.rank), *_weights(ranks, (6, 8), grad=False)]
    for inductor in _BY_INDUCTOR:
        _same(layer, given, [("all_gather_matmul", 1)], inductor)


def sums(ranks):
    group = ranks.gloo

    def layer(x, w):
        return [functional.all_reduce(x @ w, "sum", group), functional.all_reduce(x.flatten(0, 1) @ w, "avg", group)]

    given = [_matrix((2, 3, 4), 1, ranks.rank), *_weights(ranks, (4, 8), grad=False)]
    _same(layer, given, [("matmul_all_reduce", 1)] * 2)


def by_our_collectives(ranks):
    """torch.ops.mscclc.all_gather and so on."""
    name, n, plain = ranks.gloo.group_name, ranks.size, torch.ops.mscclc

    def layer(x, up, down):
        hidden = plain.all_gather(x, n, name) @ up
        return [plain.reduce_scatter(hidden @ down, "sum", n, name), plain.all_reduce(hidden @ down, "sum", name)]

    given = [_matrix((4, 6), 1, ranks.rank), *_weights(ranks, (6, 8), (8, 6), grad=False)]
    wanted = [("all_gather_matmul", 1), ("matmul_reduce_scatter", 1), ("matmul_all_reduce", 1)]
    _same(layer, given, wanted)


def rows_that_vary(ranks):
    group = ranks.gloo

    def layer(x, up, down):
        hidden = torch.relu(functional.all_gather_tensor(x, 0, group) @ up)
        return [functional.reduce_scatter_tensor(hidden @ down, "sum", 0, group)]

    by = MatmulFusion()
    program = _compiled(layer, by, False, dynamic=True)
    for rows in (4, 6, 10):
        given = [_matrix((rows, 6), 1, ranks.rank), *_weights(ranks, (6, 8), (8, 6), grad=False)]
        equal(program(*given)[0], layer(*given)[0], f"{rows} rows")
    assert len(by.report().replaced) == 2, by.report()


def what_stays(ranks):
    group = ranks.gloo
    linear = torch.nn.functional.linear

    def no_product(x, w):
        return [functional.all_gather_tensor(x, 0, group) * 2]

    def of_what_is_gathered(x, w):
        whole = functional.all_gather_tensor(x, 0, group)
        return [whole @ whole.t()]

    def biased(x, w):
        return [functional.all_reduce(linear(x, w, w[:, 0]), "sum", group)]

    def greatest(x, w):
        return [functional.all_reduce(linear(x, w), "max", group)]

    def used_elsewhere(x, w):
        made = linear(x, w)
        return [functional.all_reduce(made, "sum", group), made]

    def no_matrix(x, w):
        return [functional.all_reduce(x.relu(), "sum", group)]

    def of_doubles(x, w):
        return [functional.all_reduce(linear(x.double(), w.double()), "sum", group)]

    def of_a_vector(x, w):
        return [functional.all_gather_tensor(w[0, :3], 0, group).view(1, -1) @ w.t()]

    def as_a_vector(x, w):
        return [functional.reduce_scatter_tensor((x[0].view(1, -1) @ w.t()).view(-1), "sum", 0, group)]

    def as_a_number(x, w):
        return [functional.all_reduce((x[:1] @ w[:1].t()).view(()), "sum", group)]

    x, w = _matrix((4, 6), 1, ranks.rank), _matrix((8, 6), 2, ranks.rank)
    for program, why in (
        (no_product, "no product of what it gathers"), (of_what_is_gathered, "is computed later"),
        (biased, "adds a bias"), (greatest, "reduces by 'max'"), (used_elsewhere, "used elsewhere"),
        (no_matrix, "is no product, but aten.relu"), (of_doubles, "is no product"),
        (of_a_vector, "without rows"), (as_a_vector, "without rows"), (as_a_number, "without rows"),
    ):  # fmt: skip
        report = _same(program, [x, w], [])
        assert len(report.left) == 1 and why in report.left[0].why, f"{why}\n{report}"


def what_the_op_refuses(ranks):
    """The graph is as before, whatever the op says."""
    group = ranks.gloo

    def layer(x, w):
        whole = functional.all_gather_tensor(x, 0, group)
        return [whole @ w, functional.all_reduce(x @ w, "sum", group)]

    def refuse(*given):
        raise UsageError("not today")

    given = [_matrix((4, 6), 1, ranks.rank), _matrix((6, 8), 2, ranks.rank)]
    by = MatmulFusion()
    with mock.patch.object(shapes, "check_weights", refuse):
        found = _compiled(layer, by, False)(*given)
    for one, other in zip(found, layer(*given), strict=True):
        equal(one, other)
    assert [one.why for one in by.report().left] == ["not today"] * 2, by.report()


def torchs_own_pass(ranks):
    """Inductor's pass, whose ops are for GPUs only: ours take their places."""
    own, name = torch.ops.symm_mem, ranks.gloo.group_name

    class Own(MatmulFusion):
        def change(self, graph):
            by_torch = torch._inductor.fx_passes.micro_pipeline_tp
            enabled = symmetric.is_symm_mem_enabled_for_group
            symmetric.is_symm_mem_enabled_for_group = lambda _: True
            try:
                by_torch.micro_pipeline_tp_pass(graph)
            finally:
                symmetric.is_symm_mem_enabled_for_group = enabled
            self.before = [str(node.target) for node in graph.nodes]
            super().change(graph)

    def layer(x, up, down):
        hidden = torch.relu(functional.all_gather_tensor(x, 0, name) @ up)
        return [functional.reduce_scatter_tensor(hidden @ down, "sum", 0, name)]

    by = Own()
    given = [_matrix((4, 6), 1, ranks.rank), *_weights(ranks, (6, 8), (8, 6), grad=False)]
    _same(layer, given, [("all_gather_matmul", 1), ("matmul_reduce_scatter", 1)], True, by)
    for op in (own.fused_all_gather_matmul, own.fused_matmul_reduce_scatter):
        assert str(op.default) in by.before, by.before


def scaled_by_torchs_own(ranks):
    """Graphs with torch's ops of scaled products."""
    name, n, eight = ranks.gloo.group_name, ranks.size, torch.float8_e4m3fn
    x, up = _matrix((4, 16), 1, ranks.rank).to(eight), _matrix((16, 16), 2).to(eight).t()
    one = torch.tensor(0.5)
    mode = torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True)

    def made(x, up, one):
        graph = torch.fx.Graph()
        nodes = [graph.placeholder(word) for word in ("x", "up", "one")]
        for node, value in zip(nodes, (x, up, one)):
            node.meta["val"] = mode.from_tensor(value)
        own = torch.ops.symm_mem
        gathered = graph.call_function(
            own.fused_all_gather_scaled_matmul.default,
            (nodes[0], [nodes[1]], nodes[2], [nodes[2]], 0, name, [None], [None], [torch.bfloat16], [False]),
        )
        reduced = graph.call_function(
            own.fused_scaled_matmul_reduce_scatter.default,
            (nodes[0], nodes[1], nodes[2], nodes[2], "sum", 0, 0, name, [4, 16], None, None, torch.bfloat16),
        )
        graph.output((gathered, reduced))
        return torch.fx.GraphModule(torch.nn.Module(), graph)

    module = made(x, up, one)
    by = MatmulFusion()
    by(module.graph)
    assert [one.op for one in by.report().replaced] == ["all_gather_scaled_matmul", "scaled_matmul_reduce_scatter"]
    if 4 % n == 0:
        (whole, outs), part = module(x, up, one)
        equal(outs[0], (whole.float() @ up.float() / 4).bfloat16())
        total = sum(_matrix((4, 16), 1, r) @ up.float() / 4 for r in range(n))
        equal(part, total.bfloat16().chunk(n)[ranks.rank])


def beside_row_fusion(ranks):
    """Which pass gets a sum is said by their order."""
    group = ranks.gloo

    def layer(x, w, g):
        made = functional.all_reduce(x @ w, "sum", group)
        return [made * torch.rsqrt(made.pow(2).mean(-1, keepdim=True) + 1) * g]

    matmuls, rows = MatmulFusion(), RowFusion()

    class Both(MatmulFusion):
        def change(self, graph):
            matmuls.change(graph)
            rows.change(graph)

    given = [_matrix((4, 6), 1, ranks.rank), _matrix((6, 8), 2, ranks.rank), _matrix((8,), 3)]
    found = _compiled(layer, Both(), False)(*given)[0]
    torch.testing.assert_close(found, layer(*given)[0])
    assert (len(matmuls.report().replaced), len(rows.report().replaced)) == (1, 0)
    assert MatmulFusion().uuid() == MatmulFusion().uuid() != MatmulFusion("serial").uuid()
    assert MatmulFusion().uuid() != MatmulFusion(budget=8).uuid()
    assert "1 collectives fused, 0 left" in str(matmuls.report())
    ops.close()


def code_is_kept_for_groups_of_a_size(ranks):
    """Graphs have the number of ranks, which a later run may have another of."""
    for one in (MatmulFusion(), RowFusion()):
        before = one.uuid()
        assert one.uuid() == before
        with mock.patch.object(dist.ProcessGroup, "size", lambda _: ranks.size + 1):
            assert one.uuid() != before


def what_is_wrong(ranks):
    refused(lambda: MatmulFusion(gemm="cutlass"), "'torch' or 'own'", "'cutlass'")
    refused(lambda: MatmulFusion(backend="ub"), "no backend 'ub'")
    refused(lambda: MatmulFusion(chunks=65), "65", "1 to 64")
    refused(lambda: MatmulFusion(budget=-1), "budget is -1", "multiprocessors")


CHECKS = [
    a_layer, weights_of_one_gather, views_with_more_dimensions, sums, by_our_collectives, rows_that_vary, what_stays,
    what_the_op_refuses, torchs_own_pass, scaled_by_torchs_own, beside_row_fusion,
    code_is_kept_for_groups_of_a_size, *OF_8_BITS, what_is_wrong,
]  # fmt: skip
