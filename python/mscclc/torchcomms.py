"""Backend "mscclc" of TorchComms, 0.3 and later: collectives by plans, on GPUs and on the host.

    comm = torchcomms.new_comm("mscclc", torch.device("cuda"), "name")   # found by its entry point

It is a class in Python over the backend of torch.distributed (mscclc.torch), so it needs the adapter,
which `python3 -m mscclc.torch.adapter` builds once for a version of torch, and no header of TorchComms.
A library that TORCHCOMMS_BACKEND_LIB_PATH_MSCCLC names takes precedence: TorchComms then loads that.
"""

import itertools
import os
import sys
import warnings
import weakref
from collections import deque
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Optional, Sequence

import torch
import torch.distributed as dist
import torchcomms
from torch._C._distributed_c10d import (
    AllgatherOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)

from .errors import UsageError
from .torch import comms
from .torch.adapter import load
from .torch.backend import create
from .torch.options import Options
from .torch.plans import is_captured

__all__ = ["Backend", "register"]
Tensors = Sequence[torch.Tensor]
LIBRARY_VARIABLE = "TORCHCOMMS_BACKEND_LIB_PATH_MSCCLC"

if not hasattr(torchcomms, "TorchCommBackend"):
    raise UsageError("this torchcomms takes no backends in Python; version 0.3 and later do")

# Where launchers say rank and size, in the order in which TorchComms asks.
_RANK_AND_SIZE = [
    ("TORCHCOMM_RANK", "TORCHCOMM_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PALS_RANKID", "PALS_SIZE"),
    ("RANK", "WORLD_SIZE"),
]


def register() -> None:
    """Makes the backend known to TorchComms, unless the variable names a library of C++."""
    if os.environ.get(LIBRARY_VARIABLE):
        load()  # what such a library of ours (mscclc.torch.comms) is linked to
        comms.check(os.environ[LIBRARY_VARIABLE])
    else:
        torchcomms.register_backend("mscclc", Backend)


class Work:
    """A collective that has been queued. TorchComms wraps it in its own work."""

    __slots__ = ("_comm", "_work")

    def __init__(self, comm: "Backend", work: dist.Work):
        self._comm, self._work = comm, work

    def wait(self) -> None:
        """On a GPU, orders the current stream after it; on the host, waits until it has ended."""
        self._comm._wait(self._work)


