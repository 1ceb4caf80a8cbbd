"""The registry of the process: plans that communicators pick from, and a selector in Python.

    registry = mscclc.Registry()
    registry.register(plan, "mine")
    registry.set_selector(lambda request: "mine" if request.bytes < 1 << 20 else None)
"""

import ctypes
import sys
import traceback
from dataclasses import dataclass
from typing import Any, Callable, Optional

from ._arguments import text as as_text
from ._library import Selector, check, library
from ._numbers import DTYPES, KINDS, OPS
from .errors import UsageError

_KIND_OF = {kind.number: name for name, kind in KINDS.items()}
_OP_OF = {number: name for name, number in OPS.items()}
_DTYPE_OF = {number: name for name, (number, _) in DTYPES.items()}
_USUAL, _PLAN, _NONE = 0, 1, 2
_ROOM = 256  # bytes of an answer, with the 0

_selectors = []  # all there were: a thread of the library may be in one while another is set


@dataclass(frozen=True)
class Request:
    """What a choice may depend on: all of it is the same on all ranks."""

    collective: str
    dtype: str
    op: Optional[str]
    ranks: int
    nodes: int  # machines; 0: ranks are spread over them unevenly
    root: int
    in_place: bool
    bytes: int  # the larger of a rank's input and output
    capturing: bool
    architecture: int  # 90 for compute capability 9.0; 0: no GPUs, or not known
    tag: str
    either_place: bool  # some ranks may be in place and others not; in_place is True then


class Registry:
    """The registry of the process, which all communicators use that name no other one: those of this
    package, of mscclc.torch and of TorchComms. Ranks must have the same plans whenever they make a
    call. Any thread."""

    def register(self, plan: Any, name: str) -> str:
        """Adds a Plan, or the text of one, and gives its content hash. The plan is proved here, unless
        MSCCLC_PROOF says otherwise, and one that fails is refused. `name` is for selectors, remove()
        and messages: another plan may not have it. A plan that is there already keeps its first name."""
        text = (plan if isinstance(plan, str) else plan.to_json()).encode()
        id = ctypes.create_string_buffer(65)
        self._call("mscclc_register_plan", text, len(text), as_text(name, "the name"), id)
        return id.value.decode()

    def remove(self, name: str) -> None:
        """Takes out a plan by its name or content hash; what has picked it goes on."""
        self._call("mscclc_remove_plan", as_text(name, "the name"))

    def add(self, path: str) -> None:
        """Adds a plan's file, or a folder of plans, and of rows for GEMMs that overlap."""
        self._call("mscclc_registry_add", as_text(str(path), "the path"))

    def set_selector(self, selector: Optional[Callable[[Request], Any]]) -> None:
        """What says which plan serves a call: its name or content hash; None: the one that the
        registry would pick; False: none, and the call fails. An exception is shown, and the call
        fails. It must give the same on all ranks, may not call this package, and answers are kept.
        None instead of a function: no selector."""
        if selector is not None and not callable(selector):
            raise UsageError(f"a selector is a function, or None, not {selector!r}")
        made = Selector() if selector is None else Selector(_answering(selector))
        _selectors.append(made)
        self._call("mscclc_set_selector", made, None)

    def _call(self, function, *arguments):
        handle = ctypes.c_void_p()
        check(library().mscclc_registry_default(ctypes.byref(handle)))
        try:
            check(getattr(library(), function)(handle, *arguments))
        finally:
            library().mscclc_registry_destroy(handle)


def _answering(selector):
    def answer(_, request, plan):
        try:
            found = selector(_request_of(request[0]))
            if found is None:
                return _USUAL
            if found is False:
                return _NONE
            if not isinstance(found, str):
                raise UsageError(f"a selector gives a plan's name, None or False, not {found!r}")
            name = as_text(found, "a selector's answer")
            if len(name) >= _ROOM:
                raise UsageError(f"a selector gives a plan's name, not {found!r}")
            ctypes.memmove(plan, name + b"\0", len(name) + 1)
            return _PLAN
        except BaseException:  # Ctrl-C, too: the library knows none
            traceback.print_exc(file=sys.stderr)
            return _NONE

    return answer


def _request_of(request):
    return Request(
        _KIND_OF.get(request.kind, str(request.kind)), _DTYPE_OF.get(request.dtype, "?"),
        _OP_OF.get(request.op), request.ranks, request.nodes, request.root, bool(request.in_place),
        request.bytes, bool(request.capturing), request.architecture, request.tag.decode(),
        bool(request.either_place),
    )  # fmt: skip
