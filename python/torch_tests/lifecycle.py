"""Groups are made and destroyed: stores, spellings, wrappers, errors. Checks make their own groups."""

import copy
import datetime
import inspect
import os
import subprocess
import sys
import threading
import time
import types
import unittest.mock

import torch
import torch.distributed as dist
from checks import PATIENCE, a_call_is_cut_short, equal, init, refused

import mscclc
import mscclc.torch
from mscclc.torch import adapter, orders
from mscclc.torch.backend import create
from mscclc.torch.options import ends_process

ALONE = True
OUTSIDE = (None, dist.GroupMember.NON_GROUP_MEMBER)  # what ranks of no part get, by version of torch


def _sum(ranks, group=None):
    found = torch.ones(3)
    dist.all_reduce(found, group=group)
    equal(found, torch.full((3,), float(ranks.size)))


def no_adapter(ranks):
    """Before all others, as it is loaded once."""
    place = os.environ.pop("TORCH_MSCCLC_ADAPTER")
    refused(lambda: init(ranks, name="nothing"), "no adapter", "python3 -m mscclc.torch.adapter")
    os.environ["TORCH_MSCCLC_ADAPTER"] = place
    with unittest.mock.patch.object(adapter, "digest_of_sources", lambda: "newer"):
        refused(lambda: init(ranks, name="stale"), "another version", "python3 -m mscclc.torch.adapter")
    with unittest.mock.patch.object(torch.ops, "mscclc", types.SimpleNamespace()):  # as from before there was the check
        refused(lambda: init(ranks, name="older"), "another version", "python3 -m mscclc.torch.adapter")


def spellings(ranks):
    for i, backend in enumerate(["mscclc", "cpu:mscclc", "cpu:mscclc,cuda:mscclc"]):
        init(ranks, backend, f"spelling{i}")
        _sum(ranks)
        dist.destroy_process_group()
    init(ranks, "cpu:gloo,cuda:mscclc", "spelling of two")
    _sum(ranks)
    name = dist.group.WORLD._get_backend(torch.device("cuda")).name()
    assert name == "mscclc", name
    dist.destroy_process_group()


def stores(ranks):
    file = dist.FileStore(f"{ranks.folder}/file store", ranks.size)
    dist.init_process_group("mscclc", store=file, rank=ranks.rank, world_size=ranks.size)
    _sum(ranks)
    dist.destroy_process_group()
    # The same store again: keys of groups that there were do no harm.
    again = dist.PrefixStore("again", file)
    for _ in range(2):
        dist.init_process_group("mscclc", store=again, rank=ranks.rank, world_size=ranks.size)
        _sum(ranks)
        dist.destroy_process_group()
    port = int(open(f"{ranks.folder}/port").read())
    tcp = dist.TCPStore("127.0.0.1", port, ranks.size, ranks.rank == 0)
    dist.init_process_group("mscclc", store=tcp, rank=ranks.rank, world_size=ranks.size)
    _sum(ranks)
    dist.barrier()
    dist.destroy_process_group()
    dist.init_process_group("mscclc", store=dist.HashStore(), rank=0, world_size=1)
    one = torch.ones(3)
    dist.all_reduce(one)
    equal(one, torch.ones(3))
    dist.destroy_process_group()


def many_times(ranks):
    """No descriptor, thread or mapping stays."""
    init(ranks, name="many")

    def once():
        group = dist.new_group()
        _sum(ranks, group)
        dist.destroy_process_group(group)

    for _ in range(5):
        once()
    before = _held()
    for _ in range(100):
        once()
    after, end = _held(), time.monotonic() + 60
    while any(a > b + 3 for a, b in zip(after, before)):  # a thread that has ended is there for a moment
        assert time.monotonic() < end, (before, after)
        after = _held()
    dist.destroy_process_group()


def _held():
    with open("/proc/self/maps") as maps:
        mapped = sum("mscclc" in line and ".so" not in line for line in maps)
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), mapped


