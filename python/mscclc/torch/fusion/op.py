"""The op that stands in a graph in place of a sum and a function of its rows:

    torch.ops.mscclc.fused_rows(input, read, function, group, max_bytes, parts=1) -> Tensor[]

Its arguments say all, so compiled code that is kept runs in a later process. The first call of a function in a
process is collective: plans are compiled at rank 0 and loaded at all. What they do not serve is added up by the group,
in its order, and the function is computed by a plan of one rank, with the bits that it has in the others.
"""

import collections
import logging
import os
from typing import Any, Counter, Dict, List, NamedTuple, Tuple

import torch
import torch.distributed as dist

from ... import compile
from ...buffers import of_tensor
from ...communicator import Communicator, LoadedPlan
from ...errors import UsageError
from .. import orders, plans
from . import known_calls, programs
from .function import TYPES, Function, read
from .groups import group_of, process_group

_log = logging.getLogger("mscclc.fusion")

# What the library says where a link does not carry a plan (no-peer-access, no-nvlink).
_UNREACHED = ("cannot reach the memory of rank", "need NVLink")


class _Loaded(NamedTuple):
    """A function's plans, and what calls they serve."""

    comm: Communicator
    plans: List[Tuple[programs.Range, LoadedPlan]]
    why_none: str = "the group has one rank"  # compiled code may have been kept from a run with more ranks


class _Key(NamedTuple):
    """What plans are loaded for."""

    function: str
    group: str
    max_bytes: int
    device: torch.device
    scattered: bool


_ALONE = ""  # the group of one rank, which no process group has
_communicators: Dict[Tuple[str, torch.device], Tuple[Any, Communicator]] = {}
_apart_groups: Dict[Tuple[str, torch.device], str] = {}  # whose ranks do not reach one another's memory, and why
_loaded: Dict["_Key", _Loaded] = {}
_calls: Counter[str] = collections.Counter()


def calls() -> Dict[str, int]:
    """How many calls of this process each program has served, and how many, as "alone", served only the function, as
    they had more than max_bytes, or sums of which plans do not keep the contract: the group adds these up. Graphs that
    are replayed are not counted."""
    return dict(_calls)


def close() -> None:
    """Frees all plans, on all ranks; graphs that hold calls must not be launched any more. The next call loads anew."""
    known_calls.forget()
    _loaded.clear()
    _apart_groups.clear()
    while _communicators:
        _communicators.popitem()[1][1].close()


def _fused_rows(
    input: torch.Tensor, given: List[torch.Tensor], function: str, group: str, max_bytes: int, parts: int = 1
) -> List[torch.Tensor]:
    made, bytes = read(function), input.numel() * input.element_size()
    key = _Key(function, group, max_bytes, input.device, parts > 1)
    _check(made, input, given, parts)
    results = made.empty(_part(input, parts))
    ranks = process_group(group)
    order, known_key = _order(ranks), known_calls.key_of((function, group, max_bytes, parts), [input, *given])
    known = known_calls.find(known_key, ranks, order)
    if known is not None:
        _calls[known.kind] += 1
        known.run(input, given, results, made.main)
        return results
    unserved = programs.why_not(dist.get_world_size(ranks), made.columns, made.type, order[0])
    if unserved:  # calls may have another contract than when the graph was compiled
        return _apart(made, input, given, results, key, parts, unserved)
    loaded = _plans_of(made, key, ranks)  # a call without rows loads them, too: it is compared with the other ranks'
    if bytes > max_bytes:
        return _too_large(made, input, given, results, key, parts, loaded)
    if not loaded.plans:
        return _apart(made, input, given, results, key, parts, loaded.why_none)
    if parts not in (1, loaded.comm.size):
        raise UsageError(f"the sum is of {parts} parts, and the group has {loaded.comm.size} ranks")
    rows = input.numel() // made.columns
    range, plan = next(one for one in loaded.plans if rows <= one[0].most_rows)
    if rows:
        _calls[range.kind] += 1
    input, given = _ready(input), [_ready(one) for one in given]
    known = _checked(loaded.comm, plan, made, input, given, results, range.kind, ranks, order)
    known.run(input, given, results, made.main)
    known_calls.keep(known_key, known)
    return results


