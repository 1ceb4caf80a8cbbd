"""All-reduces fused with what follows them: the bits with and without the pass, what is replaced, what is not."""

import contextlib
import os
import unittest.mock

import mscclc.torch
import mscclc.torch.ops  # noqa: F401, defines an op
import torch
import torch._dynamo
import torch._inductor.config
import torch.distributed as dist
from checks import device, equal, refused
from fusion_models import (
    EPS, FUNCTIONS, Blocks, added, gemma_norm, plain_norm, quantized_by_token, rms_norm, same, weights, whole,
)  # fmt: skip

import mscclc.torch.fusion as fusion
from mscclc.torch.fusion import RowFusion, function, translation

TYPES = (torch.bfloat16, torch.float16, torch.float32)


def _compiled(program, by=None, inductor=False, **more):
    """The program with a pass, and the pass; sums of both keep to the order of ranks."""
    torch._dynamo.reset()
    by = by or RowFusion()
    how = {"options": {"post_grad_custom_post_pass": by}} if inductor else {"backend": by.backend}
    return torch.compile(program, fullgraph=True, **how, **more), by


def _given(rows, columns, dtype, ranks):
    part = whole((rows, columns), 30 + ranks.rank, 3, dtype)
    return part, whole((rows, columns), 40, 5, dtype), weights(columns, dtype)


def _counts(by, replaced, left=0):
    report = by.report()
    assert (len(report.replaced), len(report.left)) == (replaced, left), report


@contextlib.contextmanager
def _in_order():
    """Without gradients, and with the bits that fused plans have, whatever the number of ranks."""
    with torch.no_grad(), mscclc.torch.order("ranks"):
        yield


def _model(ranks, dtype, norm=rms_norm, inductor=False):
    model = Blocks(ranks, dtype, norm)
    compiled, by = _compiled(model, inductor=inductor, dynamic=False)
    for rows in (1, 5):
        tokens = whole((rows,), rows, 15) .long() + 15
        with _in_order():
            before = fusion.calls()
            found, wanted = compiled(tokens), model(tokens)
            same(found, wanted)
            assert fusion.calls().get("one_shot", 0) == before.get("one_shot", 0) + 4, fusion.calls()
    _counts(by, 2 * 4)


def model(ranks):
    """The tokens, and all bits, of a model."""
    for dtype in TYPES:
        _model(ranks, dtype)
    _model(ranks, torch.bfloat16, gemma_norm)


def model_by_inductor(ranks):
    with torch._inductor.config.patch(force_disable_caches=True):
        _model(ranks, torch.float32, inductor=True)


def _functions(ranks, programs, types, inductor=False):
    for program in programs:
        for dtype in types:
            compiled, by = _compiled(program, inductor=inductor, dynamic=False)
            given = _given(6, 128, dtype, ranks)
            try:
                with _in_order():
                    same(compiled(*given), FUNCTIONS[program](*given))
                _counts(by, 1)
            except AssertionError as error:
                functions = [one.function for one in by.report().replaced]
                raise AssertionError("\n".join([f"{program.__name__}, {dtype}: {error}", *functions])) from error


def functions(ranks):
    """Each function on its own, in all types."""
    _functions(ranks, FUNCTIONS, TYPES)


def functions_by_inductor(ranks):
    with torch._inductor.config.patch(force_disable_caches=True):
        _functions(ranks, [plain_norm, quantized_by_token], [torch.float32], True)


def all_of_it_is_one_op(ranks):
    """Nothing of the function is left in the graph, nor written twice."""
    graphs = []

    class Seen(RowFusion):
        def __call__(self, graph):
            super().__call__(graph)
            graphs.append([str(node.target) for node in graph.nodes if node.op == "call_function"])

    compiled, by = _compiled(plain_norm, Seen(), dynamic=False)
    with _in_order():
        compiled(*_given(3, 64, torch.bfloat16, ranks))
    get = "<built-in function getitem>"
    assert graphs == [["aten.add.Tensor", "mscclc.fused_rows.default", get, get]], graphs
    text = by.report().replaced[0].function
    assert text.count("  let ") == 10 and text.count("  out ") == 2, text