def dropped_with_works(ranks):
    """Dropping a group waits for its works, whose tensors need the interpreter at their end."""
    for i in range(5):
        of_group = types.SimpleNamespace(
            store=dist.FileStore(f"{ranks.folder}/dropped{i}", ranks.size), group_rank=ranks.rank,
            group_size=ranks.size, timeout=PATIENCE, group_id=f"dropped{i}",
        )  # fmt: skip
        backend = create(of_group, None)
        for _ in range(30):
            backend.allreduce([torch.ones(1000)])
        del backend, of_group


def parts_of_groups(ranks):
    """split_group(): no group for ranks of no part; a part has its parent's options, and its calls are counted from 1."""
    options = mscclc.torch.Options(fallback=True, order="ranks")
    init(ranks, name="parts", pg_options=options)
    if not dist.group.WORLD._get_backend(torch.device("cpu")).supports_splitting:  # torch 2.8, say
        return dist.destroy_process_group()
    try:  # torch 2.11 asks for a device, later ones do not
        unbound = dist.split_group(split_ranks=[[0]])
        assert (unbound in OUTSIDE) == (ranks.rank != 0)
    except RuntimeError as error:
        assert "No device associated" in str(error), error
    dist.group.WORLD.bound_device_id = torch.device("cuda", 0)  # as device_id of init_process_group() does
    if ranks.rank == 0:  # torch names parts by how many groups a rank has
        dist.new_group([0], use_local_synchronization=True)
    part = dist.split_group(split_ranks=[[0, 2]], timeout=datetime.timedelta(seconds=90), group_desc="some")
    assert (part in OUTSIDE) == (ranks.rank == 1)
    alone = dist.split_group(split_ranks=[[r] for r in range(ranks.size)])
    refused(lambda: dist.split_group(split_ranks=[[0, 1, 7]]), "split_group: there is no rank 7 among 3")
    if ranks.rank != 1:
        _of_a_part(ranks, part)
    one = torch.ones(3)
    dist.all_reduce(one, group=alone)
    equal(one, torch.ones(3))
    # For new_group() there is nothing to split: a group of NCCL is made from nothing.
    split_source = dist.distributed_c10d._get_split_source
    more = len(inspect.signature(split_source.args[0]).parameters) - 1  # torch 2.15 says for which backend
    assert split_source(dist.group.WORLD, *["mscclc"] * more) is None
    some = dist.new_group([1, 2])
    if ranks.rank > 0:
        _sum(types.SimpleNamespace(size=2), some)
    _sum(ranks)
    backend = alone._get_backend(torch.device("cpu"))
    backend.abort()
    refused(lambda: alone.split_group([0]), "mscclc split_group", "was aborted")
    backend.shutdown()
    refused(lambda: alone.split_group([0]), "mscclc split_group", "was shut down")
    dist.destroy_process_group()


