"""Files that a call names."""

from .errors import UsageError

_MOST = 256 << 20  # as the compiler


def read_file(path):
    """The bytes of a file; a UsageError if it does not end, as /dev/zero, or is too large."""
    with open(path, "rb") as file:
        data = file.read(_MOST + 1)
    if len(data) > _MOST:
        raise UsageError(f"cannot read '{path}': it has more than 256 MiB, or does not end")
    return data
