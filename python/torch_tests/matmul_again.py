"""Calls that come again, which are not checked again and go past torch's dispatcher: others serve them, or notice.

A call is worked out the first time, known by all that counts the second time, and found at once from the third on.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import matmul_scaled as scaled
import torch
import torch.distributed as dist
from checks import device, equal, refused
from matmul_values import TYPES_8, columns_first, eights, matrix, of_all
from torch._C._distributed_c10d import _register_process_group, _unregister_process_group
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from mscclc import ops
from mscclc.torch.overlap import eager, memory, objects
from mscclc.torch.overlap import ops as direct


def _calls(ranks, seed, wanted=False):
    """Each op once, on values of a seed, and what it must give. `wanted`: gradients are."""
    n, rank, group = ranks.size, ranks.rank, ranks.gloo
    As, Bs = of_all(ranks, (2 * n, 6), seed), of_all(ranks, (6, 8), seed + 1)
    bias, B = matrix((8,), seed + 2, 0), columns_first(Bs[rank])
    other = bias.clone()
    total, whole = sum(A @ B for A, B in zip(As, Bs)), torch.cat(As)
    come = torch.cat([A.chunk(n)[rank] for A in As])
    A = As[rank].requires_grad_(wanted)
    return {
        "all_gather_matmul": (lambda: ops.all_gather_matmul(A, [B, Bs[rank]], 0, group, biases=[bias, other])[1][0],
                              whole @ B + bias),
        "all_to_all_matmul": (lambda: ops.all_to_all_matmul(A, [B], group)[1][0], come @ B),
        "matmul_reduce_scatter": (lambda: ops.matmul_reduce_scatter(A, B, "sum", 0, group, bias=bias),
                                  total.chunk(n)[rank] + bias),
        "matmul_all_reduce": (lambda: ops.matmul_all_reduce(A, B, "avg", group, bias=bias), total / n + bias),
    }  # fmt: skip


def shapes_that_come_again(ranks):
    """What was worked out for a call serves others whose memory is elsewhere, at odd places too, and no others."""
    for seed in (1, 11, 21, 31):
        for all in (_calls(ranks, seed), *scaled.calls(ranks, seed)):
            for name, (call, wanted) in all.items():
                equal(call(), wanted, name)
                with torch.inference_mode():
                    equal(call(), wanted, f"{name}, without gradients")
    A, B = matrix((4 * ranks.size, 6), 1, ranks.rank), matrix((6, 8), 2, 0)
    reduce = lambda A, **more: ops.matmul_all_reduce(A, B, more.pop("op", "sum"), ranks.gloo, **more)  # noqa: E731
    wanted = reduce(A)
    for offset in range(4):
        elsewhere = torch.zeros(A.numel() + offset)[offset:].view(A.shape).copy_(A)
        equal(reduce(elsewhere), wanted, f"offset {offset}")
    equal(reduce(A.t().contiguous().t()), wanted, "other strides")
    wrong = ({"backend": ["auto"]}, {"chunks": 0.0}, {"chunks": "0"}, {"budget": 4.0}, {"budget": None},
             {"backend": 3}, {"gemm": None}, {"op": 0}, {"replicated": "no"})  # fmt: skip
    for more in wrong:
        refused(lambda: reduce(A, **more), "matmul_all_reduce")  # noqa: B023
    refused(lambda: ops.matmul_all_reduce(A.tolist(), B, "sum", ranks.gloo))
    refused(lambda: ops.matmul_all_reduce(None, B, "sum", ranks.gloo))
    refused(
        lambda: ops.all_gather_matmul(A, [B, None], 0, ranks.gloo),
        "each B and each bias of a list is a tensor, not None",
    )
    refused(lambda: ops.all_gather_matmul(A, [B], 0.0, ranks.gloo), "all_gather_matmul")


def what_is_known_is_not_checked_again(ranks):
    """With gradients or without; what is not plain, or is changed meanwhile, goes the long way."""
    A, B = matrix((2 * ranks.size, 10), 1, ranks.rank), matrix((10, 8), 2, 0)  # columns of no other check
    for all in (*(_calls(ranks, 1, wanted) for wanted in (False, True)), *scaled.calls(ranks, 1)):
        for name, (call, _) in all.items():
            call()
            with mock.patch.object(eager, "op", lambda *_: None):
                assert call() is not None, name
    known = lambda A, B=B, group=ranks.gloo.group_name: eager.known(  # noqa: E731
        group, ("matmul_all_reduce", "sum", False, "auto", 0, 0, "auto"), ((A, B, None),), (A, B)
    )[1]
    reduce = lambda A: ops.matmul_all_reduce(A, B, "sum", ranks.gloo)  # noqa: E731
    reduce(A)
    assert known(A) is not None and known(A + 1) is known(A)
    with torch.device(A.device):
        assert known(A) is not None
    for one in (A[1:], A.t().contiguous().t(), A.double(), torch._neg_view(A), A.as_subclass(_Subclass), None, [1]):
        assert known(one) is None, one
    assert known(A, group="nothing") is None
    with _Calls():
        assert known(A) is None
    with torch.profiler.profile():
        assert known(A) is None
    assert torch.func.vmap(lambda x: x * (known(A) is None))(torch.ones(2)).tolist() == [1, 1]


def a_group_that_is_gone(ranks):
    """What is known of its calls serves no other."""
    group = dist.new_group(list(range(ranks.size)), backend="gloo")
    A, B = torch.ones(2, 4), torch.ones(4, 3)
    for _ in range(2):
        equal(ops.matmul_all_reduce(A, B, "sum", group), torch.full((2, 3), 4.0 * ranks.size))
    name = group.group_name
    dist.destroy_process_group(group)
    refused(lambda: ops.matmul_all_reduce(A, B, "sum", name), f"no process group '{name}'")


class _Calls(TorchDispatchMode):
    """Which ops are called."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        self.names.append(op.name())
        return op(*args, **(kwargs or {}))


