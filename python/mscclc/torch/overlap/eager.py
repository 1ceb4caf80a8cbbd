"""Calls that go past torch's dispatcher, which takes as long as all else that is done before the C call, or, where
gradients are wanted, several times as long.

They may where all tensors are plain ones of a processor or a GPU, and nothing traces, compiles, profiles or changes
calls. Arguments are of the types that the dispatcher hands on, so that it refuses all others.
"""

from typing import Any, Callable, Dict, Sequence, Tuple

import torch
from torch._C import _dispatch_keys, _dispatch_tls_local_include_set, _get_function_stack_at, _len_torch_function_stack
from torch._C._autograd import _profiler_enabled
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


def offer(name: str, function: Callable[..., Any]) -> None:
    """Has op() give a function, with the op's arguments, in the place of an op."""
    _direct[name] = function


def offer_gradients(name: str, recorder: Callable[..., Any]) -> None:
    """The same for calls whose gradients will be computed: `recorder(function)` is called."""
    _recorders[name] = recorder


def known(group: str, options: Tuple[Any, ...], lists: Sequence[Sequence[Any]]) -> Tuple[Any, Any, Any]:
    """The session and what it keeps of a call that has run before and may go past the dispatcher: so it needs no other
    check, only to run again; and what offer_gradients() got, where gradients will be computed. `options`, `lists`: as
    for calls.key_of(), the first of the tensors A. No call: it must be checked, or go to the dispatcher."""
    if torch.compiler.is_compiling() or (_len_torch_function_stack() and _has_modes()):
        return _UNKNOWN
    A, key = lists[0][0], key_of(options, lists, _PLAIN)
    if key is None or A is None:
        return _UNKNOWN
    try:
        of, call = objects.known(group, A.device, key)
    except TypeError:  # an option that is no key of a dict, which the dispatcher refuses
        return _UNKNOWN
    if call is None or _profiler_enabled() or _dispatch_tls_local_include_set().raw_repr() not in _NO_MODES:
        return _UNKNOWN
    if torch.is_grad_enabled():
        for tensors in lists:
            for one in tensors:
                if one is not None and one.requires_grad:
                    recorder = _recorders.get(options[0])
                    return (of, call, recorder) if recorder is not None else _UNKNOWN
    return of, call, None


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
    if (_len_torch_function_stack() and _has_modes()) or _profiler_enabled():
        return False
    return _dispatch_tls_local_include_set().raw_repr() in _NO_MODES
