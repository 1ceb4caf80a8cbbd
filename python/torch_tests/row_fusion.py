"""All-reduces fused with what follows them: the bits with and without the pass, in models and function by function."""

import os
import re
import unittest.mock

import mscclc.torch
import torch
import torch._dynamo
import torch._inductor.config
import torch.distributed as dist
from checks import device, refused
from fusion_models import (
    EPS, FUNCTIONS, Blocks, by_own_op, compiled_by, counts, gemma_norm, in_order, inputs, plain_norm, quantized_by_token,
    rms_norm, same, sequence_parallel, whole,
)  # fmt: skip

import mscclc.torch.fusion as fusion
import mscclc.torch.plans
import mscclc.torch.row_ops  # torch.ops.mscclc.run_rows
from mscclc.torch.fusion import RowFusion, translation
from mscclc.torch.fusion.function import Function

TYPES = (torch.bfloat16, torch.float16, torch.float32)


def _model(ranks, dtype, norm=rms_norm):
    model = Blocks(ranks, dtype, norm)
    compiled, by = compiled_by(model, dynamic=False)
    for rows in (1, 5):
        tokens = whole((rows,), rows, 15).long() + 15
        with in_order():
            before = fusion.calls()
            found, wanted = compiled(tokens), model(tokens)
            same(found, wanted)
            assert fusion.calls().get("one_shot", 0) == before.get("one_shot", 0) + 4, fusion.calls()
    counts(by, 2 * 4)


def model(ranks):
    """The tokens, and all bits, of a model."""
    for dtype in TYPES:
        _model(ranks, dtype)
    _model(ranks, torch.bfloat16, gemma_norm)


def _functions(ranks, programs, types, inductor=False):
    for program in programs:
        for dtype in types:
            compiled, by = compiled_by(program, inductor=inductor, dynamic=False)
            given = inputs(6, 128, dtype, ranks)
            try:
                with in_order():
                    same(compiled(*given), FUNCTIONS[program](*given))
                counts(by, 1)
            except AssertionError as error:
                functions = [one.function for one in by.report().replaced]
                raise AssertionError("\n".join([f"{program.__name__}, {dtype}: {error}", *functions])) from error


def functions(ranks):
    """Each function on its own."""
    _functions(ranks, FUNCTIONS, (torch.bfloat16, torch.float32))
    _functions(ranks, [plain_norm], [torch.float16])


def functions_by_inductor(ranks):
    with torch._inductor.config.patch(force_disable_caches=True):
        _functions(ranks, [by_own_op], [torch.bfloat16], True)


def all_of_it_is_one_op(ranks):
    """Nothing of the function is left in the graph, nor written twice."""
    graphs = []

    class Seen(RowFusion):
        def __call__(self, graph):
            super().__call__(graph)
            graphs.append([str(node.target) for node in graph.nodes if node.op == "call_function"])

    compiled, by = compiled_by(plain_norm, Seen(), dynamic=False)
    with in_order():
        compiled(*inputs(3, 64, torch.bfloat16, ranks))
    get = "<built-in function getitem>"
    assert graphs == [["aten.add.Tensor", "mscclc.fused_rows.default", get, get]], graphs
    text = by.report().replaced[0].function
    assert text.count("  let ") == 10 and text.count("  out ") == 2, text
    compiled, by = compiled_by(quantized_by_token, dynamic=False)
    with in_order():
        compiled(*inputs(3, 64, torch.bfloat16, ranks))
    results = re.findall(r"out o\d: (.*?) =", by.report().replaced[0].function)
    assert results == ["row T", "row T", "token f32", "row e4m3"], results


def rows_that_vary(ranks):
    """One compilation serves all numbers of rows; which program does is decided by each call."""
    columns = 64
    large = 66000 if ranks.size == 2 else 18000  # more than 16 MiB, than 4 MiB
    most = large * columns * 4
    compiled, by = compiled_by(plain_norm, RowFusion(max_bytes=most))
    before = dict(fusion.calls())
    with in_order():
        for rows in (2, 1, 7, 2400, 3200, large, large + 1, 0, 3):
            given = inputs(rows, columns, torch.float32, ranks)
            for one in given[:2]:
                torch._dynamo.maybe_mark_dynamic(one, 0)
            same(compiled(*given), plain_norm(*given))
    # No row and one row are compiled apart.
    assert len(by.report().replaced) <= 3 and not by.report().left, by.report()
    found = {name: count - before.get(name, 0) for name, count in fusion.calls().items()}
    found = {name: count for name, count in found.items() if count}
    # 2400 and 3200 rows are more than 512 KiB, and than 512 rows.
    many = {"one_shot_read": 3} if ranks.size == 2 else {"two_shots": 2, "two_shots_plain": 1}
    assert found == {"one_shot": 4, **many, "alone": 1}, found


def _doubled():
    """The text of a function: twice the sum."""
    function = Function(128, "f32")
    function.result(function.op("add", 0, 0), "f32")
    function.output()
    return function.to_json()