class _Subclass(torch.Tensor):
    """It sees calls, and has no kernels."""

    names = []

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        cls.names.append(str(function))
        return super().__torch_function__(function, types, args, kwargs)


def who_watches_sees_ops(ranks):
    """Plain eager calls go past torch's dispatcher; modes, profilers, subclasses and lazy values do not notice."""
    for name, (call, wanted) in {**_calls(ranks, 1), **scaled.calls(ranks, 1)[0]}.items():
        call()
        with _Calls() as calls:
            equal(call(), wanted, name)
        assert f"mscclc::{name}" in calls.names, calls.names
        with torch.profiler.profile() as profile:
            equal(call(), wanted, name)
        assert f"mscclc::{name}" in {one.key for one in profile.key_averages()}, name
    A, B = matrix((2 * ranks.size, 6), 1, ranks.rank), matrix((6, 8), 2, 0)
    assert eager.op("matmul_all_reduce", (A, B)) is direct.matmul_all_reduce
    with torch.device(A.device):
        assert eager.op("matmul_all_reduce", (A, B)) is direct.matmul_all_reduce
    reduce = lambda A: ops.matmul_all_reduce(A, B, "sum", ranks.gloo)  # noqa: E731
    wanted = reduce(A)
    equal(reduce(torch._neg_view(A)), -wanted, "what is negated when it is read")
    reduce(A.as_subclass(_Subclass))
    assert any("matmul_all_reduce" in one for one in _Subclass.names), _Subclass.names
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(reduce(A), FakeTensor)


