"""Calls that go past torch's dispatcher, which takes as long as all else that is done before the C call, or, where
gradients are wanted, several times as long.

They may where all tensors are plain ones of a processor or a GPU, and nothing traces, compiles, profiles or changes
calls. Arguments are of the types that the dispatcher hands on, so that it refuses all others.
"""

from typing import Any, Callable, Dict, Sequence, Tuple

import torch
from torch._C import _dispatch_keys, _dispatch_tls_local_include_set, _get_function_stack_at, _len_torch_function_stack
from torch._C._autograd import _profiler_enabled
from torch.compiler import is_dynamo_compiling
from torch.utils._device import DeviceContext

from . import objects
from .calls import PLAIN_TYPES, key_of


def _set_of(*names):
    first, *others = (getattr(torch._C.DispatchKey, name) for name in names)
    keys = torch._C.DispatchKeySet(first)
    for one in others:
        keys = keys.add(one)
    return keys.raw_repr()


def _plain_keys(device):
    """Those of a tensor; and of one that was made in inference mode."""
    yield _set_of(device, "ADInplaceOrView", f"Autograd{device}", f"Autocast{device}")
    yield _set_of(device, f"Autocast{device}")


_PLAIN = frozenset(keys for device in ("CPU", "CUDA") for keys in _plain_keys(device))
# What threads have, and what they have in inference mode: no modes, functional transformations or tracers.
_NO_MODES = (_set_of("BackendSelect", "ADInplaceOrView"), _set_of("BackendSelect"))

_direct: Dict[str, Callable[..., Any]] = {}  # what ops do
_recorders: Dict[str, Callable[..., Any]] = {}  # each makes of a function one whose gradients will be computed
_ops = torch.ops.mscclc
_UNKNOWN = None, None, None
_Guards = getattr(torch._C._dynamo.guards, "TensorGuards", None)
_MOST_SEEN = 8  # shapes of calls with the same options: they are looked at one after the other


def offer(name: str, function: Callable[..., Any]) -> None:
    """Has op() give a function, with the op's arguments, in the place of an op."""
    _direct[name] = function


def offer_gradients(name: str, recorder: Callable[..., Any]) -> None:
    """The same for calls whose gradients will be computed: `recorder(function)` is called."""
    _recorders[name] = recorder


def known(
    group: str, options: Tuple[Any, ...], lists: Sequence[Sequence[Any]], tensors: Tuple[Any, ...], form: Any = None
) -> Tuple[Any, Any, Any]:
    """The session and what it keeps of a call that has run before and may go past the dispatcher: so it needs no other
    check, only to run again; and, where gradients will be computed, what does that with the op's arguments. No call: it
    must be checked, or go to the dispatcher. `options`, `lists`: as for calls.key_of(), the first of the tensors A;
    `tensors`: those of all lists; `form`: what those and their number do not say of the lists."""
    if is_dynamo_compiling():
        return _UNKNOWN
    place = group, options, len(tensors), form, torch.is_grad_enabled()
    try:
        found = objects.seen.get(place, ())
    except TypeError:  # an option that is no key of a dict, which the dispatcher refuses
        return _UNKNOWN
    for is_like, types, *known in found:
        if is_like(*tensors) and types == [*map(type, options)]:
            if _is_watched():
                return _UNKNOWN
            if objects.serves(known[0], group):
                return known
            objects.seen.pop(place, None)
            break
    return _looked_up(place, lists, tensors)


def _looked_up(place, lists, tensors):
    """The same by all that counts, one after the other; the next time it is found at once."""
    group, options, *_ = place
    A, key = lists[0][0], key_of(options, lists, _PLAIN)
    if key is None or A is None or torch.compiler.is_compiling():
        return _UNKNOWN
    of, call = objects.known(group, A.device, key)
    if call is None or _is_watched():
        return _UNKNOWN
    recorded = None
    if torch.is_grad_enabled() and any([one.requires_grad for one in tensors]):
        if options[0] not in _recorders:
            return _UNKNOWN
        recorded = _recorders[options[0]](call.again(of))
    _see(place, tensors, (of, call, recorded))
    return of, call, recorded


def _see(place, tensors, known):
    """Keeps what is known of a call for those whose tensors are like these, each in its place: of the same types of
    Python and torch, device, sizes, strides, what they are to autograd, and keys for torch's dispatcher, with those
    that the thread adds and takes away. Dynamo's guards look at all that at once."""
    if _Guards is None:
        return
    is_like = _Guards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None).check
    if not is_like(*tensors):  # one tensor comes twice
        return
    if len(objects.seen) >= objects.MOST_CALLS:
        objects.seen.clear()
    before = objects.seen.get(place, ())[:_MOST_SEEN - 1]
    objects.seen[place] = ((is_like, [*map(type, place[1])], *known), *before)


def op(
    name: str, tensors: Sequence[Any], texts: Sequence[Any] = (), numbers: Sequence[Any] = (),
    bools: Sequence[Any] = (), dtypes: Sequence[Any] = (),
) -> Callable[..., Any]:  # fmt: skip
    """The op of a name, or what may be called in its place with these arguments."""
    others = ((str, texts), (int, numbers), (bool, bools), (torch.dtype, dtypes))
    if torch.compiler.is_compiling() or not _is_plain(tensors, others):
        return getattr(_ops, name)
    if torch.is_grad_enabled():
        for one in tensors:
            if one.requires_grad:
                return _recorders[name](_direct[name]) if name in _recorders else getattr(_ops, name)
    return _direct[name]


def _is_watched():
    """Whether a mode, profiler or transformation sees calls: _Guards take no notice of some of torch's own modes."""
    if _profiler_enabled() or (_len_torch_function_stack() and _has_modes()):
        return True
    return _dispatch_tls_local_include_set().raw_repr() not in _NO_MODES


def _has_modes():
    """Modes that see functions, other than torch.device() and set_default_device(), which say nothing of tensors that
    are given."""
    return any(type(_get_function_stack_at(i)) is not DeviceContext for i in range(_len_torch_function_stack()))


def _is_plain(tensors, others):
    """Whether torch's dispatcher would only call what the op does, or record it for gradients."""
    for one in tensors:
        if type(one) not in PLAIN_TYPES or _dispatch_keys(one).raw_repr() not in _PLAIN:
            return False
    for kind, values in others:
        for one in values:
            if type(one) is not kind:
                return False
    return not _is_watched()
