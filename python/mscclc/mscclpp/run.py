"""Runs a program of MSCCL++'s language and keeps what it traces."""

import contextlib
import gc
import importlib
import io
import os
import sys
import types

from .._files import read_file
from ..errors import UsageError
from .language.internal import globals as current

_PACKAGE = __package__  # mscclc.mscclpp
_MODULES = (
    "language",
    "language.channel",
    "language.collectives",
    "language.general",
    "language.internal",
    "language.internal.globals",
    "language.internal.types",
    "language.loop",
    "language.program",
    "language.rank",
    "language.thread_block_group",
    "language.utils",
)


@contextlib.contextmanager
def as_mscclpp():
    """Inside, `import mscclpp.language…` finds the modules of this package."""
    shadowed = {
        name: module
        for name, module in sys.modules.items()
        if name == "mscclpp" or name.startswith("mscclpp.")
    }
    for name in shadowed:
        del sys.modules[name]
    sys.modules["mscclpp"] = importlib.import_module(_PACKAGE)
    for name in _MODULES:
        sys.modules["mscclpp." + name] = importlib.import_module(f"{_PACKAGE}.{name}")
    try:
        yield
    finally:
        for name in [n for n in sys.modules if n == "mscclpp" or n.startswith("mscclpp.")]:
            del sys.modules[name]
        sys.modules.update(shadowed)


def trace(path, arguments, limits=True):
    """Runs the file as a main program. Its CollectivePrograms, and what it has printed.

    `limits`: its plans must fit into MSCCL++'s executor.
    """
    path = os.fspath(path)
    code = compile(_read(path), path, "exec", dont_inherit=True)
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__builtins__ = __builtins__
    printed = io.StringIO()
    current.traced = traced = []
    current.limits = limits
    with _as_main(main, path, arguments), as_mscclpp(), contextlib.redirect_stdout(printed):
        try:
            exec(code, main.__dict__)
        except SystemExit as end:
            if end.code not in (None, 0):
                raise
        finally:
            current.set_program(None)
            current.limits, current.traced = True, None
    return traced, printed.getvalue()


def _read(path):
    try:
        return read_file(path)
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror}") from None


@contextlib.contextmanager
def _as_main(main, path, arguments):
    """Python's own state as it is for `python3 PATH ARGUMENTS…`."""
    saved = sys.argv, sys.path[:], sys.modules["__main__"]
    modules = set(sys.modules)
    folder = os.path.dirname(os.path.abspath(path))
    collects = gc.isenabled()
    gc.disable()  # a trace makes many objects, and no garbage
    sys.argv = [path, *arguments]
    sys.path.insert(0, folder)
    sys.modules["__main__"] = main
    try:
        yield
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = saved
        for name in set(sys.modules) - modules:  # another program may have others of this name
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(folder + os.sep):
                del sys.modules[name]
        if collects:
            gc.enable()
