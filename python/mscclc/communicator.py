"""Communicators: collectives on buffers of Python, on the host device and on GPUs.

    id = mscclc.unique_id()                                # one process, which sends it to all
    comm = mscclc.Communicator(ranks, id, rank)            # each of them
    comm.allreduce(array.array("f", [1, 2, 3])).wait()     # in place
"""

import ctypes
import math
import os
from collections import deque
from typing import Any, Callable, Optional, Union

from ._arguments import number
from ._arguments import text as as_text
from ._library import HOST, Config, UniqueId, check, library
from ._lifetime import Lifetime
from ._numbers import element_type, order_number
from ._waiting import wait_for
from .collectives import MOST_RANKS, Collectives
from .errors import LibraryError, UsageError
from .externals import rows_of
from .loaded_plan import LoadedPlan
from .memory import DeviceMemory, allocate
from .row_plans import RowPlans
from .work import Work, needs_no_group

__all__ = ["Communicator", "LoadedPlan", "Work", "unique_id"]

MOST_SECONDS = 4_000_000  # milliseconds must fit in 32 bits
_NO_ID = "no id: "  # in a store, before the reason
_PEER_FAILED = 5  # MSCCLC_PEER_FAILED
_MANY = 8  # works of a stream that nothing refers to, before their end is asked for


def unique_id() -> bytes:
    """An id for a communicator that is to be. This process must live until all ranks have come."""
    made = UniqueId()
    check(library().mscclc_unique_id(ctypes.byref(made)))
    return bytes(made)


_IdOrWhyNot = Union[bytes, str]


def shared_id(rank: int, broadcast: Callable[[Optional[_IdOrWhyNot]], _IdOrWhyNot]) -> bytes:
    """Collective: an id that rank 0 makes, and `broadcast` gives to all; the others pass it None. Where
    rank 0 makes none, no rank waits for it: each gets an error."""
    own, failure = None, None
    if rank == 0:
        try:
            own = unique_id()
        except Exception as error:  # the others wait for it
            own, failure = str(error), error
    said = broadcast(own)
    if failure is not None:
        raise failure
    if isinstance(said, str):
        raise LibraryError(_PEER_FAILED, f"rank 0 has made no id: {said}")
    return said


def id_of_group(group: Any) -> bytes:
    """Collective: the same for a group of torch.distributed."""
    import torch.distributed as dist

    def broadcast(own):
        ids = [own]
        dist.broadcast_object_list(ids, group=group, group_src=0)
        return ids[0]

    return shared_id(dist.get_rank(group), broadcast)


