"""The pass that fuses products of 8-bit floats with scales: checks that matmul_fusion.py runs among its own.

A scale of rows or columns has no product of torch's on the host, so what those must give is computed in f32.
"""

import torch
import torch._dynamo
import torch.distributed._functional_collectives as functional
from checks import device, equal
from matmul_values import columns_first, eights, matrix, scales_of

from mscclc.torch.overlap.fusion import MatmulFusion

E4M3, BYTES = torch.float8_e4m3fn, torch.uint8


def _compiled(program, by, inductor=False, **more):
    torch._dynamo.reset()
    how = {"backend": by.backend}
    if inductor:
        how = {"options": {"post_grad_custom_post_pass": by, "fx_graph_cache": False}}
    return torch.compile(program, fullgraph=True, **how, **more)


class _Stays(MatmulFusion):
    """Also counts the collectives that stay."""

    def change(self, graph):
        super().change(graph)
        self.graph = graph
        self.collectives = [node for node in graph.nodes if "_c10d_functional" in str(node.target)]


def _fused(program, given, wanted, op, inductor=False, products=1):
    """Compiled it gives what is wanted, by one op, and no collective stays."""
    by = _Stays()
    found = _compiled(program, by, inductor)(*given)
    for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
        equal(one.contiguous(), other.contiguous(), f"result {number}, by Inductor: {inductor}\n{by.report()}")
    made = [(one.op, one.products) for one in by.report().replaced]
    assert made == [(op, products)] and not by.report().left, f"{by.report()}\n{by.graph}"
    assert not by.collectives, by.graph


def _left(program, given, why, eager=True, **how):
    """Compiled it is as before, and the report says why."""
    by = _Stays(**how)
    compiled = _compiled(program, by)
    if eager:
        for one, other in zip(compiled(*given), program(*given), strict=True):
            equal(one, other)
    else:
        try:
            compiled(*given)  # as far as torch has no such product here
        except (RuntimeError, ValueError) as error:
            assert "scal" in str(error).lower(), error
    left = [one.why for one in by.report().left]
    assert not by.report().replaced and len(left) == 1 and why in left[0], f"{why}\n{by.report()}"


def _gather(x, dim, group, ranks):
    """The second argument of torch's own is traced for 0 only."""
    whole = functional.all_gather_tensor(x, 0, group)
    return whole if dim == 0 else torch.cat(torch.chunk(whole, ranks, 0), dim)


def _gather_bytes(x, dim, group, ranks):
    """As programs do it whose backend has no 8-bit floats."""
    return _gather(x.view(BYTES), dim, group, ranks).view(E4M3)


def _gather_cat_bytes(x, dim, group, ranks):
    """As those do it whose torch joins none."""
    whole = functional.all_gather_tensor(x, 0, group)
    return torch.cat([one.view(BYTES) for one in torch.chunk(whole, ranks, 0)], dim).view(E4M3)


def _multiply(x, w, a, b, bias=None, dtype=torch.bfloat16, **more):
    found = torch._scaled_mm(x.flatten(0, -2), w, a, b, bias, out_dtype=dtype, **more)
    return found.view(*x.shape[:-1], -1)


def _product(x, w, a, b, dtype=torch.bfloat16):
    return (x.float() @ w.float() * a * b).to(dtype)


def _weight(n, seed, rank=0):
    return columns_first(matrix((16, n), seed, rank).to(E4M3))


def gathers_with_one_scale(ranks):
    """Every dimension and way to gather, with biases and several weights; A is used itself."""
    group, n = ranks.gloo, ranks.size
    one, two = (torch.tensor(value, device=device()) for value in (0.5, 2.0))
    weights, bias = [_weight(16, 2), _weight(32, 3)], matrix((16,), 4, 0, torch.bfloat16)

    for way in (_gather, _gather_bytes, _gather_cat_bytes):
        for shape, dim in (((4, 16), 0), ((2, 3, 16), 0), ((3, 2, 16), 1), ((1, 16), 0)):
            if way is _gather_cat_bytes and dim == 0:
                continue

            def layer(x, up, down, bias, a, b, way=way, dim=dim):
                whole = way(x, dim, group, n)
                return [_multiply(whole, up, a, b, bias), _multiply(whole, down, a, a, use_fast_accum=True)]

            As = eights(ranks, shape, 1)
            whole = torch.cat(As, dim)
            wanted = [(whole.float() @ weights[0].float() + bias.float()).bfloat16(),
                      _product(whole, weights[1], one, one)]  # fmt: skip
            for inductor in (False, True)[:2 if shape == (3, 2, 16) else 1]:
                for a in (one, one.view(1), one.view(1, 1))[:3 if way is _gather and len(shape) == 2 else 1]:
                    given = [As[ranks.rank], *weights, bias, a, two.view(a.shape)]
                    _fused(layer, given, wanted, "all_gather_scaled_matmul", inductor, products=2)

    def used(x, w, a):
        whole = _gather(x, 1, group, n)
        return [whole.float().sum(-1), _multiply(whole, w, a, a)]

    As = eights(ranks, (3, 2, 16), 1)
    whole = torch.cat(As, 1)
    wanted = [whole.float().sum(-1), _product(whole, weights[0], one, one)]
    _fused(used, [As[ranks.rank], weights[0], one], wanted, "all_gather_scaled_matmul")


