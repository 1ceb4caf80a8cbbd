"""Custom ops and the communicator for inference engines."""

import torch
import torch._dynamo.testing
import torch.distributed as dist
from checks import device, equal, refused

from mscclc.torch.device_communicator import DeviceCommunicator

ops = torch.ops.mscclc


def _name():
    return dist.group.WORLD.group_name


def _rows(ranks, count=6):
    return [ranks.values(count, torch.float32, rank=r) for r in range(ranks.size)]


def _all(data, size, group):
    return (
        ops.all_reduce(data, "sum", group),
        ops.all_reduce(data, "max", group),
        ops.all_gather(data, size, group),
        ops.reduce_scatter(data.repeat(size), "sum", size, group),
        ops.all_to_all(data.repeat(size), group),
    )


def _wanted(ranks, count):
    rows = _rows(ranks, count)
    whole = torch.cat(rows)
    return sum(rows), torch.stack(rows).amax(0), whole, sum(rows), whole


def eager(ranks):
    data = ranks.values(6, torch.float32)
    for found, wanted in zip(_all(data, ranks.size, _name()), _wanted(ranks, 6)):
        equal(found, wanted)
    equal(data, ranks.values(6, torch.float32), "input")
    ops.all_reduce_(data, "sum", _name())
    equal(data, sum(_rows(ranks)))
    ops.broadcast_(data.add_(ranks.rank), 1, _name())
    equal(data, sum(_rows(ranks)) + 1)


def autograd_knows_what_was_written(ranks):
    for write in (lambda y: ops.all_reduce_(y, "sum", _name()), lambda y: ops.broadcast_(y, 0, _name())):
        y = torch.ones(4, requires_grad=True).exp()  # whose gradient is computed from y
        z = y * 1.0
        with torch.no_grad():
            write(y)
        refused(z.sum().backward, "modified by an inplace operation")
        for given in (torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True) * 2):
            refused(lambda: write(given), "has no gradient", "torch.no_grad()")


def checked_by_torch(ranks):
    data = ranks.values(6, torch.float32)
    with_gradient = data.clone().requires_grad_()
    cases = [
        (ops.all_reduce, (data, "sum", _name())),
        (ops.all_reduce, (with_gradient, "sum", _name())),
        (ops.all_reduce_, (data.clone(), "sum", _name())),
        (ops.all_gather, (with_gradient, ranks.size, _name())),
        (ops.reduce_scatter, (with_gradient, "sum", ranks.size, _name())),
        (ops.all_to_all, (with_gradient, _name())),
        (ops.broadcast_, (data.clone(), 0, _name())),
    ]
    for op, arguments in cases:
        torch.library.opcheck(op.default, arguments)


def compiled(ranks):
    _compiled(ranks, "aot_eager")


def compiled_by_inductor(ranks):
    _compiled(ranks, "inductor")


def _compiled(ranks, backend):
    """Sizes vary, and nothing is compiled again."""
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend(backend)

    @torch.compile(fullgraph=True, backend=counter, dynamic=True)
    def program(data):
        mine = data + 0
        ops.all_reduce_(mine, "sum", _name_of_group)
        # The input is used after the op that writes its copy.
        return [mine * 2, data * 3, *(one * 2 for one in _all(data, ranks.size, _name_of_group))]

    _name_of_group = _name()
    for count in (6, 8, 10, 34):
        data = ranks.values(count, torch.float32)
        found = program(data)
        wanted = _wanted(ranks, count)
        for one, other in zip(found, [wanted[0] * 2, data * 3, *(w * 2 for w in wanted)]):
            equal(one, other)
    assert counter.frame_count == 1, f"compiled {counter.frame_count} times"


