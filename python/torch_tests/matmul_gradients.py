"""Gradients of products that overlap with collectives, eager and compiled, and opcheck.

What is right is computed by one process for all ranks: each knows what all have, and gradients are those of the sum
of all ranks' losses. All numbers are small and whole.
"""

import torch
import torch._dynamo
import torch._dynamo.testing
import torch._functorch.config
import torch._inductor.config
from checks import device, equal

from mscclc import ops

torch._inductor.config.compile_threads = 1  # no pool of processes for each rank
torch._functorch.config.enable_autograd_cache = False  # it does not see how gradients are computed


def _matrix(shape, seed, rank=0):
    random = torch.Generator("cpu").manual_seed(100 * seed + rank)
    return torch.randint(-2, 3, shape, generator=random, device="cpu").to(device(), torch.float32)


def _of_all(ranks, shape, seed):
    return [_matrix(shape, seed, rank).requires_grad_() for rank in range(ranks.size)]


def _loss(results, rank):
    """Of a rank: each element counts otherwise."""
    total = 0
    for number, result in enumerate(results):
        total = total + (result * _matrix(tuple(result.shape), 50 + number, rank)).sum()
    return total


def _wanted(ranks, leaves, results_of):
    """Gradients of this rank's leaves, where `results_of(rank)` are the results at a rank."""
    total = sum(_loss(results_of(rank), rank) for rank in range(ranks.size))
    return torch.autograd.grad(total, leaves, allow_unused=True)


def _found(ranks, leaves, results):
    return torch.autograd.grad(_loss(results, ranks.rank), leaves)


def _same(found, wanted, what):
    for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
        equal(one, other, f"{what}, gradient {number}")


def gathers(ranks):
    """Whether A is kept or gathered again, and whether what was gathered is used itself."""
    n, rank = ranks.size, ranks.rank
    for shape, dim in (((4, 6), 0), ((2, 4, 6), 1), ((4, 3, 6), 0), ((2, 6), 1)):
        rows = 6 * n if dim == len(shape) - 1 else 6
        As = _of_all(ranks, shape, 1)
        weights = [[_matrix((rows, w), 2 + w, r).requires_grad_() for w in (4, 5)] for r in range(n)]
        biases = [[_matrix((w,), 20 + w, r).requires_grad_() for w in (4, 5)] for r in range(n)]
        leaves = [As[rank], *weights[rank], *biases[rank]]
        for kept, used in ((True, False), (True, True), (False, False)):

            def of(r):
                whole = torch.cat(As, dim)
                outs = [whole @ B + bias for B, bias in zip(weights[r], biases[r])]
                return [whole, *outs] if used else outs

            whole, outs = ops.all_gather_matmul(
                As[rank], weights[rank], dim, ranks.gloo, biases=biases[rank], return_A=kept
            )
            found = _found(ranks, leaves, [whole, *outs] if used else outs)
            _same(found, _wanted(ranks, leaves, of), f"{shape} along {dim}, kept {kept}, used {used}")


def under_autocast(ranks):
    """Ops multiply in the type of A, as what they give when they are traced says."""
    n, rank = ranks.size, ranks.rank
    for dim, rows in ((0, 6), (-1, 6 * n)):
        As, Bs, biases = _of_all(ranks, (4, 6), 1), _of_all(ranks, (rows, 4), 2), _of_all(ranks, (4,), 3)
        for some in ([], [biases[rank]]):
            leaves, what = [As[rank], Bs[rank], *some], f"along {dim}, {len(some)} biases"
            of = lambda r: [torch.cat(As, dim) @ Bs[r] + (biases[r] if some else 0)]  # noqa: B023, E731
            with torch.autocast(device().type, torch.bfloat16):
                outs = ops.all_gather_matmul(As[rank], [Bs[rank]], dim, ranks.gloo, biases=some)[1]
            equal(outs[0], of(rank)[0], what)
            _same(_found(ranks, leaves, outs), _wanted(ranks, leaves, of), what)