def gathers_with_scales_of_rows(ranks):
    """Of all ranks' rows, or gathered with them, before or after: then their gather goes."""
    group, n = ranks.gloo, ranks.size
    w, columns = _weight(32, 2), scales_of((32,), 6).view(1, 32)
    for shape, dim in (((4, 16), 0), ((2, 3, 16), 0), ((3, 2, 16), 1), ((1, 16), 0)):
        As = eights(ranks, shape, 1)
        scales = [scales_of((*shape[:-1], 1), 5, r) for r in range(n)]
        whole, rows = torch.cat(As, dim), torch.cat(scales, dim)
        wanted = [_product(whole, w, rows, columns)]

        def given_all(x, w, rows, b, dim=dim):
            return [_multiply(_gather(x, dim, group, n), w, rows.flatten(0, -2), b)]

        def after(x, w, own, b, dim=dim):
            whole = _gather(x, dim, group, n)
            return [_multiply(whole, w, _gather(own, dim, group, n).flatten(0, -2), b)]

        def before(x, w, own, b, dim=dim):
            rows = _gather(own, dim, group, n).flatten(0, -2)
            return [_multiply(_gather(x, dim, group, n), w, rows, b)]

        _fused(given_all, [As[ranks.rank], w, rows, columns], wanted, "all_gather_scaled_matmul")
        for program in (after, before):
            given = [As[ranks.rank], w, scales[ranks.rank], columns]
            _fused(program, given, wanted, "all_gather_scaled_matmul")

    def used(x, w, own, b):
        rows = _gather(own, 0, group, n)
        return [_multiply(_gather(x, 0, group, n), w, rows, b), rows + 1]

    As, scales = eights(ranks, (4, 16), 1), [scales_of((4, 1), 5, r) for r in range(n)]
    by = _Stays()
    found = _compiled(used, by)(As[ranks.rank], w, scales[ranks.rank], columns)
    equal(found[0], _product(torch.cat(As), w, torch.cat(scales), columns))
    equal(found[1], torch.cat(scales) + 1)
    assert len(by.report().replaced) == 1 and len(by.report().left) == 1, by.report()  # the gather of scales


def scatters(ranks):
    """Sums and means of products along each dimension, with scales of both kinds."""
    group, n, rank = ranks.gloo, ranks.size, ranks.rank
    As, Bs = eights(ranks, (2 * n, 2 * n, 16), 1), eights(ranks, (16, 16), 2)
    B = columns_first(Bs[rank])
    for op in ("sum", "avg"):
        for by_rows in (False, True):
            a = [scales_of((2 * n, 2 * n, 1) if by_rows else (), 5, r) for r in range(n)]
            b = [scales_of((1, 16) if by_rows else (), 6, r) for r in range(n)]
            total = sum(A.float() @ w.float() * s * t for A, w, s, t in zip(As, Bs, a, b)) / (n if op == "avg" else 1)
            for dim in (0, 1):
                def layer(x, w, a, b, dim=dim, op=op):
                    a = a if a.dim() == 0 else a.flatten(0, -2)
                    return [functional.reduce_scatter_tensor(_multiply(x, w, a, b), op, dim, group)]

                wanted = [total.bfloat16().chunk(n, dim)[rank]]
                for inductor in (False, True)[:2 if dim and not by_rows else 1]:
                    given = [As[rank], B, a[rank], b[rank]]
                    _fused(layer, given, wanted, "scaled_matmul_reduce_scatter", inductor)

    def flat(x, w, a):
        made = torch._scaled_mm(x, w, a, a, out_dtype=torch.float32)
        return [functional.reduce_scatter_tensor(made, "sum", 0, group)]

    half = torch.tensor(0.5, device=device())
    total = sum(A.flatten(0, 1).float() @ w.float() / 4 for A, w in zip(As, Bs))
    _fused(flat, [As[rank].flatten(0, 1), B, half], [total.chunk(n)[rank]], "scaled_matmul_reduce_scatter")


