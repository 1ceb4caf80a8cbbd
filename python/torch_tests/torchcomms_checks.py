"""The backend of TorchComms: every method against what it must give, stores, splits, errors.

With TorchComms where it is installed, and else with the fake one.
"""

import importlib.util
import os
import subprocess
import sys
import threading
import warnings
from datetime import timedelta
from unittest import mock

import torch
import torch.distributed as dist
from checks import EXCHANGE, equal, refused

import mscclc
from mscclc.torch import adapter

try:
    from torchcomms import TorchCommBackend  # noqa: F401
except ImportError:
    sys.modules.pop("torchcomms", None)
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake"))
import torchcomms  # noqa: E402
from torchcomms import RedOpType, ReduceOp  # noqa: E402

ALONE = True
DEVICE = torch.get_default_device()
_stores = []


def _comm(ranks, name, **more):
    """A communicator by a store in a file."""
    os.environ.update(TORCHCOMM_RANK=str(ranks.rank), TORCHCOMM_SIZE=str(ranks.size))
    store = more.pop("store", None) or dist.FileStore(f"{ranks.folder}/torchcomms", ranks.size)
    _stores.append(store)  # the file lives as long as one of them
    more.setdefault("timeout", timedelta(seconds=100))
    return torchcomms.new_comm("mscclc", DEVICE, name, store=store, **more)


def _row(rank, count=5):
    return torch.arange(float(count)) + 100 * rank


def found_and_named(ranks):
    """By its entry point: nothing was imported, no variable is set."""
    assert "mscclc.torchcomms" not in sys.modules
    comm = _comm(ranks, "first")
    assert (comm.get_rank(), comm.get_size()) == (ranks.rank, ranks.size)
    assert comm.get_backend() == "mscclc" and comm.get_device() == DEVICE
    comm.finalize()


def every_collective(ranks):
    comm = _comm(ranks, "all")
    me, size = ranks.rank, ranks.size
    rows = [_row(r) for r in range(size)]
    total = sum(rows)

    def made(call, *arguments):
        """Async or not, the result is the same."""
        work = call(*arguments)
        work.wait()
        work.wait()

    for wait in (False, True):
        one = _row(me)
        made(comm.all_reduce, one, ReduceOp.SUM, wait)
        equal(one, total)
        one = _row(me)
        made(comm.reduce, one, size - 1, ReduceOp.SUM, wait)
        equal(one, total if me == size - 1 else rows[me])
        one = _row(me)
        made(comm.broadcast, one, size - 1, wait)
        equal(one, rows[-1])
        found = [torch.zeros(5) for _ in rows]
        made(comm.all_gather, found, _row(me), wait)
        equal(torch.cat(found), torch.cat(rows))
        flat = torch.zeros(5 * size)
        made(comm.all_gather_single, flat, _row(me), wait)
        equal(flat, torch.cat(rows))
        uneven = [torch.zeros(r + 1) for r in range(size)]
        made(comm.all_gather_v, uneven, _row(me, me + 1), wait)
        for r, part in enumerate(uneven):
            equal(part, _row(r, r + 1))
        part = torch.zeros(5)
        made(comm.reduce_scatter, part, [_row(me) + r for r in range(size)], ReduceOp.SUM, wait)
        equal(part, total + size * me)
        part = torch.zeros(5)
        made(comm.reduce_scatter_single, part, torch.cat([_row(me) + r for r in range(size)]),
             ReduceOp.SUM, wait)  # fmt: skip
        equal(part, total + size * me)
        part = torch.zeros(me + 1)
        made(comm.reduce_scatter_v, part, [_row(me, r + 1) for r in range(size)], ReduceOp.SUM, wait)
        equal(part, sum(_row(r, me + 1) for r in range(size)))
        flat = torch.zeros(size)
        made(comm.all_to_all_single, flat, torch.arange(float(size)) + 100 * me, wait)
        equal(flat, torch.tensor([100.0 * r + me for r in range(size)]))
        flat = torch.zeros(size * (me + 1))
        sent = [r + 1 for r in range(size)]
        made(comm.all_to_all_v_single, flat, torch.full((sum(sent),), float(me)), [me + 1] * size,
             sent, wait)  # fmt: skip
        equal(flat, torch.arange(float(size)).repeat_interleave(me + 1))
        found = [torch.zeros(2) for _ in rows]
        made(comm.all_to_all, found, [torch.full((2,), 10.0 * me + r) for r in range(size)], wait)
        equal(torch.stack(found)[:, 0], torch.tensor([10.0 * r + me for r in range(size)]))
        part = torch.zeros(5)
        made(comm.scatter, part, rows if me == 0 else [], 0, wait)
        equal(part, rows[me])
        found = [torch.zeros(5) for _ in rows] if me == 0 else []
        made(comm.gather, found, _row(me), 0, wait)
        if me == 0:
            equal(torch.cat(found), torch.cat(rows))
        made(comm.barrier, wait)
    comm.finalize()