class _Functions(TorchFunctionMode):
    """Which functions are called."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


def _again(call):
    """What a call gives when it is found at once."""
    for _ in range(2):
        call()
    with mock.patch.object(eager, "_looked_up", None):
        return call()


def found_at_once(ranks):
    """The third time one look is enough, with gradients, too; the same tensor twice takes two."""
    for wanted in (False, True):
        for all in (_calls(ranks, 1, wanted), *([] if wanted else scaled.calls(ranks, 1))):
            for name, (call, right) in all.items():
                found = _again(call)
                equal(found, right, name)
                assert found.requires_grad == wanted, name
                with torch.no_grad():
                    assert not _again(call).requires_grad, name
                objects.seen.clear()
                with torch.no_grad():
                    _again(call)
                assert call().requires_grad == wanted, f"{name}, seen without gradients"
                with torch.inference_mode():
                    assert _again(call).is_inference(), name
    A, B = matrix((2 * ranks.size, 6), 1, ranks.rank), matrix((6, 8), 2, 0)
    for _ in range(4):
        one, two = ops.all_to_all_matmul(A, [B, B], ranks.gloo)[1]
        equal(one, two)


def tensors_that_change_in_place(ranks):
    """The same object may be another tensor: values, layout, sizes, type, what it is to autograd, sign."""
    n, rank, group = ranks.size, ranks.rank, ranks.gloo
    A, B = torch.nn.Parameter(matrix((4, 8), 1, rank)), torch.nn.Parameter(matrix((8, 8), 2, 0))
    A.requires_grad_(False)
    B.requires_grad_(False)
    reduce = lambda: ops.matmul_all_reduce(A, B, "sum", group)  # noqa: E731

    def right(factor=1):
        return (sum(one.to(A.dtype) for one in of_all(ranks, A.shape, 1)) * factor) @ B.detach()

    equal(_again(reduce), right())
    for change in (
        lambda: B.mul_(2), lambda: B.t_(), lambda: setattr(B, "data", matrix((8, 8), 3, 0)),
        lambda: setattr(B, "data", columns_first(B.data)), lambda: setattr(B, "data", matrix((8, 6), 3, 0)),
        lambda: (setattr(A, "data", A.data.bfloat16()), setattr(B, "data", B.data.bfloat16())),
        lambda: setattr(B, "data", torch._neg_view(B.data)),
    ):  # fmt: skip
        change()
        equal(reduce(), right())
        equal(_again(reduce) if not B.is_neg() else reduce(), right())
    B.data = B.data.clone()
    equal(_again(reduce), right())
    A.data = A.data.float()
    refused(reduce, "torch.float32", "torch.bfloat16")
    B.data = B.data.float()
    for wanted in (True, False, True):
        A.requires_grad_(wanted)
        assert reduce().requires_grad == wanted and _again(reduce).requires_grad == wanted
    A.grad = None
    _again(reduce).sum().backward()
    equal(A.grad, n * (torch.ones(4, 6) @ B.detach().t()), "gradient")


def lists_of_other_lengths(ranks):
    """As many tensors in all, and another of the biases is missing."""
    A, group = matrix((2 * ranks.size, 8), 1, ranks.rank), ranks.gloo
    square, line = matrix((8, 8), 2, 0), matrix((8,), 3, 0)
    call = lambda Bs, biases: ops.all_gather_matmul(A, Bs, 0, group, biases=biases)[1]  # noqa: E731
    (one,) = _again(lambda: call([square], [line]))
    two, three = _again(lambda: call([square, square + 1], []))
    equal(one, two + line)
    eight, B = eights(ranks, (4, 16), 1)[ranks.rank], columns_first(matrix((16, 32), 2, 0).to(TYPES_8[0]))
    scale, bias, no, bf16 = torch.tensor(1.0), torch.full((32,), 8.0, dtype=torch.bfloat16), [None] * 2, torch.bfloat16
    other_B, other_scale = B.clone(), scale.clone()
    scaled_call = lambda biases: ops.all_gather_scaled_matmul(  # noqa: E731
        eight, [B, other_B], scale, [scale.clone(), other_scale], 0, group, biases, no, [bf16] * 2, [False] * 2,
        gemm="torch",
    )[1]  # fmt: skip
    plain, _ = _again(lambda: scaled_call(no))
    for biases in ([bias, None], [None, bias]):
        for found, one in zip(_again(lambda: scaled_call(biases)), biases):  # noqa: B023
            off = (found.float() - plain.float() - (0 if one is None else 8)).abs().max()
            assert off <= 0.01 * plain.float().abs().max(), biases


def who_begins_to_watch(ranks):
    """A call that was found at once until then: modes, profilers, compilers and transformations see the op."""
    A, B = matrix((2 * ranks.size, 6), 1, ranks.rank), matrix((6, 8), 2, 0)
    reduce = lambda: ops.matmul_all_reduce(A, B, "sum", ranks.gloo)  # noqa: E731
    wanted, sees = _again(reduce), lambda names: any("matmul_all_reduce" in one for one in names)
    for mode in (_Calls(), _Functions()):
        with mode:
            equal(reduce(), wanted)
        assert sees(mode.names), mode.names
    with torch.profiler.profile() as profile:
        equal(reduce(), wanted)
    assert sees(one.key for one in profile.key_averages())
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(reduce(), FakeTensor)
    graphs = []
    compiled = torch.compile(reduce, fullgraph=True, backend=lambda graph, _: graphs.append(graph) or graph)
    equal(compiled(), wanted)
    assert sees(str(node.target) for node in graphs[0].graph.nodes), graphs[0].graph
    known = lambda A: eager.known(  # noqa: E731
        ranks.gloo.group_name, ("matmul_all_reduce", "sum", False, "auto", 0, 0, "auto"), ((A, B, None),), (A, B)
    )[1]
    with mock.patch.object(eager, "_looked_up", lambda *_: eager._UNKNOWN):
        assert known(A) is not None and known(A + 1) is known(A)
        for one in (A[1:], A.t().contiguous().t(), A.double(), torch._neg_view(A), A.as_subclass(_Subclass),
                    A.to_sparse(), A.to("meta"), torch.nn.Parameter(A), A.clone().requires_grad_(), None, [1]):  # fmt: skip
            assert known(one) is None, one
        assert torch.func.vmap(lambda x: x * (known(A) is None))(torch.ones(2)).tolist() == [1, 1]
        with torch.autocast(A.device.type):
            assert known(A) is None
    equal(_again(reduce), wanted)


def a_later_group_of_the_name(ranks):
    """What is known of a group's calls serves no other that has its name, nor one that was closed."""
    group = dist.new_group(list(range(ranks.size)), backend="gloo")
    alone = [dist.new_group([rank], backend="gloo") for rank in range(ranks.size)][ranks.rank]
    A, B, name = torch.ones(2, 4), torch.ones(4, 3), group.group_name
    reduce = lambda: ops.matmul_all_reduce(A, B, "sum", name)  # noqa: E731
    equal(_again(reduce), torch.full((2, 3), 4.0 * ranks.size))
    of = objects.session(name, A.device)
    dist.barrier(ranks.gloo)
    _unregister_process_group(name)
    refused(reduce, f"no process group '{name}'")
    _register_process_group(name, alone)
    for call in (reduce, lambda: _again(reduce)):
        equal(call(), torch.full((2, 3), 4.0))
    assert not of.is_open
    _unregister_process_group(name)
    _register_process_group(name, group)
    equal(reduce(), torch.full((2, 3), 4.0 * ranks.size))
    dist.barrier(ranks.gloo)
    ops.close()
    assert not objects.seen
    equal(_again(reduce), torch.full((2, 3), 4.0 * ranks.size))


