"""A fake TorchComms 0.3, for where it is not installed: what a backend in Python meets of it.

Written from its documented interface: how a backend is found, how results of its methods are taken,
and what a communicator has. It is for tests; hooks, windows and reconfiguration are not there.
"""

import enum
import importlib.metadata
import os
from datetime import timedelta


class RedOpType(enum.Enum):
    """What a reduction is."""

    SUM, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM, AVG = range(9)


class ReduceOp:
    """A reduction; a factor is not shown to Python."""

    def __init__(self, type):
        self.type = type

    @staticmethod
    def PREMUL_SUM(factor):
        """The sum of all, each times a factor."""
        return ReduceOp(RedOpType.PREMUL_SUM)


for _op in RedOpType:
    if _op is not RedOpType.PREMUL_SUM:
        setattr(ReduceOp, _op.name, ReduceOp(_op))


class CommOptions:
    """Options of a communicator; the environment says the defaults."""

    def __init__(self):
        self.abort_process_on_timeout_or_error = (
            os.environ.get("TORCHCOMM_ABORT_ON_ERROR", "1").lower() in ("1", "true", "yes", "y")
        )  # fmt: skip
        self.timeout = timedelta(seconds=int(os.environ.get("TORCHCOMM_TIMEOUT_SECONDS", 600)))
        self.store = None
        self.enable_reconfigure = False
        self.hints = {}


class TorchCommBackend:
    """What backends derive from."""


class TorchWork:
    """What a call gives."""

    def __init__(self, of_backend):
        self._of_backend = of_backend
        self._completed = of_backend is None

    def is_completed(self):
        """True once it was waited for."""
        return self._completed

    def wait(self):
        """Waits for what the backend has given."""
        if self._of_backend is not None:
            self._of_backend.wait()
        self._completed = True


# The methods of a communicator that call the backend with the same arguments.
_COLLECTIVES = [
    "all_gather", "all_gather_single", "all_gather_v", "all_reduce", "all_to_all",
    "all_to_all_single", "all_to_all_v_single", "barrier", "broadcast", "gather", "recv", "reduce",
    "reduce_scatter", "reduce_scatter_single", "reduce_scatter_v", "scatter", "send",
]  # fmt: skip


class TorchComm:
    """A communicator. Calls take hints and a timeout, which backends in Python do not get."""

    def __init__(self, name, backend, device):
        self._name, self._backend, self._device = name, backend, device

    def __getattr__(self, name):
        if name not in _COLLECTIVES:
            raise AttributeError(name)

        def call(*arguments, hints=None, timeout=None):
            return TorchWork(getattr(self._backend, name)(*arguments))

        return call

    def get_rank(self):
        """This rank."""
        return self._backend.get_rank()

    def get_size(self):
        """The number of ranks."""
        return self._backend.get_size()

    def get_backend(self):
        """The name of the backend."""
        return self._backend.get_backend_name()

    def get_name(self):
        """The name of the communicator."""
        return self._backend.get_comm_name()

    def get_device(self):
        """The device."""
        return self._device

    def split(self, ranks, name, hints=None, timeout=None):
        """A communicator of some ranks, or None."""
        child = self._backend.split(list(ranks), name, _options(hints=hints, timeout=timeout))
        return None if child is None else TorchComm(self._name, child, self._device)

    def set_timeout(self, timeout):
        """How long calls that follow may take."""
        self._backend.set_timeout(timeout)

    def finalize(self):
        """Ends it."""
        self._backend.finalize()


_backends = {}


def register_backend(name, backend_class):
    """Makes a class known; the first of a name stays."""
    _backends.setdefault(name, backend_class)


def new_comm(backend, device, name, **more):
    """A communicator: by a class that is registered, or else by a library that a variable names."""
    if backend not in _backends:
        found = importlib.metadata.entry_points(group="torchcomms.backends", name=backend)
        if not found:
            raise ModuleNotFoundError(f"failed to find backend {backend}")
        next(iter(found)).load()
    variable = f"TORCHCOMMS_BACKEND_LIB_PATH_{backend.upper()}"
    if backend not in _backends:
        if variable not in os.environ:
            raise RuntimeError(f"Backend {backend} specified, but {variable} not set")
        raise RuntimeError(f"the fake loads no libraries: {os.environ[variable]}")
    made = _backends[backend]()
    made.init(device, name, _options(**more))
    return TorchComm(backend, made, device)


def _options(**given):
    options = CommOptions()
    for name, value in given.items():
        if not hasattr(options, name):
            raise TypeError(f"no option {name}")
        if value is not None:
            setattr(options, name, value)
    return options
