"""The command `mscclc`: `mscclpp` is Python's, all others are the compiler's."""

import os
import sys

from ._tool import call, tool_path
from .errors import UsageError


def main() -> int:
    """Runs the command line; the compiler takes this process over."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["mscclpp"]:
        from .mscclpp.command import main as mscclpp

        return mscclpp(arguments[1:])
    try:
        if arguments in (["-h"], ["--help"]):
            return _help()
        if arguments in (["completion", "bash"], ["completion", "zsh"]):
            return _completion(arguments[1])
        path = tool_path()
    except UsageError as error:
        print(f"mscclc: {error}", file=sys.stderr)
        return 2
    sys.stdout.flush()
    try:
        os.execv(path, ["mscclc", *arguments])
    except OSError as error:
        print(f"mscclc: cannot run '{path}': {error.strerror}", file=sys.stderr)
        return 2


def _help():
    """The compiler's help, with the command that is Python's."""
    from ._completion import DESCRIPTION

    text, _ = call("--help")
    commands, options = text.split("\n\noptions:", 1)
    print(f"{commands}\n  {'mscclpp':22}  {DESCRIPTION}\n\noptions:{options}", end="", flush=True)
    return 0


def _completion(shell):
    """The compiler's completion script, with the same."""
    from ._completion import with_mscclpp

    text, _ = call("completion", shell)
    print(with_mscclpp(text), end="", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