class Backend(torchcomms.TorchCommBackend):
    """A communicator of TorchComms. Its ranks meet in the store of the options, or at MASTER_ADDR and
    MASTER_PORT. Errors are RuntimeErrors; what no plan does is a NotImplementedError.

    Hint `fallback`, "1" on all ranks: what no plan does goes to gloo or NCCL, with a warning.
    """

    def __init__(self):
        super().__init__()
        self._state: Optional[_State] = None

    # ---- The communicator ----

    def init(self, device: torch.device, name: str, options: Any) -> None:
        """Collective: waits for all ranks, at most as long as the timeout of the options says."""
        rank, size = _rank_and_size()
        store = options.store
        if store is None:
            store = _store_of_environment(rank, options.timeout)
        # The length keeps names apart, whatever their characters, and keys that follow them.
        store = dist.PrefixStore(f"mscclc/torchcomms/{len(name)}:{name}", store)
        self._start(device, name, options, store, rank, size)

    def _start(self, device, name, options, store, rank, size):
        if self._state is not None:
            raise RuntimeError(f"mscclc: communicator '{name}' was initialized before")
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", torch.cuda.current_device())
        fallback = (options.hints or {}).get("fallback", "0")
        if fallback not in ("0", "1"):
            raise RuntimeError(f"mscclc: hint 'fallback' is 0 or 1, not {fallback!r}")
        of_group = SimpleNamespace(
            store=store, group_rank=rank, group_size=size, timeout=options.timeout, group_id=name
        )
        self._device, self._name, self._rank, self._size = device, name, rank, size
        self._timeout, self._ends_process = options.timeout, False
        self._store, self._splits = store, itertools.count()
        self._unfinished, self._gpus = deque(), set()  # calls, and the GPUs that had some
        self._word = torch.zeros(1, device=device)  # what a barrier of a GPU adds up
        ends = options.abort_process_on_timeout_or_error
        self._state = _State(name, create(of_group, Options(fallback=fallback == "1"), ends))
        weakref.finalize(self, _State.warn, self._state)
        try:
            self.barrier(False)
        except Exception:
            self._state.backend = None
            raise
        self._ends_process = options.abort_process_on_timeout_or_error

    def finalize(self) -> None:
        """Collective: waits for all that was queued, on all ranks, and frees the communicator."""
        backend = self._backend()
        try:
            while self._unfinished:
                self._wait(self._unfinished.popleft())
            self.barrier(False)
            for device in self._gpus:
                torch.cuda.current_stream(device).synchronize()
        finally:
            self._state.backend = None
            self._store = None
            backend.shutdown()

    def get_rank(self) -> int:
        """This rank."""
        return self._rank

    def get_size(self) -> int:
        """The number of ranks."""
        return self._size

    def get_backend_name(self) -> str:
        """mscclc"""
        return "mscclc"

    def get_comm_name(self) -> str:
        """The name that was given."""
        return self._name

    def set_timeout(self, timeout: timedelta) -> None:
        """How long calls that follow may take: on the host no longer than before, on a GPU as long."""
        self._backend().set_timeout(timeout)
        self._timeout = timeout

    def split(self, ranks: Sequence[int], name: str, options: Any) -> Optional["Backend"]:
        """Collective: a communicator of these ranks, in their order; without ranks None."""
        self._backend()
        number = next(self._splits)
        for rank in ranks:
            if not 0 <= rank < self._size:
                raise RuntimeError(f"mscclc split: there is no rank {rank} among {self._size}")
        if len(set(ranks)) != len(ranks):
            raise RuntimeError(f"mscclc split: ranks are named twice in {list(ranks)}")
        if not ranks:
            return None
        if self._rank not in ranks:
            raise RuntimeError(f"mscclc split: rank {self._rank} is not one of {list(ranks)}")
        child = type(self)()
        store = dist.PrefixStore(f"split/{number}/{min(ranks)}", self._store)
        child._start(self._device, name, options, store, list(ranks).index(self._rank), len(ranks))
        return child

    # ---- Collectives ----

    def broadcast(self, tensor: torch.Tensor, root: int, async_op: bool) -> Optional[Work]:
        """Every rank gets the tensor of the root."""
        options = self._options(BroadcastOptions(), async_op, rootRank=root)
        return self._run("broadcast", [tensor], async_op, [tensor], options)

    def all_reduce(self, tensor: torch.Tensor, op: Any, async_op: bool) -> Optional[Work]:
        """Every rank gets the reduction, in place."""
        options = self._options(AllreduceOptions(), async_op, reduceOp=_reduction(op))
        return self._run("allreduce", [tensor], async_op, [tensor], options)

    def reduce(self, tensor: torch.Tensor, root: int, op: Any, async_op: bool) -> Optional[Work]:
        """The root gets the reduction, in place."""
        options = self._options(
            ReduceOptions(), async_op, reduceOp=_reduction(op), rootRank=root
        )
        return self._run("reduce", [tensor], async_op, [tensor], options)

    def all_gather(
        self, tensor_list: Tensors, tensor: torch.Tensor, async_op: bool
    ) -> Optional[Work]:
        """Every rank gets the tensors of all."""
        options = self._options(AllgatherOptions(), async_op)
        tensors = [*tensor_list, tensor]
        return self._run("allgather", tensors, async_op, [list(tensor_list)], [tensor], options)

    def all_gather_v(
        self, tensor_list: Tensors, tensor: torch.Tensor, async_op: bool
    ) -> Optional[Work]:
        """The same of tensors that differ in size."""
        return self.all_gather(tensor_list, tensor, async_op)

    def all_gather_single(
        self, output: torch.Tensor, input: torch.Tensor, async_op: bool
    ) -> Optional[Work]:
        """The same as one tensor."""
        options = self._options(AllgatherOptions(), async_op)
        return self._run("_allgather_base", [output, input], async_op, output, input, options)

    def reduce_scatter(
        self, output: torch.Tensor, input_list: Tensors, op: Any, async_op: bool
    ) -> Optional[Work]:
        """Every rank gets its part of the reduction."""
        options = self._options(ReduceScatterOptions(), async_op, reduceOp=_reduction(op))
        tensors = [output, *input_list]
        return self._run("reduce_scatter", tensors, async_op, [output], [list(input_list)], options)

    def reduce_scatter_v(
        self, output: torch.Tensor, input_list: Tensors, op: Any, async_op: bool
    ) -> Optional[Work]:
        """The same of parts that differ in size."""
        return self.reduce_scatter(output, input_list, op, async_op)

    def reduce_scatter_single(
        self, output: torch.Tensor, input: torch.Tensor, op: Any, async_op: bool
    ) -> Optional[Work]:
        """The same of one tensor."""
        options = self._options(ReduceScatterOptions(), async_op, reduceOp=_reduction(op))
        return self._run("_reduce_scatter_base", [output, input], async_op, output, input, options)

    def all_to_all_single(
        self, output: torch.Tensor, input: torch.Tensor, async_op: bool
    ) -> Optional[Work]:
        """Every rank gets its part of every input."""
        return self.all_to_all_v_single(output, input, [], [], async_op)

    def all_to_all_v_single(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        async_op: bool,
    ) -> Optional[Work]:
        """The same of parts that differ in size, in rows."""
        return self._run(
            "alltoall_base", [output, input], async_op, output, input, list(output_split_sizes),
            list(input_split_sizes), self._options(AllToAllOptions(), async_op),
        )  # fmt: skip

    def all_to_all(
        self, output_tensor_list: Tensors, input_tensor_list: Tensors, async_op: bool
    ) -> Optional[Work]:
        """The same as lists."""
        outputs, inputs = list(output_tensor_list), list(input_tensor_list)
        options = self._options(AllToAllOptions(), async_op)
        return self._run("alltoall", outputs + inputs, async_op, outputs, inputs, options)

    def scatter(
        self, output_tensor: torch.Tensor, input_tensor_list: Tensors, root: int, async_op: bool
    ) -> Optional[Work]:
        """Every rank gets its tensor of the root's list."""
        lists = [list(input_tensor_list)] if self._rank == root else []
        options = self._options(ScatterOptions(), async_op, rootRank=root)
        tensors = [output_tensor, *sum(lists, [])]
        return self._run("scatter", tensors, async_op, [output_tensor], lists, options)

    def gather(
        self, output_tensor_list: Tensors, input_tensor: torch.Tensor, root: int, async_op: bool
    ) -> Optional[Work]:
        """The root gets the tensors of all."""
        lists = [list(output_tensor_list)] if self._rank == root else []
        options = self._options(GatherOptions(), async_op, rootRank=root)
        tensors = [input_tensor, *sum(lists, [])]
        return self._run("gather", tensors, async_op, lists, [input_tensor], options)

    def barrier(self, async_op: bool) -> Optional[Work]:
        """Waits for all ranks: on a GPU the stream does."""
        if self._device.type == "cuda":
            options = self._options(AllreduceOptions(), async_op)
            return self._run("allreduce", [], async_op, [self._word], options)
        options = self._options(BarrierOptions(), async_op, device=self._device)
        return self._run("barrier", [], async_op, options)

    # ---- Messages ----

    def send(self, tensor: torch.Tensor, dst: int, async_op: bool) -> Optional[Work]:
        """A message to a rank."""
        return self._run("send", [tensor], async_op, [tensor], dst, 0)

    def recv(self, tensor: torch.Tensor, src: int, async_op: bool) -> Optional[Work]:
        """A message from a rank."""
        return self._run("recv", [tensor], async_op, [tensor], src, 0)

    # ---- How they run ----

    def _options(self, options, async_op, **fields):
        options.asyncOp, options.timeout = async_op, self._timeout
        for name, value in fields.items():
            setattr(options, name, value)
        return options

    def _run(self, name, tensors, async_op, *arguments):
        """A call of the backend below: None once it is on the current stream, or has ended."""
        backend = self._backend()
        device = self._device_of(name, tensors)
        if device.type == "cuda":
            self._gpus.add(device)
        work = self._ending(lambda: getattr(backend, name)(*arguments))
        if work is None:
            return None
        if not async_op:
            return self._wait(work)
        if is_captured(device):
            return Work(self, work)  # part of a graph: its end must not be asked for
        while self._unfinished and self._unfinished[0].is_completed():
            self._unfinished.popleft()
        self._unfinished.append(work)
        return Work(self, work)

    def _device_of(self, name, tensors):
        """Of a call: that of its tensors. A communicator takes those of its GPU and of the host, and if it
        is of the host, of any GPU, as torch.distributed gives the communicator that it makes for all
        its devices."""
        for tensor in tensors:
            found, own = tensor.device, self._device
            if not (found == own or found.type == "cpu" or (own.type, found.type) == ("cpu", "cuda")):
                raise RuntimeError(
                    f"mscclc {name}: communicator '{self._name}' is of {own}, and a tensor of {found}"
                )
            if found != tensors[0].device:
                raise RuntimeError(
                    f"mscclc {name}: tensors of {tensors[0].device} and {found} in one call"
                )
        return tensors[0].device if tensors else self._device

    def _wait(self, work):
        self._ending(work.wait)

    def _ending(self, call):
        """A failure of ranks, or a timeout, ends the process, unless options say otherwise."""
        try:
            return call()
        except dist.DistBackendError as error:
            if not self._ends_process:
                raise
            print(
                f"mscclc: communicator '{self._name}' has failed, which ends the process"
                f" (abort_process_on_timeout_or_error): {error}",
                file=sys.stderr, flush=True,
            )  # fmt: skip
            os.abort()

    def _backend(self):
        if self._state is None:
            raise RuntimeError("mscclc: the communicator was not initialized")
        if self._state.backend is None:
            raise RuntimeError(f"mscclc: communicator '{self._name}' was finalized")
        return self._state.backend


