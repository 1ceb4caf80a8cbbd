"""Plans by name, as a custom op that torch.compile takes.

    mscclc.torch.plans.load("mine", plan, group, max_bytes=1 << 20)      # all ranks of the group
    torch.ops.mscclc.run_plan_(input, output, "mine")                    # on the current stream
"""

import atexit
import contextlib
import sys
import weakref
from typing import Any, Dict, Optional, Sequence, Tuple, Union

import torch
import torch.distributed as dist

from .._numbers import DTYPES
from ..buffers import TORCH_TYPES, needs_own_values, of_tensor
from ..communicator import MOST_SECONDS, Communicator, LoadedPlan, id_of_group, unique_id
from ..errors import LibraryError, UsageError
from ..row_plans import RowPlans
from . import orders
from .options import ends_process_on

_Loaded = Tuple[Communicator, Union[LoadedPlan, RowPlans], torch.device]
_loaded: Dict[str, _Loaded] = {}
_until_exit: Any = weakref.WeakSet()


@atexit.register
def _leave():
    """Says goodbye to the other ranks, which would take the end of this process for a death; an error is one."""
    for comm in [] if getattr(sys, "last_value", None) else list(_until_exit):
        with contextlib.suppress(LibraryError):  # it has failed, and the others know
            comm.close()


def until_exit(comm: Communicator) -> Communicator:
    """A communicator that its program does not see, and so does not close before the process ends."""
    _until_exit.add(comm)
    return comm


def load(
    name: str, plan: Any, group: Optional[dist.ProcessGroup] = None, *, max_bytes: int,
    dtype: str = "f32", device: Any = "cpu",
) -> None:  # fmt: skip
    """Collective: makes a Plan, or its text, known by a name to this process. It serves messages of up
    to `max_bytes`, of elements as wide as `dtype`, on a device, and has a communicator of its own over
    the group, whatever the group's backend."""
    _keep(name, group, device, lambda comm: comm.load(plan, max_bytes, dtype))


def load_rows(
    name: str, what: str, group: Optional[dist.ProcessGroup] = None, *, columns: int, max_rows: int,
    dtype: str = "f32", device: Any = "cpu",
) -> None:  # fmt: skip
    """The same of the library's plans for a collective with a function of its rows, "allreduce_norm" say
    (docs/fusion.md), for messages of up to `max_rows` rows: for `mscclc.torch.row_ops`. Where they do not keep the
    contract of the group's sums, it is an error, and a call in another `mscclc.torch.order()` is one."""
    order = orders.in_force(group)
    _keep(name, group, device, lambda comm: comm.load_rows(what, columns, max_rows, dtype, order))


def _keep(name, group, device, load_by):
    if name in _loaded:
        raise UsageError(f"there is a plan '{name}' already; unload it first")
    device = torch.device(device)
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"plans run on cpu or cuda, not on {device}")
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    comm = communicator(group, device)
    try:
        _loaded[name] = (comm, load_by(comm), device)
    except BaseException:
        comm.close()
        raise


def communicator(group: Optional[dist.ProcessGroup], device: torch.device) -> Communicator:
    """Collective: a communicator of its own over a group, for tensors of a device. Ranks wait as long as the group's
    do, and end as they do where calls are cut short."""
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    id = id_of_group(group)
    number = device.index if device.type == "cuda" else None
    ends = _ends_process(group, device)
    made = Communicator(ranks, id, rank, device=number, timeout=_timeout(group, device), ends_process=ends)
    return until_exit(made)


def _ends_process(group, device):
    """Whether calls that are cut short end the process: not where reconfigure() then gives the group other ranks."""
    ranks = dist.group.WORLD if group is None else group
    try:
        if torch.ops.mscclc.group_changes(ranks.group_name, device):
            return False
    except (AttributeError, RuntimeError):  # no adapter, or the group has no backend for the device
        pass
    return ends_process_on(device.type)


def _timeout(group, device):
    """Of a group's calls, in seconds; None: neither its backend for the device nor one for the host says it."""
    ranks = dist.group.WORLD if group is None else group
    for of in (torch.device(device.type), torch.device("cpu")):
        try:
            backend = ranks._get_backend(of)
            if backend.name() == "mscclc":
                found = torch.ops.mscclc.group_timeout(ranks.group_name, of) / 1000
            else:
                found = backend.options._timeout.total_seconds()
            return min(found, MOST_SECONDS)
        except (AttributeError, RuntimeError):  # it has no such backend, or that no options
            continue
    return None


