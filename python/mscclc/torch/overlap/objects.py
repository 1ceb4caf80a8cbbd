"""The objects that ops run: for each group, device and shape one, made when it is first needed.

Making one is collective, and so all ranks of a group must make the same calls in the same order. The library makes a
communicator of its own over the ranks of a group, whatever the group's backend.
"""

import collections
import contextlib
import functools
import threading
from typing import Any, Counter, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch

from ..._overlap import Overlap, Shape, backends
from ...errors import UsageError
from .. import orders, plans
from ..dtypes import NAME_OF
from ..fusion.groups import process_group
from .gemm import Scaled, TorchGemm
from .memory import taker

_Key = Tuple[Shape, str, Tuple[Any, ...]]  # who multiplies, and of which kinds products with scales are
MOST_OBJECTS = 256  # of a group; the one that was used longest ago goes, unless a graph has it
MOST_CALLS = 1024  # of a group: kinds of calls whose checks and sizes are kept
GEMMS = ("auto", "torch", "own")
_ADD_UP = ("gemm_reducescatter", "gemm_allreduce", "reducescatter", "allreduce")


class _Made:
    """An object with what computes its products; None: the library does."""

    def __init__(self, object: Overlap, gemm: Optional[TorchGemm], device: torch.device):
        self.object, self.gemm = object, gemm
        bytes = object.workspace_bytes
        self.workspace = taker((bytes,), torch.uint8, device) if bytes else lambda: None
        self.last = 0  # number of the run that was its last
        self.captured = False  # a graph has runs of it


def who_multiplies(gemm: str, shape: Shape, device: torch.device) -> str:
    """What "auto" is for a shape. On GPUs the library, which calls nothing back for each product: of types of 16 bits,
    as torch's settings may make others of f32, and of rows at multiples of 16 bytes, which cuBLASLt surely has."""
    if gemm != "auto":
        return gemm
    rows_fit = not any(columns % 8 for columns in (shape.k, *shape.n))
    return "own" if device.type == "cuda" and shape.a in ("f16", "bf16") and rows_fit else "torch"


class ObjectFinder:
    """Where runs of one shape find their object: looked for once."""

    __slots__ = ("shape", "gemm", "made", "adds_up", "_others")

    def __init__(self, shape: Shape, gemm: str):
        self.shape, self.gemm, self.adds_up = shape, gemm, shape.kind in _ADD_UP
        self.made: Optional[_Made] = None
        self._others: Dict[Optional[str], "ObjectFinder"] = {}

    def under(self, order: Optional[str]) -> "ObjectFinder":
        """The same for sums that keep to a contract."""
        if order == self.shape.order:
            return self
        other = self._others.get(order)
        if other is None:
            other = self._others[order] = ObjectFinder(self.shape._replace(order=order), self.gemm)
        return other