def only_weights_are_wanted(ranks):
    """The gathered gradient is there where the product of the backward pass is not wanted, and the reverse."""
    n, rank = ranks.size, ranks.rank
    As, Bs = _of_all(ranks, (2 * n, 6), 1), _of_all(ranks, (6, 4), 2)
    for wanted in ((True, True), (True, False), (False, True)):
        A, B = (one[rank] if needed else one[rank].detach() for one, needed in zip((As, Bs), wanted))
        leaves = [one for one in (A, B) if one.requires_grad]
        total = lambda r: [sum(x @ y for x, y in zip(As, Bs)).chunk(n)[r]]  # noqa: E731
        found = _found(ranks, leaves, [ops.matmul_reduce_scatter(A, B, "sum", 0, ranks.gloo)])
        _same(found, _wanted(ranks, leaves, total), f"{wanted} are wanted")
        gathered = lambda r: [torch.cat(As) @ Bs[r]]  # noqa: E731
        for kept in (True, False):
            found = _found(ranks, leaves, ops.all_gather_matmul(A, [B], 0, ranks.gloo, return_A=kept)[1])
            _same(found, _wanted(ranks, leaves, gathered), f"{wanted} are wanted, kept {kept}")


def scatters(ranks):
    n, rank = ranks.size, ranks.rank
    for shape, dim in (((4 * n, 6), 0), ((3, 2 * n, 6), 1), ((3, 6), 1)):
        last = dim == len(shape) - 1
        As, Bs = _of_all(ranks, shape, 1), _of_all(ranks, (6, 2 * n), 2)
        biases = _of_all(ranks, (2 if last else 2 * n,), 3)
        leaves = [As[rank], Bs[rank], biases[rank]]
        for op, factor in (("sum", 1), ("avg", n)):

            def of(r):
                total = sum(A @ B for A, B in zip(As, Bs)) / factor
                return [total.chunk(n, dim)[r] + biases[r]]

            found = ops.matmul_reduce_scatter(As[rank], Bs[rank], op, dim, ranks.gloo, bias=biases[rank])
            if n in (1, 2, 4):  # else means are rounded
                _same(_found(ranks, leaves, [found]), _wanted(ranks, leaves, of), f"{shape} along {dim}, {op}")


def reduces(ranks):
    n, rank = ranks.size, ranks.rank
    for shape in ((2 * n, 6), (2 * n + 1, 6), (n, 3, 6)):
        As, Bs, biases = _of_all(ranks, shape, 1), _of_all(ranks, (6, 4), 2), _of_all(ranks, (4,), 3)
        leaves = [As[rank], Bs[rank], biases[rank]]
        of = lambda r: [sum(A @ B for A, B in zip(As, Bs)) + biases[r]]  # noqa: E731
        found = ops.matmul_all_reduce(As[rank], Bs[rank], "sum", ranks.gloo, bias=biases[rank])
        _same(_found(ranks, leaves, [found]), _wanted(ranks, leaves, of), f"{shape}")
        # All ranks compute one loss of it, which counts once.
        found = ops.matmul_all_reduce(As[rank], Bs[rank], "sum", ranks.gloo, bias=biases[rank], replicated=True)
        total = _loss(of(rank), 0)
        _same(torch.autograd.grad(_loss([found], 0), leaves), torch.autograd.grad(total, leaves), f"{shape}, one loss")


def exchanges(ranks):
    n, rank = ranks.size, ranks.rank
    As, weights, biases = _of_all(ranks, (2 * n, 3, 6), 1), _of_all(ranks, (6, 4), 2), _of_all(ranks, (4,), 3)
    leaves = [As[rank], weights[rank], biases[rank]]
    for kept, used in ((True, True), (True, False), (False, False)):

        def of(r):
            come = torch.cat([A.chunk(n)[r] for A in As])
            out = come @ weights[r] + biases[r]
            return [come, out] if used else [out]

        come, (out,) = ops.all_to_all_matmul(
            As[rank], [weights[rank]], ranks.gloo, biases=[biases[rank]], return_A=kept
        )
        found = _found(ranks, leaves, [come, out] if used else [out])
        _same(found, _wanted(ranks, leaves, of), f"kept {kept}, used {used}")


