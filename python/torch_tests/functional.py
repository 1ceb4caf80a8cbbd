"""Functional collectives, eager and compiled, and their gradients."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from checks import equal


def _all(data, size):
    ranks = dist.group.WORLD
    return (
        functional.all_reduce(data, "sum", ranks),
        functional.all_gather_tensor(data, 0, ranks),
        functional.reduce_scatter_tensor(data.repeat(size), "sum", 0, ranks),
        functional.all_to_all_single(data.repeat(size), None, None, ranks),
        functional.broadcast(data, 0, ranks),
        *functional.all_reduce_coalesced([data, data + 1], "max", ranks),
    )


def _wanted(ranks, count):
    rows = [ranks.values(count, torch.float32, rank=r) for r in range(ranks.size)]
    total, most = sum(rows), torch.stack(rows).amax(0)
    return total, torch.cat(rows), total, torch.cat(rows), rows[0], most, most + 1


def eager(ranks):
    data = ranks.values(5, torch.float32)
    for found, wanted in zip(_all(data, ranks.size), _wanted(ranks, 5)):
        equal(torch.as_tensor(found + 0), wanted)


def compiled(ranks):
    _compiled(ranks, "aot_eager")


def compiled_by_inductor(ranks):
    _compiled(ranks, "inductor")


def _compiled(ranks, backend):
    torch._dynamo.reset()

    @torch.compile(fullgraph=True, backend=backend, dynamic=True)
    def program(data):
        return [one * 2 for one in _all(data, ranks.size)]

    for count in (5, 6, 9):
        found = program(ranks.values(count, torch.float32))
        for one, wanted in zip(found, _wanted(ranks, count)):
            equal(one, wanted * 2)


def rewritten(ranks):
    """torch.distributed's own calls, within a compiled function."""
    torch._dynamo.reset()

    @torch.compile(fullgraph=True, backend="aot_eager")
    def program(data):
        data = data + 1
        dist.all_reduce(data)
        return data * 2

    found = program(torch.full((4,), float(ranks.rank)))
    equal(found, torch.full((4,), ranks.size * (ranks.size + 1.0)))


def gradients(ranks):
    data = torch.ones(4, requires_grad=True)
    gathered = functional.all_gather_tensor_autograd(data, 0, dist.group.WORLD)
    (gathered * torch.arange(float(4 * ranks.size))).sum().backward()
    wanted = ranks.size * (torch.arange(4.0) + 4 * ranks.rank)
    equal(data.grad, wanted)


CHECKS = [eager, compiled, compiled_by_inductor, rewritten, gradients]
