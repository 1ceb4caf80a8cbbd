"""All-reduces that are not fused, or only nearly: what must stay, accidents of others, and mistakes."""

import os
from unittest import mock

import torch
import torch._dynamo
import torch.distributed as dist
from checks import equal, refused
from fusion_models import added, compiled_by, counts, in_order, inputs, plain_norm, rms_norm, same
from torch.fx.experimental.proxy_tensor import make_fx

import mscclc.torch.fusion as fusion
from mscclc.communicator import Communicator, LoadedPlan
from mscclc.errors import LibraryError
from mscclc.torch.fusion import RowFusion, function, programs


def columns_that_vary(ranks):
    """A plan has a number of columns."""
    compiled, by = compiled_by(plain_norm, dynamic=True)
    given = inputs(3, 64, torch.float32, ranks)
    with in_order():
        same(compiled(*given), plain_norm(*given))
    counts(by, 0, 1)
    assert "its columns are not fixed" in by.report().left[0].why, by.report()


def odd_columns(ranks):
    """Accidents of others: rows that are not divided evenly among threads; and what no plan serves is left."""
    for columns, dtype, replaced in (
        (2880, torch.bfloat16, 1), (5120, torch.float16, 1), (72, torch.bfloat16, 1), (36, torch.float32, 1),
        (2881, torch.bfloat16, 0), (36, torch.bfloat16, 0), (2, torch.float32, 0),
    ):  # fmt: skip
        compiled, by = compiled_by(plain_norm, dynamic=False)
        part, residual, weight = inputs(3, columns, dtype, ranks)
        with in_order():
            found, wanted = compiled(part, residual, weight), plain_norm(part, residual, weight)
        equal(found[1], wanted[1], "residual")
        # A mean of other than 2**n values is rounded.
        torch.testing.assert_close(found[0], wanted[0], rtol=2e-2, atol=0)
        counts(by, replaced, 1 - replaced)


def too_many_rows(ranks):
    """An accident of others: a workspace that is too small."""
    given = inputs(9, 64, torch.float32, ranks)
    compiled, by = compiled_by(plain_norm, RowFusion(max_bytes=8 * 256), dynamic=False)
    with in_order():
        same(compiled(*given), plain_norm(*given))
    counts(by, 0, 1)
    assert by.report().left[0].why == "it has 2304 bytes, and max_bytes is 2048", by.report()


def pieces(ranks):
    """Accidents of others: a graph that is cut between a sum and its norm, and code between pieces."""

    def program(part, residual, weight):
        stream = added(part + 0) + residual
        torch._dynamo.graph_break()
        x = rms_norm(stream, weight)
        return rms_norm(added(x.round()) + stream, weight), stream

    by = RowFusion()
    torch._dynamo.reset()
    compiled = torch.compile(program, backend=by.backend, dynamic=False)
    given = inputs(4, 64, torch.bfloat16, ranks)
    with in_order():
        for _ in range(3):
            same(compiled(*given), program(*given))
    counts(by, 2)
    assert [one.function.count("rsqrt") for one in by.report().replaced] == [0, 1], by.report()


def used_early(ranks):
    """What is inside of a function is used outside of it, too: before, after, and in place."""

    def program(part, residual, weight):
        sum = added(part + 0)
        early = sum @ sum.t()
        stream = sum + residual
        also = stream.round() * 2
        residual += 1
        return rms_norm(stream, weight), early, also, stream.float() * stream.float(), residual

    compiled, by = compiled_by(program, dynamic=False)
    for _ in range(2):
        mine, others = inputs(4, 64, torch.bfloat16, ranks), inputs(4, 64, torch.bfloat16, ranks)
        with in_order():
            same(compiled(*mine), program(*others))
        same(mine, others)
    counts(by, 1)


def written_later(ranks):
    """What is read may be written after the function, before anything uses what it gives."""

    def program(part, residual, weight):
        stream = added(part + 0) + residual
        residual.zero_()
        weight.add_(1)
        return stream, rms_norm(stream, weight - 1)

    compiled, by = compiled_by(program, dynamic=False)
    mine, others = inputs(4, 64, torch.bfloat16, ranks), inputs(4, 64, torch.bfloat16, ranks)
    with in_order():
        same(compiled(*mine), program(*others))
    same(mine, others)
    counts(by, 1)


def _two_groups(part, residual, weight):
    dist.all_reduce(part, group=ALONE_GROUP)
    return rms_norm(part + residual, weight)


def _maximum(part, residual, weight):
    part = part + 0
    dist.all_reduce(part, dist.ReduceOp.MAX)
    return rms_norm(part + residual, weight)


def _nothing(part, residual, weight):
    return added(part + 0).exp()


def _other_rows(part, residual, weight):
    return added(part + 0).view(2, 2, -1) * residual[:2]


