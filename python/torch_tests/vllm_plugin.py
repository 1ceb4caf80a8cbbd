"""The plug-in for vLLM, over a fake vLLM, as vLLM's groups use a communicator. With vLLM itself it is run by
hand, on GPUs (docs/records/engines.md)."""

import configparser
import importlib
import os
import sys
import types
import unittest.mock

import torch
import torch.distributed as dist
from checks import a_call_is_cut_short, equal, refused

from mscclc._numbers import ORDERS

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "fake"), os.path.join(HERE, "..")]

import make_wheel  # noqa: E402
import vllm.distributed.parallel_state  # noqa: E402
import vllm.envs  # noqa: E402
import vllm.logger  # noqa: E402
import vllm.platforms  # noqa: E402


def _object(path):
    """What a path of a module and a name in it means, as vLLM reads it."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _entry_point():
    """The wheel's, called."""
    points = configparser.ConfigParser()
    points.read_string(make_wheel.ENTRY_POINTS)
    module, _, name = points["vllm.platform_plugins"]["mscclc"].partition(":")
    return getattr(importlib.import_module(module), name)()


def _communicator(ranks, name="tp:0"):
    made = _object(_object(_entry_point()).get_device_communicator_cls())
    return made(cpu_group=ranks.gloo, device=torch.empty(0).device, device_group=ranks.gloo,
                unique_name=name)  # fmt: skip


def entry_point(ranks):
    """Without a GPU the plug-in steps back."""
    assert _entry_point() is not None
    with unittest.mock.patch.object(vllm.platforms, "HAS_GPU", False):
        assert _entry_point() is None


def defaults(ranks):
    """Nothing takes all-reduces before the communicator, unless it is asked for."""
    platform = _object(_entry_point())
    assert not platform.use_custom_allreduce()
    for given, found in ((None, False), (False, False), (True, True)):
        passes = types.SimpleNamespace(fuse_allreduce_rms=given)
        config = types.SimpleNamespace(compilation_config=types.SimpleNamespace(pass_config=passes))
        platform.apply_config_platform_defaults(config)
        assert passes.fuse_allreduce_rms is found and config.seen


def collectives(ranks):
    comm = _communicator(ranks)
    me, size = ranks.rank, ranks.size
    assert (comm.world_size, comm.rank_in_group, comm.unique_name) == (size, me, "tp:0")
    assert comm.set_up == ["nccl"]
    assert vllm.logger.lines.pop() == (
        "vllm.mscclc", "mscclc serves all-reduces, all-gathers and reduce-scatters of group 'tp:0'"
    )  # fmt: skip
    row = torch.arange(6.0).reshape(2, 3)
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.uint32):
        one = (row + me).to(dtype)
        equal(comm.all_reduce(one), (row * size + sum(range(size))).to(dtype))
        equal(one, (row + me).to(dtype))  # the input is kept
    turned = (row + me).t()
    equal(comm.all_reduce(turned), (row * size + sum(range(size))).t())
    cube = torch.arange(24.0).reshape(2, 3, 4)
    for dim in (0, 1, 2, -1):
        equal(comm.all_gather(cube + me, dim), torch.cat([cube + r for r in range(size)], dim))
    equal(comm.all_gather(turned, 0), torch.cat([(row + r).t() for r in range(size)], 0))
    rows = torch.cat([row + r for r in range(size)])
    equal(comm.all_gatherv(row + me, sizes=[2] * size), rows)
    both = comm.all_gatherv([row + me, 2 * (row + me)])
    equal(both[0], rows)
    equal(both[1], 2 * rows)
    whole = torch.arange(12.0 * size).reshape(size, 3, 4)
    for dim in (0, 1, 2, -3):
        parted = whole.movedim(0, dim)
        wanted = size * whole[me : me + 1].movedim(0, dim)
        equal(comm.reduce_scatter(parted, dim), wanted)
        equal(comm.reduce_scatterv(parted.contiguous(), dim, [1] * size), wanted)
    comm.destroy()
    assert comm.destroyed
    comm.destroy()


