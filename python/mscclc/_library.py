"""libmscclc by ctypes: what of runtime/doors/c/mscclc.h the package calls."""

import ctypes
import os
from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_float, c_int32, c_int64
from ctypes import c_size_t, c_uint32, c_uint64, c_void_p

from .errors import LibraryError, UsageError

NAME = "libmscclc.so.0"
HOST = -1
NOT_PROVED = 4  # mscclc_result_t


class UniqueId(Structure):
    """mscclc_unique_id_t"""

    _fields_ = [("text", c_char * 128)]


class Config(Structure):
    """mscclc_config_t, of the version that this file knows"""

    _fields_ = [
        ("size", c_size_t),
        ("device", c_int32),
        ("timeout_ms", c_uint32),
        ("ready_bytes", c_uint64),
        ("registry", c_void_p),
        ("beside", c_uint64),
        ("order", c_int32),
        ("ends_process", c_uint64),
    ]


class Call(Structure):
    """mscclc_call_t; the makers of calls set `size`, `dtype`, `op` and `accumulate`"""

    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int32),
        ("dtype", c_int32),
        ("op", c_int32),
        ("accumulate", c_int32),
        ("root", c_uint32),
        ("registered", c_int32),
        ("shift", c_int64),
        ("count", c_uint64),
        ("input", c_void_p),
        ("output", c_void_p),
        ("counts", c_void_p),
        ("input_offsets", c_void_p),
        ("output_offsets", c_void_p),
        ("tag", c_char_p),
        ("order", c_int32),
        ("externals", c_void_p),
        ("externals_count", c_size_t),
        ("flags", c_void_p),
        ("flags_count", c_size_t),
        ("budget", c_uint32),
        ("launch_order", c_int32),
    ]


class External(Structure):
    """mscclc_external_t"""

    _fields_ = [
        ("name", c_char_p),
        ("data", c_void_p),
        ("dtype", c_int32),
        ("value", c_float),
        ("rows", c_uint64),
        ("columns", c_uint64),
        ("reserved", c_uint64),
    ]


class Flags(Structure):
    """mscclc_flags_t"""

    _fields_ = [
        ("name", c_char_p),
        ("words", c_void_p),
        ("count", c_uint64),
        ("bits", c_uint32),
        ("reserved", c_uint32),
    ]


class Request(Structure):
    """mscclc_request_t"""

    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int32),
        ("dtype", c_int32),
        ("op", c_int32),
        ("accumulate", c_int32),
        ("ranks", c_uint32),
        ("nodes", c_uint32),
        ("root", c_uint32),
        ("in_place", c_int32),
        ("shift", c_int64),
        ("bytes", c_uint64),
        ("registered", c_int32),
        ("capturing", c_int32),
        ("architecture", c_uint32),
        ("multiprocessors", c_uint32),
        ("tag", c_char_p),
        ("either_place", c_int32),
        ("order", c_int32),
    ]


# mscclc_selector_fn
Selector = CFUNCTYPE(c_int32, c_void_p, POINTER(Request), POINTER(c_char))

