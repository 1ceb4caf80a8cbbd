"""Files that a call names."""

import os
import secrets
import stat

from .errors import UsageError

_MOST = 256 << 20  # as the compiler


def read_file(path):
    """The bytes of a file; a UsageError if it does not end, as /dev/zero, or is too large."""
    with open(path, "rb") as file:
        data = file.read(_MOST + 1)
    if len(data) > _MOST:
        raise UsageError(f"cannot read '{path}': it has more than 256 MiB, or does not end")
    return data


def replace_file(path, data):
    """Puts bytes in the place of a file at once: where that fails, it is what it was. A pipe, a device, and a file
    with several names or of another owner are written in place."""
    path = os.fsdecode(path)
    target = os.path.realpath(path)
    beside = f"{target}.{secrets.token_hex(4)}.part"
    number = _open_beside(path, target, beside)
    if number is None:
        with open(path, "wb") as file:
            file.write(data)
        return
    try:
        with open(number, "wb") as file:
            file.write(data)
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise


def _open_beside(path, target, beside):
    """A new file, as a descriptor, that can take the place of what the path leads to. None: none can."""
    if os.path.abspath(path).startswith(("/dev/", "/proc/")):  # these mean what is open already
        return None
    there = os.stat(target) if os.path.exists(target) else None
    if there is not None:
        is_own = stat.S_ISREG(there.st_mode) and there.st_nlink == 1 and there.st_uid == os.geteuid()
        if not is_own or not os.access(target, os.W_OK):
            return None
    try:
        number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except OSError:
        return None
    try:
        if there is not None:
            os.fchown(number, -1, there.st_gid)
            os.fchmod(number, stat.S_IMODE(there.st_mode))
    except OSError:
        os.close(number)
        os.unlink(beside)
        return None
    return number