def the_backward_pass_overlaps(ranks):
    """Which objects run in it."""
    n = ranks.size
    A, B = torch.ones(2 * n, 6, requires_grad=True), torch.ones(6, 4 * n, requires_grad=True)
    for call, wanted in (
        (lambda: ops.all_gather_matmul(A, [B, B], 0, ranks.gloo)[1][0], "gemm_reducescatter"),
        (lambda: ops.matmul_reduce_scatter(A, B, "sum", 0, ranks.gloo), "allgather_gemm"),
        (lambda: ops.matmul_all_reduce(A, B, "sum", ranks.gloo), "allgather_gemm"),
    ):
        result = call().sum()
        before = ops.runs()
        result.backward()
        more = {name: count - before.get(name, 0) for name, count in ops.runs().items()}
        assert {name: count for name, count in more.items() if count} == {wanted: 1}, more


def checked_by_torch(ranks):
    n, name = ranks.size, ranks.gloo.group_name
    A, B, bias = (_matrix(shape, 1).requires_grad_() for shape in ((2 * n, 3, 6), (6, 2 * n), (2 * n,)))
    all_ops, check = torch.ops.mscclc, torch.library.opcheck
    of = {"ranks": n}
    check(all_ops.all_gather_matmul.default, (A, [B, B], 0, name, [bias, bias]), of)
    check(all_ops.all_gather_matmul.default, (A, [B], 1, name, []), {**of, "return_A": False, "backend": "serial"})
    check(all_ops.all_to_all_matmul.default, (A, [B], name, [bias]), {**of, "chunks": 2, "budget": 8})
    check(all_ops.matmul_reduce_scatter.default, (A, B, "sum", 0, name, bias), of)
    check(all_ops.matmul_reduce_scatter.default, (A, B, "avg", 2, name, None), of)
    check(all_ops.matmul_all_reduce.default, (A, B, "sum", name, bias), of)
    eight, weight = torch.ones(2 * n, 16).to(torch.float8_e4m3fn), torch.ones(16, 16).to(torch.float8_e4m3fn).t()
    one, tests = torch.tensor(1.0), ("test_faketensor", "test_aot_dispatch_dynamic")  # others compare no 8 bits
    check(all_ops.all_gather_scaled_matmul.default,
          (eight, [weight], one, [one], 0, name, [None], [None], [torch.bfloat16], [False]), of,
          test_utils=tests)  # fmt: skip
    check(all_ops.scaled_matmul_reduce_scatter.default,
          (eight, weight, one, one, "sum", 0, 0, name, [2 * n, 16], None, None, torch.bfloat16), of,
          test_utils=tests)  # fmt: skip


def compiled(ranks):
    _compiled(ranks, "aot_eager")


def compiled_by_inductor(ranks):
    _compiled(ranks, "inductor")


def _compiled(ranks, backend):
    """A layer with both ops; numbers of rows vary, and nothing is compiled again. The backward pass has the options
    of the forward one."""
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend(backend)
    name, n, how = ranks.gloo.group_name, ranks.size, {"backend": "mscclc", "chunks": 2, "budget": 6}

    def layer(x, up, down, bias):
        whole, (hidden,) = ops.all_gather_matmul(x * 2, [up.t()], 0, name, biases=[bias])
        out = ops.matmul_reduce_scatter(hidden.relu(), down.t(), "sum", 0, name, **how)
        return out + x, ops.matmul_all_reduce(whole, up.t(), "sum", name)

    program = torch.compile(layer, fullgraph=True, backend=counter, dynamic=True)
    weights = [_matrix(shape, 5, ranks.rank).requires_grad_() for shape in ((8, 6), (6, 8), (8,))]
    for rows in (5 * n, 7 * n, 11 * n):  # no other size, or Dynamo takes them for one
        x = _matrix((rows, 6), 1, ranks.rank).requires_grad_()
        found, wanted = program(x, *weights), layer(x, *weights)
        _same(found, wanted, f"{rows} rows")
        leaves = [x, *weights]
        _same(_found(ranks, leaves, found), _found(ranks, leaves, wanted), f"{rows} rows")
    assert counter.frame_count == 1, f"compiled {counter.frame_count} times"
    made = [one["kind"] for one in ops.explain(ranks.gloo, device()) if one["budget"] == 6]
    assert n == 1 or {"gemm_reducescatter", "allgather_gemm"} <= set(made), made


CHECKS = [
    gathers, under_autocast, only_weights_are_wanted, scatters, reduces, exchanges, the_backward_pass_overlaps,
    checked_by_torch, compiled, compiled_by_inductor,
]  # fmt: skip
