"""Symmetric memory on the host device: torch's interface with our backend, our class over torch."""

import ctypes
import datetime
import gc
import itertools
import os
import threading
import types
from unittest import mock

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm
from checks import PATIENCE, equal, init, refused
from torch._C._distributed_c10d import _register_process_group, _resolve_process_group

import mscclc
import mscclc.torch.symmetric
from mscclc.symmetric import choice, of_torch, teams

ALONE = True


def _group(ranks, name, **more):
    init(ranks, name=name, **more)
    return dist.group.WORLD


def _registered(name):
    try:
        return _resolve_process_group(name)
    except RuntimeError:
        return None


def chosen_by_torch(ranks):
    """Before all others, as torch takes no second choice after the first use."""
    refused(lambda: symm.set_backend("FOO"), "FOO")
    symm.set_backend("MSCCLC")
    mscclc.torch.symmetric.register()
    assert symm.get_backend(torch.device("cpu")) == "MSCCLC"


def every_rank_reads_every_peer(ranks):
    group = _group(ranks, "read")
    tensor = symm.empty(256, 512, dtype=torch.float32, device="cpu")
    tensor.fill_(ranks.rank + 200)
    handle = symm.rendezvous(tensor, group)
    assert (handle.rank, handle.world_size) == (ranks.rank, ranks.size)
    assert handle.buffer_size >= tensor.nbytes and handle.multicast_ptr == 0
    assert handle.buffer_ptrs[ranks.rank] == tensor.data_ptr()
    assert symm.rendezvous(tensor, group.group_name).buffer_ptrs == handle.buffer_ptrs
    handle.barrier()
    for peer in range(ranks.size):
        found = handle.get_buffer(peer, (256, 512), torch.float32)
        equal(found, torch.full((256, 512), peer + 200.0), f"rank {peer}")
    handle.barrier()
    words = "Invalid" if torch.__version__ < torch.torch_version.TorchVersion("2.14") else "rank must be in"
    refused(lambda: handle.get_buffer(ranks.size, (1,), torch.float32), words)
    refused(lambda: handle.get_buffer(0, (256, 513), torch.float32), "524288")
    dist.destroy_process_group()


def who_sees_a_write(ranks):
    """A write to the own tensor changes no peer's, one to a peer's changes only that peer's."""
    group = _group(ranks, "write")
    tensor = symm.empty(ranks.size, dtype=torch.int64, device="cpu").zero_()
    handle = symm.rendezvous(tensor, group)
    view = [handle.get_buffer(p, (ranks.size,), torch.int64) for p in range(ranks.size)]

    def seen():
        handle.barrier()
        found = torch.stack(view)
        handle.barrier()
        return found

    expected = torch.zeros(ranks.size, ranks.size, dtype=torch.int64)
    equal(seen(), expected)
    tensor[0] = 10 + ranks.rank
    expected[:, 0] = 10 + torch.arange(ranks.size)
    equal(seen(), expected)
    view[(ranks.rank + 1) % ranks.size][ranks.rank] = 100 + ranks.rank
    for p in range(ranks.size):
        expected[(p + 1) % ranks.size][p] = 100 + p
    equal(seen(), expected)
    equal(tensor, expected[ranks.rank])
    dist.destroy_process_group()


def signals(ranks):
    group = _group(ranks, "signals")
    tensor = symm.empty(4, dtype=torch.float32, device="cpu").zero_()
    handle = symm.rendezvous(tensor, group)
    left, right = (ranks.rank - 1) % ranks.size, (ranks.rank + 1) % ranks.size
    for channel in (0, 3):
        handle.get_buffer(right, (4,), torch.float32).fill_(ranks.rank + channel)
        handle.put_signal(right, channel)
        handle.wait_signal(left, channel)
        equal(tensor, torch.full((4,), float(left + channel)))
        handle.barrier(channel)
    refused(lambda: handle.wait_signal(left, 5, timeout_ms=50), "within 50 ms")
    most = symm.get_signal_pad_size() // 4 // ranks.size
    refused(lambda: handle.barrier(most), f"no channel {most}", f"room for {most}")
    refused(lambda: handle.put_signal(ranks.size), f"no rank {ranks.size}")
    handle.barrier(most - 1)
    # What has been waited for is zero again. (Not a barrier of the pads that are looked at.)
    dist.barrier()
    assert int(handle.get_signal_pad(ranks.rank).sum()) == 0
    dist.barrier()
    dist.destroy_process_group()