def gradients(ranks):
    n, weights = ranks.size, torch.arange(6.0)
    data = ranks.values(6, torch.float32).requires_grad_()
    (ops.all_reduce(data, "sum", _name()) * weights).sum().backward()
    equal(data.grad, weights * n)
    data.grad = None
    gathered = ops.all_gather(data, n, _name())
    (gathered * torch.arange(6.0 * n)).sum().backward()
    equal(data.grad, n * (weights + 6 * ranks.rank))
    data.grad = None
    (ops.reduce_scatter(data, "sum", n, _name()) * (ranks.rank + 1)).sum().backward()
    equal(data.grad, torch.arange(1.0, n + 1).repeat_interleave(6 // n))
    # Of an average the average of the gradients; each rank's are others.
    data.grad = None
    (ops.all_reduce(data, "avg", _name()) * weights * (ranks.rank + 1)).sum().backward()
    equal(data.grad, weights * ((n + 1) / 2))
    data.grad = None
    (ops.reduce_scatter(data, "avg", n, _name()) * (ranks.rank + 1)).sum().backward()
    equal(data.grad, torch.arange(1.0, n + 1).repeat_interleave(6 // n) / n)
    torch._dynamo.reset()

    @torch.compile(fullgraph=True, backend="aot_eager")
    def average(given):
        return ops.all_reduce(given, "avg", name) * weights

    name = _name()
    data.grad = None
    average(data).sum().backward()
    equal(data.grad, weights)
    refused(lambda: ops.all_reduce(data, "max", _name()).sum().backward(), "only sums")


def what_is_wrong(ranks):
    data = torch.ones(6)
    refused(lambda: ops.all_reduce(data, "sum", "nothing"), "'nothing'", "destroyed")
    refused(lambda: ops.all_reduce(data, "xor", _name()), "'xor'", "sum, avg, prod, min, max")
    refused(lambda: ops.all_gather(data, ranks.size + 1, _name()), "ranks, not")
    refused(lambda: ops.reduce_scatter(torch.ones(3), "sum", ranks.size, _name()), "equal parts")
    group = dist.new_group()
    name = group.group_name
    ops.all_reduce(data, "sum", name)
    dist.destroy_process_group(group)
    refused(lambda: ops.all_reduce(data, "sum", name), name, "destroyed")


def device_communicator(ranks):
    n, rank = ranks.size, ranks.rank
    comm = DeviceCommunicator(ranks.gloo, device(), unique_name="tp:0")
    data = torch.arange(12.0).view(2, 6) + 100 * rank
    rows = [torch.arange(12.0).view(2, 6) + 100 * r for r in range(n)]
    equal(comm.all_reduce(data), sum(rows))
    for dim in (0, 1, -1):
        equal(comm.all_gather(data, dim), torch.cat(rows, dim), f"along {dim}")
        equal(comm.reduce_scatter(data, dim), sum(rows).chunk(n, dim)[rank], f"along {dim}")
        gathered = comm.gather(data, dst=1, dim=dim)
        if rank == 1:
            equal(gathered, torch.cat(rows, dim))
        else:
            assert gathered is None
    sizes = [r + 1 for r in range(n)]
    own = torch.full((sizes[rank], 2), float(rank))
    whole = torch.cat([torch.full((s, 2), float(r)) for r, s in enumerate(sizes)])
    for dim in (0, 1, -1):
        mine, all_of_it = (own, whole) if dim == 0 else (own.t(), whole.t())
        equal(comm.all_gatherv(mine, dim, sizes), all_of_it.contiguous(), f"along {dim}")
        equal(comm.reduce_scatterv(all_of_it, dim, sizes), mine.contiguous() * n, f"along {dim}")
    with_none = [0] + [2] * (n - 1)
    part = comm.reduce_scatterv(torch.ones(3, sum(with_none)), 1, with_none)
    equal(part, torch.full((3, with_none[rank]), float(n)))
    refused(lambda: comm.reduce_scatterv(whole, 1, sizes), "sizes, one for each rank")
    equal(comm.broadcast(data.clone(), 1), rows[1])
    if rank == 0:
        comm.send(data)
    elif rank == 1:
        equal(comm.recv(data.shape, data.dtype), rows[0])
    refused(lambda: comm.all_gather(data, 2), "no dimension 2")
    comm.barrier()
    comm.destroy()
    comm.destroy()


CHECKS = [
    eager, autograd_knows_what_was_written, checked_by_torch, compiled, compiled_by_inductor, gradients, what_is_wrong, device_communicator,
]  # fmt: skip
