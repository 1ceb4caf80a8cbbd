"""Calls that go past torch's dispatcher, which takes as long as all else that is done before the C call, or, where
gradients are wanted, several times as long.

They may where all tensors are plain ones of a processor or a GPU, and nothing traces, compiles, profiles or changes
calls. Arguments are of the types that the dispatcher hands on, so that it refuses all others.
"""

from typing import Any, Callable, Dict, Sequence

import torch
from torch._C import _dispatch_keys, _dispatch_tls_local_include_set, _get_function_stack_at, _len_torch_function_stack
from torch._C._autograd import _profiler_enabled
from torch.utils._device import DeviceContext

_TENSORS = (torch.Tensor, torch.nn.Parameter)


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
_recorded: Dict[str, Callable[..., Any]] = {}  # the same, and gradients of it will be computed
_ops = torch.ops.mscclc


def offer(name: str, function: Callable[..., Any], recorded: bool = False) -> None:
    """Has op() give a function, with the op's arguments, in the place of an op."""
    (_recorded if recorded else _direct)[name] = function


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
                return _recorded.get(name) or getattr(_ops, name)
    return _direct[name]


def _has_modes():
    """Modes that see functions, other than torch.device() and set_default_device(), which say nothing of tensors that
    are given."""
    return any(type(_get_function_stack_at(i)) is not DeviceContext for i in range(_len_torch_function_stack()))


def _is_plain(tensors, others):
    """Whether torch's dispatcher would only call what the op does, or record it for gradients."""
    for one in tensors:
        if type(one) not in _TENSORS or _dispatch_keys(one).raw_repr() not in _PLAIN:
            return False
    for kind, values in others:
        for one in values:
            if type(one) is not kind:
                return False
    if (_len_torch_function_stack() and _has_modes()) or _profiler_enabled():
        return False
    return _dispatch_tls_local_include_set().raw_repr() in _NO_MODES