def _of_a_part(ranks, part):
    """Of ranks 0 and 2; the names of its groups, devices and calls are right."""
    backend = part._get_backend(torch.device("cpu"))
    assert backend is part._get_backend(torch.device("cuda")) and backend.name() == "mscclc"
    assert (part.rank(), part.size(), part.group_desc) == (ranks.rank // 2, 2, "some")
    assert torch.ops.mscclc.group_timeout(part.group_name, torch.device("cpu")) == 90000
    options = torch._C._distributed_c10d.Backend.Options("mscclc", PATIENCE)
    assert copy.deepcopy(options)._timeout == PATIENCE
    refused(lambda: copy.deepcopy(torch._C._distributed_c10d.Backend.Options("another")), "pickle")
    assert dist.get_process_group_ranks(part) == [0, 2]
    assert orders.in_force(part) == "ranks"
    found = torch.full((3,), float(ranks.rank))
    dist.all_reduce(found, group=part)
    equal(found, torch.full((3,), 2.0))
    dist.broadcast(found, 2, group=part)
    assert backend._get_sequence_number_for_group() == 2
    # gloo has the part, too.
    found = torch.ones(3, dtype=torch.int16)
    refused(lambda: dist.all_reduce(found, group=part), "scalar type")
    backend.shutdown()
    refused(lambda: dist.all_reduce(found, group=part), f"group {part.group_name} was shut down")
    dist.destroy_process_group(part)


def debug_wrapper(ranks):
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    dist.set_debug_level_from_env()
    init(ranks, name="detail")
    _sum(ranks)
    found = [torch.zeros(2) for _ in range(ranks.size)]
    dist.all_gather(found, torch.full((2,), float(ranks.rank)))
    equal(torch.cat(found), torch.arange(float(ranks.size)).repeat_interleave(2))
    dist.destroy_process_group()
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "OFF"
    dist.set_debug_level_from_env()


def _instead_in_two_groups(ranks):
    """Calls that another backend does, at once, and not in the same order on all ranks."""
    options = mscclc.torch.Options(fallback=True)
    groups = [dist.new_group(pg_options=options) for _ in range(2)]
    for group in groups:
        _sum(ranks, group)
    registry = mscclc.Registry()
    registry.set_selector(lambda request: False)  # no plan
    found = [torch.full((3,), i + 1.0) for i in range(2)]
    works = []
    for i in (0, 1) if ranks.rank == 0 else (1, 0):
        works.append(dist.all_reduce(found[i], group=groups[i], async_op=True))
    for work in works:
        work.wait()
    registry.set_selector(None)
    for i, one in enumerate(found):
        equal(one, torch.full((3,), (i + 1.0) * ranks.size))


def _instead_from_there_on(ranks):
    """Of coalesced calls that begin with plans, another backend does only what no plan serves."""
    group = dist.new_group(pg_options=mscclc.torch.Options(fallback=True))
    _sum(ranks, group)
    registry = mscclc.Registry()
    registry.set_selector(lambda request: None if request.bytes < 1024 else False)
    sums = [torch.ones(count) for count in (3, 4096)]
    with dist._coalescing_manager(group, torch.device("cpu")):
        for one in sums:
            dist.all_reduce(one, group=group)
    wholes = [torch.ones(count * ranks.size) for count in (3, 4096)]
    parts = [whole.chunk(ranks.size)[ranks.rank] for whole in wholes]
    with dist._coalescing_manager(group, torch.device("cpu")):
        for part, whole in zip(parts, wholes):
            dist.reduce_scatter_tensor(part, whole, group=group)
    registry.set_selector(None)
    for one in (*sums, *parts):
        equal(one, torch.full_like(one, float(ranks.size)), f"{one.numel()}")


def _no_fallback_where_plans_are_required(ranks):
    os.environ["MSCCLC_REQUIRE_PLAN"] = "1"
    group = dist.new_group(pg_options=mscclc.torch.Options(fallback=True))
    _sum(ranks, group)
    registry = mscclc.Registry()
    registry.set_selector(lambda request: False)  # no plan
    refused(lambda: dist.all_reduce(torch.ones(3), group=group), "no plan serves")
    registry.set_selector(None)
    _sum(ranks, group)
    del os.environ["MSCCLC_REQUIRE_PLAN"]


def fallback(ranks):
    init(ranks, name="fallback", pg_options=mscclc.torch.Options(fallback=True))
    _sum(ranks)
    # gloo has no such reduction either; the error is gloo's.
    refused(lambda: dist.all_reduce(torch.ones(3, dtype=torch.int16)), "scalar type")
    _sum(ranks)
    _instead_in_two_groups(ranks)
    _instead_from_there_on(ranks)
    _no_fallback_where_plans_are_required(ranks)
    dist.destroy_process_group()
    refused(lambda: init(ranks, name="wrong", pg_options=7), "mscclc.torch.Options")
    os.environ["TORCH_MSCCLC_FALLBACK"] = "1"
    assert mscclc.torch.Options().fallback
    os.environ["TORCH_MSCCLC_FALLBACK"] = "yes"
    refused(mscclc.torch.Options, "0 or 1, not 'yes'")
    del os.environ["TORCH_MSCCLC_FALLBACK"]
    assert not mscclc.torch.Options().fallback and not mscclc.torch.Options().symmetric
    os.environ["TORCH_MSCCLC_SYMMETRIC"] = "1"
    assert mscclc.torch.Options() == mscclc.torch.Options(symmetric=True)
    del os.environ["TORCH_MSCCLC_SYMMETRIC"]


def timeouts(ranks):
    init(ranks, name="timeout")
    dist.barrier()
    group = dist.new_group()
    group.set_timeout(datetime.timedelta(milliseconds=300))
    if ranks.rank == 0:  # the others do not come
        refused(lambda: _sum(ranks, group), "all_reduce 1 of rank 0", "within")
    dist.barrier()
    late = dist.new_group()
    _sum(ranks, late)
    if ranks.rank == 0:
        work = dist.all_reduce(torch.ones(3), group=late, async_op=True)
        refused(lambda: work.wait(datetime.timedelta(milliseconds=300)) and None, "300 ms")
    dist.barrier()
    dist.destroy_process_group()


def aborts(ranks):
    init(ranks, name="abort")
    group = dist.new_group()
    _sum(ranks, group)
    backend = group._get_backend(torch.device("cpu"))
    if ranks.rank == 0:
        work = dist.all_reduce(torch.ones(3), group=group, async_op=True)
        ending = threading.Timer(0.3, backend.abort)
        ending.start()
        refused(work.wait, "was aborted")
        ending.join()
    dist.barrier()
    if ranks.rank != 0:  # they learn of it
        refused(lambda: _sum(ranks, group), "aborted")
    backend.shutdown()
    backend.shutdown()
    refused(lambda: _sum(ranks, group), "shut down")
    dist.barrier()
    dist.destroy_process_group()


def aborts_before_ranks_have_met(ranks):
    """What waits for ranks that do not come ends, now and later, whichever rank it is."""
    init(ranks, name="abort early")
    dist.barrier()
    for waiting in (0, ranks.size - 1):
        group = dist.new_group()
        backend = group._get_backend(torch.device("cpu"))
        if ranks.rank == waiting:
            work = dist.all_reduce(torch.ones(3), group=group, async_op=True)
            ending = threading.Timer(0.3, backend.abort)
            ending.start()
            refused(work.wait, "was aborted")
            ending.join()
            refused(lambda: _sum(ranks, group), "was aborted")
            refused(lambda: dist.isend(torch.ones(3), (waiting + 1) % ranks.size, group=group), "was aborted")
        dist.barrier()
        dist.destroy_process_group(group)
    dist.destroy_process_group()


def aborts_before_a_message_is_met(ranks):
    init(ranks, name="abort message")
    group = dist.new_group()
    _sum(ranks, group)
    if ranks.rank == 0:
        work = dist.isend(torch.ones(3), 1, group=group)
        ending = threading.Timer(0.3, group._get_backend(torch.device("cpu")).abort)
        ending.start()
        refused(work.wait, "was aborted")
        ending.join()
    dist.barrier()
    dist.destroy_process_group()


def barriers_that_name_devices(ranks):
    """Without a GPU they are on the host, and leave nothing that a later call or the end meets."""
    init(ranks, name="named devices")
    _sum(ranks)
    options = dist.BarrierOptions()
    options.device_ids = [0]
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    for _ in range(2):
        dist.barrier(device_ids=[0])
        backend.barrier(options).wait()
        dist.barrier()
    options.device_ids = [-3]
    refused(lambda: backend.barrier(options), "no GPU -3")
    _sum(ranks)
    dist.destroy_process_group()


def timeouts_that_are_set_later(ranks):
    init(ranks, name="set timeout")
    dist.barrier()
    group = dist.new_group(timeout=PATIENCE)
    _sum(ranks, group)
    refused(lambda: group.set_timeout(2 * PATIENCE), f"timeout of {1000 * int(PATIENCE.total_seconds())} ms")
    group.set_timeout(datetime.timedelta(milliseconds=300))
    if ranks.rank == 0:  # the others do not come
        refused(lambda: _sum(ranks, group), "all_reduce 2 of rank 0", "within 300 ms")
    dist.barrier()
    early = dist.new_group()
    early.set_timeout(2 * PATIENCE)
    _sum(ranks, early)
    dist.destroy_process_group()


def after_fork(ranks):
    """A child is refused, and ends; the parent goes on."""
    init(ranks, name="fork")
    _sum(ranks)
    child = os.fork()
    if child == 0:
        try:
            refused(lambda: _sum(ranks), "before fork()")
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    _sum(ranks)
    dist.destroy_process_group()


ENDS = """
import sys
import torch, torch.distributed as dist
import mscclc.torch
dist.init_process_group("mscclc", init_method=f"file://{sys.argv[1]}", rank=int(sys.argv[2]),
                        world_size=int(sys.argv[3]))
for _ in range(50):
    dist.all_reduce(torch.ones(10000), async_op=True).get_future().then(lambda done: done.value())
"""


def the_end_of_the_interpreter(ranks):
    """It comes after what works need it for: here callbacks. Nothing was waited for or destroyed."""
    done = subprocess.run(
        [sys.executable, "-c", ENDS, f"{ranks.folder}/ends", str(ranks.rank), str(ranks.size)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done


def sizes_that_differ(ranks):
    """All ranks get an error, in bounded time."""
    init(ranks, name="sizes")
    dist.barrier()
    group = dist.new_group()
    _sum(ranks, group)
    group.set_timeout(datetime.timedelta(seconds=15))
    refused(lambda: dist.all_reduce(torch.ones(3 if ranks.rank == 0 else 1 << 20), group=group))
    dist.barrier()
    dist.destroy_process_group()


def a_rank_that_dies(ranks):
    """The last check: one rank ends the process."""
    init(ranks, name="death")
    _sum(ranks)
    open(f"{ranks.folder}/summed.{ranks.rank}", "w").close()
    if ranks.rank == ranks.size - 1:
        while not all(os.path.exists(f"{ranks.folder}/summed.{r}") for r in range(ranks.size)):
            time.sleep(0.01)  # or the others might not see the end of their first
        ranks.die()
    refused(lambda: _sum(ranks), "all_reduce 2", "peer failed")  # not a timeout


def calls_that_are_cut_short(ranks):
    """On the host they end the process where it is asked for; without that they are errors."""
    for handling, ends in (("1", True), ("0", False), (None, False)):
        a_call_is_cut_short(ranks, "mscclc", "def call(): dist.all_reduce(torch.ones(3))", handling, ends)
    name = "TORCH_MSCCLC_ASYNC_ERROR_HANDLING"
    for value, where in (("", 1), ("0", 0), ("1", 2)):
        with unittest.mock.patch.dict(os.environ, {name: value}):
            assert ends_process() == where, value
    with unittest.mock.patch.dict(os.environ, {name: "yes"}):
        refused(lambda: init(ranks, name="wrong handling"), f"{name} is 0 or 1, not 'yes'")


CHECKS = [
    no_adapter, spellings, stores, many_times, dropped_with_works, parts_of_groups, debug_wrapper, fallback,
    timeouts, timeouts_that_are_set_later, aborts, aborts_before_ranks_have_met,
    aborts_before_a_message_is_met, barriers_that_name_devices, after_fork, the_end_of_the_interpreter,
    calls_that_are_cut_short, sizes_that_differ, a_rank_that_dies,
]  # fmt: skip