def scattered(ranks):
    """ReduceScatter, the function of a rank's own rows, AllGather: sequence parallel."""
    rows = 4 * ranks.size
    for dtype in (torch.bfloat16, torch.float32):
        compiled, by = compiled_by(sequence_parallel, RowFusion(max_bytes=rows * 128 * 4), dynamic=False)
        part, residual, weight = inputs(rows, 128, dtype, ranks)
        own = residual[4 * ranks.rank:4 * ranks.rank + 4].contiguous()
        before = fusion.calls().get("scattered", 0)
        with in_order():
            same(compiled(part, own, weight), sequence_parallel(part, own, weight))
        counts(by, 1)
        assert fusion.calls()["scattered"] == before + 1, fusion.calls()
    compiled, by = compiled_by(sequence_parallel, RowFusion(max_bytes=rows * 128 * 4 - 1), dynamic=False)
    with in_order():
        same(compiled(part, own, weight), sequence_parallel(part, own, weight))
    assert "max_bytes" in by.report().left[0].why, by.report()  # of the message, not of a part
    refused(
        lambda: torch.ops.mscclc.fused_rows(
            part[:-1], [], _doubled(), dist.group.WORLD.group_name, 1 << 20, ranks.size
        ),
        "equal parts of rows",
    )  # fmt: skip


def gradients(ranks):
    """In training, what the backward pass needs of a function is a result of it, too."""
    group = dist.group.WORLD.group_name

    def program(part, residual, weight):
        sum = torch.ops.mscclc.all_reduce(part, "sum", group)
        return rms_norm(sum + residual, weight).sum()

    compiled, by = compiled_by(program, dynamic=False)
    mine, others = inputs(5, 64, torch.float32, ranks), inputs(5, 64, torch.float32, ranks)
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
    given = inputs(6, 128, torch.bfloat16, ranks)
    with in_order():
        wanted, graphs = plain_norm(*given), []
        compiled, _ = compiled_by(plain_norm, dynamic=False)
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
    given = inputs(5, 64, torch.float32, ranks)
    for replaced in (1, 0):
        compiled, by = compiled_by(by_own_op, inductor=True, dynamic=False)
        before = fusion.calls().get("one_shot", 0)
        with in_order():
            same(compiled(*given), by_own_op(*given))
        assert fusion.calls()["one_shot"] == before + 1
        counts(by, replaced)
        fusion.close()
    assert RowFusion().uuid() == RowFusion().uuid() != RowFusion(1 << 10).uuid()


def contracts(ranks):
    """Sums that are to keep what plans do not keep stay apart from what follows them: when they are compiled, and when
    they are called. Of two ranks there is one sum, so all are fused."""
    given, function = inputs(6, 128, torch.bfloat16, ranks), plain_norm
    strict = dist.new_group(backend="mscclc", pg_options=mscclc.torch.Options(order="exact"))
    apart = ranks.size > 2
    for order in ("ranks", "tree", "exact"):
        with torch.no_grad(), mscclc.torch.order(order):
            compiled, by = compiled_by(function, dynamic=False)
            same(compiled(*given), function(*given))
            left = [one.why for one in by.report().left]
        assert len(left) == (apart and order != "ranks"), left
        assert all(f"is to keep '{order}', and plans with row functions keep 'ranks'" in why for why in left), left
        before, torch._dynamo.config.cache_size_limit = fusion.calls().get("alone", 0), 64
        with torch.no_grad(), mscclc.torch.order("tree"):  # what was compiled in another
            same(compiled(*given), function(*given))
        chained = fusion.calls().get("alone", 0) - before
        assert chained == (apart and order == "ranks"), (chained, order)
    if not apart:
        return
    made = _doubled()
    arguments = (torch.ones(2, 128, device=device()), [], made, strict.group_name, 1 << 12)
    before = fusion.calls()["alone"]
    torch.ops.mscclc.fused_rows(*arguments)
    assert fusion.calls()["alone"] == before + 1
    with mscclc.torch.order("ranks"):
        torch.ops.mscclc.fused_rows(*arguments)
    assert fusion.calls()["alone"] == before + 1
    plans = mscclc.torch.plans
    shape = {"columns": 64, "max_rows": 8, "device": device()}
    refused(lambda: plans.load_rows("strict", "allreduce_norm", strict, **shape), "under 'exact'")
    plans.load_rows("loose", "allreduce_norm", **shape)
    x = torch.ones(4, 64, device=device())
    call = lambda: torch.ops.mscclc.run_rows(x, "loose", ["weight", "residual", "eps"], [x[0]], [x], [1.0])  # noqa: E731
    call()
    with mscclc.torch.order("tree"):
        refused(call, "under 'tree'")
    plans.unload("loose")


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
    model, functions, functions_by_inductor, all_of_it_is_one_op, rows_that_vary, scattered, gradients,
    kept_code, contracts, wrong_is_seen,
]  # fmt: skip
# There, what is nearly a half may be rounded to another whole number.
HOST_ONLY = [model, wrong_is_seen]
if device().type == "cuda":
    CHECKS.append(captured)