def reductions_types_and_strides(ranks):
    comm = _comm(ranks, "types")
    for dtype in (torch.float32, torch.int32, torch.int8, torch.bfloat16):
        for op, wanted in (
            (ReduceOp.SUM, ranks.size * (ranks.size + 1) // 2), (ReduceOp.MAX, ranks.size),
            (ReduceOp.MIN, 1),
        ):  # fmt: skip
            found = torch.full((1024,), ranks.rank + 1, dtype=dtype)
            comm.all_reduce(found, op, False)
            equal(found, torch.full((1024,), wanted, dtype=dtype), f"{dtype} {op}")
    whole = torch.zeros(4, 6)
    strided = whole[:, ::2]
    strided += ranks.rank
    comm.all_reduce(strided, ReduceOp.SUM, True).wait()
    wanted = torch.zeros(4, 6)
    wanted[:, ::2] = sum(range(ranks.size))
    equal(whole, wanted)
    empty = torch.zeros(0)
    comm.all_reduce(empty, ReduceOp.SUM, False)
    comm.finalize()


def strides_of_every_collective(ranks):
    """Every other element of what is given and written, with nothing in between."""
    comm, me, size = _comm(ranks, "strides"), ranks.rank, ranks.size
    rows = [_row(r) for r in range(size)]
    total = sum(rows)

    def apart(tensor):
        wide = torch.full((2 * tensor.numel(),), -1.0)
        wide[::2] = tensor
        return wide[::2]

    def check(found, wanted, what):
        equal(found, wanted, what)
        wide = found.as_strided((2 * found.numel(),), (1,), found.storage_offset())
        equal(wide[1::2], torch.full((found.numel(),), -1.0), f"beside {what}")

    one = apart(rows[me])
    comm.all_reduce(one, ReduceOp.SUM, False)
    check(one, total, "all_reduce")
    one = apart(rows[me])
    comm.broadcast(one, size - 1, False)
    check(one, rows[-1], "broadcast")
    one = apart(rows[me])
    comm.reduce(one, 0, ReduceOp.SUM, False)
    check(one, total if me == 0 else rows[me], "reduce")
    flat = apart(torch.zeros(5 * size))
    comm.all_gather_single(flat, apart(rows[me]), False)
    check(flat, torch.cat(rows), "all_gather_single")
    found = [apart(torch.zeros(5)) for _ in rows]
    comm.all_gather(found, apart(rows[me]), False)
    for r, part in enumerate(found):
        check(part, rows[r], "all_gather")
    part = apart(torch.zeros(5))
    comm.reduce_scatter_single(part, apart(torch.cat([rows[me]] * size)), ReduceOp.SUM, False)
    check(part, total, "reduce_scatter_single")
    part = apart(torch.zeros(5))
    comm.reduce_scatter(part, [apart(rows[me]) for _ in rows], ReduceOp.SUM, False)
    check(part, total, "reduce_scatter")
    flat = apart(torch.zeros(size))
    comm.all_to_all_single(flat, apart(torch.arange(float(size)) + 100 * me), False)
    check(flat, torch.tensor([100.0 * r + me for r in range(size)]), "all_to_all_single")
    found = [apart(torch.zeros(5)) for _ in rows]
    comm.all_to_all(found, [apart(rows[me] + r) for r in range(size)], False)
    for r, part in enumerate(found):
        check(part, rows[r] + me, "all_to_all")
    part = apart(torch.zeros(5))
    comm.scatter(part, [apart(row) for row in rows] if me == 0 else [], 0, False)
    check(part, rows[me], "scatter")
    found = [apart(torch.zeros(5)) for _ in rows] if me == 0 else []
    comm.gather(found, apart(rows[me]), 0, False)
    for r, part in enumerate(found):
        check(part, rows[r], "gather")
    if size > 1:
        got = apart(torch.zeros(5))
        works = [comm.send(apart(rows[me]), (me + 1) % size, True), comm.recv(got, (me - 1) % size, True)]
        for work in works:
            work.wait()
        check(got, rows[(me - 1) % size], "recv")
    comm.finalize()


def messages(ranks):
    comm = _comm(ranks, "messages")
    if ranks.size > 1:
        ahead, back = (ranks.rank + 1) % ranks.size, (ranks.rank - 1) % ranks.size
        found = torch.zeros(5)
        works = [comm.send(_row(ranks.rank), ahead, True), comm.recv(found, back, True)]
        for work in works:
            work.wait()
        equal(found, _row(back))
        if ranks.rank == 0:
            comm.send(_row(7), 1, False)
        if ranks.rank == 1:
            comm.recv(found, 0, False)
            equal(found, _row(7))
    comm.finalize()


def dropped_works_and_inputs(ranks):
    """Tensors live until the call has ended, and finalize() waits for what is still pending."""
    comm = _comm(ranks, "dropped")
    found = [torch.zeros(1000 * ranks.size) for _ in range(20)]
    for i, one in enumerate(found):
        comm.all_gather_single(one, torch.full((1000,), float(ranks.rank + i)), True)
    comm.finalize()
    for i, one in enumerate(found):
        equal(one, torch.arange(float(ranks.size)).repeat_interleave(1000) + i)


def splits(ranks):
    comm = _comm(ranks, "split")
    everyone = list(range(ranks.size))
    half = comm.split([r for r in everyone if r % 2 == ranks.rank % 2], "half")
    found = torch.ones(3)
    half.all_reduce(found, ReduceOp.SUM, False)
    equal(found, torch.full((3,), float(half.get_size())))
    backwards = half.split(list(reversed(range(half.get_size()))), "backwards")
    assert backwards.get_rank() == half.get_size() - 1 - half.get_rank()
    backwards.barrier(False)
    assert comm.split([], "empty") is None
    refused(lambda: comm.split([*everyone, 0], "twice") and None, "twice")
    refused(lambda: comm.split([ranks.size], "outside") and None, f"no rank {ranks.size}")
    if ranks.size > 1:
        other = (ranks.rank + 1) % ranks.size
        refused(lambda: comm.split([other], "other") and None, f"rank {ranks.rank} is not one of")
    for one in (backwards, half, comm):
        one.finalize()


def several_at_once(ranks):
    """Names that end in digits, and slashes, do not collide; the same name may be used again."""
    store = dist.FileStore(f"{ranks.folder}/several", ranks.size)
    comms = [_comm(ranks, name, store=store) for name in ("foo1", "foo12", "foo", "foo/backend1")]
    works = []
    for i, comm in enumerate(comms):
        works.append((i, torch.full((4,), float(i))))
        works[-1] += (comm.all_reduce(works[-1][1], ReduceOp.SUM, True),)
    for i, found, work in reversed(works):
        work.wait()
        equal(found, torch.full((4,), float(i * ranks.size)))
    for comm in comms:
        comm.finalize()
    _comm(ranks, "foo1", store=store).finalize()


def made_at_the_same_time(ranks):
    """By threads, in any order on each rank: each communicator finds its own peers."""
    store = dist.FileStore(f"{ranks.folder}/together", ranks.size)
    names = [f"together{i}" for i in range(4)]
    made = {}

    def make(name):
        made[name] = _comm(ranks, name, store=store)

    threads = [threading.Thread(target=make, args=(name,)) for name in names[:: 1 - 2 * (ranks.rank % 2)]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, name in enumerate(names):
        found = torch.full((3,), float(i))
        made[name].all_reduce(found, ReduceOp.SUM, False)
        equal(found, torch.full((3,), float(i * ranks.size)), name)
        made[name].finalize()


def plans_of_the_user(ranks):
    """Registered before or after the communicator was made; a selector may leave the choice."""
    if ranks.size != 2:
        return
    registry, plan = mscclc.Registry(), mscclc.compile(EXCHANGE)

    def check(comm):
        found = torch.full((8,), ranks.rank + 1.0)
        comm.all_reduce(found, ReduceOp.SUM, False)
        equal(found, torch.full((8,), 3.0))

    before = _comm(ranks, "before the plan")
    registry.register(plan, "mine")
    after = _comm(ranks, "after the plan")
    for comm in (before, after):
        asked = []
        registry.set_selector(lambda request: asked.append(request.collective) or "mine")  # noqa: B023
        check(comm)
        assert asked == ["allreduce"], asked
    registry.set_selector(lambda request: None)
    check(after)
    registry.set_selector(lambda request: False)
    refused(lambda: check(after), "no plan")
    registry.set_selector(None)
    registry.remove("mine")
    for comm in (before, after):
        check(comm)
        comm.finalize()


def the_current_device_stays(ranks):
    """Calls for another GPU than the current one, errors as well."""
    comm = _comm(ranks, "device")
    other = (DEVICE.index + 1) % torch.cuda.device_count()
    with torch.cuda.device(other):
        found = torch.ones(3)
        comm.all_reduce(found, ReduceOp.SUM, True).wait()
        refused(lambda: comm.all_reduce(torch.ones(3, dtype=torch.int16), ReduceOp.SUM, False), "Short")
        assert torch.cuda.current_device() == other
        torch.cuda.synchronize(DEVICE)
        equal(found, torch.full((3,), float(ranks.size)))
        comm.finalize()
        assert torch.cuda.current_device() == other


def store_of_the_environment(ranks):
    with open(f"{ranks.folder}/port") as port:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port.read())
    os.environ.update(TORCHCOMM_RANK=str(ranks.rank), TORCHCOMM_SIZE=str(ranks.size))
    comms = [torchcomms.new_comm("mscclc", DEVICE, f"env{i}") for i in range(2)]
    for comm in comms:
        found = torch.ones(3)
        comm.all_reduce(found, ReduceOp.SUM, False)
        equal(found, torch.full((3,), float(ranks.size)))
    for comm in comms:
        comm.finalize()
    os.environ["MASTER_PORT"] = "no"
    refused(lambda: torchcomms.new_comm("mscclc", DEVICE, "nowhere") and None, "MASTER_PORT='no'")
    os.environ["TORCHCOMM_RANK"] = "9"
    refused(lambda: torchcomms.new_comm("mscclc", DEVICE, "refused") and None, "TORCHCOMM_RANK=9")


def refusals(ranks):
    comm = _comm(ranks, "refusals")
    refused(lambda: comm.all_reduce(torch.ones(3), ReduceOp.PREMUL_SUM(2.0), False), "PREMUL_SUM")
    refused(lambda: comm.all_reduce(torch.ones(3), ReduceOp(RedOpType.BAND), False), "BAND", "Float")
    short = torch.ones(3, dtype=torch.int16)
    refused(lambda: comm.all_reduce(short, ReduceOp.SUM, False), "mscclc", "Short", "no plan")
    refused(lambda: comm.all_reduce(torch.ones(3, device="meta"), ReduceOp.SUM, False), "meta")
    refused(lambda: comm.broadcast(torch.ones(3), ranks.size, False), f"{ranks.size}")
    refused(lambda: comm.all_gather_single(torch.ones(7), torch.ones(3), False), "elements")
    try:
        comm.all_reduce(short, ReduceOp.SUM, False).wait()
    except NotImplementedError:
        pass
    found = torch.ones(3)  # the communicator is usable
    comm.all_reduce(found, ReduceOp.SUM, False, timeout=timedelta(seconds=100), hints={"a": "b"})
    equal(found, torch.full((3,), float(ranks.size)))
    comm.finalize()
    refused(lambda: comm.finalize(), "finalized")
    refused(lambda: comm.barrier(False), "finalized")
    refused(lambda: _comm(ranks, "hint", hints={"fallback": "yes"}) and None, "0 or 1, not 'yes'")


def fallback(ranks):
    comm = _comm(ranks, "fallback", hints={"fallback": "1"})
    short = torch.ones(3, dtype=torch.int16)
    found = [torch.zeros(3, dtype=torch.int16) for _ in range(ranks.size)]
    comm.all_gather(found, short, False)
    equal(torch.cat(found), torch.ones(3 * ranks.size, dtype=torch.int16))
    theirs = "NCCL" if DEVICE.type == "cuda" else "scalar type"
    refused(lambda: comm.all_reduce(short, ReduceOp.SUM, False), theirs)
    comm.finalize()


def a_late_rank(ranks):
    """Raises by option; without it the process ends (the next check). Communicators are made within
    that time, too, on a busy machine."""
    if ranks.size == 1:
        return
    others = _comm(ranks, "in time")
    comm = _comm(ranks, "late", abort_process_on_timeout_or_error=False, timeout=timedelta(seconds=20))
    if ranks.rank == 0:
        refused(lambda: comm.barrier(False), "group late")  # the library or torch's wait() is first
    others.barrier(False)
    refused(lambda: comm.barrier(False), "group late")  # the others learn of it, too
    refused(comm.finalize)
    others.finalize()


def timeouts_that_are_set_later(ranks):
    """Those of messages, too; a longer one than ranks have met with is an error."""
    comm = _comm(ranks, "set later", abort_process_on_timeout_or_error=False)
    if ranks.size == 1 or not hasattr(comm, "set_timeout"):  # TorchComms may show it to backends only
        return comm.finalize()
    others = _comm(ranks, "meanwhile")
    refused(lambda: comm.set_timeout(timedelta(seconds=200)), "timeout of 100000 ms")
    comm.all_reduce(torch.ones(3), ReduceOp.SUM, False)
    if ranks.rank < 2:  # which meet
        peer = 1 - ranks.rank
        messages = (comm.send, comm.recv) if ranks.rank == 0 else (comm.recv, comm.send)
        for message in messages:
            message(torch.ones(3), peer, False)
    others.barrier(False)
    comm.set_timeout(timedelta(milliseconds=300))
    if ranks.rank == 0:  # the others do not come
        refused(lambda: comm.recv(torch.ones(3), 1, False), "recv", "within 300 ms")
    others.barrier(False)
    comm.set_timeout(timedelta(seconds=100))
    comm.finalize()
    others.finalize()


LATE = """
import os, sys, torch, torchcomms, datetime, time
import torch.distributed as dist
store = dist.FileStore(sys.argv[1], 2)
store.add("here", 1)
while store.add("here", 0) < 2:  # one may have imported torch much later
    time.sleep(0.01)
os.environ.update(TORCHCOMM_RANK=sys.argv[2], TORCHCOMM_SIZE="2")
comm = torchcomms.new_comm("mscclc", torch.device("cpu"), "late", store=store,
                           timeout=datetime.timedelta(seconds=20))
if sys.argv[2] == "0":
    comm.barrier(False)
sys.stdin.read()
os._exit(0)
"""


def the_process_ends(ranks):
    if ranks.rank != 0:
        return
    home = os.path.dirname(os.path.dirname(importlib.util.find_spec("torchcomms").origin))
    environment = {**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{home}"}
    two = [
        subprocess.Popen([sys.executable, "-c", LATE, f"{ranks.folder}/ends", str(rank)],
                         stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        for rank in range(2)
    ]  # fmt: skip
    first = two[0].stderr.read()
    assert two[0].wait() == -6, two[0].returncode
    assert "abort_process_on_timeout_or_error" in first, first
    assert "within 20000 ms" in first or "waited longer than 20 s" in first, first
    two[1].communicate("")


def without_finalize(ranks):
    comm = _comm(ranks, "forgotten")
    comm.barrier(False)
    state = _backend_of(comm)._state
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        state.warn()
    assert "'forgotten' was not finalized" in str(seen[0].message), seen
    state.warn()  # once


def _backend_of(comm):
    """The backend in Python, which TorchComms does not show."""
    import gc

    from mscclc.torchcomms import Backend

    # TorchComms itself keeps those whose init() has failed, too.
    made = (one for one in gc.get_objects() if isinstance(one, Backend))
    return next(one for one in made if getattr(one, "_name", None) == "forgotten")


def the_variable_wins(ranks):
    """In a process of its own: nothing is registered, so that TorchComms loads the library."""
    home = os.path.dirname(os.path.dirname(importlib.util.find_spec("torchcomms").origin))
    program = (
        "import torch, torchcomms\n"
        "try: torchcomms.new_comm('mscclc', torch.device('cpu'), 'x')\n"
        "except RuntimeError as error: print(error)\n"
    )
    environment = {
        **os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{home}",
        "TORCHCOMMS_BACKEND_LIB_PATH_MSCCLC": "/nowhere/libmine.so",
    }  # fmt: skip
    text = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True,
                          text=True)  # fmt: skip
    assert "/nowhere/libmine.so" in text.stdout, text


def a_library_of_another_version(ranks):
    """Before TorchComms makes objects by it."""
    if ranks.rank != 0:
        return
    from mscclc import torchcomms as ours

    def register(path):
        with mock.patch.dict(os.environ, {ours.LIBRARY_VARIABLE: path}):
            ours.register()

    def built_from(digest):
        path = f"{ranks.folder}/lib{digest}.so"
        program = f'extern "C" const char* mscclc_torchcomms_built_from() {{ return "{digest}"; }}'
        command = ["g++", "-shared", "-fPIC", "-x", "c++", "-o", path, "-"]
        subprocess.run(command, input=program, text=True, check=True)
        return path

    anew = "python3 -m mscclc.torch.comms SOURCES FOLDER"
    refused(lambda: register(built_from("older")), "libolder.so is of another version", anew)
    refused(lambda: register(adapter.path()), "is of another version", anew)  # as from before there was the check
    refused(lambda: register(__file__), "torchcomms_checks.py cannot be loaded", anew)
    register(built_from(adapter.digest_of_sources()))


# On a GPU a barrier orders the stream, and the host sees later what has failed.
HOST_ONLY = [a_late_rank, timeouts_that_are_set_later, the_process_ends]
CHECKS = [
    found_and_named, every_collective, reductions_types_and_strides, strides_of_every_collective,
    messages, dropped_works_and_inputs, splits, several_at_once, made_at_the_same_time,
    plans_of_the_user, store_of_the_environment, refusals, fallback, a_late_rank, timeouts_that_are_set_later,
    the_process_ends,
    without_finalize, the_variable_wins, a_library_of_another_version,
]  # fmt: skip
if DEVICE.type == "cuda":
    CHECKS.append(the_current_device_stays)
