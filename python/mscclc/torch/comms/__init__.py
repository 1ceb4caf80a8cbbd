"""The backend of TorchComms in C++, for users who have TorchComms' sources.

    python3 -m mscclc.torch.comms SOURCES [FOLDER]

builds libmscclc_torchcomms-2.11.so, say, with g++ (11 or later): from the sources of the TorchComms
that is installed, whose headers its wheel lacks, and with the adapter, which must have been built.
TORCHCOMMS_BACKEND_LIB_PATH_MSCCLC names the library; new_comm("mscclc", …) then takes it instead of
the backend in Python.
"""

import ctypes
import importlib.util
import os

from ...errors import UsageError
from .. import adapter

_HERE = os.path.dirname(os.path.abspath(__file__))
_COMMAND = "python3 -m mscclc.torch.comms SOURCES FOLDER"


def build(sources: str, folder: str = _HERE) -> str:
    """Builds the library; its path. `sources` is the folder that has comms/torchcomms."""
    header = os.path.join("comms", "torchcomms", "TorchCommBackend.hpp")
    if not os.path.exists(os.path.join(sources, header)):
        raise UsageError(f"{sources} has no {header}: it must be the folder of TorchComms' sources")
    if not adapter.has_symmetric_memory():
        raise UsageError("the backend in C++ needs torch 2.11 or later, for its windows")
    installed = importlib.util.find_spec("torchcomms")  # not imported: that would need no sources
    if installed is None:
        raise UsageError("torchcomms is not installed")
    places = [os.path.dirname(installed.origin), os.path.dirname(adapter.path())]
    more = ["-isystem", os.path.abspath(sources), os.path.join(places[0], "libtorchcomms.so")]
    more += [adapter.path(), *(f"-Wl,-rpath,{os.path.abspath(place)}" for place in places)]
    name = f"libmscclc_torchcomms-{adapter.version_of_torch()}.so"
    return adapter.compile_library(adapter.sources_of("comms"), os.path.join(folder, name), more)


def check(path: str) -> None:
    """UsageError: the library was built with the adapter of another version, whose objects are not as large as those
    that it makes. What is wrong with a file that is not there, TorchComms says."""
    try:
        built_from = ctypes.CDLL(path).mscclc_torchcomms_built_from
    except AttributeError:
        found = ""  # older ones do not say it
    except OSError as error:
        if not os.path.exists(path):
            return
        raise UsageError(f"{path} cannot be loaded: {error}; this builds it anew, with g++: {_COMMAND}") from error
    else:
        built_from.restype = ctypes.c_char_p
        found = built_from().decode()
    if found != adapter.digest_of_sources():
        raise UsageError(f"{path} is of another version of mscclc; this builds it anew, with g++: {_COMMAND}")