def rows_that_vary(ranks):
    """One compilation serves all numbers of rows; which program does is decided by each call."""
    columns, most = 64, 400 << 10
    compiled, by = _compiled(plain_norm, RowFusion(max_bytes=most))
    before = dict(fusion.calls())
    with _in_order():
        for rows in (2, 1, 7, 1200, 1600, 1601, 0, 3):
            given = _given(rows, columns, torch.float32, ranks)
            for one in given[:2]:
                torch._dynamo.maybe_mark_dynamic(one, 0)
            same(compiled(*given), plain_norm(*given))
    # No row and one row are compiled apart.
    assert len(by.report().replaced) <= 3 and not by.report().left, by.report()
    found = {name: count - before.get(name, 0) for name, count in fusion.calls().items()}
    found = {name: count for name, count in found.items() if count}
    two = 2 if ranks.size > 2 else 0  # 1200 and 1600 rows are more than 128 KiB
    wanted = {"one_shot": 6 - two, "two_shots": two, "chain": 1}
    assert found == {name: count for name, count in wanted.items() if count}, found


def columns_that_vary(ranks):
    """A plan has a number of columns."""
    compiled, by = _compiled(plain_norm, dynamic=True)
    given = _given(3, 64, torch.float32, ranks)
    with _in_order():
        same(compiled(*given), plain_norm(*given))
    _counts(by, 0, 1)
    assert "its columns are not fixed" in by.report().left[0].why, by.report()


def odd_columns(ranks):
    """Accidents of others: rows that are not divided evenly among threads; and what no plan serves is left."""
    for columns, dtype, replaced in (
        (2880, torch.bfloat16, 1), (5120, torch.float16, 1), (72, torch.bfloat16, 1), (36, torch.float32, 1),
        (2881, torch.bfloat16, 0), (36, torch.bfloat16, 0), (2, torch.float32, 0),
    ):  # fmt: skip
        compiled, by = _compiled(plain_norm, dynamic=False)
        part, residual, weight = _given(3, columns, dtype, ranks)
        with _in_order():
            found, wanted = compiled(part, residual, weight), plain_norm(part, residual, weight)
        equal(found[1], wanted[1], "residual")
        # A mean of other than 2**n values is rounded.
        torch.testing.assert_close(found[0], wanted[0], rtol=2e-2, atol=0)
        _counts(by, replaced, 1 - replaced)


def too_many_rows(ranks):
    """An accident of others: a workspace that is too small."""
    given = _given(9, 64, torch.float32, ranks)
    compiled, by = _compiled(plain_norm, RowFusion(max_bytes=8 * 256), dynamic=False)
    with _in_order():
        same(compiled(*given), plain_norm(*given))
    _counts(by, 0, 1)
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
    given = _given(4, 64, torch.bfloat16, ranks)
    with _in_order():
        for _ in range(3):
            same(compiled(*given), program(*given))
    _counts(by, 2)
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

    compiled, by = _compiled(program, dynamic=False)
    for _ in range(2):
        mine, others = _given(4, 64, torch.bfloat16, ranks), _given(4, 64, torch.bfloat16, ranks)
        with _in_order():
            same(compiled(*mine), program(*others))
        same(mine, others)
    _counts(by, 1)


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


def _late(part, residual, weight):
    sum = added(part + 0)
    return sum + torch.relu(sum)


def _saturates(part, residual, weight):
    return added(part + 0).to(torch.float8_e4m3fn).float()


def _double(part, residual, weight):
    return added(part.double()) + residual


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
        (_late, "it needs what follows the function"),
        (_saturates, "e4m3 of what is not clamped to 448 before"),
        (_double, "not of torch.float64"),
        (_indices, "gives what a row function cannot"),
    ):
        compiled, by = _compiled(program, dynamic=False)
        given = _given(4, 64, torch.float32, ranks)
        with _in_order():
            same(compiled(*given), program(*(one.clone() for one in given)))
        _counts(by, 0, 1)
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


