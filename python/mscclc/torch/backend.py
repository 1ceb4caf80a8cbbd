"""Makes a backend of torch.distributed: the adapter's object, by way of torch's registry of groups."""

import contextlib
import itertools

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import (
    _register_process_group,
    _resolve_process_group,
    _unregister_process_group,
)

from .._numbers import order_number
from ..errors import UsageError
from . import orders
from .adapter import load
from .options import Options

_numbers = itertools.count()


@contextlib.contextmanager
def order(name):
    """Within it, the sums of all calls of the backend that this process makes keep to a contract: "any",
    "replicated", "ranks", "tree" or "exact" (docs/bits.md). All ranks must do the same. It is for all
    threads, as the autograd engine makes calls in its own."""
    number = order_number(name)
    load()
    before, named = torch.ops.mscclc.set_order(number), orders.of_calls
    orders.of_calls = name
    try:
        yield
    finally:
        orders.of_calls = named
        torch.ops.mscclc.set_order(before)


def create(of_group, options) -> dist.Backend:
    """The creator that torch calls: `of_group` are its DistributedBackendOptions."""
    if options is None:
        options = Options()
    if not isinstance(options, Options):
        raise UsageError(
            f"pg_options of mscclc are mscclc.torch.Options, not {type(options).__name__}"
        )
    load()
    number = next(_numbers)
    given, made = f"mscclc/given/{number}", f"mscclc/made/{number}"
    rank, size = of_group.group_rank, of_group.group_size
    carrier = dist.ProcessGroup(of_group.store, rank, size)
    # Ranks that reconfigure() changes, since torch 2.15. The others' backends would not have them.
    changing = getattr(of_group, "enable_reconfigure", False)
    if options.fallback and not changing:
        _add_fallbacks(carrier, of_group)
    _register_process_group(given, carrier)
    try:
        milliseconds = round(of_group.timeout.total_seconds() * 1000)
        torch.ops.mscclc.make_backend(
            given, made, of_group.group_id, milliseconds, options.symmetric,
            order_number(options.order), changing,
        )
        try:
            return _resolve_process_group(made)._get_backend(torch.device("cpu"))
        finally:
            torch.ops.mscclc.forget_backend(made)
    finally:
        _unregister_process_group(given)


class _OfMscclc:
    """A method of backends of mscclc, which torch knows as its own class only. Others lack it as before."""

    def __init__(self, name, function):
        self._name, self._function = name, function

    def __get__(self, backend, owner=None):
        if backend is None or backend.name() != "mscclc":
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}")
        return self._function.__get__(backend, owner)


def _mem_pool(backend, pool, symm=False):
    """Calls take memory of any allocator: a pool needs to be neither registered nor taken back."""
    if not isinstance(pool, torch.cuda.MemPool):
        raise UsageError(f"a pool is a torch.cuda.MemPool, not {type(pool).__name__}")


for _name in ("register_mem_pool", "deregister_mem_pool"):
    if not hasattr(torch._C._distributed_c10d.Backend, _name):
        setattr(torch._C._distributed_c10d.Backend, _name, _OfMscclc(_name, _mem_pool))


def _add_fallbacks(carrier, of_group):
    """Backends of torch's that get the calls which no plan serves."""
    rank, size = of_group.group_rank, of_group.group_size
    gloo = dist.ProcessGroupGloo(
        dist.PrefixStore("mscclc/gloo", of_group.store), rank, size, of_group.timeout
    )
    carrier._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.GLOO, gloo)
    if torch.cuda.is_available() and dist.is_nccl_available():
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = of_group.timeout
        nccl = dist.ProcessGroupNCCL(
            dist.PrefixStore("mscclc/nccl", of_group.store), rank, size, options
        )
        carrier._register_backend(torch.device("cuda"), dist.ProcessGroup.BackendType.NCCL, nccl)