def other_threads_go_on(ranks):
    """While one thread waits for ranks, another one does what they wait for."""
    group = _group(ranks, "threads")
    word, peers = torch.ones(1), range(1, ranks.size)

    def meeting(call):
        """Other ranks come when a thread of rank 0 has called them."""
        if ranks.rank != 0:
            dist.recv(word, 0)
            return call()
        caller = threading.Timer(0.1, lambda: [dist.send(word, peer) for peer in peers])
        caller.start()
        result = call()
        caller.join()
        return result

    tensor = symm.empty(4, dtype=torch.float32, device="cpu").zero_()
    handle = meeting(lambda: symm.rendezvous(tensor, group))
    meeting(handle.barrier)
    meeting(lambda: handle.wait_signal(1) if ranks.rank == 0 else handle.put_signal(0))
    for peer in peers[1:]:
        if ranks.rank == 0:
            handle.wait_signal(peer)
    dist.barrier()
    dist.destroy_process_group()


def parts_and_shapes(ranks):
    group = _group(ranks, "parts")
    tensor = symm.empty(64, dtype=torch.int32, device="cpu").fill_(ranks.rank)
    with mscclc.SymmetricMemory.of(tensor[16:32], group, backend="torch") as part:
        assert part.bytes == 64 and part.address() == tensor[16:].data_ptr()
        part.buffer((ranks.rank + 1) % ranks.size).view(torch.int32)[1] = 77
        part.barrier()
        expected = torch.full((64,), ranks.rank, dtype=torch.int32)
        expected[17] = 77
        equal(tensor, expected)
        part.barrier()
    for shape in ((), (0,), (3, 0)):
        some = symm.empty(shape, dtype=torch.float32, device="cpu")
        assert some.shape == torch.Size(shape)
    with mscclc.SymmetricMemory(0, group, device="cpu", backend="torch") as empty:
        empty.barrier()
        assert empty.bytes == 0 and empty.address(0) == 0 and empty.buffer(0).numel() == 0
    dist.destroy_process_group()


def of_sizes_that_differ(ranks):
    """An error on all ranks, after which the group goes on."""
    group = _group(ranks, "sizes")
    tensor = symm.empty(64 + ranks.rank, dtype=torch.uint8, device="cpu")
    call = lambda: symm.rendezvous(tensor, group)  # noqa: E731
    refused(call, "as many bytes", "64 on rank 0 and 65 on rank 1")
    again = symm.empty(64, dtype=torch.uint8, device="cpu")
    symm.rendezvous(again, group).barrier()
    dist.destroy_process_group()


def not_symmetric(ranks):
    """torch gives None; our class says what is wrong."""
    group = _group(ranks, "plain")
    make, of = mscclc.SymmetricMemory, mscclc.SymmetricMemory.of
    plain = torch.zeros(4)
    refused(lambda: of(plain, group, backend="torch"), "not lie in symmetric memory 'torch'")
    refused(lambda: of(b"1234", group, backend="torch"), "is a tensor, not bytes")
    good = symm.empty(4, 4, dtype=torch.float32, device="cpu")
    refused(lambda: of(good.t(), group, backend="torch"), "contiguous")
    assert _registered(teams.name_of(group)) is None
    refused(lambda: symm.rendezvous(good, "no such group"), "no such group")
    refused(lambda: make(4, "no such", backend="torch"), "no process group 'no such'")
    refused(lambda: make(4, 7, backend="torch"), "not int")
    dist.destroy_process_group()


def handles_of_others(ranks):
    """What torch's handles say of NCCL's memory, which may be mapped twice, and which lack barriers."""
    tensor, gpu = torch.zeros(64, dtype=torch.uint8, device="cpu"), torch.device("cuda")
    begin = tensor.data_ptr()

    def offset(own, size):
        ops = types.SimpleNamespace(symmetric_address=lambda handle, rank: own,
                                    symmetric_size=lambda handle: size)  # fmt: skip
        with mock.patch.object(of_torch, "_ops", lambda: ops):
            return of_torch._offset(tensor[8:], None, 0)

    assert [offset(begin, 64), offset(begin - 16, 128), offset(0, 64)] == [8, 24, 0]
    assert offset(begin + 4096, 64) == 8
    refused(lambda: offset(begin + 4096, 128), "gives no address of which")
    for chosen, lacks in (("NCCL", True), ("NVSHMEM", True), ("CUDA", False), ("MSCCLC", False)):
        with mock.patch.object(symm, "get_backend", lambda device: chosen):  # noqa: B023
            assert of_torch._lacks_barriers("torch", gpu) == lacks
    found = [of_torch._lacks_barriers(name, gpu) for name in ("native", "cuda", "nccl", "nvshmem")]
    assert found == [False, False, True, True]