class _Session:
    """A group on a device."""

    def __init__(self, ranks, device):
        self.ranks, self.device = ranks, device
        self.on_gpu = device.type == "cuda"
        self.comm, self.size = plans.communicator(ranks, device), ranks.size()
        self.lock = threading.RLock()  # forward and backward passes may be in two threads
        self.made: Dict[_Key, _Made] = {}
        self.known: Dict[Any, Any] = {}  # calls that have run: what was worked out for them
        self._runs, self.is_open = 0, True

    def keep(self, key: Any, call: Any) -> None:
        """For calls that come again."""
        if len(self.known) >= MOST_CALLS:
            self.known.clear()
        self.known[key] = call

    def run(self, place: ObjectFinder, tensors: "Run") -> None:
        """Runs an object on the current stream; on the host it has ended on return."""
        self.run_at(place, _addresses(tensors), tensors.scaled)

    def run_at(self, place: ObjectFinder, addresses: Tuple[Any, ...], scaled: Optional[Scaled] = None) -> None:
        """The same for what is at addresses: Buffers without the workspace."""
        if place.adds_up:
            place = place.under(orders.in_force(self.ranks))
        with self.lock:
            made = self._find(place, scaled)
            workspace = made.workspace()
            buffers = (*addresses, None if workspace is None else workspace.data_ptr())
            stream = self._stream() if self.on_gpu else None
            if made.gemm is None or scaled is None:
                made.object.run(buffers, stream)
            else:
                with _given(made.gemm, scaled):
                    made.object.run(buffers, stream)
            _runs[place.shape.kind] += 1

    def _stream(self):
        return torch._C._cuda_getCurrentRawStream(self.device.index)

    def _find(self, place, scaled):
        """The object of a place; made, where there is none yet. `scaled`: of the run for which it is."""
        capturing = self.on_gpu and plans.is_captured(self.device)
        made = place.made
        if made is None or not made.object.is_open:
            # Making an object loads the kernels of its products; one loaded beside a plan that waits would wait, too.
            key = (place.shape, place.gemm, scaled.kinds() if scaled is not None and place.gemm == "torch" else ())
            made = self.made.get(key)
            if made is None:
                if capturing:
                    raise UsageError(
                        f"a graph is captured, and there is no object yet for {_text(place.shape)}: run the op once"
                        " before"
                    )
                made = self.made[key] = self._make(place.shape, place.gemm, scaled)
                self._forget_oldest(made)
            place.made = made
        self._runs += 1
        made.last = self._runs
        made.captured = made.captured or capturing
        return made

    def _make(self, shape, by, scaled):
        if by == "own":
            return _Made(Overlap(self.comm, shape, by=by), None, self.device)
        gemm = TorchGemm(self.device)
        with contextlib.nullcontext() if scaled is None else _given(gemm, scaled):
            made = _Made(Overlap(self.comm, shape, gemm, by), gemm, self.device)
        gemm.warms_up = False
        return made

    def in_order(self) -> List[Tuple[_Key, _Made]]:
        """All objects; the one that ran last is the last."""
        return sorted(self.made.items(), key=lambda one: one[1].last)

    def _forget_oldest(self, new):
        idle = [(key, one) for key, one in self.in_order() if not one.captured and one is not new]
        for key, one in idle[:max(0, len(idle) + 1 - MOST_OBJECTS)]:
            del self.made[key]
            one.object.close()

    def close(self):
        """Waits for all runs. Not for other ranks' calls."""
        self.is_open = False
        seen.clear()
        self.known.clear()
        while self.made:
            self.made.popitem()[1].object.close()
        self.comm.close()


@contextlib.contextmanager
def _given(gemm, scaled):
    """Products have their scales for so long only: the caller's memory is not kept."""
    gemm.scaled = scaled
    try:
        yield
    finally:
        gemm.scaled = None


_sessions: Dict[Tuple[str, torch.device], _Session] = {}
_making: Dict[Tuple[str, torch.device], Any] = {}  # a lock for each session: what makes one waits for other ranks
_lock = threading.RLock()  # of both tables, for no longer than a look
_runs: Counter[str] = collections.Counter()
seen: Dict[Any, Any] = {}  # what eager.known() keeps of calls of all sessions


def runs() -> Dict[str, int]:
    """How often objects of each kind have run in this process; launches of graphs are not counted."""
    return dict(_runs)


def close() -> None:
    """Frees all objects and communicators, on all ranks; graphs that hold calls must not be launched any more. The
    next call makes them anew."""
    while _sessions:
        with _lock:
            closed = _sessions.popitem()[1] if _sessions else None
        if closed is not None:
            closed.close()


def session(group: str, device: torch.device) -> _Session:
    """Of a group by its name; collective, if it is the first. UsageError: there is no such group."""
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"tensors of cpu or cuda are multiplied, not of {device}")
    ranks, key = process_group(group), (group, device)
    with _lock:
        own = _making.setdefault(key, threading.RLock())
    with own:
        with _lock:
            known = _sessions.get(key)
            if known is not None and known.ranks is not ranks:  # a later group of the same name
                del _sessions[key]
        if known is not None and known.ranks is not ranks:
            known.close()
            known = None
        if known is None:
            if plans.is_captured(device):
                raise UsageError(f"a graph is captured, and group '{group}' has no communicator yet: run an op before")
            known = _Session(ranks, device)
            with _lock:
                _sessions[key] = known
        return known


def known(group: str, device: torch.device, key: Any, ranks: Optional[int] = None) -> Any:
    """The session of a group and device with what it keeps of a call; None, where there is none, or it is of another
    number of ranks."""
    of = _sessions.get((group, device))
    call = None if of is None else of.known.get(key)
    if call is None or (ranks is not None and ranks != of.size):
        return None, None
    return (of, call) if serves(of, group) else (None, None)


def serves(of: Any, group: str) -> bool:
    """Whether a session is still that of a group's name; where that has gone, session() reports it."""
    try:
        return of.is_open and process_group(group) is of.ranks
    except UsageError:
        return False


def size_of(group: str) -> int:
    """How many ranks a group has."""
    return process_group(group).size()