class Communicator(Collectives):
    """A rank among others. For one thread at a time: another one that comes meanwhile gets a
    LibraryError, and the first is not disturbed.

    Buffers have Python's buffer protocol (array.array, bytearray, NumPy's arrays), DLPack or
    `__cuda_array_interface__`, and are contiguous and of the communicator's device. Their element
    type is that of the call, or `dtype` says it. On a GPU calls are queued on `stream`, a
    cudaStream_t as an int, of which 0 is the default stream; on the host there is no stream.

    `symmetric=True` promises that both buffers lie in SymmetricMemory of this communicator, and are
    the same parts of it on all ranks: then they are used where they lie, without copies.
    """

    _handle = None
    _forgotten: list = []  # of communicators that were dropped without close(), which go on

    def __init__(
        self, ranks: int, id: bytes, rank: int, *, device: Optional[int] = None,
        timeout: Optional[float] = None, order: Optional[str] = None, ends_process: bool = False,
    ):  # fmt: skip
        """Collective over all ranks of the id. `device`: the GPU; None: the host. `timeout`: seconds
        that this rank waits for others, also until all have come; for that, MSCCLC_TIMEOUT of the process
        that has made the id is a limit, too. `order`: what the bits of sums keep to, of calls that do not say it
        ("any", "replicated", "ranks", "tree", "exact"); None: as MSCCLC_ORDER says. `ends_process`: the process
        ends (SIGABRT) as soon as a call of this rank was cut short, as another rank has failed or it waited too
        long, unless the program has got an error before."""
        if not isinstance(id, (bytes, bytearray)):
            raise UsageError(f"an id is bytes, not {type(id).__name__}")
        if len(id) != ctypes.sizeof(UniqueId):
            raise UsageError(f"an id has {ctypes.sizeof(UniqueId)} bytes, this one {len(id)}")
        ranks = number(ranks, "the number of ranks", 1, MOST_RANKS)
        rank = number(rank, "the rank", 0, MOST_RANKS - 1)
        shared = UniqueId.from_buffer_copy(id)
        self._create(
            "mscclc_comm_create", device, timeout, order, ends_process, ranks, ctypes.byref(shared), rank
        )

    @classmethod
    def from_environment(
        cls, name: str = "", *, device: Optional[int] = None, timeout: Optional[float] = None,
        order: Optional[str] = None, ends_process: bool = False,
    ) -> "Communicator":  # fmt: skip
        """The same for a process that torchrun, mpirun or srun has started."""
        comm = cls.__new__(cls)
        group = b"" if name == "" else as_text(name, "the name")
        comm._create("mscclc_comm_create_env", device, timeout, order, ends_process, group)
        return comm

    @classmethod
    def from_mpi(
        cls, mpi: Any, *, device: Optional[int] = None, timeout: Optional[float] = None,
        order: Optional[str] = None, ends_process: bool = False,
    ) -> "Communicator":  # fmt: skip
        """Collective over the ranks of a communicator of mpi4py, which are the same here."""
        rank = mpi.Get_rank()
        id = shared_id(rank, lambda own: mpi.bcast(own, root=0))
        return cls(
            mpi.Get_size(), id, rank, device=device, timeout=timeout, order=order, ends_process=ends_process
        )

    @classmethod
    def from_store(
        cls, store: Any, ranks: int, rank: int, name: str, *, device: Optional[int] = None,
        timeout: Optional[float] = None, order: Optional[str] = None, ends_process: bool = False,
    ) -> "Communicator":  # fmt: skip
        """The same for ranks that share a store of torch.distributed, or what has its `set(key,
        text)` and a `get(key)` that waits. `name` is one that no communicator of the store has had."""
        key = f"mscclc/communicator/{name}"

        def broadcast(own):
            if own is not None:
                store.set(key, _NO_ID + own if isinstance(own, str) else own.hex())
            text = store.get(key)
            text = text if isinstance(text, str) else bytes(text).decode()
            why_not = text.startswith(_NO_ID)
            return text[len(_NO_ID) :] if why_not else bytes.fromhex(text)

        return cls(
            ranks, shared_id(rank, broadcast), rank, device=device, timeout=timeout, order=order,
            ends_process=ends_process,
        )  # fmt: skip

    def _create(self, function, device, timeout, order, ends_process, *arguments):
        self._handle = None
        self._process = os.getpid()
        self._plans = []  # what load() has loaded
        self._device = HOST if device is None else number(device, "the GPU", 0, (1 << 31) - 1)
        self._order = order
        milliseconds = _milliseconds(timeout)
        self._unfinished = []  # stream and buffers of works that nothing refers to any more
        config = Config(
            ctypes.sizeof(Config), self._device, milliseconds, 0, None, 0, order_number(order), ends_process
        )
        handle = ctypes.c_void_p()

        def create():
            call = getattr(library(), function)
            check(call(ctypes.byref(handle), *arguments, ctypes.byref(config)))

        wait_for(create, None)
        self._take(handle)

    def _take(self, handle):
        """The communicator is there. The host device's only stream is made; on a GPU the caller says
        which one, or it is the default one."""
        self._marked = {}  # by stream: marks, and the buffers of works before each
        self._handle, self._lifetime = handle, Lifetime(handle)
        self._rank, self._size = self._number("mscclc_comm_rank"), self._number("mscclc_comm_size")
        self._stream = ctypes.c_void_p()
        if self._device == HOST:
            check(library().mscclc_stream_create(handle, ctypes.byref(self._stream)))

    @property
    def rank(self) -> int:
        """This rank."""
        self._own()
        return self._rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        self._own()
        return self._size

    def load(self, plan: Any, max_bytes: int, dtype: str = "f32") -> LoadedPlan:
        """Collective: loads a Plan, or its text (str or bytes), for messages of up to `max_bytes`."""
        element = element_type(dtype)
        max_bytes = number(max_bytes, "max_bytes", 0, (1 << 63) - 1)
        text = _text_of(plan)
        handle = ctypes.c_void_p()
        own, load = self._own(), library().mscclc_plan_load
        arguments = [text, len(text), b"plan", max_bytes, element[0], ctypes.byref(handle)]
        wait_for(lambda: check(load(own, *arguments)), lambda: self.abort("interrupted"))
        self._plans.append(handle)
        return LoadedPlan(self, handle, dtype, rows_of(text))

    def _meet(self):
        """Collective, before loads for this rank's next call: ranks that make the call instead learn of it, and
        none waits for the other; so do ranks that load a plan."""
        own = self._own()
        wait_for(lambda: check(library().mscclc_plan_meet(own)), lambda: self.abort("interrupted"))

    def load_rows(
        self, name: str, columns: int, max_rows: int, dtype: str = "f32", order: Optional[str] = None
    ) -> RowPlans:
        """Collective: loads the plans of the library for a collective with a function of its rows,
        "allreduce_norm" say, for messages of up to `max_rows` rows. `order`: what the bits of its sums
        keep to; None: as the communicator's. An error where no plan keeps it."""
        return RowPlans(self, name, columns, max_rows, dtype, order)

    def allocate(self, count: int, dtype: str = "u8") -> DeviceMemory:
        """`count` elements of the communicator's device, zeros. Local; the memory may outlive the
        communicator."""
        element_type(dtype)
        count = number(count, "the number of elements", 0, (1 << 60) - 1)
        return allocate(self, count, dtype)

    def barrier(self, stream: Optional[int] = None) -> None:
        """Waits until all ranks are here, and their work before it has ended."""
        needs_no_group("barrier()")
        self._wait_for_stream(stream, library().mscclc_barrier)  # the first waits for others to load its plan

    def synchronize(self, stream: Optional[int] = None) -> None:
        """Waits until all that is queued has ended. Ctrl-C aborts it, on all ranks."""
        self._wait_for_stream(stream)

    def abort(self, why: str = "aborted") -> None:
        """Ends all calls of all ranks, which learn why. Any thread."""
        check(library().mscclc_comm_abort(self._opened(), as_text(why, "the reason")))

    def split(self, color: int, key: int = 0) -> Optional["Communicator"]:
        """Collective: ranks of one color form a communicator; None for a negative one."""
        color = number(color, "the color", -(1 << 31), (1 << 31) - 1)
        key = number(key, "the key", -(1 << 31), (1 << 31) - 1)
        child = Communicator.__new__(Communicator)
        child._handle, child._process, child._unfinished = None, self._process, []
        child._device, child._plans, child._order = self._device, [], self._order
        handle = ctypes.c_void_p()
        own = self._own()
        call = library().mscclc_comm_split
        wait_for(
            lambda: check(call(own, color, key, ctypes.byref(handle), None)),
            lambda: self.abort("interrupted"),
        )
        if not handle:
            return None
        child._take(handle)
        return child

    def close(self) -> None:
        """Waits for what is queued, and frees the communicator; the second time nothing. Ctrl-C aborts
        that, and leaves the rest to a second call.

        Its symmetric memory stays as it is while anything refers to it. While
        another thread is inside, it is a LibraryError, and the communicator stays open.
        """
        if self._handle is None or self._process != os.getpid():
            return
        while self._plans:
            check(library().mscclc_plan_destroy(self._plans[-1]))
            self._plans.pop()
        # It waits, on a GPU for what its kernels wait for. An error is for what follows to say.
        wait_for(lambda: library().mscclc_comm_finalize(self._handle), lambda: self.abort("interrupted"))
        if self._stream:
            check(library().mscclc_stream_destroy(self._handle, self._stream))
            self._stream = ctypes.c_void_p()
        self._lifetime.end()
        self._handle = None
        self._unfinished.clear()
        self._marked.clear()

    def __del__(self):
        if self._handle is not None:  # what is queued may still use its buffers
            self._forgotten.append((self._unfinished, self._marked))

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        if self._process != os.getpid():
            return  # it is the parent's: what ends here is a child of fork()
        if self._handle is not None and not _ends_in_peace(value):
            self.abort(f"{kind.__name__} in Python")
        self.close()

    def __reduce__(self):
        raise TypeError("a communicator belongs to its process and cannot be pickled")

    def _own(self):
        handle = self._opened()
        self._lifetime.free_unneeded()
        return handle

    def _opened(self):
        """The handle, also while another thread is inside, which keeps memory from being freed."""
        if self._handle is None:
            raise UsageError("the communicator is closed")
        if self._process != os.getpid():
            raise UsageError("the communicator is of the process before fork()")
        return self._handle

    def _wait_for_stream(self, stream, *before):
        """Until its end, after calls `before` that may wait, too."""
        handle, queue = self._own(), self._queue(stream)
        calls = (*before, library().mscclc_stream_synchronize)

        def wait():
            for call in calls:
                check(call(handle, queue))

        wait_for(wait, lambda: self.abort("interrupted"))
        self._take_unfinished(stream)
        self._marked.pop(stream, None)

    def _take_unfinished(self, stream):
        """The buffers of a stream's works that nothing refers to: they are the caller's."""
        works, self._unfinished = self._unfinished, []  # the garbage collector may add to either
        taken = []
        for work in works:
            (taken if work[0] == stream else self._unfinished).append(work)
        return taken

    def _free_finished(self, stream):
        """Lets go of buffers of works that have ended, as programs may wait for a stream by other
        means than ours. Before a call on the stream, which so is one."""
        if sum(work[0] == stream for work in self._unfinished) < _MANY:
            return
        mark, reached = ctypes.c_uint64(), ctypes.c_uint64()
        handle, queue = self._own(), self._queue(stream)
        marked = library().mscclc_stream_mark
        check(marked(handle, queue, ctypes.byref(mark), ctypes.byref(reached)))
        before = self._marked.setdefault(stream, deque())
        while before and before[0][0] <= reached.value:
            before.popleft()
        if mark.value:  # in a graph's capture there is none
            before.append((mark.value, self._take_unfinished(stream)))

    def _unload(self, handle):
        """Frees a plan, unless it has ended with the communicator, or is the parent's."""
        if self._process == os.getpid() and handle in self._plans:
            check(library().mscclc_plan_destroy(handle))
            self._plans.remove(handle)

    def _number(self, function):
        number = ctypes.c_uint32()
        check(getattr(library(), function)(self._own(), ctypes.byref(number)))
        return number.value


def _ends_in_peace(error):
    """Whether a block ends without an error: at its end, or since the program does, by sys.exit(0)."""
    return error is None or (isinstance(error, SystemExit) and error.code in (None, 0))


def _text_of(plan):
    """A plan's text as bytes."""
    if isinstance(plan, (bytes, bytearray, memoryview)):
        return bytes(plan)
    if isinstance(plan, str):
        return plan.encode()
    if hasattr(plan, "to_json"):
        return plan.to_json().encode()
    raise UsageError(f"a plan is a Plan or its text, not {type(plan).__name__}")


def _milliseconds(timeout):
    """0: none is given, or 0. A timeout that is none of these is not rounded to 0."""
    try:
        if 0 <= (timeout or 0) <= MOST_SECONDS:
            return math.ceil((timeout or 0) * 1000)
    except TypeError:
        pass
    raise UsageError(f"the timeout is {timeout!r}; allowed are 0 to {MOST_SECONDS} s")