def _other_dimension(part, residual, weight):
    return added(part + 0).mean(0)


def _all_dimensions(part, residual, weight):
    return torch.var_mean(added(part + 0), correction=0)


def _late(part, residual, weight):
    sum = added(part + 0)
    return sum + torch.relu(sum)


def _saturates(part, residual, weight):
    return added(part + 0).to(torch.float8_e4m3fn).float()


def _double(part, residual, weight):
    return added(part.double()) + residual


def _more_dimensions(part, residual, weight):
    return added(part + 0) + residual.view(1, 4, -1)


def _not_contiguous(part, residual, weight):
    return added((part + 0).t()).t() + residual


def _vector(part, residual, weight):
    parts = torch.distributed._functional_collectives.reduce_scatter_tensor(
        part.flatten().repeat(dist.get_world_size()), "sum", 0, dist.group.WORLD.group_name
    )
    return parts / 2


def _bytes(part, residual, weight):
    return added(part[:, :8].bfloat16()).clamp(-4, 4).to(torch.float8_e4m3fn).float()


def _indices(part, residual, weight):
    return added(part + 0).max(-1)


ALONE_GROUP = None


def left_alone(ranks):
    """What must not be replaced, and why it is not."""
    global ALONE_GROUP
    ALONE_GROUP = dist.new_subgroups(1)[0]
    for program, why in (
        (_two_groups, "one rank has nothing to add up"),
        (_maximum, "it reduces by 'max'"),
        (_nothing, "no function of rows follows; exp: aten.exp.default is no op of rows"),
        (_other_rows, "lies otherwise than rows of"),
        (_other_dimension, "over other dimensions than the last"),
        (_all_dimensions, "over other dimensions than the last"),
        (_late, "it needs what follows the function"),
        (_saturates, "e4m3 of what is not clamped to 448 before"),
        (_double, "not of torch.float64"),
        (_indices, "gives what a row function cannot"),
        (_more_dimensions, "of shape [1, 4, 64] lies otherwise than the rows"),
        (_not_contiguous, "its input is not contiguous"),
        (_vector, "a part of a vector is no row"),
        (_bytes, "rows of 8 e4m3, which are 8 bytes"),
    ):
        compiled, by = compiled_by(program, dynamic=False)
        given = inputs(4, 64, torch.float32, ranks)
        with in_order():
            same(compiled(*given), program(*(one.clone() for one in given)))
        counts(by, 0, 1)
        assert why in by.report().left[0].why, f"{program.__name__}: {by.report()}"