def what_stays_of_eight_bits(ranks):
    group, n = ranks.gloo, ranks.size
    A, w = eights(ranks, (4, 16), 1)[ranks.rank], _weight(16, 2)
    one = torch.tensor(1.0, device=device())
    rows, columns = scales_of((4 * n, 1), 4), scales_of((1, 16), 5)

    def gather(x, w, a, b, **more):
        return [_multiply(_gather_bytes(x, 0, group, n), w, a, b, **more).float()]

    def sum_of_all(x, w, a, b):
        return [functional.all_reduce(_multiply(x, w, a, b), "sum", group)]

    def along_columns(x, w, a, b):
        return [_multiply(_gather_bytes(x, 1, group, n), w, a, b)]

    def biased(x, w, a, b):
        return [functional.reduce_scatter_tensor(_multiply(x, w, a, b, w[0].bfloat16()), "sum", 0, group)]

    def to_columns(x, w, a, b):
        made = torch.cat(torch.chunk(_multiply(x, w, a, b), n, 1))
        return [functional.reduce_scatter_tensor(made, "sum", 0, group)]

    given = [A, w, one, one]
    _left(sum_of_all, given, "no op of an all-reduce of products of 8-bit floats")
    _left(lambda *g: gather(*g, dtype=E4M3), given, "that gives torch.float8_e4m3fn")
    _left(along_columns, [A[:, :16 // n].contiguous(), *given[1:]], "gather_dim must not be the last")
    _left(to_columns, given, "scatter_dim must not be the last")
    _left(biased, given, "adds a bias")
    _left(gather, [A, w, rows, columns], "by 'own' have one value", eager=False, gemm="own")


def rows_with_scales_vary(ranks):
    """One graph for any number of rows, with scales that are gathered."""
    group, n, by = ranks.gloo, ranks.size, _Stays()
    w, v, columns = _weight(16, 2), _weight(16, 3), scales_of((1, 16), 6)

    def layer(x, w, v, own, b):
        made = _multiply(_gather(x, 0, group, n), w, functional.all_gather_tensor(own, 0, group), b)
        again = torch._scaled_mm(made.to(E4M3), v, b[:, :1], b[:, :1], out_dtype=torch.bfloat16)
        return functional.reduce_scatter_tensor(again, "sum", 0, group)

    program = _compiled(layer, by, dynamic=True)
    for rows in (4, 6, 10):
        As, scales = eights(ranks, (rows, 16), 1), [scales_of((rows, 1), 5, r) for r in range(n)]
        found = program(As[ranks.rank], w, v, scales[ranks.rank], columns)
        made = _product(torch.cat(As), w, torch.cat(scales), columns).to(E4M3)
        one = columns[:, :1]
        wanted = (n * (made.float() @ v.float() * one * one).bfloat16().float()).bfloat16().chunk(n)[ranks.rank]
        equal(found, wanted, f"{rows} rows")
    made = [one.op for one in by.report().replaced]
    assert made == ["all_gather_scaled_matmul", "scaled_matmul_reduce_scatter"] and not by.collectives, by.report()


def other_scales_stay_apart(ranks):
    """One op has one scale of A: products with another one take what it gathers."""
    group, n = ranks.gloo, ranks.size
    As, w, v = eights(ranks, (4, 16), 1), _weight(16, 2), _weight(32, 3)
    one, two = (torch.tensor(value, device=device()) for value in (0.5, 2.0))

    def layer(x, w, v, a, b):
        whole = _gather(x, 0, group, n)
        return [_multiply(whole, w, a, a), _multiply(whole, v, b, b)]

    whole = torch.cat(As)
    wanted = [_product(whole, w, one, one), _product(whole, v, two, two)]
    _fused(layer, [As[ranks.rank], w, v, one, two], wanted, "all_gather_scaled_matmul")


CHECKS = [
    gathers_with_one_scale, gathers_with_scales_of_rows, scatters, rows_with_scales_vary, what_stays_of_eight_bits,
    other_scales_stay_apart,
]  # fmt: skip
