"""Collectives on symmetric tensors use them where they lie; the library's log says so."""

import os
import re
import sys

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm
from checks import equal, init

import mscclc
import mscclc.torch.symmetric

ALONE = True
LOG = os.path.join(sys.argv[4], f"log{sys.argv[3]}")
COUNT = 3 << 20  # floats: large enough for plans that read buffers of other ranks

# Read when the process makes its first communicator.
os.environ.update(MSCCLC_DEBUG="INFO", MSCCLC_DEBUG_SUBSYS="LOAD", MSCCLC_DEBUG_FILE=LOG)


class loads:
    """The plans that are loaded inside for calls of tensors: how many `uses` them where they lie, and
    how many `copies`. Those in packets do neither: their scratch is where peers write."""

    def __enter__(self):
        self.first = len(self._found())
        return self

    def __exit__(self, *error):
        found = self._found()[self.first :]
        self.uses = sum("zero copy" in line for line in found)
        self.copies = sum("zero copy" not in line and "_packets'" not in line for line in found)

    @staticmethod
    def _found():
        """A line for each plan; before it stands for which call. Ranks exchange where their
        tensors lie by calls that are small."""
        found, size = [], 0
        if os.path.exists(LOG):
            with open(LOG) as log:
                for line in log:
                    call = re.search(r" of ([0-9]+) bytes takes ", line)
                    size = int(call[1]) if call else size
                    if " executable " in line and size > 4096:
                        found.append(line)
        return found


def _group(ranks, name, **more):
    init(ranks, name=name, **more)
    return dist.group.WORLD


def _symmetric(group, count=COUNT):
    tensor = symm.empty(count, dtype=torch.float32, device="cpu")
    symm.rendezvous(tensor, group)
    return tensor


def _rows(ranks, count):
    """What is gathered of parts that hold their rank + 1."""
    return torch.arange(1, ranks.size + 1).float().repeat_interleave(count)


