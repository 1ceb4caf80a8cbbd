"""Products that overlap with collectives, by ctypes: the part of mscclc.h that begins with mscclc_overlap_."""

import contextlib
import ctypes
import json
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ._library import HOST, check, library
from ._numbers import DTYPES, ORDERS, OVERLAPS
from ._waiting import wait_for
from .communicator import Communicator
from .errors import LibraryError, UsageError


class Gemm(Structure):
    """mscclc_gemm_t"""

    _fields_ = [
        ("size", c_size_t),
        ("m", c_uint64),
        ("n", c_uint64),
        ("k", c_uint64),
        ("a", c_void_p),
        ("b", c_void_p),
        ("d", c_void_p),
        ("a_stride", c_uint64),
        ("b_stride", c_uint64),
        ("d_stride", c_uint64),
        ("b_transposed", c_int32),
        ("accumulate", c_int32),
        ("a_dtype", c_int32),
        ("b_dtype", c_int32),
        ("d_dtype", c_int32),
        ("multiprocessors", c_uint32),
        ("a_scale", c_void_p),
        ("b_scale", c_void_p),
        ("bias", c_void_p),
        ("workspace", c_void_p),
        ("workspace_bytes", c_size_t),
    ]


# mscclc_gemm_fn
GemmFunction = CFUNCTYPE(c_int, c_void_p, POINTER(Gemm), c_void_p)


class Config(Structure):
    """mscclc_overlap_config_t"""

    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int32),
        ("device", c_int32),
        ("m", c_uint64),
        ("k", c_uint64),
        ("n", POINTER(c_uint64)),
        ("weights", c_uint32),
        ("b_transposed", c_int32),
        ("a_dtype", c_int32),
        ("b_dtype", c_int32),
        ("out_dtype", c_int32),
        ("order", c_int32),
        ("bias", c_int32),
        ("backend", c_char_p),
        ("chunks", c_uint32),
        ("budget", c_uint32),
        ("gemm", GemmFunction),
        ("gemm_user", c_void_p),
        ("gemm_workspace_bytes", c_size_t),
        ("caller_workspace", c_int32),
        ("activation", c_int32),
        ("agreed", c_char_p),
    ]


class OverlapCall(Structure):
    """mscclc_overlap_call_t"""

    _fields_ = [
        ("size", c_size_t),
        ("a", c_void_p),
        ("b", POINTER(c_void_p)),
        ("out", POINTER(c_void_p)),
        ("bias", POINTER(c_void_p)),
        ("a_scale", c_void_p),
        ("b_scale", POINTER(c_void_p)),
        ("gathered", c_void_p),
        ("workspace", c_void_p),
        ("workspace_bytes", c_size_t),
        ("pre_activation", POINTER(c_void_p)),
    ]


class Shape(NamedTuple):
    """What an object is made for; types are names of `_numbers`."""

    kind: str
    m: int
    k: int
    n: Tuple[int, ...]
    a: str
    b: str
    out: str
    b_transposed: bool = False
    bias: bool = False
    order: Optional[str] = None
    backend: str = "auto"
    chunks: int = 0
    budget: int = 0
    reduce_op: str = "none"  # what callers make of a sum: only compared among ranks


class Buffers(NamedTuple):
    """Addresses of a run, as mscclc_overlap_call_t has them."""

    a: int
    b: Sequence[int]
    out: Sequence[int]
    bias: Sequence[int] = ()
    a_scale: Optional[int] = None
    b_scale: Sequence[Optional[int]] = ()
    gathered: Optional[int] = None
    workspace: Optional[int] = None


