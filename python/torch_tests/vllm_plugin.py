"""The example plug-in for vLLM, over a fake vLLM, as vLLM's groups use a communicator."""

import configparser
import importlib
import os
import sys

import torch
import torch.distributed as dist
from checks import equal

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.join(HERE, "..", "examples", "vllm")
sys.path[:0] = [os.path.join(HERE, "fake"), EXAMPLE]


def _object(path):
    """What a path of a module and a name in it means, as vLLM reads it."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _communicator(ranks):
    import vllm_mscclc

    platform = _object(vllm_mscclc.PLATFORM)()
    made = _object(platform.get_device_communicator_cls())
    return made(cpu_group=ranks.gloo, device=torch.get_default_device(), device_group=ranks.gloo,
                unique_name="tp:0")  # fmt: skip


def entry_point(ranks):
    """The one of the project's file; without a GPU the plug-in steps back."""
    project = configparser.ConfigParser(allow_no_value=True, strict=False)
    with open(os.path.join(EXAMPLE, "pyproject.toml")) as file:
        project.read_file(file)
    point = project['project.entry-points."vllm.platform_plugins"']["mscclc"].strip('"')
    module, _, name = point.partition(":")
    found = getattr(importlib.import_module(module), name)()
    assert (found is not None) == torch.cuda.is_available(), found


def collectives(ranks):
    comm = _communicator(ranks)
    me, size = ranks.rank, ranks.size
    assert (comm.world_size, comm.rank_in_group, comm.unique_name) == (size, me, "tp:0")
    row = torch.arange(6.0).reshape(2, 3)
    one = row + me
    equal(comm.all_reduce(one), row * size + sum(range(size)))
    equal(one, row + me)  # the input is kept
    for dim in (0, 1, -1):
        equal(comm.all_gather(row + me, dim), torch.cat([row + r for r in range(size)], dim))
    sizes = [r + 1 for r in range(size)]
    rows = torch.cat([torch.full((r + 1, 2), float(r)) for r in range(size)])
    mine = torch.full((me + 1, 2), float(me))
    equal(comm.all_gatherv(mine, sizes=sizes), rows)
    both = comm.all_gatherv([mine, 2 * mine], sizes=sizes)
    equal(both[0], rows)
    equal(both[1], 2 * rows)
    whole = torch.arange(4.0 * size).reshape(size, 4)
    equal(comm.reduce_scatter(whole, 0), size * whole[me : me + 1])
    equal(comm.reduce_scatter(whole.t().contiguous(), -1), size * whole[me : me + 1].t())
    begin = sum(sizes[:me])
    equal(comm.reduce_scatterv(rows, 0, sizes), size * rows[begin : begin + me + 1])
    columns = rows.t().contiguous()
    equal(comm.reduce_scatterv(columns, -1, sizes), size * columns[:, begin : begin + me + 1])
    found = comm.gather(row + me, dst=size - 1, dim=0)
    if me == size - 1:
        equal(found, torch.cat([row + r for r in range(size)]))
    else:
        assert found is None
    equal(comm.broadcast(row + me, size - 1), row + size - 1)
    if me % 2 == 0:
        comm.send(row + me)
    if me % 2 == 1:
        equal(comm.recv(row.shape, row.dtype), row + me - 1)
    equal(comm.dispatch(row, row)[0], row)  # vLLM's own
    comm.destroy()
    assert comm.destroyed
    comm.destroy()


def compiled(ranks):
    """Layers are compiled as a whole."""
    comm = _communicator(ranks)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def layer(x):
        return comm.all_reduce(x * 2) + 1

    for rows in (4, 4, 7):
        equal(layer(torch.ones(rows, 3)), torch.full((rows, 3), 2.0 * ranks.size + 1))
    comm.destroy()
    dist.barrier(ranks.gloo)


CHECKS = [entry_point, collectives, compiled]
