"""Groups whose ranks change: torch's reconfigure(), since 2.15. Checks make their own groups."""

import datetime

import torch
import torch.distributed as dist
from checks import equal, init, refused

import mscclc

ALONE = True


class Changing:
    """A group that has no ranks yet, and the handles of all processes."""

    def __init__(self, ranks, name):
        self.ranks = ranks
        init(ranks, name=name, enable_reconfigure=True)
        self.own = dist._get_reconfigure_handle()
        self.store = dist.FileStore(f"{ranks.folder}/{name} handles", ranks.size)
        self.store.set(str(ranks.rank), self.own)
        self.handles = [self.store.get(str(r)).decode() for r in range(ranks.size)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        dist.destroy_process_group()

    def get(self, uuid, handles, **more):
        dist._reconfigure(uuid=uuid, handles=handles, **more).wait()

    def all_are_here(self, place):
        """Returns once all processes have called it; by files, not by the group."""
        self.store.set(f"{place} {self.ranks.rank}", "here")
        for rank in range(self.ranks.size):
            self.store.get(f"{place} {rank}")

    def sums(self):
        """A sum over the ranks that there are, and values of the first one."""
        rank, size = dist.get_rank(), dist.get_world_size()
        found = torch.full((1000,), float(rank + 1))
        dist.all_reduce(found)
        equal(found, torch.full((1000,), size * (size + 1) / 2))
        first = torch.full((5,), float(rank))
        dist.broadcast(first, 0)
        equal(first, torch.zeros(5))


def the_order_of_the_handles_is_that_of_the_ranks(ranks):
    with Changing(ranks, "order") as group:
        assert dist._supports_reconfigure()
        assert torch.ops.mscclc.group_changes(dist.group.WORLD.group_name, torch.device("cpu"))
        assert len(set(group.handles)) == ranks.size, group.handles
        refused(lambda: dist.all_reduce(torch.ones(3)), "has no ranks: reconfigure() gives it some")
        group.get(1, group.handles[::-1])
        assert dist.get_rank() == ranks.size - 1 - ranks.rank
        assert dist.get_world_size() == ranks.size
        group.sums()


def ranks_go_and_come_back(ranks):
    with Changing(ranks, "go") as group:
        group.get(1, set(group.handles))
        group.sums()
        if ranks.rank < 2:
            group.get(2, group.handles[:2])
        else:
            group.get(2, [group.own])
        assert dist.get_world_size() == (2 if ranks.rank < 2 else 1)
        group.sums()
        group.get(3, group.handles)
        assert dist.get_rank() == ranks.rank
        group.sums()
        # Messages of two ranks, too, and calls that have not been waited for.
        if ranks.rank < 2:
            got = torch.zeros(4)
            works = dist.batch_isend_irecv([
                dist.P2POp(dist.isend, torch.full((4,), float(ranks.rank)), 1 - ranks.rank),
                dist.P2POp(dist.irecv, got, 1 - ranks.rank),
            ])  # fmt: skip
            for work in works:
                work.wait()
            equal(got, torch.full((4,), float(1 - ranks.rank)))
        late = torch.ones(100)
        work = dist.all_reduce(late, async_op=True)
        group.get(4, group.handles)
        work.wait()
        equal(late, torch.full((100,), float(ranks.size)))


def ranks_that_have_failed_are_left_behind(ranks):
    """A rank aborts while others wait for it: their call is an error, and they go on without it."""
    with Changing(ranks, "fail") as group:
        group.get(1, group.handles)
        group.sums()
        group.all_are_here("summed")  # or a call that has not ended everywhere would fail, too
        if ranks.rank == 2:
            dist.group.WORLD._get_backend(torch.device("cpu")).abort()
            group.get(2, [group.own])
        else:
            refused(lambda: dist.all_reduce(torch.ones(10)), "abort")
            group.get(2, group.handles[:2])
        group.sums()
        group.get(3, group.handles)
        group.sums()


def symmetric_memory_is_of_the_ranks_that_there_are(ranks):
    """Other ones, and the same in another order; with memory of theirs only, sums are right, too."""
    with Changing(ranks, "symmetric") as group:
        for uuid, handles in enumerate((group.handles, group.handles[:2], group.handles[::-1])):
            group.get(uuid + 1, handles if group.own in handles else [group.own])
            memory = mscclc.SymmetricMemory(64, dist.group.WORLD, device="cpu", backend="torch")
            assert (memory.rank, memory.ranks) == (dist.get_rank(), dist.get_world_size())
            memory.buffer()[:] = memory.rank
            memory.barrier()
            for peer in range(memory.ranks):
                equal(memory.buffer(peer), torch.full((64,), peer, dtype=torch.uint8))
            memory.barrier()
            memory.buffer()[:] = 1
            dist.all_reduce(memory.buffer())
            equal(memory.buffer(), torch.full((64,), memory.ranks, dtype=torch.uint8))
            if uuid != 1:  # or it is kept while the group gets other ranks
                memory.close()


def refusals(ranks):
    with Changing(ranks, "refusals") as group:
        refused(lambda: group.get(1, ["mscclc/absent"]), "handle of this rank", "not one of those given")
        refused(lambda: group.get(2, [*group.handles, group.handles[0]]), "is named twice")
        group.get(3, group.handles)
        refused(lambda: group.get(3, group.handles), "uuid 3 was used before")
        group.sums()  # all of that has changed nothing


def who_does_not_come_is_waited_for_no_longer_than_said(ranks):
    with Changing(ranks, "late") as group:
        absent = "mscclc/late/absent"
        soon = datetime.timedelta(milliseconds=300)
        refused(lambda: group.get(1, [absent, *group.handles], timeout=soon),  # the first one is waited for first
                f"{absent} has not come within 300 ms")  # fmt: skip
        refused(lambda: dist.all_reduce(torch.ones(3)), "has no ranks")
        group.get(2, group.handles)
        group.sums()


def fixed_groups_refuse(ranks):
    init(ranks, name="fixed")
    assert not dist._supports_reconfigure()
    assert not torch.ops.mscclc.group_changes(dist.group.WORLD.group_name, torch.device("cpu"))
    refused(dist._get_reconfigure_handle, "without enable_reconfigure=True")
    refused(lambda: dist._reconfigure(uuid=1, handles=["any"]), "without enable_reconfigure=True")
    dist.destroy_process_group()


CHECKS = [
    the_order_of_the_handles_is_that_of_the_ranks,
    ranks_go_and_come_back,
    ranks_that_have_failed_are_left_behind,
    symmetric_memory_is_of_the_ranks_that_there_are,
    refusals,
    who_does_not_come_is_waited_for_no_longer_than_said,
    fixed_groups_refuse,
]
