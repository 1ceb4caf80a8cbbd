"""The command `mscclc`: Python runs `mscclpp`, the compiler all others, and the help of all."""

import os
import sys

from ._tool import tool_path
from .errors import UsageError


def main() -> int:
    """Runs the command line; the compiler takes this process over."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["mscclpp"]:
        from .mscclpp.command import main as mscclpp

        return mscclpp(arguments[1:])
    try:
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


if __name__ == "__main__":
    sys.exit(main())