class Overlap:
    """An object of a communicator. For one thread at a time: runs share the arguments of the C call."""

    def __init__(
        self, comm: Communicator, shape: Shape, gemm: Optional[Callable[[Gemm, Optional[int]], None]] = None,
        by: Optional[str] = None,
    ):  # fmt: skip
        """Collective. `gemm` computes a product on a stream (docs/overlap.md); None: the library does. `by`: its name,
        the same on all ranks."""
        self._comm, self._raised, self._handle = comm, [], c_void_p()
        self._function = GemmFunction() if gemm is None else GemmFunction(self._guarded(gemm))
        widths = (c_uint64 * len(shape.n))(*shape.n)
        config = Config(
            ctypes.sizeof(Config), OVERLAPS[shape.kind], HOST, shape.m, shape.k, widths, len(shape.n),
            shape.b_transposed, DTYPES[shape.a][0], DTYPES[shape.b][0], DTYPES[shape.out][0],
            ORDERS[shape.order], shape.bias, shape.backend.encode(), shape.chunks, shape.budget,
            self._function, None, 0, True, 0,
            f"reduce_op={shape.reduce_op}, gemm={by or ('own' if gemm is None else 'given')}".encode(),
        )  # fmt: skip
        create, handle = library().mscclc_overlap_create, comm._own()
        arguments = [handle, ctypes.byref(config), ctypes.byref(self._handle)]
        try:
            wait_for(lambda: check(create(*arguments)), lambda: comm.abort("interrupted"))
        except LibraryError as error:
            self._raise_first(error)
        bytes = c_size_t()
        check(library().mscclc_overlap_workspace(self._handle, ctypes.byref(bytes)))
        self.workspace_bytes = bytes.value
        self._prepare_call(len(shape.n), shape.bias)

    def _prepare_call(self, weights, bias):
        """What runs fill in: to make it takes longer than the C call."""
        self._b, self._out, self._b_scale = ((c_void_p * weights)() for _ in range(3))
        self._bias, self._had_scales = (c_void_p * (weights if bias else 0))(), False
        self._call = OverlapCall(
            size=ctypes.sizeof(OverlapCall), b=self._b, out=self._out, workspace_bytes=self.workspace_bytes
        )
        if bias:
            self._call.bias = self._bias
        self._run, self._reference = library().mscclc_overlap_run, ctypes.byref(self._call)

    def _guarded(self, gemm):
        """C learns that it has failed; what waits for it raises why."""

        def call(_, given, stream):
            try:
                gemm(given.contents, stream)
                return 0
            except BaseException as error:
                self._raised.append(error)
                return 1

        return call

    def run(self, buffers: Tuple[Any, ...], stream: Optional[int]) -> None:
        """Queues a run, of Buffers, on a stream of CUDA. On the host device, whose stream is the communicator's, it has
        ended on return, and where it fails."""
        if not self._handle:
            raise UsageError("the object is closed")
        call = self._call
        call.a, self._b[:], self._out[:], bias, a_scale, b_scale, call.gathered, call.workspace = buffers
        if bias or len(self._bias):
            self._bias[:] = bias
        if a_scale or b_scale or self._had_scales:
            call.a_scale, call.b_scale = a_scale, self._b_scale if b_scale else None
            self._b_scale[:] = b_scale or [None] * len(self._b_scale)
            self._had_scales = bool(a_scale or b_scale)
        try:
            result = self._run(self._handle, self._reference, self._comm._queue(stream))
            if result:
                check(result)
            if stream is None:
                self._comm.synchronize()
        except LibraryError as error:
            if stream is None:  # what is queued may still use the buffers, which the caller may free
                with contextlib.suppress(LibraryError):
                    self._comm.synchronize()
            self._raise_first(error)

    @property
    def is_open(self) -> bool:
        """Whether it can run."""
        return bool(self._handle)

    def _raise_first(self, error):
        """Where a product has failed, that is the error."""
        if not self._raised:
            raise error
        raised, self._raised = self._raised, []
        raise raised[0] from error

    def explain(self) -> Dict[str, Any]:
        """What runs: "backend", "chunks", "budget" and "why"; "in_graphs", the same for runs that are captured, where
        they differ; "memory": bytes of the device that the object holds."""
        return _json(library().mscclc_overlap_explain, self._handle)

    def close(self) -> None:
        """Waits for all that is on its device, then frees the object; the second time nothing."""
        if self._handle:
            check(library().mscclc_overlap_destroy(self._handle))
            self._handle = c_void_p()


def backends(device: Optional[int]) -> List[Dict[str, Any]]:
    """All backends, as objects with "name", "available" and "why", for a GPU or the host."""
    return _json(library().mscclc_overlap_backends, HOST if device is None else device)


def _json(function, of):
    text = c_void_p()
    check(function(of, ctypes.byref(text)))
    try:
        return json.loads(ctypes.string_at(text))
    finally:
        library().mscclc_free(text)