class _State:
    """What outlives a communicator that was not finalized: enough to say so."""

    def __init__(self, name, backend):
        self.name, self.backend = name, backend

    def warn(self):
        """At the end of the communicator, or of the process."""
        if self.backend is not None:
            warnings.warn(f"mscclc: communicator '{self.name}' was not finalized", RuntimeWarning)
            self.backend = None


def _reduction(op):
    """torch.distributed's reduction of the same name."""
    name = op.type.name
    if name == "PREMUL_SUM":
        raise NotImplementedError(
            "mscclc: PREMUL_SUM, whose factor TorchComms does not show to backends in Python;"
            " multiply the tensor, and use SUM"
        )
    return getattr(dist.ReduceOp, name)


def _rank_and_size():
    for names in _RANK_AND_SIZE:
        values = [os.environ.get(name) for name in names]
        if None in values:
            continue
        if not all(value.isdecimal() for value in values) or int(values[0]) >= int(values[1]):
            raise RuntimeError(
                f"mscclc: {names[0]}={values[0]} and {names[1]}={values[1]} are not a rank and a size"
            )
        return int(values[0]), int(values[1])
    raise RuntimeError(
        "mscclc: no launcher says rank and size; set TORCHCOMM_RANK and TORCHCOMM_SIZE"
    )


def _store_of_environment(rank, timeout):
    place = [os.environ.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT")]
    if not place[0] or not place[1].isdecimal():
        raise RuntimeError(
            f"mscclc: no store is given, and MASTER_ADDR={place[0]!r} and MASTER_PORT={place[1]!r}"
            " name no place where ranks meet"
        )
    serves = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    return dist.TCPStore(
        place[0], int(place[1]), None, serves, timeout, wait_for_workers=False, multi_tenant=True
    )


register()