def many_shapes(ranks):
    """So many are found at once; all are right. Two threads with groups of their own do not disturb one another."""
    groups = [dist.new_group(backend="gloo") for _ in range(2)]
    start = threading.Barrier(2)

    def work(thread):
        group = groups[thread]
        start.wait()
        with torch.set_grad_enabled(thread == 0):
            for turn in range(4):
                for rows in range(1, 12):
                    A = torch.full((rows, 4), thread + 1.0).requires_grad_()
                    found = ops.matmul_all_reduce(A, torch.ones(4, 3), "sum", group)
                    equal(found, torch.full((rows, 3), 4.0 * (thread + 1) * ranks.size), f"{rows} rows, turn {turn}")
                    assert found.requires_grad == (thread == 0)

    with ThreadPoolExecutor(2) as threads:
        for one in [threads.submit(work, thread) for thread in range(2)]:
            one.result()
    assert max(len(all) for all in objects.seen.values()) == eager._MOST_SEEN


def memory_is_as_torch_gives_it(ranks):
    """Of all shapes, in inference mode and without; of a GPU that is not the current one by torch."""
    for shape in ((), (3,), (2, 3), (0, 4), (2, 0, 3), (2, 3, 4)):
        take = memory.taker(shape, torch.bfloat16, torch.device("cpu"))
        for inference in (False, True):
            with torch.inference_mode(inference):
                found, wanted = take(), torch.empty(shape, dtype=torch.bfloat16, device="cpu")
            for of in ("shape", "stride", "dtype", "device", "requires_grad", "is_inference", "layout"):
                found_of, wanted_of = (getattr(one, of) for one in (found, wanted))
                assert (found_of() == wanted_of()) if callable(found_of) else (found_of == wanted_of), (shape, of)
            assert found.untyped_storage().nbytes() == wanted.untyped_storage().nbytes()
            assert torch._C._dispatch_keys(found) == torch._C._dispatch_keys(wanted)
    with mock.patch.object(memory, "_on_gpu", lambda *place: ("fast", *place)), \
            mock.patch("torch.empty_strided", lambda *place, device, dtype: (device, *place, dtype)), \
            mock.patch("torch.cuda.current_device", lambda: 1):  # fmt: skip
        for index, by in ((1, "fast"), (0, torch.device("cuda", 0))):
            found = memory.taker((2, 3), torch.half, torch.device("cuda", index))()
            assert found == (by, (2, 3), (3, 1), torch.half), found


CHECKS = [
    shapes_that_come_again, what_is_known_is_not_checked_again, a_group_that_is_gone, who_watches_sees_ops,
    found_at_once, tensors_that_change_in_place, lists_of_other_lengths, who_begins_to_watch,
    a_later_group_of_the_name, many_shapes, memory_is_as_torch_gives_it,
]  # fmt: skip
