"""Makes a backend of torch.distributed: the adapter's object, by way of torch's registry of groups."""

import contextlib
import datetime
import functools
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
from .options import Options, ends_process, requires_plans

_numbers = itertools.count()
_of_parts = torch.library.Library("mscclc", "FRAGMENT")


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


def create(of_group, options, ends: bool = True) -> dist.Backend:
    """The creator that torch calls: `of_group` are its DistributedBackendOptions. Without `ends`, the process
    goes on where calls were cut short, whatever the variable says."""
    if options is None:
        options = Options()
    if not isinstance(options, Options):
        raise UsageError(
            f"pg_options of mscclc are mscclc.torch.Options, not {type(options).__name__}"
        )
    where = ends_process() if ends else 0
    _load()
    number = next(_numbers)
    given, made = f"mscclc/given/{number}", f"mscclc/made/{number}"
    rank, size = of_group.group_rank, of_group.group_size
    carrier = dist.ProcessGroup(of_group.store, rank, size)
    # Ranks that reconfigure() changes, since torch 2.15. The others' backends would not have them.
    changing = getattr(of_group, "enable_reconfigure", False)
    if options.fallback and not changing and not requires_plans():
        _add_fallbacks(carrier, of_group.store, of_group.timeout)
    _register_process_group(given, carrier)
    try:
        milliseconds = round(of_group.timeout.total_seconds() * 1000)
        torch.ops.mscclc.make_backend(
            given, made, of_group.group_id, milliseconds, options.symmetric,
            order_number(options.order), changing, where,
        )
        try:
            return _resolve_process_group(made)._get_backend(torch.device("cpu"))
        finally:
            torch.ops.mscclc.forget_backend(made)
    finally:
        _unregister_process_group(given)


@functools.cache
def _load():
    """Loads the adapter, and gives it what it asks Python for; once."""
    load()
    _of_parts.impl("begin_part", _begin_part, "CompositeImplicitAutograd")


def _begin_part(given, group, parent, milliseconds, fallback):
    """split_group() makes a group of ranks of `parent`, which are those of the registered `given`."""
    orders.keep(group, orders.of_group(parent))
    if fallback:
        carrier = _resolve_process_group(given)
        timeout = datetime.timedelta(milliseconds=milliseconds)
        _add_fallbacks(carrier, carrier.get_group_store(), timeout)


class _OfMscclc:
    """An attribute of what mscclc has of a class of torch's. Others of the class lack it as before."""

    def __init__(self, name, value_of, whose):
        self._name, self._value_of, self._whose = name, value_of, whose

    def __get__(self, one, owner=None):
        if one is None or self._whose(one) != "mscclc":
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}")
        return self._value_of(one)


def _mem_pool(backend, pool, symm=False):
    """Calls take memory of any allocator: a pool needs to be neither registered nor taken back."""
    if not isinstance(pool, torch.cuda.MemPool):
        raise UsageError(f"a pool is a torch.cuda.MemPool, not {type(pool).__name__}")


def _split_source(torchs, *group):
    """What communicators of NCCL are split from when new_group() makes one: none of ours. torch 2.15 asks with the
    backend of the new group, too."""
    source = torchs(*group)
    return None if source is None or source.name() == "mscclc" else source


def _copied(options, _):
    """For split_group() of versions of torch in which backends have options: a part's are a copy."""
    same = type(options)(options.backend, options._timeout)
    same.group_name, same.global_ranks_in_group = options.group_name, options.global_ranks_in_group
    return same


def _add_what_torch_asks_for():
    """Attributes that only classes of torch's own backends have; and torch, which takes any backend that splits
    for NCCL's, is kept from that."""
    backends = torch._C._distributed_c10d.Backend
    of_backends = {
        "register_mem_pool": lambda backend: functools.partial(_mem_pool, backend),
        "deregister_mem_pool": lambda backend: functools.partial(_mem_pool, backend),
        "options": lambda backend: None,  # then split_group() asks the adapter for them
    }
    for name, value_of in of_backends.items():
        if not hasattr(backends, name):
            setattr(backends, name, _OfMscclc(name, value_of, backends.name))
    options = getattr(backends, "Options", None)
    if options is not None and not hasattr(options, "__deepcopy__"):
        copied = _OfMscclc("__deepcopy__", lambda one: functools.partial(_copied, one), lambda one: one.backend)
        setattr(options, "__deepcopy__", copied)
    if torchs := getattr(dist.distributed_c10d, "_get_split_source", None):
        dist.distributed_c10d._get_split_source = functools.partial(_split_source, torchs)


_add_what_torch_asks_for()


def _add_fallbacks(carrier, store, timeout):
    """Backends of torch's that get the calls which no plan serves."""
    rank, size = carrier.rank(), carrier.size()
    gloo = dist.ProcessGroupGloo(dist.PrefixStore("mscclc/gloo", store), rank, size, timeout)
    carrier._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.GLOO, gloo)
    if torch.cuda.is_available() and dist.is_nccl_available():
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = timeout
        nccl = dist.ProcessGroupNCCL(
            dist.PrefixStore("mscclc/nccl", store), rank, size, options
        )
        carrier._register_backend(torch.device("cuda"), dist.ProcessGroup.BackendType.NCCL, nccl)