def names(ranks):
    group = _group(ranks, "names")
    make = mscclc.SymmetricMemory
    for name in ("cuda", "nccl", "nvshmem"):
        with _process_without_a_choice():
            call = lambda: make(4, group, device="cpu", backend=name)  # noqa: B023, E731
            refused(call, f"{name!r} is of GPUs", "cpu")
    gpu = torch.device("cuda")  # what is asked before a GPU is used
    refused(lambda: of_torch._check("nccl", group, gpu), "'nccl' needs a group", "backend 'nccl'")
    with mock.patch.object(symm, "is_nvshmem_available", lambda: False):
        refused(lambda: of_torch._check("nvshmem", group, gpu), "needs libnvshmem_host.so.3")
    with _process_without_a_choice():
        for name in ("native", "torch"):
            choice._kept = None
            with make(4, group, device="cpu", backend=name) as memory:
                assert memory.backend == name == mscclc.symmetric.chosen()
                memory.buffer()[:] = ranks.rank
                memory.barrier()
                for peer in range(ranks.size):
                    equal(memory.buffer(peer), torch.full((4,), peer, dtype=torch.uint8))
                memory.barrier()
        refused(lambda: make(4, group, backend="native"), "'torch'; it cannot be 'native', too")
        choice._kept = None
        os.environ[choice.VARIABLE] = "torch"
        make(4, group, device="cpu").close()
        del os.environ[choice.VARIABLE]
        assert mscclc.symmetric.chosen() == "torch"
    dist.destroy_process_group()


class _process_without_a_choice:
    def __enter__(self):
        self.kept, choice._kept = choice._kept, None

    def __exit__(self, *what):
        choice._kept = self.kept


def names_of_groups(ranks):
    """A group is registered under a name of its own while it has memory, and not longer."""
    group = _group(ranks, "groups")
    name = teams.name_of(group)
    assert name.startswith("mscclc/symmetric/") and _registered(name) is None
    first = mscclc.SymmetricMemory(4, group, device="cpu", backend="torch")
    assert _registered(name) is group
    second = mscclc.SymmetricMemory(4, group.group_name, device="cpu", backend="torch")
    first.close()
    assert _registered(name) is group
    del second
    gc.collect()
    assert _registered(name) is None
    # That of another is left as it is.
    other = dist.new_group(backend="gloo")
    dist.barrier(other)  # else one rank may be gone before another has connected to it
    _register_process_group(name, other)
    refused(lambda: mscclc.SymmetricMemory(4, group, device="cpu", backend="torch"), name)
    assert _registered(name) is other
    torch._C._distributed_c10d._unregister_process_group(name)
    dist.destroy_process_group()


def outsiders(ranks):
    """A rank that is not in a group registers nothing."""
    _group(ranks, "outside")
    inner = dist.new_group(list(range(ranks.size - 1)))
    if ranks.rank == ranks.size - 1:
        call = lambda: mscclc.SymmetricMemory(4, inner, device="cpu", backend="torch")  # noqa: E731
        refused(call, "not in the group")
        assert not teams._teams
    else:
        with mscclc.SymmetricMemory(4, inner, device="cpu", backend="torch") as memory:
            assert memory.ranks == ranks.size - 1 and memory.rank == ranks.rank
            memory.barrier()
    dist.barrier()
    dist.destroy_process_group()


def groups_made_again(ranks):
    """Groups of one name: what is mapped is the new one's."""
    for round in range(3):
        group = _group(ranks, f"again {round}")
        tensor = symm.empty(8, dtype=torch.int32, device="cpu").fill_(10 * round + ranks.rank)
        if round == 0:
            kept, old_name = tensor, group.group_name
        assert group.group_name == old_name
        for one in (tensor, kept):
            handle = symm.rendezvous(one, group)
            handle.barrier()
            peer = (ranks.rank + 1) % ranks.size
            found = handle.get_buffer(peer, (8,), torch.int32)
            wanted = peer + (10 * round if one is tensor else 0)
            equal(found, torch.full((8,), wanted, dtype=torch.int32), f"round {round}")
            handle.barrier()
        dist.destroy_process_group()


def all_orders_of_the_end(ranks):
    """Tensor, handle and group go in any order; a view of ours keeps what it shows."""
    for i, order in enumerate(itertools.permutations(range(3))):
        group = _group(ranks, f"order {i}")
        memory = mscclc.SymmetricMemory(64, group, device="cpu", backend="torch")
        view = memory.buffer((ranks.rank + 1) % ranks.size)
        view[0] = 5
        memory.barrier()
        for step in order:
            if step == 0:
                memory.close()
            elif step == 1:
                del view
            else:
                group = None
                dist.destroy_process_group()
            if step != 1 and "view" in dir():
                assert int(view[0]) == 5
        del memory
        gc.collect()


