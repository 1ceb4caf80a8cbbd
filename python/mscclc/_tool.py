"""The compiler as a process: where its binary is, and one call of it."""

import os
import subprocess

from .errors import CompileError, RunError, UsageError

WRONG_PROGRAM, USAGE, WRONG_RUN = 1, 2, 3  # exit codes


def tool_path():
    """The binary: the one of the package, or `mscclc` in PATH."""
    own = os.path.join(os.path.dirname(__file__), "bin", "mscclc")
    if os.path.exists(own):
        return own
    import shutil

    found = shutil.which("mscclc")
    if found is None:
        raise UsageError(
            "the compiler is not there: the package has no bin/mscclc, and PATH has no 'mscclc'"
        )
    return found


def call(*arguments, text=None, cwd=None):
    """Runs `mscclc ARGUMENTS…` with `text` as its input: what it printed, and its messages.

    Raises CompileError where the program or plan is wrong, RunError where a run is, and UsageError
    where the call is.
    """
    path = tool_path()
    try:
        (text or "").encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise UsageError(f"the text is none in UTF-8: {error.reason}") from None
    try:
        process = subprocess.Popen(
            [path, *arguments],
            stdin=subprocess.PIPE if text is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            encoding="utf-8",
            errors="surrogateescape",
        )
    except OSError as error:
        raise UsageError(f"cannot run '{path}': {error.strerror}") from None
    except ValueError as error:  # a 0, or half a character, in an argument
        raise UsageError(f"the compiler takes no such argument: {error}") from None
    try:
        out, messages = process.communicate(text)
    except BaseException:  # Ctrl-C, too: the process must not outlive the call
        process.kill()
        process.wait()
        raise
    if process.returncode == 0:
        return out, messages
    if process.returncode == WRONG_PROGRAM:
        raise CompileError(messages or out)
    if process.returncode == WRONG_RUN:
        raise RunError((out + messages).rstrip("\n"))
    raise UsageError(messages.strip() or f"mscclc ended with code {process.returncode}")