def alone(device: torch.device) -> Communicator:
    """A communicator of one rank, for tensors of a device."""
    return Communicator(1, unique_id(), 0, device=device.index if device.type == "cuda" else None)


def unload(name: str) -> None:
    """Frees it, on all ranks; graphs that hold its calls must not be launched any more."""
    _plan(name)
    _loaded.pop(name)[0].close()


def _plan(name):
    if name not in _loaded:
        raise UsageError(f"there is no plan '{name}': it was unloaded, or never loaded")
    return _loaded[name]


def run_on_stream(
    loaded: _Loaded, input: torch.Tensor, output: torch.Tensor, others: Sequence[torch.Tensor] = (),
    externals: Optional[Dict[str, Any]] = None, **more: Any,
) -> None:  # fmt: skip
    """Runs a plan on the current stream; `others` are tensors that `more` or `externals` have for it."""
    comm, plan, device = loaded
    if isinstance(plan, RowPlans):
        plan.check_order(orders.of_calls)
    for tensor in (input, output, *others):
        if tensor.device != device:
            raise UsageError(f"the plan is of {device}, and a tensor of {tensor.device}")
    if externals is not None:
        more["externals"] = {
            name: of_tensor(one, f"the external '{name}'") if isinstance(one, torch.Tensor) else one
            for name, one in externals.items()
        }
    stream = None if device.type == "cpu" else torch.cuda.current_stream(device)
    if stream is not None:
        more["stream"] = stream.cuda_stream
    work = plan.run(of_tensor(input, "the input"), of_tensor(output, "the output"), **more)
    if stream is None:
        return work.wait()
    del work
    comm._unfinished.clear()  # torch gives memory that was used on its own stream to later calls of that stream alone


def is_captured(device: torch.device) -> bool:
    """Whether a graph captures what is queued on a device now, which need not be the current device."""
    if device.type != "cuda":
        return False
    if device.index == torch.cuda.current_device():  # to change it takes longer than to ask
        return torch.cuda.is_current_stream_capturing()
    with torch.cuda.device(device):
        return torch.cuda.is_current_stream_capturing()


def mark_written(*tensors: torch.Tensor) -> None:
    """Says to autograd that plans have written tensors: a backward pass that needs what they held is an error."""
    torch.autograd.graph.increment_version(tensors)


def no_gradient(name: str) -> UsageError:
    """What to raise where a gradient of an op is asked for that has none."""
    return UsageError(
        f"torch.ops.mscclc.{name} has no gradient: call it under torch.no_grad(), or detach() what it is given"
    )


def refuse_gradients(library: torch.library.Library, name: str) -> None:
    """Makes a call of an op that writes in place an error where autograd follows what it reads or writes: it has no
    gradient, and that of what was there before would be taken for one. Nor does torch write what stands for other
    values: those that are read it resolves."""
    op = getattr(torch.ops.mscclc, name).default
    declared = [(one.name, one.alias_info is not None and one.alias_info.is_write) for one in op._schema.arguments]

    def checked(*arguments):
        for (of, is_written), argument in zip(declared, arguments):
            for one in _tensors_of(argument) if is_written else ():
                needs_own_values(one, f"what is written, in '{of}',")
        if torch.is_grad_enabled() and any(one.requires_grad for given in arguments for one in _tensors_of(given)):
            raise no_gradient(name)
        with torch._C._AutoDispatchBelowAutograd():
            return op(*arguments)

    library.impl(name, checked, "Autograd")


def _tensors_of(argument):
    """A tensor, or those of a list."""
    given = argument if isinstance(argument, (list, tuple)) else (argument,)
    return [one for one in given if isinstance(one, torch.Tensor)]


def _run_plan_(input, output, name):
    loaded = _plan(name)
    dtype = TORCH_TYPES.get(str(input.dtype))
    if dtype not in DTYPES:
        raise UsageError(f"plans have no elements of {input.dtype}")
    if output.dtype != input.dtype and loaded[1]._rows.output_type == "T":
        raise UsageError(f"the input is of {input.dtype}, the output of {output.dtype}")
    run_on_stream(loaded, input, output, dtype=dtype)
    mark_written(output)


_library = torch.library.Library("mscclc", "FRAGMENT")
_library.define("run_plan_(Tensor input, Tensor(a!) output, str name) -> ()")
for _key in ("CPU", "CUDA"):
    _library.impl("run_plan_", _run_plan_, _key)
torch.library.register_fake("mscclc::run_plan_", lambda *_: None, lib=_library)
refuse_gradients(_library, "run_plan_")