def whole_and_views(ranks):
    """All kinds, in place and not, of tensors with an offset: no plan is loaded that copies."""
    group, size = _group(ranks, "kinds"), ranks.size
    whole = _symmetric(group, (2 * size + 1) * COUNT)
    part, rows = whole[3 : 3 + COUNT], whole[size * COUNT : 2 * size * COUNT].view(size, COUNT)
    with loads() as found:
        dist.all_reduce(part.fill_(ranks.rank + 1))
        equal(part, torch.full((COUNT,), size * (size + 1) / 2))
        dist.all_gather_into_tensor(rows, part.fill_(ranks.rank + 1))
        equal(rows.flatten(), _rows(ranks, COUNT))
        dist.all_gather_into_tensor(rows, rows[ranks.rank])
        equal(rows.flatten(), _rows(ranks, COUNT))
        dist.reduce_scatter_tensor(part, rows)
        equal(part, torch.full((COUNT,), float(size * (ranks.rank + 1))))
        dist.all_to_all_single(rows[0], part.fill_(ranks.rank + 1))
        equal(rows[0], _rows(ranks, COUNT // size))
    assert found.uses > 0 and found.copies == 0, vars(found)
    dist.destroy_process_group()


def as_by_copies(ranks):
    """The same call on tensors of torch: copied, with the same bits."""
    group = _group(ranks, "bits")
    random = torch.Generator().manual_seed(ranks.rank)
    plain = torch.rand(COUNT, generator=random)
    shared = _symmetric(group).copy_(plain)
    with loads() as found:
        dist.all_reduce(plain)
    assert found.uses == 0 and found.copies > 0, vars(found)
    with loads() as found:
        work = dist.all_reduce(shared, async_op=True)
        work.wait()
    assert found.uses > 0 and found.copies == 0, vars(found)
    equal(shared, plain)
    dist.destroy_process_group()


def one_of_two(ranks):
    """Where only one buffer is symmetric, or not contiguous, the call copies."""
    group = _group(ranks, "one")
    rows = _symmetric(group, ranks.size * COUNT)
    with loads() as found:
        dist.all_gather_into_tensor(rows, torch.full((COUNT,), ranks.rank + 1.0))
    assert found.uses == 0, vars(found)
    equal(rows, _rows(ranks, COUNT))
    with loads() as found:
        every_other = rows.view(-1, 2)[:, 0]
        dist.all_reduce(every_other)
    assert found.uses == 0, vars(found)
    equal(rows.view(-1, 2)[:, 1], _rows(ranks, COUNT // 2))
    equal(every_other, ranks.size * _rows(ranks, COUNT // 2))
    dist.destroy_process_group()


def of_our_class(ranks):
    group = _group(ranks, "class")
    with mscclc.SymmetricMemory(4 * COUNT, group, device="cpu", backend="torch") as memory:
        tensor = memory.buffer().view(torch.float32)
        with loads() as found:
            dist.all_reduce(tensor.fill_(ranks.rank))
        assert found.uses > 0 and found.copies == 0, vars(found)
        equal(tensor, torch.full((COUNT,), ranks.size * (ranks.size - 1) / 2))
    dist.destroy_process_group()


def of_another_group(ranks):
    """What another group has made symmetric is copied, whatever its backend."""
    group = _group(ranks, "world")
    for other in (dist.new_group(backend="gloo"), dist.new_group(backend="mscclc")):
        tensor = _symmetric(other).fill_(1)
        with loads() as found:
            dist.all_reduce(tensor)
        assert found.uses == 0, vars(found)
    with loads() as found:
        symm.rendezvous(tensor, group)
        dist.all_reduce(tensor)
    assert found.uses > 0 and found.copies == 0, vars(found)
    equal(tensor, torch.full((COUNT,), float(ranks.size**2)))
    dist.destroy_process_group()


def groups_made_again(ranks):
    """A group of the same name makes the memory symmetric itself."""
    group = _group(ranks, "before")
    tensor = _symmetric(group).fill_(1)
    dist.all_reduce(tensor)
    dist.destroy_process_group()
    group = _group(ranks, "after")
    with loads() as found:
        dist.all_reduce(tensor)
    assert found.uses == 0 and found.copies > 0, vars(found)
    symm.rendezvous(tensor, group)
    with loads() as found:
        dist.all_reduce(tensor)
    assert found.uses > 0, vars(found)
    equal(tensor, torch.full((COUNT,), float(ranks.size**3)))
    dist.destroy_process_group()


def nothing_stays(ranks):
    """Memory that is freed goes with the next call."""
    group = _group(ranks, "many")

    def mapped():
        with open("/proc/self/maps") as maps:
            return sum("memfd" in line for line in maps), len(os.listdir("/proc/self/fd"))

    for i in range(40):
        tensor = _symmetric(group).fill_(1)
        dist.all_reduce(tensor)
        assert int(tensor[-1]) == ranks.size
        if i == 5:
            before = mapped()
    after = mapped()
    dist.barrier()
    assert all(now <= then + 3 for now, then in zip(after, before)), (before, after)
    dist.destroy_process_group()


def ranks_that_differ(ranks):
    """Where some ranks give other parts of symmetric memory, or none, the call copies."""
    group = _group(ranks, "differ")
    both, last = _symmetric(group, 2 * COUNT), ranks.rank == ranks.size - 1
    first, second = both[:COUNT], both[COUNT:]
    wanted = torch.full((COUNT,), float(ranks.size))
    with loads() as found:
        for tensor in (first, second):
            dist.all_reduce(tensor.fill_(1))
            equal(tensor, wanted)
    assert found.uses > 0 and found.copies == 0, vars(found)
    with loads() as found:
        for tensor in (second if last else first, torch.ones(COUNT) if last else first):
            dist.all_reduce(tensor.fill_(1))
            equal(tensor, wanted)
    assert found.uses == 0 and found.copies > 0, vars(found)
    another = _symmetric(group).fill_(1)
    dist.all_reduce(another if last else first.fill_(1))
    equal(another if last else first, wanted)
    dist.destroy_process_group()


def promised(ranks):
    """Where ranks promise to give the same parts, they use them and do not ask one another first."""
    options = mscclc.torch.Options(symmetric=True)
    group, size = _group(ranks, "promised", pg_options=options), ranks.size
    whole = _symmetric(group, 2 * size * COUNT)
    rows, part = whole[: size * COUNT].view(size, COUNT), whole[size * COUNT + 5 :][:COUNT]
    asked = _small_calls()
    with loads() as found:
        dist.all_reduce(part.fill_(ranks.rank + 1))
        equal(part, torch.full((COUNT,), size * (size + 1) / 2))
        rows[ranks.rank] = ranks.rank + 1
        dist.all_gather_into_tensor(rows, rows[ranks.rank])
        equal(rows.flatten(), _rows(ranks, COUNT))
        dist.reduce_scatter_tensor(part, rows)
        equal(part, torch.full((COUNT,), float(size * (ranks.rank + 1))))
    assert found.uses > 0 and found.copies == 0, vars(found)
    with loads() as found:
        dist.all_reduce(torch.ones(COUNT))
        dist.all_gather_into_tensor(rows, torch.full((COUNT,), ranks.rank + 1.0))
        equal(rows.flatten(), _rows(ranks, COUNT))
    assert found.uses == 0 and found.copies > 0, vars(found)
    another = _symmetric(group).fill_(1)
    del whole, rows, part
    dist.all_reduce(another)
    equal(another, torch.full((COUNT,), float(size)))
    assert _small_calls() == asked
    dist.destroy_process_group()


def _small_calls():
    """How many calls of less than 4 KiB have picked a plan."""
    with open(LOG) as log:
        calls = re.findall(r" of ([0-9]+) bytes takes ", log.read())
    return sum(int(size) < 4096 for size in calls)


CHECKS = [
    whole_and_views, as_by_copies, one_of_two, of_our_class, of_another_group, groups_made_again,
    nothing_stays, ranks_that_differ, promised,
]  # fmt: skip