def no_shapes(ranks):
    """A graph without fake tensors stays as it is."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    sum = graph.call_function(torch.ops._c10d_functional.all_reduce.default, (x, "sum", dist.group.WORLD.group_name))
    done = graph.call_function(torch.ops._c10d_functional.wait_tensor.default, (sum,))
    graph.output(graph.call_function(torch.ops.aten.add.Tensor, (done, done)))
    by = RowFusion()
    by(graph)
    assert "has no shape" in by.report().left[0].why, by.report()


def _subtracted(*more):
    """One less a sum, or a multiple of it."""
    ops, name = torch.ops._c10d_functional, dist.group.WORLD.group_name
    return lambda x: torch.ops.aten.rsub.Scalar(ops.wait_tensor(ops.all_reduce(x, "sum", name)), 1, *more)


def subtracted_multiples(ranks):
    """A graph of ATen ops that nothing has decomposed: `alpha` of rsub is not dropped."""
    ones = torch.ones(4, 64)
    for more, replaced in (((2,), 0), ((1,), 1), ((), 1)):
        module, by = make_fx(_subtracted(*more), tracing_mode="fake")(ones), RowFusion()
        by(module.graph)
        counts(by, replaced, 1 - replaced)
        with in_order():
            equal(module(ones), torch.full((4, 64), 1.0 - ranks.size * (more or (1,))[0]))


def one_rank(ranks):
    """Code that was kept from a run with more ranks."""
    group = dist.new_subgroups(1)[0]
    made = function.Function(64, "f32")
    made.result(made.op("mul", 0, made.number(3)), "f32")
    before = fusion.calls().get("alone", 0)
    found = torch.ops.mscclc.fused_rows(torch.ones(2, 64), [], made.to_json(), group.group_name, 1 << 12)
    same(found, [torch.full((2, 64), 3.0)])
    assert fusion.calls()["alone"] == before + 1


def functions_that_differ(ranks):
    """A number that each rank has traced of its own: each computes its function."""
    made = function.Function(64, "f32")
    made.result(made.op("mul", 0, made.number(1 + ranks.rank)), "f32")
    before = fusion.calls().get("alone", 0)
    for _ in range(2):
        found = torch.ops.mscclc.fused_rows(torch.ones(2, 64), [], made.to_json(), dist.group.WORLD.group_name, 1 << 12)
        equal(found[0], torch.full((2, 64), float(ranks.size * (1 + ranks.rank))))
    assert fusion.calls()["alone"] == before + 2


def calls_that_differ(ranks):
    """A rank has the plans of its function, and another loads those of its own: both learn it, and none waits."""

    def call(number, rows=2):
        made = function.Function(64, "f32")
        made.result(made.op("mul", 0, made.number(number)), "f32")
        group = dist.group.WORLD.group_name
        return torch.ops.mscclc.fused_rows(torch.ones(rows, 64), [], made.to_json(), group, 1 << 12)

    fusion.close()
    for one in range(2):
        for _ in range(2):
            assert call(5, 0)[0].shape == (0, 64)
            equal(call(5)[0], torch.full((2, 64), 5.0 * ranks.size))
        dist.barrier(ranks.gloo)  # an error ends what other ranks still wait for
        refused(lambda: call(6 if ranks.rank == one else 5), "differ", "still to be loaded")
        fusion.close()
        call(5)
        dist.barrier(ranks.gloo)
        rows = 0 if ranks.rank == one else 2  # without rows a rank learns it at once, or by its next call
        refused(lambda rows=rows: (call(5, rows), call(5)), "ranks launch different calls, which differ in the ")
        fusion.close()
        # The first call of a function, too, loads its plans at all ranks, or would be waited for.
        assert call(5, 0)[0].shape == (0, 64)
        fusion.close()
        dist.barrier(ranks.gloo)
        refused(lambda rows=rows: (call(5, rows), call(5)), "different calls", " 512 bytes of f32", " 0 bytes of f32")
        fusion.close()


def too_large_at_one_rank(ranks):
    """Its sum is the group's, and a plan's at the others: all learn it, and none waits. That of the group is left out."""
    made = function.Function(64, "f32")
    made.result(made.op("mul", 0, made.number(9)), "f32")
    text, name = made.to_json(), dist.group.WORLD.group_name

    def call(rows):
        return torch.ops.mscclc.fused_rows(torch.ones(rows, 64), [], text, name, 1 << 9)[0]

    for loaded in (True, False):
        fusion.close()
        if loaded:
            for rows in (2, 3, 2):
                equal(call(rows), torch.full((rows, 64), 9.0 * ranks.size))
        with mock.patch.object(fusion.op, "_apart", lambda _function, _input, _given, results, *_: results):
            dist.barrier(ranks.gloo)
            mine = (3, 2) if ranks.rank == 0 else (2,)
            run = lambda mine=mine: (*map(call, mine), None)[-1]
            refused(run, "differ", " 512 bytes of f32", " 768 bytes of f32")
    fusion.close()


def ranks_apart(ranks):
    """Ranks that do not reach one another's memory: the group adds up, as without the pass."""

    def load(comm, *_):
        if comm.size == 1:
            return loads(comm, *_)
        raise LibraryError(9, f"error: rank {comm.rank} cannot reach the memory of rank {1 - comm.rank}: it is elsewhere")

    loads = Communicator.load
    fusion.close()
    before = fusion.calls().get("alone", 0)
    with mock.patch.object(Communicator, "load", load):
        for number in (3, 4):
            made = function.Function(64, "f32")
            made.result(made.op("mul", 0, made.number(number)), "f32")
            found = torch.ops.mscclc.fused_rows(
                torch.ones(2, 64), [], made.to_json(), dist.group.WORLD.group_name, 1 << 12
            )  # fmt: skip
            equal(found[0], torch.full((2, 64), float(number * ranks.size)))
    assert fusion.calls()["alone"] == before + 2
    fusion.close()


def a_rank_that_cannot_load(ranks):
    """All ranks learn it, and the next call tries again."""

    def load(comm, *given):
        plan = loads(comm, *given)
        if comm.rank == 0:
            raise MemoryError
        return plan

    def call():
        return torch.ops.mscclc.fused_rows(torch.ones(2, 64), [], text, dist.group.WORLD.group_name, 1 << 12)[0]

    made, loads = function.Function(64, "f32"), Communicator.load
    made.result(made.op("mul", 0, made.number(7)), "f32")
    text = made.to_json()
    with mock.patch.object(Communicator, "load", load):
        try:
            call()
        except MemoryError:
            assert ranks.rank == 0
        except RuntimeError as error:
            assert ranks.rank != 0 and "rank 0 has not loaded a plan of a fused op: MemoryError" in str(error), error
        else:
            raise AssertionError("it was loaded")
    equal(call(), torch.full((2, 64), 7.0 * ranks.size))
    fusion.close()


