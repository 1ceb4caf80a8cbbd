"""The adapter: a library of C++ between torch's and ours, without a symbol of Python.

torch has no stable interface for backends, so there is one adapter for each minor version of torch,
whatever the version of Python. It is built from source, once:

    python3 -m mscclc.torch.adapter [FOLDER]

needs g++ (11 or later) and the torch that is installed, and writes libmscclc_torch-2.11.so, say, into
the folder, or beside this file. TORCH_MSCCLC_ADAPTER names a folder in which it is looked for first.
"""

import atexit
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from typing import Sequence

import torch

from ..._library import library, path_of_library
from ...errors import UsageError

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(os.path.dirname(_HERE))
_COMMAND = "python3 -m mscclc.torch.adapter"
_loaded = False


def load() -> None:
    """Loads the adapter of this version of torch, and libmscclc before it; once."""
    global _loaded
    if _loaded:
        return
    library()
    torch.ops.load_library(path())
    built_from = getattr(torch.ops.mscclc, "built_from", lambda: "")  # older ones do not say it
    if built_from() != digest_of_sources():
        raise UsageError(f"{path()} is of another version of mscclc; this builds it anew, with g++: {_COMMAND}")
    atexit.register(torch.ops.mscclc.close_workers)  # what works need ends after that
    _loaded = True


def build(folder: str = _HERE, compiler: str = "g++") -> str:
    """Builds the adapter for the torch that is installed; the path of the library."""
    return compile_library(sources_of("adapter"), os.path.join(folder, name()), [], compiler)


def path() -> str:
    """The adapter of this version of torch; UsageError where there is none."""
    for place in filter(None, [os.environ.get("TORCH_MSCCLC_ADAPTER"), _HERE]):
        found = os.path.join(place, name())
        if os.path.exists(found):
            return found
    raise UsageError(
        f"there is no adapter for torch {torch.__version__}; this builds it, with g++: {_COMMAND}"
    )


def name() -> str:
    """What the library is called."""
    return f"libmscclc_torch-{version_of_torch()}.so"


def version_of_torch() -> str:
    """Its minor version, say 2.11."""
    return re.match(r"[0-9]+[.][0-9]+", torch.__version__)[0]


def digest_of_sources() -> str:
    """Of all that the adapter is built from, in a few words of hexadecimal digits."""
    sources = []
    for folder, _, names in os.walk(_HERE):
        sources += [os.path.join(folder, name) for name in names if name.endswith((".cc", ".h"))]
    digest = hashlib.sha256()
    for source in [os.path.join(_folder_of_header(), "mscclc.h"), *sorted(sources)]:
        with open(source, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()[:16]


def has_symmetric_memory() -> bool:
    """Whether this version of torch takes our symmetric memory: since 2.11."""
    return tuple(map(int, version_of_torch().split("."))) >= (2, 11)


def compile_library(
    sources: Sequence[str], target: str, more: Sequence[str], compiler: str = "g++"
) -> str:
    """Makes a library of sources, against torch and libmscclc, with more arguments for the compiler;
    its path. A source is named as in sources_of(), or by its whole path."""
    if not os.access(os.path.dirname(target) or ".", os.W_OK):
        raise UsageError(f"cannot write {target}: there is no such folder, or it is not writable")
    of_torch = os.path.dirname(torch.__file__)
    with tempfile.TemporaryDirectory() as scratch:
        # Sources include one another by their paths in the repository. They are compiled as one,
        # since most of the time goes into torch's headers.
        os.mkdir(os.path.join(scratch, "python"))
        os.symlink(_PACKAGE, os.path.join(scratch, "python", "mscclc"))
        whole, built = os.path.join(scratch, "whole.cc"), os.path.join(scratch, "built.so")
        with open(whole, "w", encoding="utf-8") as file:
            for source in sources:
                file.write(f'#include "{source}"\n')
        command = [
            compiler, "-std=c++20", "-O2", "-fPIC", "-shared", "-o", built, whole,
            "-I", scratch, "-I", _folder_of_header(),
            "-isystem", os.path.join(of_torch, "include"),
            "-isystem", os.path.join(of_torch, "include", "torch", "csrc", "api", "include"),
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
            f'-DMSCCLC_ADAPTER_SOURCES="{digest_of_sources()}"',
            *more, path_of_library(),
            "-L", os.path.join(of_torch, "lib"), "-lc10", "-ltorch_cpu",
            f"-Wl,-soname,{os.path.basename(target)}",
            "-Wl,--no-undefined", "-Wl,--as-needed", "-s",
        ]  # fmt: skip
        try:
            subprocess.run(command, check=True)
        except FileNotFoundError:
            raise UsageError(f"there is no {compiler}, which builds {target}") from None
        except subprocess.CalledProcessError as error:
            raise UsageError(f"{compiler} does not build {target}: see above") from error
        shutil.copy(built, target + ".part")
        os.replace(target + ".part", target)  # processes may have the old one loaded
    return target


def sources_of(part: str) -> Sequence[str]:
    """The sources in the folder `part` of mscclc.torch, and in its folders, as they are included."""
    found = []
    for folder, folders, names in os.walk(os.path.join(_PACKAGE, "torch", part)):
        folders[:] = [n for n in folders if n != "symmetric" or has_symmetric_memory()]
        found += [os.path.join(folder, name) for name in names if name.endswith(".cc")]
    return sorted(os.path.join("python/mscclc", os.path.relpath(path, _PACKAGE)) for path in found)


def _folder_of_header():
    """Where mscclc.h is: in the package, or in a checkout."""
    places = [
        os.path.join(_PACKAGE, "include"),
        os.path.join(_PACKAGE, "..", "..", "runtime", "doors", "c"),
    ]
    for place in places:
        if os.path.exists(os.path.join(place, "mscclc.h")):
            return place
    raise UsageError(f"there is no mscclc.h in {' or '.join(places)}")