def left_to_vllm(ranks):
    """What no plan does, and groups that are not tensor-parallel, or not on one node."""
    comm = _communicator(ranks)
    size = ranks.size
    for tensor in (torch.ones(2, dtype=torch.bool), torch.ones(0), torch.tensor(1.0)):
        assert comm.all_reduce(tensor) == "all_reduce"
        assert comm.all_gather(tensor) == "all_gather"
        assert comm.reduce_scatter(tensor) == "reduce_scatter"
    sizes = [r + 1 for r in range(size)]
    mine = torch.ones(sizes[ranks.rank], 2)
    assert comm.all_gatherv(mine, 0, sizes) == "all_gatherv"
    assert comm.reduce_scatterv(torch.ones(sum(sizes), 2), 0, sizes) == "reduce_scatterv"
    refused(lambda: comm.reduce_scatter(torch.ones(size + 1), 0), "3 rows", f"{size} ranks")
    refused(lambda: comm.all_gather(torch.ones(2), 1), "no dimension 1")
    comm.destroy()
    assert comm.all_reduce(mine) == "all_reduce"
    for other in ("pp:0", "world:0", "dp:0"):
        assert _communicator(ranks, other).all_reduce(mine) == "all_reduce"
    with unittest.mock.patch.object(vllm.distributed.parallel_state, "NODES", 2):
        apart = _communicator(ranks)
    assert apart.all_reduce(mine) == "all_reduce"
    assert apart.set_up == ["nccl", "own"]  # as vLLM has it
    dist.barrier(ranks.gloo)


def no_such_gpu(ranks):
    """The error says how vLLM starts without the plug-in."""
    from mscclc.vllm.tensors import TensorCalls

    refused(lambda: TensorCalls(ranks.gloo, "cuda:77"), "VLLM_PLUGINS= ")
    dist.barrier(ranks.gloo)


def batch_invariant(ranks):
    """Sums then keep to one order in all batches, unless the job asks for another one."""
    for given, variable, wanted in (
        (False, "", None), (True, "", "ranks"), (True, "tree", None), (False, "tree", None),
    ):  # fmt: skip
        with unittest.mock.patch.object(vllm.envs, "VLLM_BATCH_INVARIANT", given):
            with unittest.mock.patch.dict(os.environ, MSCCLC_ORDER=variable):
                comm = _communicator(ranks)
        assert comm.plans._order == ORDERS[wanted]
        equal(comm.all_reduce(torch.ones(3)), torch.full((3,), float(ranks.size)))
        comm.destroy()


def compiled(ranks):
    """Layers are compiled as a whole; vLLM calls communicators in custom ops of its own."""
    comm = _communicator(ranks)
    library = torch.library.Library("fake_vllm", "DEF")
    library.define("all_reduce(Tensor input) -> Tensor")
    for key in ("CPU", "CUDA"):
        library.impl("all_reduce", comm.all_reduce, key)
    torch.library.register_fake("fake_vllm::all_reduce", torch.empty_like, lib=library)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def layer(x):
        return torch.ops.fake_vllm.all_reduce(x * 2) + 1

    for rows in (4, 4, 7):
        equal(layer(torch.ones(rows, 3)), torch.full((rows, 3), 2.0 * ranks.size + 1))
    comm.destroy()
    dist.barrier(ranks.gloo)


CALL = """
from mscclc.vllm.tensors import TensorCalls
calls = TensorCalls(dist.group.WORLD, "cpu")
def call(): calls.all_reduce(torch.ones(3))
"""


def calls_that_are_cut_short(ranks):
    """They end the process as those of groups do."""
    for handling, ends in (("1", True), ("0", False)):
        a_call_is_cut_short(ranks, "gloo", CALL, handling, ends)


CHECKS = [
    entry_point, defaults, collectives, left_to_vllm, no_such_gpu, batch_invariant, compiled, calls_that_are_cut_short,
]  # fmt: skip
