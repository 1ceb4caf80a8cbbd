#!/usr/bin/env python3
"""Writes the wheel of the package: Python with the examples, the command, the library, and kernels of its plans.

Programs of plans/, those of rows too, and their tables are compiled into the command and the library.

    python/make_wheel.py FOLDER [MSCCLC LIBMSCCLC [KERNELS]]   (default: what Bazel has built)

KERNELS is //tools/package:kernels.tar; without it the wheel has no kernels. It is also the build backend of pyproject.toml: `pip wheel python/`. Same files, same bytes.
"""

import base64
import hashlib
import os
import platform
import re
import sys
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "mscclc"
SUMMARY = "A compiler for GPU collectives"
# The command is linked statically; the library needs the C library of Debian 12, or a later one.
TAG = f"py3-none-manylinux_2_36_{platform.machine()}"
HEADER = os.path.join("..", "runtime", "doors", "c", "mscclc.h")
# torch calls the second when it is imported, vLLM the third; TorchComms imports the fourth.
ENTRY_POINTS = """\
[console_scripts]
mscclc = mscclc.__main__:main

[torch.backends]
mscclc = mscclc.torch:register

[vllm.platform_plugins]
mscclc = mscclc.vllm:register

[torchcomms.backends]
mscclc = mscclc.torchcomms
"""
BUILT = ("tools/mscclc", "runtime/doors/c/libmscclc.so.0")
BUILT_KERNELS = "tools/package/kernels.tar"


def make_wheel(folder, tool, library, kernels=None):
    """Writes the wheel into a folder, which is made where there is none; the name of the file. Kernels of
    the library's plans come from a tar, and lie where the library looks for them."""
    version = _version()
    info = f"{NAME}-{version}.dist-info"
    files = [(path, _read(os.path.join(HERE, path)), 0o644) for path in _sources()]
    files += _examples()
    files.append((f"{NAME}/bin/mscclc", _read(tool), 0o755))
    files.append((f"{NAME}/lib/libmscclc.so.0", _read(library), 0o755))
    files.append((f"{NAME}/include/mscclc.h", _read(os.path.join(HERE, HEADER)), 0o644))
    files += _kernels(kernels) if kernels else []
    files += [
        (f"{info}/METADATA", _metadata(version).encode(), 0o644),
        (f"{info}/WHEEL", _wheel().encode(), 0o644),
        (f"{info}/entry_points.txt", ENTRY_POINTS.encode(), 0o644),
    ]
    record = "".join(f"{path},{_digest(data)},{len(data)}\n" for path, data, _ in files)
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644))
    name = f"{NAME}-{version}-{TAG}.whl"
    os.makedirs(folder, exist_ok=True)
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data, mode in files:
            entry = zipfile.ZipInfo(path)  # of 1980, so that the bytes depend only on the files
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | mode) << 16
            wheel.writestr(entry, data)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The hook of PEP 517."""
    return make_wheel(wheel_directory, *_built())


def build_sdist(sdist_directory, config_settings=None):
    """There is no source distribution: the compiler is built by Bazel."""
    raise RuntimeError("there is no source distribution; build the wheel from a checkout")


def _sources():
    found = []
    for folder, folders, names in os.walk(os.path.join(HERE, NAME)):
        folders[:] = sorted(set(folders) - {"__pycache__", "bin", "lib", "share"})
        relative = os.path.relpath(folder, HERE)
        for name in sorted(names):
            # The adapter for torch is built from its sources, where torch is.
            if name.endswith((".py", ".cc", ".h")) or name == "py.typed":
                found.append(os.path.join(relative, name))
    return found


def _examples():
    """`python3 -m mscclc.examples.fused_norm` runs one."""
    folder = os.path.join(HERE, "examples")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
    return [(f"{NAME}/examples/{name}", _read(os.path.join(folder, name)), 0o644) for name in names]


def _kernels(path):
    with tarfile.open(path) as tar:
        members = [member for member in tar if member.isfile()]
        return [
            (f"{NAME}/share/mscclc/{member.name}", tar.extractfile(member).read(), 0o644)
            for member in members
        ]


def _version():
    text = _read(os.path.join(HERE, NAME, "__init__.py")).decode()
    return re.search(r'^__version__ = "(.*)"$', text, re.MULTILINE)[1]


def _metadata(version):
    return (
        f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version}\nSummary: {SUMMARY}\n"
        "Requires-Python: >=3.10\n"
    )


def _wheel():
    return (
        f"Wheel-Version: 1.0\nGenerator: make_wheel\nRoot-Is-Purelib: false\nTag: {TAG}\n"
    )


def _digest(data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return "sha256=" + digest.rstrip(b"=").decode()


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def _built():
    paths = [os.path.join(HERE, "..", "bazel-bin", path) for path in BUILT]
    for path in paths:
        if not os.path.exists(path):
            raise RuntimeError(
                f"there is no {path}: bazel build //tools:mscclc //runtime/doors/c:libmscclc.so.0"
            )
    kernels = os.path.join(HERE, "..", "bazel-bin", BUILT_KERNELS)
    return paths + [kernels] * os.path.exists(kernels)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 4, 5):
        sys.exit(__doc__)
    print(make_wheel(sys.argv[1], *(sys.argv[2:] or _built())))