def ranks_let_go_at_different_times(ranks):
    """A group's memory has one meeting: what is made next does not depend on what a rank still holds."""
    group = _group(ranks, "let go")
    make = {
        "class": lambda: mscclc.SymmetricMemory(64, group, device="cpu", backend="torch"),
        "torch": lambda: symm.rendezvous(symm.empty(64, dtype=torch.uint8, device="cpu"), group),
    }
    for first, second in itertools.product(make, make):
        held = make[first]()
        if ranks.rank == 0:
            del held
            gc.collect()
        make[second]().barrier()
        held = None
    dist.barrier()
    dist.destroy_process_group()


def a_barrier_waits_as_long_as_the_group(ranks):
    _group(ranks, "patience")
    dist.barrier()
    group = dist.new_group(timeout=PATIENCE)
    memory = mscclc.SymmetricMemory(4, group, device="cpu", backend="torch")
    memory.barrier()
    group.set_timeout(datetime.timedelta(milliseconds=300))
    if ranks.rank == 0:  # the others do not come
        refused(memory.barrier, "within 300 ms")
    dist.barrier()
    memory.close()
    dist.destroy_process_group()


def of_a_part(ranks):
    """By split_group(), where ranks have unlike numbers of groups, by which torch names it and its store."""
    world = _group(ranks, "part")
    world.bound_device_id = torch.device("cuda", 0)
    if ranks.rank == 0:
        dist.new_group([0], use_local_synchronization=True)
    part = dist.split_group(split_ranks=[list(range(ranks.size))])
    world.bound_device_id = None
    memory = mscclc.SymmetricMemory(1, part, device="cpu", backend="torch")
    memory.buffer()[0] = ranks.rank + 1
    memory.barrier()
    assert [int(memory.buffer(peer)[0]) for peer in range(ranks.size)] == list(range(1, ranks.size + 1))
    memory.barrier()
    memory.close()
    dist.destroy_process_group()


def teams_end_with_their_groups(ranks):
    """Groups of all backends, and memory that has gone before or goes after them."""
    for backend in ("mscclc", "gloo"):
        for i in range(10):
            group = _group(ranks, f"{backend} ends {i}", backend=backend)
            memory = mscclc.SymmetricMemory(64, group, device="cpu", backend="torch")
            memory.barrier()
            if i % 2:
                del memory
            del group
            dist.destroy_process_group()
            if i == 3:
                before = _held()
        after = _held()
        memory = None
        assert all(a <= b + 3 for a, b in zip(after, before)), (before, after)


def nothing_stays(ranks):
    group = _group(ranks, "many")

    def once():
        tensor = symm.empty(4096, dtype=torch.uint8, device="cpu")
        symm.rendezvous(tensor, group).barrier()

    for _ in range(5):
        once()
    dist.barrier()
    before = _held()
    for _ in range(50):
        once()
    dist.barrier()
    after = _held()
    assert all(a <= b + 3 for a, b in zip(after, before)), (before, after)
    dist.destroy_process_group()


def _held():
    with open("/proc/self/maps") as maps:
        mapped = sum("memfd" in line for line in maps)
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), mapped


def with_gloo(ranks):
    """The group may be any backend's: symmetric memory needs its store only."""
    group = _group(ranks, "gloo", backend="gloo")
    tensor = symm.empty(3, dtype=torch.float64, device="cpu").fill_(ranks.rank)
    handle = symm.rendezvous(tensor, group)
    handle.barrier()
    for peer in range(ranks.size):
        equal(handle.get_buffer(peer, (3,), torch.float64), torch.full((3,), float(peer)).double())
    pointers = (ctypes.c_uint64 * ranks.size).from_address(handle.buffer_ptrs_dev)
    assert list(pointers) == handle.buffer_ptrs
    handle.barrier()
    dist.destroy_process_group()


def a_rank_that_dies(ranks):
    """The last check: one rank ends the process, and waits for its signals end."""
    group = _group(ranks, "death")
    tensor = symm.empty(4, dtype=torch.uint8, device="cpu")
    handle = symm.rendezvous(tensor, group)
    handle.barrier()
    if ranks.rank == ranks.size - 1:
        ranks.die()
    refused(handle.barrier, "peer failed")


CHECKS = [
    chosen_by_torch, every_rank_reads_every_peer, who_sees_a_write, signals, other_threads_go_on,
    parts_and_shapes, of_sizes_that_differ, not_symmetric, handles_of_others, names, names_of_groups, outsiders,
    groups_made_again, all_orders_of_the_end, ranks_let_go_at_different_times,
    a_barrier_waits_as_long_as_the_group, of_a_part, teams_end_with_their_groups, nothing_stays, with_gloo, a_rank_that_dies,
]  # fmt: skip