_FUNCTIONS = {
    "mscclc_unique_id": [POINTER(UniqueId)],
    "mscclc_comm_create": [
        POINTER(c_void_p), c_uint32, POINTER(UniqueId), c_uint32, POINTER(Config),
    ],
    "mscclc_comm_create_env": [POINTER(c_void_p), c_char_p, POINTER(Config)],
    "mscclc_comm_split": [c_void_p, c_int32, c_int32, POINTER(c_void_p), c_void_p],
    "mscclc_comm_rank": [c_void_p, POINTER(c_uint32)],
    "mscclc_comm_size": [c_void_p, POINTER(c_uint32)],
    "mscclc_comm_abort": [c_void_p, c_char_p],
    "mscclc_comm_finalize": [c_void_p],
    "mscclc_comm_destroy": [c_void_p],
    "mscclc_stream_create": [c_void_p, POINTER(c_void_p)],
    "mscclc_stream_destroy": [c_void_p, c_void_p],
    "mscclc_stream_synchronize": [c_void_p, c_void_p],
    "mscclc_stream_mark": [c_void_p, c_void_p, POINTER(c_uint64), POINTER(c_uint64)],
    "mscclc_memory_create": [c_void_p, c_size_t, POINTER(c_void_p)],
    "mscclc_memory_release": [c_void_p],
    "mscclc_write": [c_void_p, c_void_p, c_void_p, c_size_t],
    "mscclc_read": [c_void_p, c_void_p, c_void_p, c_size_t],
    "mscclc_register": [c_void_p, c_void_p, c_size_t, POINTER(c_uint64)],
    "mscclc_registered_address": [
        c_void_p, c_uint64, c_uint32, POINTER(c_void_p), POINTER(c_size_t),
    ],
    "mscclc_deregister": [c_void_p, c_uint64],
    "mscclc_collective": [c_void_p, POINTER(Call), c_void_p],
    "mscclc_waits": [c_void_p, POINTER(Call), c_void_p, POINTER(c_int32)],
    "mscclc_barrier": [c_void_p, c_void_p],
    "mscclc_group_start": [],
    "mscclc_group_end": [],
    "mscclc_registry_default": [POINTER(c_void_p)],
    "mscclc_registry_destroy": [c_void_p],
    "mscclc_registry_add": [c_void_p, c_char_p],
    "mscclc_register_plan": [c_void_p, c_char_p, c_size_t, c_char_p, c_char_p],
    "mscclc_remove_plan": [c_void_p, c_char_p],
    "mscclc_set_selector": [c_void_p, Selector, c_void_p],
    "mscclc_plan_of_trace": [
        c_void_p, c_size_t, c_int32, POINTER(c_void_p), POINTER(POINTER(c_uint64)), POINTER(c_size_t),
        POINTER(c_uint64),
    ],
    "mscclc_row_plan": [
        c_char_p, c_uint32, c_uint64, c_uint64, c_int32, c_int32, POINTER(c_void_p), POINTER(c_void_p),
        POINTER(c_uint64),
    ],
    "mscclc_plan_columns": [c_char_p, c_size_t, c_uint64, POINTER(c_void_p)],
    "mscclc_plan_load": [
        c_void_p, c_char_p, c_size_t, c_char_p, c_uint64, c_int32, POINTER(c_void_p),
    ],
    "mscclc_plan_meet": [c_void_p],
    "mscclc_plan_buffers": [c_void_p, c_uint64, POINTER(c_uint64), POINTER(c_uint64)],
    "mscclc_plan_launch": [c_void_p, POINTER(Call), c_uint64, c_void_p],
    "mscclc_plan_destroy": [c_void_p],
    "mscclc_overlap_create": [c_void_p, c_void_p, POINTER(c_void_p)],
    "mscclc_overlap_workspace": [c_void_p, POINTER(c_size_t)],
    "mscclc_overlap_run": [c_void_p, c_void_p, c_void_p],
    "mscclc_overlap_explain": [c_void_p, POINTER(c_void_p)],
    "mscclc_overlap_backends": [c_int32, POINTER(c_void_p)],
    "mscclc_overlap_destroy": [c_void_p],
}  # fmt: skip

_loaded = None


def library():
    """The library: the one of the package, or where the system's loader finds one."""
    global _loaded
    if _loaded is None:
        own = os.path.join(os.path.dirname(__file__), "lib", NAME)
        try:
            found = ctypes.CDLL(own if os.path.exists(own) else NAME)
        except OSError as error:
            raise UsageError(f"{NAME} cannot be loaded: {error}") from None
        for name, arguments in _FUNCTIONS.items():
            function = getattr(found, name)
            function.argtypes, function.restype = arguments, c_int32
        for name in ("mscclc_last_error", "mscclc_version"):
            getattr(found, name).restype = c_char_p
        found.mscclc_free.argtypes, found.mscclc_free.restype = [c_void_p], None
        found.mscclc_memory_address.argtypes = [c_void_p]
        found.mscclc_memory_address.restype = c_void_p
        found.mscclc_result_text.argtypes = [c_int32]
        found.mscclc_result_text.restype = c_char_p
        _loaded = found
    return _loaded


def path_of_library():
    """The file of the library that is loaded, for what is linked with it."""
    library()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = {line.rstrip("\n").partition("/")[2] for line in maps}
    for path in paths:
        if os.path.basename(path).startswith(NAME):
            return f"/{path}"
    raise UsageError(f"the file of {NAME} is not known")


def check(result):
    """Raises LibraryError if the call of this thread that gave `result` has failed."""
    if result != 0:
        text = library().mscclc_result_text(result).decode()
        reasons = library().mscclc_last_error().decode(errors="replace").rstrip("\n")
        raise LibraryError(result, f"{text}: {reasons}" if reasons else text)