def check_ranks(group: str, ranks: int) -> None:
    """UsageError: a group has another number of ranks than shapes were computed with."""
    if size_of(group) != ranks:
        raise UsageError(
            f"the group has {size_of(group)} ranks, not {ranks}; if code that was compiled says so, clear Inductor's"
            " cache (TORCHINDUCTOR_CACHE_DIR)"
        )


address_of = torch.Tensor.data_ptr  # map() calls it without a frame of Python


class Run(NamedTuple):
    """The tensors of a run, as rows without gaps."""

    a: torch.Tensor
    b: Sequence[torch.Tensor]
    out: Sequence[torch.Tensor]
    bias: Sequence[torch.Tensor] = ()
    gathered: Optional[torch.Tensor] = None
    scaled: Optional[Scaled] = None

    def with_scales(self, scaled: Scaled) -> "Run":
        """The same with those: _replace() takes twice as long."""
        return Run(*self[:-1], scaled)


def run(group: str, shape: Shape, gemm: str, tensors: Run) -> None:
    """Runs the object of a shape on the current stream; on the host it has ended on return."""
    session(group, tensors.a.device).run(ObjectFinder(shape, gemm), tensors)


def exchange(kind: str, group: str, rows: torch.Tensor) -> torch.Tensor:
    """A collective by name, alone, of a tensor without gaps: "allgather", "reducescatter", "alltoall", "allreduce"."""
    of, device = session(group, rows.device), rows.device
    shape = list(rows.shape)
    if kind == "allgather":
        shape[0] *= of.comm.size
    elif kind == "reducescatter":
        shape[0] //= of.comm.size
    made = rows.new_empty(shape)
    if rows.numel() == 0:
        return made
    with of.lock:
        call = getattr(of.comm, kind)
        if kind in _ADD_UP:
            call = functools.partial(call, order=orders.in_force(of.ranks))
        if device.type == "cpu":
            call(rows, made).wait()
            return made
        call(rows, made, stream=torch.cuda.current_stream(device).cuda_stream)
        of.comm._unfinished.clear()  # torch keeps the memory as long as the stream needs it
        return made


def explain(group: str, device: torch.device) -> List[Dict[str, Any]]:
    """What each object of a group runs and why, the one that ran last at the end: its shape, who multiplies, and what
    Overlap.explain() says. Not collective: nothing, where no op has run."""
    ranks, of = process_group(group), _sessions.get((group, device))
    if of is None or of.ranks is not ranks:
        return []
    with of.lock:
        return [{**key[0]._asdict(), "gemm": key[1], **one.object.explain()} for key, one in of.in_order()]


def check_options(device: torch.device, backend: str, gemm: str) -> None:
    """UsageError: there is no such backend, or nothing that computes products by that name."""
    known = _names(device.index if device.type == "cuda" else None)
    if backend not in known:
        raise UsageError(f"there is no backend '{backend}'; there are: {', '.join(known)}")
    if gemm not in GEMMS:
        raise UsageError(f"products are computed by 'auto', 'torch' or 'own', not by {gemm!r}")


_names_of: Dict[Optional[int], List[str]] = {}


def _names(device):
    if device not in _names_of:
        found = [one["name"] for one in backends(device)]
        _names_of[device] = found if "auto" in found else ["auto", *found]
    return _names_of[device]


def type_name(tensor: torch.Tensor, allowed: Sequence[torch.dtype], what: str) -> str:
    """The library's name of a tensor's type. UsageError: it is not allowed."""
    if tensor.dtype not in allowed:
        names = ", ".join(NAME_OF[one] for one in allowed)
        raise UsageError(f"{what} is of {names}, not of {tensor.dtype}")
    return NAME_OF[tensor.dtype]


def _addresses(tensors):
    a, b, out, bias, gathered, scaled = tensors
    scales = (None, ()) if scaled is None else _scales(scaled)
    return (
        address_of(a), [*map(address_of, b)], [*map(address_of, out)], [*map(address_of, bias)], *scales,
        None if gathered is None else address_of(gathered),
    )  # fmt: skip


def _scales(scaled):
    """Addresses of A's and those of B; those of rows do not go through the C interface."""
    if scaled.a_scale.numel() != 1:
        return None, ()
    return scaled.a_scale.data_ptr(), [one.data_ptr() if one.numel() == 1 else None for one in scaled.b_scales]


def _text(shape):
    return f"{shape.kind} of {shape.m} rows, {shape.k} columns, weights of {list(shape.n)} and {shape.a}"