def another_order(ranks):
    """The variable is read by each compilation."""
    for order in ("ranks", "exact", "ranks"):
        with mock.patch.dict(os.environ, {"MSCCLC_ORDER": order}):
            compiled, by = compiled_by(plain_norm, dynamic=False)
            given = inputs(3, 64, torch.float32, ranks)
            compiled(*given)
        kept = order == "ranks" or ranks.size == 2  # of two ranks all sums are the same
        counts(by, 1 if kept else 0, 0 if kept else 1)


def later_group(ranks):
    """A group of the same name as one that was destroyed."""
    for number in range(2):
        group = dist.new_group(backend="gloo")
        name = f"fused_{ranks.size}"
        torch._C._distributed_c10d._register_process_group(name, group)
        text = function.Function(64, "f32")
        text.result(text.op("add", 0, text.number(number)), "f32")
        found = torch.ops.mscclc.fused_rows(torch.ones(2, 64), [], text.to_json(), name, 1 << 12)
        equal(found[0], torch.full((2, 64), ranks.size + float(number)))
        torch._C._distributed_c10d._unregister_process_group(name)
        dist.barrier(ranks.gloo)


def calls_again(ranks):
    """Calls of known shapes and types are not checked anew, wherever their memory lies; others are."""
    made = function.Function(64, "f32")
    made.result(made.op("add", 0, made.parameter("row", "f32")), "f32")
    text, name = made.to_json(), dist.group.WORLD.group_name

    def call(rows, given, checked):
        part = torch.full((rows, 64), float(rows))
        before = prepare.call_count
        found = torch.ops.mscclc.fused_rows(part, [given], text, name, 1 << 12)
        equal(found[0], part * ranks.size + given)
        assert prepare.call_count == before + checked, (rows, prepare.call_count, before, checked)

    fusion.close()
    real = LoadedPlan._prepare
    with mock.patch.object(LoadedPlan, "_prepare", autospec=True, side_effect=real) as prepare:
        for again in range(3):
            call(2, torch.randn(2, 64), again == 0)
        call(3, torch.randn(3, 64), True)
        call(2, torch.randn(2, 64), False)
        for _ in range(2):
            call(2, torch.randn(129)[1:].view(2, 64), True)  # not at a multiple of 16 bytes
            call(2, torch.randn(64, 2).t(), True)
        refused(lambda: call(2, torch.ones(2, 64).half(), True), "the external 'a0' is of f32, not of f16")
        with mock.patch.dict(os.environ, {"MSCCLC_ORDER": "exact"}):
            call(2, torch.ones(2, 64), True)
        call(2, torch.ones(2, 64), ranks.size == 2)  # that of two ranks was kept; the group has served three
        fusion.close()
        call(2, torch.ones(2, 64), True)


def checked_by_torch(ranks):
    made = function.Function(64, "f32")
    stream = made.op("add", 0, made.parameter("row", "f32"))
    made.result(stream, "f32")
    made.result(made.op("mean", stream), "f32")
    arguments = (torch.ones(2, 64), [torch.ones(2, 64)], made.to_json(), dist.group.WORLD.group_name, 1 << 12)
    torch.library.opcheck(torch.ops.mscclc.fused_rows.default, arguments)


def mistakes(ranks):
    op, name = torch.ops.mscclc.fused_rows, dist.group.WORLD.group_name
    made = function.Function(64, "f32")
    made.result(made.op("add", 0, made.parameter("row", "f32")), "f32")
    text, ones = made.to_json(), torch.ones(2, 64)
    refused(lambda: op(ones, [ones], text, "nothing", 1 << 12), "no process group 'nothing'")
    for wrong in ("", "[]", "{}", text.replace("row", "raw"), text.replace("add", "and"), text.replace("64", "[]")):
        refused(lambda text=wrong: op(ones, [ones], text, name, 1 << 12), "no row function that the fusion has made")
    refused(lambda: op(ones, [], text, name, 1 << 12), "0 tensors are given, and the function reads 1")
    refused(lambda: op(ones[:, :32], [ones], text, name, 1 << 12), "rows of 64 f32", "[2, 32]")
    refused(lambda: op(ones.double(), [ones], text, name, 1 << 12), "torch.float64")
    refused(lambda: op(ones, [ones[:1]], text, name, 1 << 12), "'a0' has 1 rows")
    refused(lambda: RowFusion(0), "not 0")
    assert "plans of rows are for up to 72 ranks, not 73" in programs.why_not(73, 64, "f32", None)
    assert "is to keep 'exact'" in programs.why_not(4, 64, "f32", "exact")


CHECKS = [
    columns_that_vary, odd_columns, too_many_rows, pieces, used_early, written_later, left_alone, no_shapes,
    subtracted_multiples, one_rank, functions_that_differ, calls_that_differ, too_large_at_one_rank, ranks_apart,
    a_rank_that_cannot_load, another_order, later_group, calls_again, checked_by_torch, mistakes,
]  # fmt: skip