def _order(ranks):
    """What the order of sums over a group depends on now."""
    return orders.in_force(ranks), os.environ.get("MSCCLC_ORDER")


def _part(input, parts):
    """What has the shape of a rank's part of a sum, along its first dimension."""
    return input if parts == 1 else input[: input.shape[0] // parts]


def _check(function, input, given, parts):
    """What the plan's own checks of its externals do not see."""
    if parts < 1 or (parts > 1 and (input.dim() < 2 or input.shape[0] % parts)):
        raise UsageError(f"an input of shape {list(input.shape)} has no {parts} equal parts of rows")
    if len(given) != len(function.parameters):
        raise UsageError(f"{len(given)} tensors are given, and the function reads {len(function.parameters)}")
    if input.dim() == 0 or input.shape[-1] != function.columns or TYPES.get(input.dtype) != function.type:
        raise UsageError(
            f"the function is of rows of {function.columns} {function.type}, and the input of shape"
            f" {list(input.shape)} {input.dtype}"
        )


def _apart(function, input, given, results, key, parts, why):
    if not _calls["alone"]:
        _log.info("all-reduce and function of a call are apart: %s; further such calls are only counted", why)
    _calls["alone"] += 1
    found = group_of(key.group)
    sum = found.sum(input) if parts == 1 else found.scattered(input)
    loaded = _plans_of(function, key._replace(group=_ALONE, max_bytes=0, scattered=False), None)
    sum, given = _ready(sum), [_ready(one) for one in given]
    call = _checked(loaded.comm, loaded.plans[0][1], function, sum, given, results)
    call.run(sum, given, results, function.main)
    return results


def _too_large(function, input, given, results, key, parts, loaded):
    """A call with more than max_bytes: it is compared with the other ranks', of which one may have less. That one gets
    the error at once; this one when the group's sum ends, as that waits for the other, however the group does."""
    bytes = input.numel() * input.element_size()
    stream = known_calls.stream_of(input)
    if loaded.plans:
        loaded.plans[-1][1]._leave(bytes, function.type, stream)
    why = f"{bytes} bytes are more than max_bytes, {key.max_bytes}"
    try:
        return _apart(function, input, given, results, key, parts, why)
    except UsageError:
        raise
    except Exception:
        loaded.comm.synchronize(stream)  # why the others do not come
        raise


def _ready(tensor):
    """The tensor where plans can take it: without gaps, at a multiple of 16 bytes."""
    tensor = tensor.detach().contiguous()
    return tensor.clone() if tensor.data_ptr() % 16 else tensor


def _checked(comm, plan, function, input, given, results, kind="alone", ranks=None, order=()):
    for one in (*given, *results):
        if one.device != input.device:
            raise UsageError(f"the input is of {input.device}, and a tensor of {one.device}")
    read_names, other_names = programs.externals(function)
    others = [one for i, one in enumerate(results) if i != function.main]
    bits = [one.view(torch.uint8) if one.element_size() == 1 else one for one in others]
    externals = {
        name: of_tensor(one, f"the external '{name}'")
        for name, one in zip([*read_names, *other_names], [*given, *bits])
    }
    main = of_tensor(results[function.main], "the output")
    call = plan._prepare(of_tensor(input, "the input"), main, function.type, externals)
    places = [int(name[1:]) + (len(given) if name in other_names else 0) for name in call.names]
    return known_calls.KnownCall(comm, call, kind, ranks, order, tuple(places))


def _plans_of(function, key, ranks):
    group, device = key.group, key.device
    known = _communicators.get((group, device))
    if known is not None and known[0] is not ranks:  # a later group of the same name
        _forget(group, device)
    if key not in _loaded:
        if plans.is_captured(device):
            raise UsageError("a graph is captured, and the plans of a fused op are not loaded yet: run it once before")
        _loaded[key] = _load(function, key, ranks)
    return _loaded[key]


def _forget(group, device):
    known_calls.forget()
    for key in [one for one in _loaded if (one.group, one.device) == (group, device)]:
        del _loaded[key]
    _apart_groups.pop((group, device), None)
    _communicators.pop((group, device))[1].close()


def _load(function, key, ranks):
    """Collective over the group, if there is one."""
    place = key.group, key.device
    if place not in _communicators:
        comm = plans.alone(key.device) if ranks is None else plans.communicator(ranks, key.device)
        _communicators[place] = ranks, comm
    comm = _communicators[place][1]
    if ranks is None:
        one = programs.alone(function)
        return _Loaded(comm, _loaded_by(comm, [(one, compile(programs.program(one, function)).to_json())], function))
    if place in _apart_groups:
        return _Loaded(comm, [], _apart_groups[place])
    comm._meet()  # a rank that has loaded them for an earlier call, and makes this one now, does not come: an error
    if _differs(function, key, ranks):
        return _Loaded(comm, [], "its function is not the same on all ranks")
    made = _compiled(function, ranks, key.max_bytes // function.row_bytes, key.scattered)
    return _loaded_by_all(comm, made, function, place, ranks)


def _loaded_by(comm, made, function):
    return [(one, comm.load(text, one.most_rows * function.row_bytes, function.type)) for one, text in made]


def _loaded_by_all(comm, made, function, place, ranks):
    """Plans are for ranks that reach one another's memory; others are known after the first try."""
    loaded: List[Any] = []
    for one in made:  # after each: the others must not wait for the next load of one that has failed
        failed: Any = None
        try:
            loaded += _loaded_by(comm, [one], function)
        except Exception as error:  # all ranks wait for it
            failed = error
        said = enumerate(_of_all(failed and (str(failed) or type(failed).__name__), ranks))
        why = [(rank, text) for rank, text in said if text]
        for rank, text in why:
            if any(words in text for words in _UNREACHED):
                _apart_groups[place] = f"rank {rank}: {text}"
                return _Loaded(comm, [], _apart_groups[place])
        if failed:
            raise failed
        if why:
            raise RuntimeError(f"rank {why[0][0]} has not loaded a plan of a fused op: {why[0][1]}")
    return _Loaded(comm, loaded)


def _differs(function, key, ranks):
    """Whether ranks ask for different plans: each may have traced a number of its own."""
    own = (function.to_json(), key.max_bytes, key.scattered)
    return any(one != own for one in _of_all(own, ranks))


def _of_all(own, ranks):
    found: List[Any] = [None] * dist.get_world_size(ranks)
    dist.all_gather_object(found, own, group=ranks)
    return found


def _compiled(function: Function, ranks: Any, max_rows: int, scattered: bool) -> List[Tuple[programs.Range, str]]:
    """The plans, from rank 0. What fails there fails at all."""
    size = dist.get_world_size(ranks)
    found: List[Any] = [None]
    if dist.get_rank(ranks) == 0:
        try:
            all = programs.ranges(function, size, max_rows, scattered)
            found = [[(one, compile(programs.program(one, function)).to_json()) for one in all]]
        except Exception as error:  # all ranks wait for it
            found = [error]
    dist.broadcast_object_list(found, group=ranks, group_src=0)
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


_library = torch.library.Library("mscclc", "FRAGMENT")
_library.define(
    "fused_rows(Tensor input, Tensor[] read, str function, str group, int max_bytes, int parts=1)"
    " -> Tensor[]"
)
for _key in ("CPU", "CUDA"):
    _library.impl("fused_rows", _fused_rows, _key)
torch.library.register_fake(
    "mscclc::fused_rows",
    lambda input, given, function, group, max_bytes, parts=1: read(function).empty(_part(input, parts)),
    lib=_library,
)
