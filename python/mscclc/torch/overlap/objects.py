"""The objects that ops run: for each group, device and shape one, made when it is first needed.

Making one is collective, and so all ranks of a group must make the same calls in the same order. The library makes a
communicator of its own over the ranks of a group, whatever the group's backend.
"""

import collections
import functools
import threading
from typing import Any, Callable, Counter, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
import torch.distributed as dist

from ..._overlap import Buffers, Overlap, Shape, backends
from ...communicator import Communicator
from ...errors import UsageError
from .. import orders, plans
from ..fusion.groups import group_of
from .gemm import NAMES, Scaled, TorchGemm

MOST_OBJECTS = 256  # of a group; the one that was used longest ago goes, unless a graph has it
GEMMS = ("torch", "own")
_ADD_UP = ("gemm_reducescatter", "gemm_allreduce", "reducescatter", "allreduce")


class _Made(NamedTuple):
    """An object with what computes its products; None: the library does."""

    object: Overlap
    gemm: Optional[TorchGemm]


class _Session:
    """A group on a device."""

    def __init__(self, ranks, device):
        self.ranks, self.device = ranks, device
        self.comm = plans.communicator(ranks, device)
        self.lock = threading.RLock()  # forward and backward passes may be in two threads
        self.made = collections.OrderedDict()  # from shape and maker of products
        self.captured = set()  # of these keys: a graph has calls of them

    def find(self, key, scaled):
        """The object of a shape; made, where there is none yet. `scaled`: of the run for which it is."""
        capturing = self.device.type == "cuda" and torch.cuda.is_current_stream_capturing()
        if key not in self.made:
            if capturing:
                raise UsageError(
                    f"a graph is captured, and there is no object yet for {_text(key[0])}: run the op once before"
                )
            self.made[key] = self._make(*key, scaled)
            self._forget_oldest()
        self.made.move_to_end(key)
        if capturing:
            self.captured.add(key)
        return self.made[key]

    def _make(self, shape, by, scaled):
        if by == "own":
            return _Made(Overlap(self.comm, shape), None)
        gemm = TorchGemm(self.device)
        gemm.scaled = scaled
        made = _Made(Overlap(self.comm, shape, gemm), gemm)
        gemm.warms_up = False
        return made

    def _forget_oldest(self):
        idle = [key for key in self.made if key not in self.captured]
        for key in idle[:max(0, len(idle) - MOST_OBJECTS)]:
            self.made.pop(key).object.close()

    def close(self):
        """Waits for all runs. Not for other ranks' calls."""
        while self.made:
            self.made.popitem()[1].object.close()
        self.comm.close()


_sessions: Dict[Tuple[str, torch.device], _Session] = {}
_lock = threading.RLock()
_runs: Counter[str] = collections.Counter()


def runs() -> Dict[str, int]:
    """How often objects of each kind have run in this process; launches of graphs are not counted."""
    return dict(_runs)


def close() -> None:
    """Frees all objects and communicators, on all ranks; graphs that hold calls must not be launched any more. The
    next call makes them anew."""
    with _lock:
        while _sessions:
            _sessions.popitem()[1].close()


def session(group: str, device: torch.device) -> _Session:
    """Of a group by its name; collective, if it is the first. UsageError: there is no such group."""
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"tensors of cpu or cuda are multiplied, not of {device}")
    ranks = group_of(group).ranks
    with _lock:
        known = _sessions.get((group, device))
        if known is not None and known.ranks is not ranks:  # a later group of the same name
            _sessions.pop((group, device)).close()
            known = None
        if known is None:
            if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
                raise UsageError(f"a graph is captured, and group '{group}' has no communicator yet: run an op before")
            known = _sessions[group, device] = _Session(ranks, device)
        return known


def size_of(group: str) -> int:
    """How many ranks a group has."""
    return dist.get_world_size(group_of(group).ranks)


def check_ranks(group: str, ranks: int) -> None:
    """UsageError: a group has another number of ranks than shapes were computed with."""
    if size_of(group) != ranks:
        raise UsageError(f"the group has {size_of(group)} ranks, not {ranks}")


class Run(NamedTuple):
    """The tensors of a run, as rows without gaps."""

    a: torch.Tensor
    b: Sequence[torch.Tensor]
    out: Sequence[torch.Tensor]
    bias: Sequence[torch.Tensor] = ()
    gathered: Optional[torch.Tensor] = None
    scaled: Optional[Scaled] = None


def run(group: str, shape: Shape, gemm: str, tensors: Run) -> None:
    """Runs the object of a shape on the current stream; on the host it has ended on return."""
    device = tensors.a.device
    of = session(group, device)
    if shape.kind in _ADD_UP:
        shape = shape._replace(order=orders.in_force(of.ranks))
    with of.lock:
        object, products = of.find((shape, gemm), tensors.scaled)
        workspace = torch.empty(object.workspace_bytes, dtype=torch.uint8, device=device)
        if products is not None:
            products.scaled = tensors.scaled
        stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else None
        object.run(_buffers(tensors, workspace), stream)
        _runs[shape.kind] += 1


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
    """What each object of a group runs and why, the one that ran last at the end: its shape, and "backend", "chunks",
    "budget", "why"."""
    of = session(group, device)
    with of.lock:
        return [{**key[0]._asdict(), **one.object.explain()} for key, one in of.made.items()]


def check_options(device: torch.device, backend: str, gemm: str) -> None:
    """UsageError: there is no such backend, or nothing that computes products by that name."""
    known = _names(device.index if device.type == "cuda" else None)
    if backend not in known:
        raise UsageError(f"there is no backend '{backend}'; there are: {', '.join(known)}")
    if gemm not in GEMMS:
        raise UsageError(f"products are computed by {' or '.join(map(repr, GEMMS))}, not by {gemm!r}")


_names_of: Dict[Optional[int], List[str]] = {}


def _names(device):
    if device not in _names_of:
        found = [one["name"] for one in backends(device)]
        _names_of[device] = found if "auto" in found else ["auto", *found]
    return _names_of[device]


def type_name(tensor: torch.Tensor, allowed: Sequence[torch.dtype], what: str) -> str:
    """The library's name of a tensor's type. UsageError: it is not allowed."""
    if tensor.dtype not in allowed:
        names = ", ".join(NAMES[one] for one in allowed)
        raise UsageError(f"{what} is of {names}, not of {tensor.dtype}")
    return NAMES[tensor.dtype]


def _buffers(tensors, workspace):
    address: Callable[[Optional[torch.Tensor]], Optional[int]] = lambda one: None if one is None else one.data_ptr()
    scaled = tensors.scaled
    one_value = scaled is not None and scaled.a_scale.numel() == 1
    return Buffers(
        address(tensors.a), list(map(address, tensors.b)), list(map(address, tensors.out)),
        list(map(address, tensors.bias)), address(scaled.a_scale) if one_value else None,
        [address(one) if one.numel() == 1 else None for one in scaled.b_scales] if one_value else (),
        address(tensors.gathered), address(workspace),
    )  # fmt: skip


def _text(shape):
    return f"{shape.kind} of {shape.m} rows, {shape.k} columns, weights of {list(shape.n)} and {shape.a}"