def own_op(ranks):
    """Sums by the op of mscclc.torch.ops."""
    group = dist.group.WORLD.group_name

    def program(part, residual, weight):
        return rms_norm(torch.ops.mscclc.all_reduce(part, "sum", group) + residual, weight)

    compiled, by = _compiled(program, dynamic=False)
    given = _given(5, 64, torch.float16, ranks)
    with _in_order():
        same(compiled(*given), program(*given))
    _counts(by, 1)


def gradients(ranks):
    """In training, what the backward pass needs of a function is a result of it, too."""
    group = dist.group.WORLD.group_name

    def program(part, residual, weight):
        sum = torch.ops.mscclc.all_reduce(part, "sum", group)
        return rms_norm(sum + residual, weight).sum()

    compiled, by = _compiled(program, dynamic=False)
    mine, others = _given(5, 64, torch.float32, ranks), _given(5, 64, torch.float32, ranks)
    with mscclc.torch.order("ranks"):
        for one, run in ((mine, compiled), (others, program)):
            for tensor in one:
                tensor.requires_grad_()
            run(*one).backward()
    for one, other in zip(mine, others):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-5, atol=1e-5)
    report = by.report()
    assert len(report.replaced) == 1 and report.replaced[0].function.count("  out ") > 1, report


def captured(ranks):
    """Accidents of others: several graphs, with code between them, and a plan that is not loaded when one begins."""
    given = _given(6, 128, torch.bfloat16, ranks)
    with _in_order():
        wanted, graphs = plain_norm(*given), []
        compiled, _ = _compiled(plain_norm, dynamic=False)
        same(compiled(*given), wanted)
        fusion.close()
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            refused(lambda: compiled(*given), "run it once before")
        same(compiled(*given), wanted)
        for _ in range(3):
            graphs.append((torch.cuda.CUDAGraph(), []))
            with torch.cuda.graph(graphs[-1][0]):
                graphs[-1][1].extend(compiled(*given))
        for _ in range(20):
            for graph, found in graphs:
                for one in found:
                    one.zero_()
                graph.replay()
                same(found, wanted)
    torch.cuda.synchronize()


@unittest.mock.patch.dict(os.environ)
def kept_code(ranks):
    """Code that Inductor has kept runs without the pass, and loads its plans itself."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(ranks.folder, f"kept.{ranks.rank}")
    given = _given(5, 64, torch.float32, ranks)
    for replaced in (1, 0):
        compiled, by = _compiled(plain_norm, inductor=True, dynamic=False)
        before = fusion.calls().get("one_shot", 0)
        with _in_order():
            same(compiled(*given), plain_norm(*given))
        assert fusion.calls()["one_shot"] == before + 1
        _counts(by, replaced)
        fusion.close()
    assert RowFusion().uuid() == RowFusion().uuid() != RowFusion(1 << 10).uuid()


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


def wrong_is_seen(ranks):
    """Constants or weights that are others, and roundings at other places, fail the comparisons above."""
    rows = translation.Translation
    constant, round_to, outside = rows._constant, rows.round_to, rows._outside

    def other_constant(self, given):
        return constant(self, given * 3 if given == EPS else given)

    def no_rounding(self, value, dtype):
        return value if dtype == torch.bfloat16 else round_to(self, value, dtype)

    def no_weight(self, given, shape):
        form = outside(self, given, shape)
        columns = self.function.kinds[form.value] == "columns"
        return form._replace(value=self.function.number(1.25)) if columns else form

    for name, other in (("_constant", other_constant), ("round_to", no_rounding), ("_outside", no_weight)):
        dtype = torch.float32 if other is other_constant else torch.bfloat16
        with unittest.mock.patch.object(rows, name, other):
            refused(lambda dtype=dtype: _model(ranks, dtype), "elements are wrong")


CHECKS = [
    model, model_by_inductor, functions, functions_by_inductor, all_of_it_is_one_op, rows_that_vary,
    columns_that_vary, odd_columns,
    too_many_rows, pieces, used_early, left_alone, no_shapes, own_op, kept_code, later_group, checked_by_torch,
    gradients, mistakes, wrong_is_seen,
]  # fmt: skip
# There, what is nearly a half may be rounded to another whole number.
HOST_ONLY = [model, model_by_inductor, wrong_is_seen]
if device().type == "cuda":
    CHECKS.append(captured)
